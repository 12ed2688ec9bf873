"""Data in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import weakref
from collections.abc import Callable

from evalstone.errors import WriteError

WINDOW = 1 << 17
"""The number of bytes to read at once."""


class TemporaryData:
    """Bytes in a temporary file, which is deleted with this object or its process. Threads, and processes that were
    forked, may read it at the same time.

    Args:
        what: What the bytes are, for errors.

    Raises:
        WriteError: There is no folder for temporary files, or the disk is full.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.size = 0
        self._lock = threading.Lock()
        """Held while the position of the file matters."""
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
        except OSError as error:
            raise self._failure(error) from None
        weakref.finalize(self, self._file.close)

    def append(self, data: bytes) -> int:
        """Write bytes after the others, and return their place. Raises WriteError; nothing is then added.

        Writes are unbuffered, so that a full disk is an error of the bytes that don't fit, not of later reads.
        """
        place, left = self.size, memoryview(data)
        try:
            with self._lock:
                self._file.seek(place)
                while left:
                    left = left[self._file.write(left) or 0 :]
        except OSError as error:
            raise self._failure(error) from None
        self.size += len(data)
        return place

    def read(self, place: int, size: int) -> bytes:
        """At most `size` bytes from a place on."""
        if hasattr(os, "pread"):  # forked processes share the position of the file
            return os.pread(self._file.fileno(), size, place)
        with self._lock:
            self._file.seek(place)
            return self._file.read(size) or b""

    def _failure(self, error: OSError) -> WriteError:
        folder = f" in {tempfile.tempdir}" if tempfile.tempdir else ""
        message = f"can't write {self._what} to a temporary file{folder}: {error.strerror or error}"
        hint = "Raise the limit: ulimit -n" if error.errno == errno.EMFILE else "To use another folder, set TMPDIR"
        return WriteError(f"{message}. {hint}")


class ReadAhead:
    """Parts of bytes that are mostly read in the order in which they were written: what follows one is read with it.

    read: Reads at most so many bytes from a place on.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._window: tuple[bytes, int] = b"", 0
        """The bytes that were read last, and their place."""

    def part(self, place: int, size: int) -> bytes:
        """The `size` bytes from a place on."""
        window, at = self._window  # read once: another thread may set it meanwhile
        if not at <= place <= at + len(window) - size:
            self._window = window, at = self._read(place, max(size, WINDOW)), place
        return window[place - at : place - at + size]
