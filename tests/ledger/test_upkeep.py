"""Looking after a ledger: what it holds, moving it, making it smaller, and what is left of a damaged one."""

from __future__ import annotations

import dataclasses
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import ScriptedJudge, evaluate, read_run
from evalstone._core.json import storable
from evalstone.datasets.blocks import sample_blocks
from evalstone.errors import ConfigError, DataError, LedgerError
from evalstone.ledger.base import Operations
from evalstone.ledger.copy import KINDS, export_records, export_rows, import_rows, recover, write_parquet
from evalstone.ledger.maintenance import PruneCounts, info, prune, verify
from evalstone.ledger.store import Ledger
from evalstone.types import Record
from tests.ledger.rows import DATASET, JUDGE, answer, placed, record, records, run, samples

NO_LIVE = {"sample": 0, "live_score": 0, "live_count": 0}
NO_LABELS = {"label": 0, "mode": 0, "mode_label": 0, "pin": 0}


def filled(url: str | Path, *, size: int = 3) -> None:
    """A ledger with a run that has ended, one that has not, and answers of which only the first is used."""
    with Ledger(url) as ledger:
        ledger.start_run(run("r1"))
        ledger.write_blocks(DATASET, list(sample_blocks(samples())))
        ledger.write([answer(n) for n in range(size)], [("r1", n, record(str(n))) for n in range(size)])
        ledger.finish_run("r1", "2026-01-01T00:01:00+00:00", dict(run().metadata))
        ledger.start_run(run("r2", started=datetime.now(UTC).isoformat(timespec="seconds")))
        ledger.write(records=records("r2", record("only")))
        ledger.leases.release_all()


def test_what_a_ledger_holds_is_told(url: str) -> None:
    filled(url)
    with Ledger(url) as ledger:
        ledger.write([dataclasses.replace(answer(9), judge="another", cost=0.25)])
        found = info(ledger)
    assert found.counts == {
        "dataset": 1,
        "run": 2,
        "block": 1,
        "item": 1,
        "sample": 0,
        "answer": 4,
        "record": 4,
        **NO_LIVE,
        **NO_LABELS,
    }
    assert (found.unfinished, found.in_progress) == (1, 0)
    assert [(j.name, j.answers, j.unpriced, j.tokens, j.cost) for j in found.answered_by] == [
        ("another", 1, 0, 3, 0.25),
        (JUDGE, 3, 3, 9, 0.0),
    ]
    assert found.size > 10_000


def test_the_ledger_of_a_real_run_is_sound_moves_whole_and_is_recovered_whole(tmp_path: Path) -> None:
    judge = ScriptedJudge({"list_claims": {"claims": ["a"]}})
    file = tmp_path / "real.db"
    made = evaluate(samples(), ["contains(expected=place)", "factual_correctness"], judge=judge, ledger=file)
    assert run().metadata.keys() <= made.metadata().keys()
    assert verify(file).sound, verify(file).invalid_rows
    with Ledger(file) as ledger, Ledger(tmp_path / "moved.db") as moved:
        import_rows(moved, placed(export_rows(ledger)))
        assert info(moved).counts == info(ledger).counts
    assert {kind: rows.invalid for kind, rows in recover(file, tmp_path / "new.db").items()} == dict.fromkeys(KINDS, 0)
    assert read_run("last", ledger=tmp_path / "new.db").id == made.id


def test_a_ledger_moves_whole_and_a_second_time_nothing_is_new(url: str, tmp_path: Path) -> None:
    filled(url)
    with Ledger(url) as ledger, Ledger(tmp_path / "other.db") as other:
        moved = placed(export_rows(ledger))
        assert import_rows(other, moved) == info(ledger).counts
        nothing = dict.fromkeys(info(ledger).counts, 0)
        assert import_rows(other, moved) == nothing
        assert import_rows(ledger, placed(export_rows(other))) == nothing
        assert other.runs() == ledger.runs()
        assert other.records("r1") == ledger.records("r1")
        assert other.samples_after(DATASET) == (0, samples())
        assert list(export_rows(other)) == list(export_rows(ledger))
        assert list(export_rows(other, "answer")) == [row for row in export_rows(ledger) if row["type"] == "answer"]


ODD = "Zoë \N{GRINNING FACE} \ud800 \x00"


