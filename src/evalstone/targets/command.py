"""Commands as targets: one process per call, without a shell, which is ended together with its child processes.

A thread runs the process, not asyncio, whose way of waiting for processes depends on the version of Python, the event
loop and its thread. On Windows, where pipes can't be waited for together, each has a thread.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO, Annotated, ClassVar, NamedTuple

from evalstone._core import windows
from evalstone._core.declarations import Range
from evalstone._core.display import quoted
from evalstone._core.environment import expanded_words, split_words
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.observe import observer
from evalstone._core.redaction import command_secrets, is_distinct, is_reference, masked, register, without
from evalstone._core.sync import Worker
from evalstone.datasets.json_rows import reply_json
from evalstone.errors import ConfigError, DataError, TargetError, TargetRefused, TargetUnreachable
from evalstone.models.limits import received
from evalstone.models.replies import one_line, read_aside, too_many_values
from evalstone.targets.answers import Answer, NoAnswer
from evalstone.targets.base import Target, parameter_values
from evalstone.targets.templates import chat_messages
from evalstone.types import Sample

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_WATCH = 0.1
"""Seconds between checks of whether the process has ended while its output is still open, or must be ended."""
_STDERR_TAIL, _SHOWN_TAIL = 4000, 400
_QUIET = 0.5
"""Seconds without output after the end of the process, after which one that is still open is read no more, if a thread
reads it."""
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EPERM)
_PIECE = 1 << 16
_LONGEST_NAME = 120


class CommandTarget(Target):
    """A command that reads a sample from stdin and writes its answer to stdout, both as JSON.

    It is given the object {"input", "messages", "context", "instructions", "metadata", "trial", "thread"}, with null
    for what the sample lacks and messages as OpenAI's chat completions have them. It writes an object with fields of
    `Answer`, such as {"output": "…"}, or the transcript of a known tool or API as JSON or JSON Lines, and ends with
    exit code 0.

    The command has a process group of its own, which is ended with SIGTERM, and 2 s later with SIGKILL, on timeout and
    at the end of the run. A process that has left the group is not found. On Windows, the command and all that it
    starts are a job, which is ended at once.

    Raises:
        ConfigError: The command can't be read, or a setting is out of range.
    """

    files_per_call: ClassVar[int] = 6
    """Both ends of three pipes."""

    command: str
    """The program and its arguments, quoted as in a shell; on Windows, backslashes are those of paths. It runs in the
    current folder. `$NAME` and `${NAME}` are environment variables, except in single quotes; `$$` is a dollar sign."""
    max_output_bytes: Annotated[int, Range(1)] = 8_000_000
    """The most bytes that it may write to stdout. They may have a list or object per 32 bytes: 250,000 by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            words = split_words(self.command)
        except ValueError as error:
            raise ConfigError(f"the command {quoted(masked(self.command))} can't be read: ", error) from None
        if not words or not words[0]:
            raise ConfigError("cmd: needs a command, such as cmd:python agent.py")
        if "\0" in self.command:
            raise ConfigError("the command has a NUL character")
        register(*self._secrets)

    @property
    def words(self) -> list[str]:
        """The program and its arguments, with the values of environment variables. Raises ConfigError for a variable
        that is not set."""
        words = expanded_words(self.command, "the command of the target")
        register(*command_secrets(words))
        return words

    @property
    def _secrets(self) -> list[str]:
        """The secrets in the command itself. The name of a variable is none."""
        return [secret for secret in command_secrets(split_words(self.command)) if not is_reference(secret)]

    @property
    def name(self) -> str:
        """The address, without secrets. A long one is cut, with a hash of the whole command. The hash is also there if
        a secret looks like ordinary text, such as `--token=test`: it may be none, and change the answers."""
        secrets = {*self._secrets}
        command = without(masked(self.command.strip()), secrets)
        line = " ".join(command.split())
        if distinct := all(map(is_distinct, secrets)):
            hashed = command
        else:
            hashed = without(self.command.strip(), filter(is_distinct, secrets))
        if line == command and len(line) <= _LONGEST_NAME and distinct:
            return f"cmd:{line}"
        cut = "…" if len(line) > _LONGEST_NAME or line != command else ""
        return f"cmd:{line[:_LONGEST_NAME]}{cut} ({content_hash(hashed)[:8]})"

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError for a program that doesn't exist, or isn't executable."""
        program = self.words[0]
        if shutil.which(program) is None:
            path = shutil.which(program, os.F_OK)
            problem = f"{path} is not executable" if path else f"there is no program {quoted(program)}"
            raise ConfigError(f"{problem}, which the target {self.name} names")

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """Run the command, and read its output."""
        values = parameter_values(sample, trial=trial, thread=thread)
        values["messages"] = chat_messages(values["messages"])
        data = json.dumps(to_jsonable(values)).encode() + b"\n"
        canceled = threading.Event()
        trace = {name.upper().replace("-", "_"): text for name, text in observer().headers().items()}
        run = partial(
            run_command,
            self.words,
            data,
            max_output_bytes=self.max_output_bytes,
            canceled=canceled,
            environment={**os.environ, **trace} if trace else None,
        )
        work = asyncio.wrap_future(Worker("evalstone-command").submit(run))
        try:
            ended = await asyncio.shield(work)
        except asyncio.CancelledError:
            canceled.set()
            await asyncio.wait([work])
            work.exception()
            raise
        except OSError as error:
            kind = TargetRefused if error.errno in _NO_PROGRAM else TargetUnreachable
            raise kind(f"{self.words[0]} can't be started: {error.strerror or error}") from None
        ended = ended._replace(stderr=received(ended.stderr))
        content = received(ended.stdout)
        return await read_aside(len(content), self._read, ended, content)

    def _read(self, ended: Ended, content: bytes) -> Answer:
        """The answer in a command's output. Raises TargetError if there is none."""
        errors = ended.stderr.decode("utf-8", "replace").strip()
        said = f"; stderr ends with: {_tail(errors)}" if errors else "; stderr is empty"
        if ended.too_long:
            limit = f"{self.max_output_bytes:,} bytes to stdout; max_output_bytes allows more"
            raise TargetError(f"the command wrote more than {limit}{said}")
        if ended.code:
            how = (
                f"was ended by {_signal_name(-ended.code)}" if ended.code < 0 else f"ended with exit code {ended.code}"
            )
            raise TargetError(f"the command {how}{said}")
        if not content.strip():
            raise TargetError(f"the command wrote nothing to stdout{said}")
        if (most := too_many_values(content, self.max_output_bytes)) is not None:
            limit = f"{most:,} lists and objects to stdout; max_output_bytes allows more"
            raise TargetError(f"the command wrote more than {limit}{said}")
        try:
            values = reply_json(content, lines=True)
        except DataError as error:
            start = one_line(content[:200].decode("utf-8", "replace"))
            problem = f"the command must write nothing but JSON to stdout ({error}); it wrote {start!r}"
            raise TargetError(problem + said) from None
        try:
            return Answer.of(values)
        except NoAnswer as error:
            raise NoAnswer(f"{error}{said}", error.answer) from None
        except ConfigError as error:
            raise TargetError(error, said) from None


