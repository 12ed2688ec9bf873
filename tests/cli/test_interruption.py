"""A run that is stopped, however roughly, goes on with the same command and pays for nothing twice."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstone import StopSignal, read_run
from evalstone.results.endings import INTERRUPTED
from tests.cli.conftest import Evalstone
from tests.serving import Response, Server, completion, obliging, serving

SAMPLES = 30
CONCURRENCY = 4
MOMENTS = 10

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX"),
]


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Processes inherit what is ignored, such as SIGHUP where the tests run with nohup."""
    before = {sign: signal.signal(sign, signal.SIG_DFL) for sign in (signal.SIGHUP, signal.SIGTERM)}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


WHILE_IMPORTED = """
import sys
from evalstone.cli import main

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["report", "nothing"]
main()
"""


@pytest.mark.parametrize("module", ["click", "evalstone.cli.app", "evalstone.cli.results", "evalstone.run.saved"])
def test_ctrl_c_before_a_command_has_begun_ends_it_without_a_traceback(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", WHILE_IMPORTED.replace("sys.argv[1]", repr(module), 1)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (130, "")


def command(server: Server, *more: str) -> list[str]:
    options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", server.url, "--ledger", "l.db", "--out", "res"]
    return [sys.executable, "-m", "evalstone", "run", "data.jsonl", *options, "--concurrency", str(CONCURRENCY), *more]


def slow(request: dict[str, object], number: int) -> Response:
    return Response(body=obliging(request, number), delay=0.02)


def write_data(folder: Path, samples: int = SAMPLES) -> None:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(samples)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_ctrl_c_while_data_are_read_says_that_nothing_was_asked(
    tmp_path: Path,
) -> None:
    write_data(tmp_path)
    script = "import evalstone; from evalstone.cli import main\n"
    script += "def load(*_, **__): raise KeyboardInterrupt\nevalstone.load = load; main()"
    command = [sys.executable, "-c", script, "run", "data.jsonl", "-s", "exact_match"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 130
    assert re.fullmatch(r"Interrupted .* data\.jsonl .*\n", done.stderr)
    assert "nothing was asked" in done.stderr


def interrupted(folder: Path, server: Server, after: int, *signs: signal.Signals) -> tuple[int, str]:
    """Start a run and stop it once the server has had so many more requests; its exit code and what it said."""
    process = subprocess.Popen(command(server), cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wanted = len(server.requests) + after
    try:
        deadline = time.monotonic() + 60
        while len(server.requests) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        told = ""
        for sign in signs:
            process.send_signal(sign)
            while sign != signal.SIGKILL and "again to force" not in told and process.stderr is not None:
                told += (line := process.stderr.readline())  # signals that come too soon after each other are one
                assert line, f"it ended before it said that it stops: {told}"
        told += process.communicate(timeout=30)[1]
    finally:
        process.kill()
    return process.returncode, told


def outcomes(folder: Path) -> list[tuple[str, float]]:
    lines = (folder / "res" / "records.jsonl").read_text().splitlines()
    return [(row["sample_id"], row["value"]) for row in map(json.loads, lines)]


WHOLE = [(str(n), 1.0) for n in range(SAMPLES)]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_under_way_and_nothing_of_it_is_lost(
    tmp_path: Path, sign: signal.Signals, evalstone: Evalstone
) -> None:
    write_data(tmp_path)
    with serving(slow) as server:
        code, told = interrupted(tmp_path, server, 25, sign)
        assert code == 130
        assert f"{'Ctrl-C' if sign == signal.SIGINT else sign.name} again to force" in told
        assert "same command" in told
        assert "Traceback" not in told
        saved = read_run(tmp_path / "res")
        assert saved.ending is INTERRUPTED
        assert f"{len(saved)} of {SAMPLES} results are saved" in told
        done = evalstone(*command(server)[3:])
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "res" / "summary.json").read_text())["resumed"] > 0
        assert len(server.requests) == 2 * SAMPLES
    assert outcomes(tmp_path) == WHOLE


@pytest.mark.parametrize("signs", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)])
def test_a_second_signal_stops_at_once(tmp_path: Path, signs: tuple[signal.Signals, ...], evalstone: Evalstone) -> None:
    write_data(tmp_path)
    with serving(lambda request, number: Response(body=obliging(request, number), delay=0.5)) as server:
        code, told = interrupted(tmp_path, server, 5, *signs)
        assert code == 130
        assert "Stopped." in told
        assert "Traceback" not in told
        server.behaviour = obliging
        assert evalstone(*command(server)[3:]).returncode == 0
        assert len(server.requests) <= 2 * SAMPLES + 2 * CONCURRENCY
    assert outcomes(tmp_path) == WHOLE


