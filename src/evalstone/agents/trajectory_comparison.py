"""Comparison of trajectories with expectations: pure arithmetic, without a judge.

Only top-level steps are compared; nested steps count for tokens only. Values are in [0, 1], at full precision; higher
is better. If a budget can't be checked because measurements are missing, OutcomeError is raised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeGuard

from evalstone._core.declarations import Range, check_argument
from evalstone._core.guards import is_mapping, is_sequence
from evalstone.errors import OutcomeError
from evalstone.types import ExpectedStep, Ordering, Trajectory, TrajectoryStep

_ABSENT = object()
_CALLS = ("tool_call", "mcp_tool_call")
EXTRA_STEP = 0.5
REPEATED_NAME = 0.1
REDUNDANT_CALL = 0.2
RETRY_TOO_MANY = 0.2


@dataclass(frozen=True)
class TrajectoryComparison:
    """How well the steps of a trajectory match the expected ones."""

    value: float
    """In [0, 1]; higher is better."""
    matched: int
    """The number of expected steps that were taken."""
    expected: int
    """The number of expected steps."""
    missing: tuple[str, ...] = ()
    """The names of expected steps that were not taken."""
    extra: tuple[str, ...] = ()
    """The names of steps that were not expected."""
    out_of_order: tuple[str, ...] = ()
    """The names of expected steps that were taken in another position."""
    repeated: tuple[str, ...] = ()
    """The names that occur more than once."""


@dataclass(frozen=True)
class Efficiency:
    """The scores of a trajectory's budgets."""

    value: float
    """The mean of `parts`."""
    parts: Mapping[str, float]
    """The score of each budget by name, in [0, 1]."""
    redundant: tuple[str, ...] = ()
    """The names of tool calls that repeat the step before them."""


@dataclass(frozen=True)
class RetryPattern:
    """A tool that failed and was called again."""

    tool: str
    """The name of the tool."""
    retries: int
    """The number of calls that follow a failed one."""
    succeeded: bool
    """Whether the last call didn't fail."""


@dataclass(frozen=True)
class ToolFailures:
    """The retries of failed tool calls."""

    value: float
    """max(0, 1 - 0.2 · excess)."""
    patterns: tuple[RetryPattern, ...] = ()
    """The retries by tool, in order."""
    excess: int = 0
    """The number of retries beyond the limit."""


def step_matches(expected: ExpectedStep, actual: TrajectoryStep) -> bool:
    """Whether a step matches an expected one: the same name, and the same type and data if these are expected."""
    if expected.name != actual.name or expected.step_type not in (None, actual.step_type):
        return False
    return all(same_json(value, actual.data.get(key, _ABSENT)) for key, value in expected.data.items())


def same_json(a: object, b: object) -> bool:
    """Whether two values are equal as JSON. The order of an object's keys doesn't matter; true and 1 differ.

    An entry that is null is the same as none: tables give all objects in a column the same keys, and fill them up.
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_mapping(a) and is_mapping(b):
        return all(same_json(a.get(key), b.get(key)) for key in a.keys() | b.keys())
    if is_sequence(a) and is_sequence(b):
        return len(a) == len(b) and all(map(same_json, a, b))
    return a == b


def compare_trajectories(
    actual: Trajectory,
    expected: Sequence[ExpectedStep],
    *,
    ordering: Ordering = "relaxed",
    allow_repeated_steps: bool = True,
) -> TrajectoryComparison:
    """Compare the steps of a trajectory with the expected steps.

        relaxed     expected steps found in order, with others allowed in between / expected steps
        unordered   expected steps found in any order / expected steps
        strict      (positions with the expected step - 0.5 · steps beyond the expected number) / expected steps

    The value is clipped to [0, 1]. Each step matches at most one expected step. If repeats aren't allowed, each name
    that occurs more than once costs 0.1. If nothing is expected, the value is 1 without steps, else 0.
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
    # Names that are missing in their own position but occur in another one.
    misplaced = Counter[str]() if ordering == "unordered" else Counter(missing) & Counter(extra)
    return TrajectoryComparison(
        value=min(1.0, max(0.0, value)),
        matched=len(pairs),
        expected=len(expected),
        missing=tuple(_without(missing, misplaced)),
        extra=tuple(_without(extra, misplaced)),
        out_of_order=tuple(misplaced.elements()),
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
    max_total_seconds: float | None = None,
    no_redundant_calls: bool = True,
) -> Efficiency:
    """The mean score of the budgets that are set: 1 within the limit, else max(0, 1 - excess / limit).

    With no_redundant_calls, max(0, 1 - 0.2 · redundant calls) is one of them: tool calls that repeat the step before
    them. If there is nothing to check, the value is 1.

    Raises:
        OutcomeError: There is a token budget, but not every model generation has token counts; or a duration budget,
            but neither a total duration nor one for every step.
        ConfigError: A limit isn't a number of 0 or more.
    """
    parts: dict[str, float] = {}
    if max_steps is not None:
        parts["steps"] = budget_kept("max_steps", len(actual.steps), max_steps)
    if max_total_tokens is not None:
        parts["tokens"] = budget_kept("max_total_tokens", total_tokens(actual), max_total_tokens)
    if max_total_seconds is not None:
        parts["duration"] = budget_kept("max_total_seconds", total_seconds(actual), max_total_seconds)
    redundant = redundant_calls(actual) if no_redundant_calls else ()
    if no_redundant_calls:
        parts["redundancy"] = max(0.0, 1 - REDUNDANT_CALL * len(redundant))
    return Efficiency(sum(parts.values()) / len(parts) if parts else 1.0, parts, redundant)


