"""JUnit XML, which build servers read: a run as one suite a scorer, with one case a sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from evalstone.report.page import seen
from evalstone.results.run import Run
from evalstone.types import Failed, Record, Score, Skipped

# What XML 1.0 cannot hold, even as a character reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Text for the inside of an XML element."""
    return escape(_legal(text))


def xml_attribute(text: str) -> str:
    """Text as an attribute with its quotes; line breaks become spaces."""
    return quoteattr(" ".join(_legal(text).split()))


def _legal(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", seen(text))


@dataclass(frozen=True)
class Case:
    """One test case. ended: "passed", or "failure", "error" or "skipped" with its message."""

    name: str
    group: str
    ended: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    seconds: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


def junit(name: str, suites: Mapping[str, Iterable[Case]]) -> Iterator[str]:
    """Suites of cases as XML, in pieces."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={xml_attribute(name)}>\n'
    for title, cases in suites.items():
        listed = list(cases)
        counts = {ended: sum(case.ended == ended for case in listed) for ended in ("failure", "error", "skipped")}
        told = f'tests="{len(listed)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
        seconds = f"{sum(case.seconds for case in listed):.3f}"
        yield f'<testsuite name={xml_attribute(title)} {told} skipped="{counts["skipped"]}" time="{seconds}">\n'
        yield from map(_case, listed)
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _case(case: Case) -> str:
    opening = (
        f'<testcase classname={xml_attribute(case.group)} name={xml_attribute(case.name)} time="{case.seconds:.3f}">'
    )
    held = "".join(
        f"<property name={xml_attribute(name)} value={xml_attribute(value)}/>"
        for name, value in case.properties.items()
    )
    inside = f"<properties>{held}</properties>" if held else ""
    if case.ended != "passed":
        inside += f"<{case.ended} message={xml_attribute(case.message[:500])}>{xml_text(case.message)}</{case.ended}>"
    return f"{opening}{inside}</testcase>\n"


def run_junit(run: Run) -> Iterator[str]:
    """A run as JUnit XML: a failed outcome is an error, a skip is skipped, a score is a passed case with its value.

    Whether scores are good enough is for a gate to say.
    """
    by_scorer: dict[str, list[Case]] = {run.titles[info.signature]: [] for info in run.scorers}
    for record in run.records:
        by_scorer[run.titles[record.scorer]].append(_record_case(record, run.titles[record.scorer]))
    return junit(run.dataset_name, by_scorer)


def _record_case(record: Record, title: str) -> Case:
    match record.outcome:
        case Score(value, _, reason):
            return Case(
                record.sample, title, seconds=record.seconds, properties={"value": repr(value), "reason": reason}
            )
        case Skipped(reason):
            return Case(record.sample, title, "skipped", reason, record.seconds)
        case Failed(error):
            return Case(record.sample, title, "error", error, record.seconds)
