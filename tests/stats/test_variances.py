from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.intervals import mean_interval
from evalstone.stats.variances import VarianceComponents, trial_components, variance_components
from evalstone.types import note

# Two judges score four samples twice: columns are judge A, A, B, B.
TABLE = [[0.9, 0.8, 0.7, 0.6], [0.5, 0.5, 0.4, 0.5], [0.2, 0.4, 0.1, 0.1], [0.8, 0.9, 0.9, 0.7]]
JUDGES = ["A", "A", "B", "B"]


def _means(found: VarianceComponents) -> dict[str, float]:
    return {name: one.estimate for name, one in found.variances.items()}


def test_repeats_of_one_judge_are_the_one_way_analysis_of_variance():
    # rows (1, 0.8), (0.5, 0.5), (0.2, 0.4): means 0.9, 0.5, 0.3; within: (0.02 + 0 + 0.02) / 3 = 1/75;
    # between: 2 · (1/3² + (-1/15)² + (-4/15)²) / 2 = 0.186667; (0.186667 - 1/75) / 2 = 0.086667
    found = variance_components([[1.0, 0.8], [0.5, 0.5], [0.2, 0.4]])
    assert _means(found) == {"samples": pytest.approx(0.28 / 3 - 1 / 150), "noise": pytest.approx(1 / 75)}
    assert found.shares["noise"].estimate == pytest.approx((1 / 75) / (1 / 75 + 0.28 / 3 - 1 / 150))
    assert (found.samples, found.judges, found.scores) == (3, 1, 6)


