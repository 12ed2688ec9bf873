"""Spans of tools, and which of the calls in messages they are of."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.agents.formats.parts import error_text
from evalstone.agents.formats.values import Entries, json_text, parsed
from evalstone.errors import DataError
from evalstone.types import ToolCall


@dataclass(frozen=True)
class ToolRun:
    """What the span of a tool says."""

    name: str
    id: str
    """That of the call; "" if the span has none."""
    arguments: Any
    result: Any
    error: str | None
    """What the tool failed with."""

    @classmethod
    def of(cls, attributes: Entries, error: str | None) -> ToolRun:
        """Read the attributes of a span. Raises DataError if they don't name the tool."""
        name = attributes.get("gen_ai.tool.name")
        if not isinstance(name, str) or not name:
            raise DataError("the span of a tool must have its name")
        return cls(
            name=name,
            id=str(attributes.get("gen_ai.tool.call.id") or ""),
            arguments=parsed(attributes.get("gen_ai.tool.call.arguments")),
            result=parsed(json_text(attributes.get("gen_ai.tool.call.result"))),
            error=error,
        )

    def call(self) -> ToolCall:
        """The call itself, where no message has it."""
        given = self.arguments
        given = cast("Entries", given) if isinstance(given, dict) else {} if given is None else {"raw": given}
        state = "result" if self.error is None else "error"
        error = None if self.error is None else str(self.error if self.result is None else self.result)
        return ToolCall(name=self.name, arguments=given, result=self.result, id=self.id, state=state, error=error)

    def answered(self, call: ToolCall) -> ToolCall:
        """Its call with its result. If only the place of the span tells that it is this call, a result that the call
        has already stays."""
        is_open = call.state in ("call", "partial")
        if self.result is None or call.state == "error" or not (is_open or self.id):
            return call
        return replace(call, result=self.result, state="result", error=None)

    def failed(self, call: ToolCall) -> ToolCall:
        """Its call, marked as failed if the tool did, even if messages have a result that doesn't say so."""
        if self.error is None:
            return call
        if call.state in ("call", "partial"):
            return replace(call, result=self.error, state="error", error=error_text(self.error))
        return replace(call, state="error", error=call.error or error_text(call.result))


def paired(runs: Sequence[ToolRun], calls: Sequence[ToolCall]) -> dict[int, int]:
    """The places of the runs that are of a call, with those of the calls.

    A run with an ID is of the only call with it. If several calls have it, the last runs are of the last calls, first
    by their arguments: earlier calls may have no run here. The others are of a call each that no run with an ID is of:
    of the first one of their tool with their arguments or their only argument, else of the first one of their tool that
    is left.
    """
    last = {call.id: place for place, call in enumerate(calls) if call.id}
    pairs: dict[int, int] = {}
    with_id = [(number, run) for number, run in enumerate(runs) if run.id in last]
    _pair(with_id[::-1], [*enumerate(calls)][::-1], (_with_id_and_arguments, _with_id), pairs)
    pairs = {number: pairs.get(number, last[run.id]) for number, run in with_id}
    without = [(number, run) for number, run in enumerate(runs) if not run.id]
    _pair(without, [*enumerate(calls)], (_with_arguments, _with_only_argument, _name), pairs)
    return pairs


def _pair(
    runs: Sequence[tuple[int, ToolRun]],
    calls: Sequence[tuple[int, ToolCall]],
    keys: Sequence[Callable[[ToolRun | ToolCall], Hashable]],
    pairs: dict[int, int],
) -> None:
    """Add pairs: of each run with the first call that is in no pair and has the same key, key by key."""
    for key_of in keys:
        taken, places = set(pairs.values()), dict[Hashable, deque[int]]()
        for place, call in calls:
            if place not in taken:
                places.setdefault(key_of(call), deque()).append(place)
        for number, run in runs:
            if number not in pairs and (left := places.get(key_of(run))):
                pairs[number] = left.popleft()


def is_certain(run: ToolRun, call: ToolCall) -> bool:
    """Whether a run is of its call by more than its place."""
    return bool(run.id) or any(key(run) == key(call) for key in (_with_arguments, _with_only_argument))


def _with_id_and_arguments(one: ToolRun | ToolCall) -> Hashable:
    return one.id, _with_arguments(one)


def _with_id(one: ToolRun | ToolCall) -> Hashable:
    return one.id


def _with_arguments(one: ToolRun | ToolCall) -> Hashable:
    given: Any = one.arguments
    arguments = to_jsonable(dict(cast("Entries", given))) if isinstance(given, Mapping) else given
    return one.name, json.dumps(arguments, sort_keys=True, default=str)


def _with_only_argument(one: ToolRun | ToolCall) -> Hashable:
    """LangChain writes the only argument of a call without its name."""
    given: Any = one.arguments
    if isinstance(given, Mapping):
        values = list(cast("Entries", given).values())
        given = values[0] if len(values) == 1 else None
    return one.name, given if isinstance(given, str) else id(one)


def _name(one: ToolRun | ToolCall) -> Hashable:
    return one.name
