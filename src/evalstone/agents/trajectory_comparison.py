"""Trajectories against what was expected of them: pure arithmetic, no judge.

Everything looks at the steps of one level; steps inside a step count for tokens only. Values are in [0, 1] and at full
precision. What cannot be measured raises OutcomeError: a budget without measurements is neither kept nor exceeded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.errors import OutcomeError
from evalstone.types import ExpectedStep, Ordering, Trajectory, TrajectoryStep, check_limit

_ABSENT = object()
_CALLS = ("tool_call", "mcp_tool_call")
EXTRA_STEP = 0.5
REPEATED_NAME = 0.1
REDUNDANT_CALL = 0.2
RETRY_TOO_MANY = 0.2


@dataclass(frozen=True)
class TrajectoryComparison:
    """How far the steps taken are those expected. matched: how many of `expected` were found. The rest are names."""

    value: float
    matched: int
    expected: int
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    out_of_order: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Efficiency:
    """What became of each budget, by name, in [0, 1], and their mean. redundant: the calls made twice in a row."""

    value: float
    parts: Mapping[str, float]
    redundant: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryPattern:
    """A tool that failed and was called again."""

    tool: str
    retries: int
    succeeded: bool


@dataclass(frozen=True)
class ToolFailures:
    """The retries of failed calls. value: 1, less 0.2 for each retry beyond the limit."""

    value: float
    patterns: tuple[RetryPattern, ...] = ()
    excess: int = 0


def step_matches(expected: ExpectedStep, actual: TrajectoryStep) -> bool:
    """Whether a step is the one expected: same name, and the same type and data as far as these are expected."""
    if expected.name != actual.name or expected.step_type not in (None, actual.step_type):
        return False
    return all(same_json(value, actual.data.get(key, _ABSENT)) for key, value in expected.data.items())


def same_json(one: object, other: object) -> bool:
    """Whether two values are the same JSON; the order of an object's keys says nothing."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        left, right = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        first, second = cast("Sequence[Any]", one), cast("Sequence[Any]", other)
        return len(first) == len(second) and all(map(same_json, first, second))
    return one == other


def compare_trajectories(
    actual: Trajectory,
    expected: Sequence[ExpectedStep],
    *,
    ordering: Ordering = "relaxed",
    allow_repeated_steps: bool = True,
) -> TrajectoryComparison:
    """The steps taken against those expected.

        relaxed     expected steps found in their order, others between them / expected steps
        unordered   expected steps found anywhere / expected steps
        strict      (places with the expected step - 0.5 for each step too many) / expected steps

    Each step taken counts for one expected step at most. Repeats that are not allowed take off 0.1 for each name that
    came twice or more. With nothing expected the value is 1 when nothing was done, else 0.
    """
    steps = actual.steps
    pairs = _MATCHERS[ordering](steps, expected)
    repeated = tuple(name for name, count in Counter(s.name for s in steps).items() if count > 1)
    missing = [e.name for number, e in enumerate(expected) if number not in pairs]
    used = set(pairs.values())
    extra = tuple(s.name for number, s in enumerate(steps) if number not in used)
    if not expected:
        return TrajectoryComparison(0.0 if steps else 1.0, 0, 0, extra=extra, repeated=repeated)
    value = len(pairs) / len(expected)
    if ordering == "strict" and len(steps) > len(expected):
        value -= EXTRA_STEP * (len(steps) - len(expected)) / len(expected)
    if not allow_repeated_steps:
        value -= REPEATED_NAME * len(repeated)
    # The names that are missing in their place and were taken in another.
    late = Counter[str]() if ordering == "unordered" else Counter(missing) & Counter(extra)
    return TrajectoryComparison(
        value=min(1.0, max(0.0, value)),
        matched=len(pairs),
        expected=len(expected),
        missing=tuple(_without(missing, late)),
        extra=tuple(_without(extra, late)),
        out_of_order=tuple(late.elements()),
        repeated=repeated,
    )


