"""Ray as the engine of runs in blocks."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import pickle
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar

from evalstone._core.addresses import origins, restore
from evalstone.errors import ConfigError, EvalstoneError, MissingDependency, RunAborted, described
from evalstone.scale.ray_processes import RayProcesses, check_cluster, shut_down

T = TypeVar("T")
R = TypeVar("R")
_OpenWorker: TypeAlias = Callable[[], AbstractContextManager[Callable[[T], R]]]

OWN_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",
    "RAY_SCHEDULER_EVENTS": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}
"""The environment of a Ray that is started here: it reports nothing, prints nothing, and gives its workers the priority
of this process. By default, theirs is so low that whatever else runs on the machine takes their CPUs."""
_RETRIES = 3
"""How often an item is begun anew. One that kills its workers, such as by the memory that it takes, would be begun
without end."""
_RESTARTS = 100
"""How often a worker is started again, in a run of many items. One that ends whenever it starts would be started
without end."""
_SECONDS_TO_LOOK = 1
"""How often it is looked whether the processes of Ray are there, while workers work."""
_JOINING = (
    ". Run evalstone on a machine of the cluster, with its versions of Ray and Python; if the cluster wants a token, "
    "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
)
"""What joining a cluster needs, of which Ray says nothing, or only in its logs."""
_SECONDS_TO_CLOSE = 10
"""How long workers may take to close what they opened."""


class RayEngine:
    """Maps functions over items with the actors of Ray: one for each CPU of the cluster. They stay until the engine
    ends, because a process takes seconds to start.

    Args:
        address: The address of a cluster; "" uses the one that this process is connected to, and otherwise starts Ray
            on this machine, which ends with the engine.

    Raises:
        MissingDependency: Ray isn't installed.
        ConfigError: When entered, Ray can't be started, or this process is connected to another cluster.
    """

    name = "ray"

    def __init__(self, address: str = "") -> None:
        self.address = address
        with _quiet():
            try:
                self._ray: Any = importlib.import_module("ray")
            except ImportError:
                raise MissingDependency("ray", "ray") from None
        self._actors: list[Any] = []
        self.workers = 1

    def __enter__(self) -> RayEngine:
        ray = self._ray
        with contextlib.ExitStack() as stack:
            if connected := ray.is_initialized():
                self._require_same_cluster()
            else:
                stack.callback(shut_down, ray)
                self._connect()
            self._processes = RayProcesses(ray, started=not connected and not self.address)
            stack.callback(self._processes.close)
            self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
            self._stack = stack.pop_all()
        return self

    def _require_same_cluster(self) -> None:
        """Raise ConfigError if this process is connected to another cluster."""
        if self.address not in ("", there := str(self._ray.get_runtime_context().gcs_address)):
            raise ConfigError(
                f"this process is connected to Ray at {there}, not at {self.address}: name the engine ray, which "
                "uses that connection, or end it first, with ray.shutdown()"
            )

    def _connect(self) -> None:
        """Connect this process to a cluster, or start Ray."""
        where: dict[str, Any] = {"address": self.address}
        if self.address:
            check_cluster(self._ray, self.address)
        else:
            # "local", because Ray would else join one that runs on this machine already
            where = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        with _quiet(), _silent(), _same_signals():
            try:
                self._ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **where)
            except Exception as error:  # noqa: BLE001 - Ray raises it
                reason = " ".join(str(error).split())
                if self.address:
                    raise ConfigError(f"Ray can't be reached at {self.address}: {reason}{_JOINING}") from None
                if "timed out" in reason:
                    reason += " Ray waits half a minute for its processes: try again once this machine is idle."
                raise ConfigError(f"Ray can't be started: {reason}") from None

    def __exit__(self, *error: object) -> None:
        self._actors = []  # Ray ends actors that nobody refers to
        self._stack.close()

    def check_sendable(self, value: object, what: str) -> None:
        """As `Engine.check_sendable`."""
        kind = value if isinstance(value, type) else type(value)
        if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
            raise ConfigError(
                f"{what} can't be sent to other processes: its class {kind.__qualname__} is defined in a function, or "
                "in the script that runs; define it in a module that the workers can import"
            )
        try:
            self._ray.cloudpickle.loads(self._ray.cloudpickle.dumps(value))
        except Exception as error:  # noqa: BLE001 - what a value's own code raises
            raise ConfigError(f"{what} can't be sent to other processes: {described(error)}") from None

    def map(self, open_worker: _OpenWorker[T, R], items: Sequence[T], *, ordered: bool) -> Iterator[R]:
        """As `Engine.map`. A worker that is lost is started again, and its item is begun anew by the next one that is
        free, three times at most for each item."""
        ray = self._ray
        sent = [ray.put(pickle.dumps((origins(sys.modules), ray.cloudpickle.dumps(open_worker))))]
        with _quiet():
            kind = ray.remote(num_cpus=1, max_restarts=_RESTARTS, max_task_retries=-1)(_Worker)
            self._actors += [kind.remote() for _ in range(min(self.workers, len(items)) - len(self._actors))]
        # A worker is given its first item once it is there: others may use the CPUs of a cluster for hours.
        busy = {actor.start.remote(): (actor, -1) for actor in self._actors}
        to_do, lost, results = deque(range(len(items))), Counter[int](), dict[int, R]()
        idle, given = list[Any](), 0
        try:
            while given < len(items):
                while idle and to_do:
                    actor, number = idle.pop(), to_do.popleft()
                    # Ray would try a worker of a lost machine again and again, until it takes the machine for lost.
                    call = actor.call.options(max_task_retries=0)
                    busy[call.remote(sent, pickle.dumps(items[number]))] = actor, number
                if (ready := given if ordered else next(iter(results), -1)) in results:
                    given += 1
                    yield results.pop(ready)
                    continue
                told, _ = ray.wait([*busy], timeout=_SECONDS_TO_LOOK)
                self._processes.check()
                for call in told:
                    actor, number = busy.pop(call)
                    try:
                        result = ray.get(call)
                    except ray.exceptions.RayError as error:
                        lost[number] += 1
                        if number < 0 or isinstance(error, ray.exceptions.RayTaskError) or lost[number] > _RETRIES:
                            raise
                        to_do.appendleft(number)
                        busy[actor.start.remote()] = actor, -1
                    else:
                        idle.append(actor)
                        results |= {} if number < 0 else {number: _unpacked(result)}
        except ray.exceptions.RayError as error:
            self._processes.check(at_once=True)
            cause = getattr(error, "cause", None) or error
            raise RunAborted(f"a worker of Ray failed: {described(cause)}") from error
        finally:
            self._close({actor: number >= 0 for actor, number in busy.values()})

    def _close(self, busy: Mapping[Any, bool]) -> None:
        """Close what workers have opened. busy: those that aren't there yet; true for those that have an item, and end
        because nobody waits for it."""
        if self._processes.lost:
            return
        for actor, has_item in busy.items():
            if has_item:
                self._actors.remove(actor)
                self._ray.kill(actor)
        if closing := [actor.close.remote() for actor in self._actors if actor not in busy]:
            self._ray.wait(closing, num_returns=len(closing), timeout=_SECONDS_TO_CLOSE)


class _Worker:
    """The functions of a worker, one at a time: each is opened at its first item."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._sent: Any = None

    def start(self) -> None:
        """Nothing, once the worker is there."""

    def call(self, sent: Sequence[Any], item: bytes) -> bytes:
        """The result of a function for an item, or its EvalstoneError. sent: the reference to the function."""
        try:
            if sent[0] != self._sent:
                self.close()
                function: Callable[[Any], Any] = self._stack.enter_context(_received(_fetched(sent[0]))())
                self._function, self._sent = function, sent[0]
            result: Any = self._function(pickle.loads(item))  # noqa: S301 - of our own driver
        except EvalstoneError as error:
            result = error
        return pickle.dumps(result)

    def close(self) -> None:
        """Close what the function had opened."""
        self._stack.close()
        self._sent = None


