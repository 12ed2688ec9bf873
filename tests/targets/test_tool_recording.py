"""The file of recorded tool calls: what a killed process leaves, what is no recording, and switching by a setting."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Run, evaluate
from evalstone._core.files import lock
from evalstone._core.json import content_hash
from evalstone.errors import DataError
from evalstone.targets import Tools
from evalstone.targets.tool_recording import RecordedCall, RecordedLine, Recorder, Recording, argument_data

ROOT = Path(__file__).parents[2]
CASES = [{"id": f"q{n}", "input": f"question {n}"} for n in range(40)]
APP = """
import os, time
from evalstone.targets import Tools

tools = Tools()

@tools
def search(query):
    with open("calls", "a") as file:
        file.write(query + chr(10))
    time.sleep(float(os.environ.get("SLOW", "0")))
    return [query, os.urandom(4).hex()]

@tools
def fetch(url):
    return url * 2

def agent(*, input):
    found = search(query=input)
    return fetch(found[1]) + found[0]
"""


def call(tool: str = "search", **arguments: Any) -> RecordedCall:
    return RecordedCall(tool=tool, arguments=arguments, seconds=0.5, finished=True, result="r")


def line(sample: str, thread: str, *calls: RecordedCall, turn: int = 1, began: int = 1) -> RecordedLine:
    return RecordedLine(sample_id=sample, trial=1, thread=thread, turn=turn, began=began, calls=calls)


def recording(path: Path) -> list[str]:
    """A recording of three answers; its lines."""
    recorder = Recorder(path)
    for sample in ("a", "b", "c"):
        recorder.add(line(sample, f"thread {sample}", call(query=sample)))
    return path.read_text().splitlines(keepends=True)


def tool(query: str) -> str:
    raise AssertionError("called live")


def replayed(path: Path, *samples: str) -> Run:
    search = Tools.replay(path)(tool, name="search")
    cases = [{"id": sample, "input": sample} for sample in samples]
    return evaluate(cases, "contains(expected=r)", target=lambda *, input: search(query=input), ledger=None)


def problems(run: Run) -> list[str]:
    return [record.outcome.error for record in run if isinstance(record.outcome, Failed)]


def test_a_sample_without_an_id_that_is_not_recorded_fails_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recording(path)
    search = Tools.replay(path)(tool, name="search")
    run = evaluate([{"input": "a"}], "contains(expected=r)", target=lambda *, input: search(query=input), ledger=None)
    (problem,) = problems(run)
    assert f"not recorded in {path} (" in problem
    assert "default ID" in problem


@pytest.mark.parametrize("left", [1, 5, 12, 60, -3, -2])
def test_a_line_whose_writer_was_killed_is_not_there_and_the_next_one_is_whole(tmp_path: Path, left: int) -> None:
    path = tmp_path / "calls.jsonl"
    lines = recording(path)
    path.write_text("".join(lines[:2]) + lines[2][:left])
    run = replayed(path, "a", "b", "c")
    (problem,) = problems(run)
    assert re.search(f"'c', trial 1, .* recorded in {path}$", problem)
    Recorder(path).add(line("d", "t", call(query="d")))
    assert path.read_text().splitlines(keepends=True)[:2] == lines[:2]
    assert len(path.read_text().splitlines()) == 3
    assert problems(replayed(path, "a", "b", "d")) == []


def test_a_long_line_whose_writer_was_killed_is_cut_off_whole(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    lines = recording(path)
    path.write_text("".join(lines) + '{"format": "tool_calls/1", "sample_id": "d", "calls": "' + "x" * 200_000)
    Recorder(path).add(line("e", "t", call(query="e")))
    assert path.read_text().splitlines(keepends=True)[:3] == lines
    assert problems(replayed(path, "a", "b", "c", "e")) == []


def test_a_whole_last_line_without_its_end_is_there_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    lines = recording(path)
    path.write_text("".join(lines)[:-1])
    assert problems(replayed(path, "a", "b", "c")) == []
    Recorder(path).add(line("d", "t", call(query="d")))
    assert path.read_text().splitlines(keepends=True)[:3] == lines
    assert problems(replayed(path, "a", "b", "c", "d")) == []


@pytest.mark.parametrize("changed", [{}, {"result": 1, "error": {"kinds": ["ValueError"], "text": "no"}}])
def test_a_call_that_finished_has_a_result_or_an_error(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = tmp_path / "calls.jsonl"
    row = json.loads(recording(path)[0])
    del row["calls"][0]["result"]
    row["calls"][0].update(changed)
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"line 1: .* \(calls.0 .*either"):
        Tools.replay(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("notes without an end", "line 1: not the tool calls of an answer"),
        (
            '{"format": "tool_calls/1", "sample_id": "a", "trial": 1}\n',
            "line 1: not the tool calls of an answer .*thread",
        ),
        (
            '{"format": "tool_calls/1", "sample_id": "a", "trial": "1", "thread": "t", "turn": 1, "began": 1, '
            '"calls": []}\n',
            "line 1: .*trial",
        ),
        (
            '{"format": "tool_calls/1", "sample_id": "a", "trial": 1, "thread": "t", "turn": 1, "began": 1, '
            '"calls": [{"tool": "x"}]}\n',
            r"line 1: .*calls\.0",
        ),
        ("[" * 100_000 + "\n", "line 1: not the tool calls"),
        ('{"format": "tool_calls/1", "sample_id": torn\n{"sample_id": "b"}', "line 1: not the tool calls"),
    ],
)
def test_what_is_no_recording_is_refused_and_stays_as_it_is(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(text)
    for use in (Tools.record, Tools.replay):
        with pytest.raises(DataError, match=problem):
            use(path)
    assert path.read_text() == text


def test_an_attempt_takes_the_place_of_earlier_ones_from_its_first_turn_on(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorder = Recorder(path)

    def rest(turn: int, began: int = 1) -> list[str]:
        return re.findall("query='(.*?)'", Recording(path).of("a", 1, began).rest(turn))

    recorder.add(line("a", "first", call(query="one"), call(query="two")))
    recorder.add(line("b", "other"))
    recorder.add(line("a", "first", call(query="three"), turn=2))
    assert (rest(1), rest(2)) == (["one", "two"], ["one", "two", "three"])
    # One that goes on with the second turn, after a crash.
    recorder.add(line("a", "second", call(query="four"), turn=2, began=2))
    recorder.add(line("a", "second", call(query="five"), turn=3, began=2))
    assert (rest(2), rest(3)) == (["one", "two", "four"], ["one", "two", "four", "five"])
    assert (rest(2, 2), rest(3, 3)) == (["four"], ["five"])
    # One that begins again, and calls nothing in its first turn.
    recorder.add(line("a", "third", call(query="six"), turn=2))
    assert (rest(1), rest(2)) == ([], ["six"])
    # One that goes on with a turn in which nothing was called has no calls of the turns before.
    recorder.add(line("a", "third", call(query="seven"), turn=4))
    assert (rest(4, 3), rest(5, 5)) == (["seven"], [])


def test_a_recording_that_changes_during_the_run_fails_and_does_not_mix_calls(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    lines = recording(path)
    search = Tools.replay(path)(tool, name="search")
    cases = [{"id": "a", "input": "a"}]
    of_another_attempt = "".join(lines).replace("thread a", "thread x")
    for text in ("".join(reversed(lines)), "".join(lines)[30:], of_another_attempt, ""):
        path.write_text(text)
        run = evaluate(cases, "contains(expected=r)", target=lambda *, input: search(query=input), ledger=None)
        assert [f"{path} has changed since" in problem for problem in problems(run)] == [True]
    path.unlink()
    run = evaluate(cases, "contains(expected=r)", target=lambda *, input: search(query=input), ledger=None)
    assert "the run began: " in problems(run)[0]


def test_the_content_is_part_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recording(path)
    before = Tools.replay(path).source.identity
    assert Tools.replay(path).source.identity == before
    assert Tools.replay(path, strict=True).source.identity == f"strict {before}"
    Recorder(path).add(line("d", "t"))
    assert Tools.replay(path).source.identity != before
    mocks = [{"a": 1}, {"a": 2}, {"b": 1}, {"a": lambda: 1}]
    assert len({Tools.mock(each).source.identity for each in (*mocks, {"a": 1})}) == len(mocks)


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorders = [Recorder(path), Recorder(path)]

    def add(number: int) -> None:
        recorders[number % 2].add(line(f"s{number}", "t", call(query="x" * 9000)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(100)))
    assert sorted(json.loads(line)["sample_id"] for line in path.read_text().splitlines()) == sorted(
        f"s{n}" for n in range(100)
    )
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_recorder_waits_for_another_process_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorder = Recorder(path)
    with ThreadPoolExecutor(1) as threads:
        with path.open("ab") as other:
            lock(other)
            adding = threads.submit(recorder.add, line("a", "t"))
            time.sleep(0.1)
            assert path.read_bytes() == b""
        adding.result(5)
    assert path.read_bytes().startswith(b'{"format": "tool_calls/1", "sample_id": "a"')


def test_sets_are_compared_whatever_their_order() -> None:
    words = [f"word {number}" for number in range(20)]
    ordered = sorted(words, key=content_hash)
    assert argument_data(set(words)) == argument_data(dict.fromkeys(words).keys()) == ordered


def test_calls_that_are_too_long_for_a_line_fail_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.001")
    echo = Tools.record(tmp_path / "calls.jsonl")(lambda text: text, name="echo")
    run = evaluate(
        [{"id": "a", "input": "x" * 600}], "contains(expected=x)", target=lambda *, input: echo(input), ledger=None
    )
    (problem,) = problems(run)
    assert all(fact in problem for fact in ("1 tool call", "'a'", "0.001 MB", "EVALSTONE_MAX_ROW"))


def test_a_folder_that_is_gone_fails_the_trial(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    echo = Tools.record(tmp_path / "sub" / "calls.jsonl")(lambda text: text, name="echo")
    (tmp_path / "sub").rmdir()
    run = evaluate(
        [{"id": "a", "input": "x"}], "contains(expected=x)", target=lambda *, input: echo(input), ledger=None
    )
    assert "cannot write" in problems(run)[0]


def write_app(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(APP)
    (folder / "d.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))


def live_calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.slow
def test_a_recording_that_was_killed_and_resumed_replays_the_answers_of_the_run(tmp_path: Path) -> None:
    write_app(tmp_path, "killed_app")
    options = ["-s", "contains(expected=question)", "-q", "--target", "killed_app:agent"]
    command = [sys.executable, "-m", "evalstone", "run", "d.jsonl", *options]
    record = [*command, "--target-tools", "record:calls.jsonl", "-o", "live"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SLOW": "0.05"}
    process = subprocess.Popen(
        record, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while len(live_calls(tmp_path)) < 18 and time.monotonic() < deadline:
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 18 <= len(live_calls(tmp_path)) < 40
    environment["SLOW"] = "0"
    subprocess.run(record, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    times = Counter(live_calls(tmp_path))
    assert set(times) == {case["input"] for case in CASES}
    assert times.total() <= 40 + 8
    replay = [*command, "--target-tools", "replay:calls.jsonl", "-o", "again"]
    subprocess.run(replay, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    assert Counter(live_calls(tmp_path)) == times
    live, again = (
        {
            row["id"]: row["output"]
            for row in map(json.loads, (tmp_path / out / "samples.jsonl").read_text().splitlines())
        }
        for out in ("live", "again")
    )
    assert live == again
