"""What the rows of bench/scale.py that score have in common: data, settings, a model server, and processes."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import Started, Took

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from evalstone._core.guards import is_list, is_object  # noqa: E402
from tests.postgres import postgres, programs  # noqa: E402 - its folder isn't in the path of a script

CODE = ("exact_match", "rouge_l")
LEXICAL = {"name": "faithfulness", "judge": "lexical"}
MODEL = "answer_relevance_grade"
"""One call for each sample."""
CITIES = ("Paris", "Lima", "Oslo", "Quito", "Rabat", "Seoul", "Turin", "Varna")
EVALSTONE = (sys.executable, "-m", "evalstone")
ON_RAY = """
import logging, os, sys
workers = int(sys.argv.pop(1))
from evalstone.scale.ray_engine import OWN_RAY
os.environ.update(OWN_RAY)
import ray
ray.init("local", num_cpus=workers, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False,
         logging_level=logging.ERROR)
from evalstone.cli import main
main()
"""
"""`evalstone` in a process that starts Ray with a number of workers."""


def write_data(path: Path, samples: int, seed: int = 1) -> Path:
    """Write samples that all differ, with answers that are right, wrong, or say more than their passage. seed: of the
    answers."""
    rng = random.Random(seed)
    with path.open("w") as file:
        for number in range(samples):
            city, other = CITIES[number % len(CITIES)], rng.choice(CITIES)
            opened = 1900 + number % 100
            answer = (
                f"The station of {city} with number {number} opened in {opened}.",
                f"The station of {other} with number {number} opened in {opened + rng.randrange(3)}.",
                f"It opened in {opened}. About {rng.randrange(1, 9)}00 people work at number {number} today.",
            )[rng.randrange(3)]
            row = {
                "id": f"q{number}",
                "input": f"When did station {number} of {city} open?",
                "output": answer,
                "reference": f"The station of {city} with number {number} opened in {opened}.",
                "context": [f"Station {number} is in {city}. It opened in {opened} and has {number % 7} tracks."],
            }
            file.write(f"{json.dumps(row)}\n")
    return path


def write_settings(path: Path, scorers: Sequence[object], judge: Mapping[str, Any] | None = None, **more: Any) -> Path:
    """Write a configuration file."""

    def toml(value: object) -> str:
        if is_object(value):
            return "{ " + ", ".join(f"{name} = {toml(inner)}" for name, inner in value.items()) + " }"
        if is_list(value):
            return f"[{', '.join(map(toml, value))}]"
        return json.dumps(value)

    lines = [f"{name} = {toml(value)}" for name, value in {"scorers": [*scorers], **more}.items()]
    if judge is not None:
        lines += ["[judge]", *(f"{name} = {toml(value)}" for name, value in judge.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


def has_ray() -> bool:
    """Whether this Python has Ray. Rows say so if they leave something out."""
    if importlib.util.find_spec("ray") is None:
        print("  without Ray: run this with .tools/ray/bin/python (make .tools/ray/ready)")
        return False
    return True


def on_ray(workers: int, *arguments: str) -> list[str]:
    """The command of a run on Ray with this number of workers."""
    return [sys.executable, "-c", ON_RAY, str(workers), "run", *arguments, "--engine", "ray"]


@dataclass(frozen=True)
class Served:
    """A model server."""

    url: str

    @property
    def requests(self) -> int:
        """The number of requests so far."""
        with urllib.request.urlopen(f"{self.url}/stats") as reply:
            return json.load(reply)["requests"]

    @property
    def log(self) -> list[tuple[float, str, int]]:
        """For each request so far: its time, a digest of it, and its tokens."""
        with urllib.request.urlopen(f"{self.url}/log") as reply:
            return [(at, digest, tokens) for at, digest, tokens in json.load(reply)]

    def judge(self, **more: Any) -> dict[str, Any]:
        """A judge that asks it."""
        return {"model": "vllm/mock", "base_url": self.url, **more}


@contextmanager
def serving(latency: float, *options: str) -> Generator[Served]:
    """A model server in a process of its own. latency: in milliseconds."""
    command = [sys.executable, str(HERE / "scale_server.py"), str(latency), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Served(process.stdout.readline().strip())
        finally:
            process.kill()


@contextmanager
def ledger_on_postgresql() -> Generator[str | None]:
    """The URL of an empty ledger on a server of its own; None where PostgreSQL isn't installed."""
    if (folder := programs()) is None:
        print("  without PostgreSQL: it isn't installed")
        yield None
        return
    with postgres(folder) as server, server.schema() as url:
        yield url


def run(*commands: Sequence[str], cwd: Path) -> list[Took]:
    """Run commands at the same time, each in a process of its own. Raises RuntimeError, with what it printed, if one of
    them doesn't end with 0."""
    logs = [cwd / f"command-{number}.log" for number in range(len(commands))]
    started: list[Started] = []
    for command, path in zip(commands, logs, strict=True):
        with path.open("wb") as log:
            started.append(Started(command, cwd, output=log))
    took = [each.wait() for each in started]
    for command, path, one in zip(commands, logs, took, strict=True):
        if one.status:
            raise RuntimeError(f"{' '.join(command)} ended with {one.status}: {path.read_text()[-2000:]}")
    return took


def shards(settings: Path, number: int, *arguments: str) -> list[list[str]]:
    """The commands of all shards of a run."""
    run = [*EVALSTONE, "run", str(settings), *arguments]
    return [[*run, "--shard", f"{shard}/{number}"] for shard in range(1, number + 1)]


def load_of_machine() -> str:
    """The load of this machine, which says whether seconds can be compared."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
