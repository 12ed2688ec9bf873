"""Saved runs: found by folder, id, name, or as the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone import ConfigError, Score, Scorer, Skipped, audit, calibrate, evaluate, gate, read_run
from evalstone.ledger.store import Ledger
from evalstone.results.views.run import run_view
from tests.runs import Given, samples_of

SAMPLES = [
    {"id": str(number), "input": "Where is Paris?", "output": "Paris is in France.", "context": ["Paris is in France."]}
    for number in range(4)
]


def test_a_run_is_found_by_id_and_by_name_the_latest_first(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    first = evaluate(samples_of(["0.5"]), [Given()], ledger=ledger, name="nightly")
    second = evaluate(samples_of(["0.25"]), [Given()], ledger=ledger, name="nightly")
    third = evaluate(samples_of(["0.75"]), [Given()], ledger=ledger)
    assert read_run(first.id, ledger=ledger).id == first.id
    assert read_run("nightly", ledger=ledger).id == second.id
    assert read_run("last", ledger=ledger).id == third.id
    with pytest.raises(ConfigError, match=r'folder "weekly", .* run'):
        read_run("weekly", ledger=ledger)


def echo(input: str) -> str:
    return input


@pytest.mark.parametrize(("target", "trials"), [(None, 1), (echo, 2)])
def test_a_complete_run_is_equal_to_the_one_in_the_ledger(
    tmp_path: Path, target: Callable[[str], str] | None, trials: int
) -> None:
    samples = [*({**each, "group": each["id"]} for each in SAMPLES), {"id": "blank", "input": " ", "output": " "}]
    ledger, scorers = tmp_path / "l.db", ["faithfulness", "contains(expected=Paris)"]
    run = evaluate(samples, scorers, judge="lexical", ledger=ledger, target=target, trials=trials, tags=["v1"])
    assert {type(record.outcome) for record in run.records} == {Score, Skipped}
    assert read_run(run.id, ledger=ledger) == run


@pytest.mark.parametrize("target", [None, echo])
def test_samples_of_a_ledger_that_is_gone_are_missed(tmp_path: Path, target: Callable[[str], str] | None) -> None:
    ledger = tmp_path / "l.db"
    samples = [{"input": "0.5"} if target else {"output": "0.5"}]
    evaluate(samples, [Given()], target=target, ledger=ledger)
    run = read_run("last", ledger=ledger)
    assert run.samples is not None
    assert [sample.output for sample in run.samples] == ["0.5"]
    ledger.unlink()
    with pytest.raises(ConfigError, match="no ledger"):
        list(run.samples)
    assert not ledger.exists()


def test_runs_of_audits_and_calibrations_are_no_evaluations(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    run = evaluate(SAMPLES, "faithfulness", ledger=ledger)
    calibrate([{**sample, "label": number % 2} for number, sample in enumerate(SAMPLES)], ledger=ledger)
    audit(SAMPLES, ledger=ledger)
    with Ledger(ledger) as opened:
        kinds = {row.id: row.metadata["kind"] for row in opened.runs()}
    assert sorted(set(kinds.values())) == ["audit", "calibration", "evaluation"]
    assert read_run("last", ledger=ledger).id == run.id
    audited = next(id for id, kind in kinds.items() if kind == "audit")
    with pytest.raises(ConfigError, match=r"part of .* audit"):
        gate(read_run(audited, ledger=ledger), min={"faithfulness": 0.5})


def test_the_same_samples_are_never_resumed_as_another_kind_of_run(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    labeled = [{**sample, "label": 1} for sample in SAMPLES]
    calibrate(labeled, ledger=ledger)
    evaluate(labeled, "faithfulness", ledger=ledger)
    with Ledger(ledger) as opened:
        plans = [row.plan for row in opened.runs()]
    assert len(set(plans)) == 2


class Late(Scorer):
    """The number in the answer, after the other scorers of the sample."""

    name = "late"

    async def score(self, *, output: str) -> Score:
        await asyncio.sleep(0.2)
        return Score(float(output))


def test_the_records_of_a_sample_are_together_whenever_they_were_made(tmp_path: Path) -> None:
    run = evaluate(samples_of(["0.5", "0.25", "0.75"]), [Late(), Given()], ledger=tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as opened, opened.transaction() as database:
        made = database.scalars("SELECT signature FROM records ORDER BY position")
    assert made == [Given().signature] * 3 + [Late().signature] * 3
    read = read_run("last", ledger=tmp_path / "l.db")
    assert [(record.sample_id, record.signature) for record in read] == [
        (record.sample_id, record.signature) for record in run
    ]
    (worst,) = run_view(read, worst=1).examples[0].samples
    assert [(worst.id, outcome.title, outcome.value) for outcome in worst.outcomes] == [
        ("s2", "late", 0.25),
        ("s2", "given", 0.25),
    ]


@pytest.mark.parametrize(("given", "kept"), [("one", ("one",)), (["a", "b"], ("a", "b"))])
def test_a_single_tag_need_not_be_in_a_list(given: str | list[str], kept: tuple[str, ...]) -> None:
    assert evaluate([{"output": "a"}], "json_valid", ledger=None, tags=given).tags == kept
