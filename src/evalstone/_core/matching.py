"""Regular expression matching with a time limit, for untrusted texts.

Python's `re` backtracks, which can take hours for nested repetitions, and can't be interrupted. Patterns that might be
slow are therefore matched in a separate process, which can be killed.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import re
import subprocess
import sys
import threading
import time

from evalstone.errors import OutcomeError

TIME_LIMIT = 10.0
"""The time limit of a match, in seconds."""
_QUICK = math.log(1e8)
_SHORT = 20
_ESCAPED = re.compile(r"\\.|\[\^?\]?[^\]\\]*+(?:\\.[^\]\\]*+)*\]", re.DOTALL)
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}")
_OPTION = re.compile(r"(?<![(*+?}])\?|\|")
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")
_WORKER = """
import json, re, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
alarm = getattr(signal, "alarm", lambda seconds: None)  # so that this process ends even if its parent is gone
for line in sys.stdin:
    pattern, flags, text, whole, seconds = json.loads(line)
    alarm(seconds)
    match = (re.fullmatch if whole else re.search)(pattern, text, flags)
    alarm(0)
    print(int(match is not None), flush=True)
"""


def matches(pattern: re.Pattern[str], text: str, *, whole: bool) -> bool:
    """Whether a pattern matches somewhere in a text, or the whole of it. Raises OutcomeError beyond the time limit."""
    repeats, options, nested = _shape(pattern.pattern)
    steps = (repeats + 1) * math.log(len(text) + 1) + options * math.log(2) if repeats or options else 0.0
    if steps <= _QUICK and (not nested or len(text) <= _SHORT):
        return (pattern.fullmatch(text) if whole else pattern.search(text)) is not None
    return _worker.matches([pattern.pattern, pattern.flags, text, whole, math.ceil(TIME_LIMIT) + 1])


@functools.lru_cache(maxsize=256)
def _shape(pattern: str) -> tuple[int, int, bool]:
    """The numbers of repetitions and of alternatives in a pattern, and whether it repeats a group."""
    plain = _ESCAPED.sub("x", pattern)
    return len(_REPEAT.findall(plain)), len(_OPTION.findall(plain)), _REPEATED_GROUP.search(plain) is not None


class _Worker:
    """A process that matches patterns. It is started on first use, and again after it had to be killed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None

    def matches(self, request: list[object]) -> bool:
        """Whether the pattern of a request matches. Raises OutcomeError beyond the time limit."""
        with self.lock:
            process, started = self._running(), time.monotonic()
            timer = threading.Timer(TIME_LIMIT, process.kill)
            timer.start()
            reply = ""
            try:
                if process.stdin is not None and process.stdout is not None:
                    process.stdin.write(json.dumps(request) + "\n")
                    process.stdin.flush()
                    reply = process.stdout.readline()
            except OSError:
                pass  # the process has ended, which is handled below
            finally:
                timer.cancel()
            if reply:
                return reply == "1\n"
            self._close()
        if time.monotonic() - started < TIME_LIMIT:
            raise OutcomeError("the process that matches patterns ended early")
        raise OutcomeError(f"the pattern took longer than {TIME_LIMIT:g} seconds; make it simpler, or the text shorter")

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(  # noqa: S603 - Python itself, with our own code
                [sys.executable, "-I", "-S", "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self.process

    def _close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()

    def close(self) -> None:
        """End the process."""
        with self.lock:
            self._close()


_worker = _Worker()
_of_parents: list[_Worker] = []
atexit.register(lambda: _worker.close())


def _after_fork() -> None:
    global _worker
    _of_parents.append(_worker)  # keep it alive: the process and the lock belong to the parent
    _worker = _Worker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
