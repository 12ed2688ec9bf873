"""Records as tables: what a table keeps of them comes back unchanged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone import ConfigError, DataError, Record
from evalstone._core.redaction import register
from evalstone.datasets.stored import record_line
from evalstone.results.record_tables import Keep, facts_of, record_tables, records_of
from evalstone.results.stored_records import Facts
from evalstone.results.summary import ScorerInfo
from evalstone.types import Failed, JudgeCall, Score, Skipped, Usage

pa: Any = pytest.importorskip("pyarrow")
SCORERS = tuple(ScorerInfo(name=name, signature=f"{name}@1", scale=4.0, lower_is_better=False) for name in ("a", "b"))

texts = st.text(st.characters(codec=None), max_size=8)  # with NUL and lone surrogates
sizes = st.floats(-1e300, 1e300)  # costs are added up
data = st.recursive(
    st.none() | st.booleans() | st.integers() | sizes | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
usages = st.builds(Usage, st.integers(0, 2**70), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
maybe = st.none() | texts


def calls(members: st.SearchStrategy[tuple[JudgeCall, ...]]) -> st.SearchStrategy[JudgeCall]:
    return st.builds(
        JudgeCall, question=texts, fingerprint=texts, judge=texts, answer=data, usage=usages, cost=st.none() | sizes,
        seconds=sizes, probability=st.none() | sizes, reply=maybe,
        source=st.sampled_from(("asked", "shared", "cached")),
        alternatives=st.none() | st.dictionaries(texts, sizes, max_size=2),
        refused_settings=st.lists(texts, max_size=2).map(tuple), repeat_index=st.integers(0, 3), members=members,
        detail=st.none() | st.dictionaries(texts, data, max_size=2),
    )  # fmt: skip


outcomes = st.one_of(
    st.builds(Score, st.floats(0, 4), texts, scale=st.just(4.0), evidence=data),
    st.builds(Skipped, texts),
    st.builds(Failed, texts, maybe, maybe, maybe),
)
records = st.builds(
    Record, sample_id=texts, scorer=texts, signature=st.sampled_from(("a@1", "b@1")), outcome=outcomes,
    calls=st.lists(calls(st.just(()) | st.lists(calls(st.just(())), max_size=2).map(tuple)), max_size=2).map(tuple),
    seconds=sizes, group=maybe, trial=st.none() | st.integers(1, 9), weight=st.none() | st.floats(1e-9, 1e9),
)  # fmt: skip


def read(found: Sequence[Record], keep: Keep = "all") -> list[Record]:
    return records_of(*record_tables(found, SCORERS, keep))


@settings(max_examples=40)
@given(st.lists(records, max_size=4))
def test_a_table_has_all_that_a_line_has(found: list[Record]) -> None:
    assert [*map(record_line, read(found))] == [*map(record_line, found)]


@settings(max_examples=40)
@given(st.lists(records, max_size=3))
def test_tables_that_keep_less_have_the_scores_and_why_there_is_none(found: list[Record]) -> None:
    for keep in ("evidence", "scores"):
        for before, after in zip(found, read(found, keep), strict=True):
            assert (after.sample_id, after.trial, after.signature, after.value) == (
                *(before.sample_id, before.trial, before.signature), before.value,
            )  # fmt: skip
            assert (after.calls, after.cost) == ((), before.cost)
            if keep == "evidence" or not isinstance(before.outcome, Score):
                assert after.reason == before.reason
            else:
                assert (after.reason, after.evidence) == ("", ())


@settings(max_examples=40)
@given(st.lists(records, max_size=4))
def test_facts_are_those_of_the_records(found: list[Record]) -> None:
    for facts, after in zip(facts_of(record_tables(found, SCORERS)[0]), read(found), strict=True):
        assert facts in (None, Facts.of(after))


@pytest.mark.parametrize("keep", ["all", "scores"])
def test_facts_of_most_records_need_no_record(keep: Keep) -> None:
    found = [
        record(outcome=Score(0.5, "half")),
        record(outcome=Skipped("nothing to score"), group="g", trial=2),
        record(outcome=Score(0.0), left_out_cost=0.25),
        record(outcome=Score(1.0), left_out_cost=None),
    ]
    table = record_tables(found, SCORERS, keep)[0]
    assert facts_of(table) == [*map(Facts.of, records_of(table))]
    if keep == "scores":
        found[0] = record(outcome=Score(0.5))
    assert [*map(record_line, records_of(table))] == [*map(record_line, found)]


def test_values_of_damaged_rows_are_errors_as_of_any_record() -> None:
    table = record_tables([record(), record()], SCORERS)[0]
    for name, value, said in (
        ("value", 7.0, "in [0, 1]"),
        ("seconds", math.inf, "seconds"),
        ("cost", math.nan, "cost"),
    ):
        place = table.schema.get_field_index(name)
        damaged = table.set_column(place, table.schema.field(place), pa.array([0.5, value]))
        assert facts_of(damaged)[1] is None
        with pytest.raises(DataError, match=f"^row 1: .*{re.escape(said)}"):
            records_of(damaged)


def record(**fields: Any) -> Record:
    own: dict[str, Any] = {"sample_id": "s", "scorer": "a", "signature": "a@1", "outcome": Score(0.5)}
    return Record(**{**own, **fields})


@pytest.mark.parametrize(
    "broken", [{"seconds": math.nan}, {"outcome": Score(0.5, evidence=[math.inf])}, {"signature": "c@1"}]
)
def test_what_json_refuses_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        record_tables([record(**broken)], SCORERS)


def test_secrets_are_in_no_column_and_in_no_metadata() -> None:
    register("sk-42-very-secret")
    call = JudgeCall(question="q", fingerprint="f", judge="j", answer=None, reply='"sk-42-very-secret"')
    found = [record(outcome=Failed("no sk-42-very-secret"), calls=[call])]
    tables = record_tables(found, SCORERS)
    assert [*map(record_line, records_of(*tables))] == [*map(record_line, found)]
    for table in tables:
        assert table is not None
        assert "sk-42-very-secret" not in json.dumps(table.to_pydict()) + str(table.schema.metadata)