def test_the_text_of_a_record_moves_unchanged(url: str, tmp_path: Path) -> None:
    with Ledger(url) as ledger, Ledger(tmp_path / "other.db") as other:
        ledger.write(records=records("r1", record(ODD, scorer=ODD)))
        import_rows(other, placed(export_rows(ledger)))
        texts = [each.database.scalar("SELECT body FROM records") for each in (ledger, other)]
        assert texts[0] == texts[1]
        assert other.records("r1") == [record(ODD, scorer=ODD)]


def test_any_text_can_be_written_to_parquet(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(run())
        ledger.write(records=records("r1", record(ODD)))
        assert write_parquet(tmp_path / "r.parquet", "records", export_records(ledger, "r1")) == 1
    assert parquet.read_table(tmp_path / "r.parquet").column("sample_id").to_pylist() == [storable(ODD)]


def test_the_records_of_a_run_are_lines_of_records_jsonl_and_bring_their_answers(url: str, tmp_path: Path) -> None:
    filled(url)
    with Ledger(url) as ledger, Ledger(tmp_path / "other.db") as other:
        rows = list(export_records(ledger, "r1"))
        assert [Record.from_dict(row) for row in rows] == ledger.records("r1")
        assert import_rows(other, placed(rows))["answer"] == 1
        assert other.answers(JUDGE, [answer(0).question])[answer(0).question].reply == answer(0).reply
        with pytest.raises(ConfigError, match="no run r9"):
            list(export_records(ledger, "r9"))


def test_a_failed_call_of_a_record_brings_no_answer_though_its_reply_is_kept(tmp_path: Path) -> None:
    kept = record("a")
    failed = dataclasses.replace(kept, calls=(dataclasses.replace(kept.calls[0], answer=None, reply="no idea"),))
    with Ledger(tmp_path / "l.db") as ledger:
        assert import_rows(ledger, placed([failed.to_dict()]))["answer"] == 0


@pytest.mark.parametrize(
    "line",
    [
        3,
        {},
        {"format": 1, "type": "answer"},
        {"format": "ledger_row/1", "type": "lease"},
        {"format": "ledger_row/1", "type": "answer", "question": "q"},
        {
            "format": "ledger_row/1",
            "type": "run",
            "id": 3,
            "plan": "p",
            "started": "s",
            "finished": None,
            "metadata": {},
        },
        {"format": "ledger_row/1", "type": "record", "run": "r", "cell": 0, "signature": "s", "body": {"format": 7}},
    ],
)
def test_a_line_that_is_none_of_ours_is_named_and_what_came_before_it_stays(tmp_path: Path, line: Any) -> None:
    filled(tmp_path / "l.db", size=600)
    with Ledger(tmp_path / "l.db") as ledger, Ledger(tmp_path / "other.db") as other:
        moved = placed(export_rows(ledger, "answer"))
        with pytest.raises(DataError, match=r"line 601.*; the first 500 "):
            import_rows(other, [*moved, ("line 601", line)])
        assert info(other).counts["answer"] == 500


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("answer", {"input_tokens": 2**70}, "input_tokens must be a whole number from 0 to 2147483647, not 11805"),
        ("answer", {"repeat_index": -1}, "repeat_index must be a whole number from 0 to 2147483647, not -1"),
        ("answer", {"cost": 10**400}, "cost must be a finite number of 0 or more, not 1000"),
        ("answer", {"cost": float("nan")}, "cost must be a finite number of 0 or more, not nan"),
        ("answer", {"reply": None}, "reply must be text, not None"),
        ("run", {"metadata": {}}, "id is missing"),
        ("run", {"metadata": {**run().metadata, "scorers": [dict[str, str]()]}}, "scorers.0.name is missing"),
        ("run", {"metadata": {**run().metadata, "tags": "x"}}, "tags must be a list, not 'x'"),
        ("run", {"metadata": {**run().metadata, "judge": "x"}}, "judge must be an object, not 'x'"),
        ("run", {"metadata": {**run().metadata, "started": "now"}}, "started must be a time"),
        ("run", {"started": "notadate"}, "started must be a time, such as 2026-01-31T12:00:00+00:00, not 'notadate'"),
        ("run", {"finished": "later"}, "finished must be a time"),
        ("record", {"body": {**record("0").to_dict(), "seconds": "x"}}, "seconds must be a finite number"),
    ],
)
def test_a_row_with_a_wrong_value_is_refused_by_field(
    tmp_path: Path, kind: str, change: dict[str, Any], told: str
) -> None:
    filled(tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as ledger, Ledger(tmp_path / "other.db") as other:
        moved = [(where, row | change if row["type"] == kind else row) for where, row in placed(export_rows(ledger))]
        with pytest.raises(DataError, match=re.escape(told)) as refused:
            import_rows(other, moved)
        assert str(refused.value).startswith("line ")
        assert str(refused.value).endswith("nothing was imported")
        assert not any(info(other).counts.values())


def aged(ledger: Ledger) -> None:
    with ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE answers SET written = written - 7200")


def test_only_what_is_named_goes_and_only_when_it_is_meant(url: str) -> None:
    filled(url)
    with Ledger(url) as ledger:
        aged(ledger)
        everything: dict[str, Any] = {"older_than": timedelta(days=1), "unfinished": True, "unused_answers": True}
        assert prune(ledger, **everything, delete=False) == PruneCounts(2, 4, 3, 3)
        assert info(ledger).counts == {
            "dataset": 1,
            "run": 2,
            "block": 1,
            "item": 1,
            "answer": 3,
            "record": 4,
            **NO_LIVE,
            **NO_LABELS,
        }
        assert prune(ledger, unused_answers=True, delete=True) == PruneCounts(0, 0, 0, 2)
        assert prune(ledger, older_than=timedelta(days=1), delete=True) == PruneCounts(1, 3, 0, 0)
        assert [row.id for row in ledger.runs()] == ["r2"]
        assert prune(ledger, unfinished=True, delete=True) == PruneCounts(1, 1, 3, 0)
        assert prune(ledger, unused_answers=True, delete=True) == PruneCounts(0, 0, 0, 1)
        ledger.compact()
        assert not any(info(ledger).counts.values())


def test_a_run_under_way_and_fresh_answers_are_never_pruned(url: str) -> None:
    with Ledger(url) as working, Ledger(url) as ledger:
        working.start_run(run())
        working.apply(Operations(answers=[answer(1)]))
        everything: dict[str, Any] = {"older_than": timedelta(0), "unfinished": True, "unused_answers": True}
        assert prune(ledger, **everything, delete=True) == PruneCounts(0, 0, 0, 0)
        working.write_blocks(DATASET, list(sample_blocks(samples())))
        assert prune(ledger, **everything, delete=True) == PruneCounts(0, 0, 0, 0)
        assert ledger.samples(DATASET) == 3


def test_a_sound_ledger_is_said_to_be_sound(url: str) -> None:
    filled(url)
    found = verify(url)
    assert found.sound
    assert found.rows == 1 + 2 + 1 + 1 + 3 + 4


def test_the_ledger_of_a_run_is_sound_moves_and_is_recovered_whole(tmp_path: Path) -> None:
    file, moved, recovered = (tmp_path / name for name in ("l.db", "moved.db", "recovered.db"))
    data = [{"id": "a", "output": "Ada was born in 1815.", "context": ["Ada was born in 1815."]}, {"output": "x"}]
    made = evaluate(data, ["faithfulness", "content_similarity"], ledger=file, name="n", tags=["t"])
    assert verify(file).sound
    with Ledger(file) as ledger, Ledger(moved) as other:
        counts = info(ledger).counts
        assert import_rows(other, placed(export_rows(ledger))) == counts
    assert {kind: rows.copied for kind, rows in recover(file, recovered).items()} == counts
    for each in (file, moved, recovered):
        found = read_run("n", ledger=each)
        assert (found.id, found.tags, found.to_dicts()) == (made.id, ("t",), made.to_dicts())
        assert list(found.samples or ()) == list(made.samples or ())


def test_rows_that_do_not_hold_what_they_should_are_named(url: str) -> None:
    filled(url)
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE records SET body = '{' WHERE cell = 1")
        connection.execute("UPDATE records SET signature = 'else' WHERE cell = 2")
        connection.execute("UPDATE blocks SET body = :body", {"body": zlib.compress(b"[]")})
    found = verify(url)
    assert not found.sound
    kinds = [told.split(":")[0].split()[0] for told in found.invalid_rows]
    assert kinds == ["block", "record", "record"]
    assert found.invalid_rows[0].endswith("its content")
    with Ledger(url) as ledger, pytest.raises(DataError, match=r"sample .* not int"):
        import_rows(ledger, [("line 1", {"format": "ledger_row/1", "type": "block", "body": [4]})])


def damage(path: Path, *pages: int, size: int = 4096) -> None:
    """Overwrite pages of a database file."""
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * size)
            file.write(b"\xa5" * size)