def budget_kept(name: str, spent: float, limit: float) -> float:
    """1 within the limit, else max(0, 1 - excess / limit); 0 for any excess over a limit of 0."""
    check_argument(name, limit, Annotated[float | None, Range(0)])
    if spent <= limit:
        return 1.0
    return max(0.0, 1 - (spent - limit) / limit) if limit else 0.0


def total_tokens(actual: Trajectory) -> float:
    """The tokens of all model generations, including nested ones. Raises OutcomeError if counts are missing."""
    generations = [step for step in actual.walk() if step.step_type == "model_generation"]
    counts = [step.data.get(key) for step in generations for key in ("prompt_tokens", "completion_tokens")]
    known = [count for count in counts if _measured(count)]
    if not counts or len(known) < len(counts):
        raise OutcomeError("the token budget can't be checked: not every model generation has token counts")
    return math.fsum(known)


def total_seconds(actual: Trajectory) -> float:
    """The trajectory's duration, else the sum of its steps' durations. Raises OutcomeError if neither was measured."""
    total = actual.total_seconds
    durations = [step.seconds for step in actual.steps] if total is None else [total]
    known = [duration for duration in durations if _measured(duration)]
    if not durations or len(known) < len(durations):
        raise OutcomeError("the duration budget can't be checked: not all durations were measured")
    return math.fsum(known)


def _measured(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def redundant_calls(actual: Trajectory) -> tuple[str, ...]:
    """The names of tool calls that repeat the step before them with the same arguments."""
    return tuple(
        step.name
        for before, step in zip(actual.steps, actual.steps[1:], strict=False)
        if step.step_type in _CALLS
        and (step.step_type, step.name) == (before.step_type, before.name)
        and same_json(step.data.get("tool_args"), before.data.get("tool_args"))
    )


def forbidden(
    actual: Trajectory, *, tools: Sequence[str] = (), sequences: Sequence[Sequence[str]] = ()
) -> tuple[str, ...]:
    """The forbidden tools and sequences that occur: names, and sequences as `a → b`."""
    names = [step.name for step in actual.steps]
    hits = [name for name in dict.fromkeys(names) if name in tools]
    for sequence in sequences:
        path = list(sequence)
        if path and any(names[start : start + len(path)] == path for start in range(len(names))):
            hits.append(" → ".join(path))
    return tuple(hits)


def tool_failures(actual: Trajectory, *, max_retries_per_tool: float = 2) -> ToolFailures:
    """The retries in a trajectory: consecutive calls of a tool that follow a call with `success` false.

    Raises:
        ConfigError: max_retries_per_tool isn't a number of 0 or more.
    """
    check_argument("max_retries_per_tool", max_retries_per_tool, Annotated[float | None, Range(0)])
    calls = [step for step in actual.steps if step.step_type in _CALLS]
    patterns: list[RetryPattern] = []
    start = 0
    for end in range(1, len(calls) + 1):
        if end < len(calls) and calls[end].name == calls[start].name:
            continue
        same_tool = calls[start:end]
        retries = sum(call.data.get("success") is False for call in same_tool[:-1])
        if retries:
            succeeded = same_tool[-1].data.get("success") is not False
            patterns.append(RetryPattern(same_tool[0].name, retries, succeeded))
        start = end
    excess = sum(max(0, pattern.retries - max_retries_per_tool) for pattern in patterns)
    return ToolFailures(max(0.0, 1 - RETRY_TOO_MANY * excess), tuple(patterns), int(excess))