def test_a_run_killed_at_ten_random_moments_gives_the_numbers_of_an_undisturbed_one(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    samples = 150
    write_data(tmp_path, samples)
    rng = random.Random(7)
    kills = 0
    with serving(lambda request, number: Response(body=obliging(request, number), delay=0.005)) as server:
        for _ in range(MOMENTS):
            code, _ = interrupted(tmp_path, server, rng.randint(1, 20), signal.SIGKILL)
            kills += code == -signal.SIGKILL
        done = evalstone(*command(server)[3:])
        assert done.returncode == 0, done.stderr
        assert kills >= MOMENTS // 2
        assert 2 * samples <= len(server.requests) <= 2 * samples + kills * CONCURRENCY
    assert outcomes(tmp_path) == [(str(n), 1.0) for n in range(samples)]


def test_a_spent_budget_ends_the_run_well_with_a_part_and_its_interval(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "eval.toml").write_text(
        'data = "data.jsonl"\nscorers = ["faithfulness"]\nledger = "l.db"\nout = "res"\nconcurrency = 2\n'
    )
    with serving() as server:
        judge = f'[judge]\nmodel = "vllm/test"\nbase_url = "{server.url}"\nprices = [1.0, 1.0]\n'
        with (tmp_path / "eval.toml").open("a") as file:
            file.write(judge)
        arguments = [sys.executable, "-m", "evalstone", "run", "eval.toml", "--budget"]
        part = subprocess.run([*arguments, "0.005"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert part.returncode == 3, part.stdout + part.stderr
        assert "of 30 samples" in part.stdout
        # Which call is the first that does not fit depends on the order in which the answers arrive.
        assert re.search(r"next call \(about \$0\.00\d\d\)", part.stderr)
        assert "higher --budget" in part.stderr
        summary = json.loads((tmp_path / "res" / "summary.json").read_text())
        assert 0 < summary["scorers"][0]["n_score"] < SAMPLES
        assert 0 < summary["cost"] <= 0.005
        assert summary["stop_reason"]
        asked = len(server.requests)
        whole = subprocess.run([*arguments, "5"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert whole.returncode == 0, whole.stdout + whole.stderr
        assert len(server.requests) == 2 * SAMPLES
        assert asked < 2 * SAMPLES


def test_a_judge_that_fails_every_time_ends_the_run_with_one_message(tmp_path: Path, evalstone: Evalstone) -> None:
    write_data(tmp_path, 200)
    with serving(lambda _request, _number: completion("I would rather not")) as server:
        done = evalstone(*command(server)[3:])
        assert len(server.requests) < 100
    assert done.returncode == 3
    assert "the first 10 questions" in done.stderr
    assert "same command" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["audit", "data.jsonl"], ["calibrate", "--labels", "data.jsonl"]])
def test_ctrl_c_before_the_first_score_of_a_judges_test_is_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], evalstone: Evalstone
) -> None:
    class Interrupted(StopSignal):
        def __init__(self, *, shuffled: bool = False) -> None:
            super().__init__(shuffled=shuffled)
            self.request("interrupted", INTERRUPTED)

    monkeypatch.setattr("evalstone.StopSignal", Interrupted)
    rows = [{"id": str(n), "output": f"answer {n}", "context": [f"passage {n}"], "label": n % 2} for n in range(8)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = evalstone(*arguments)
    assert done.returncode == 130
    assert re.fullmatch(r"Interrupted; .* same command .*\n", done.stderr)


def test_a_signal_that_is_sent_twice_at_once_is_one(tmp_path: Path, evalstone: Evalstone) -> None:
    write_data(tmp_path)
    with serving(slow) as server:
        code, told = interrupted(tmp_path, server, 25, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
        assert (code, "Stopped." in told) == (130, False)
        assert evalstone(*command(server)[3:]).returncode == 0
        assert len(server.requests) == 2 * SAMPLES


def test_a_closed_terminal_ends_no_run_that_its_caller_shields_from_it(tmp_path: Path) -> None:
    write_data(tmp_path)
    with serving(slow) as server:
        start = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {RUN_MAIN}"
        process = subprocess.Popen([sys.executable, "-c", start, *command(server)[3:]], cwd=tmp_path)
        while len(server.requests) < 5 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
        assert len(server.requests) == 2 * SAMPLES


RUN_MAIN = "from evalstone.cli import main; main()"
SCORE = ["score", "-s", "faithfulness", "--output", "one", "--context", "two", "--ledger", "l.db", "-j", "vllm/test"]


@pytest.mark.parametrize(
    "arguments",
    [
        SCORE,
        ["audit", "data.jsonl", "--ledger", "l.db", "-j", "vllm/test", "--draw", "10"],
        ["calibrate", "--labels", "data.jsonl", "--ledger", "l.db", "-j", "vllm/test"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_call_of_an_interrupted_command_is_paid_for_twice(
    tmp_path: Path, arguments: list[str], evalstone: Evalstone
) -> None:
    rows = [{"id": str(n), "output": f"answer {n}", "context": [f"passage {n}"], "label": n % 2} for n in range(12)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(server: Server, *more: str) -> list[str]:
        return [sys.executable, "-m", "evalstone", *arguments, "--base-url", server.url, *more]

    with serving(lambda request, number: Response(body=obliging(request, number), delay=0.2)) as server:
        process = subprocess.Popen(run(server), cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not server.requests and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=30)[1]
        # The one sample of `score` is in flight, and finished.
        assert process.returncode == (0 if arguments is SCORE else 130), told
        assert "SIGTERM again" in told
        server.behaviour = obliging
        done = evalstone(*run(server)[3:])
        assert done.returncode == 0, done.stderr
        asked = len(server.requests)
        evalstone(*run(server, "--ledger", "new.db")[3:])
        assert len(server.requests) == 2 * asked > 2


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_any_command_ends_with_the_exit_code_of_an_interruption(
    tmp_path: Path, sign: signal.Signals, evalstone: Evalstone
) -> None:
    write_data(tmp_path)
    options = ["--ledger", "l.db", "--out", "res", "-s", "faithfulness"]
    assert evalstone("run", "data.jsonl", *options).returncode == 0
    arguments = ["annotate", "res"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evalstone", *arguments],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    printed = ""
    while "label>" not in printed and process.poll() is None:
        printed += process.stdout.read(1)
    process.send_signal(sign)
    told = process.communicate(timeout=30)[1]
    assert (process.returncode, told.strip()) == (130, "")


def test_a_terminal_that_is_closed_loses_nothing_that_was_paid_for(tmp_path: Path, evalstone: Evalstone) -> None:
    write_data(tmp_path)
    with serving(slow) as server:
        ours, theirs = pty.openpty()
        start = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {RUN_MAIN}"
        process = subprocess.Popen(
            [sys.executable, "-c", start, *command(server)[3:]],
            cwd=tmp_path,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        while len(server.requests) < 20 and process.poll() is None:
            time.sleep(0.005)
        os.close(ours)
        assert process.wait(30) == 130
        assert evalstone(*command(server)[3:]).returncode == 0
        assert len(server.requests) == 2 * SAMPLES


def test_ctrl_c_ends_a_run_whose_questions_wait_for_their_next_attempt(tmp_path: Path, evalstone: Evalstone) -> None:
    write_data(tmp_path)
    busy = Response(status=503, body={"error": {"message": "busy"}}, headers={"Retry-After": "300"})
    with serving(lambda _, __: busy) as server:
        began = time.monotonic()
        code, told = interrupted(tmp_path, server, CONCURRENCY, signal.SIGINT)
        assert time.monotonic() - began < 10  # most of it is Python's start
        assert (code, "same command" in told, "Traceback" in told) == (130, True, False)
        server.behaviour = obliging
        assert evalstone(*command(server)[3:]).returncode == 0
    assert outcomes(tmp_path) == WHOLE


@pytest.mark.parametrize("signals", [1, 2])
def test_results_that_are_being_written_are_written_unless_a_second_signal_forces_the_end(
    tmp_path: Path, signals: int
) -> None:
    write_data(tmp_path)
    (tmp_path / "res").mkdir()
    samples = tmp_path / "res" / "samples.jsonl"
    os.mkfifo(samples)  # which blocks its writer until it is read
    options = ["-s", "faithfulness", "--ledger", "l.db", "--out", "res", "-q"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evalstone", "run", "data.jsonl", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "res" / "records.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    told = [process.stderr.readline(), process.stderr.readline()]
    if signals == 2:
        process.send_signal(signal.SIGINT)
    else:
        samples.read_text()
    _, rest = process.communicate(timeout=60)
    assert told[0] == "\n"
    assert "results to res." in told[1]
    assert "Ctrl-C again" in told[1]
    run = read_run("last", ledger=tmp_path / "l.db")
    assert run.complete
    if signals == 2:
        assert process.returncode == 130
        assert re.fullmatch(rf"Stopped\. .* l\.db, run {run.id}\.\n", rest)
        assert not (tmp_path / "res" / "summary.json").exists()
    else:
        assert (process.returncode, rest) == (0, "")
        assert (tmp_path / "res" / "summary.json").exists()
