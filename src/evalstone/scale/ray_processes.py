"""Whether the processes of Ray that a run needs are there."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

from evalstone.errors import ConfigError, RunAborted

_SECONDS_TO_CONNECT = 3
_SECONDS_TO_REPLY = 3
_SECONDS_TO_ASK = 5
"""How often the GCS is asked. Until it answers, no worker gets an item."""
_SECONDS_STARTED = 5
"""How long the GCS of a Ray that was started here may be silent: nobody starts it again."""
_SECONDS_OF_CLUSTER = 25
"""How long that of a cluster may be silent: some start it again. After 60 seconds, Ray ends this process without a
word."""
_GIVEN_UP = "Ray has given up this machine, because its process raylet doesn't answer; it may have been stopped"
_SECONDS_TO_SHUT_DOWN = 10
_SETTINGS = b"\x04"
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
"""How a client of gRPC begins. The server begins with a frame of the same kind, whose length are 3 bytes."""


class RayProcesses:
    """The processes of Ray that a connected process can't do without: the raylet of its machine and the GCS of its
    cluster. If they end, Ray itself waits without end, or ends the process without a word.

    Args:
        ray: The module, connected.
        started: Whether this process has started them.
    """

    def __init__(self, ray: Any, *, started: bool) -> None:
        worker = ray._private.worker
        if worker._global_node is None:
            raise ConfigError(
                "this process is connected to Ray through its client (ray://): run it on a machine of the cluster, and "
                "connect with HOST:PORT"
            )
        self._unanswered: type[Exception] = ray.exceptions.RayError
        self._gcs, self._node = worker.global_worker.gcs_client, worker.global_worker.current_node_id
        self._where = f"at {worker._global_node.gcs_address}"
        self._patience = _SECONDS_STARTED if started else _SECONDS_OF_CLUSTER
        self._asked = time.monotonic()
        self._silent_since: float | None = None
        self._raylet = _connected(worker._global_node.raylet_socket_name)
        self.lost = False
        """Whether one has ended, so that no worker can be told anything."""

    def check(self, *, at_once: bool = False) -> None:
        """Raise RunAborted if one has ended, or hasn't answered for too long. at_once: ask the GCS also if it was asked
        a moment ago."""
        if at_once:
            self._asked = -math.inf
        if problem := self._problem():
            self.lost = True
            raise RunAborted(problem)

    def close(self) -> None:
        """Close the connection to the raylet."""
        if self._raylet is not None:
            self._raylet.close()

    def _problem(self) -> str:
        if self._raylet is None or _is_closed(self._raylet):
            return "Ray's process raylet has ended on this machine; it may have been killed"
        if (began := time.monotonic()) < self._asked + _SECONDS_TO_ASK:
            return ""
        is_alive = self._is_node_alive()
        self._asked = time.monotonic()
        if is_alive is not None:
            self._silent_since = None
            return "" if is_alive else _GIVEN_UP
        self._silent_since = self._silent_since or began
        if (seconds := self._asked - self._silent_since) < self._patience:
            return ""
        return (
            f"Ray's process gcs_server {self._where} hasn't answered for {seconds:.0f} seconds; it may have been killed"
        )

    def _is_node_alive(self) -> bool | None:
        """Whether this machine is alive, to the GCS; None if that doesn't answer."""
        try:
            (is_alive,) = self._gcs.check_alive([self._node], timeout=_SECONDS_TO_REPLY)
        except self._unanswered:
            return None
        return is_alive


def check_cluster(ray: Any, address: str) -> None:
    """Raise ConfigError if no cluster of Ray answers at an address, for which Ray would wait minutes."""
    expected = "name HOST:PORT of its head, as `ray start --head` prints it, such as ray:10.0.0.1:6379"
    try:
        if "://" in address:
            raise ValueError("it is a URL")
        found: str | None = ray._private.services.canonicalize_bootstrap_address(address)
    except Exception as error:  # noqa: BLE001 - Ray raises it
        raise ConfigError(f"{address} is no address of a Ray cluster ({error}): {expected}") from None
    if found and not _speaks_grpc(found):
        raise ConfigError(f"no Ray cluster answers at {found}: {expected}")


def shut_down(ray: Any) -> None:
    """Disconnect this process from Ray, which ends if it was started by it. Nothing happens if it isn't connected."""
    if (node := ray._private.worker._global_node) is None:
        return
    raylet = node.raylet_socket_name
    thread = threading.Thread(target=ray.shutdown, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_SHUT_DOWN)
    if thread.is_alive():  # it waits for a raylet that was stopped
        _disconnect(raylet)
        thread.join(_SECONDS_TO_SHUT_DOWN)


def _disconnect(name: str) -> None:
    """Shut the connections of this process to a raylet, which to Ray looks as if that had ended."""
    for number in [int(path.name) for path in Path("/dev/fd").glob("[0-9]*")]:
        with contextlib.suppress(OSError):  # it has been closed, or isn't connected
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as connection:
                    if connection.getpeername() == name:
                        connection.shutdown(socket.SHUT_RDWR)


def _speaks_grpc(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT) as server:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return True
            server.sendall(_HTTP2)
            return server.recv(4, socket.MSG_WAITALL)[3:] == _SETTINGS
    except (OSError, ValueError):
        return False


def _connected(name: str) -> socket.socket | None:
    """A connection to a raylet's socket, which closes once it ends; None if it has ended. name: of Ray."""
    try:
        if name.startswith("tcp://"):  # on Windows
            host, _, port = name.removeprefix("tcp://").rpartition(":")
            connection = socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT)
        else:
            connection = _connected_by_path(name)
    except OSError:
        return None
    connection.setblocking(False)
    return connection


def _connected_by_path(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True
