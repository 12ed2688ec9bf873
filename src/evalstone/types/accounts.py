"""Two accounts of one tool call as one call: of a message and of a tool's span, of a message's parts and of the list
beside them, of a sample's messages and of its trajectory.

They are merged field by field. A value that is absent, empty or redacted never hides one that is present, and a call
that returned or failed is more than an open one. Where both have a value and the values differ, one of them is kept and
a note names both:

- the arguments of the first account, which is the message: what the model asked for;
- the result of the first account, unless the second one is the run of this very call (`ran`);
- a failure, whichever account has it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone._core.guards import is_list, is_mapping
from evalstone._core.json import to_jsonable
from evalstone._core.syntax import parse_literal
from evalstone.types.messages import ToolCall

DIFFER = "two accounts of a tool call differ"
_REDACTED = re.compile(
    r"[\W_]+(?:redacted|scrubbed|filtered|masked|hidden|omitted|replaced|removed)(?: due to .*)?[\W_]+|\*{3,}",
    re.IGNORECASE,
)
_CUT = re.compile(r"(?:…|\.\.\.|\W*\btruncated\b\W*)\s*$", re.IGNORECASE)
_WRAPPERS = ("value", "result", "output", "content", "text", "json")
_PYTHON_WORDS: Mapping[str, Any] = {"True": True, "False": False, "None": None}
_LONGEST_LITERAL = 20_000
_FAILURE = re.compile(r"error|exception|fail|denied|not approved", re.IGNORECASE)
_PROGRESS = {"partial": 0, "call": 1, "result": 2, "error": 2}


def _progress(call: ToolCall) -> int:
    """How far a call got. A state of a newer version says more than the known ones."""
    return _PROGRESS.get(call.state, 3)


def is_hidden(value: Any) -> bool:
    """Whether a value says nothing: it is absent, empty or redacted, or has only such entries. 0 and false say
    something."""
    if isinstance(value, str):
        return not value.strip() or (len(value) < 200 and _REDACTED.fullmatch(value.strip()) is not None)
    if is_mapping(value):
        return all(map(is_hidden, value.values()))
    if is_list(value):
        return all(map(is_hidden, value))
    return value is None


def is_redacted(value: Any) -> bool:
    """Whether a value is a text in place of one that was removed."""
    return isinstance(value, str) and bool(value.strip()) and is_hidden(value)


def first_shown(*values: Any) -> Any:
    """The first value that is not hidden, else the first that isn't None; None if all are."""
    shown = next((value for value in values if not is_hidden(value)), None)
    return shown if shown is not None else next((value for value in values if value is not None), None)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values say the same: as JSON or as text, with or without what formats put around a result."""
    if one == other and type(one) is type(other):
        return True
    left, right = _bare(one), _bare(other)
    return _canonical(left) == _canonical(right) or _text(left).strip() == _text(right).strip()


def merged_value(one: Any, other: Any) -> tuple[Any, bool]:
    """The value of two accounts, and whether they contradict each other, in which case it is the first one's."""
    if is_hidden(other):
        return (other if not one and one in (None, "") and other else one), False
    if is_hidden(one):
        return other, False
    if same_value(one, other):
        return (other if isinstance(one, str) and not isinstance(other, str) else one), False
    if is_mapping(one) and is_mapping(other):
        return _merged_entries(one, other)
    if isinstance(one, str) and isinstance(other, str):
        for cut, whole in ((one, other), (other, one)):
            start = _CUT.sub("", cut)
            if start and start != cut and whole.startswith(start):
                return whole, False
    return cast(Any, one), True


