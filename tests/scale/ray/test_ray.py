"""Runs on Ray with two local workers give what one process gives (`make test-ray`)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import evalstone
from evalstone import ConfigError, evaluate
from evalstone.scale.ray_engine import RayEngine
from tests.hostile_serving import http, serving_hostile

Cluster: TypeAlias = Any
pytest.importorskip("ray")
cluster_utils: Any = pytest.importorskip("ray.cluster_utils")
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


@contextlib.contextmanager
def nice() -> Generator[Callable[[object], int]]:
    yield lambda _: os.nice(0)


def test_workers_have_the_priority_of_the_run() -> None:
    with RayEngine() as engine:
        assert [*engine.map(nice, [None], ordered=True)] == [os.nice(0)]


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


def children(pid: int, pattern: str) -> list[int]:
    command = ["pgrep", "-P", str(pid), "-f", pattern]
    return [*map(int, subprocess.run(command, capture_output=True, text=True, check=False).stdout.split())]


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The workers of a run that has started Ray."""
    return [pid for raylet in children(process.pid, "/raylet ") for pid in children(raylet, "ray::_Worker")]


def test_a_worker_that_is_killed_is_replaced_and_its_block_begun_again(tmp_path: Path) -> None:
    data, out = written(tmp_path, 3000), tmp_path / "out"
    command = [sys.executable, "-m", "evalstone", "run", str(data), "--engine", "ray", "--out", str(out), "--json"]
    process = subprocess.Popen([*command, "-s", "answer_correctness"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killed, until = 0, time.monotonic() + 300
    while process.poll() is None and time.monotonic() < until:
        if killed < 3 and [*out.glob("blocks/*.parquet")] and (workers := workers_of(process)):
            os.kill(workers[0], signal.SIGKILL)
            killed += 1
        time.sleep(0.5)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    run, one = evalstone.read_run(out), evaluate(data, "answer_correctness", ledger=None)
    assert json.loads(printed)["scorers"][0]["n_score"] == 3000
    assert [line.interval for line in run.summary] == [line.interval for line in one.summary]
    assert len(run.records) == 3000
    assert b"Traceback" not in errors


@pytest.fixture
def cluster() -> Generator[Cluster]:
    """Two machines with a CPU each, of which the first is the head."""
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    processes = [each for node in cluster.list_all_nodes() for each in pids(node, "raylet")]
    yield cluster
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    cluster.shutdown()


def pids(node: Any, name: str) -> list[int]:
    return [info.process.pid for info in node.all_processes.get(name, [])]


SLOW = """
import time
from pathlib import Path
from evalstone import Score, scorer

@scorer
def slow(output: str) -> Score:
    if Path("{}").exists():
        time.sleep(2)
    return Score(len(output) / 40)
"""


@contextlib.contextmanager
def running(folder: Path, engine: str) -> Generator[subprocess.Popen[bytes]]:
    """A run on Ray that has written a block, and takes a minute."""
    written(folder, 1000)
    (folder / "slow").touch()
    (folder / "slow_scorers.py").write_text(SLOW.format(folder / "slow"))
    process = subprocess.Popen(slow_run(engine), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < until and not [*folder.glob("out/blocks/*.parquet")]:
            time.sleep(0.05)
        yield process
    finally:
        process.kill()


def slow_run(engine: str) -> list[str]:
    command = [sys.executable, "-m", "evalstone", "run", "d.jsonl", "--engine", engine, "--out", "out"]
    return [*command, "-s", "slow_scorers.py:slow"]


def ended_by_ray(folder: Path, process: subprocess.Popen[bytes], said: str) -> None:
    """Wait until a run has ended with status 3 and a message, and run it again, on Ray of its own."""
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors.decode()
    assert printed == b""
    (folder / "slow").unlink()
    (line,) = [line for line in errors.decode().splitlines() if line.startswith("evalstone: ")]
    resumed = r"Finished blocks are in out; rerun the same command to resume\."
    assert re.fullmatch(rf"evalstone: {said}; it may have been killed\. {resumed}", line), line
    finished = {file: file.stat().st_mtime_ns for file in folder.glob("out/blocks/*.parquet")}
    subprocess.run(slow_run("ray"), cwd=folder, check=True, capture_output=True)
    assert finished.items() <= {file: file.stat().st_mtime_ns for file in folder.glob("out/blocks/*.parquet")}.items()
    check_records(folder)


def check_records(folder: Path) -> None:
    """Each sample has its record."""
    run = evalstone.read_run(folder / "out")
    rows = [json.loads(line) for line in (folder / "d.jsonl").read_text().splitlines()]
    assert [record.value for record in run.records] == [len(row["output"]) / 40 for row in rows]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raylet", "Ray's process raylet has ended on this machine"),
        ("gcs_server", r"Ray's process gcs_server at [0-9.:]+ hasn't answered for \d+ seconds"),
    ],
)
def test_a_process_of_ray_that_is_killed_ends_the_run_and_the_same_command_resumes_it(
    tmp_path: Path, name: str, said: str
) -> None:
    with running(tmp_path, "ray") as process:
        for pid in children(process.pid, f"/{name} "):
            os.kill(pid, signal.SIGKILL)
        ended_by_ray(tmp_path, process, said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raylet", "Ray's process raylet has ended on this machine"),
        ("gcs_server", r"Ray's process gcs_server at [0-9.:]+ hasn't answered for \d+ seconds"),
    ],
)
def test_so_does_one_of_a_cluster_that_the_run_has_joined(
    tmp_path: Path, cluster: Cluster, name: str, said: str
) -> None:
    with running(tmp_path, f"ray:{cluster.address}") as process:
        for pid in pids(cluster.head_node, name):
            os.kill(pid, signal.SIGKILL)
        ended_by_ray(tmp_path, process, said)


