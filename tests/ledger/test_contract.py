"""What a ledger promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import multiprocessing
import secrets
import threading
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets.blocks import sample_blocks
from evalstone.errors import ConfigError, LedgerError, LedgerValueError
from evalstone.ledger import Key, schema
from evalstone.ledger.base import Operations, to_row
from evalstone.ledger.copy import export_rows
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, Record, Skipped
from tests.ledger.rows import DATASET, JUDGE, answer, record, records, run, samples
from tests.postgres import PASSWORD, Postgres


def test_answers_records_and_runs_come_back_as_they_were(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run())
        ledger.write([answer(1)], records("r1", record("a"), record("b")))
    with Ledger(url) as ledger:
        assert ledger.answers(JUDGE, [answer(1).question, "e" * 32]) == {answer(1).question: answer(1)}
        assert ledger.answers("another", [answer(1).question]) == {}
        assert ledger.records("r1") == [record("a"), record("b")]
        assert ledger.run("last") == ledger.run("r1") == run()
        assert ledger.run("r2") is None


def test_all_three_outcomes_come_back(url: str) -> None:
    outcomes = [
        Record(sample_id="a", scorer="s", signature="s@1", outcome=Skipped("no claim")),
        Record(sample_id="b", scorer="s", signature="s@1", outcome=Failed("broke", "raw reply")),
        record("c"),
    ]
    with Ledger(url) as ledger:
        ledger.write(records=records("r1", *outcomes))
        assert ledger.records("r1") == outcomes


def test_a_record_written_again_replaces_the_first(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.write(records=records("r1", record("b", 0.1), record("a", 0.2)))
        ledger.write(records=records("r1", record("b", 0.9)))
        assert [(r.sample_id, r.value) for r in ledger.records("r1")] == [("b", 0.9), ("a", 0.2)]


def test_records_are_in_the_order_of_their_cells_whenever_they_were_written(url: str) -> None:
    with Ledger(url) as ledger:
        for cell in (2, 0, 3, 1):
            ledger.write(records=records("r1", record(str(cell)), first=cell))
            ledger.write(records=records("r2", record("other"), first=cell))
        assert [r.sample_id for r in ledger.records("r1")] == ["0", "1", "2", "3"]
        assert [(cell, r.sample_id) for cell, r in ledger.records_after("r1", 0, 2)] == [(1, "1"), (2, "2")]


def test_several_answers_to_one_question_are_told_apart_by_their_number(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.write([answer(1, reply="first"), answer(1, reply="third", again=2)])
        key = answer(1).question
        found = [ledger.answers(JUDGE, [key], repeat_index=number).get(key) for number in range(3)]
        assert [stored and stored.reply for stored in found] == ["first", None, "third"]


def test_a_data_set_version_is_kept_once_as_it_was_first_seen(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run("r1", started="2026-01-01T00:00:00+00:00"))
        ledger.start_run(run("r2", started="2026-02-02T00:00:00+00:00"))
        (row,) = export_rows(ledger, "dataset")
        assert (row["version"], row["name"], row["samples"]) == ("d" * 16, "data.jsonl", 3)
        assert row["first_seen"] == "2026-01-01T00:00:00+00:00"


def test_runs_come_back_the_last_one_first_even_when_they_started_in_one_second(url: str) -> None:
    with Ledger(url) as ledger:
        for name in ("r9", "r1", "r5"):
            ledger.start_run(run(name))
        assert [row.id for row in ledger.runs()] == ["r5", "r1", "r9"]
        assert ledger.run("last") == run("r5")


def test_only_an_unfinished_run_of_the_same_plan_is_taken_up(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run())
        ledger.leases.release_all()
        assert ledger.resume("p" * 32) == run()
        assert ledger.resume("other") is None
        metadata = {**run().metadata, "seconds": 2.5}
        ledger.finish_run("r1", "2026-01-01T00:01:00", metadata)
        ledger.leases.release_all()
        assert ledger.resume("p" * 32) is None
        row = ledger.run("r1")
        assert row is not None
        assert (row.finished, row.metadata) == ("2026-01-01T00:01:00", metadata)


def test_a_run_that_another_works_on_is_not_taken_up_until_that_one_lets_go(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        first.start_run(run())
        assert second.resume("p" * 32) is None
        first.leases.release_all()
        assert second.resume("p" * 32) == run()
        assert first.resume("p" * 32) is None


def test_many_answers_are_found_in_one_call(url: str) -> None:
    many = [answer(number) for number in range(1500)]
    with Ledger(url) as ledger:
        ledger.write(many)
        assert len(ledger.answers(JUDGE, [a.question for a in many])) == 1500


@pytest.mark.parametrize("text", ["\x00", "\ud83d", "\U0001f600", "a\r\nb", "{}" * 40_000, "'; drop table answers; --"])
def test_any_text_can_be_kept(url: str, text: str) -> None:
    kept = record(text, scorer=text)
    with Ledger(url) as ledger:
        ledger.write([answer(1, reply=text)], records("r1", kept))
        ledger.write(records=records("r1", kept))
        assert ledger.records("r1") == [kept]
        found = ledger.answers(JUDGE, [answer(1).question])[answer(1).question].reply
        assert found == text or found == text.encode("unicode-escape").decode().replace("\\x", "\\u00")


def test_an_id_longer_than_an_index_takes_is_kept_like_any_other(url: str) -> None:
    ids = ["".join(chr(97 + (n * k) % 26) for n in range(20_000)) for k in (3, 5)]
    with Ledger(url) as ledger:
        ledger.write(records=records("r1", *map(record, ids)))
        assert [r.sample_id for r in ledger.records("r1")] == ids


def test_what_is_written_in_one_go_is_written_all_or_not_at_all(url: str) -> None:
    with Ledger(url) as ledger:
        with ledger.transaction(writing=True) as connection:
            connection.execute("DROP TABLE records")
        with pytest.raises(LedgerError, match="records"):
            ledger.write([answer(1)], records("r1", record("a")))
        assert ledger.answers(JUDGE, [answer(1).question]) == {}


def test_a_question_is_leased_to_one_and_only_one(url: str) -> None:
    wanted = {answer(n).key for n in range(5)}
    with Ledger(url) as first, Ledger(url) as second:
        assert first.apply(Operations(claims=wanted)).leased == wanted
        assert second.apply(Operations(claims=wanted | {answer(9).key})).leased == {answer(9).key}
        first.apply(Operations(released=[answer(0).key]))
        assert second.apply(Operations(claims={answer(0).key, answer(1).key})).leased == {answer(0).key}
        first.apply(Operations(answers=[answer(1)], released=[answer(1).key]))
        done = second.apply(Operations(claims={answer(1).key}))
        assert (done.answers, done.leased) == ({answer(1).key: answer(1)}, set[Key]())


def test_nobody_frees_the_lease_of_another(url: str) -> None:
    key = answer(1).key
    with Ledger(url) as first, Ledger(url) as second:
        first.apply(Operations(claims={key}))
        second.apply(Operations(released=[key]))
        second.leases.release_all()
        assert second.apply(Operations(claims={key})).leased == set()


def test_a_lease_runs_out_unless_it_is_renewed(url: str) -> None:
    key = answer(1).key
    with Ledger(url) as first, Ledger(url) as second:
        first.leases.seconds = -1.0
        first.apply(Operations(claims={key}))
        first.leases.seconds = 60.0
        first.apply(Operations(renew=True))
        assert second.apply(Operations(claims={key}, drop_expired=True)).leased == set()
        first.leases.seconds = -1.0
        first.apply(Operations(renew=True))
        assert second.apply(Operations(claims={key}, drop_expired=True)).leased == {key}


def test_nobody_drops_a_lease_of_its_own(url: str) -> None:
    key = answer(1).key
    with Ledger(url) as first, Ledger(url) as second:
        first.leases.seconds = -1.0
        first.start_run(run())
        first.apply(Operations(claims={key}))
        first.apply(Operations(drop_expired=True))
        first.leases.seconds = 60.0
        first.apply(Operations(renew=True))
        assert second.apply(Operations(claims={key}, drop_expired=True)).leased == set()
        assert second.resume(run().plan) is None


def test_a_run_whose_lease_was_dropped_is_leased_again(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        first.leases.seconds = -1.0
        first.start_run(run())
        second.apply(Operations(drop_expired=True))
        first.leases.seconds = 60.0
        first.apply(Operations(renew=True))
        assert second.resume(run().plan) is None


def test_a_run_that_another_process_resumed_meanwhile_is_left_to_it(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        first.leases.seconds = -1.0
        first.start_run(run())
        assert second.resume(run().plan) == run()
        with pytest.raises(LedgerError, match=r"another process .* r1 "):
            first.apply(Operations([answer(1)], renew=True))
        assert second.answers_to([answer(1).key]) == {answer(1).key: answer(1)}
        second.apply(Operations(renew=True))


def hold(url: str, ready: threading.Event) -> None:
    ledger = Ledger(url)
    ledger.apply(Operations(claims={answer(1).key}))
    ledger.start_run(run())
    ready.set()
    threading.Event().wait()


def test_the_leases_of_a_process_that_was_killed_are_free_at_once(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(url, ready))
    process.start()
    try:
        assert ready.wait(60)
        with Ledger(url) as ledger:
            assert ledger.apply(Operations(claims={answer(1).key}, drop_expired=True)).leased == set()
            assert ledger.resume("p" * 32) is None
            process.kill()
            process.join()
            assert ledger.apply(Operations(claims={answer(1).key}, drop_expired=True)).leased == {answer(1).key}
            assert ledger.resume("p" * 32) == run()
    finally:
        process.kill()
        process.join()


def opening_and_writing(url: str, number: int) -> int:
    with Ledger(url) as ledger:
        for n in range(20):
            ledger.write([answer(100 * number + n)], [(f"r{number}", n, record(str(n)))])
        taken = ledger.apply(Operations(claims={answer(10_000 + n).key for n in range(50)})).leased
        for n in range(50):
            taken |= ledger.apply(Operations([answer(50 + n)], claims={answer(20_000 + n).key})).leased
        return len(taken)


@pytest.mark.slow
def test_processes_that_open_a_new_ledger_at_once_all_write_and_share_the_leases(url: str) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        taken = pool.starmap(opening_and_writing, [(url, number) for number in range(4)])
        pool.close()
        pool.join()
    assert sum(taken) == 100
    with Ledger(url) as ledger:
        assert [len(ledger.records(f"r{number}")) for number in range(4)] == [20] * 4
        assert ledger.database.check() == []


def test_a_database_of_something_else_is_left_alone(url: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("DROP TABLE ledger_version")
    with pytest.raises(ConfigError, match="not an evalstone"):
        Ledger(url)


def test_no_password_is_shown_or_written(postgres_url: str, tmp_path: Path) -> None:
    with Ledger(postgres_url) as ledger:
        ledger.start_run(run())
        assert PASSWORD not in ledger.location + repr(ledger) + repr(ledger.database)
        with pytest.raises(LedgerError) as raised, ledger.transaction() as connection:
            connection.execute("SELECT nothing FROM nowhere")
        assert PASSWORD not in str(raised.value)
    wrong = postgres_url.replace(PASSWORD, "guess-work-0815")
    with pytest.raises(ConfigError, match="authentication") as refused:
        Ledger(wrong)
    assert "guess-work-0815" not in str(refused.value)
    assert "***" in str(refused.value)


def test_a_server_that_is_not_there_is_said_to_be_out_of_reach() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match=r"127\.0\.0\.1.*refused") as raised:
        Ledger(f"postgresql://tester:{PASSWORD}@127.0.0.1:1/postgres")
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("UPDATE runs SET metadata = '{}'", "run r1 .* is damaged .*id is missing"),
        ("UPDATE runs SET metadata = '[1]'", "run r1 .* is damaged .*must be an object"),
        ("UPDATE records SET body = 'x'", "a record of run r1 .* is damaged .*Expecting value"),
        ("UPDATE records SET body = '[]'", "a record of run r1 .* is damaged"),
        ("UPDATE answers SET alternatives = '['", f"the answer to {answer(1).question} .* is damaged"),
        ("UPDATE blocks SET body = 'x'", f"a sample of dataset {DATASET} .* is damaged"),
    ],
)
def test_a_row_that_holds_something_else_is_said_to_be_damaged(url: str, harm: str, told: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run())
        ledger.write([answer(1)], records("r1", record("a")))
        ledger.write_blocks(DATASET, list(sample_blocks(samples())))
        with ledger.transaction(writing=True) as connection:
            connection.execute(harm)

        def read() -> None:
            ledger.run("r1")
            ledger.records("r1")
            ledger.answers(JUDGE, [answer(1).question])
            ledger.samples_after(DATASET)

        with pytest.raises(LedgerError, match=f"{told}.*evalstone ledger verify"):
            read()


@pytest.mark.parametrize("value", [{"judge": "\ud800"}, {"repeat_index": 2**70}])
def test_a_value_that_a_driver_cannot_send_is_refused(url: str, value: dict[str, Any]) -> None:
    with Ledger(url) as ledger:
        with pytest.raises(LedgerValueError):
            ledger.write([answer(1), replace(answer(2), **value)])
        ledger.write([answer(3)])
        assert ledger.answers_to([answer(n).key for n in range(4)]) == {answer(3).key: answer(3)}


@pytest.fixture
def database(server: Postgres) -> Generator[Callable[[str], str]]:
    """Creates a database with these options, and returns its URL."""
    name = f"test_{secrets.token_hex(6)}"

    def create(options: str) -> str:
        server.run(f"CREATE DATABASE {name} {options}")
        return server.url.removesuffix("postgres") + name

    yield create
    server.run(f"DROP DATABASE {name}")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_lacks_characters_is_refused(database: Callable[[str], str], encoding: str) -> None:
    url = database(f"TEMPLATE template0 ENCODING '{encoding}'")
    with pytest.raises(ConfigError, match=encoding):
        Ledger(url)


def test_a_client_with_another_encoding_can_keep_any_text(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    stored = answer(1, reply="\N{GRINNING FACE}")
    with Ledger(postgres_url) as ledger:
        ledger.write([stored])
        assert ledger.answers_to([stored.key]) == {stored.key: stored}


def test_the_isolation_of_a_database_does_not_matter(database: Callable[[str], str], server: Postgres) -> None:
    url = database("")
    name = url.rpartition("/")[2]
    server.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    stored = [answer(1, reply=reply) for reply in ("first", "second")]
    with Ledger(url) as first, Ledger(url) as second, first.transaction(writing=True) as connection:
        assert first.database.scalar("SELECT count(*) FROM answers") == 0
        second.write([stored[0]])
        connection.execute(schema.answers.upsert, to_row(stored[1]))
        assert first.database.scalar("SELECT reply FROM answers") == "second"


def test_a_pooler_that_forgets_prepared_statements_is_named(postgres_url: str) -> None:
    with (
        Ledger(postgres_url) as ledger,
        pytest.raises(LedgerError, match="pooler"),
        ledger.transaction() as connection,
    ):
        connection.execute("EXECUTE forgotten")
