"""Lazy packages: public names are imported on first use. The stub `__init__.pyi` lists the names and their modules.

`python -m evalstone` imports this module while the working directory is first on `sys.path`, so a file `typing.py`
there would be executed. Therefore, until the first use of a name, only modules that Python itself has already imported
are used here.
"""

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str, file: str) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """`__getattr__` and `__dir__` for a package whose public names are the imports in its stub.

    Args:
        package: `__name__` of the package.
        file: `__file__` of the package; the stub is next to it.
    """

    table: dict[str, str] = {}

    def exports() -> dict[str, str]:
        if not table:
            import ast  # noqa: PLC0415 - commands import from the modules and don't need it
            from pathlib import Path  # noqa: PLC0415

            from evalstone._core.syntax import parse_module  # noqa: PLC0415

            stub = parse_module(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
            imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
            table.update({alias.name: node.module or "" for node in imports for alias in node.names})
        return table

    def get(name: str) -> "Any":
        if name == "__all__":
            return sorted(name for name, home in exports().items() if home != package)
        if name.startswith("__") or name not in exports():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(exports()[name])
        # A submodule becomes an attribute of its package only when it is imported.
        is_module = home.__name__ == package or not hasattr(home, name)
        value = importlib.import_module(f"{home.__name__}.{name}") if is_module else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(exports())

    return get, names
