"""The messages between the application and the worker: pickled frames with their length, over a pipe.

A snapshot of a sample is made in the request, so that later changes of the application's lists don't affect it. Lists
and mappings of texts are copied, because the code of a copy is short enough for a request. Everything else is pickled.
Values of classes outside evalstone become plain data in the pickle, so that the worker never imports the application.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import pickle
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast

from evalstone._core.addresses import origins, restore
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.types.samples import TEXTS, check_text

_LENGTH = 8
LONGEST_NAME = 200
"""The most characters of a stream, entity, trace or span: more don't fit into a PostgreSQL index."""
LONGEST_SIGNATURE = 1000
"""The most bytes of a scorer's signature: with the longest names, an index of PostgreSQL takes no more."""
READ_FAILED = "read, the function of live.asgi, failed: "
"""The beginning of the problem if the application's `read` failed to return a sample."""
USER_ERRORS = (Exception, asyncio.CancelledError, GeneratorExit)
"""Errors of the application's code. CancelledError is one of them, because no await could have been canceled.
SystemExit and KeyboardInterrupt are not caught in a request, because a signal handler may have raised them."""
MOST_VALUES = 30
"""The number of values in a list, and of lists, up to which a copy is faster than a pickle. It also limits the depth of
copies, which are pickled later."""
VALUE_BYTES = 64
"""The size of a value without its text, in bytes."""


class Submitted(NamedTuple):
    """One sampled submission, as the worker receives it."""

    number: int
    """Its number among the submissions of its owner."""
    at: float
    """Seconds since 1970."""
    drawn: int
    """The number of scorers that score it: those with the highest rates."""
    source: str
    trace: str | None
    span: str | None
    entity: str | None
    content: Snapshot
    size: int
    """Its approximate size in bytes."""


class Content(NamedTuple):
    """The content of a sample."""

    fields: object
    """A Sample, a mapping of its fields, or any other submitted value."""
    answer: object = None
    """The return value of the function, if `answered`."""
    answered: bool = False
    seconds: float = 0.0
    """The duration of the call in seconds."""
    problem: str = ""
    """Why there is no sample."""


Snapshot: TypeAlias = "bytes | tuple[Any, ...]"
"""A `Content` that nobody changes: its pickle, or plain data."""


class HourCounts(NamedTuple):
    """The counts of an owner in one hour so far."""

    hour: int
    """Hours since 1970."""
    seen: int
    filtered: int
    dropped: tuple[int, ...]
    """The number of submissions by the number of scorers that sampled them, from 0."""
    accepted: tuple[int, ...]
    """Likewise."""


@dataclass(frozen=True)
class Frame:
    """A message from the application."""

    number: int
    """Its number among the frames of its `Live`, from 1."""
    counts: Sequence[HourCounts] = ()
    submitted: Sequence[Submitted] = ()
    end: float | None = None
    """In the last frame: seconds that the worker has to finish its work."""


class Reply(NamedTuple):
    """The worker's reply once a frame is durable."""

    accepts: int
    """The number of further samples that it accepts now."""
    settled: int
    """The number of the last frame up to which all samples have an outcome in the ledger."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        kind: Any = obj if isinstance(obj, type) else type(obj)
        if kind.__module__.startswith("evalstone.") or obj is _plain:
            return NotImplemented
        if isinstance(obj, Iterator | AsyncIterator):
            raise TypeError(f"{kind.__name__} can be read only once, by the application; submit a list")
        return _plain, (to_jsonable(obj),)


def _plain(value: object) -> object:
    return value


def snapshot(content: Content) -> tuple[Snapshot, int]:
    """An immutable copy of the content, and its size. Raises whatever the value's own code raises."""
    root = [content.fields, content.answer]
    size = _copy(root)
    if size is not None:
        return (*root, *content[2:]), size
    fields: object = content.fields
    for name in TEXTS if type(fields) is dict else ():  # the worker would get the representation of an object as text
        check_text(name, cast("dict[str, object]", fields).get(name))
    buffer = io.BytesIO()
    _Pickler(buffer, 5).dump(tuple(content))  # a plain tuple: a class of its own takes as long as the rest
    data = buffer.getvalue()
    return data, len(data)


