"""Ray Data as the engine of runs in blocks."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypeAlias, TypeVar

from evalstone._core.addresses import origins, restore
from evalstone.errors import ConfigError, EvalstoneError, MissingDependency, described

T = TypeVar("T")
R = TypeVar("R")
_OpenWorker: TypeAlias = Callable[[], AbstractContextManager[Callable[[T], R]]]

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""The environment of a Ray that is started here: it reports nothing, and prints nothing."""
_RETRIES = 3
"""How often an item is begun anew. Ray Data has no limit: an item that kills its workers, such as by the memory that it
takes, would be begun without end."""
_RESTARTS = 100
"""How often a worker is started again, in a run of many items. One that ends whenever it starts would be started
without end."""


class RayEngine:
    """Maps functions over items with Ray Data: one actor for each CPU of the cluster.

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
                self._data: Any = importlib.import_module("ray.data")
            except ImportError:
                raise MissingDependency("ray", "ray") from None
        self._started = False
        self.workers = 1

    def __enter__(self) -> RayEngine:
        ray = self._ray
        if ray.is_initialized():
            if self.address not in ("", there := str(ray.get_runtime_context().gcs_address)):
                raise ConfigError(
                    f"this process is connected to Ray at {there}, not at {self.address}: name the engine ray, which "
                    "uses that connection, or end it first, with ray.shutdown()"
                )
        else:
            where: dict[str, Any] = {"address": self.address}
            if not self.address:
                # "local", because Ray would else join one that runs on this machine already
                where = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            with _quiet(), _silent():
                try:
                    ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **where)
                except Exception as error:  # noqa: BLE001 - Ray raises it
                    reason = " ".join(str(error).split())
                    if "timed out" in reason:
                        reason += (
                            " Ray waits 15 seconds for each of its processes: try again once this machine is idle."
                        )
                    raise ConfigError(f"Ray can't be started: {reason}") from None
            self._started = True
        context = self._data.DataContext.get_current()
        context.enable_progress_bars = False
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        return self

    def __exit__(self, *error: object) -> None:
        if self._started:
            self._ray.shutdown()
            self._started = False

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
        """As `Engine.map`. A worker that is lost is started again, and its item is begun anew, three times at most for
        each item."""
        if not items:
            return
        data = self._data
        with _quiet():
            context = data.DataContext.get_current()
            context.execution_options.preserve_order = ordered
            rows = [{"item": pickle.dumps(item)} for item in items]
            source = data.from_items(rows, override_num_blocks=len(rows))
            compute = data.ActorPoolStrategy(min_size=1, max_size=min(self.workers, len(items)))
            sent = pickle.dumps((origins(sys.modules), self._ray.cloudpickle.dumps(open_worker)))
            mapped = source.map(
                _Worker,
                fn_constructor_args=(sent,),
                compute=compute,
                num_cpus=1,
                max_restarts=_RESTARTS,
                max_task_retries=_RETRIES,
            )
        try:
            for row in mapped.iter_rows():
                result = pickle.loads(row["result"])  # noqa: S301 - of our own worker
                if isinstance(result, EvalstoneError):
                    raise result
                yield result
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            raise ConfigError(f"a worker of Ray failed: {described(cause)}") from error


class _Worker:
    """A worker's function, opened once, and closed when Ray deletes it at the end of its actor."""

    def __init__(self, sent: bytes) -> None:
        self._stack = contextlib.ExitStack()
        try:
            self._function: Any = self._stack.enter_context(_received(sent)())
        except EvalstoneError as error:  # Ray would begin the actor again and again
            self._function = functools.partial(_refuse, error)

    def __del__(self) -> None:
        self._stack.close()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            result: Any = self._function(pickle.loads(row["item"]))  # noqa: S301 - of our own driver
        except EvalstoneError as error:
            result = error
        return {"result": pickle.dumps(result)}


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


def _refuse(error: EvalstoneError, _: object) -> NoReturn:
    raise error


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Inside this context, Ray's loggers say nothing below an error, and Ray Data's nothing: it raises its errors."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    for name, level in (("ray", logging.ERROR), ("ray.data", logging.CRITICAL)):
        logging.getLogger(name).setLevel(level)
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
