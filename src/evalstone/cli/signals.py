"""The signals that end the program: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def handled(handler: Callable[[int, Any], Any]) -> Generator[None]:
    """Within the block, a function is called for these signals, unless the caller of the program ignores them, as
    `nohup` does."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    caught = [number for number, known in before.items() if known not in (signal.SIG_IGN, None)]
    try:
        for number in caught:
            signal.signal(number, handler)
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])
