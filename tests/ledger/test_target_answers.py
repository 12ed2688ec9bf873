"""What the ledger keeps of a target: one call for each sample and trial, whatever becomes of the process."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Run, Sample, Skipped, evaluate, read_run
from evalstone.ledger.copy import KINDS, export_records, export_rows, import_rows, recover, write_parquet
from evalstone.ledger.maintenance import info, prune, verify
from evalstone.ledger.store import Ledger
from evalstone.targets import Answer, FunctionTarget
from tests.ledger.rows import placed

pytestmark = pytest.mark.slow

SAMPLES, TRIALS, CONCURRENCY, KILLS = 200, 4, 8, 2
COST = 0.25
SCORERS = ["contains(expected=right)", "exact_match"]
PRESENT = Path(__file__).parents[2]


def cases(number: int = SAMPLES) -> list[dict[str, Any]]:
    return [{"id": f"q{n}", "input": f"question {n}", "reference": "right"} for n in range(number)]


def chance(sample: str, trial: int) -> float:
    """A number from 0 to 1 that depends on the sample and the trial alone."""
    return int.from_bytes(hashlib.sha256(f"{sample} {trial}".encode()).digest()[:4]) / 2**32


def agent(*, input: str, trial: int) -> Answer:
    """Fails one time in ten; is right, wrong or wordy otherwise. Writes down each call before it counts."""
    with Path("calls").open("ab", buffering=0) as file:
        file.write(f"{input}|{trial}\n".encode())
    time.sleep(0.002)
    drawn = chance(input, trial)
    if drawn < 0.1:
        raise ValueError(f"no answer to {input}")
    return Answer(output="right" if drawn < 0.5 else "wrong" if drawn < 0.8 else "right, I think", cost=COST)


def run_it(url: str, number: int = SAMPLES) -> Run:
    target = FunctionTarget(function=agent, label="agent")
    return evaluate(cases(number), SCORERS, target=target, trials=TRIALS, ledger=url, progress=False)


def table(run: Run) -> list[tuple[object, ...]]:
    return [(r.sample_id, r.trial, r.signature, r.value, type(r.outcome), getattr(r.outcome, "error", "")) for r in run]


def figures(run: Run) -> list[object]:
    return [[(line.mean, line.interval, line.n_score, line.n_failed, line.reasons) for line in run.summary], run.cost]


def calls() -> list[str]:
    return Path("calls").read_text().splitlines() if Path("calls").exists() else []


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_killed_at_any_moment_it_ends_with_the_same_table_and_pays_for_next_to_nothing_twice(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    whole = run_it(f"sqlite:///{tmp_path}/whole.db")
    assert len(calls()) == SAMPLES * TRIALS
    monkeypatch.chdir(tmp_path)
    code = f"from tests.ledger.test_target_answers import run_it; run_it({url!r})"
    draw = random.Random(url)
    kills = 0
    for moment in sorted(draw.sample(range(20, SAMPLES * TRIALS - 100), KILLS)):
        process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(PRESENT)})
        try:
            deadline = time.monotonic() + 60
            while len(calls()) < moment and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
        finally:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
    assert kills == KILLS
    run = run_it(url)
    assert 0 < run.resumed < len(run)
    assert table(run) == table(whole)
    assert figures(run) == figures(whole)
    assert run.cost == COST * sum(chance(f"question {n}", t) >= 0.1 for n in range(SAMPLES) for t in (1, 2, 3, 4))
    made = Counter(calls())
    assert len(made) == SAMPLES * TRIALS
    # Only calls that gave no answer are made again, and those that were in flight.
    answered = {call: chance(sample, int(trial)) >= 0.1 for call in made for sample, trial in [call.split("|")]}
    assert sum(times - 1 for call, times in made.items() if answered[call]) <= KILLS * CONCURRENCY
    assert sum(times - 1 for call, times in made.items() if not answered[call]) > 0
    read = read_run("last", ledger=url)
    assert table(read) == table(whole)
    assert figures(read) == figures(whole)
    there = [(one.id, one.trial, one.output) for one in run.samples or ()]
    assert there == [(one.id, one.trial, one.output) for one in whole.samples or ()]
    assert there == [(one.id, one.trial, one.output) for one in read.samples or ()]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_ledger_of_trials_is_sound_moves_whole_and_is_recovered_whole(url: str, here: Path) -> None:
    made = run_it(url, 5)
    assert verify(url).sound, verify(url).invalid_rows
    with Ledger(url) as ledger, Ledger(here / "moved.db") as moved:
        import_rows(moved, placed(export_rows(ledger)))
        assert info(moved).counts == info(ledger).counts
        assert info(ledger).counts["record"] == 5 * TRIALS * len(SCORERS)
        assert list(export_records(moved, made.id)) == list(export_records(ledger, made.id))
    assert verify(here / "moved.db").sound
    assert table(read_run(made.id, ledger=here / "moved.db")) == table(made)
    found = recover(here / "moved.db", here / "new.db")
    assert {kind: rows.invalid for kind, rows in found.items()} == dict.fromkeys(KINDS, 0)
    read = read_run(made.id, ledger=here / "new.db")
    assert table(read) == table(made)
    assert [one.output for one in read.samples or ()] == [one.output for one in made.samples or ()]


def test_records_of_trials_have_a_column_for_them_in_parquet(here: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = run_it("l.db", 2)
    plain = evaluate([{"id": "a", "output": "right"}], SCORERS[0], ledger="l.db")
    with Ledger("l.db") as ledger:
        for run in (made, plain):
            write_parquet(f"{run.id}.parquet", "records", export_records(ledger, run.id))
    rows = parquet.read_table(f"{made.id}.parquet").to_pylist()
    assert Counter(row["trial"] for row in rows) == Counter(record.trial for record in made)
    assert "trial" not in parquet.read_table(f"{plain.id}.parquet").column_names


def test_what_targets_have_answered_is_told_by_target_and_not_by_run(url: str, here: Path) -> None:
    for _ in range(2):
        run_it(url, 3)
    with Ledger(url) as ledger:
        (line,) = info(ledger).answered_by
    assert (line.name, line.is_target, line.answers) == ("agent", True, 2 * 3 * TRIALS)
    failed = 2 * sum(chance(f"question {n}", t) < 0.1 for n in range(3) for t in (1, 2, 3, 4))
    assert line.cost == COST * (line.answers - failed)


def test_answers_of_targets_are_unused_once_no_run_of_theirs_is_left(
    url: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.ledger.maintenance.MIN_AGE", -60)
    run = run_it(url, 3)
    with Ledger(url) as ledger:
        assert prune(ledger, unused_answers=True, delete=True).answers == 0
        assert [one.output for one in read_run("last", ledger=url).samples or ()] == [
            one.output for one in run.samples or ()
        ]
        gone = prune(ledger, older_than=timedelta(seconds=-60), unused_answers=True, delete=True)
        assert (gone.runs, gone.answers) == (1, 3 * TRIALS)


def test_a_run_that_was_killed_reads_as_far_as_it_came(url: str, here: Path) -> None:
    seen = list[Any]()

    def stop(record: Any) -> None:
        seen.append(record)
        if len(seen) == 10:
            os._exit(9)

    if (pid := os.fork()) == 0:
        target = FunctionTarget(function=agent, label="agent")
        evaluate(cases(6), SCORERS, target=target, trials=2, ledger=url, concurrency=1, on_record=stop)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    read = read_run("last", ledger=url)
    assert (read.trials, read.stop_reason, read.recorded_cost) == (2, "unfinished", None)
    assert read.cost
    assert read.cost % COST == 0
    assert {(one.id, one.trial) for one in read.samples or ()} >= {(r.sample_id, r.trial) for r in read}
    outputs = {(one.id, one.trial): one.output for one in read.samples or ()}
    assert all(outputs[r.sample_id, r.trial] for r in read if r.value is not None)


def test_what_could_not_be_asked_and_what_failed_are_in_the_samples_of_a_resumed_run(here: Path) -> None:
    data: list[Any] = [*cases(3), {"id": "x", "reference": "y"}]
    target = FunctionTarget(function=agent, label="agent", version="1")
    whole = evaluate(data, SCORERS, target=target, ledger=None)
    stopped = list[int]()

    def stop(_: object) -> None:
        stopped.append(1)
        if len(stopped) == 8:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        evaluate(data, SCORERS, target=target, ledger="l.db", concurrency=1, on_record=stop)
    run = evaluate(data, SCORERS, target=target, ledger="l.db")
    assert run.resumed
    for each in (run, read_run("last", ledger="l.db")):
        assert [(one.id, one.output) for one in each.samples or ()] == [
            (one.id, one.output) for one in whole.samples or ()
        ]
        assert [type(record.outcome) for record in each][-2:] == [Skipped, Skipped]


def test_an_answer_that_another_run_paid_for_costs_this_one_nothing(here: Path) -> None:
    target = FunctionTarget(function=agent, label="agent", version="1")
    first = evaluate(cases(6), SCORERS, target=target, ledger="l.db")
    again = evaluate(cases(6), SCORERS, target=target, ledger="l.db", budget=0.0)
    assert first.target is not None
    assert again.target is not None
    assert (first.target.cached, again.target.cached) == (0, 6)
    assert (first.cost, again.cost) == (COST * first.target.answers, 0.0)
    assert table(first) == table(again)
    assert len(calls()) == 6


def test_a_stored_answer_that_cannot_be_read_is_asked_for_again(here: Path) -> None:
    target = FunctionTarget(function=agent, label="agent", version="1")
    first = evaluate(cases(2), SCORERS, target=target, ledger="l.db")
    with closing(sqlite3.connect("l.db")) as connection, connection:
        connection.execute("UPDATE answers SET reply = '{\"answer\": 3}'")
    again = evaluate(cases(2), SCORERS, target=target, ledger="l.db")
    assert len(calls()) == 4
    assert table(first) == table(again)


def test_a_failure_of_the_target_is_told_from_one_of_the_scorer(here: Path) -> None:
    run = run_it("l.db", 30)
    failures = {(r.sample_id, r.trial) for r in run if isinstance(r.outcome, Failed)}
    assert failures == {(f"q{n}", t) for n in range(30) for t in (1, 2, 3, 4) if chance(f"question {n}", t) < 0.1}
    assert run.target is not None
    assert run.target.failed == len(failures)
    assert [s for s in run.samples or () if (s.id, s.trial) in failures and s.output is not None] == []
    assert isinstance(next(iter(run.samples or ())), Sample)