def page_of(path: Path, table: str, kind: str = "leaf") -> list[int]:
    """The pages that a table's rows lie on, counted from 0."""
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        root: int = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    start = (root - 1) * 4096
    if data[start] == 13:
        return [root - 1]
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    places = [int.from_bytes(data[start + 12 + 2 * n : start + 14 + 2 * n], "big") for n in range(cells)]
    return [int.from_bytes(data[start + place : start + place + 4], "big") - 1 for place in places]


def test_a_damaged_ledger_is_said_to_be_and_all_but_the_damage_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.db"
    filled(bad, size=400)
    hurt = page_of(bad, "records")[2:4] + page_of(bad, "answers")[-1:]
    damage(bad, *hurt)
    before = bad.read_bytes()
    with Ledger(bad) as ledger, pytest.raises(LedgerError, match=r"ledger verify.* recover"):
        ledger.records("r1")
    assert not verify(bad).sound
    found = recover(bad, tmp_path / "good.db")
    assert bad.read_bytes() == before
    assert 300 < found["record"].copied < 401
    assert 300 < found["answer"].copied < 400
    assert found["run"].copied == 2
    assert found["record"].unreadable >= 401 - found["record"].copied
    assert found["answer"].unreadable >= 400 - found["answer"].copied
    monkeypatch.setattr("evalstone.ledger.copy.MAX_FAILURES", 5)
    given_up = recover(bad, tmp_path / "less.db")
    assert (given_up["answer"].cut_off, given_up["run"].cut_off) == (True, False)
    assert verify(tmp_path / "good.db").sound
    with Ledger(tmp_path / "good.db") as ledger:
        assert set(ledger.records("r1")[0].to_dict()) == set(record("0").to_dict())
        assert all(r == record(r.sample_id) for r in ledger.records("r1"))


