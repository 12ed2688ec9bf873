"""Runs on Ray with two local workers give what one process gives (`make test-ray`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import evalstone
from evalstone import ConfigError, evaluate
from evalstone.scale.ray_engine import RayEngine

pytest.importorskip("ray")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
SCORERS = ["exact_match", "rouge_l", "answer_correctness"]


def written(folder: Path, rows: int) -> Path:
    path = folder / "d.jsonl"
    answers = ("Paris is the capital of France.", "Berlin", "42")
    lines = [{"output": answers[n % 3], "reference": answers[n % 2], "input": f"Question {n}?"} for n in range(rows)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_ray_gives_what_one_process_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another cluster isn't used unless it is named
    data = written(tmp_path, 500)
    one = evaluate(data, SCORERS, ledger=None)
    run = evaluate(data, SCORERS, engine="ray", out=tmp_path / "out", ledger=None)
    assert [line.interval for line in run.summary] == [line.interval for line in one.summary]
    assert [(r.key, r.scorer, r.outcome) for r in run.records] == [(r.key, r.scorer, r.outcome) for r in one.records]
    assert evalstone.read_run(tmp_path / "out") == run


OWN = """
from evalstone import Score, scorer

@scorer
def brief(output: str) -> Score:
    return Score(1.0 if len(output) < 10 else 0.0)
"""


def test_own_code_beside_a_file_is_scored_and_thresholds_decide_the_status(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    written(folder, 30)
    (folder / "brief_scorers.py").write_text(OWN)
    settings = (
        'data = "d.jsonl"\nscorers = "brief_scorers.py:brief"\nengine = "ray"\nout = "out"\nmin = { brief = 0.9 }\n'
    )
    (folder / "run.toml").write_text(settings)
    command = [sys.executable, "-m", "evalstone", "run", "project/run.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "Gate: ✕ fail" in done.stdout
    assert (folder / "out" / "gates.jsonl").read_text().count("\n") == 1
    assert evalstone.read_run(folder / "out")["brief"].mean == pytest.approx(20 / 30)


def test_what_cannot_be_sent_is_refused() -> None:
    class Local(evalstone.Scorer):
        name = "local"

        def score(self, *, output: str) -> evalstone.Score:
            return evalstone.Score(0.0)

    engine = RayEngine()
    message = (
        r"^x can't be sent to other processes: its class .*Local is defined in a function, .*; define it in a module"
    )
    with pytest.raises(ConfigError, match=message):
        engine.check_sendable(Local(), "x")
    with pytest.raises(
        ConfigError, match=r"^x can't be sent to other processes: TypeError: cannot pickle '_thread.lock'"
    ):
        engine.check_sendable([threading.Lock()], "x")


def test_a_worker_that_is_killed_is_replaced_and_its_block_begun_again(tmp_path: Path) -> None:
    data, out = written(tmp_path, 3000), tmp_path / "out"
    command = [sys.executable, "-m", "evalstone", "run", str(data), "--engine", "ray", "--out", str(out), "--json"]
    process = subprocess.Popen([*command, "-s", "answer_correctness"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killed, until = 0, time.monotonic() + 300
    while process.poll() is None and time.monotonic() < until:
        if killed < 3 and [*out.glob("blocks/*.parquet")]:
            workers = subprocess.run(
                ["pgrep", "-f", "ray::_Worker"], capture_output=True, text=True, check=False
            ).stdout.split()
            if workers:
                os.kill(int(workers[0]), signal.SIGKILL)
                killed += 1
        time.sleep(0.5)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    run, one = evalstone.read_run(out), evaluate(data, "answer_correctness", ledger=None)
    assert json.loads(printed)["scorers"][0]["n_score"] == 3000
    assert [line.interval for line in run.summary] == [line.interval for line in one.summary]
    assert len(run.records) == 3000
    assert b"Traceback" not in errors


@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_a_process_of_ray_that_is_killed_ends_the_run_and_the_same_command_resumes_it(
    tmp_path: Path, name: str
) -> None:
    data, out = written(tmp_path, 3000), tmp_path / "out"
    command = [sys.executable, "-m", "evalstone", "run", str(data), "--engine", "ray", "--out", str(out)]
    command += ["-s", "answer_correctness"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < until and not [*out.glob("blocks/*.parquet")]:
        time.sleep(0.05)
    own = ["pgrep", "-P", str(process.pid), "-f", f"/{name} "]
    for pid in subprocess.run(own, capture_output=True, text=True, check=True).stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors.decode()
    assert printed == b""
    said = f"evalstone: Ray's process {name} has ended on this machine; it may have been killed. "
    assert f"{said}Finished blocks are in {out}; rerun the same command to resume.\n" in errors.decode()
    finished = {file.name: file.stat().st_mtime_ns for file in out.glob("blocks/*.parquet")}
    subprocess.run(command, check=True, capture_output=True)
    assert finished.items() <= {file.name: file.stat().st_mtime_ns for file in out.glob("blocks/*.parquet")}.items()
    run, one = evalstone.read_run(out), evaluate(data, "answer_correctness", ledger=None)
    assert [(r.key, r.outcome) for r in run.records] == [(r.key, r.outcome) for r in one.records]


def test_evaluate_refuses_what_cannot_be_sent_before_anything_is_read(tmp_path: Path) -> None:
    class Local(evalstone.Scorer):
        name = "local"

        def score(self, *, output: str) -> evalstone.Score:
            return evalstone.Score(0.0)

    with pytest.raises(ConfigError, match=r"^the scorer Local can't be sent to other processes: its class .*Local is"):
        evaluate(written(tmp_path, 3), Local(), engine="ray", out=tmp_path / "out", ledger=None)
    assert not (tmp_path / "out").exists()


FATAL = """
import os
from pathlib import Path
from evalstone import Score, scorer

@scorer
def fatal(output: str) -> Score:
    with Path("{}").open("a") as log:
        log.write("x")
    os._exit(1)
"""


def test_a_block_that_kills_its_workers_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"output": "a"}\n')
    (tmp_path / "fatal_scorers.py").write_text(FATAL.format(tmp_path / "log"))
    command = [sys.executable, "-m", "evalstone", "run", "d.jsonl", "-s", "fatal_scorers.py:fatal", "--out", "out"]
    done = subprocess.run(
        [*command, "--engine", "ray"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 3, done.stderr
    assert "a worker of Ray failed: " in done.stderr
    assert done.stderr.endswith("Finished blocks are in out; rerun the same command to resume.\n")
    assert "Traceback" not in done.stderr
    assert 2 <= len((tmp_path / "log").read_text()) <= 8


def test_a_signal_stops_the_run_and_its_workers(tmp_path: Path) -> None:
    data, out = written(tmp_path, 3000), tmp_path / "out"
    command = [sys.executable, "-m", "evalstone", "run", str(data), "--engine", "ray", "--out", str(out)]
    process = subprocess.Popen([*command, "-s", "answer_correctness"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 200
    while process.poll() is None and time.monotonic() < until and not [*out.glob("blocks/*.parquet")]:
        time.sleep(0.05)
    process.terminate()
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert printed == b""
    assert errors.decode() == f"Stopped. Finished blocks are in {out}; rerun the same command to resume.\n"
    for _ in range(100):
        if subprocess.run(["pgrep", "-f", "ray::_Worker"], capture_output=True, check=False).returncode:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("workers go on")
