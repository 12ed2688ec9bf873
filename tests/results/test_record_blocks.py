"""Runs in blocks: the same numbers as from JSON Lines, read by columns."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Record, Run, compare, gate, read_run, write_run
from evalstone._core.storage import Location
from evalstone.datasets.stored import record_line
from evalstone.results import block_writing, record_blocks, record_tables, summary
from evalstone.results.block_writing import write_table
from evalstone.results.judge_stats import JudgeStats
from evalstone.results.record_blocks import BLOCKS, RecordBlocks, block_name
from evalstone.results.record_tables import KEEPS, Keep
from evalstone.results.stored_records import Facts, missing_in
from evalstone.results.summary import summarize
from evalstone.types import Failed, JudgeCall, Score, Skipped, Usage
from tests.results.test_record_tables import SCORERS, record
from tests.runs import Given, Harm, run_of

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

MANY = [f"{number % 7 / 7}" if number % 11 else ("skip", "fail")[number % 2] for number in range(60)]


def a_run(**more: Any) -> Run:
    return run_of(MANY, [Given(), Harm()], **more)


def entries(run: Run) -> list[Any]:
    return [*run.columns.entries()]


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("has", [(), ("group",), ("weight",), ("group", "weight")])
def test_a_run_in_blocks_has_the_numbers_of_the_same_run_in_lines(
    keep: Keep, has: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_writing, "ROWS_PER_BLOCK", 50)
    monkeypatch.setitem(block_writing.ROWS_PER_GROUP, BLOCKS, 16)
    of_sample = [{"group": f"g{n % 5}" if n % 4 else "", "weight": 1 + n % 3, "kind": "ab"[n % 2]} for n in range(60)]
    run = a_run(metadata=[{name: each[name] for name in (*has, "kind")} for each in of_sample])
    lines = read_run(write_run(run, tmp_path / "lines"))
    blocks = read_run(write_run(lines, tmp_path / "blocks", keep=keep))
    assert not (tmp_path / "blocks" / "records.jsonl").exists()
    assert len([*(tmp_path / "blocks" / BLOCKS).iterdir()]) == 3
    assert blocks.to_dict() == lines.to_dict()
    assert blocks.summary == lines.summary
    assert entries(blocks) == entries(lines)
    assert [*missing_in(blocks.columns, blocks.records)] == [*missing_in(lines.columns, lines.records)]
    assert [*missing_in(run.columns, run.records)] == [*missing_in(lines.columns, lines.records)]
    assert [*map(blocks.columns.seconds, blocks.titles)] == [*map(lines.columns.seconds, lines.titles)]
    assert blocks.slices("kind") == lines.slices("kind")
    assert gate(blocks, min={"given": 0.4}).to_dict() == gate(lines, min={"given": 0.4}).to_dict()
    assert compare(blocks, lines).to_dict()["scorers"] == compare(lines, lines).to_dict()["scorers"]
    records = blocks.records
    assert isinstance(records, RecordBlocks)
    assert [*map(records.facts, range(len(records)))] == [*map(Facts.of, records)]
    assert records.facts(5) == Facts.of(records[5])
    if keep == "all":
        assert [*blocks.records] == [*lines.records]
        assert [*blocks.csv_lines()] == [*lines.csv_lines()]
        assert blocks.to_junit() == lines.to_junit()
        assert [*write_run(blocks, tmp_path / "again").glob("records.jsonl")]
        assert (tmp_path / "again/records.jsonl").read_bytes() == (tmp_path / "lines/records.jsonl").read_bytes()


@pytest.mark.parametrize("keep", KEEPS)
def test_few_records_are_read_at_any_place_and_each_once_in_order(
    keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_writing, "ROWS_PER_BLOCK", 50)
    monkeypatch.setitem(block_writing.ROWS_PER_GROUP, BLOCKS, 16)
    read: list[int] = []

    def counted(some: Any, *rest: Any) -> list[Record]:
        read.append(some.num_rows)
        return record_tables.records_of(some, *rest)

    monkeypatch.setattr(record_blocks, "records_of", counted)
    folder = write_run(a_run(), tmp_path / "blocks", keep=keep)
    expected = [*read_run(folder).records]
    assert sum(read) == len(expected)
    assert len(read) < len(expected) / 4
    rng, records = random.Random(1), read_run(folder).records
    for place in (rng.randrange(len(expected)) for _ in range(300)):
        assert records[place] == expected[place]
    far = read_run(folder).records
    read.clear()
    assert [far[place] for place in (101, 102, 30, 31)] == [expected[place] for place in (101, 102, 30, 31)]
    assert sum(read) <= 16


@pytest.mark.parametrize("has", [(), ("group",), ("weight",)])
def test_columns_that_are_null_in_all_rows_arent_read(has: Sequence[str], tmp_path: Path) -> None:
    metadata = [{"group": "g", "weight": 2.0} for _ in MANY]
    write_run(a_run(metadata=[{name: each[name] for name in has} for each in metadata]), tmp_path, keep="scores")
    (file,) = (tmp_path / BLOCKS).iterdir()
    blocks = read_run(tmp_path)
    expected = entries(blocks)
    assert [one.group for one in expected[:1]] == ["g" if "group" in has else None]
    # A page of each such column is damaged, which nobody sees who doesn't read it.
    said, content = pq.read_metadata(file).row_group(0), bytearray(file.read_bytes())
    chunks = {chunk.path_in_schema: chunk for chunk in map(said.column, range(said.num_columns))}
    null = {name for name in record_blocks.MOSTLY_NULL if chunks[name].statistics.null_count == chunks[name].num_values}
    assert null == {*record_blocks.MOSTLY_NULL} - {*has}
    for name in null:
        content[chunks[name].data_page_offset + chunks[name].total_compressed_size // 2] ^= 255
    file.write_bytes(content)
    assert entries(read_run(tmp_path)) == expected
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_run(tmp_path).records[0]


def test_why_scores_are_missing_is_found_without_reading_records(tmp_path: Path) -> None:
    write_run(a_run(), tmp_path, keep="scores")
    blocks = read_run(tmp_path)
    expected = [(r.signature, r.key, r.outcome.reason) for r in a_run().records if r.value is None]
    records = blocks.records
    assert isinstance(records, RecordBlocks)
    assert [*missing_in(blocks.columns, records)] == expected
    assert records._group is None  # pyright: ignore[reportPrivateUsage] - the row group that was read last
    assert len({reason for _, _, reason in expected}) == 2


def block(folder: Path, number: int, found: Sequence[Record], plan: str = "p", keep: Keep = "all") -> None:
    for kind, table in zip(
        (BLOCKS, "calls"), record_tables.record_tables(found, SCORERS, keep, plan=plan, block=number), strict=True
    ):
        if table is not None:
            Location(str(folder / kind / block_name(plan, number))).write(
                lambda file, table=table, kind=kind: write_table(table, file, kind)
            )


def opened(folder: Path, number: int, plan: str = "p", keep: Keep = "all") -> RecordBlocks:
    return RecordBlocks.of_folder(Location(str(folder)), SCORERS, plan, number, keep)


def judged(number: int, rng: random.Random) -> Record:
    """A record with a random outcome and random judge calls."""
    kind, cost = rng.choice(("cascade", "panel", None)), rng.choice((None, 0.1, 0.2, 0.3, 1e-17, 1e9))
    detail: dict[str, Any] = {"dropped": [1]} if rng.random() < 0.5 else {}
    if kind == "cascade":
        detail |= {"kind": kind, "fallback": "m", "escalated": rng.random() < 0.5}
    elif kind == "panel":
        votes = [{"agreement": rng.choice((0.1, 0.7, 1.0)), "entropy": 0.1}]
        detail |= {"kind": kind, "verdicts": votes, "no_answer": {"m #1": "x"}}
    fingerprint = rng.choice("fgh")
    member = JudgeCall(question="q", fingerprint=fingerprint, judge="m", answer=1, cost=cost)
    call = JudgeCall(
        question="q", fingerprint=fingerprint, judge=f"j-{kind}", detail=detail,
        answer=[{"verdict": rng.choice(("yes", "no", "undecided"))}], usage=Usage(1, 1, 0, rng.randint(0, 2)),
        cost=cost, members=(member,), refused_settings=rng.choice(((), ("seed",))),
    )  # fmt: skip
    outcome = rng.choice((Score(0.1), Score(1 / 3), Skipped("r1"), Skipped("r2"), Failed("r3"), Failed("r4")))
    scorer = "ab"[number % 2]
    return record(
        sample_id=f"s{number // 2}", scorer=scorer, signature=f"{scorer}@1", outcome=outcome, seconds=0.1 * number,
        calls=(call,) * rng.randint(0, 1), group=(None, "x", "y")[number // 2 % 3],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_any_split_into_blocks_has_the_same_summary(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    found = [judged(number, rng) for number in range(rng.randint(1, 12))]
    cuts = sorted({rng.randint(1, 12) for _ in range(rng.randint(0, 4))} & {*range(1, len(found))})
    stats = JudgeStats()
    for each in found:
        stats.add(each)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "MAX_REASONS", 3)
        patch.setattr(record_blocks, "MAX_REASONS", 3)
        patch.setattr(summary, "_STORED_REASONS", 2)
        for number, (start, end) in enumerate(itertools.pairwise((0, *cuts, len(found)))):
            block(tmp_path, number, found[start:end], keep=rng.choice(KEEPS))
        blocks = opened_any(tmp_path, len(cuts) + 1)
        assert blocks.summaries() == summarize(SCORERS, found)
        assert blocks.judge_stats() == stats.to_dict()


def opened_any(folder: Path, number: int) -> RecordBlocks:
    names = [block_name("p", each) for each in range(number)]
    calls = {n: Location(str(folder / "calls" / name)) for n, name in enumerate(names)}
    there = {n: file for n, file in calls.items() if file.found()}
    return RecordBlocks(SCORERS, "p", [Location(str(folder / BLOCKS / name)) for name in names], there)


def test_what_is_wrong_with_a_folder_names_the_file(tmp_path: Path) -> None:
    found = [record(sample_id=f"s{number}", scorer=s, signature=f"{s}@1") for number in range(4) for s in "ab"]
    for number in range(2):
        block(tmp_path, number, found[4 * number : 4 * number + 4])
    first, second = (tmp_path / BLOCKS / block_name("p", number) for number in range(2))
    whole = second.read_bytes()
    assert [*opened(tmp_path, 2).texts()] == [*map(record_line, found)]
    with pytest.raises(DataError, match=r"p-000001.parquet is no block of the run p, which has 1 block"):
        opened(tmp_path, 1)
    with pytest.raises(DataError, match=r"p-000002.parquet is missing.*; restore the files, or score the run again$"):
        opened(tmp_path, 3)
    second.write_bytes(first.read_bytes())
    with pytest.raises(DataError, match=r"p-000001.parquet is block 0 of p, not block 1 of p"):
        opened(tmp_path, 2)
    second.write_bytes(whole[:-100])
    with pytest.raises(
        DataError,
        match=r"p-000001.parquet cannot be read as Parquet: .*[^.]\. If it is damaged, delete p-000001.parquet in",
    ):
        opened(tmp_path, 2)
    table = pq.read_table(first)
    pq.write_table(table.drop_columns(["value"]), second)
    with pytest.raises(DataError, match=r"p-000001.parquet has no column value"):
        opened(tmp_path, 2)
    pq.write_table(table.replace_schema_metadata({}), second)
    with pytest.raises(DataError, match=r"p-000001.parquet is no table of evalstone"):
        opened(tmp_path, 2)
    pq.write_table(table.set_column(table.schema.get_field_index("value"), "value", pa.array([0.25] * 4)), first)
    second.write_bytes(whole)
    with pytest.raises(DataError, match="don't add up"):
        opened(tmp_path, 2).columns.values([0])
    block(tmp_path, 0, found[4:])
    with pytest.raises(DataError, match=r"p-000001.parquet, row 0: sample 's2' by 'a@1' is a duplicate of row 0 in"):
        opened(tmp_path, 2).columns.values([0])
