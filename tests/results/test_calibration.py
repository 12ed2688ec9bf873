"""The calibration as a value: what it learns, and what it measures."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import pytest

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.measures import measure
from evalstone.stats.calibration import Isotonic, Platt
from evalstone.stats.classification import Confusion
from evalstone.stats.intervals import Interval
from evalstone.types import note


def _labels(given: Any) -> tuple[float | None, ...]:
    return cast("tuple[float | None, ...]", given) if isinstance(given, tuple) else (float(given),)


def made(pairs: list[tuple[float, Any]], **more: Any) -> Calibration:
    """A calibration from scores and labels; several labels of a sample are a tuple."""
    scored = tuple(LabeledScore(str(number), value, _labels(given)) for number, (value, given) in enumerate(pairs))
    how: dict[str, Any] = {"scale": 1.0, "default_threshold": 0.5, "label_threshold": 0.5, **more}
    return Calibration(
        judge="lexical@1",
        scorer="faithfulness",
        signature="faithfulness@1",
        lower_is_better=False,
        dataset_name="d.jsonl",
        dataset_version="v",
        pairs=scored,
        **how,
    )


SEPARATED = made([(0.6, 0), (0.65, 0), (0.7, 0), (0.9, 1), (0.95, 1), (1.0, 1)])


def test_the_threshold_is_learned_on_the_scale_of_the_scorer():
    found = fit(made([(6, 0), (7, 0), (9, 10), (10, 10)], scale=10, default_threshold=5, label_threshold=5))
    assert found.threshold is not None
    assert (found.threshold.value, found.threshold.in_sample) == (8.0, 1.0)
    assert found.threshold.on_new == Confusion(tp=2, tn=2)
    assert found.probability(6) is not None
    assert (found.probability(6) or 0) < 0.5 < (found.probability(10) or 0)


@pytest.mark.parametrize(
    ("pairs", "area"),
    [
        (
            [(0.5, n % 2) for n in range(40)],
            0.5,
        ),
        ([(n % 3 / 2, n % 2) for n in range(40)], 0.475),
        ([(1 - n % 2, n % 2) for n in range(40)], 0.0),
        ([(0.0, 0), (0.0, 0), (1.0, 1), (1.0, 1)], 1.0),
        ([(0.2, 1), (0.8, 1)], None),
    ],
)
def test_a_calibration_is_usable_where_its_scores_tell_yes_from_no_better_than_chance(
    pairs: list[tuple[float, Any]], area: float | None
):
    unusable = made(pairs).unusable
    assert unusable is not None
    if area is None:
        assert unusable == note("needs_both_labels", "warning")
    else:
        assert unusable.kind == "not_above_chance"
        mean, low, high = unusable["auroc"]
        assert mean == pytest.approx(area, abs=0.01)
        assert low <= 0.5
        assert low <= mean <= high
    assert made([(n % 2, n % 2) for n in range(12)]).unusable is None


def test_labels_of_one_truth_teach_nothing():
    found = fit(made([(0.2, 1), (0.8, 1)]))
    assert (found.threshold, found.recalibration, found.probability(0.3)) == (None, None, None)
    measures = measure(found)
    assert measures.at_fitted is None
    assert measures.auroc is None
    assert measures.at_default.measures["specificity"] is None
    sensitivity = measures.at_default.measures["sensitivity"]
    assert sensitivity is not None
    assert sensitivity.estimate == 0.5


def test_verdicts_that_are_all_equal_are_a_flaw_though_scores_rank():
    pairs = [(0.6, 0)] * 6 + [(0.9, 1)] * 6
    above = made(pairs)
    assert (above.unusable, above.only_verdict) == (None, "yes")
    assert above.flaw == note("one_verdict", "warning", verdict="yes", threshold=0.5)
    assert above.flaw in above.notes
    below = made([(value - 0.5, label) for value, label in pairs])
    assert (below.only_verdict, below.flaw) == ("no", note("one_verdict", "warning", verdict="no", threshold=0.5))
    assert made([(n % 2, n % 2) for n in range(12)]).flaw is None
    assert made([(1.0, 1)]).only_verdict == ""


def test_scores_of_few_of_the_labeled_samples_are_a_flaw():
    pairs: list[tuple[float, Any]] = [(n % 2, n % 2) for n in range(12)]
    assert made(pairs, n_skipped=6, n_failed=6).flaw is None
    assert made(pairs, n_skipped=6, n_failed=7).flaw == note("most_labels_unscored", "warning")


def test_the_no_information_rate_is_the_share_of_the_more_frequent_truth():
    for made_of, share in (
        (SEPARATED, 0.5),
        (made([(0.2, 0), (0.8, 1), (0.9, 1), (0.9, 1)]), 0.75),
        (made([(0.2, 0), (0.8, 0), (0.9, 0), (0.9, 1)]), 0.75),
    ):
        rate = measure(made_of).no_information_rate
        assert rate is not None
        assert rate.estimate == share
        assert rate.low == 0.5
        assert rate.high is not None
        assert rate.high > share
    assert measure(made([(0.9, (1.0, 0.0))])).no_information_rate is None


def test_the_way_of_fitting_can_be_chosen_and_unknown_ones_are_refused():
    assert isinstance(fit(SEPARATED, calibrator="platt").recalibration, Platt)
    assert isinstance(fit(SEPARATED, calibrator="isotonic").recalibration, Isotonic)
    with pytest.raises(ConfigError) as raised:
        fit(SEPARATED, calibrator="plat")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value, raised.value.near) == ("calibrator", "plat", ("platt",))
    with pytest.raises(ConfigError) as raised:
        fit(SEPARATED, objective="acuracy")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value, raised.value.near) == (
        "objective",
        "acuracy",
        ("accuracy", "balanced_accuracy"),
    )


def test_one_label_of_a_kind_says_nothing_of_new_samples():
    found = fit(made([(0.2, 0), (0.8, 1), (0.9, 1)]))
    assert found.threshold is not None
    assert found.threshold.on_new is None
    assert isinstance(found.recalibration, Platt)
    measures = measure(found)
    assert measures.recalibrated == {}
    assert measures.at_fitted is not None
    assert set(measures.at_fitted.measures.values()) == {None}


def test_the_learned_threshold_promises_less_than_the_labels_that_chose_it():
    draw = random.Random(8)
    found = fit(made([(draw.random(), draw.random() < 0.5) for _ in range(60)]), objective="accuracy")
    assert found.threshold is not None
    at_fitted = measure(found).at_fitted
    assert at_fitted is not None
    accuracy = at_fitted.measures["accuracy"]
    assert accuracy is not None
    assert accuracy.low is not None
    assert accuracy.low < 0.5
    assert accuracy.estimate < found.threshold.in_sample
    assert accuracy.high is not None
    assert accuracy.high > found.threshold.in_sample


def test_scores_and_labels_of_more_than_two_levels_have_weighted_kappas():
    pairs: list[tuple[float, Any]] = [(n % 4 / 4, (n + n % 5 // 4) % 4 / 4) for n in range(30)]
    found = measure(made(pairs)).weighted_kappa
    assert list(found) == ["linear", "quadratic"]
    assert all(one is not None and one.low is not None and one.low < one.estimate for one in found.values())
    assert measure(SEPARATED).weighted_kappa == {}


def test_the_truth_is_what_most_annotators_say_and_none_where_they_are_split():
    def truth(*labels: float | None) -> bool | None:
        return LabeledScore("s", 0.5, labels).truth(0.5)

    assert truth(1, 0, 1) is True
    assert truth(1, 0, 0) is False
    assert truth(None, 1) is True
    assert truth(1, 0) is None
    split = made([(0.9, (1.0, 0.0)), (0.9, (1.0, 1.0)), (0.1, (0.0, 0.0))])
    assert (split.undecided, len(split.decided)) == (1, 2)
    assert split.pairs[0].label == 0.5


def test_measures_worked_by_hand():
    found = measure(fit(SEPARATED))
    assert found.at_default.confusion == Confusion(tp=3, fp=3)
    balanced = found.at_default.measures["balanced_accuracy"]
    assert balanced is not None
    assert balanced.estimate == 0.5
    assert found.at_fitted is not None
    assert found.at_fitted.confusion == Confusion(tp=3, tn=3)
    assert found.auroc is not None
    assert found.auroc.estimate == 1
    assert found.mean_error is not None
    assert found.mean_absolute_error is not None
    assert found.mean_error.estimate == pytest.approx((0.6 + 0.65 + 0.7 - 0.1 - 0.05) / 6)
    assert found.mean_absolute_error.estimate == pytest.approx((0.6 + 0.65 + 0.7 + 0.1 + 0.05) / 6)
    assert found.raw is not None
    # two bins of two (0.6 to 0.7: mean 0.625, none yes; 0.9 to 1: two and three …)
    assert found.raw.ece.estimate == pytest.approx((0.6 + 0.65 + 0.7 + 0.1 + 0.05) / 6)
    assert found.annotators is None


def test_scores_and_labels_that_miss_a_threshold_by_rounding_only_are_yes():
    short = 7.999999999999999
    found = measure(made([(short, (short, 10)), (0, (0, 0))] * 3, scale=10, default_threshold=8, label_threshold=8))
    assert found.at_default.confusion == Confusion(tp=3, tn=3)
    assert found.annotators is not None
    assert [kappa and kappa.estimate for kappa in found.annotators.judge_kappa] == [1, 1]


def test_annotators_are_compared_with_each_other_and_with_the_judge():
    pairs: list[tuple[float, Any]] = [
        (0.9, (1.0, 1.0, 1.0)),
        (0.9, (1.0, 0.0, 1.0)),
        (0.1, (0.0, 0.0, 0.0)),
        (0.1, (0.0, 0.0, None)),
    ]
    found = measure(made(pairs)).annotators
    assert found is not None
    assert [one.estimate if one else None for one in found.judge_kappa] == [1.0, 0.5, 1.0]
    assert set(found.alpha) == {"nominal", "ordinal", "interval"}


def test_a_calibration_comes_back_from_its_data():
    found = fit(made([(0.2, (0.0, None)), (0.9, (1.0, 1.0)), (0.3, (1.0, 0.0)), (0.4, (0.0, 0.0))]))
    data = json.loads(json.dumps(found.to_dict()))
    assert Calibration.from_dict(data) == found
    assert data["measures"] == json.loads(json.dumps(to_jsonable(measure(found))))
    assert data["pairs"][0] == {
        "sample_id": "0",
        "value": 0.2,
        "labels": [0.0, None],
        "slices": {},
        "weight": 1.0,
        "cluster": "",
    }


@pytest.mark.parametrize(
    ("part", "key", "value", "told"),
    [
        ("pair", "value", float("nan"), r"pairs\.1\.value must be a finite number, not nan"),
        ("pair", "value", 1.5, r"sample '1': 1\.5 is not in \[0, 1\]"),
        ("pair", "labels", ["1"], r"pairs\.1\.labels\.0 must be a finite number, not '1'"),
        ("pair", "labels", [-0.5], r"sample '1': -0\.5 is not in \[0, 1\]"),
        ("pair", "labels", [1, 0], "one label per column"),
        ("", "scale", 0, "^scale must be above 0"),
        ("", "scale", float("inf"), "scale must be a finite number"),
        ("threshold", "value", "0.5", r"threshold\.value must be a finite number, not '0\.5'"),
        ("", "n_skipped", float("inf"), "n_skipped must be a whole number, not inf"),
        ("", "lower_is_better", "no", "lower_is_better must be true or false"),
        ("", "recalibration", {"kind": "platt", "slope": float("nan"), "intercept": 0.0}, "slope"),
        ("", "recalibration", {"kind": "isotonic", "corners": [[0.5, 0.9], [0.4, 0.1]]}, "rising corners"),
        ("", "recalibration", {"kind": "isotonic", "corners": [[0.5, 0.9, 1]]}, r"corners\.0 must have 2 items, not 3"),
    ],
)
def test_a_kept_number_that_is_none_is_refused(part: str, key: str, value: Any, told: str):
    data = fit(SEPARATED).to_dict()
    (data["pairs"][1] if part == "pair" else data[part] if part else data)[key] = value
    with pytest.raises(DataError, match=told):
        Calibration.from_dict(data)


def test_the_error_of_a_wrong_scale_has_its_name_and_value():
    with pytest.raises(DataError) as raised:
        Calibration.from_dict({**SEPARATED.to_dict(), "scale": 0})
    assert (raised.value.field, raised.value.value) == ("scale", 0)


def test_a_calibration_without_pairs_is_refused():
    with pytest.raises(DataError, match="pairs"):
        Calibration.from_dict({**SEPARATED.to_dict(), "pairs": []})


def test_the_agreement_of_annotators_who_all_say_the_same_is_undefined():
    annotators = measure(made([(0.9, (1.0, 1.0)), (0.8, (1.0, 1.0))])).annotators
    assert annotators is not None
    assert annotators.alpha["nominal"] is None


def test_a_pair_without_a_label_is_refused():
    data = SEPARATED.to_dict()
    data["pairs"][0]["labels"] = [None]
    with pytest.raises(DataError, match=r"sample '0'.*no label"):
        Calibration.from_dict(data)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = []


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


@pytest.mark.slow
def test_repeating_every_sample_shows_nothing_more():
    """Five copies of each sample are as many clusters as there are samples: no interval gets narrower."""
    draw = random.Random(1)
    pairs = [(round(min(1, max(0, 0.35 * truth + 0.3 + draw.gauss(0, 0.3))), 1), truth) for truth in [0, 1] * 30]
    graded = [(value, (truth, draw.choice([0.5, float(truth)]))) for value, truth in pairs]
    once = fit(made(graded))
    copies = [
        replace(pair, sample_id=f"{pair.sample_id}.{n}", cluster=pair.sample_id)
        for pair in once.pairs
        for n in range(5)
    ]
    often, independent = (
        fit(replace(once, pairs=tuple(each))) for each in (copies, [replace(pair, cluster="") for pair in copies])
    )
    assert (often.decided_clusters is None, independent.decided_clusters) == (False, None)
    widths, of_copies, of_independent = (_widths(measure(each)) for each in (once, often, independent))
    assert widths.keys() == of_copies.keys()
    assert len(widths) > 30
    for name, width in widths.items():
        assert of_copies[name] > 0.85 * width, name
        assert of_independent[name] < 0.8 * of_copies[name] or "recalibrated" in name, name
    kinds = {each.kind: each for each in often.notes}
    assert (kinds["labels_clustered"]["labels"], kinds["labels_clustered"]["clusters"]) == (300, 60)
    assert "labels_clustered" not in {each.kind for each in independent.notes}
    for few, many in zip(*((each.verdict.missed, each.verdict.flagged) for each in (once, often)), strict=True):
        assert few is not None
        assert many is not None
        assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=0.01)


def _widths(measures: object, path: str = "") -> dict[str, float]:
    """The widths of all intervals in measures, by their place; of reliability diagrams none, as few have a bin each."""
    if isinstance(measures, Interval):
        assert measures.low is not None
        assert measures.high is not None
        return {path: measures.high - measures.low}
    parts: Mapping[Any, object] = {}
    if is_dataclass(measures):
        parts = {item.name: getattr(measures, item.name) for item in fields(measures) if item.name != "bins"}
    elif isinstance(measures, dict):
        parts = cast("dict[str, object]", measures)
    elif isinstance(measures, tuple):
        parts = dict(enumerate(cast("tuple[object, ...]", measures)))
    return {k: v for name, part in parts.items() for k, v in _widths(part, f"{path}/{name}").items()}
