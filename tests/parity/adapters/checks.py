"""The quick checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalstone import checks
from evalstone.scorers import Scorer
from evalstone.scorers.definitions import OURS
from evalstone.types import Sample
from tests.parity.adapters.common import MASTRA, Adapted, Adapter, Case, sample_of, texts_of
from tests.parity.adapters.javascript import python_pattern

OPTIONS = {"times": "at_least"}
"""Our names of the package's options that differ by more than their case."""


def check(make: Callable[..., Scorer], **own: str) -> Adapter:
    """A check, made from the recorded arguments: the last may be a table of options, or null. own: ours alone."""

    def adapt(case: Case) -> Adapted:
        *first, last = [*case["options"]["args"], None]
        given = [argument for argument in (*first, last) if argument is not None]
        options: Mapping[str, Any] = given.pop() if given and isinstance(given[-1], Mapping) else {}
        named = {
            OPTIONS.get(key) or re.sub("[A-Z]", lambda found: "_" + found.group().lower(), key): options[key]
            for key in options
        }
        return make(*given, **named, **own), sample(case), []

    return adapt


def sample(case: Case) -> Sample:
    """The sample of a case. The package always has an assistant message, an empty one where none was recorded."""
    return sample_of(case if texts_of(case, "output") else {**case, "output": ""})


def matches(case: Case) -> Adapted:
    """Our definition of the package's is that of a pattern without the flag `u`.

    There `exact` puts anchors around the source, so that in `a|b` the first holds for `a` alone.
    """
    arguments: Sequence[Any] = [*case["options"]["args"], None, None]
    flags: str = arguments[1] or ""
    options: Mapping[str, Any] = arguments[2] or {}
    pattern = python_pattern(f"^{arguments[0]}$" if options.get("exact") else arguments[0], flags)
    definition = OURS if "u" in flags else MASTRA
    return checks.regex(pattern, ignore_case="i" in flags, definition=definition), sample(case), []


CHECKS: Mapping[str, Adapter] = {
    "check-calledTool": check(checks.tool_called),
    "check-didNotCall": check(checks.tool_not_called),
    "check-equals": check(checks.exact_match, definition=MASTRA),
    "check-excludes": check(checks.not_contains, definition=MASTRA),
    "check-includes": check(checks.contains, definition=MASTRA),
    "check-matches": matches,
    "check-maxToolCalls": check(checks.max_tool_calls),
    "check-noToolErrors": check(checks.no_tool_errors),
    "check-similarity": check(checks.similarity, definition=MASTRA),
    "check-toolOrder": check(checks.tool_order),
    "check-usedNoTools": check(checks.no_tool_calls),
}
