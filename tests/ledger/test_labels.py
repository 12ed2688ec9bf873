"""Labels, failure modes and pins in the ledger, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import dataclasses
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone.errors import ConfigError, DataError, LedgerError
from evalstone.ledger.copy import KINDS, export_rows, import_rows, recover
from evalstone.ledger.labels import (
    Label,
    Mode,
    ModeGone,
    ModeLabel,
    assign_mode,
    delete_label,
    delete_mode,
    labels,
    mode_labels,
    modes,
    pin,
    pins,
    unassign_mode,
    write_label,
    write_mode,
)
from evalstone.ledger.maintenance import info, prune, verify
from evalstone.ledger.store import Ledger
from tests.ledger.rows import placed, run
from tests.postgres import PASSWORD, Postgres

ODD = "Zoë \N{GRINNING FACE} \ud800 \x00" + "long" * 5000


def label(sample: str = "a", value: float | None = 1.0, **others: Any) -> Label:
    usual = Label(run="r1", sample=sample, signature="s@1", annotator="ada", value=value)
    return dataclasses.replace(usual, **others)


def filled(ledger: Ledger) -> None:
    ledger.start_run(run("r1"))
    ledger.start_run(run("r2"))
    ledger.leases.release_all()
    write_label(ledger, label(chosen="stratified", stratum=2, probability=0.125, trial=3, blind=False, note="why"))
    write_mode(ledger, Mode(id="m1", dataset="data.jsonl", name="wrong year"))
    assign_mode(ledger, ModeLabel(mode="m1", run="r1", sample="a", annotator="ada"))
    pin(ledger, "data.jsonl", "r2")


def test_a_label_comes_back_as_it_was_and_another_one_replaces_it(url: str) -> None:
    first = label(chosen="stratified", stratum=2, probability=0.125, trial=3, blind=False, note="why")
    others = [label("b", None, annotator="bob"), label("b", 0.5, signature="other@1"), label("b", 0.25, run="r2")]
    with Ledger(url) as ledger:
        for each in (first, *others):
            write_label(ledger, each)
    with Ledger(url, read_only=True) as ledger:
        assert labels(ledger, "r1") == [first, *others[:2]]
        assert labels(ledger, "r1", "s@1") == [first, others[0]]
    with Ledger(url) as ledger:
        write_label(ledger, again := dataclasses.replace(first, value=0.0, written=first.written + 9))
        assert labels(ledger, "r1", "s@1") == [others[0], again]
        assert [delete_label(ledger, first), delete_label(ledger, first)] == [True, False]
        assert labels(ledger, "r1", "s@1") == [others[0]]


def test_any_text_can_be_labeled_with_any_note(url: str) -> None:
    with Ledger(url) as ledger:
        write_label(ledger, label(ODD, annotator=ODD[:9], note="'; drop table labels; --\ud800\n" + ODD))
        (kept,) = labels(ledger, "r1")
        assert kept.note.startswith("'; drop table labels; --\\ud800\n")
        write_label(ledger, dataclasses.replace(kept, value=0.0))
        assert [each.value for each in labels(ledger, "r1")] == [0.0]


def test_a_dataset_has_one_mode_of_a_name_however_many_are_added_at_once(url: str) -> None:
    with Ledger(url):
        pass
    gate = threading.Barrier(4)

    def add(number: int) -> str:
        with Ledger(url) as ledger:
            gate.wait(timeout=30)
            return write_mode(ledger, Mode(id=f"m{number}", dataset="data", name=("Rude", "rude")[number % 2])).id

    with ThreadPoolExecutor(4) as pool:
        ids = {*pool.map(add, range(4))}
    with Ledger(url) as ledger:
        assert {each.id for each in modes(ledger, "data")} == ids
        assert len(ids) == 1
        assert write_mode(ledger, Mode(id="other", dataset="other", name="rude")).id == "other"


def test_modes_are_renamed_merged_and_taken_away(url: str) -> None:
    with Ledger(url) as ledger:
        for name in ("m1", "m2"):
            write_mode(ledger, Mode(id=name, dataset="data", name=name, written=1.0))
        write_mode(ledger, Mode(id="m3", dataset="other", name="m3"))
        for mode, sample in (("m1", "a"), ("m1", "b"), ("m2", "b"), ("m2", "c"), ("m2", "c")):
            assign_mode(ledger, ModeLabel(mode=mode, run="r1", sample=sample, annotator="ada"))
        write_mode(ledger, Mode(id="m1", dataset="data", name="wrong year", definition="A year is wrong", written=1.0))
        assert [(each.id, each.name) for each in modes(ledger, "data")] == [("m1", "wrong year"), ("m2", "m2")]
        delete_mode(ledger, "m2", into="m1")
        assert [each.id for each in modes(ledger, "data")] == ["m1"]
        assert sorted((each.mode, each.key) for each in mode_labels(ledger, "r1")) == [
            ("m1", "a"),
            ("m1", "b"),
            ("m1", "c"),
        ]
        unassign_mode(ledger, ModeLabel(mode="m1", run="r1", sample="a", annotator="bob"))
        assert len(mode_labels(ledger, "r1")) == 2
        delete_mode(ledger, "m1")
        assert (modes(ledger, "data"), mode_labels(ledger, "r1")) == ([], [])


def test_a_mode_that_is_gone_is_neither_given_to_a_sample_nor_made_again(url: str) -> None:
    gone = Mode(id="m1", dataset="data", name="rude")
    with Ledger(url) as ledger:
        write_mode(ledger, gone)
        write_mode(ledger, Mode(id="m2", dataset="data", name="wrong year"))
        assign_mode(ledger, ModeLabel(mode="m2", run="r1", sample="a", annotator="ada"))
        delete_mode(ledger, "m1")
        with pytest.raises(ModeGone, match="deleted or merged"):
            assign_mode(ledger, ModeLabel(mode="m1", run="r1", sample="a", annotator="ada"))
        with pytest.raises(ModeGone):
            write_mode(ledger, gone, new=False)
        with pytest.raises(ModeGone):
            delete_mode(ledger, "m2", into="m1")
        assert [each.id for each in modes(ledger, "data")] == ["m2"]
        assert [each.mode for each in mode_labels(ledger, "r1")] == ["m2"]


def test_a_dataset_has_one_baseline(url: str) -> None:
    with Ledger(url) as ledger:
        for dataset, name in (("data", "r1"), ("other", "r1"), ("data", "r2")):
            pin(ledger, dataset, name)
        assert pins(ledger) == {"data": "r2", "other": "r1"}
        pin(ledger, "data", None)
        assert pins(ledger) == {"other": "r1"}


def test_they_move_whole_are_sound_and_counted(url: str, tmp_path: Path) -> None:
    counted = {"label": 1, "mode": 1, "mode_label": 1, "pin": 1}
    with Ledger(url) as ledger, Ledger(tmp_path / "other.db") as other:
        filled(ledger)
        moved = placed(export_rows(ledger))
        assert import_rows(other, moved).items() >= counted.items()
        assert not any(import_rows(other, moved).values())
        assert info(other).counts.items() >= counted.items()
        assert labels(other, "r1") == labels(ledger, "r1")
        assert list(export_rows(other)) == list(export_rows(ledger))
    assert verify(url).sound, verify(url).invalid_rows
    found = recover(tmp_path / "other.db", tmp_path / "new.db")
    assert {kind: rows.invalid for kind, rows in found.items()} == dict.fromkeys(KINDS, 0)
    assert {kind: rows.copied for kind, rows in found.items()}.items() >= counted.items()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"chosen": "by dice"}, "chosen must be one of stratified, uncertain, random, shared, hand, not 'by dice'"),
        ({"blind": "yes"}, "blind must be true or false, not 'yes'"),
        ({"value": -1}, "value must be a finite number of 0 or more, not -1"),
        ({"note": None}, "note must be text, not None"),
    ],
)
def test_a_label_with_a_wrong_value_is_not_imported(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with Ledger(tmp_path / "l.db") as ledger, Ledger(tmp_path / "other.db") as other:
        filled(ledger)
        rows = [{**row, **change} for row in export_rows(ledger, "label")]
        with pytest.raises(DataError) as refused:
            import_rows(other, placed(rows))
        assert told in str(refused.value)


def test_a_label_whose_key_is_that_of_another_is_found(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        filled(ledger)
        with ledger.transaction(writing=True) as database:
            database.execute("UPDATE labels SET sample = 'b'")
    (problem,) = verify(tmp_path / "l.db").invalid_rows
    assert problem.endswith("its key does not match its content")


def test_what_people_have_labeled_or_pinned_is_pruned_only_if_it_is_said(url: str) -> None:
    with Ledger(url) as ledger:
        filled(ledger)
        ledger.start_run(run("r3"))
        ledger.leases.release_all()
        pruned = prune(ledger, older_than=timedelta(0), unfinished=True, delete=True)
        assert (pruned.runs, pruned.labeled) == (1, 2)
        assert [row.id for row in ledger.runs()] == ["r2", "r1"]
        pruned = prune(ledger, unfinished=True, labeled=True, delete=True)
        assert (pruned.runs, pruned.labeled) == (2, 0)
        assert (labels(ledger, "r1"), mode_labels(ledger, "r1"), pins(ledger)) == ([], [], {})
        assert [each.id for each in modes(ledger, "data.jsonl")] == ["m1"]


def test_a_ledger_that_is_only_read_takes_no_label(url: str) -> None:
    Ledger(url).close()
    with Ledger(url, read_only=True) as ledger, pytest.raises((ConfigError, LedgerError)):
        write_label(ledger, label())


def test_a_role_that_may_only_read_is_told_apart(postgres_url: str, server: Postgres) -> None:
    Ledger(postgres_url).close()

    def may_write(url: str) -> bool:
        with Ledger(url, read_only=True) as ledger, ledger.transaction() as database:
            return database.may_write()

    assert may_write(postgres_url)
    assert not may_write(f"{postgres_url}%20-cdefault_transaction_read_only%3Don")
    schema = postgres_url.rpartition("%3D")[2]
    server.run("CREATE ROLE reader LOGIN PASSWORD 'read-only-0815'")
    try:
        server.run(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
        assert not may_write(postgres_url.replace(f"tester:{PASSWORD}", "reader:read-only-0815"))
    finally:
        server.run("DROP OWNED BY reader; DROP ROLE reader")


def labeling(url: str, ready: Any) -> None:
    with Ledger(url) as ledger:
        for number in range(10_000):
            write_label(ledger, label(str(number)))
            ready.set()


def test_a_label_is_there_even_if_the_process_is_killed(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=labeling, args=(url, ready))
    process.start()
    try:
        assert ready.wait(60)
    finally:
        process.kill()
        process.join()
    with Ledger(url) as ledger:
        kept = labels(ledger, "r1")
        assert [each.sample for each in kept] == [str(number) for number in range(len(kept))]
        assert kept
    assert verify(url).sound
