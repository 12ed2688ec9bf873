"""JUnit XML that parses, whatever the samples hold."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from evalstone import Sample, evaluate, gate
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.results.gate_criteria import Inconclusive
from evalstone.results.views.junit import Case, Suite, gate_junit, junit
from tests.runs import Given, run_of


def test_scores_pass_skips_are_skipped_and_failures_are_errors() -> None:
    root = ElementTree.fromstring(run_of(["0.5", "skip", "fail"]).to_junit())
    suite = root[0]
    assert (suite.get("tests"), suite.get("skipped"), suite.get("errors"), suite.get("failures")) == (
        "3",
        "1",
        "1",
        "0",
    )
    value = suite[0].find("properties/property")
    assert value is not None
    assert value.get("value") == "0.5"
    skipped = suite[1].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "nothing to say"


def test_each_suite_has_its_own_cases_and_says_what_they_are() -> None:
    run = run_of(["0.5", "skip", "fail", "1"], [Given(), Given(scale=2)])
    root = ElementTree.fromstring(run.to_junit())
    assert [suite.get("name") for suite in root] == [*run.titles.values()]
    for suite, info in zip(root, run.scorers, strict=True):
        own = [record for record in run if record.signature == info.signature]
        assert [case.get("name") for case in suite] == [record.sample_id for record in own]
        assert {case.get("classname") for case in suite} == {suite.get("name")}
        assert suite.get("time") == f"{sum(record.seconds for record in own):.3f}"
        inside = [element.tag for case in suite for element in case]
        assert (suite.get("tests"), suite.get("failures")) == (str(len(own)), "0")
        assert (suite.get("skipped"), suite.get("errors")) == (
            str(inside.count("skipped")),
            str(inside.count("error")),
        )


def test_text_that_xml_cannot_hold_is_written_out() -> None:
    hostile = "]]> <x a='\"'> & \x00\x1b\ud800\uffff \u202e"
    run = evaluate([Sample(id=hostile, output="fail")], [Given()], ledger=None)
    case = ElementTree.fromstring(run.to_junit())[0][0]
    assert case.get("name") == "]]> <x a='\"'> & \\u0000\\u001b\\ud800\\uffff \\u202e"


def test_a_failure_holds_its_message() -> None:
    root = ElementTree.fromstring("".join(junit("n", {"s": Suite.of([Case("c", "g", "failure", "a < b")])})))
    assert root[0].get("failures") == "1"
    hidden = ElementTree.fromstring("".join(junit("n", {"s": Suite.of([Case("c", "g", "error", "a\u202e\x1b")])})))
    assert hidden[0][0][0].text == "a\\u202e\\u001b"
    failure = root[0][0][0]
    assert (failure.tag, failure.text) == ("failure", "a < b")


def test_a_long_message_is_short_in_the_attribute_and_whole_in_the_text() -> None:
    suite = ElementTree.fromstring("".join(junit("n", {"s": Suite.of([Case("c", "g", "error", "x" * 1000)])})))[0]
    (error,) = suite[0]
    assert len(error.attrib["message"]) == 500
    assert error.text == "x" * 1000


def test_cases_have_their_seconds_and_a_suite_has_their_sum() -> None:
    cases = [Case("a", "g", seconds=0.25), Case("b", "g"), Case("c", "g", seconds=1.5)]
    (suite,) = ElementTree.fromstring("".join(junit("n", {"s": Suite.of(cases)})))
    assert suite.get("time") == "1.750"
    assert [case.get("time") for case in suite] == ["0.250", "0.000", "1.500"]


@pytest.mark.parametrize(
    ("minimum", "inconclusive", "result"),
    [
        (0.8, "report", None),
        (0.8, "fail", None),
        (0.98, "report", "failure"),
        (0.88, "pass", "skipped"),
        (0.88, "fail", "failure"),
    ],
)
def test_a_gate_is_a_case_a_criterion(minimum: float, inconclusive: Inconclusive, result: str | None) -> None:
    found = gate(run_of(["1.0", "0.8"] * 20), min={"given": minimum})
    root = ElementTree.fromstring(found.to_junit(inconclusive=inconclusive))
    ((case,),) = root
    assert root[0].get("name") == "gate"
    assert (case.attrib["name"], case.get("classname")) == (f"given at least {minimum:g}", "gate")
    assert [element.tag for element in case] == ["properties", *filter(None, [result])]
    properties = {element.attrib["name"]: element.attrib["value"] for element in case.iter("property")}
    assert properties.keys() == {"estimate", "p_pass", "p_fail"}
    if result is not None:
        assert case[1].attrib["message"].startswith(f"{properties['estimate']} (")


def test_a_check_names_settings_as_the_front_end_does() -> None:
    found = gate(run_of(["0.7", "0.8", "0.75", "0.9"] * 3), min={"given": 0.76})
    assert "at the next look (look=2)" in found.to_junit()
    written = "".join(gate_junit(found, inconclusive_fails=False, front_end=COMMAND_LINE))
    assert "at the next look (--look 2)" in written
