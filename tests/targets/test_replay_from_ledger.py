"""Runs in a ledger, and runs as values, as targets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Run, StopSignal, evaluate, read_run
from evalstone.errors import ConfigError
from evalstone.ledger.copy import export_rows, import_rows
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.results.files import write_run
from evalstone.targets import ReplayTarget, parse_target
from tests.ledger.rows import placed
from tests.targets.test_replay import BORN, agent

CASES: list[dict[str, Any]] = [{"id": f"q{n}", "input": f"When? ({n})", "output": "old"} for n in range(4)]


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def live(ledger: str) -> Run:
    return evaluate(CASES, BORN, target=agent, trials=3, ledger=ledger, name="baseline")


def table(run: Run) -> list[Any]:
    failed = (record.outcome.error if isinstance(record.outcome, Failed) else "" for record in run)
    return [
        (record.sample_id, record.trial, record.value, error.partition(" (")[0])
        for record, error in zip(run, failed, strict=True)
    ]


def answers(run: Run) -> list[Any]:
    return [(sample.output, sample.messages, sample.context, sample.state) for sample in run.samples or ()]


@pytest.mark.parametrize("named", ["id", "baseline", "last"])
def test_a_run_in_the_ledger_is_replayed_by_its_id_its_name_or_as_the_last(ledger: str, live: Run, named: str) -> None:
    address = f"replay:{live.id if named == 'id' else named}"
    run = evaluate(CASES, BORN, target=address, trials=3, ledger=ledger)
    assert table(run) == table(live)
    assert answers(run) == answers(live)
    assert run.cost == 0
    assert run.target is not None
    assert run.target.identity.startswith(f"replay:{live.id}@")
    recorded = next(iter(run.samples or ())).metadata["target"]["trace"]["recorded"]
    assert (recorded["cost"], recorded["trace"]) == (0.5, "t")


def test_a_run_its_folder_and_the_ledger_are_one_content(ledger: str, live: Run, tmp_path: Path) -> None:
    write_run(live, tmp_path / "run")
    stored = read_run(live.id, ledger=ledger)
    targets = [ReplayTarget(run=live), ReplayTarget(run=stored), ReplayTarget(folder=str(tmp_path / "run"))]
    assert len({target.version for target in targets}) == 1
    assert [target.name for target in targets] == [f"replay:{live.id}", f"replay:{live.id}", f"replay:{tmp_path}/run"]
    for target in targets:
        run = evaluate(CASES, BORN, target=target, trials=3, ledger=None)
        assert (table(run), answers(run)) == (table(live), answers(live))


def test_a_run_without_a_target_is_replayed_too(ledger: str) -> None:
    first = evaluate(CASES[:2], BORN, ledger=ledger)
    run = evaluate(CASES[:3], BORN, target=f"replay:{first.id}", ledger=ledger)
    assert [record.value for record in run] == [0, 0, None]
    assert re.search(f"'q2', trial 1, .* in run {first.id}$", table(run)[2][3])


def test_a_folder_comes_before_a_run_of_that_name(
    ledger: str, live: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = evaluate(CASES[:1], BORN, ledger=None)
    write_run(other, "baseline")
    run = evaluate(CASES[:1], BORN, target="replay:baseline", ledger=ledger)
    assert [sample.output for sample in run.samples or ()] == ["old"]


def test_the_last_run_and_a_name_are_never_the_replay_itself(ledger: str, live: Run) -> None:
    run = live
    for address in ("replay:last", "replay:baseline"):
        for _ in range(2):
            run = evaluate(CASES, BORN, target=address, trials=3, ledger=ledger, name="baseline")
            assert run.target is not None
            assert run.target.identity.startswith(f"replay:{live.id}@")
            assert table(run) == table(live)
    again = evaluate(CASES, BORN, target=f"replay:{run.id}", trials=3, ledger=ledger)
    assert table(again) == table(live)


def test_an_interrupted_replay_of_the_last_run_goes_on(ledger: str, live: Run) -> None:
    stop = StopSignal()

    def on_record(record: Any) -> None:
        stop.request("enough")

    target: dict[str, Any] = {"address": "replay:last", "max_concurrency": 1}
    options: dict[str, Any] = {"target": target, "trials": 3, "ledger": ledger, "concurrency": 1}
    part = evaluate(CASES, BORN, stop=stop, on_record=on_record, **options)
    assert 0 < len(part) < 12
    whole = evaluate(CASES, BORN, **options)
    assert whole.id == part.id
    assert whole.resumed > 0
    assert table(whole) == table(live)


def test_what_was_interrupted_replays_as_far_as_it_came(ledger: str) -> None:
    stop = StopSignal()
    target = {"function": agent, "max_concurrency": 1}

    def on_record(record: Any) -> None:
        stop.request("enough")

    part = evaluate(CASES, BORN, target=target, ledger=ledger, stop=stop, on_record=on_record, concurrency=1)
    run = evaluate(CASES, BORN, target=f"replay:{part.id}", ledger=ledger)
    rows = table(run)
    assert rows[0][2] == 1
    assert any("not recorded" in row[3] or "has no answer" in row[3] for row in rows)


def missing(ledger: str, live: Run) -> Iterator[tuple[str, str | None, str]]:
    yield "replay:nothing", ledger, 'there is no results folder "nothing", and no run of that id or name in the ledger'
    yield f"replay:{live.id}", None, f"there is no results folder '{live.id}' to replay, and no ledger to look for"
    yield (
        f"replay:{live.id}",
        f"{ledger}.other",
        "there is no results folder .*, and no run of that id or name in the l",
    )
    yield "replay:last", f"{ledger}.other", "there are no saved runs in the ledger"


def test_a_run_that_can_t_be_found_is_refused(ledger: str, live: Run) -> None:
    for address, where, problem in missing(ledger, live):
        with pytest.raises(ConfigError, match=problem):
            evaluate(CASES, BORN, target=address, ledger=where)
    with pytest.raises(ConfigError, match=f"{live.id} has 3 of the 4 .* 3$"):
        evaluate(CASES, BORN, target=f"replay:{live.id}", trials=4, ledger=ledger)


def test_a_run_whose_samples_or_answers_are_gone_is_refused(ledger: str, live: Run, tmp_path: Path) -> None:
    moved, bare = (f"sqlite:///{tmp_path}/{name}.db" for name in ("moved", "bare"))
    with Ledger(ledger) as opened:
        rows = list(export_rows(opened))
    with Ledger(moved) as other:
        import_rows(other, placed(row for row in rows if row["type"] not in ("block", "item")))
    with pytest.raises(ConfigError, match=f"{live.id} .*: its samples"):
        evaluate(CASES, BORN, target=f"replay:{live.id}", trials=3, ledger=moved)
    failures = [row for row in rows if row["type"] == "record" and row["body"]["sample_id"] == "q1"]
    with Ledger(bare) as other:
        import_rows(other, placed(row for row in rows if row["type"] != "answer" and row not in failures))
    with pytest.raises(ConfigError, match=f"{live.id} .* no longer"):
        evaluate(CASES, BORN, target=f"replay:{live.id}", trials=3, ledger=bare)
    with Ledger(ledger) as opened:
        prune(opened, older_than=timedelta(seconds=-60), delete=True)
    with pytest.raises(ConfigError, match="no run of"):
        evaluate(CASES, BORN, target=f"replay:{live.id}", trials=3, ledger=ledger)


def test_the_target_is_made_with_its_settings() -> None:
    run = evaluate(CASES[:1], BORN, ledger=None)
    target = parse_target({"address": "replay:any", "max_concurrency": 3}, find_run=lambda name: run)
    assert (target.limits.max_concurrency, target.name) == (3, f"replay:{run.id}")
