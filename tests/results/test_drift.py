"""Drift: the same anchors, judged then and now."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, Record, Run, Score, drift, evaluate
from evalstone.results.views.drift import drift_view
from evalstone.stats.drift import Drift
from tests.runs import Given, Harm, run_of

ANSWERS = [str(number % 5 / 4) for number in range(60)]


def moved(run: Run, by: float) -> Run:
    """The run as a judge would have made it whose scores are lower by so much."""

    def one(record: Record) -> Record:
        assert isinstance(record.outcome, Score)
        return replace(record, outcome=Score(max(0.0, record.outcome.value - by)))

    return Run.from_dict({**run.to_dict(), "judge": {"identity": "newer@2", "note": ""}}, [one(r) for r in run])


def test_a_judge_that_scores_lower_has_drifted_and_one_that_does_not_is_not_said_to_have() -> None:
    run = run_of(ANSWERS)
    found = drift(run, moved(run, 0.1))["given"]
    assert found.verdict == "drifted"
    assert found.drift.largest_change == pytest.approx(0.1)
    assert found.drift.changed.estimate == pytest.approx(0.8)  # a fifth of the scores were 0 and could not fall
    same = drift(run, moved(run, 0.0))["given"]
    assert same.verdict != "drifted"


def test_drift_prints_as_a_table() -> None:
    run = run_of(ANSWERS)
    result = drift(run, moved(run, 0.1))
    title, header, row, *lines = str(result).splitlines()
    assert title.startswith("Judge drift · ")
    assert header.split()[:8] == ["scorer", "n", "before", "now", "change", "95%", "CI", "p"]
    assert row.split()[:5] == ["given", "60", "0.500", "0.420", "-0.080"]
    assert row.endswith("drifted")
    assert set(drift_view(result).sections[0].notes) <= set(lines)
    assert all(one.id in lines[-1] for one in (result.before, result.now))


def test_other_answers_are_no_anchors() -> None:
    with pytest.raises(ConfigError, match="same outputs"):
        drift(run_of(ANSWERS), run_of(ANSWERS[1:]))


def test_other_answers_to_the_same_questions_are_no_anchors() -> None:
    rows = [{"id": str(n), "input": "q", "output": answer} for n, answer in enumerate(ANSWERS)]
    others = [*rows[:-2], *({**row, "output": "0.5"} for row in rows[-2:])]
    before, now = (evaluate(data, [Given()], ledger=None) for data in (rows, others))
    with pytest.raises(ConfigError, match="2 of 60 samples differ"):
        drift(before, now)
    shorter = evaluate(rows[1:], [Given()], ledger=None)
    with pytest.raises(ConfigError, match="1 sample is only"):
        drift(before, shorter)


METADATA: list[dict[str, Any]] = [
    {"topic": "geo", "n": 1, "price": 2.0, "flag": True, "tags": ["a", "b"], "missing": None, "code": "007"},
    {"topic": None, "n": None, "price": 2.5, "flag": False, "tags": [], "missing": None, "code": " "},
]


@pytest.mark.parametrize("own_ids", [True, False])
def test_anchors_are_the_same_through_every_source(tmp_path: Path, own_ids: bool) -> None:
    rows = [
        {"input": f"q{n}", "output": answer, **METADATA[n % 2]} | ({"id": n} if own_ids else {})
        for n, answer in enumerate(ANSWERS)
    ]
    with (tmp_path / "d.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "tags": json.dumps(row["tags"])} for row in rows)
    before, now = (evaluate(data, [Given()], ledger=None) for data in (rows, tmp_path / "d.csv"))
    assert before.dataset_version != now.dataset_version
    assert drift(before, now)["given"].drift.comparison.n == 60
    changed = evaluate([{**row, "n": 7} for row in rows], [Given()], ledger=None)
    with pytest.raises(ConfigError, match="60 of 60 samples differ"):
        drift(changed, now)


def test_confidence_and_tolerance_are_those_that_were_set() -> None:
    run = run_of(["0.5"] * 20)
    some = ["0.25"] * 6 + ["0.5"] * 14
    now = Run.from_dict(run.to_dict(), run_of(some).records)
    # six changes of one size: p = 2 / 2^6 = 0.03
    assert drift(run, now)["given"].verdict == "drifted"
    assert drift(run, now, confidence=0.99)["given"].verdict == "inconclusive"
    assert drift(run, now, confidence=0.99, tolerance=0.5)["given"].verdict == "stable"


def test_anchors_of_one_group_change_together() -> None:
    effects = [0.2, 0.15, 0.1, 0.05, -0.1, -0.02]
    answers = [str(0.5 + effects[n // 10] + n % 10 / 1000) for n in range(60)]

    def drift_of(metadata: list[dict[str, int]] | None) -> Drift:
        run, now = (run_of(texts, metadata=metadata) for texts in (["0.5"] * 60, answers))
        return drift(run, Run.from_dict(run.to_dict(), now.records))["given"].drift

    alone, grouped = drift_of(None), drift_of([{"group": n // 10} for n in range(60)])
    assert alone.verdict == "drifted"
    assert (grouped.verdict, grouped.comparison.groups) == ("inconclusive", 6)
    assert grouped.adjusted_p_value > alone.adjusted_p_value


def test_p_values_are_adjusted_over_the_scorers_of_a_report() -> None:
    scorers = [Given(), *(Harm(scale=float(scale)) for scale in range(2, 5))]
    run = run_of(["0.5"] * 40, scorers)
    some = run_of(["0.6"] * 7 + ["0.5"] * 33, scorers[:1]).records
    rest = [record for record in run if record.signature != scorers[0].signature]
    found = drift(run, Run.from_dict(run.to_dict(), [*some, *rest]))
    given = found["given"]
    assert given.p_value <= 0.05
    assert given.adjusted_p_value == 4 * given.p_value
    assert (given.verdict, found.passed) == ("inconclusive", None)
    assert found.to_dict()["scorers"][0]["drift"]["adjusted_p_value"] == given.adjusted_p_value
    assert given.difference.estimate == pytest.approx(0.1 * 7 / 40)


@pytest.mark.parametrize(("tolerance", "verdict"), [(0.25, "stable"), (0.05, "inconclusive")])
def test_the_tolerance_is_a_share_of_the_scale(tolerance: float, verdict: str) -> None:
    run = run_of(ANSWERS, [Given(scale=10.0)])
    (found,) = drift(run, run, tolerance=tolerance)
    assert found.drift.tolerance == pytest.approx(tolerance * 10)
    assert found.verdict == verdict


@pytest.mark.parametrize("tolerance", [0, 1.5, float("nan")])
def test_a_tolerance_that_is_no_share_is_refused(tolerance: float) -> None:
    run = run_of(ANSWERS)
    with pytest.raises(ConfigError) as raised:
        drift(run, run, tolerance=tolerance)
    assert raised.value.field == "tolerance"
