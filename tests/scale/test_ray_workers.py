"""What a worker of Ray receives, without Ray: own code from its folder, or one clear error."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone._core.addresses import beside, origins
from evalstone.errors import ConfigError
from evalstone.scale.engines import parse_engine
from evalstone.scale.ray_engine import RayEngine
from evalstone.scale.runs import surveying
from evalstone.scale.scoring import Scoring
from evalstone.scorers import parse_scorer

OWN = """
from evalstone import Score, Scorer

class Polite(Scorer):
    name = "polite"

    def score(self, *, output: str) -> Score:
        return Score(1.0)
"""
CODE = """
import pickle, sys
from pathlib import Path
from evalstone.errors import EvalstoneError
from evalstone.scale.ray_engine import _Worker

worker = _Worker(Path("sent").read_bytes())
try:
    worker._function(None)
except EvalstoneError as error:
    print(error)
except AttributeError:
    print("opened")
"""


def test_a_worker_imports_own_code_from_its_folder_or_says_what_it_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "polite_of_ray.py").write_text(OWN)
    with beside(folder):
        scorers = [parse_scorer("polite_of_ray:Polite")]
    sent = pickle.dumps((origins(["polite_of_ray"]), pickle.dumps(partial(surveying, Scoring(scorers=scorers)))))
    (tmp_path / "sent").write_bytes(sent)

    def told() -> str:
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.stdout.strip()

    assert told() == "opened"
    (folder / "polite_of_ray.py").unlink()
    assert told() == (
        "a worker of Ray can't import the scorers or the judge (ModuleNotFoundError: No module named "
        "'polite_of_ray'): install their modules wherever workers run, or put their folder on the PYTHONPATH there "
        "before Ray is started"
    )


class Data:
    """The part of Ray Data that maps, which notes its settings."""

    ActorPoolStrategy = dict
    DataContext = SimpleNamespace(get_current=lambda: SimpleNamespace(execution_options=SimpleNamespace()))

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def from_items(self, rows: list[Any], **_: Any) -> Data:
        return self

    def map(self, worker: object, **settings: Any) -> Data:
        self.settings = settings
        return self

    def iter_rows(self) -> list[Any]:
        return []


def test_a_worker_that_dies_again_and_again_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data()
    ray = SimpleNamespace(cloudpickle=pickle, exceptions=SimpleNamespace(RayError=RuntimeError))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", data)
    open_worker: Any = partial(surveying, Scoring(scorers="exact_match"))
    assert [*RayEngine().map(open_worker, [1], ordered=True)] == []
    # Ray Data would restart actors and retry their tasks without end. Restarts are those of all items of a worker.
    assert (data.settings["max_restarts"], data.settings["max_task_retries"]) == (100, 3)


def test_another_cluster_than_the_connected_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = SimpleNamespace(
        is_initialized=lambda: True,
        get_runtime_context=lambda: SimpleNamespace(gcs_address="10.0.0.1:6379"),
        cluster_resources=lambda: {"CPU": 3.0},
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", Data())
    message = r"connected to Ray at 10\.0\.0\.1:6379, not at 10\.0\.0\.2:6379: name the engine ray, which uses that"
    with pytest.raises(ConfigError, match=message):
        parse_engine("ray:10.0.0.2:6379").__enter__()
    for spec in ("ray", "ray:10.0.0.1:6379"):
        with parse_engine(spec) as engine:
            assert engine.workers == 3
