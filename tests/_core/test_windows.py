"""What only Windows does, with the two modules that Python has there."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone._core import windows
from evalstone._core.atomic_files import check_writable
from evalstone._core.windows import locked, shared
from evalstone.datasets.writing import write_text
from tests.windows import behave_as_windows

FLAGS = {1: os.O_CREAT | os.O_EXCL, 2: os.O_CREAT | os.O_TRUNC, 3: 0, 4: os.O_CREAT, 5: os.O_TRUNC}
"""What dwCreationDisposition means."""
ACCESS = {0x80000000: os.O_RDONLY, 0x40000000: os.O_WRONLY, 0xC0000000: os.O_RDWR}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The modules as they are documented. Returns the calls of CreateFile."""
    calls: list[tuple[Any, ...]] = []

    def create(path: str, access: int, share: int, security: int, how: int, attributes: int, template: int) -> int:
        calls.append((path, access, share, security, how, attributes, template))
        return os.open(path, ACCESS[access] | FLAGS[how], 0o666)

    def as_descriptor(handle: int, flags: int) -> int:
        fcntl.fcntl(handle, fcntl.F_SETFL, flags & os.O_APPEND)
        return handle

    def locking(descriptor: int, mode: int, size: int) -> None:
        assert mode == 2
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_CUR, 0, size, 0))
        except OSError:
            raise PermissionError(13, "Permission denied") from None

    monkeypatch.setitem(sys.modules, "_winapi", SimpleNamespace(CreateFile=create))
    monkeypatch.setitem(
        sys.modules, "msvcrt", SimpleNamespace(open_osfhandle=as_descriptor, locking=locking, LK_NBLCK=2)
    )
    return calls


@pytest.mark.parametrize(
    ("mode", "access", "how"),
    [("xb", "w", 1), ("wb", "w", 2), ("rb", "r", 3), ("r+b", "rw", 3), ("ab", "w", 4), ("a+b", "rw", 4)],
)
def test_a_file_is_opened_so_that_others_can_rename_it(
    tmp_path: Path, modules: list[tuple[Any, ...]], mode: str, access: str, how: int
) -> None:
    file = tmp_path / "a"
    if mode != "xb":
        file.write_bytes(b"before")
    with open(file, mode, opener=shared) as opened:
        if "w" in access:
            opened.write(b"AB")
    bits = {"w": 0x40000000, "r": 0x80000000, "rw": 0xC0000000}[access]
    assert modules == [(str(file), bits, 7, 0, how, 0x80, 0)]
    expected = {"xb": b"AB", "wb": b"AB", "rb": b"before", "r+b": b"ABfore", "ab": b"beforeAB", "a+b": b"beforeAB"}
    assert file.read_bytes() == expected[mode]


def test_the_error_of_a_file_that_cannot_be_opened_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised, open(tmp_path / "none", "rb", opener=shared):
        pass
    assert raised.value.filename == str(tmp_path / "none")
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError), open(tmp_path / "a", "xb", opener=shared):
        pass


def test_a_lock_lasts_until_the_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    with (tmp_path / "a").open("r+b") as first, (tmp_path / "a").open("r+b") as second:
        first.seek(2)
        first.flush()
        assert locked(first.fileno(), wait=False)
        assert first.read() == b"345"
        assert not locked(second.fileno(), wait=False)
        waiting = _in_thread(lambda: locked(second.fileno(), wait=True))
        first.close()
        waiting.join(10)
        assert not waiting.is_alive()
        assert second.read() == b"12345"
    assert (tmp_path / "a").stat().st_size == 5


