"""The effective number of a panel's votes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.panels import PanelVotes, effective_votes


def votes_of(wrong: list[list[bool]]) -> PanelVotes:
    found = effective_votes(wrong)
    assert found is not None
    return found


def independent(n: int, rates: list[float], shared: float = 0.0, seed: int = 1) -> list[list[bool]]:
    """Errors of members with these rates; a share of samples is judged by all with one and the same luck."""
    source = np.random.default_rng(seed)
    luck = source.random((n, len(rates)))
    together = source.random(n) < shared
    luck[together] = luck[together][:, :1]
    return (luck < np.array(rates)).tolist()


def test_the_number_is_the_mean_variance_over_the_variance_of_the_mean() -> None:
    wrong = independent(200, [0.1, 0.2, 0.3], 0.5)
    errors = np.array(wrong, dtype=float)
    found = votes_of(wrong)
    assert found.votes.estimate == pytest.approx(errors.var(axis=0).mean() / errors.mean(axis=1).var())
    rho = found.correlation.estimate
    assert found.votes.estimate == pytest.approx(3 / (1 + 2 * rho))
    covariances = np.cov(errors.T, bias=True)
    assert rho == pytest.approx((covariances.sum() - np.trace(covariances)) / 2 / np.trace(covariances))
    low, high = found.correlation.low or 0, found.correlation.high or 0
    assert (found.votes.low, found.votes.high) == (pytest.approx(3 / (1 + 2 * high)), pytest.approx(3 / (1 + 2 * low)))


def test_members_that_always_err_together_are_one_vote() -> None:
    found = votes_of([[n % 5 == 0] * 4 for n in range(100)])
    assert (found.votes.estimate, found.votes.low, found.correlation.estimate) == (1, 1, 1)
    assert (found.votes.high or 0) > 1  # one of 101 samples may be judged differently


@pytest.mark.parametrize("rates", [[0.1, 0.1, 0.1], [0.05, 0.1, 0.3, 0.5]])
def test_members_that_err_independently_are_worth_their_number(rates: list[float]) -> None:
    found = votes_of(independent(3000, rates, seed=2))
    assert found.votes.estimate == pytest.approx(len(rates), rel=0.1)
    assert found.votes.high == len(rates)
    assert found.correlation.estimate == pytest.approx(0, abs=0.05)


def test_the_order_of_members_and_samples_changes_nothing() -> None:
    wrong = independent(60, [0.1, 0.2, 0.4], 0.3)
    turned = [row[::-1] for row in reversed(wrong)]
    assert votes_of(turned).votes.estimate == pytest.approx(votes_of(wrong).votes.estimate)
    assert votes_of(turned).votes.low == pytest.approx(votes_of(wrong).votes.low)


def test_the_same_votes_are_worth_anything_between_both_limits_without_labels() -> None:
    """Members who disagree on a share d, and err equally often, have ρ = 1 - d / (2e(1 - e))."""
    votes = [[False] * 3] * 170 + [[at == odd for at in range(3)] for odd in range(3) for _ in range(10)]
    disagree = sum(row[0] != row[1] for row in votes) / len(votes)
    assert disagree == pytest.approx(0.1)
    limits: list[float] = []
    for truths in ([False] * 200, [at % 2 == 1 for at in range(200)]):  # the majority is right; half of all are wrong
        wrong = [[vote != truth for vote in row] for row, truth in zip(votes, truths, strict=True)]
        rate = sum(map(sum, wrong)) / 600
        found = votes_of(wrong)
        assert found.correlation.estimate == pytest.approx(1 - disagree / (2 * rate * (1 - rate)))
        limits.append(found.votes.estimate)
    assert limits == pytest.approx([3, 3 / (1 + 2 * (1 - 2 * disagree))])  # 3 and 1.15


def test_without_errors_samples_or_members_there_is_nothing_to_say() -> None:
    assert effective_votes([[False, False]] * 20) is None
    assert effective_votes([[True, False]] * 20) is None  # each member is right on all or wrong on all
    assert effective_votes([[True, False]]) is None
    assert effective_votes([[True], [False]]) is None
    assert effective_votes([]) is None


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="confidence"):
        effective_votes([[True, False]] * 3, confidence=1.0)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: effective_votes([[True, False], [True]]),
        DataError,
        "each sample needs one verdict per member",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
