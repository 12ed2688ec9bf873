"""A composite judge compared with its members on the same labels."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

import pytest

from evalstone.errors import ConfigError, EvalstoneError
from evalstone.results.calibration import Calibration
from evalstone.results.members import MemberComparison, compare_with_members
from evalstone.results.views.calibration import members_text
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.panels import effective_votes
from tests.results.test_calibration import made

TRUTH = [n % 2 for n in range(120)]
PANEL = "panel(a, b, c, vote=majority)"


def judged(name: str, wrong: set[int], size: int = 120) -> Calibration:
    """A judge that is wrong on these samples."""
    pairs = [(float(truth != (n in wrong)), truth) for n, truth in enumerate(TRUTH[:size])]
    return dataclasses.replace(made(pairs), judge=name)


def panel_of(*wrong: set[int]) -> MemberComparison:
    members = [judged(name, own) for name, own in zip("abc", wrong, strict=True)]
    found = compare_with_members(judged(PANEL, majority(*wrong)), members)
    assert found is not None
    return found


def majority(*members: set[int]) -> set[int]:
    return {n for n in range(120) if 2 * sum(n in wrong for wrong in members) > len(members)}


APART = {*range(24)}, {*range(24, 48)}, {*range(48, 72)}
ALIKE = {*range(24)}, {*range(22), 50, 51}, {*range(2, 26)}


def test_a_panel_of_members_that_err_apart_is_better_than_each() -> None:
    found = panel_of(*APART)
    assert (found.verdict, found.n, found.accuracy.estimate) == ("better", 120, 1.0)
    assert found.votes == effective_votes([[n in wrong for wrong in APART] for n in range(120)])
    assert found.votes is not None
    assert found.votes.votes.estimate == 3
    first, *_ = members_text(found)
    assert re.search(r"3 votes .* 3\.0 independent ", first)
    alone = [float(n not in APART[0]) for n in range(120)]
    by_hand = compare_pairs(alone, [1.0] * 120, confidence=1 - 0.05 / 3)
    assert by_hand is not None
    assert found.members[0].difference == by_hand.difference


def test_a_panel_of_members_that_err_alike_is_worth_little_more_than_one() -> None:
    found = panel_of(*ALIKE)
    assert found.verdict == "inconclusive"
    assert found.votes is not None
    assert found.votes.votes.estimate < 1.2
    assert "not shown to" in [*members_text(found)][2]
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == "inconclusive"


def test_a_panel_that_a_member_beats_says_so() -> None:
    good, bad = set[int](), {*range(40)}
    found = compare_with_members(judged(PANEL, bad), [judged("bad", bad), judged("good", good), judged("worse", bad)])
    assert found is not None
    assert found.verdict == "worse"
    assert [one.judge for one in found.members] == ["good", "bad", "worse"]
    assert "than good alone" in [*members_text(found)][-1]


def test_a_cascade_has_no_votes_and_samples_without_every_score_are_left_out() -> None:
    members = [judged("a", {1, 2}, 100), judged("b", {3})]
    found = compare_with_members(judged("cascade(a, b, threshold=0.9)", {1}), members)
    assert found is not None
    assert (found.votes, found.n) == (None, 100)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.2), (-0.2, 0.0)])
def test_a_difference_whose_interval_ends_at_0_decides_nothing(low: float, high: float) -> None:
    found = panel_of(*APART)
    ends = [
        dataclasses.replace(one, difference=dataclasses.replace(one.difference, low=low, high=high))
        for one in found.members
    ]
    assert dataclasses.replace(found, members=tuple(ends)).verdict == "inconclusive"


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: compare_with_members(judged(PANEL, set()), [dataclasses.replace(judged("a", {1}), labels_id="other")]),
        ConfigError,
        "a was calibrated with other labels than panel(a, b, c, vote=majority)",
    ),
    (
        lambda: compare_with_members(judged(PANEL, set()), [dataclasses.replace(judged("a", {1}), signature="x@1")]),
        ConfigError,
        "a was calibrated with x@1, not with faithfulness@1",
    ),
    (
        lambda: compare_with_members(judged(PANEL, set()), []),
        ConfigError,
        "need the calibration of at least one member",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