def _in_order(steps: Sequence[TrajectoryStep], expected: Sequence[ExpectedStep]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    start = 0
    for number, step in enumerate(expected):
        place = next((p for p in range(start, len(steps)) if step_matches(step, steps[p])), None)
        if place is not None:
            pairs[number] = place
            start = place + 1
    return pairs


def _anywhere(steps: Sequence[TrajectoryStep], expected: Sequence[ExpectedStep]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    free = dict.fromkeys(range(len(steps)))
    for number, step in enumerate(expected):
        place = next((p for p in free if step_matches(step, steps[p])), None)
        if place is not None:
            pairs[number] = place
            del free[place]
    return pairs


def _in_place(steps: Sequence[TrajectoryStep], expected: Sequence[ExpectedStep]) -> dict[int, int]:
    both = enumerate(zip(expected, steps, strict=False))
    return {number: number for number, (step, actual) in both if step_matches(step, actual)}


_MATCHERS = {"relaxed": _in_order, "unordered": _anywhere, "strict": _in_place}


def _without(names: Sequence[str], removed: Counter[str]) -> Iterator[str]:
    left = removed.copy()
    for name in names:
        if left[name]:
            left[name] -= 1
        else:
            yield name


def check_efficiency(
    actual: Trajectory,
    *,
    max_steps: float | None = None,
    max_total_tokens: float | None = None,
    max_total_duration_ms: float | None = None,
    no_redundant_calls: bool = True,
) -> Efficiency:
    """The mean over the budgets that are given: 1 for one that is kept, else max(0, 1 - excess / limit).

    no_redundant_calls adds max(0, 1 - 0.2 for each tool call that repeats the step before it). With nothing to check
    the value is 1. Raises OutcomeError for a token budget without the token counts of every model generation, and for a
    duration budget without a total duration or that of every step; ConfigError for a limit that is no number from 0.
    """
    parts: dict[str, float] = {}
    if max_steps is not None:
        parts["steps"] = budget_kept("max_steps", len(actual.steps), max_steps)
    if max_total_tokens is not None:
        parts["tokens"] = budget_kept("max_total_tokens", total_tokens(actual), max_total_tokens)
    if max_total_duration_ms is not None:
        duration = total_duration_ms(actual)
        parts["duration"] = budget_kept("max_total_duration_ms", duration, max_total_duration_ms)
    redundant = redundant_calls(actual) if no_redundant_calls else ()
    if no_redundant_calls:
        parts["redundancy"] = max(0.0, 1 - REDUNDANT_CALL * len(redundant))
    return Efficiency(sum(parts.values()) / len(parts) if parts else 1.0, parts, redundant)


def budget_kept(name: str, spent: float, limit: float) -> float:
    """1 when no more was spent than the limit, else max(0, 1 - excess / limit); 0 for an excess over nothing."""
    check_limit(name, limit)
    if spent <= limit:
        return 1.0
    return max(0.0, 1 - (spent - limit) / limit) if limit else 0.0


def total_tokens(actual: Trajectory) -> float:
    """The tokens of every model generation, those inside other steps included. Raises OutcomeError without counts."""
    generations = [step for step in actual.walk() if step.step_type == "model_generation"]
    counts = [step.data.get(key) for step in generations for key in ("prompt_tokens", "completion_tokens")]
    if not counts or not all(map(_measured, counts)):
        raise OutcomeError("the token budget cannot be checked: not every model generation has its token counts")
    return math.fsum(cast("list[float]", counts))


def total_duration_ms(actual: Trajectory) -> float:
    """The trajectory's duration, or the sum of its steps'. Raises OutcomeError where neither was measured."""
    total = actual.total_duration_ms
    durations = [step.duration_ms for step in actual.steps] if total is None else [total]
    if not durations or not all(map(_measured, durations)):
        raise OutcomeError("the duration budget cannot be checked: durations were not measured, or not all of them")
    return math.fsum(cast("list[float]", durations))


def _measured(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def redundant_calls(actual: Trajectory) -> tuple[str, ...]:
    """The names of the tool calls that repeat the step right before them, arguments included."""
    return tuple(
        step.name
        for before, step in zip(actual.steps, actual.steps[1:], strict=False)
        if step.step_type in _CALLS
        and (step.step_type, step.name) == (before.step_type, before.name)
        and same_json(step.data.get("tool_args"), before.data.get("tool_args"))
    )


def blacklisted(
    actual: Trajectory, *, tools: Sequence[str] = (), sequences: Sequence[Sequence[str]] = ()
) -> tuple[str, ...]:
    """What was done and must not be: names, and sequences as `a → b`. Empty when nothing was."""
    names = [step.name for step in actual.steps]
    hits = [name for name in dict.fromkeys(names) if name in tools]
    for sequence in sequences:
        forbidden = list(sequence)
        if forbidden and any(names[at : at + len(forbidden)] == forbidden for at in range(len(names))):
            hits.append(" → ".join(forbidden))
    return tuple(hits)


def tool_failures(actual: Trajectory, *, max_retries_per_tool: float = 2) -> ToolFailures:
    """The retries in a trajectory: calls of a tool, in a row, that follow a call of it with `success` false."""
    check_limit("max_retries_per_tool", max_retries_per_tool)
    calls = [step for step in actual.steps if step.step_type in _CALLS]
    patterns: list[RetryPattern] = []
    start = 0
    for end in range(1, len(calls) + 1):
        if end < len(calls) and calls[end].name == calls[start].name:
            continue
        row = calls[start:end]
        retries = sum(before.data.get("success") is False for before in row[:-1])
        if retries:
            patterns.append(RetryPattern(row[0].name, retries, row[-1].data.get("success") is not False))
        start = end
    excess = sum(max(0, pattern.retries - max_retries_per_tool) for pattern in patterns)
    return ToolFailures(max(0.0, 1 - RETRY_TOO_MANY * excess), tuple(patterns), int(excess))
