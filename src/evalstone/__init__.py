"""evalstone evaluates what language models, RAG pipelines and agents produce."""

# The public names stand in `__init__.pyi`. Each is imported when it is first used: nobody uses all of them, and some
# need numpy.

from evalstone._core.lazy import lazy_exports

TYPE_CHECKING = False  # for `python -m evalstone`, typing is not imported before __main__
if TYPE_CHECKING:
    from typing import Any

_public, _names = lazy_exports(__name__, __file__)


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

        return version("evalstone")
    return _public(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
