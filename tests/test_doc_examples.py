"""The examples in tables of the pages are so: a table with one of these headers is run, row by row."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import checks, evaluate
from evalstone.datasets import load, sample_from
from evalstone.datasets.columns import EXACT
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError, DataError
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.features import read
from evalstone.questions import VerifyClaims
from evalstone.scorers.checks.multiple_choice import choice_in
from evalstone.scorers.checks.numeric import numbers_in

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/migrate").glob("*.md"))]
TABLE = re.compile(r"^\|(.+)\|\n\|[-|: ]+\|\n((?:\|.+\|\n)+)", re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in CELL.split(line.strip().strip("|"))]


def codes(cell: str) -> list[str]:
    """The code in a cell. A space inside the backticks separates them from backticks of the code."""
    return [text.strip() if marks != "`" else text for marks, text in CODE.findall(cell)]


def tables() -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """The tables of the pages: the page, the header, the rows."""
    for page in PAGES:
        for header, body in TABLE.findall(page.read_text("utf-8")):
            yield page.name, tuple(cells(header)), [cells(line) for line in body.splitlines()]


def a_field_contradicts_a_claim(row: Sequence[str]) -> None:
    (source,) = codes(row[0])
    for claim, contradicted in ((row[1], True), (row[2], False)):
        question = VerifyClaims(claims=(claim,), context=(source,))
        (verdict,) = asyncio.run(LexicalJudge().answer(question)).value
        assert (verdict.verdict == "contradicted") is contradicted, claim


def a_near_copy_is_not_supported(row: Sequence[str]) -> None:
    (source,) = codes(row[0])
    for claim, supported in ((row[1], False), (row[2], True)):
        question = VerifyClaims(claims=(claim,), context=(source,))
        (verdict,) = asyncio.run(LexicalJudge().answer(question)).value
        assert (verdict.verdict == "supported") is supported, claim


def forms_of_a_number_are_equal(row: Sequence[str]) -> None:
    groups = [codes(group) for group in row[1].split(";")]
    assert all(len(group) > 1 for group in groups)
    assert [group for group in groups if len({read(form).content for form in group}) > 1] == []


def a_number_is_read(row: Sequence[str]) -> None:
    expected = [] if row[1] == "no number" else [Fraction(text) for text in codes(row[1])]
    for text in codes(row[0]):
        for written in (text, f"It is {text}."):
            assert [number.value for number in numbers_in(written)] == expected, written


def a_choice_is_read(row: Sequence[str]) -> None:
    for answer in codes(row[0]):
        assert choice_in(answer.replace("⏎", "\n"), "ABCDEFGHIJ") == (None if row[1] == "none" else row[1]), answer


def a_list_written_as_text_is_read(row: Sequence[str]) -> None:
    for text in codes(row[0]):
        if row[1].startswith("an error"):
            with pytest.raises(DataError):
                sample_from({"contexts": text})
        else:
            expected = (text,) if row[1] == "one passage" else LISTS[text]
            assert sample_from({"contexts": text}).context == expected


LISTS = {
    '["a", "b"]': ("a", "b"),
    "['a', \"it's\"]": ("a", "it's"),
    "('a', 'b')": ("a", "b"),
    "array(['a', 'b'], dtype=object)": ("a", "b"),
    "[np.str_('a')]": ("a",),
    "['a' 'b']": ("a", "b"),
    "[Document(metadata={}, page_content='a')]": ("a",),
    "{'b', 'a'}": ("a", "b"),
}


def a_check_has_these_parameters(row: Sequence[str]) -> None:
    (call,) = codes(row[0])
    name, _, shown = call.removesuffix(")").partition("(")
    parameters = inspect.signature(getattr(checks, name)).parameters
    for part in filter(None, shown.split(", ")):
        parameter, _, default = part.partition("=")
        expected = parameters[parameter].default
        assert expected == (eval(default) if default else inspect.Parameter.empty), part
    required = {each.name for each in parameters.values() if each.default is inspect.Parameter.empty}
    assert required <= {part.partition("=")[0] for part in shown.split(", ")} | {"parameters"}
    assert (row[2] == "`output`") is ("output" in getattr(checks, name)(**REQUIRED.get(name, {})).required_fields)


REQUIRED: Mapping[str, Mapping[str, Any]] = {
    "not_contains": {"expected": "x"},
    "json_schema": {"schema": {}},
    "tool_called": {"tool": "x"},
    "tool_not_called": {"tool": "x"},
    "tool_order": {"tools": ["x"]},
    "max_tool_calls": {"limit": 1},
    "latency": {"limit": 1},
    "cost": {"limit": 1},
    "tokens": {"limit": 1},
}


def a_column_becomes_a_field(row: Sequence[str]) -> None:
    (field,) = codes(row[0])
    ranks = [codes(names) for names in row[1].split("▸")]
    for name in (name for names in ranks for name in names):
        for spelled in (name, name.upper().replace("_", "-")):
            becomes = field if field not in EXACT or spelled == field else None
            columns = load([{**row_beside(field), spelled: value_of(field, name)}]).columns
            assert columns.get(spelled) == becomes, spelled
    for higher, lower in itertools.pairwise(ranks):
        both = {lower[0]: value_of(field, lower[0]), higher[0]: value_of(field, higher[0])}
        if set(both) != {"instruction", "input"}:
            columns = load([{**row_beside(field), **both}]).columns
            assert columns[higher[0]] == field
            assert lower[0] not in columns


def row_beside(field: str) -> dict[str, str]:
    """A column that makes a row a sample, of another field."""
    return {"reference": "a"} if field == "output" else {"output": "a"}


def value_of(field: str, name: str) -> Any:
    """A value that a column of this name may have."""
    message = {"role": "assistant", "content": "Hi."}
    values: Mapping[str, Any] = {
        "messages": [message],
        "trajectory": [{"step_type": "tool_call", "name": "a"}],
        "expected_trajectory": [{"step_type": "tool_call", "name": "a"}],
        "state": {"a": 1},
        "turns": ["Hi."],
        "metadata": {"a": 1},
        "context": ["a"],
        "weight": 2,
    }
    named: Mapping[str, Any] = {
        "tools_called": [{"name": "a", "input_parameters": {}}],
        "tool_calls": [{"name": "a", "arguments": {}}],
        "vars": {"a": "b"},
        "expected_facts": ["a"],
        "input_messages": [{"role": "user", "content": "Hi."}],
    }
    return named.get(name, values.get(field, "a"))


def a_name_is_that_of_a_scorer(row: Sequence[str]) -> None:
    run = evaluate([{"messages": [{"role": "assistant", "content": "a"}]}], codes(row[0]), ledger=None)
    for name in codes(row[1]):
        assert run[name].info == run.scorers[0], name
    for name in codes(row[2]):
        with pytest.raises(ConfigError):
            run[name]


@functools.cache
def probabilities(scorer: str, question: str) -> Sequence[float]:
    """The lexical judge's probability of each verdict on the demo's answers."""
    run = evaluate(str(DEMO_DATA), scorer, judge="lexical", ledger=None)
    steps = [call for record in run.records for call in record.calls if call.question == question]
    if question == "claim_supported":
        return [step.probability or 0 for step in steps]
    return [verdict["probability"] for step in steps for verdict in cast("Sequence[Any]", step.answer)]


def a_threshold_escalates(row: Sequence[str]) -> None:
    (threshold,) = codes(row[0])
    for told, each in zip(row[1:], (("faithfulness", "verify_claims"), ("fact_check", "claim_supported")), strict=True):
        values = probabilities(*each)
        assert told == f"{sum(value < float(threshold) for value in values) / len(values):.0%}"


EXAMPLES: Mapping[tuple[str, ...], Callable[[Sequence[str]], None]] = {
    ("in the source", "contradicts", "doesn't contradict"): a_field_contradicts_a_claim,
    ("sentence in the source", "not supported", "supported"): a_near_copy_is_not_supported,
    (
        "threshold",
        "claims escalated (`faithfulness`)",
        "answers escalated (`fact_check`)",
    ): a_threshold_escalates,
    ("written", "equal"): forms_of_a_number_are_equal,
    ("in the answer", "`numeric_match` reads"): a_number_is_read,
    ("the answer", "`choice` reads"): a_choice_is_read,
    ("text", "read as"): a_list_written_as_text_is_read,
    ("check", "passes if", "field"): a_check_has_these_parameters,
    ("field", "column names"): a_column_becomes_a_field,
    ("scorer of the run", "names of it", "no names of it"): a_name_is_that_of_a_scorer,
}
ROWS = [(page, header, row) for page, header, rows in tables() if header in EXAMPLES for row in rows]


@pytest.mark.parametrize(
    ("header", "row"), [pytest.param(header, row, id=f"{page}: {row[0]}") for page, header, row in ROWS]
)
def test_a_row_of_examples_is_so(header: tuple[str, ...], row: list[str]) -> None:
    assert any(map(codes, row))
    EXAMPLES[header](row)


def test_every_kind_of_example_is_in_some_page() -> None:
    assert {header for _, header, _ in ROWS} == set(EXAMPLES)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (("in the source", "contradicts", "doesn't contradict"), ["`wifi: no`", "There is no wifi.", "There is tea."]),
        (("sentence in the source", "not supported", "supported"), ["`It is open.`", "It is open.", "It is open."]),
        (("written", "equal"), ["number words", "`three` = `4`"]),
        (
            ("threshold", "claims escalated (`faithfulness`)", "answers escalated (`fact_check`)"),
            ["`0.8`", "100%", "70%"],
        ),
        (("in the answer", "`numeric_match` reads"), ["`50%`", "`50`"]),
        (("the answer", "`choice` reads"), ["`B or C`", "B"]),
        (("text", "read as"), ["`['a', 'b`", "one passage"]),
        (("check", "passes if", "field"), ["`contains(expected=None, ignore_case=False)`", "", "`output`"]),
        (("field", "column names"), ["`input`", "`answer`"]),
        (
            ("scorer of the run", "names of it", "no names of it"),
            ["`contains(expected=a)`", "`contains(expected=b)`", ""],
        ),
    ],
)
def test_a_false_example_is_noticed(header: tuple[str, ...], row: list[str]) -> None:
    with pytest.raises((AssertionError, ConfigError, pytest.fail.Exception)):
        EXAMPLES[header](row)
