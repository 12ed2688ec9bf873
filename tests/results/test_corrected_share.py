"""Shares of yes, corrected by a calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evalstone import ConfigError, EvalstoneError
from evalstone.results.calibration import Calibration, LabeledScore
from evalstone.results.human_labels import corrected_share
from evalstone.stats.selective_risk import SelectiveRisk
from evalstone.types import note
from tests.runs import Given, run_of

# Of 40 that people call yes the judge finds 36; of 40 that they call no it calls 10 yes.
PAIRS = [(1.0, 1.0)] * 36 + [(0.0, 1.0)] * 4 + [(1.0, 0.0)] * 10 + [(0.0, 0.0)] * 30


def calibration() -> Calibration:
    return Calibration(
        judge="none",
        scorer="given",
        signature=Given().signature,
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.5,
        label_threshold=0.5,
        dataset_name="labelled",
        dataset_version="0",
        pairs=tuple(LabeledScore(f"c{n}", value, (label,)) for n, (value, label) in enumerate(PAIRS)),
    )


def test_the_share_is_corrected_by_how_often_the_judge_is_right_on_yes_and_on_no() -> None:
    run = run_of(["1.0"] * 60 + ["0.0"] * 40)
    found = corrected_share(run, "given", calibration())
    assert found.result.raw is not None
    assert found.result.raw.estimate == 0.6
    assert found.result.rate is not None
    assert found.result.rate.estimate == pytest.approx((0.6 + 0.75 - 1) / (0.9 + 0.75 - 1))
    assert found.notes == ()


def test_a_scorer_that_asks_no_judge_is_calibrated_whichever_judge_others_of_its_run_ask() -> None:
    run = replace(run_of(["1.0", "0.0"]), judge="openai/gpt-5.1")
    assert corrected_share(run, "given", calibration()).result.rate is not None


def test_a_share_counts_scores_that_miss_the_threshold_by_rounding_only() -> None:
    short = 0.1 * 3 + 0.5 - 1e-15
    assert short < 0.8
    pairs = tuple(replace(pair, value=short if pair.value else 0.0) for pair in calibration().pairs)
    found = corrected_share(
        run_of([repr(short), "0.0"]), "given", replace(calibration(), default_threshold=0.8, pairs=pairs)
    )
    assert found.result.raw is not None
    assert found.result.raw.estimate == 0.5
    assert found.result.sensitivity is not None
    assert found.result.sensitivity.estimate == 0.9


def test_labelled_samples_of_the_run_itself_are_told() -> None:
    inside = replace(calibration(), pairs=(*calibration().pairs, LabeledScore("s1", 1.0, (1.0,))))
    told = corrected_share(run_of(["1.0", "0.0"]), "given", inside).notes
    assert told == (note("labels_in_run", "fact", "given", labels=1),)


def test_labels_that_the_judge_was_aligned_with_correct_too_little_and_that_is_said() -> None:
    told = corrected_share(run_of(["1.0", "0.0"]), "given", replace(calibration(), n_aligned_with=40)).notes
    assert told == (note("corrected_by_aligned_labels", "warning", "given", samples=40, of=len(PAIRS)),)


def test_labels_that_chose_the_threshold_of_the_cascade_correct_too_little_and_that_is_said() -> None:
    risk = SelectiveRisk(threshold=0.705, limit=0.2, confidence=0.95, kept=16, wrong=0, bound=0.171, labeled=40)
    told = corrected_share(run_of(["1.0", "0.0"]), "given", replace(calibration(), risk=risk)).notes
    assert told == (note("corrected_by_choosing_labels", "warning", "given", threshold=0.705),)


def test_a_calibration_of_another_judge_is_refused() -> None:
    with pytest.raises(ConfigError, match="by other@1"):
        corrected_share(run_of(["1.0"]), "given", replace(calibration(), judge="other@1"))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: corrected_share(
            run_of(["1.0"]),
            "given",
            replace(calibration(), pairs=tuple(LabeledScore(f"c{n}", n % 3 / 2, (n % 2,)) for n in range(60))),
        ),
        ConfigError,
        (
            "the calibration of given can't be used: its judge is not shown to be better than chance "
            "(AUROC 0.500, 95% CI 0.360 to 0.640)"
        ),
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
