"""Gates on means corrected by human labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalstone.errors import ConfigError
from evalstone.stats.gates import AtLeast, AtMost, MaxRegression, PassRate, decide
from evalstone.stats.ppi import corrected_mean
from evalstone.types import note

SOURCE = np.random.default_rng(8)
HUMAN = SOURCE.uniform(0.5, 0.9, 400)
JUDGED = (HUMAN + 0.1).tolist()  # too kind by 0.1
LABELS = [mark if place < 100 else None for place, mark in enumerate(HUMAN.tolist())]


def test_a_judge_that_is_too_kind_passes_and_its_labels_fail_it() -> None:
    criterion = AtLeast("a", JUDGED, 0.75)
    (by_judge,) = decide([criterion])
    (by_people,) = decide([replace(criterion, human=LABELS)])
    assert (by_judge.verdict, by_judge.labeled) == ("pass", None)
    assert (by_people.verdict, by_people.labeled, by_people.n) == ("fail", 100, 400)
    assert by_people.estimate == pytest.approx(float(HUMAN.mean()), abs=0.01)
    evidence = corrected_mean(JUDGED, LABELS)
    assert evidence is not None
    assert by_people.low == evidence.limit(0.05, 1)
    (other,) = decide([AtMost("a", JUDGED, 0.75, human=LABELS)])
    assert other.verdict == "pass"


def test_missing_scores_count_as_worst_with_labels_too() -> None:
    values = [None if place >= 300 else value for place, value in enumerate(JUDGED)]
    (found,) = decide([AtLeast("a", values, 0.6, human=LABELS)])
    assert (found.n, found.missing, found.verdict) == (300, 100, "inconclusive")
    mean = float(HUMAN[:300].mean())
    assert found.estimate == pytest.approx(mean, abs=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.75 * mean < 0.75 * mean + 0.25 < found.high
    assert found.high - found.low < 0.25 + 0.2


def test_the_regression_is_that_of_human_scores() -> None:
    same = [place % 2 == 0 for place in range(400)]
    now = [value if equal else value - 0.1 for value, equal in zip(JUDGED, same, strict=True)]  # 0.05 by the judge
    marks = (LABELS, LABELS)  # people see no difference
    plain = MaxRegression("a", now, JUDGED, 0.02)
    assert decide([plain])[0].verdict == "fail"
    (found,) = decide([replace(plain, human=marks, same=same, margin=0.05)])
    assert (found.verdict, found.labeled) == ("pass", 50)
    gone = [None if place >= 360 else value for place, value in enumerate(now)]
    (found,) = decide([replace(plain, values=gone, human=marks, same=same, margin=0.05)])
    assert (found.verdict, found.missing) == ("inconclusive", 40)


def test_more_labels_are_told_where_they_would_decide() -> None:
    marks = [mark if place < 12 else None for place, mark in enumerate(LABELS)]
    (found,) = decide([AtLeast("a", JUDGED, float(HUMAN.mean()) - 0.08, human=marks)])
    assert (found.verdict, found.more_samples) == ("inconclusive", None)
    assert found.more_labels is not None
    assert 0 < found.more_labels < 388
    (near,) = decide([AtLeast("a", JUDGED, float(HUMAN.mean()) - 0.001, human=marks)])
    assert (near.verdict, near.more_labels) == ("inconclusive", None)


def test_too_few_labels_decide_nothing_and_say_so() -> None:
    (found,) = decide([PassRate("a", [1.0] * 50, 0.1, human=[1.0, 1.0, *[None] * 48])])
    assert (found.verdict, found.estimate) == ("inconclusive", None)
    assert found.notes == (note("too_few_labels", "caution", labels=2, least=30),)


def test_labels_of_one_kind_are_said() -> None:
    passes = [1.0 if place < 40 else None for place in range(400)]
    for criterion in (AtLeast("a", JUDGED, 0.5), AtMost("a", JUDGED, 0.9), PassRate("a", JUDGED, 0.5)):
        for alpha in (0.05, None):
            (found,) = decide([replace(criterion, human=passes)], alpha=alpha)
            assert found.notes == (note("same_labels", "caution", labels=40, label=1.0),)
        mixed = [0.0, *passes[1:]]
        assert decide([replace(criterion, human=mixed)])[0].notes == ()
    plain = MaxRegression("a", JUDGED, JUDGED, 0.02, human=(passes, passes))
    assert decide([plain])[0].notes == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"stopped": True}, "a run that its own gate stopped"), ({"weights": [1.0] * 400}, "weighted samples")],
)
def test_what_labels_cannot_correct_is_refused(change: dict[str, bool], problem: str) -> None:
    with pytest.raises(ConfigError, match=f"a: human labels .* {problem}"):
        decide([replace(AtLeast("a", JUDGED, 0.5, human=LABELS), **change)])


def test_a_mean_at_its_threshold_passes_wrongly_in_five_percent_at_most() -> None:
    source, wrong = np.random.default_rng(9), 0
    for _ in range(300):
        good = source.random(300) < 0.9
        judged = (source.random(300) < np.where(good, 0.95, 0.3)).astype(float).tolist()
        found = corrected_mean(judged, [float(one) if place < 30 else None for place, one in enumerate(good)])
        assert found is not None
        wrong += found.limit(0.05, 1) > 0.9
    assert wrong <= 23  # 15 are 5%


def test_more_samples_are_for_the_error_rate_of_the_later_look_on_either_side_of_the_threshold() -> None:
    values = [0.0, 1.0] * 20 + [0.0] * 2
    below = [decide([kind("a", values, 0.6)], next_alpha=0.005)[0] for kind in (AtLeast, AtMost)]
    assert [(one.kind, one.verdict) for one in below] == [("min", "inconclusive"), ("max", "inconclusive")]
    assert below[0].more_samples == below[1].more_samples
    assert (below[0].more_samples or 0) > (decide([AtLeast("a", values, 0.6)])[0].more_samples or 0) > 0
