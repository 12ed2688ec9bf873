"""The quick checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalstone import checks
from evalstone.scorers import Scorer
from evalstone.scorers.text import units
from evalstone.types import Message, Sample, ToolCall
from tests.parity.adapters.common import Adapted, Adapter, Case, sample_of
from tests.parity.adapters.javascript import python_pattern

STATES = {"result": "result", "partial-call": "partial", "output-error": "error", "call": "call"}


def check(make: Callable[..., Scorer]) -> Adapter:
    """A check, made from the recorded arguments: the last may be a table of options, or null."""

    def adapt(case: Case) -> Adapted:
        *first, last = [*case["options"]["args"], None]
        given = [argument for argument in (*first, last) if argument is not None]
        options: Mapping[str, Any] = given.pop() if given and isinstance(given[-1], Mapping) else {}
        named = {re.sub("[A-Z]", lambda found: "_" + found.group().lower(), key): options[key] for key in options}
        return make(*given, **named), sample(case), []

    return adapt


def sample(case: Case) -> Sample:
    """One assistant message with the calls."""
    calls: Sequence[Mapping[str, Any]] = case.get("tool_calls") or ()
    made = tuple(
        ToolCall(
            id=call.get("id", ""),
            name=call["name"],
            arguments=call.get("args") or {},
            result=call.get("result"),
            state="error" if call.get("isError") else STATES[call["state"]],  # pyright: ignore[reportArgumentType]
        )
        for call in calls
    )
    output = case.get("output") or ""
    return sample_of(case, output=output, messages=(Message(role="assistant", content=output, tool_calls=made),))


def matches(case: Case) -> Adapted:
    """Without the flag `u`, pattern and answer are rows of UTF-16 code units there.

    There `exact` puts anchors around the source, so that in `a|b` the first holds for `a` alone.
    """
    arguments: Sequence[Any] = [*case["options"]["args"], None, None]
    flags: str = arguments[1] or ""
    options: Mapping[str, Any] = arguments[2] or {}
    pattern = python_pattern(f"^{arguments[0]}$" if options.get("exact") else arguments[0], flags)
    output: str = case.get("output") or ""
    if "u" not in flags:
        pattern, output = units(pattern), units(output)
    scorer = checks.regex(pattern, ignore_case="i" in flags)
    return scorer, sample_of(case, output=output, messages=()), []


CHECKS: Mapping[str, Adapter] = {
    "check-calledTool": check(checks.tool_called),
    "check-didNotCall": check(checks.tool_not_called),
    "check-equals": check(checks.exact_match),
    "check-excludes": check(checks.not_contains),
    "check-includes": check(checks.contains),
    "check-matches": matches,
    "check-maxToolCalls": check(checks.max_tool_calls),
    "check-noToolErrors": check(checks.no_tool_errors),
    "check-similarity": check(checks.similarity),
    "check-toolOrder": check(checks.tool_order),
    "check-usedNoTools": check(checks.no_tool_calls),
}
