"""Recorded runs as targets."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, evaluate
from evalstone.errors import ConfigError
from evalstone.results.files import write_run
from evalstone.targets import Answer, ReplayTarget, parse_target
from evalstone.types import Message, ToolCall

BORN = "contains(expected='1815')"
CASES: list[dict[str, Any]] = [{"id": f"q{n}", "input": f"When? ({n})", "output": "an old answer"} for n in range(4)]


def agent(*, input: str, trial: int) -> Answer:
    if "(1)" in input and trial != 2:
        raise ValueError(f"down in trial {trial}")
    calls = [ToolCall(name="look_up", result=1815)]
    messages = [Message(role="assistant", content=f"1815, {trial}\u2028", tool_calls=calls)]
    return Answer(messages=messages, context=["one"], state={"n": trial}, cost=0.5, trace="t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(evaluate(CASES, BORN, target=agent, trials=3, ledger=None), tmp_path / "run1")
    return tmp_path / "run1"


def outcomes(run: Any) -> list[Any]:
    return [(record.sample_id, record.trial, record.value, getattr(record.outcome, "error", "")) for record in run]


def test_a_replayed_run_gives_the_same_records_and_costs_nothing(folder: Path) -> None:
    first = evaluate(CASES, BORN, target=agent, trials=3, ledger=None)
    again = evaluate(CASES, BORN, target=f"replay:{folder}", trials=3, ledger=None)
    strip = [(*rest, error.partition(" (")[0]) for *rest, error in outcomes(first)]
    assert [(*rest, error.partition(" (")[0]) for *rest, error in outcomes(again)] == strip
    assert sum(1 for record in again if isinstance(record.outcome, Failed)) == 2
    assert again.cost == 0
    for before, after in zip(first.samples or (), again.samples or (), strict=True):
        assert (before.output, before.messages, before.context, before.state) == (
            after.output,
            after.messages,
            after.context,
            after.state,
        )
    recorded = next(iter(again.samples or ())).metadata["target"]["trace"]["recorded"]
    assert (recorded["cost"], recorded["trace"]) == (0.5, "t")


def test_fewer_trials_are_the_first_ones_and_more_are_refused(folder: Path) -> None:
    run = evaluate(CASES[:1], BORN, target=f"replay:{folder}", ledger=None)
    assert [sample.output for sample in run.samples or ()] == ["1815, 1\u2028"]
    with pytest.raises(ConfigError, match=r"3 of the 4 trials .* 3$"):
        evaluate(CASES, BORN, target=f"replay:{folder}", trials=4, ledger=None)


def test_a_folder_without_answers_is_refused(folder: Path) -> None:
    for name in ("samples.jsonl", "records.jsonl"):
        (folder / name).write_text("")
    with pytest.raises(ConfigError, match="0 of the 1 trials"):
        evaluate(CASES, BORN, target=f"replay:{folder}", ledger=None)


def test_a_run_without_a_target_replays_the_answers_that_it_scored(tmp_path: Path) -> None:
    write_run(evaluate(CASES[:2], BORN, ledger=None), tmp_path)
    run = evaluate(CASES[:3], BORN, target=f"replay:{tmp_path}", ledger=None)
    assert [record.value for record in run] == [0, 0, None]
    assert re.search(f"'q2', trial 1, .* recorded in {tmp_path}$", outcomes(run)[2][3])


def test_a_sample_without_an_id_whose_content_changed_is_not_recorded_and_it_is_said_why(tmp_path: Path) -> None:
    write_run(evaluate([{"input": "When?", "output": "1815"}], BORN, ledger=None), tmp_path)
    same, changed = {"input": "When?", "output": "1815"}, {"input": "When?", "output": "1816"}
    assert evaluate([same], BORN, target=f"replay:{tmp_path}", ledger=None)[0].value == 1
    ((_, _, value, error),) = outcomes(evaluate([changed], BORN, target=f"replay:{tmp_path}", ledger=None))
    assert value is None
    assert "default ID" in error


def test_a_sample_that_was_not_answered_does_not_answer_with_its_old_output(folder: Path) -> None:
    lines = (folder / "samples.jsonl").read_text().split("\n")
    rows = [json.loads(line) for line in lines if line]
    rows[0]["metadata"].pop("target")
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = evaluate(CASES[:1], BORN, target=f"replay:{folder}", ledger=None)
    assert "'q0', trial 1, has no" in outcomes(run)[0][3]


def test_a_sample_whose_input_was_changed_is_not_answered(folder: Path) -> None:
    changed = [{**CASES[0], "input": "Where?"}, {**CASES[2], "reference": "another"}]
    first, second = outcomes(evaluate(changed, BORN, target=f"replay:{folder}", ledger=None))
    assert re.search("input of .*'q0' ", first[3])
    assert first[3].endswith(f" {folder}: 'When? (0)'")
    assert second[2] == 1


@pytest.mark.parametrize("where", ["folder", "run", "ledger"])
def test_a_sample_that_was_skipped_does_not_answer_with_what_the_run_before_was_answered(
    folder: Path, tmp_path: Path, where: str
) -> None:
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().split("\n") if line]
    rows = [row for row in rows if row.get("trial") in (None, 1)]
    assert "1815" in rows[0]["output"]
    assert "target" in rows[0]["metadata"]
    for row in rows:
        row.pop("trial", None)
    del rows[0]["input"], rows[0]["messages"]
    ledger = str(tmp_path / "skipped.db")

    def later(*, input: str) -> str:
        return "1912"

    run = evaluate(rows, BORN, target=later, ledger=ledger, name="second")
    write_run(run, tmp_path / "second")
    targets: dict[str, Any] = {
        "folder": f"replay:{tmp_path / 'second'}",
        "run": ReplayTarget(run=run),
        "ledger": "replay:second",
    }
    again = evaluate(rows, BORN, target=targets[where], ledger=ledger)
    assert again["contains"].mean == 0
    assert "'q0', trial 1, has no" in outcomes(again)[0][3]


def test_the_content_is_the_version(folder: Path, tmp_path: Path) -> None:
    target = parse_target(f"replay:{folder}")
    assert target.identity == f"replay:{folder}@{target.version}"
    assert parse_target(f"replay:{folder}").version == target.version
    shutil.copytree(folder, tmp_path / "copy")
    assert parse_target(f"replay:{tmp_path / 'copy'}").version == target.version
    text = (folder / "samples.jsonl").read_text()
    (folder / "samples.jsonl").write_text(text.replace("1815, 1", "1816, 1"))
    assert parse_target(f"replay:{folder}").version != target.version


def test_a_folder_that_changes_during_the_run_fails_and_does_not_mix_answers(folder: Path) -> None:
    target = parse_target(f"replay:{folder}")
    lines = (folder / "samples.jsonl").read_text().splitlines(keepends=True)
    (folder / "samples.jsonl").write_text("".join(reversed(lines)))
    errors = [error for *_, error in outcomes(evaluate(CASES[:1], BORN, target=target, ledger=None))]
    assert errors
    assert all("has changed since" in error or "no longer" in error for error in errors)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("samples.jsonl", None, "has no answers to replay: samples.jsonl is missing"),
        ("samples.jsonl", '{"id": "a", "output": 1}', r"samples.jsonl, line 1: output must be"),
        ("samples.jsonl", '{"id": "a"}\n{"id": "a"}', r"line 2: sample 'a' occurs twice"),
        ("samples.jsonl", "{", r"samples.jsonl, line 1: "),
        ("records.jsonl", "{}", r"records.jsonl, line 1: "),
        ("summary.json", "[", r"summary.json can't be read as a run"),
    ],
)
def test_what_is_no_recorded_run_is_refused(folder: Path, name: str, content: str | None, problem: str) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(ConfigError, match=problem):
        parse_target(f"replay:{folder}")


def test_forked_processes_replay_a_run_at_the_same_time() -> None:
    run = evaluate([{"id": f"q{n}", "output": f"{n}" * 50} for n in range(100)], BORN, ledger=None)
    target = ReplayTarget(run=run)

    def right() -> bool:
        async def all_right() -> bool:
            return all(
                [
                    (await target.call(sample, trial=1, thread="")).output == sample.output
                    for sample in run.samples or ()
                ]
            )

        return all(asyncio.run(all_right()) for _ in range(20))

    children = list[int]()
    for _ in range(2):
        if not (child := os.fork()):
            wrong = 1
            try:
                wrong = not right()
            finally:
                os._exit(wrong)
        children.append(child)
    ours = right()
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert ours
