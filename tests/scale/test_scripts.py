"""The scripts in examples/scale start shards whose merge is a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import evalstone

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts for a POSIX shell")

SCRIPTS = Path(__file__).parents[2] / "examples" / "scale"
JOB: dict[str, Any] = yaml.safe_load((SCRIPTS / "kubernetes.yaml").read_text())
SLOW = """
import time
from evalstone import Score, scorer

@scorer
def slow(output: str) -> Score:
    time.sleep(2)
    return Score(1.0)
"""
COMMAND = ["data.jsonl", "results", "--scorer", "exact_match"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": f"q{n}", "output": "Paris", "reference": "Paris" if n % 3 else "Rome"} for n in range(30)]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def started(folder: Path, *command: str, **variables: str) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "SHARDS": "2", **variables}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def done(folder: Path, *command: str, **variables: str) -> str:
    process = started(folder, *command, **variables)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 0, told
    return told


def check_run(folder: Path) -> None:
    run = evalstone.read_run(folder / "results")
    assert [record.sample_id for record in run.records] == [f"q{n}" for n in range(30)]
    assert run["exact_match"].mean == pytest.approx(20 / 30)


@pytest.mark.slow
def test_the_shell_loop_scores_all_shards_and_merges_them(folder: Path) -> None:
    told = done(folder, str(SCRIPTS / "shards.sh"), *COMMAND)
    assert "exact_match" in told
    check_run(folder)


@pytest.mark.slow
def test_the_shell_loop_ends_with_the_status_of_a_shard_that_failed(folder: Path) -> None:
    with (folder / "data.jsonl").open("a") as file:
        file.write("{\n")
    process = started(folder, str(SCRIPTS / "shards.sh"), *COMMAND)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 2, told
    assert "line 31" in told
    assert not (folder / "results" / "summary.json").exists()


@pytest.mark.slow
def test_the_end_of_the_shell_loop_is_that_of_its_shards(folder: Path) -> None:
    (folder / "own.py").write_text(SLOW)
    rows = (folder / "data.jsonl").read_text().splitlines()
    (folder / "data.jsonl").write_text("".join(f"{row.replace('q', f'{n}-')}\n" for n in range(100) for row in rows))
    process = started(folder, str(SCRIPTS / "shards.sh"), "data.jsonl", "results", "--scorer", "own:slow")
    until = time.monotonic() + 30
    while not (folder / "results" / "plan.json").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    told = process.communicate(timeout=30)[0]
    assert process.returncode == 130, told
    # A shard that hasn't begun yet ends without a word.
    assert 1 <= told.count("Interrupted; rerun the same command to resume.") <= 2
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.slow
def test_the_array_of_slurm_scores_a_shard_in_each_task(folder: Path) -> None:
    script = SCRIPTS / "slurm.sh"
    for task in ("1", "2"):
        done(folder, "bash", str(script), *COMMAND, SLURM_ARRAY_TASK_ID=task)
    done(folder, "evalstone", "merge", "results")
    check_run(folder)


@pytest.mark.parametrize("name", ["shards.sh", "slurm.sh"])
def test_a_script_can_be_read_by_its_shell(name: str) -> None:
    script = SCRIPTS / name
    shell = script.read_text().splitlines()[0].removeprefix("#!")
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_array_of_slurm_has_as_many_tasks_as_shards() -> None:
    text = (SCRIPTS / "slurm.sh").read_text()
    assert "#SBATCH --array=1-16\n" in text
    assert "${SHARDS:-16}" in text


def test_the_job_of_kubernetes_has_a_pod_for_each_shard() -> None:
    spec = JOB["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert (JOB["apiVersion"], JOB["kind"]) == ("batch/v1", "Job")
    assert spec["completionMode"] == "Indexed"  # without it, pods have no JOB_COMPLETION_INDEX
    assert spec["completions"] == int(variables["SHARDS"]) >= spec["parallelism"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert all(isinstance(value, str) for value in variables.values())  # the API refuses others
    assert isinstance(container["resources"]["requests"]["cpu"], str)


@pytest.mark.slow
def test_the_pods_of_kubernetes_score_all_shards(folder: Path) -> None:
    (container,) = JOB["spec"]["template"]["spec"]["containers"]
    for index in ("0", "1"):
        where = {"DATA": "data.jsonl", "RESULTS": "results", "JOB_COMPLETION_INDEX": index}
        done(folder, *container["command"], *container["args"], **where)
    done(folder, "evalstone", "merge", "results")
    check_run(folder)