def _merged_entries(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    entries, differs = dict(one), False
    for key, value in other.items():
        if key in entries:
            entries[key], contradicts = merged_value(entries[key], value)
            differs = differs or contradicts
        else:
            differs = differs or not is_hidden(value)
    return entries, differs


def merged_call(one: ToolCall, other: ToolCall, *, ran: bool = False) -> tuple[ToolCall, tuple[str, ...]]:
    """One call from two accounts, and notes on what they contradict each other in.

    Args:
        one: The first account, the message.
        other: The second one.
        ran: Whether the second account is certainly the run of this call, so that its result is the one kept.
    """
    notes: list[str] = []
    if (one.state == "partial") == (other.state == "partial"):
        arguments, differ = _merged_arguments(one.arguments, other.arguments)
        if differ:
            notes.append(_note(one, "arguments", arguments, other.arguments))
    else:  # those of a partial call are incomplete
        arguments = other.arguments if one.state == "partial" else one.arguments
    if _progress(one) != _progress(other):
        further = one if _progress(one) > _progress(other) else other
        state, error = further.state, further.error
        result = further.result if further.result is not None else first_shown(one.result, other.result)
    elif one.state == other.state:
        state, error = one.state, first_shown(one.error, other.error)
        kept, beside = (other.result, one.result) if ran else (one.result, other.result)
        result, differ = merged_value(kept, beside)
        if differ and state == "result":
            notes.append(_note(one, "result", result, beside))
    else:
        failed, returned = (one, other) if one.state == "error" else (other, one)
        state, result = "error", first_shown(one.result, other.result)
        error = failed.error or _text(failed.result)
        said = _text(returned.result)
        if not is_hidden(returned.result) and not is_hidden(error):
            # A message that tells the model of a failure is a text like any other.
            known = error == "error" or error.strip() in said or said.strip() in error
            if not (known or _FAILURE.search(said) or same_value(error, returned.result)):
                notes.append(_note(one, "outcome", f"failed with {error}", said))
            error = said if failed is other else error  # what the model was told of the failure
    call = ToolCall(name=one.name, arguments=arguments, result=result, id=one.id or other.id, state=state, error=error)
    return (one if call == one else call), tuple(notes)


def _merged_arguments(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    if is_hidden(one) or is_hidden(other):
        return (one if one and is_hidden(other) else other), False
    for named, alone in ((one, other), (other, one)):
        if _only_argument(alone) is not None and _only_argument(alone) == _only_argument(named):
            return named if "raw" in alone else one, False  # LangChain writes the only argument without its name
    return merged_value(one, other)


def _note(call: ToolCall, what: str, kept: Any, other: Any) -> str:
    name = f"{call.name} {call.id}".rstrip()
    return f"{DIFFER}: the {what} of {excerpt(name)}: {excerpt(_text(kept))}, and not {excerpt(_text(other))}"


def merged_calls(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], tuple[str, ...]]:
    """One list of calls from two accounts of the same message's calls, and notes on contradictions.

    A call that only the second list has is inserted after the call that it follows there; if no call is in both, all
    of them come last.
    """
    merged, notes, pairs = list(calls), list[str](), paired(others, calls)
    places = list(range(len(calls)))
    position = 0 if pairs else len(calls)
    for number, call in enumerate(others):
        if number in pairs:
            position = places[pairs[number]]
            merged[position], said = merged_call(merged[position], call)
            notes += said
            position += 1
        else:
            merged.insert(position, call)
            places = [place + (place >= position) for place in places]
            position += 1
    return tuple(merged), tuple(notes)


def paired(runs: Sequence[ToolCall], calls: Sequence[ToolCall]) -> dict[int, int]:
    """The places of the runs that are of a call, with those of the calls. A run is another account of a call.

    A run with the ID of a call is of the only call with it. If several calls have it, the last runs are of the last
    calls, first by their arguments: earlier calls may have no run here. The others are of a call each that no run with
    an ID is of: of the first one of their tool with their arguments and result, their arguments or their only argument;
    else of the first one of their tool that is left, if one of the two has no arguments, or if as many runs of the tool
    are left as calls. A run whose ID no call has is of a call without one.
    """
    last = {call.id: place for place, call in enumerate(calls) if call.id}
    pairs: dict[int, int] = {}
    with_id = [(number, run) for number, run in enumerate(runs) if run.id in last]
    _pair(with_id[::-1], [*enumerate(calls)][::-1], (_with_id_and_arguments, _with_id), pairs)
    pairs = {number: pairs.get(number, last[run.id]) for number, run in with_id}
    without = [(number, run) for number, run in enumerate(runs) if not run.id]
    every = [*enumerate(calls)]
    _pair(without, every, (_with_result, _with_arguments, _with_only_argument), pairs)
    unnamed = [(number, run) for number, run in enumerate(runs) if run.id and run.id not in last]
    _pair(unnamed, [(n, c) for n, c in every if not c.id], (_with_result, _with_arguments), pairs)
    taken = set(pairs.values())
    left = [(number, run) for number, run in without if number not in pairs]
    of_tool, without_arguments = dict[str, deque[int]](), dict[str, deque[int]]()
    for place, call in every:
        if place not in taken:
            of_tool.setdefault(call.name, deque()).append(place)
            if is_hidden(call.arguments):
                without_arguments.setdefault(call.name, deque()).append(place)
    as_many = {
        name for name, count in Counter(run.name for _, run in left).items() if count == len(of_tool.get(name, ()))
    }
    for number, run in left:
        any_call = run.name in as_many or is_hidden(run.arguments)
        places = (of_tool if any_call else without_arguments).get(run.name, deque[int]())
        while places and places[0] in taken:
            places.popleft()
        if places:
            pairs[number] = places.popleft()
            taken.add(pairs[number])
    return pairs


def _pair(
    runs: Sequence[tuple[int, ToolCall]],
    calls: Sequence[tuple[int, ToolCall]],
    keys: Sequence[Callable[[ToolCall], Hashable]],
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


def _with_id_and_arguments(call: ToolCall) -> Hashable:
    return call.id, _with_arguments(call)


def _with_id(call: ToolCall) -> Hashable:
    return call.id


def _with_arguments(call: ToolCall) -> Hashable:
    return call.name, _canonical(dict(call.arguments))


def _with_result(call: ToolCall) -> Hashable:
    return _with_arguments(call), call.state, _canonical(_bare(call.result))


def tool_and_arguments(call: ToolCall) -> Hashable:
    """What two accounts of a call have in common: its tool and its arguments, or the only one without its name."""
    only = _only_argument(call.arguments)
    return call.name, _canonical(dict(call.arguments)) if only is None else only


def call_key(call: ToolCall) -> Hashable:
    """What a call is known by in several accounts: its ID, else its tool and arguments."""
    return call.id or tool_and_arguments(call)


def _with_only_argument(call: ToolCall) -> Hashable:
    only = _only_argument(call.arguments)
    return call.name, id(call) if only is None else only


def _only_argument(arguments: Mapping[str, Any]) -> str | None:
    """The text of the only argument; None if there are others."""
    values = list(arguments.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def _bare(value: Any) -> Any:
    """A value without what formats put around it: the JSON or Python notation of a text, a list of text parts, an
    object with one entry that is the result."""
    for _ in range(4):
        read: Any = value
        if isinstance(value, str):
            read = _read(value.strip())
        elif is_mapping(value):
            entries = {key: each for key, each in value.items() if key != "type"}
            read = next(iter(entries.values())) if len(entries) == 1 and next(iter(entries)) in _WRAPPERS else read
        elif is_list(value) and len(items := value) == 1 and _is_part(items[0]):
            read = items[0]
        elif is_list(value) and value and all(map(_is_part, value)):
            read = "\n".join(_text(_bare(part)) for part in value)
        if read is value:
            break
        value = read
    return cast(Any, value)


def _is_part(value: Any) -> bool:
    return is_mapping(value) and bool({"text", "json"} & value.keys()) and value.keys() <= {*("type", "text", "json")}


def _read(text: str) -> Any:
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    if len(text) > _LONGEST_LITERAL or text[:1] not in ("{", "[", '"', "'", "("):
        return text
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return parse_literal(text)
    return text


def _canonical(value: Any) -> str:
    return json.dumps(to_jsonable(value), sort_keys=True, default=str)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False, default=str)
