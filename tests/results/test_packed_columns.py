"""Runs of millions of records have the numbers that a loop over them has, to the last bit."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from evalstone import Run, compare, evaluate, gate
from evalstone._core import packed_texts
from evalstone._core.packed_texts import PackedTexts
from evalstone.results import columns, scores
from evalstone.results.missing_scores import MISSING
from evalstone.results.pairing import Pairing
from evalstone.results.run_pilots import detectable_note
from evalstone.results.slices import slices
from evalstone.results.views.ranking import Ranking
from evalstone.stats import packed_points, packed_scores
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.packed_scores import PackedEnds, PackedScores
from evalstone.stats.smallest import smallest_places
from tests.runs import Given, Harm, run_of


def a_run(seed: int, answers: int = 90, *, has: Sequence[str] = ()) -> Run:
    rng = random.Random(seed)
    values = [
        ("skip", "fail")[n % 2] if rng.random() < 0.15 else f"{rng.choice((rng.random(), rng.randint(0, 4) / 4))}"
        for n in range(answers)
    ]
    of_sample = [{"group": f"g{n % 7}" if n % 4 else "", "weight": 1 + n % 3, "kind": "ab"[n % 2]} for n in range(90)]
    metadata = [{name: each[name] for name in (*has, "kind")} for each in of_sample]
    return run_of(values, [Given(), Harm()], metadata=metadata[:answers])


def everything(a: Run, b: Run) -> list[Any]:
    ranking, apart = Ranking.of(a), compare(a, b, unpaired=True)
    checks: dict[str, Any] = {
        "min": {"given": 0.4},
        "pass_rate": {"given": (0.5, 0.3)},
        "max_difference": {"given": 0.2},
    }
    ways: list[dict[str, Any]] = [{}, {"missing": "ignore"}, {"alpha": None}]
    return [
        a.to_dict()["scorers"],
        [compare(a, b, missing=missing, margin=0.1).to_dict()["scorers"] for missing in MISSING],
        [apart.to_dict()["scorers"], apart.notes],
        [gate(b, baseline=a, **checks, **way).to_dict()["decisions"] for way in ways],
        slices(a, "kind"),
        ranking.worst(5),
        ranking.listed(40),
        detectable_note(a),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("has", [(), ("group",), ("weight",)])
def test_packed_columns_give_what_lists_give(has: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = everything(a_run(1, has=has), a_run(2, has=has))
    for module in (packed_scores, columns, scores):
        monkeypatch.setattr(module, "LARGE", 2)
    monkeypatch.setattr(packed_texts, "_AT_ONCE", 2)
    a, b = a_run(1, has=has), a_run(2, has=has)
    assert isinstance(a.columns.values(a.columns.rows()), PackedScores)
    assert everything(a, b) == expected


def test_packed_runs_of_other_samples_are_matched_as_lists_are(monkeypatch: pytest.MonkeyPatch) -> None:
    few = a_run(2, answers=60)
    shuffled = sorted(few.samples or (), key=lambda sample: sample.output or "")

    def matched() -> list[Any]:
        a, b = a_run(1), evaluate(shuffled, [Given(), Harm()], ledger=None)
        result = compare(a, b, allow_mismatch=True)
        return [result.to_dict()["scorers"], result.notes, compare(a, b, unpaired=True).notes]

    expected = matched()
    for module in (packed_scores, columns, scores):
        monkeypatch.setattr(module, "LARGE", 2)
    monkeypatch.setattr(packed_texts, "_AT_ONCE", 2)
    assert matched() == expected
    assert expected[2][0].kind == "could_be_paired"


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).random(70_000),
        np.random.default_rng(1).integers(0, 21, 70_000) / 20,
        np.array([0.1, 0.2, 0.1 + 0.2, 0.3, 1.0, 0.0, -0.0, 5e-324]),
        np.array([1e300, 1e-300, -1e300, 2.0**-1074, 3.0, 1e154]) * 1e-150,
    ],
    ids=["any", "few", "odd", "far apart"],
)
def test_packed_scores_have_the_sum_and_the_points_of_a_list(values: Any) -> None:
    packed: Any = PackedScores(values)
    listed = values.tolist()
    assert packed.total == math.fsum(listed)
    assert PackedScores(-values * 1e150).total == math.fsum(-values * 1e150)
    assert BoundedMean.of(packed, 0.0, 1.0) == BoundedMean.of(listed, 0.0, 1.0)
    assert BoundedMean.of(packed, -1.0, 3.0) == BoundedMean.of(listed[::-1], -1.0, 3.0)


@pytest.mark.parametrize("exponents", [(-1074, -900), (-60, 60), (900, 1006)])
def test_sums_are_exact_whatever_the_sizes_of_the_numbers(exponents: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    values = rng.uniform(-1, 1, 70_000) * 2.0 ** rng.integers(*exponents, 70_000)
    for some in (values, np.abs(values), np.full(70_000, 2.0 ** exponents[0]), np.concatenate([values, -values])):
        assert PackedScores(some).total == math.fsum(some.tolist())


def test_values_that_differ_by_rounding_are_one_point_across_the_parts_they_are_read_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packed_points, "_AT_ONCE", 2)
    values = np.repeat([0.1, 0.1 + 1e-17, 0.3, 0.1 + 0.2, 0.5], [1, 2, 3, 4, 1])
    many = np.concatenate([np.random.default_rng(3).random(600), values])
    for some in (values, many, values[:1]):
        packed: Any = PackedScores(some)
        assert BoundedMean.of(packed, 0.0, 1.0) == BoundedMean.of(some.tolist(), 0.0, 1.0)


def test_ends_are_those_of_their_places_and_elsewhere_the_scores() -> None:
    ends = PackedEnds(np.array([0.5, np.nan, 0.25, np.nan]), [1, 2, 3], [(0.0, 1.0), (0.25, 0.25), (0.5, 1.0)])
    listed = [(0.5, 0.5), (0.0, 1.0), (0.25, 0.25), (0.5, 1.0)]
    assert [*ends] == ends[:] == [ends[place] for place in range(4)] == listed
    assert (ends[-1], ends[1:3], len(ends), packed_scores.open_ends(ends)) == (listed[-1], listed[1:3], 4, 2)
    assert [*zip(ends.side(0), ends.side(1), strict=True)] == listed
    assert packed_scores.ends_only_have(ends, (0.0, 0.25, 0.5, 1.0))
    assert not packed_scores.ends_only_have(ends, (0.0, 0.5, 1.0))


def test_the_points_of_many_values_dont_depend_on_their_order() -> None:
    values = np.random.default_rng(2).random(5_000).tolist()
    assert BoundedMean.of(values, 0.0, 1.0) == BoundedMean.of(sorted(values), 0.0, 1.0)


def test_texts_are_joined_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_texts, "_AT_ONCE", 4)
    first, second = PackedTexts(), PackedTexts()
    first.extend([f"s{n}" * (1 + n % 3) for n in range(50)])
    second.extend([f"s{n}" * (1 + n % 3) for n in range(70, 10, -1)])
    ours, theirs = Pairing().match(first, second)
    listed = Pairing().match([*first], [*second])
    assert ([*ours], [*theirs]) == ([*listed[0]], [*listed[1]])
    assert Pairing().match(first, first.at(range(50))) == (range(50), range(50))
    assert first.places_of({"s3", "s1s1", "none"}) == [1, 3]
    equal = ["", "s", "s1234567", "s12345678", "s123456789abcdefgh", "é" * 5, "s1234567"]
    some, reordered = PackedTexts(), PackedTexts()
    some.extend(equal)
    reordered.extend(equal[::-1])
    assert some.equals(reordered.at(range(6, -1, -1)))
    assert not some.equals(reordered)
    assert [*some.hashes()] == [*reordered.hashes()][::-1]
    assert len({*some.hashes().tolist()}) == len({*equal})
    second.append("s50" * 3)
    assert second.has_repeats()
    assert first.joined(second) is None


def test_the_smallest_come_first_and_of_equal_ones_the_first() -> None:
    values = np.array([0.5, np.nan, 0.0, 0.5, 0.0, 1.0, np.nan, 0.5])
    for most in range(10):
        assert smallest_places(values, most).tolist() == [2, 4, 0, 3, 7, 5, 1, 6][:most]
