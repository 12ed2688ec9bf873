"""The index of a run: pages, orders, filters, search, and what is stored of a sample."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evalstone import Run, Sample, Score, evaluate, read_run, write_run
from evalstone._core.json import storable
from evalstone.errors import ConfigError
from evalstone.view.indexing import table_index
from evalstone.view.indexing.build import build, head_of
from evalstone.view.indexing.column_index import ColumnIndex
from evalstone.view.indexing.index import Group, Index, OutdatedIndex
from evalstone.view.indexing.opening import open_index
from evalstone.view.indexing.table_index import TableIndex
from evalstone.view.query import SampleQuery
from tests.runs import Claimed, Given, Harm, run_of

Indexed = Callable[[Run], Index]
ANSWERS = ["0.5", "skip", "0.25", "1", "fail", "0.5", "0", "0.75", "skip"]


@pytest.fixture(params=["table", "columns"])
def indexed(tmp_path: Path, request: pytest.FixtureRequest) -> Indexed:
    """Makes the index of a run: of its records, or of its blocks."""

    def make(run: Run) -> Index:
        if request.param == "columns":
            run = read_run(write_run(run, tmp_path / "results", keep="all"))
        build(run, tmp_path / "run.db", "now", head_of(run), lambda _done, _total: None)
        index = open_index(tmp_path / "run.db")
        assert isinstance(index, ColumnIndex if request.param == "columns" else TableIndex)
        return index

    return make


def found(index: Index, limit: int = 100, **query: object) -> list[str]:
    return [case.key for case in index.page(SampleQuery(**query), limit).cases]  # type: ignore[arg-type]


def walked(index: Index, query: SampleQuery, size: int) -> list[str]:
    """The keys on all pages, forwards; going back from the last page must give the same pages."""
    pages = [index.page(query, size)]
    while pages[-1].following:
        pages.append(index.page(replace(query, after=pages[-1].following), size))
    back = pages[-1]
    for page in reversed(pages[:-1]):
        back = index.page(replace(query, before=back.previous), size)
        assert back.cases == page.cases
        assert (bool(back.previous), bool(back.following)) == (bool(page.previous), True)
    assert not back.previous
    return [case.key for page in pages for case in page.cases]


def test_samples_are_listed_worst_first_and_those_without_a_score_last(indexed: Indexed) -> None:
    with indexed(run_of(ANSWERS)) as index:
        assert found(index) == ["s7", "s3", "s1", "s6", "s8", "s4", "s2", "s5", "s9"]
        assert found(index, sort="-goodness") == ["s4", "s8", "s1", "s6", "s3", "s7", "s2", "s5", "s9"]
        assert found(index, sort="-order") == [f"s{n}" for n in range(9, 0, -1)]


@pytest.mark.parametrize("order", ["goodness", "order", "id", "cost", "tokens", "seconds", "score:given", "score:harm"])
@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_pages_have_each_sample_once_in_both_directions(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, order: str, size: int
) -> None:
    with indexed(run_of(ANSWERS, [Given(), Harm()])) as index:
        for sort in (order, f"-{order}"):
            keys = walked(index, SampleQuery(sort=sort), size)
            assert keys == found(index, sort=sort)
            assert sorted(keys) == [f"s{n}" for n in range(1, 10)]
            for few in (0, 50_000):
                monkeypatch.setattr(table_index, "FEW", few)
                assert walked(index, SampleQuery(sort=sort, q="much"), size) == keys
                some = [key for key in keys if key in ("s1", "s6")]
                assert walked(index, SampleQuery(sort=sort, q='"0.5"'), size) == some


def test_outcomes_are_told_apart(indexed: Indexed) -> None:
    with indexed(run_of(ANSWERS, [Given(), Harm()])) as index:
        assert found(index, show="skipped", sort="order") == ["s2", "s9"]
        assert found(index, show="failed", scorer="harm") == ["s5"]
        assert found(index, show="score", sort="order") == ["s1", "s3", "s4", "s6", "s7", "s8"]
        assert found(index, show="imperfect", scorer="given", sort="order") == [
            f"s{n}" for n in (1, 2, 3, 5, 6, 7, 8, 9)
        ]
        assert found(index, show="imperfect", scorer="harm", sort="order") == [
            f"s{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9)
        ]
        assert {name: number for name, number in index.totals.items() if number} == {
            "all": 9,
            "imperfect": 9,
            "score": 6,
            "skipped": 2,
            "failed": 1,
        }
        case = index.case("s2")
        assert case is not None
        assert (case.goodness, case.values) == (None, (None, None))


def test_groups_are_of_what_means_the_same_in_each_sample(indexed: Indexed) -> None:
    """Reasons that only count or list passages by number are in none."""
    run = run_of(["0.5"] * 8, [Given(), Harm()])
    passages = ({"passage": 1, "useful": False}, {"passage": 2, "useful": True})
    said = [
        *[Score(0.5, "useful: passage 2; not useful: 1.", evidence=passages)] * 2,
        *[Score(0.5, "no passage was useful.", evidence=passages)] * 2,
        *[Score(0.5, "1 of 2 parts fit.")] * 2,
        *[Score(0.5, "It says 1887.")] * 2,
    ]
    claim = ({"claim": "It is gold.", "verdict": "contradicted"},)
    given, harm = run.scorers
    outcomes = {info.signature: said for info in (given, harm)}
    outcomes[harm.signature] = [*said[:4], *[Score(0.5, evidence=claim)] * 2, *said[6:7], said[0]]
    order = {id: number for number, id in enumerate(dict.fromkeys(record.sample_id for record in run.records))}
    records = [replace(each, outcome=outcomes[each.signature][order[each.sample_id]]) for each in run.records]
    with indexed(replace(run, records=tuple(records))) as index:
        assert index.groups(9) == [
            Group(("given", "harm"), "score", "no passage was useful.", 2),
            Group(("harm",), "score", "✕ contradicted: It is gold.", 2),
            Group(("given",), "score", "It says 1887.", 2),
        ]


def test_scores_reasons_and_metadata_filter(indexed: Indexed) -> None:
    metadata = [{"topic": "a" if n % 2 else "b", "number": n, "long": "x" * 200} for n in range(9)]
    with indexed(run_of(ANSWERS, [Given(), Harm()], metadata=metadata)) as index:
        assert found(index, scorer="harm", min=0.5, max=0.75) == ["s1", "s6", "s8"]
        assert found(index, max=0.5, sort="order", scorer="given") == ["s1", "s3", "s6", "s7"]
        assert found(index, reason="nothing to say") == ["s2", "s9"]
        assert found(index, reason="no such reason") == []
        assert found(index, field=(("topic", "b"), ("number", "4"))) == ["s5"]
        assert [facet.name for facet in index.facets] == ["topic", "number"]
        assert index.facets[0].values == (("b", 5), ("a", 4))
        assert [each for each in index.groups(9) if each.outcome == "skipped"] == [
            Group(("given", "harm"), "skipped", "nothing to say", 2),
        ]
        assert index.count(SampleQuery(field=(("topic", "b"),))) == 5
    for query, kind in ((SampleQuery(scorer="x"), "scorer"), (SampleQuery(field=(("y", "1"),)), "field")):
        with open_index(index.file) as again, pytest.raises(ConfigError) as caught:
            again.page(query)
        assert caught.value.to_dict()["field"] == kind


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("paris", ["one"]),
        ("PARIS museum", ["one"]),
        ("paris rome", []),
        ("muse", ["one", "two"]),
        ('"rome museum"', ["two"]),
        ('"museum rome"', []),
        ("東京", ["three"]),
        ("京東", []),
        ("café", ["three"]),
        ("cafe", ["three"]),
        ("because", ["one"]),  # in the evidence
        ("supported", ["one"]),  # in the reason
        ("one", ["one"]),
        ("…", ["one", "two", "three"]),
    ],
)
def test_search_finds_words_in_texts_reasons_and_evidence(indexed: Indexed, words: str, keys: list[str]) -> None:
    samples = [
        Sample(id="one", input="Paris", output="The museum.", context=["In 1900."]),
        Sample(id="two", input="Rome museum", output="fail"),
        Sample(id="three", input="東京のカフェ", output="Café", metadata={"note": "x"}),
    ]
    with indexed(evaluate(samples, [Claimed()], ledger=None)) as index:
        assert found(index, q=words, sort="order") == keys
        assert index.count(SampleQuery(q=words)) == len(keys)
        assert index.count(SampleQuery(q=words, show="failed")) == len(found(index, q=words, show="failed"))


def test_neighbors_are_those_of_the_list_with_its_filters(indexed: Indexed) -> None:
    with indexed(run_of(ANSWERS)) as index:
        for query in (SampleQuery(), SampleQuery(show="score", sort="-goodness"), SampleQuery(q="much", sort="id")):
            keys = found(index, **{name: getattr(query, name) for name in ("q", "show", "sort")})
            for before, key, after in zip(["", *keys], keys, [*keys[1:], ""], strict=False):
                assert index.neighbors(query, key) == (before, after)
        assert index.neighbors(SampleQuery(), "no such key") == ("", "")


def test_a_sample_is_stored_with_its_records_as_they_are(indexed: Indexed) -> None:
    run = run_of([str(n / 400) for n in range(401)], [Given(), Harm()])
    with indexed(run) as index:
        for number in (1, 200, 401):
            case = index.case(f"s{number}")
            assert case is not None
            stored = index.stored(case.place)
            assert stored.records == tuple(record for record in run if record.sample_id == f"s{number}")
            assert stored.sample is not None
            assert stored.sample.output == str((number - 1) / 400)


def test_trials_are_cases_of_their_own(indexed: Indexed) -> None:
    answers = itertools.cycle(["1", "0.5", "0"])

    def target(input: str) -> str:
        return next(answers)

    run = evaluate(
        [Sample(id="a", input="?"), Sample(id="b", input="!")], [Given()], target=target, trials=3, ledger=None
    )
    with indexed(run) as index:
        assert sorted(found(index)) == ["a #1", "a #2", "a #3", "b #1", "b #2", "b #3"]
        assert [case.key for case in index.trials("a")] == ["a #1", "a #2", "a #3"]


def test_a_sample_of_ten_megabytes_and_hostile_ids_are_indexed(indexed: Indexed) -> None:
    ids = ["a/b", "?", "\u202ex", "..", " ", "\x00", "\ud800", "'; DROP TABLE cases; --", "x" * 5000]
    samples = [Sample(id=name, input="i", output="0.5") for name in ids]
    samples.append(Sample(id="big", input="needle " + "w " * 5_000_000, output="1"))
    with indexed(evaluate(samples, [Given()], ledger=None)) as index:
        assert sorted(found(index)) == sorted(map(storable, [*ids, "big"]))
        assert found(index, q="needle") == ["big"]
        assert all(index.case(name) for name in ids)
        big = index.case("big")
        assert big is not None
        sample = index.stored(big.place).sample
        assert sample is not None
        assert sample.input is not None
        assert len(sample.input) > 10_000_000
        assert len(index.page(SampleQuery(q="needle")).cases[0].input) < 1000


@pytest.mark.parametrize(
    "cursor", ["x", "[1]", "[null, 1e400]", '{"a": 1}', "[[1], 2]", "[1, 99999999999999999999]", "[true"]
)
def test_a_cursor_that_makes_no_sense_is_an_error(indexed: Indexed, cursor: str) -> None:
    with indexed(run_of(ANSWERS)) as index, pytest.raises(ConfigError):
        index.page(SampleQuery(after=cursor))


@pytest.mark.parametrize("cursor", ['["z", 3]', "[1e308, 0]", "[NaN, 2]", "[" + "9" * 30 + ", 1]", "[false, -5]"])
def test_a_cursor_of_another_order_is_a_place_all_the_same(indexed: Indexed, cursor: str) -> None:
    with indexed(run_of(ANSWERS)) as index:
        after = found(index, after=cursor)
        assert after == found(index)[len(ANSWERS) - len(after) :]


def test_an_index_that_is_missing_damaged_or_of_another_version_is_outdated(tmp_path: Path, indexed: Indexed) -> None:
    with pytest.raises(OutdatedIndex):
        open_index(tmp_path / "none.db")
    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    with pytest.raises(OutdatedIndex):
        open_index(tmp_path / "bad.db")
    with indexed(run_of(["1"])) as index:
        pass
    connection = sqlite3.connect(index.file)
    connection.execute("UPDATE about SET value = 'view-index/0' WHERE name = 'format'")
    connection.commit()
    connection.close()
    with pytest.raises(OutdatedIndex):
        open_index(index.file)


def test_the_number_of_a_search_is_its_own_after_another_search(indexed: Indexed) -> None:
    samples = [Sample(id="one", input="Paris", output="0.5"), Sample(id="two", input="Rome", output="1")]
    with indexed(evaluate(samples, [Given()], ledger=None)) as index:
        assert [index.count(SampleQuery(q=words)) for words in ("paris", "…", "rome", "paris rome")] == [1, 2, 1, 0]
