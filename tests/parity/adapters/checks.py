"""The quick checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalstone import checks
from evalstone.scorers import Scorer
from evalstone.types import Message, Sample, ToolCall
from tests.parity.adapters.common import Adapted, Adapter, Case, sample_of

STATES = {"result": "result", "partial-call": "result", "output-error": "error", "call": "call"}


def check(make: Callable[..., Scorer], *, partial: bool = False) -> Adapter:
    """A check, made from the recorded arguments: the last may be a table of options, or null."""

    def adapt(case: Case) -> Adapted:
        *first, last = [*case["options"]["args"], None]
        given = [argument for argument in (*first, last) if argument is not None]
        options: Mapping[str, Any] = given.pop() if given and isinstance(given[-1], Mapping) else {}
        named = {re.sub("[A-Z]", lambda found: "_" + found.group().lower(), key): options[key] for key in options}
        return make(*given, **named), sample(case, partial=partial), []

    return adapt


def sample(case: Case, *, partial: bool) -> Sample:
    """One assistant message with the calls; those still being written count in one check only."""
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
        if partial or call["state"] != "partial-call"
    )
    output = case.get("output") or ""
    return sample_of(case, output=output, messages=(Message(role="assistant", content=output, tool_calls=made),))


def matches(source: str, flags: str = "", *, exact: bool = False) -> Scorer:
    """A JavaScript pattern in Python's words: digits and word characters are ASCII, and `$` is the very end.

    There `exact` puts anchors around the source, so that in `a|b` the first holds for `a` alone.
    """
    inline = "a" + "".join(flag for flag in "ms" if flag in flags)
    pattern = f"^{source}$" if exact else source
    ends = pattern if "m" in flags else re.sub(r"(?<!\\)\$", r"\\Z", pattern)
    return checks.matches(f"(?{inline}){ends}", ignore_case="i" in flags)


CHECKS: Mapping[str, Adapter] = {
    "check-calledTool": check(checks.called_tool),
    "check-didNotCall": check(checks.did_not_call),
    "check-equals": check(checks.equals),
    "check-excludes": check(checks.excludes),
    "check-includes": check(checks.includes),
    "check-matches": check(matches),
    "check-maxToolCalls": check(checks.max_tool_calls),
    "check-noToolErrors": check(checks.no_tool_errors, partial=True),
    "check-similarity": check(checks.similarity),
    "check-toolOrder": check(checks.tool_order),
    "check-usedNoTools": check(checks.used_no_tools),
}
