"""Several judges on the same labels."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evalstone import LexicalJudge, ScriptedJudge, calibrate
from evalstone.errors import ConfigError
from evalstone.results import Calibration, JudgeComparison, compare_judges
from evalstone.results.views.calibration import calibrations_table

N = 120


def made(judge: str, wrong: int = 0, *, cost: float | None = 0.01, n: int = N) -> Calibration:
    """A calibration of a judge that errs on so many of the samples, evenly over good and bad ones."""
    rows = [{"id": str(k), "output": f"o{k}", "context": ["c"], "label": "yes" if k % 2 else "no"} for k in range(n)]

    def verdict(question: Any) -> str:
        k = int(question.claim[1:])
        return json.dumps({"reason": "r", "verdict": "yes" if (k % 2 == 1) != (k < wrong) else "no"})

    scripted = ScriptedJudge(verdict, name=judge)
    found = calibrate(rows, "fact_check", judge=scripted, ledger=None)
    assert (found.cost, found.seconds is not None) == (0, True)
    return replace(found, cost=cost)


@pytest.fixture(scope="module")
def judges() -> dict[str, Calibration]:
    return {
        "good": made("good", cost=0.02),
        "cheap": made("cheap", 1, cost=0.0005),
        "poor": made("poor", 60, cost=0.00001),
        "fair": made("fair", 10, cost=0.0001),
    }


def compared(judges: dict[str, Calibration], *names: str) -> JudgeComparison:
    return compare_judges([judges[name] for name in names])


@pytest.mark.slow
def test_a_cheaper_judge_that_is_not_shown_to_be_worse_is_advised(judges: dict[str, Calibration]) -> None:
    found = compared(judges, "cheap", "poor", "good")
    assert [judge.judge for judge in found.judges] == [judges[name].judge for name in ("good", "cheap", "poor")]
    assert [judge.use for judge in found.judges] == ["samples", "samples", "none"]
    assert (found.advice.kind, found.advice["judge"], found.advice["cost"]) == (
        "cheaper_judge",
        judges["cheap"].judge,
        0.5,
    )
    assert found.passed
    assert found.n == N
    assert found.judges[0].difference is None
    difference = found.judges[1].difference
    assert difference is not None
    assert difference.estimate == pytest.approx(1 / N)
    assert difference.high is not None
    assert difference.high <= 0.05
    assert "it costs $0.5 for 1,000 samples instead of $20, and is at most 0.04" in str(found)


def test_the_best_judge_is_advised_where_cheaper_ones_are_worse(judges: dict[str, Calibration]) -> None:
    found = compared(judges, "fair", "good")
    assert (found.advice.kind, found.advice["worse"]) == ("best_judge", (judges["fair"].judge,))
    assert f"Use {judges['good'].judge}, which is usable for single samples: it is more accurate than" in str(found)
    alone = compare_judges([judges["good"], replace(judges["fair"], cost=None)])
    assert alone.advice["worse"] == alone.advice["unknown"] == ()
    assert "-: unknown" in str(alone)


def test_a_cheaper_judge_of_which_the_labels_tell_too_little_is_named(judges: dict[str, Calibration]) -> None:
    found = compare_judges([judges["good"], made("unsure", 3, cost=0.001)])
    assert (found.advice.kind, found.advice["unknown"], found.advice["worse"]) == ("best_judge", ("unsure",), ())
    assert "the labels don't tell whether unsure, which costs less, lacks less than 0.05 of its accuracy" in str(found)


def test_no_judge_is_advised_if_none_is_usable(judges: dict[str, Calibration]) -> None:
    other = replace(judges["poor"], judge="other")
    found = compare_judges([judges["poor"], other])
    assert (found.advice.kind, found.passed) == ("no_judge_usable", False)
    few = [made(name, n=8) for name in ("one", "two")]
    assert (compare_judges(few).advice.kind, compare_judges(few).passed) == ("no_judge_told", None)


def test_judges_that_differ_in_the_base_url_alone_are_told_apart(judges: dict[str, Calibration]) -> None:
    names = ["vllm/m(http://a:1/v1)", "vllm/m(http://b:1/v1)"]
    same = [replace(judges["good"], judge=name) for name in names]
    found = compare_judges([*same, replace(judges["fair"], judge="vllm/other(http://a:1/v1)")])
    assert [row[0].text for row in found.view().sections[1].tables[0].rows] == [*names, "vllm/other"]
    assert [row[0].text for row in calibrations_table("judge", same).rows] == names


def test_the_data_are_json(judges: dict[str, Calibration]) -> None:
    data = compared(judges, "cheap", "good").to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["format"] == "judges/1"
    assert data["judges"][0]["auroc"]["estimate"] == 1


def test_other_labels_scorers_and_the_same_judge_are_refused(judges: dict[str, Calibration]) -> None:
    good, cheap = judges["good"], judges["cheap"]
    for listed, told in (
        ([good], "a comparison needs two judges or more, not 1"),
        ([good, good], f"the judge {good.judge} is named twice"),
        ([good, replace(cheap, labels_id="x")], "was calibrated with other labels than"),
        ([replace(good, pairs=(replace(good.pairs[0], weight=2.0), *good.pairs[1:])), cheap], "drawn by strata"),
        ([good, replace(cheap, signature="rouge_l@1")], "was calibrated with rouge_l@1, not with"),
    ):
        with pytest.raises(ConfigError, match=told.replace("(", r"\(").replace(")", r"\)")):
            compare_judges(listed)


def test_a_judge_without_calls_has_no_price() -> None:
    rows = [{"id": str(k), "output": "a b", "reference": "a", "label": k % 2} for k in range(4)]
    found = calibrate(rows, "rouge_l", judge=LexicalJudge(), ledger=None)
    assert (found.cost, found.seconds) == (None, None)


def test_each_judge_has_its_agreement_by_slice_and_what_is_to_know_of_its_labels(
    judges: dict[str, Calibration],
) -> None:
    def sliced(name: str) -> Calibration:
        found = judges[name]
        pairs = tuple(replace(pair, slices={"half": str(k * 2 // N)}) for k, pair in enumerate(found.pairs))
        return replace(found, pairs=pairs)

    found = compare_judges([replace(sliced("poor"), n_same_family=30), sliced("good")])
    text = str(found)
    assert "\npoor: The model that answered 30 of 120 labeled samples is of the judge's own family of models" in text
    assert "good: The model" not in text
    first, second = text.index("Agreement by slice, good"), text.index("Agreement by slice, poor")
    assert "half=0: the judge is less accurate" not in text[first:second]
    assert "half=0: the judge is less accurate than on the other samples, 0.000 instead of 1.000" in text[second:]
    assert "by slice" not in str(compared(judges, "poor", "good"))