def test_a_ledger_that_was_cut_off_is_recovered_up_to_there(tmp_path: Path) -> None:
    bad = tmp_path / "bad.db"
    filled(bad, size=400)
    os.truncate(bad, bad.stat().st_size * 2 // 3)
    assert not verify(bad).sound
    found = recover(bad, tmp_path / "good.db")
    assert found["run"].copied == 2
    assert found["answer"].copied == 400
    assert 0 < found["record"].copied < 401
    assert found["record"].cut_off
    assert verify(tmp_path / "good.db").sound


def test_a_damaged_page_that_leads_back_is_passed(tmp_path: Path) -> None:
    bad = tmp_path / "bad.db"
    filled(bad, size=400)
    _, second, *others = page_of(bad, "answers")
    damage(bad, *others[:5])
    with bad.open("r+b") as file:
        file.seek(start := 4096 * second)
        rows = 8 + 2 * int.from_bytes(file.read(5)[3:])
        file.seek(start + rows)  # where its rows are is left, and all of them have the number 0
        file.write(bytes(4096 - rows))
    found = recover(bad, tmp_path / "good.db")
    assert 200 < found["answer"].copied < 400
    assert found["answer"].copied + found["answer"].unreadable == 400


def test_unused_answers_are_not_deleted_because_of_a_run_that_is_damaged(tmp_path: Path) -> None:
    filled(tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as ledger:
        with ledger.transaction(writing=True) as database:
            database.execute("UPDATE runs SET metadata = '{' WHERE id = 'r2'")
            database.execute("UPDATE answers SET written = 0")
        with pytest.raises(LedgerError, match="damaged"):
            prune(ledger, unused_answers=True, delete=True)
        assert len(ledger.answers_to([answer(n).key for n in range(3)])) == 3


@pytest.mark.parametrize("damaged", [b"INDBX", b"IND\xffX", b"\xff\xfe\xfd\xfc\xfb"])
def test_rows_are_recovered_when_the_definition_of_another_table_is_damaged(tmp_path: Path, damaged: bytes) -> None:
    bad = tmp_path / "bad.db"
    filled(bad)
    bad.write_bytes(bad.read_bytes().replace(b"INDEX batches_judge", damaged + b" batches_judge"))
    assert verify(bad).damage
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(bad)
    found = recover(bad, tmp_path / "good.db")
    assert (found["run"].copied, found["record"].copied, found["answer"].copied) == (2, 4, 3)


def test_a_number_that_is_missing_is_damage(tmp_path: Path) -> None:
    filled(tmp_path / "l.db")
    with closing(sqlite3.connect(tmp_path / "l.db")) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'input_tokens BIGINT NOT NULL', 'input_tokens BIGINT')"
        )
        other.commit()
    with closing(sqlite3.connect(tmp_path / "l.db")) as other:
        other.execute("UPDATE answers SET input_tokens = NULL")
        other.commit()
    with Ledger(tmp_path / "l.db") as ledger, pytest.raises(LedgerError, match="damaged"):
        info(ledger)