def _unpacked(told: bytes) -> Any:
    """The result that a worker told. Raises its EvalstoneError."""
    result = pickle.loads(told)  # noqa: S301 - of our own worker
    if isinstance(result, EvalstoneError):
        raise result
    return result


def _fetched(reference: Any) -> bytes:
    """What a reference of Ray is to."""
    return importlib.import_module("ray").get(reference)


def _received(sent: bytes) -> Any:
    """What the driver sent, in a worker. Modules that aren't installed are imported from their folders, if these are
    here, too. Raises ConfigError if the worker lacks one."""
    found, data = pickle.loads(sent)  # noqa: S301 - of our own driver
    try:
        for origin in found:
            if importlib.util.find_spec(origin.module) is None:
                restore(origin)
        return pickle.loads(data)  # noqa: S301 - likewise
    except Exception as error:  # noqa: BLE001 - what the code of its modules raises
        raise ConfigError(
            f"a worker of Ray can't import the scorers or the judge ({described(error)}): install their modules "
            "wherever workers run, or put their folder on the PYTHONPATH there before Ray is started"
        ) from None


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Inside this context, Ray's loggers say nothing below an error."""
    for name, value in OWN_RAY.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    yield


@contextlib.contextmanager
def _silent() -> Generator[None]:
    """Inside this context, the process prints nothing on stderr: Ray's libraries say there that they say nothing."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextlib.contextmanager
def _same_signals() -> Generator[None]:
    """After this context, the handler of SIGTERM is the one before: Ray's own ends the process with code 15."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
