"""evalstone evaluates what language models, RAG pipelines and agents produce.

The public names stand in `__init__.pyi`. Each is imported when it is first used: nobody uses all of them, and some need
numpy.
"""

import functools
import importlib
from pathlib import Path
from typing import Any


@functools.cache
def _exports() -> dict[str, str]:
    """The module of each public name, read from the stub."""
    import ast  # noqa: PLC0415 - not needed by commands, which import from the modules

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(name for name, home in _exports().items() if home != __name__)
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

        return version("evalstone")
    if name.startswith("__") or name not in _exports():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_exports()[name])
    # A module is a name of the package that holds it only once it has been imported.
    is_module = home.__name__ == __name__ or not hasattr(home, name)
    value = importlib.import_module(f"{home.__name__}.{name}") if is_module else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_exports(), "__version__"})
