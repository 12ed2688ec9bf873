"""What a judge is said to be usable for, and when nothing can be said."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from evalstone.results.calibration import Calibration, fit
from evalstone.results.disagreements import disagreements_of
from evalstone.results.judge_verdict import LEAST_AUROC, MOST_ERRORS, JudgeVerdict
from tests.results.test_calibration import made


def answers(
    *, caught: int, missed: int, passed: int, flagged: int, two_scores: bool = False, **more: Any
) -> Calibration:
    """A judge on bad answers that it catches or misses, and on good ones that it passes or flags. With two scores, it
    is as sure of its errors as of the rest."""
    false_yes, false_no = (0.9, 0.1) if two_scores else (0.6, 0.4)
    bad = [(0.1, 0)] * caught + [(false_yes, 0)] * missed
    return made([*bad, *[(0.9, 1)] * passed, *[(false_no, 1)] * flagged], **more)


def kinds(verdict: JudgeVerdict) -> list[str]:
    return [each.kind for each in verdict.notes]


def test_few_errors_of_both_kinds_make_a_judge_usable_for_single_samples() -> None:
    verdict = answers(caught=58, missed=2, passed=97, flagged=3).verdict
    assert (verdict.use, verdict.passed) == ("samples", True)
    conclusion, pairs = verdict.notes
    assert (conclusion.kind, conclusion.severity, conclusion["single"]) == ("judge_usable", "fact", "yes")
    share, low, high, wrong, n = conclusion["bad"]
    assert (share, wrong, n) == (2 / 60, 2, 60)
    assert low < share < high <= MOST_ERRORS
    assert conclusion["good"][3:] == (3, 100)
    assert pairs["auroc"][1] >= LEAST_AUROC


def test_many_missed_bad_answers_leave_a_judge_usable_to_rank_systems() -> None:
    verdict = answers(caught=34, missed=26, passed=117, flagged=3).verdict
    assert (verdict.use, verdict.passed) == ("systems", True)
    conclusion, _, more = verdict.notes
    assert (conclusion["single"], conclusion.severity) == ("no", "caution")
    assert conclusion["bad"][1] > MOST_ERRORS
    assert (more.kind, more["of"], more["decides"]) == ("judge_more_labels", "bad", False)
    # 94 bad answers with 41 errors have an interval of 20 points, and one in three is bad
    assert more["more"] == pytest.approx(36, abs=4)
    assert more["drawn"] == pytest.approx(3 * more["more"], abs=4)
    assert more["high"] - more["low"] <= 0.2


def test_many_flagged_good_answers_do_so_too() -> None:
    verdict = answers(caught=58, missed=2, passed=60, flagged=40).verdict
    assert (verdict.use, verdict.notes[0]["single"]) == ("systems", "no")


def test_labels_that_do_not_tell_of_single_samples_say_how_many_more_would() -> None:
    verdict = answers(caught=35, missed=5, passed=80, flagged=0).verdict
    assert (verdict.use, verdict.notes[0]["single"]) == ("systems", "undecided")
    more = verdict.notes[2]
    assert (more.kind, more["decides"], more["of"]) == ("judge_more_labels", True, "bad")
    enough = round(40 + more["more"])
    wrong = round(enough * 5 / 40)
    decided = answers(caught=enough - wrong, missed=wrong, passed=80, flagged=0).verdict
    assert decided.use == "samples"


def test_labels_of_both_kinds_are_suggested_if_both_shares_are_open() -> None:
    verdict = answers(caught=36, missed=4, passed=68, flagged=12).verdict
    more = verdict.notes[2]
    assert (verdict.notes[0]["single"], more["of"], more["decides"], more["more"]) == (
        "undecided", "", True, more["drawn"]
    )  # fmt: skip
    times = 1 + more["more"] / 120
    several = {
        name: round(number * times) for name, number in (("caught", 36), ("missed", 4), ("passed", 68), ("flagged", 12))
    }
    assert answers(**several).verdict.use == "samples"


def test_a_share_of_errors_at_the_limit_has_no_number_of_labels_that_would_tell() -> None:
    verdict = answers(caught=40, missed=10, passed=100, flagged=0).verdict
    assert (verdict.use, verdict.notes[0]["single"], kinds(verdict)) == (
        "systems",
        "undecided",
        ["judge_usable", "judge_pairs"],
    )


def test_a_judge_that_is_shown_to_rank_badly_is_not_usable() -> None:
    chance = random.Random(1)
    verdict = made([(chance.random(), n % 2) for n in range(400)]).verdict
    assert (verdict.use, verdict.passed, kinds(verdict)) == ("none", False, ["judge_not_usable"])
    assert verdict.notes[0]["auroc"][2] < LEAST_AUROC


def test_a_judge_that_ranks_the_other_way_round_is_named() -> None:
    verdict = made([(1 - n % 2, n % 2) for n in range(40)]).verdict
    assert (verdict.use, kinds(verdict)) == ("none", ["judge_reversed"])


@pytest.mark.parametrize(
    ("good", "bad", "why"),
    [(20, 0, "one_kind"), (0, 20, "one_kind"), (40, 5, "few"), (5, 5, "few"), (0, 0, "one_kind")],
)
def test_few_labels_of_a_kind_say_nothing(good: int, bad: int, why: str) -> None:
    pairs: list[tuple[float, Any]] = [(0.9, 1)] * good + [(0.1, 0)] * bad or [(0.5, (1.0, 0.0))]
    verdict = made(pairs).verdict
    (unknown,) = verdict.notes
    assert (verdict.use, verdict.passed, unknown.kind, unknown["why"]) == ("undecided", None, "judge_unknown", why)
    assert (unknown["good"], unknown["bad"]) == (good, bad)
    assert (verdict.missed is None, verdict.flagged is None) == (bad == 0, good == 0)


def test_scores_of_few_labeled_samples_say_nothing() -> None:
    verdict = answers(caught=50, missed=0, passed=50, flagged=0, n_skipped=100, n_failed=1).verdict
    (unknown,) = verdict.notes
    assert (verdict.use, unknown["why"], unknown["missing"], unknown["labels"]) == ("undecided", "unscored", 101, 201)


def test_labels_that_do_not_tell_of_systems_say_so_and_how_many_would() -> None:
    verdict = answers(caught=10, missed=2, passed=10, flagged=2, two_scores=True).verdict
    assert (verdict.use, verdict.passed) == ("undecided", None)
    assert kinds(verdict) == ["judge_undecided", "judge_errors", "judge_labels_to_decide"]
    conclusion, errors, labels = verdict.notes
    assert (conclusion["single"], errors["bad"][3:]) == ("undecided", (2, 12))
    times = 1 + labels["more"] / 24
    assert 1 < times < 20
    four = [round(number * times) for number in (10, 2, 10, 2)]
    again = dict(zip(("caught", "missed", "passed", "flagged"), four, strict=True))
    assert answers(**again, two_scores=True).verdict.use == "systems"


def test_a_judge_may_be_useless_for_single_samples_before_it_is_known_to_rank() -> None:
    verdict = answers(caught=3, missed=9, passed=40, flagged=0, two_scores=True).verdict
    assert (verdict.use, verdict.notes[0]["single"]) == ("undecided", "no")


def test_a_share_of_pairs_at_the_limit_has_no_number_of_labels_that_would_tell() -> None:
    verdict = answers(caught=7, missed=3, passed=7, flagged=3, two_scores=True).verdict
    assert verdict.notes[2].kind == "judge_labels_to_decide"
    assert verdict.notes[2]["more"] is None


def test_bad_answers_are_those_with_yes_where_lower_is_better() -> None:
    pairs: list[tuple[float, Any]] = [(0.9, 1)] * 34 + [(0.4, 1)] * 26 + [(0.1, 0)] * 117 + [(0.6, 0)] * 3
    verdict = replace(made(pairs), lower_is_better=True).verdict
    assert verdict.notes[0]["bad"][3:] == (26, 60)
    assert verdict.notes[0]["good"][3:] == (3, 120)
    errors = [one.error for one in disagreements_of(replace(made(pairs), lower_is_better=True))]
    assert (errors.count("missed"), errors.count("flagged")) == (26, 3)


def test_a_threshold_that_is_shown_to_be_better_is_named() -> None:
    # Every score is above the default threshold, but they rank well.
    verdict = fit(made([(0.7, 0)] * 60 + [(0.95, 1)] * 60)).verdict
    assert verdict.use == "systems"
    (better,) = [each for each in verdict.notes if each.kind == "judge_better_threshold"]
    assert better["threshold"] == pytest.approx(0.825)
    assert better["expected"] == pytest.approx((0, 0), abs=0.02)


def test_the_most_confident_errors_come_first() -> None:
    calibration = made([(0.6, 0), (0.4, 1), (1.0, 0), (0.9, 1), (0.0, 1), (0.6, 1)], default_threshold=0.6)
    found = [(one.pair.sample_id, one.error, round(one.distance, 3)) for one in calibration.disagreements]
    assert found == [("2", "missed", 1.0), ("4", "flagged", 1.0), ("1", "flagged", 0.333), ("0", "missed", 0.0)]