class Ended(NamedTuple):
    """The end of a process, and its output. code: negative for a signal. stderr: only the last part."""

    code: int
    stdout: bytes
    stderr: bytes
    too_long: bool


def run_command(
    words: list[str],
    data: bytes,
    *,
    max_output_bytes: int,
    canceled: threading.Event,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a process to its end, or until it is canceled or writes too much. Afterward, all that it started has ended.

    environment: its environment variables; by default those of this process.

    Raises OSError if it can't be started.
    """
    group = ProcessJob() if os.name == "nt" else ProcessGroup()
    process = group.start(words, environment)
    force = True
    try:
        stdout, stderr, too_long = group.exchange(process, data, max_output_bytes, canceled)
        force = not (too_long or canceled.is_set())
    finally:
        group.end(process, force=force)
    return Ended(process.returncode, stdout, stderr, too_long)


class ProcessGroup:
    """A process and all that it starts, unless that leaves the group."""

    def start(self, words: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        """Start the process, with pipes."""
        process = subprocess.Popen(  # noqa: S603 - the caller's own command, and no shell
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=environment,
        )
        _running.add(process.pid)
        return process

    @staticmethod
    def exchange(
        process: subprocess.Popen[bytes], data: bytes, limit: int, canceled: threading.Event
    ) -> tuple[bytes, bytes, bool]:
        """Write to a process and read its output, until it closes the output or ends."""
        stdin, stdout, stderr = map(_open, (process.stdin, process.stdout, process.stderr))
        pending, written, errors, size = memoryview(data), list[bytes](), b"", 0
        with selectors.DefaultSelector() as selector:
            for pipe, event in (
                (stdin, selectors.EVENT_WRITE),
                (stdout, selectors.EVENT_READ),
                (stderr, selectors.EVENT_READ),
            ):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event)
            ended, look_at = False, time.monotonic() + _WATCH
            while not canceled.is_set():
                ready = selector.select(0 if ended else _WATCH)
                for key, _ in ready:
                    if key.fileobj is stdin:
                        try:
                            pending = pending[os.write(key.fd, pending[:_PIECE]) :]
                        except BlockingIOError:
                            continue
                        except OSError:  # it has closed stdin, which is fine
                            pending = pending[:0]
                        if not pending:
                            selector.unregister(stdin)
                            stdin.close()
                        continue
                    try:
                        piece = os.read(key.fd, _PIECE)
                    except BlockingIOError:
                        continue
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is stderr:
                        errors = (errors + piece)[-_STDERR_TAIL:]
                    else:
                        written.append(piece)
                        size += len(piece)
                        if size > limit:
                            return b"", errors, True
                open_pipes = [key.fileobj for key in selector.get_map().values()]
                if stdout not in open_pipes and stderr not in open_pipes:
                    break
                # A process in the background may keep the output open, and write to it forever.
                if ended and (not ready or time.monotonic() > look_at):
                    break
                if not ended and time.monotonic() > look_at:
                    ended, look_at = _has_ended(process), time.monotonic() + _WATCH
            _wait(process, canceled)
        return b"".join(written), errors, False

    def end(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        """End the processes, and close the pipes. force: immediately."""
        try:
            if not force:
                _signal_group(process.pid, signal.SIGTERM)
                until = time.monotonic() + GRACE
                while time.monotonic() < until and not _has_ended(process):
                    time.sleep(_WATCH / 10)
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
        finally:
            _running.discard(process.pid)
            for pipe in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(OSError):
                    _open(pipe).close()


class ProcessJob:
    """As `ProcessGroup`, on Windows, where pipes can't be waited for together."""

    def __init__(self) -> None:
        self._job = windows.Job()

    def start(self, words: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        """Start the process, with pipes."""
        return self._job.start(words, environment)

    @staticmethod
    def exchange(
        process: subprocess.Popen[bytes], data: bytes, limit: int, canceled: threading.Event
    ) -> tuple[bytes, bytes, bool]:
        """As that of a group, with a thread for each pipe, which closes it once all that the process started ends."""
        stdin, stdout, stderr = map(_open, (process.stdin, process.stdout, process.stderr))
        written, errors = bytearray(), bytearray()
        heard, ended = time.monotonic(), math.inf

        def write() -> None:
            with contextlib.suppress(OSError), stdin:  # it may have closed stdin, which is fine
                pending = memoryview(data)
                while pending:
                    pending = pending[stdin.write(pending[:_PIECE]) :]

        def read(pipe: IO[bytes], into: bytearray, most: int) -> None:
            nonlocal heard
            with contextlib.suppress(OSError), pipe:
                while len(written) <= limit and (piece := pipe.read(_PIECE)):
                    into += piece
                    del into[:-most]
                    heard = time.monotonic()

        readers = [
            threading.Thread(target=read, args=arguments, daemon=True)
            for arguments in ((stdout, written, limit + _PIECE), (stderr, errors, _STDERR_TAIL))
        ]
        for thread in (threading.Thread(target=write, daemon=True), *readers):
            thread.start()
        while not canceled.is_set() and len(written) <= limit:
            reading = next((reader for reader in readers if reader.is_alive()), None)
            if reading is None:
                break
            if process.poll() is not None:
                ended = min(ended, time.monotonic())  # what it wrote last may not be read yet
            # A process in the background may keep the output open.
            if time.monotonic() > max(heard, ended) + _QUIET:
                break
            reading.join(_WATCH / 4)
        if len(written) > limit:
            return b"", bytes(errors), True
        _wait(process, canceled)
        return bytes(written), bytes(errors), False

    def end(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        """End the processes. The threads then close the pipes."""
        self._job.end(process, force=force)


def _wait(process: subprocess.Popen[bytes], canceled: threading.Event) -> None:
    """Wait for a process that has closed its output but may still be working."""
    wait = 0.001
    while not _has_ended(process) and not canceled.wait(wait):
        wait = min(2 * wait, _WATCH)


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("the pipe to the process is not there")
    return pipe


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended. It is not reaped, so that its group id isn't reused."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


_running: set[int] = set()
"""The process groups of the running commands."""


@atexit.register
def _end_all() -> None:
    for group in tuple(_running):
        _signal_group(group, signal.SIGKILL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


def _tail(text: str) -> str:
    line = " ".join(text[-_SHOWN_TAIL:].split())
    return repr(line if len(text) <= _SHOWN_TAIL else f"…{line}")


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