class Calls(list[tuple[Any, ...]]):
    """The calls of functions of Windows, each with its arguments."""

    refused: str = ""
    """The function that fails."""


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What is called to start and end processes."""
    calls = Calls()

    class Library:
        def __init__(self, name: str, **_: Any) -> None:
            self.name = name

        def __getattr__(self, function: str) -> Any:
            def call(*arguments: Any) -> int:
                calls.append((function, *arguments))
                return 0 if function == calls.refused or self.name == "ntdll" else 7

            call.restype = None  # type: ignore[attr-defined]
            vars(self)[function] = call
            return call

    class Process:
        _handle = 9

        def __init__(self, words: list[str], **settings: Any) -> None:
            calls.append(("Popen", words, settings["creationflags"], settings["env"]))

        def kill(self) -> None:
            calls.append(("kill",))

        def wait(self) -> None:
            calls.append(("wait",))

    def unchanged(value: Any) -> Any:
        return value

    fake = SimpleNamespace(
        WinDLL=Library, c_void_p=unchanged, c_int=int, get_last_error=lambda: 5, WinError=PermissionError
    )
    monkeypatch.setitem(sys.modules, "ctypes", fake)
    monkeypatch.setattr(windows, "subprocess", SimpleNamespace(Popen=Process, PIPE=-1))
    monkeypatch.setattr(windows, "shutil", SimpleNamespace(which={"npx": "C:\\npx.cmd"}.get))
    return calls


def test_a_process_is_in_its_job_before_it_runs(kernel: Calls) -> None:
    job = windows.Job()
    job.end(job.start(["npx", "agent"], {"A": "b"}), force=False)
    (created, limited, *rest) = kernel
    assert created == ("CreateJobObjectW", None, None)
    assert limited[:3] == ("SetInformationJobObject", 7, 9)
    assert struct.unpack_from("I", limited[3], 16) == (0x2000,)  # the processes end with the job
    assert limited[4] == len(limited[3]) == 144
    assert rest == [
        ("Popen", ["C:\\npx.cmd", "agent"], 0x204, {"A": "b"}),
        ("AssignProcessToJobObject", 7, 9),
        ("NtResumeProcess", 9),
        ("TerminateJobObject", 7, 1),
        ("wait",),
        ("CloseHandle", 7),
    ]


def test_a_process_that_cannot_be_in_a_job_never_runs(kernel: Calls) -> None:
    job = windows.Job()
    kernel.refused = "AssignProcessToJobObject"
    with pytest.raises(PermissionError):
        job.start(["agent"], None)
    assert kernel[-2:] == [("kill",), ("CloseHandle", 7)]
    assert "NtResumeProcess" not in [call[0] for call in kernel]


def test_a_program_that_cannot_be_started_leaves_no_job(kernel: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    job = windows.Job()

    def refused(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(windows, "subprocess", SimpleNamespace(Popen=refused, PIPE=-1))
    with pytest.raises(FileNotFoundError):
        job.start(["agent"], None)
    assert kernel[-1] == ("CloseHandle", 7)


def _in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(3 * windows._PAUSE)  # pyright: ignore[reportPrivateUsage]
    assert thread.is_alive()
    return thread


def test_files_are_replaced_although_windows_renames_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave_as_windows(monkeypatch)
    (tmp_path / ".a.txt.0123abcd.evalstone.tmp").write_bytes(b"half")
    check_writable(tmp_path / "a.txt")
    for text in ("one", "two"):
        write_text(tmp_path / "a.txt", [text])
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "two"


def test_the_windows_of_these_tests_refuses_what_windows_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave_as_windows(monkeypatch)
    with (tmp_path / "a").open("wb"), pytest.raises(PermissionError):
        (tmp_path / "a").unlink()
    with (tmp_path / "a").open("wb"), pytest.raises(PermissionError):
        (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "c").touch()
    with (tmp_path / "a").open("rb"), pytest.raises(PermissionError):
        (tmp_path / "c").replace(tmp_path / "a")
    with pytest.raises(FileExistsError):
        (tmp_path / "c").rename(tmp_path / "a")
    for name in ("a:b", "what?", "aux.txt", "end."):
        with pytest.raises(OSError, match="syntax is incorrect"):
            (tmp_path / name).mkdir()
    (tmp_path / "c").replace(tmp_path / "a")
    (tmp_path / "a").unlink()
