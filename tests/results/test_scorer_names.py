"""One way from a text to a scorer of a run, wherever a scorer is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone import Run, evaluate, gate
from evalstone.errors import ConfigError
from evalstone.results.summary import ScorerInfo, find_scorer
from evalstone.run.plan import named_scorer

ROWS = [{"id": "a", "output": "It rains in New York, NY."}]
SPECS = [
    "contains(expected='New York', scale=10)",
    "contains(expected='New York, NY')",
    "tool_not_called(tool='refund')",
    "regex(pattern='(a=b)', scale=1)",
    "per_turn(scorer=contains(expected=York))",
    "tool-called(tool=weather-tool)",
]


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate(ROWS, SPECS, ledger=None)


SPELLINGS = [
    ("contains(scale=10, expected=New York)", "contains(scale=10, expected=New York)@1"),
    ("contains(expected='New York', scale=10)", "contains(scale=10, expected=New York)@1"),
    ('contains( expected = "New York" ,scale=10.0)', "contains(scale=10, expected=New York)@1"),
    ("contains(expected=New York, scale=10)", "contains(scale=10, expected=New York)@1"),
    ("contains(expected='New York, NY')", "contains(expected=New York, NY)@1"),
    ("contains(expected=New York, NY)", "contains(expected=New York, NY)@1"),
    ("contains(expected='New York, NY', scale=1, explain=False)", "contains(expected=New York, NY)@1"),
    ("tool_not_called(tool='refund')", "tool_not_called(tool=refund)@2"),
    ("tool-not-called(tool=refund)", "tool_not_called(tool=refund)@2"),
    ("tool_not_called", "tool_not_called(tool=refund)@2"),
    ("tool-not-called", "tool_not_called(tool=refund)@2"),
    ("tool_called(tool=weather-tool)", "tool_called(tool=weather-tool)@2"),
    ("tool_called(tool='weather-tool')", "tool_called(tool=weather-tool)@2"),
    ("regex(pattern='(a=b)')", "regex(pattern=(a=b))@1"),
    ("contains per turn", "contains per turn(expected=York)@1"),
]


@pytest.mark.parametrize(("name", "signature"), SPELLINGS)
def test_a_scorer_is_found_by_every_spelling_of_its_name(run: Run, name: str, signature: str) -> None:
    assert find_scorer(name, run.scorers).signature == signature
    assert run[name].info.signature == signature
    assert named_scorer(name, run.scorers).signature == signature
    criteria: dict[str, Any] = {"min": {name: 0.0}, "require": [name]}
    assert len(gate(run, **criteria, alpha=None).decisions) == 2


@pytest.mark.parametrize("spec", SPECS)
def test_the_spec_of_a_scorer_is_a_name_of_it(run: Run, spec: str) -> None:
    assert run.scorers[SPECS.index(spec)] == named_scorer(spec, run.scorers)


WRONG = [
    ("contains", "contains is ambiguous; name one of contains"),
    ("contains(expected=York)", "unknown scorer 'contains(expected=York)'"),
    ("contains(expected='New York')", "unknown scorer"),
    ("contains(expected=York)", "name only parameters that differ from their default"),
    ("regex(pattern=[0-9]+)", "put the value in quotes: pattern='[0-9]+'"),
    ("regex(pattern=a", "the closing bracket is missing"),
    ("no_such_module:thing", "there are no scores of 'no_such_module:thing'"),
    ("hallucination", "there are no scores of 'hallucination', only of contains per turn, contains(expected="),
    ("contians", "unknown scorer 'contians'; did you mean contains"),
    ("tool-called(tool=x)", "unknown scorer 'tool-called(tool=x)'"),
]


@pytest.mark.parametrize(("name", "told"), WRONG)
def test_a_name_that_is_none_says_why(run: Run, name: str, told: str) -> None:
    for find in (find_scorer, named_scorer):
        with pytest.raises(ConfigError) as caught:
            find(name, run.scorers)
        assert told in str(caught.value)


def info(signature: str) -> ScorerInfo:
    return ScorerInfo(name="f", signature=signature, scale=1.0, lower_is_better=False)


@pytest.mark.parametrize(
    ("one", "other", "spelled"),
    [
        ("f(a=1, b=2)@1", "f(a=2, b=1)@1", "f(b=2, a=1)"),
        ("f(ab=12, b=1)@1", "f(ab=1, b=12)@1", "f(b=1, ab=12)"),
        ("f(a=1, b=2, c=3)@1", "f(a=1, b=2, b=2)@1", "f(c=3, b=2, a=1)"),
        ("f(a=None)@1", "f@1", "f(a=None)"),
        ("f(upscale=1)@1", "f(upscale=2)@1", "f(scale=1, upscale=1)"),
    ],
)
def test_parameters_that_look_alike_are_told_apart(one: str, other: str, spelled: str) -> None:
    scorers = [info(one), info(other)]
    for found in (scorers, scorers[::-1]):
        assert find_scorer(spelled, found).signature == one


@pytest.mark.parametrize("spelled", ["f(a=1, a2=1)", "f(a=1, b=2)", "f(a='1, b=2')", "f(ab=1, b=12)", "g(ab=12, b=1)"])
def test_other_parameters_are_no_spelling_of_a_scorer(spelled: str) -> None:
    with pytest.raises(ConfigError, match="unknown scorer"):
        find_scorer(spelled, [info("f(ab=12, b=1)@1"), info("f(a=None)@1"), info("f(a=2)@1")])


def test_parameters_are_found_as_they_are_printed_even_if_they_can_not_be_parsed() -> None:
    info = ScorerInfo(name="regex", signature="regex(pattern=[0-9]+)@1", scale=1.0, lower_is_better=False)
    assert find_scorer("regex(pattern=[0-9]+)", [info]) is info


@pytest.mark.parametrize(
    "name", ["{file}:make(word=a)", "per_turn(scorer={file}:make)", " per-turn(scorer={file}:make)"]
)
def test_no_module_is_imported_to_find_a_scorer(run: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("from pathlib import Path\nPath(__file__).with_name('imported').touch()\n")
    with pytest.raises(ConfigError, match="unknown scorer"):
        named_scorer(name.format(file=file), run.scorers)
    assert not (tmp_path / "imported").exists()
