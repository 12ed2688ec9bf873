"""evalstone evaluates what language models, RAG pipelines and agents produce.

The public names stand in `__init__.pyi`. Each is imported when it is first used: nobody uses all of them, and some need
numpy.
"""

from typing import Any

from evalstone._core.lazy import lazy_exports

_public, _names = lazy_exports(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

        return version("evalstone")
    return _public(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
