"""Engines: what maps a function over many items, on one machine or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from evalstone.errors import ConfigError, invalid

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Maps functions over items in workers. Used as a context manager, it has its workers until the end."""

    name: str
    workers: int
    """The number of workers, once the engine is entered."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: object) -> None: ...

    def check_sendable(self, value: object, what: str) -> None:
        """Raise ConfigError for a value that can't be sent to workers. what: its name."""
        ...

    def map(
        self, open_worker: Callable[[], AbstractContextManager[Callable[[T], R]]], items: Sequence[T], *, ordered: bool
    ) -> Iterator[R]:
        """What a worker's function returns for each item.

        Args:
            open_worker: Called once in each worker, for a context whose function is called with items, one at a time.
                It is left when the worker ends. Can be pickled.
            items: The items.
            ordered: Whether results come in the order of the items; otherwise, as they are ready.

        Raises:
            EvalstoneError: What the function raised. No more items are begun.
        """
        ...


def parse_engine(spec: str) -> Engine:
    """The engine that a text names: `ray`, which starts Ray on this machine, unless this process is connected to Ray
    already; or `ray:ADDRESS` of a cluster that runs.

    Raises:
        ConfigError: There is no such engine.
        MissingDependency: It isn't installed.
    """
    name, _, address = spec.partition(":")
    if name != "ray":
        raise ConfigError(invalid("engine", "ray, or ray:ADDRESS of a cluster", spec))
    from evalstone.scale.ray_engine import RayEngine  # noqa: PLC0415 - only with Ray

    return RayEngine(address)