def test_a_locked_ledger_is_not_said_to_be_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.base.WAIT", 0.1)
    Ledger(tmp_path / "l.db").close()
    with closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="has locked"):
            verify(tmp_path / "l.db")


def test_text_that_is_no_text_is_damage(tmp_path: Path) -> None:
    filled(tmp_path / "l.db")
    with closing(sqlite3.connect(tmp_path / "l.db")) as other:
        other.execute("UPDATE answers SET reply = CAST(x'ff' AS TEXT)")
        other.commit()
    assert any("UTF-8" in told for told in verify(tmp_path / "l.db").damage)


def test_what_is_recovered_again_or_into_a_used_ledger_stays_as_it_is(tmp_path: Path, url: str) -> None:
    filled(tmp_path / "bad.db")
    assert recover(tmp_path / "bad.db", url)["record"].copied == 4
    again = recover(tmp_path / "bad.db", url)["record"]
    assert (again.copied, again.existing) == (0, 4)
    with Ledger(url) as ledger:
        assert len(ledger.records("r1")) == 3


def test_rows_that_were_not_yet_moved_into_the_file_are_recovered_too(tmp_path: Path) -> None:
    with Ledger(tmp_path / "bad.db") as ledger:
        ledger.write([answer(1)])
        assert (tmp_path / "bad.db-wal").stat().st_size > 0
        assert recover(tmp_path / "bad.db", tmp_path / "good.db")["answer"].copied == 1


def test_the_copy_that_a_killed_recovery_leaves_is_deleted_by_the_next_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    filled(tmp_path / "bad.db")
    code = "import sys; from evalstone.ledger.copy import _temporary_folder\n"
    code += "with _temporary_folder() as folder: (folder / 'copy.db').touch(); print(flush=True); sys.stdin.read()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        for _ in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline()
        assert len(list(temporary.glob("*/copy.db"))) == 2
        processes[0].kill()
        processes[0].communicate()
        recover(tmp_path / "bad.db", tmp_path / "good.db")
        assert len(list(temporary.iterdir())) == 1
        processes[1].communicate()
        assert list(temporary.iterdir()) == []
    finally:
        for process in processes:
            process.kill()


def test_a_recovery_deletes_nothing_of_anyone_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary, other = tmp_path / "tmp", tmp_path / "other"
    for folder in (temporary / "evalstone-recover-backup_1", other):
        folder.mkdir(parents=True)
        for name in ("lock", "copy.db", "notes.txt"):
            (folder / name).write_text("mine")
    (temporary / "evalstone-recover-link0001").symlink_to(other)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    filled(tmp_path / "bad.db")
    recover(tmp_path / "bad.db", tmp_path / "good.db")
    assert (temporary / "evalstone-recover-backup_1" / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in other.iterdir()) == ["copy.db", "lock", "notes.txt"]


def test_what_cannot_be_recovered_at_all_is_said(tmp_path: Path) -> None:
    filled(tmp_path / "bad.db")
    damage(tmp_path / "bad.db", 0)
    for opening in (Ledger, verify):
        with pytest.raises(ConfigError, match=r"SQLite.* a backup"):
            opening(tmp_path / "bad.db")
    with pytest.raises(LedgerError, match="nothing in"):
        recover(tmp_path / "bad.db", tmp_path / "good.db")
    with pytest.raises(ConfigError, match="no file"):
        recover(tmp_path / "nowhere.db", tmp_path / "good.db")
    (tmp_path / "alias.db").symlink_to(tmp_path / "bad.db")
    for same in (tmp_path / "bad.db", tmp_path / "alias.db", f"sqlite:///{tmp_path}/../{tmp_path.name}/bad.db"):
        with pytest.raises(ConfigError, match="another file"):
            recover(tmp_path / "bad.db", same)
    with pytest.raises(ConfigError, match="its own tools"):
        recover("postgresql://host/db", tmp_path / "good.db")
    assert not (tmp_path / "good.db").exists()