def test_judges_and_repeats_are_the_two_way_analysis_of_variance():
    n, judges, repeats = 4, 2, 2
    cells = [[(row[0] + row[1]) / 2, (row[2] + row[3]) / 2] for row in TABLE]
    rows, columns = [sum(row) / 2 for row in cells], [sum(row[j] for row in cells) / n for j in range(judges)]
    mean = sum(rows) / n
    samples = judges * repeats * sum((x - mean) ** 2 for x in rows) / (n - 1)
    between = n * repeats * sum((x - mean) ** 2 for x in columns) / (judges - 1)
    off = [(cells[i][j] - rows[i] - columns[j] + mean) ** 2 for i in range(n) for j in range(judges)]
    both = repeats * sum(off) / ((n - 1) * (judges - 1))
    noise = sum((row[k] - cells[i][k // 2]) ** 2 for i, row in enumerate(TABLE) for k in range(4)) / (n * judges)
    found = _means(variance_components(TABLE, judges=JUDGES))
    assert found == {
        "samples": pytest.approx((samples - both) / 4),
        "judges": pytest.approx((between - both) / 8),
        "samples by judges": pytest.approx(max(0.0, (both - noise) / 2)),
        "noise": pytest.approx(noise),
    }


def test_without_repeats_the_noise_includes_what_sample_and_judge_have_together():
    found = variance_components([[row[0], row[2]] for row in TABLE], judges="AB")
    assert list(found.variances) == ["samples", "judges", "noise"]


def test_missing_scores_are_allowed_and_unbiased():
    source, samples, noise, times = random.Random(2), 0.0, 0.0, 3
    for _ in range(times):
        rows: list[list[float | None]] = []
        for _ in range(300):
            level = source.uniform(0.2, 0.8)  # variance 0.03
            rows.append([level + source.uniform(-0.1, 0.1) for _ in range(4)])  # variance 1/300
            rows[-1][1:] = [None if source.random() < 0.5 else value for value in rows[-1][1:]]
        found = _means(variance_components([*rows, [None] * 4]))
        samples, noise = samples + found["samples"] / times, noise + found["noise"] / times
    assert samples == pytest.approx(0.03, rel=0.15)
    assert noise == pytest.approx(1 / 300, rel=0.15)


def test_the_standard_error_says_whether_more_samples_or_more_repeats_help():
    found = variance_components(TABLE, judges=JUDGES)
    parts = _means(found)
    error = found.standard_error(100, repeats=3, judges=2)
    variance = parts["samples"] + parts["samples by judges"] / 2 + parts["noise"] / 6
    assert error.estimate == pytest.approx((variance / 100) ** 0.5)
    assert found.standard_error(400).estimate == pytest.approx(found.standard_error(100).estimate / 2)
    assert error.low is not None
    assert error.high is not None
    assert error.low <= error.estimate <= error.high
    with pytest.raises(ConfigError) as raised:
        found.standard_error(10, repeats=0)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("repeats", 0, "1 or more")


def test_the_standard_error_of_a_balanced_run_is_that_of_its_means():
    rows = [[row[0], row[1]] for row in TABLE]
    means = [sum(row) / 2 for row in rows]
    center = sum(means) / 4
    deviation = (sum((x - center) ** 2 for x in means) / 3) ** 0.5
    assert variance_components(rows).standard_error(4, 2).estimate == pytest.approx(deviation / 2)


def test_an_estimate_below_0_is_0_with_a_caution():
    found = variance_components([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert found.variances["samples"].estimate == 0
    assert found.notes == (note("variance_below_zero", "caution", components=("samples",)),)
    assert found.shares["noise"].estimate == 1


def test_a_judge_that_repeats_itself_in_a_sample_may_still_be_noisy():
    found = variance_components([[place % 2, place % 2] for place in range(30)])
    noise = found.variances["noise"]
    assert (noise.estimate, noise.low) == (0, 0)
    # a share of 0.116 of samples may be of the noisiest kind, a half
    assert noise.high == pytest.approx(0.116 / 2, abs=1e-3)
    constant = variance_components([[1.0, 1.0]] * 30)
    assert constant.shares == {}
    assert (constant.standard_error(30).high or 0) > 0


def test_the_limits_are_those_of_the_mean_pseudo_value():
    # The rows' own sums of squares, 0.02, 0 and 0.02, make the noise 0.04 / 3, and without a row 0.02 / 2, 0.04 / 2
    # and 0.02 / 2: the pseudo-values are 3 · 0.04 / 3 - 2 · these. Two scores at both ends have the most noise, 0.5.
    rows = [[1.0, 0.8], [0.5, 0.5], [0.2, 0.4]]
    found = variance_components(rows).variances
    limits = mean_interval([0.02, 0.0, 0.02], low=0.0, high=0.5)
    assert limits is not None
    assert (found["noise"].low, found["noise"].high) == (pytest.approx(limits.low), pytest.approx(limits.high))
    for name, one in variance_components([[10 * x for x in row] for row in rows], scale=10).variances.items():
        assert one.low == pytest.approx(100 * (found[name].low or 0.0))
        assert one.high == pytest.approx(100 * (found[name].high or 0.0))


def test_the_limits_hold_for_rare_bad_scores():
    source = random.Random(4)
    truth = {"samples": 0.05 * 0.95 * 0.94**2, "noise": 0.03 * 0.97}
    held: dict[str, int] = dict.fromkeys(truth, 0)
    for _ in range(25):
        bad = [source.random() < 0.05 for _ in range(30)]
        rows = [[float(one == (source.random() < 0.03)) for _ in range(2)] for one in bad]
        found = variance_components(rows).variances
        for name, one in found.items():
            held[name] += (one.low or 0.0) <= truth[name] <= (one.high or 0.0)
    assert min(held.values()) >= 22


@pytest.mark.parametrize(
    ("rows", "judges", "told"),
    [
        ([], None, "0 samples have a score and 0 have two"),
        ([[0.5, 0.4], [0.1, 0.2]], None, "2 samples have a score and 2 have two"),
        ([[0.5, None], [0.1, None], [0.1, 0.3]], None, "3 samples have a score and 1 have two"),
        ([[0.5, None], [0.1, None], [0.1, 0.3]], "AB", "and two per judge"),
        ([[0.5, 0.1], [0.1]], None, "one entry per repeat"),
        ([[0.5, 0.1]] * 3, "A", "one entry per repeat"),
        ([[0.5, 1.1]] * 3, None, "value 1 is 1.1"),
    ],
)
def test_a_table_that_cannot_be_told_apart_is_refused(rows: list[list[float | None]], judges: str | None, told: str):
    with pytest.raises(DataError, match=told):
        variance_components(rows, judges=judges)


def test_a_single_repeat_is_too_little_to_tell_noise_from_what_sample_and_judge_have_together():
    rows = [[0.9, 0.8, 0.7], [0.5, None, 0.4], [0.2, None, 0.1], [0.8, None, 0.9]]
    assert list(variance_components(rows, judges="AAB").variances) == ["samples", "judges", "noise"]


def test_two_scores_of_a_judge_are_enough():
    rows = [[0.5, 0.4, 0.3], [0.1, 0.2, 0.2], [0.3, 0.2, None], [0.7, 0.6, None]]
    assert list(variance_components(rows, judges="AAB").variances) == [
        "samples",
        "judges",
        "samples by judges",
        "noise",
    ]


def test_trials_and_judgments_are_the_nested_analysis_of_variance():
    # Answers' means: (0.9, 0.7), (0.5, 0.3), (0.2, 0.4). The two scores of an answer differ by 0.2, 0, 0, 0.2, 0, 0, so
    # the judge has Σ squares = 2 · 0.02 with 6 degrees of freedom: 0.04 / 6. Between trials there is (0.02 + 0.02 +
    # 0.02) / 3 = 0.02, and half of the judge's variance is in it: 0.02 - 0.02 / 6.
    table = [[[1.0, 0.8], [0.7, 0.7]], [[0.5, 0.5], [0.4, 0.2]], [[0.2, 0.2], [0.4, 0.4]]]
    found = trial_components(table)
    means = [[0.9, 0.7], [0.5, 0.3], [0.2, 0.4]]
    assert _means(found) == {
        "samples": pytest.approx(_means(variance_components(means))["samples"]),
        "trials": pytest.approx(0.02 - 0.02 / 6),
        "noise": pytest.approx(0.04 / 6),
    }
    assert (found.samples, found.scores, found.notes) == (3, 12, ())
    assert sum(share.estimate for share in found.shares.values()) == pytest.approx(1)
    error = (_means(found)["samples"] + (0.02 - 0.02 / 6) / 4 + 0.04 / 6 / 12) / 30
    assert found.standard_error(30, repeats=3, trials=4).estimate == pytest.approx(error**0.5)
    with pytest.raises(ConfigError) as raised:
        found.standard_error(30, trials=0)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("trials", 0, "1 or more")


def test_trials_that_share_their_judgments_do_not_differ_by_the_judge():
    scores = [[1.0, 0.8], [0.5, 0.1], [0.2, 0.2]]
    shared = trial_components([[one, one] for one in scores], answers=[["a", "a"], ["b", "b"], ["c", "c"]])
    noise = (0.02 + 0.08) / 3
    assert _means(shared) == {
        "samples": pytest.approx((0.9**2 + 0.3**2 + 0.2**2 - 1.4**2 / 3) / 2 - noise / 2),
        "trials": 0,
        "noise": pytest.approx(noise),
    }
    assert shared.notes == ()
    own = [[(row, trial) for trial in range(2)] for row in range(3)]
    table = [[one, other] for one, other in zip(scores, scores[1:] + scores[:1], strict=True)]
    assert _means(trial_components(table, answers=own)) == _means(trial_components(table))


@pytest.mark.slow
def test_components_are_unbiased_where_trials_share_their_judgments():
    # Trials answer "low" or "high", of which each text is judged three times: 0.2 apart, so with a variance of 0.01.
    source, sums = random.Random(5), {"samples": 0.0, "trials": 0.0, "noise": 0.0}
    for _ in range(40):
        table: list[list[list[float]]] = []
        answers: list[list[str]] = []
        for n in range(100):
            level = source.uniform(0.3, 0.7)  # variance 0.16 / 12
            judged = {
                f"{n} {text}": [level + shift + source.uniform(-0.2, 0.2) for _ in range(3)]  # 0.16 / 12
                for text, shift in (("low", -0.1), ("high", 0.1))
            }
            answers.append([source.choice(list(judged)) for _ in range(4)])
            table.append([judged[answer] for answer in answers[-1]])
        by_sample = trial_components(table, answers=answers)._pseudo  # pyright: ignore[reportPrivateUsage]
        for name, values in by_sample.items():
            sums[name] += sum(values) / 100 / 40
    assert sums == {
        "samples": pytest.approx(0.16 / 12, rel=0.05),
        "trials": pytest.approx(0.01, rel=0.05),
        "noise": pytest.approx(0.16 / 12, rel=0.05),
    }


@pytest.mark.slow
def test_samples_take_nothing_of_the_judge_where_those_with_more_trials_have_more_judgments():
    # Every score is 0 or 1 by chance. In half of the samples one answer is scored once, in the others five answers are
    # scored four times each: what samples and trials have is 0.
    source, sums = random.Random(7), {"samples": 0.0, "trials": 0.0, "noise": 0.0}
    for _ in range(100):
        shapes = [(1, 1) if n % 2 else (5, 4) for n in range(60)]
        found = trial_components(
            [[[float(source.random() < 0.5) for _ in range(r)] for _ in range(t)] for t, r in shapes]
        )
        by_sample = found._pseudo  # pyright: ignore[reportPrivateUsage] - of estimates that are not cut off at 0
        for name, values in by_sample.items():
            sums[name] += sum(values) / 60 / 100
    assert sums["noise"] == pytest.approx(0.25, rel=0.02)
    assert sums["trials"] == pytest.approx(0, abs=0.005)
    assert sums["samples"] == pytest.approx(0, abs=0.006)


def test_a_judge_that_varies_more_than_the_trials_leaves_them_0_with_a_caution():
    found = trial_components([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]], scale=1)
    assert (_means(found)["trials"], _means(found)["noise"]) == (0, 0.5)
    assert found.notes == (note("variance_below_zero", "caution", components=("trials",)),)


def test_components_of_trials_are_unbiased_where_judgments_and_trials_are_missing():
    source, sums = random.Random(4), {"samples": 0.0, "trials": 0.0, "noise": 0.0}
    for _ in range(3):
        table: list[list[list[float]]] = []
        for _ in range(300):
            level = source.uniform(0.3, 0.7)  # variance 0.16 / 12
            answers = [level + source.uniform(-0.15, 0.15) for _ in range(4)]  # variance 0.09 / 12
            judged = [[answer + source.uniform(-0.1, 0.1) for _ in range(3)] for answer in answers]  # 0.04 / 12
            table.append([[v for v in answer if source.random() > 0.4] for answer in judged])
        for name, value in _means(trial_components(table)).items():
            sums[name] += value / 3
    assert sums == {
        "samples": pytest.approx(0.16 / 12, rel=0.05),
        "trials": pytest.approx(0.09 / 12, rel=0.08),
        "noise": pytest.approx(0.04 / 12, rel=0.05),
    }


def test_components_of_trials_scale_with_the_square_of_the_scale_and_have_intervals_that_hold_them():
    table = [[[0.9, 0.8], [0.7, 0.6]], [[0.5, 0.5], [0.4, 0.5]], [[0.2, 0.4], [0.1, 0.1]], [[0.8, 0.9], [0.9, 0.7]]]
    one = trial_components(table)
    ten = trial_components([[[10 * v for v in answer] for answer in trials] for trials in table], scale=10)
    for name, interval in one.variances.items():
        assert ten.variances[name].estimate == pytest.approx(100 * interval.estimate)
        assert 0 <= (interval.low or 0) <= interval.estimate <= (interval.high or 0)
        assert {type(limit) for limit in (interval.low, interval.estimate, interval.high)} == {float}
    wide, narrow = (trial_components(table, confidence=level).variances["noise"] for level in (0.95, 0.5))
    assert (wide.low or 0) <= (narrow.low or 0) <= (narrow.high or 0) <= (wide.high or 0)


def test_the_variance_of_the_judge_needs_two_samples_with_an_answer_scored_twice():
    with pytest.raises(DataError, match="values"):
        trial_components([[[1.0, 1.5], [1.0]], [[0.5], [0.0]], [[0.0], [0.0]]], scale=1.25)


def test_the_interval_of_a_balanced_judge_is_that_of_the_mean_of_the_samples_variances():
    table = [[[1.0, 0.8], [0.7, 0.7]], [[0.5, 0.5], [0.4, 0.2]], [[0.2, 0.2], [0.4, 0.4]], [[0.9, 0.5], [0.6, 0.6]]]
    of_samples = [0.01, 0.01, 0.0, 0.04]  # means of two answers' variances, such as (0.02 + 0) / 2
    expected = mean_interval(of_samples, low=0, high=0.5)  # of two scores, one at each end
    assert expected is not None
    noise = trial_components(table).variances["noise"]
    assert (noise.low, noise.estimate, noise.high) == pytest.approx((expected.low, 0.015, expected.high))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: trial_components([[[1.0, 0.5], [1.0]], [[0.5], [0.0]], [[0.0], [0.0]]]),
        DataError,
        "the judge's variance needs at least two samples with an answer that is scored twice",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
