"""JUnit XML that parses, whatever the samples hold."""

from __future__ import annotations

from xml.etree import ElementTree

from evalstone import Sample, evaluate
from evalstone.report.junit import Case, junit, run_junit
from tests.runs import Given, run_of


def test_scores_pass_skips_are_skipped_and_failures_are_errors() -> None:
    root = ElementTree.fromstring("".join(run_junit(run_of(["0.5", "skip", "fail"]))))
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


def test_text_that_xml_cannot_hold_is_written_out() -> None:
    hostile = "]]> <x a='\"'> & \x00\x1b\ud800\uffff \u202e"
    run = evaluate([Sample(id=hostile, output="fail")], [Given()], ledger=None)
    case = ElementTree.fromstring("".join(run_junit(run)))[0][0]
    assert case.get("name") == "]]> <x a='\"'> & \\u0000\\u001b\\ud800\\uffff \\u202e"


def test_a_failure_holds_its_message() -> None:
    root = ElementTree.fromstring("".join(junit("n", {"s": [Case("c", "g", "failure", "a < b")]})))
    assert root[0].get("failures") == "1"
    hidden = ElementTree.fromstring("".join(junit("n", {"s": [Case("c", "g", "error", "a\u202e\x1b")]})))
    assert hidden[0][0][0].text == "a\\u202e\\u001b"
    failure = root[0][0][0]
    assert (failure.tag, failure.text) == ("failure", "a < b")
