"""JUnit XML for CI servers: a run, with a suite per scorer and a case per sample, or a gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from evalstone._core.display import p_value, safe, visible
from evalstone.results.gate import Gate
from evalstone.results.run import Run
from evalstone.results.views.gate import check_cells, check_name, miss_cells, required, verdict_text
from evalstone.stats.gates import Decision
from evalstone.types import Failed, Record, Score, Skipped

LONGEST_MESSAGE = 500
LONGEST_ATTRIBUTE = 32_000


@dataclass(frozen=True)
class Case:
    """One test case: its result, and a message unless it passed."""

    name: str
    group: str
    result: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    seconds: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


def junit(name: str, suites: Mapping[str, Iterable[Case]]) -> Iterator[str]:
    """Suites of cases as XML, in pieces."""
    root = Element("testsuites", name=_attribute(name))
    for title, cases in suites.items():
        listed = list(cases)
        counts = {result: sum(case.result == result for case in listed) for result in ("failure", "error", "skipped")}
        suite = SubElement(
            root,
            "testsuite",
            name=_attribute(title),
            tests=str(len(listed)),
            failures=str(counts["failure"]),
            errors=str(counts["error"]),
            skipped=str(counts["skipped"]),
            time=f"{sum(case.seconds for case in listed):.3f}",
        )
        suite.extend(map(_element, listed))
    ElementTree.indent(root, "")
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield ElementTree.tostring(root, encoding="unicode") + "\n"


def _element(case: Case) -> Element:
    element = Element(
        "testcase", classname=_attribute(case.group), name=_attribute(case.name), time=f"{case.seconds:.3f}"
    )
    if case.properties:
        properties = SubElement(element, "properties")
        for name, value in case.properties.items():
            SubElement(properties, "property", name=_attribute(name), value=_attribute(value))
    if case.result != "passed":
        message = safe(case.message, LONGEST_MESSAGE)
        SubElement(element, case.result, message=message).text = visible(case.message)
    return element


def _attribute(text: str) -> str:
    return safe(text, LONGEST_ATTRIBUTE)


def run_junit(run: Run) -> Iterator[str]:
    """A run as JUnit XML: failed results are errors, skipped ones are skipped, and scores pass, with their values.

    Whether scores are good enough is up to a gate.
    """
    by_scorer: dict[str, list[Case]] = {run.titles[info.signature]: [] for info in run.scorers}
    for record in run.records:
        by_scorer[run.titles[record.scorer]].append(_record_case(record, run.titles[record.scorer]))
    return junit(run.dataset_name, by_scorer)


def _record_case(record: Record, title: str) -> Case:
    # CI servers merge cases with the same name.
    name = record.sample if record.trial is None else f"{record.sample}, trial {record.trial}"
    match record.outcome:
        case Score(value, _, reason):
            properties = {"value": repr(value), "reason": reason}
            return Case(name, title, seconds=record.seconds, properties=properties)
        case Skipped(reason):
            return Case(name, title, "skipped", reason, record.seconds)
        case Failed(error):
            return Case(name, title, "error", error, record.seconds)


def gate_junit(gate: Gate, *, inconclusive_fails: bool) -> Iterator[str]:
    """A gate as JUnit XML, with a case per check.

    inconclusive_fails: Report inconclusive checks as failures. Otherwise, they are skipped.
    """
    cases = [_decision_case(decision, gate.next_look, inconclusive_fails) for decision in gate.decisions]
    return junit("evalstone", {"gate": cases})


def _decision_case(decision: Decision, look: int | None, inconclusive_fails: bool) -> Case:
    estimate, interval, expected, n = check_cells(decision)
    # CI servers merge cases with the same name, and a scorer may have several checks.
    name = f"{check_name(decision)} {required(decision)}"
    p_values = {"p_pass": decision.p_pass, "p_fail": decision.p_fail}
    properties = {"estimate": estimate, **{name: p_value(p) for name, p in p_values.items() if p is not None}}
    if decision.verdict == "pass":
        return Case(name, "gate", properties=properties)
    about = f"n = {n}" if interval == "-" else f"{interval}, n = {n}"
    message = f"{estimate} ({about}), {expected}: {verdict_text(decision, look)}"
    message += "".join(f"\n{sample}: {score} ({reason})" for sample, score, reason in map(miss_cells, decision.misses))
    failed = decision.verdict == "fail" or inconclusive_fails
    return Case(name, "gate", "failure" if failed else "skipped", message, properties=properties)
