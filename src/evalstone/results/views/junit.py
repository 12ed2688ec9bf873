"""JUnit XML for CI servers: a run, with a suite per scorer and a case per sample, or a gate."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from evalstone._core.display import p_value, safe, visible
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.results.views.gate import check_cells, check_name, miss_cells, required, verdict_text
from evalstone.stats.gates import Decision
from evalstone.types import Failed, Record, Score, Skipped

if TYPE_CHECKING:
    from evalstone.results.gate import Gate
    from evalstone.results.run import Run

LONGEST_MESSAGE = 500
LONGEST_ATTRIBUTE = 32_000
_MARKUP = re.compile(r'[&<>"\n\r\t]')

Result: TypeAlias = Literal["passed", "failure", "error", "skipped"]


class Case(NamedTuple):
    """One test case: its result, and a message unless it passed."""

    name: str
    group: str
    result: Result = "passed"
    message: str = ""
    seconds: float = 0.0
    properties: Mapping[str, str] = {}


@dataclass(frozen=True)
class Suite:
    """Test cases, and what the element around them says of them: how many have each result, and their seconds."""

    cases: Iterable[Case]
    results: Mapping[Result, int]
    seconds: float = 0.0

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Suite:
        """A suite of cases that are all known."""
        return cls(cases, Counter(case.result for case in cases), sum(case.seconds for case in cases))


def junit(name: str, suites: Mapping[str, Suite]) -> Iterator[str]:
    """Suites of cases as XML, in pieces."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{_attributes(name=name)}>\n'
    for title, suite in suites.items():
        tests = sum(suite.results.values())
        yield "<testsuite" + _attributes(
            name=title,
            tests=str(tests),
            failures=str(suite.results.get("failure", 0)),
            errors=str(suite.results.get("error", 0)),
            skipped=str(suite.results.get("skipped", 0)),
            time=f"{suite.seconds:.3f}",
        )
        yield ">\n" if tests else " />\n"
        yield from map(_element, suite.cases)
        if tests:
            yield "</testsuite>\n"
    yield "</testsuites>\n"


def _element(case: Case) -> str:
    start = f'<testcase classname="{_repeated(case.group)}" name="{_attribute(case.name)}" time="{case.seconds:.3f}"'
    inside = ""
    if case.properties:
        values = [
            f'<property name="{_repeated(name)}" value="{_attribute(text)}" />\n'
            for name, text in case.properties.items()
        ]
        inside += f"<properties>\n{''.join(values)}</properties>\n"
    if case.result != "passed":
        message = f' message="{_quoted(safe(case.message, LONGEST_MESSAGE))}"'
        inside += f"<{case.result}{message}>{escape(visible(case.message))}</{case.result}>\n"
    return f"{start}>\n{inside}</testcase>\n" if inside else f"{start} />\n"


def _attributes(**values: str) -> str:
    return "".join(f' {name}="{_attribute(text)}"' for name, text in values.items())


def _attribute(text: str) -> str:
    return _quoted(safe(text, LONGEST_ATTRIBUTE))


_repeated = functools.lru_cache(_attribute)
"""`_attribute` of a text that most cases have."""


def _quoted(text: str) -> str:
    if _MARKUP.search(text) is None:
        return text
    return escape(text, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def run_junit(run: Run) -> Iterator[str]:
    """A run as JUnit XML: failed results are errors, skipped ones are skipped, and scores pass, with their values.

    Whether scores are good enough is up to a gate.
    """
    titles = {info.signature: run.titles[info.signature] for info in run.scorers}
    return junit(run.dataset_name, {title: _suite(run, signature, title) for signature, title in titles.items()})


def _suite(run: Run, signature: str, title: str) -> Suite:
    columns, line = run.columns, run[signature]
    cases = (_record_case(run.records[place], title) for place in columns.places(signature))
    results: Mapping[Result, int] = {"passed": line.n_score, "skipped": line.n_skipped, "error": line.n_failed}
    return Suite(cases, results, columns.seconds(signature))


def _record_case(record: Record, title: str) -> Case:
    # CI servers merge cases with the same name.
    name = record.sample_id if record.trial is None else f"{record.sample_id}, trial {record.trial}"
    match record.outcome:
        case Score(value, reason):
            properties = {"value": repr(value), "reason": reason}
            return Case(name, title, seconds=record.seconds, properties=properties)
        case Skipped(reason):
            return Case(name, title, "skipped", reason, record.seconds)
        case Failed(error):
            return Case(name, title, "error", error, record.seconds)


def gate_junit(gate: Gate, *, inconclusive_fails: bool, front_end: FrontEnd = PYTHON) -> Iterator[str]:
    """A gate as JUnit XML, with a case per check.

    inconclusive_fails: Report inconclusive checks as failures. Otherwise, they are skipped.
    """
    cases = [
        _decision_case(decision, verdict_text(decision, gate.next_look, front_end), inconclusive_fails)
        for decision in gate.decisions
    ]
    return junit("evalstone", {"gate": Suite.of(cases)})


def _decision_case(decision: Decision, verdict: str, inconclusive_fails: bool) -> Case:
    estimate, interval, expected, n = check_cells(decision)
    # CI servers merge cases with the same name, and a scorer may have several checks.
    name = f"{check_name(decision)} {required(decision)}"
    p_values = {"p_pass": decision.p_pass, "p_fail": decision.p_fail}
    properties = {"estimate": estimate, **{name: p_value(p) for name, p in p_values.items() if p is not None}}
    if decision.verdict == "pass":
        return Case(name, "gate", properties=properties)
    about = f"n = {n}" if interval == "-" else f"{interval}, n = {n}"
    message = f"{estimate} ({about}), {expected}: {verdict}"
    message += "".join(f"\n{sample}: {score} ({reason})" for sample, score, reason in map(miss_cells, decision.misses))
    failed = decision.verdict == "fail" or inconclusive_fails
    return Case(name, "gate", "failure" if failed else "skipped", message, properties=properties)
