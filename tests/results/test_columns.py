"""A run's scores in columns: the same as in its records, in their order."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from dataclasses import replace

import pytest

from evalstone import Run
from evalstone.datasets.stored import record_line
from evalstone.results.columns import KINDS, Columns, Entry, OutcomeKind
from evalstone.results.spilling import SpillingRecords
from evalstone.stats.packed_scores import LARGE
from evalstone.types import TARGET_FAILED, Failed, JudgeCall, Record, Score, Skipped
from tests.runs import run_of

SCORERS = ("a", "b")
OUTCOMES = (
    Score(0.25, evidence=[]),
    Score(1.0, evidence=["p"]),
    Skipped("undefined"),
    Failed("lost"),
    Failed(f"{TARGET_FAILED}down"),
)


def call(answer: object) -> JudgeCall:
    return JudgeCall(question="q", judge="j", fingerprint="f", answer=answer)


def record(case: int, scorer: str, *, trials: bool = False) -> Record:
    """A record of one of all kinds."""
    drawn = random.Random(f"{case} {scorer}")
    return Record(
        sample_id=f"s{case // 3 if trials else case}",
        scorer=scorer,
        signature=scorer,
        outcome=drawn.choice(OUTCOMES),
        calls=(call(None),) if drawn.random() < 0.5 else (),
        group=None if case % 4 == 0 else f"g{case % 3}",
        trial=case % 3 + 1 if trials else None,
        weight=2.5 if case % 5 == 1 else None,
    )


def records_of(cases: int, *, trials: bool = False) -> list[Record]:
    return [record(case, scorer, trials=trials) for case in range(cases) for scorer in SCORERS]


@pytest.mark.parametrize("trials", [False, True])
def test_entries_are_those_of_the_records(trials: bool) -> None:
    records = records_of(30, trials=trials)
    expected = [Entry.of(record, place) for place, record in enumerate(records)]
    columns = Columns.of(SCORERS, records)
    assert list(columns.entries()) == expected
    assert [entry.key for entry in expected] == [record.key for record in records]
    for scorer in SCORERS:
        assert list(columns.entries(scorer)) == [entry for entry in expected if entry.signature == scorer]
    for scorer in SCORERS:
        assert [*columns.places(scorer)] == [entry.place for entry in expected if entry.signature == scorer]
    named = [((expected[at].sample_id, expected[at].trial), [at, at + 1]) for at in range(0, 60, 2)]
    assert [(name, [*places]) for name, places in columns.by_case()] == named


def test_records_in_any_order_have_their_places() -> None:
    records = records_of(30)
    random.Random(1).shuffle(records)
    columns = Columns.of(SCORERS, records)
    assert list(columns.entries()) == [Entry.of(record, place) for place, record in enumerate(records)]
    cases: dict[tuple[str, int | None], list[int]] = {}
    for place, each in enumerate(records):
        cases.setdefault((each.sample_id, each.trial), []).append(place)
    assert list(columns.by_case()) == list(cases.items())
    for scorer in SCORERS:
        assert [*columns.places(scorer)] == [at for at, each in enumerate(records) if each.signature == scorer]


@pytest.mark.parametrize("in_memory", [2, 100])
def test_a_run_that_ended_early_has_the_entries_of_its_records(in_memory: int) -> None:
    records = records_of(30)
    kept = SpillingRecords(SCORERS, 30, in_memory=in_memory)
    cells = [cell for cell in range(60) if cell % 7]
    for cell in random.Random(2).sample(cells, len(cells)):
        kept.put(cell, records[cell])
    entries = list(kept.columns.entries())
    assert list(kept) == [records[cell] for cell in cells]
    assert entries == [Entry.of(record, place) for place, record in enumerate(kept)]
    assert [kept[entry.place].sample_id for entry in entries] == [entry.sample_id for entry in entries]
    assert [len(places) for _, places in kept.columns.by_case()] == [
        sum(cell in cells for cell in (case, case + 1)) for case in range(0, 60, 2)
    ]


@pytest.mark.parametrize("in_memory", [2, 100])
def test_appended_records_are_read_back_with_their_texts(in_memory: int) -> None:
    records, kept = records_of(600), SpillingRecords(SCORERS, in_memory=in_memory)
    for number, one in enumerate(records):
        kept.append(one, None if number % 2 else record_line(one))
    assert kept.columns.seal() is None
    assert list(kept) == records
    assert kept[-1] == records[-1]
    assert kept[5:9] == tuple(records[5:9])
    assert list(kept.texts()) == list(map(record_line, records))


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("trials", [False, True])
def test_columns_by_row_are_those_of_the_entries(shuffled: bool, trials: bool) -> None:
    records = records_of(30, trials=trials)[:-1]
    if shuffled:
        random.Random(4).shuffle(records)
    columns = Columns.of(SCORERS, records)
    some_kinds: tuple[tuple[OutcomeKind, ...], ...] = (KINDS, ("score",), ("failed", "undefined"))
    for scorer, kinds in itertools.product((None, *SCORERS), some_kinds):
        rows = columns.rows(scorer, kinds)
        entries = [entry for entry in columns.entries(scorer) if entry.kind in kinds]
        assert list(map(columns.kind, rows)) == [entry.kind for entry in entries]
        assert list(columns.keys(rows)) == [entry.key for entry in entries]
        assert list(columns.samples(rows)) == [entry.sample_id for entry in entries]
        assert list(columns.values(rows)) == [entry.value for entry in entries]
        assert columns.groups(rows) == [entry.group for entry in entries]
        weights = [entry.weight for entry in entries]
        assert list(columns.weights(rows) or ()) == ([weight or 1.0 for weight in weights] if any(weights) else [])
    named = itertools.groupby(enumerate(records), lambda each: (each[1].sample_id, each[1].trial))
    if not shuffled:
        assert [(name, [*places]) for name, places in columns.by_case()] == [
            (name, [place for place, _ in group]) for name, group in named
        ]
    some = {"s3", "s7", records[-1].sample_id, "missing"}
    found = [entry for _, entry in columns.entries_of(columns.cases_of(some))]
    assert found == [entry for entry in columns.entries() if entry.sample_id in some]
    values = [entry.value for entry in columns.entries()]
    assert [None if math.isnan(value) else value for value in columns.cells()[2]] == values
    assert [columns.sample(case) for case in columns.cells()[0]] == [entry.sample_id for entry in columns.entries()]


@pytest.mark.parametrize("trials", [False, True])
def test_outcomes_have_one_hash_in_any_order_and_another_for_any_change(trials: bool) -> None:
    records = records_of(40, trials=trials)

    def hashed(records: list[Record]) -> str:
        return Columns.of(SCORERS, records).outcomes_hash("a")

    shuffled = random.Random(1).sample(records, len(records))
    assert hashed(shuffled) == hashed(records) == hashed([replace(one, group=None) for one in records])
    place = next(place for place, one in enumerate(records) if one.signature == "a" and one.value == 1)
    one = records[place]
    other = next(each for each in records if each.signature == "a" and each.value == 0.25)
    changed = [
        replace(one, outcome=Score(0.0)),
        replace(one, outcome=Skipped("undefined"), calls=()),
        replace(one, outcome=Failed("lost")),
        replace(one, sample_id=f"{one.sample_id}x"),
        replace(one, weight=0.5),
        replace(one, outcome=other.outcome),
    ]
    lists = [[*records[:place], each, *records[place + 1 :]] for each in changed]
    swapped = [replace(each, outcome=one.outcome) if each is other else each for each in lists[-1]]
    assert len({hashed(records), *map(hashed, lists), hashed(swapped), hashed(records[:-2])}) == len(lists) + 3
    zeros = [Record(sample_id="s", scorer="a", signature="a", outcome=Score(zero)) for zero in (0.0, -0.0)]
    borders = [Record(sample_id=id, scorer="a", signature="a", outcome=Score(0.0)) for id in ("ab", "c", "a", "bc")]
    assert hashed(zeros[:1]) == hashed(zeros[1:])
    assert hashed(borders[:2]) != hashed(borders[2:])
    assert Columns.of(SCORERS, ()).outcomes_hash("a") == hashed([one for one in records if one.signature == "b"])


def test_columns_share_the_memory_of_samples_that_are_the_same() -> None:
    def of(names: list[str]) -> Columns:
        columns = Columns("a")
        values = array("d", [0.5]) * len(names)
        columns.extend(names, values.tobytes(), bytes(len(names)))
        columns.seal()
        return columns

    names = [f"s{n}" for n in range(LARGE)]
    one, same, other = of(names), of(names), of([*names[1:], names[0]])
    for columns in (same, other):
        columns.share_samples(one)
    assert same.samples(same.rows()) is one.samples(one.rows())
    assert other.sample(0) == "s1"
    assert [*same.samples(range(3))] == names[:3]


@pytest.mark.parametrize(("second", "places"), [(1, (1, 0)), (5, (5, 0)), (8, (8, 0))])
def test_the_first_repeated_entry_is_found(second: int, places: tuple[int, int]) -> None:
    columns, records = Columns(SCORERS), records_of(6)
    for one in [*records[:second], records[0], *records[second:], records[3]]:
        columns.append(one)
    assert columns.seal() == places


@pytest.mark.parametrize(
    ("outcome", "calls", "kind"),
    [
        (Score(0.5), (), "score"),
        (Score(0.5), (call(None),), "score"),
        (Skipped("no claims"), (), "undefined"),
        (Skipped("no claims"), (call({"verdict": "yes"}),), "undefined"),
        (Skipped("declined"), (call(None),), "unanswered"),
        (Skipped("undecided"), (call({"verdict": "undecided"}),), "unanswered"),
        (Failed("lost"), (call(None),), "failed"),
        (Failed(f"{TARGET_FAILED}down"), (), "target_failed"),
    ],
)
def test_the_kind_of_an_entry(outcome: Score | Skipped | Failed, calls: tuple[JudgeCall, ...], kind: str) -> None:
    entry = Entry.of(replace(record(0, "a"), outcome=outcome, calls=calls))
    assert (entry.kind, entry.undefined) == (kind, kind == "undefined")


def test_the_columns_of_a_run_know_its_weights() -> None:
    assert Columns.of(SCORERS, records_of(3)).has_weights
    assert not Columns.of(SCORERS, [replace(one, weight=None) for one in records_of(3)]).has_weights


def test_a_run_has_columns() -> None:
    run: Run = run_of(["0.5", "0.25"])
    assert [(entry.sample_id, entry.value) for entry in run.columns.entries()] == [
        (one.sample_id, one.value) for one in run.records
    ]