def test_a_run_goes_on_after_another_machine_was_lost(tmp_path: Path, cluster: Cluster) -> None:
    with running(tmp_path, f"ray:{cluster.address}") as process:
        (other,) = cluster.worker_nodes
        cluster.remove_node(other, allow_graceful=False)
        (tmp_path / "slow").unlink()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    check_records(tmp_path)


def test_a_run_ends_although_a_raylet_was_stopped(tmp_path: Path, cluster: Cluster) -> None:
    with running(tmp_path, f"ray:{cluster.address}") as process:
        for pid in pids(cluster.head_node, "raylet"):
            os.kill(pid, signal.SIGSTOP)
        (tmp_path / "slow").unlink()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    check_records(tmp_path)


def test_an_address_where_no_cluster_answers_is_refused_at_once() -> None:
    with socket.create_server(("", 0)) as silent, serving_hostile(lambda _: http(b"{}")) as web:
        wrong = {
            f"127.0.0.1:{silent.getsockname()[1]}": "no Ray cluster answers at",
            web.url.removeprefix("http://").removesuffix("/v1"): "no Ray cluster answers at",
            "127.0.0.1:1": "no Ray cluster answers at",
            "127.0.0.1": r"127\.0\.0\.1 is no address of a Ray cluster",
            "ray://127.0.0.1:10001": r"ray://127\.0\.0\.1:10001 is no address of a Ray cluster",
        }
        for address, said in wrong.items():
            began = time.monotonic()
            with pytest.raises(ConfigError, match=rf"^{said}.*: name HOST:PORT of its head, as `ray start --head`"):
                RayEngine(address).__enter__()
            assert time.monotonic() - began < 5


def test_a_missing_token_is_named(tmp_path: Path, cluster: Cluster) -> None:
    command = [sys.executable, "-m", "evalstone", "run", str(written(tmp_path, 3)), "-s", "exact_match"]
    command += ["--engine", f"ray:{cluster.address}", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"Ray can't be reached at {cluster.address}: " in done.stderr
    assert "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH" in done.stderr


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
    workers = workers_of(process)
    assert workers
    process.terminate()
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert printed == b""
    assert errors.decode() == f"Stopped. Finished blocks are in {out}; rerun the same command to resume.\n"
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("workers go on")