def _copy(root: list[Any]) -> int | None:
    """Replace the lists and mappings in a list by copies, and return their approximate size in bytes; None if there is
    anything but a few lists and mappings of texts and numbers."""
    copies: list[Any] = [root]
    size = 0
    for copy in copies:  # grows in the loop
        size += VALUE_BYTES * len(copy)
        for place, item in PAIRS[type(copy)](copy):
            kind: Any = type(item)  # pyright: ignore[reportUnknownVariableType]
            if kind is str:
                size += len(item)
            elif kind in PAIRS:
                if len(item) + len(copies) > MOST_VALUES:
                    return None
                copy[place] = item.copy()
                copies.append(copy[place])
            elif kind not in _NUMBERS:
                return None
            if type(place) not in _KEYS:
                return None
    return size


PAIRS: dict[Any, Callable[[Any], Iterable[tuple[Any, Any]]]] = {dict: dict[Any, Any].items, list: enumerate}
"""The types of values that are copied, each with a function that returns pairs of a position and an item."""
_NUMBERS = frozenset({int, float, bool, type(None)})
_KEYS = frozenset({str, int})


def copied(value: Any) -> Any:
    """A copy of lists and mappings, however deep; other values are shared."""
    if type(value) not in PAIRS:
        return value
    root: Any = value.copy()
    # The originals are kept, too, so that no other value gets their IDs.
    copies: dict[int, tuple[Any, Any]] = {id(value): (value, root)}
    todo: list[Any] = [root]
    with contextlib.suppress(*USER_ERRORS):  # a key's own code may raise
        for copy in todo:
            for place, item in PAIRS[type(copy)](copy):
                if type(item) in PAIRS:
                    if id(item) not in copies:
                        copies[id(item)] = item, item.copy()
                        todo.append(copies[id(item)][1])
                    copy[place] = copies[id(item)][1]
    return root


def restored(data: Snapshot) -> Content:
    """The content of a snapshot."""
    return Content(*(pickle.loads(data) if isinstance(data, bytes) else data))  # noqa: S301 - from our own application


class _Portable(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=5)
        self.modules: set[str] = set()
        """Where the classes and functions are defined."""

    def reducer_override(self, obj: Any) -> Any:
        owner: Any = obj if callable(obj) else cast("object", type(obj))
        module = getattr(owner, "__module__", None)
        if isinstance(module, str):
            self.modules.add(module)
        if module == "__main__":
            name = getattr(owner, "__qualname__", repr(owner))
            raise pickle.PicklingError(f"{name} is defined in __main__, which another process doesn't import")
        return NotImplemented


def portable(settings: Settings) -> bytes:
    """Settings for another process.

    Raises:
        ConfigError: A value can't be sent to one.
    """
    for what, those, value in (
        ("on_record", "it", settings.on_record),
        ("the scorers or the judge", "them", settings),
    ):
        try:
            modules, data = _sent(value)
        except Exception as error:  # noqa: BLE001 - whatever a value's own code raises
            raise ConfigError(
                f"{what} can't be sent to another process ({error}). Define {those} at the top of a module that can be "
                "imported, or score in this process with process=False"
            ) from None
    return pickle.dumps((origins(modules), data), protocol=5)


def _sent(value: object) -> tuple[set[str], bytes]:
    """The pickle of a value for another process, and the modules that it needs there."""
    buffer = io.BytesIO()
    pickler = _Portable(buffer)
    pickler.dump(value)
    return pickler.modules, buffer.getvalue()


def received(data: bytes) -> Any:
    """The value that was passed to `portable`, in the other process. Modules that aren't installed are imported from
    their folders."""
    found, settings = pickle.loads(data)  # noqa: S301 - from our own application
    for origin in found:
        restore(origin)
    return pickle.loads(settings)  # noqa: S301 - likewise


def write(pipe: IO[bytes], data: bytes) -> None:
    """Write one frame to an unbuffered pipe. Raises OSError if the other end is closed."""
    left = memoryview(len(data).to_bytes(_LENGTH) + data)
    while left:
        left = left[pipe.write(left) :]


def read(pipe: IO[bytes]) -> bytes:
    """Read one frame; empty at the end."""
    head = _read(pipe, _LENGTH)
    return _read(pipe, int.from_bytes(head)) if head else b""


def _read(pipe: IO[bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = pipe.read(size)
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


Priority: TypeAlias = Literal["low", "idle"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a worker."""

    stream: str
    owner: str
    scorers: tuple[Any, ...]
    """In the order of their sampling rates, the highest first."""
    judge: Any
    ledger: str = DEFAULT_LEDGER
    concurrency: int = 8
    daily_budget: float | None = None
    priority: Priority = "low"
    keep_reasoning: bool = False
    front_end: FrontEnd = PYTHON
    on_record: Any = None
