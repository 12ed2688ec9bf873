"""Packages that import their public names on first use; the stub `__init__.pyi` is the table of these names.

`python -m evalstone` imports this while the current folder comes first on `sys.path`, where a file `typing.py` would be
run. Until a name is asked for, only what Python itself has imported already is used here.
"""

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str, file: str) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """`__getattr__` and `__dir__` of a package whose public names are the imports in its stub.

    Args:
        package: `__name__` of the package.
        file: `__file__` of the package; the stub is beside it.
    """

    table: dict[str, str] = {}

    def exports() -> dict[str, str]:
        if not table:
            import ast  # noqa: PLC0415 - not needed by commands, which import from the modules
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
        # A module is a name of the package that holds it only once it has been imported.
        is_module = home.__name__ == package or not hasattr(home, name)
        value = importlib.import_module(f"{home.__name__}.{name}") if is_module else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *exports()})

    return get, names
