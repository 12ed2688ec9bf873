"""What a worker of Ray receives, without Ray: own code from its folder, or one clear error."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone._core.addresses import beside, origins
from evalstone.cli import handled
from evalstone.errors import ConfigError, DataError, RunAborted
from evalstone.scale import ray_processes
from evalstone.scale.engines import parse_engine
from evalstone.scale.ray_engine import RayEngine
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
from types import SimpleNamespace
from evalstone.scale.ray_engine import _Worker

sys.modules["ray"] = SimpleNamespace(get=lambda name: Path(name).read_bytes())
print(repr(pickle.loads(_Worker().call(["sent"], pickle.dumps(1)))))
"""


@contextlib.contextmanager
def halving(_: object) -> Generator[Callable[[int], float]]:
    yield lambda item: item / 2


def test_a_worker_imports_own_code_from_its_folder_or_says_what_it_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "polite_of_ray.py").write_text(OWN)
    with beside(folder):
        scorers = [parse_scorer("polite_of_ray:Polite")]
    sent = pickle.dumps((origins(["polite_of_ray"]), pickle.dumps(partial(halving, Scoring(scorers=scorers)))))
    (tmp_path / "sent").write_bytes(sent)

    def told() -> str:
        command = [sys.executable, "-c", CODE]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.stdout.strip()

    assert told() == "0.5"
    (folder / "polite_of_ray.py").unlink()
    assert told() == (
        """ConfigError("a worker of Ray can't import the scorers or the judge (ModuleNotFoundError: No module named """
        "'polite_of_ray'): install their modules wherever workers run, or put their folder on the PYTHONPATH there "
        'before Ray is started")'
    )


class Cluster:
    """The part of Ray that the engine uses, in this process: calls run once they are waited for, in any order."""

    exceptions = SimpleNamespace(RayError=RuntimeError, RayTaskError=NotImplementedError)
    cloudpickle = pickle
    is_initialized, shutdown, cluster_resources = bool, list[None], dict[str, float]
    settings: Mapping[str, int]

    def __init__(self, folder: Path) -> None:
        self.actors: list[Actor] = []
        self.rng = random.Random(1)
        self.failing = list[int]()
        self.answers: Iterator[bool | None] = itertools.repeat(True)
        self.raylet = socket.socket(socket.AF_UNIX)
        self.raylet.bind(str(folder / "raylet"))
        self.raylet.listen()
        node = SimpleNamespace(raylet_socket_name=str(folder / "raylet"), gcs_address="127.0.0.1:6379")
        own = SimpleNamespace(gcs_client=self, current_node_id="node")
        self.worker = SimpleNamespace(_global_node=node, global_worker=own)
        self._private = SimpleNamespace(worker=self.worker)

    def check_alive(self, nodes: list[str], timeout: float) -> list[bool]:
        assert (nodes, timeout) == (["node"], 3)
        if (answer := next(self.answers)) is None:
            raise RuntimeError("timed out")
        return [answer]

    def init(self, **_: object) -> None: ...

    def put(self, value: object) -> partial[object]:
        return partial(lambda: value)

    def get(self, call: Callable[[], Any]) -> Any:
        if isinstance(call, Call) and call.given[1:] and (item := pickle.loads(call.given[1])) in self.failing:
            self.failing.remove(item)
            raise RuntimeError("the worker is unavailable")
        return call()

    def remote(self, **settings: int) -> Callable[[type], object]:
        self.settings = settings
        return lambda kind: SimpleNamespace(remote=partial(Actor, self, kind))

    def kill(self, actor: Actor) -> None:
        actor.log.append("killed")

    def wait(self, calls: list[Call], num_returns: int = 1, timeout: float | None = None) -> tuple[list[Call], None]:
        chosen = self.rng.sample([call for call in calls if call.actor.is_there], num_returns)
        for call in chosen:
            call()
        return chosen, None


class Actor:
    def __init__(self, cluster: Cluster, kind: type) -> None:
        self.is_there = bool(cluster.actors)  # the first one isn't
        self.value, self.log = kind(), list[str]()
        cluster.actors.append(self)

    def __getattr__(self, name: str) -> Any:
        def options(*, max_task_retries: int) -> SimpleNamespace:
            assert max_task_retries == 0
            return method

        method = SimpleNamespace(remote=partial(Call, self, name), options=options)
        return method


class Call:
    def __init__(self, actor: Actor, name: str, *given: Any) -> None:
        self.actor, self.given = actor, given
        actor.log.append(name)
        self.run = functools.cache(partial(getattr(actor.value, name), *given))

    def __call__(self) -> Any:
        return self.run()


@contextlib.contextmanager
def squares() -> Generator[Callable[[int], int]]:
    closed.append(False)

    def square(item: int) -> int:
        if item < 0:
            raise DataError(f"{item} is negative")
        return item * item

    yield square
    closed.append(True)


