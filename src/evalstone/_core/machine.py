"""What process IDs mean: the machine since it was started, and the container."""

from __future__ import annotations

import functools
import platform
from pathlib import Path


@functools.cache
def machine() -> str:
    """An identifier of the process ID namespace: the machine, its boot, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node().replace(" ", "-") or "unnamed"
