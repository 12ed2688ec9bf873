from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.betting import ConfidenceSequence
from evalstone.stats.sequential import SequentialCriterion, SequentialGate
from evalstone.types import note


def stopped(gate: SequentialGate, values: list[float], name: str = "a") -> tuple[str, int]:
    for count, value in enumerate(values, start=1):
        gate.add({name: value})
        if gate.settled:
            return gate.decisions()[0].verdict, count
    return "inconclusive", len(values)


def test_capital_worked_by_hand() -> None:
    # Threshold 0.5, values 1, 1. Bet 1: nothing known, mean 0.5, no bet. Bet 2: mean (0.5 + 1) / 2 = 0.75; variance
    # (0.25 + (1 - 0.75)²) / 2 = 0.15625; bet 0.25 / (0.15625 + 0.0625) = 1.142857, growth 1 + 1.142857 / 2.
    gate = SequentialGate([SequentialCriterion("a", 0.5)])
    gate.add({"a": 1.0})
    assert gate.decisions()[0].p_pass == 1
    gate.add({"a": 1.0})
    (found,) = gate.decisions()
    assert found.p_pass == pytest.approx(1 / (1 + 1.142857 / 2), rel=1e-6)
    assert (found.p_fail, found.estimate, found.n) == (1, 1, 2)


def test_clear_answers_come_early_and_stay() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.5)])
    # no bet on the first value, then × 1.571 and × 1.75 five times: 25.8, the first above 20
    assert stopped(gate, [1.0] * 100) == ("pass", 7)
    for _ in range(50):
        gate.add({"a": 0.0})
    assert gate.decisions()[0].verdict == "pass"
    assert stopped(SequentialGate([SequentialCriterion("a", 0.5)]), [0.0] * 100) == ("fail", 7)
    assert stopped(SequentialGate([SequentialCriterion("a", 0.5, "max")]), [0.0] * 100) == ("pass", 7)
    assert stopped(SequentialGate([SequentialCriterion("a", 0.5, "max")]), [1.0] * 100) == ("fail", 7)


def test_ranges_do_not_matter_to_a_verdict() -> None:
    values = np.random.default_rng(1).beta(8, 2, 300).tolist()
    plain = stopped(SequentialGate([SequentialCriterion("a", 0.7)]), values)
    gains = stopped(
        SequentialGate([SequentialCriterion("a", 0.4, "max_regression", -1, 1)]), [2 * x - 1 for x in values]
    )
    assert plain == gains
    assert plain[0] == "pass"


@pytest.mark.slow
def test_a_gate_that_is_looked_at_after_every_sample_is_wrong_no_more_often_than_it_says() -> None:
    source = np.random.default_rng(2)
    ended = [
        stopped(SequentialGate([SequentialCriterion("a", 0.8)]), row.tolist())[0]
        for row in source.random((150, 150)) < 0.8
    ]
    # 5 % of 150 is 7.5; more than 14 has a chance of 1 in 150
    assert ended.count("pass") <= 14
    assert ended.count("fail") <= 14


def test_several_criteria_share_the_error_and_one_failure_settles_them() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)])
    for _ in range(9):
        gate.add({"a": 0.0, "b": 0.5})
    assert gate.settled
    assert [d.verdict for d in gate.decisions()] == ["fail", "inconclusive"]
    assert stopped(SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)]), [0.0] * 100) == (
        "fail",
        8,
    )


def test_a_criterion_without_a_value_stays_as_it_is() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)])
    gate.add({"a": 1.0})
    a, b = gate.decisions()
    assert (a.n, b.n, b.estimate, b.notes) == (1, 0, None, (note("no_values", "caution"),))
    assert (b.low, b.high) == (0, 1)


def test_a_confidence_sequence_holds_the_truth_all_along() -> None:
    source = np.random.default_rng(3)
    held = 0
    for _ in range(40):
        sequence = ConfidenceSequence(0, 5)
        for value in (5 * source.beta(6, 2, 120)).tolist():
            sequence.add(value)
        low, high = sequence.bounds
        held += low <= 3.75 <= high
        assert 0 < low < high < 5
    assert held >= 36


def test_a_confidence_sequence_closes_in() -> None:
    sequence, widths = ConfidenceSequence(), list[float]()
    for value in np.random.default_rng(4).beta(5, 5, 200).tolist():
        sequence.add(value)
        low, high = sequence.bounds
        widths.append(high - low)
    assert all(later <= earlier for earlier, later in itertools.pairwise(widths))
    assert widths[-1] < 0.2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        SequentialGate([SequentialCriterion("a", 0.5)], alpha=0)
    assert (raised.value.field, raised.value.value) == ("alpha", 0)
    gate = SequentialGate([SequentialCriterion("a", 0.5)])
    with pytest.raises(ConfigError, match="unknown criterion 'b'"):
        gate.add({"b": 0.5})


def test_a_refused_sample_counts_for_no_criterion() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)])
    assert [decision.n for decision in gate.decisions()] == [0, 0]


def test_limits_of_a_gate_are_the_confidence_sequence_at_twice_the_shared_alpha() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)], alpha=0.1)
    sequence = ConfidenceSequence(confidence=0.9)  # 1 - 2 · 0.1 / 2
    for value in np.random.default_rng(6).beta(5, 5, 60).tolist():
        gate.add({"a": value})
        sequence.add(value)
    decision = gate.decisions()[0]
    assert (decision.low, decision.high) == sequence.bounds


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: SequentialGate([SequentialCriterion("a", 1.0)]),
        ConfigError,
        (
            "a: the threshold must be inside (0, 1), not 1: the ends of the range can't be tested "
            "during a run. Check the finished run instead (evalstone gate)"
        ),
    ),
    (
        lambda: SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("a", 0.6)]),
        ConfigError,
        "need at least one criterion, with unique names, got ['a', 'a']",
    ),
    (
        lambda: ConfidenceSequence(0, math.inf),
        ConfigError,
        "the range: low and high must be finite and go up, not 0 and inf",
    ),
    (
        lambda: SequentialGate([SequentialCriterion("a", 0.5)]).add({"a": math.nan}),
        DataError,
        "a: nan is not a number in [0, 1]",
    ),
    (
        lambda: ConfidenceSequence().add(1.5),
        DataError,
        "value: 1.5 is not a number in [0, 1]",
    ),
    (
        lambda: SequentialGate([SequentialCriterion("a", 0.5), SequentialCriterion("b", 0.5)]).add(
            {"a": 1.0, "b": 7.0}
        ),
        DataError,
        "b: 7.0 is not a number in [0, 1]",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