closed: list[bool] = []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Cluster]:
    closed.clear()
    cluster = Cluster(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with cluster.raylet:
        yield cluster


@pytest.fixture
def engine(cluster: Cluster) -> Generator[RayEngine]:
    with RayEngine() as engine:
        engine.workers = 3
        yield engine


def test_workers_that_are_there_get_the_items(cluster: Cluster, engine: RayEngine) -> None:
    assert [*engine.map(squares, [*range(7)], ordered=True)] == [n * n for n in range(7)]
    assert closed == [False, False, True, True]
    assert {*engine.map(squares, [*range(7)], ordered=False)} == {n * n for n in range(7)}
    absent, *there = cluster.actors
    assert absent.log == ["start", "start"]
    assert [sorted({*actor.log}) for actor in there] == [["call", "close", "start"]] * 2
    # One that dies again and again would be restarted without end.
    assert cluster.settings == {"num_cpus": 1, "max_restarts": 100, "max_task_retries": -1}


def test_the_item_of_a_lost_worker_is_begun_again_three_times(cluster: Cluster, engine: RayEngine) -> None:
    cluster.failing = [3, 5, 3, 3]
    assert [*engine.map(squares, [*range(7)], ordered=True)] == [n * n for n in range(7)]
    assert sum(actor.log.count("start") for actor in cluster.actors) == 3 + 4
    cluster.failing = [5] * 4
    with pytest.raises(RunAborted, match=r"^a worker of Ray failed: RuntimeError: the worker is unavailable"):
        list(engine.map(squares, [*range(7)], ordered=True))


def test_an_error_ends_the_workers_that_have_items(cluster: Cluster, engine: RayEngine) -> None:
    with pytest.raises(DataError, match=r"^-1 is negative$"):
        list(engine.map(squares, [*range(6), -1, *range(6)], ordered=False))
    absent, *there = cluster.actors
    assert absent.log == ["start"]
    assert sorted(actor.log[-1] for actor in there) == ["close", "killed"]


def test_a_raylet_that_has_ended_ends_the_run(cluster: Cluster, engine: RayEngine) -> None:
    results = engine.map(squares, [*range(7)], ordered=True)
    assert next(results) == 0
    cluster.raylet.accept()[0].close()
    with pytest.raises(RunAborted, match=r"^Ray's process raylet has ended on this machine; it may have been killed$"):
        list(results)
    _, *there = cluster.actors
    assert {word for actor in there for word in actor.log} == {"start", "call"}


@pytest.mark.parametrize(
    ("answers", "patience", "message"),
    [
        ([None, True, None, True], 9, ""),
        ([True, None], 0, r"^Ray's process gcs_server at 127\.0\.0\.1:6379 hasn't answered for 0 seconds; it may have"),
        ([True, False], 9, r"^Ray has given up this machine, because its process raylet doesn't answer; it may have"),
    ],
)
def test_a_run_ends_if_the_gcs_is_silent_for_too_long_or_has_given_up_the_node(
    cluster: Cluster, answers: list[bool | None], patience: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_processes, "_SECONDS_TO_ASK", 0)
    monkeypatch.setattr(ray_processes, "_SECONDS_STARTED", patience)
    cluster.answers = itertools.chain(answers, itertools.repeat(True))
    with RayEngine() as engine:
        engine.workers = 3
        results = engine.map(squares, [*range(7)], ordered=True)
        if message:
            with pytest.raises(RunAborted, match=message):
                list(results)
        else:
            assert [*results] == [n * n for n in range(7)]


def test_a_signal_ends_the_run_as_before_ray_was_started(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    monkeypatch.setattr(cluster, "init", init)
    with handled(own := signal.default_int_handler), RayEngine():
        assert signal.getsignal(signal.SIGTERM) is own


def test_another_cluster_than_the_connected_one_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(gcs_address="10.0.0.1:6379")
    of_cluster = {"is_initialized": lambda: True, "get_runtime_context": lambda: context}
    for name, value in (of_cluster | {"cluster_resources": lambda: {"CPU": 3.0}}).items():
        monkeypatch.setattr(cluster, name, value, raising=False)
    message = r"connected to Ray at 10\.0\.0\.1:6379, not at 10\.0\.0\.2:6379: name the engine ray, which uses that"
    with pytest.raises(ConfigError, match=message):
        parse_engine("ray:10.0.0.2:6379").__enter__()
    for spec in ("ray", "ray:10.0.0.1:6379"):
        with parse_engine(spec) as engine:
            assert engine.workers == 3


def test_a_connection_through_rays_client_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "is_initialized", lambda: True)
    monkeypatch.setattr(cluster, "get_runtime_context", lambda: SimpleNamespace(gcs_address=""), raising=False)
    cluster.worker._global_node = None
    with pytest.raises(
        ConfigError, match=r"^this process is connected to Ray through its client \(ray://\): run it on"
    ):
        RayEngine().__enter__()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_connected_is_disconnected_if_the_engine_cannot_be_entered(
    cluster: Cluster, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> dict[str, float]:
        raise error

    ended = list[str]()
    monkeypatch.setattr(cluster, "shutdown", lambda: ended.append("shutdown"))
    monkeypatch.setattr(cluster, "cluster_resources", failing)
    with pytest.raises(error):
        RayEngine().__enter__()
    assert ended == ["shutdown"]
    with cluster.raylet.accept()[0] as connection:
        assert not connection.recv(1)


def test_an_interrupt_while_ray_starts_ends_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise KeyboardInterrupt

    ended = list[str]()
    monkeypatch.setattr(cluster, "shutdown", lambda: ended.append("shutdown"))
    monkeypatch.setattr(cluster, "init", init)
    with pytest.raises(KeyboardInterrupt):
        RayEngine().__enter__()
    assert ended == ["shutdown"]


def test_a_raylet_that_ended_before_it_was_watched_ends_the_run(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "raylet").unlink()
    with RayEngine() as engine:
        engine.workers = 3
        with pytest.raises(RunAborted, match=r"^Ray's process raylet has ended"):
            list(engine.map(squares, [*range(7)], ordered=True))
    gc.collect()  # a socket that nobody closed warns here


def test_an_error_is_raised_though_the_code_of_a_user_has_shut_ray_down(cluster: Cluster) -> None:
    def run() -> None:
        with RayEngine():
            cluster.worker._global_node = None
            raise DataError("no rows")

    with pytest.raises(DataError, match=r"^no rows$"):
        run()
