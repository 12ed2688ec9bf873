"""Files and folders on this machine. Those on other file systems have the same methods (tests/scale)."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone._core.storage import Location, is_address, is_pattern
from evalstone.datasets.files import find_all
from evalstone.errors import ConfigError, StorageError


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = Location.of(tmp_path) / "new" / "a.bin"
    assert file.found() is None
    file.write(b"one")
    with pytest.raises(ZeroDivisionError):
        file.write(lambda stream: (stream.write(b"half"), 1 / 0))
    assert file.read() == b"one"
    assert (found := file.found()) is not None
    assert (found.size, found.name) == (3, "a.bin")
    assert [*Path(tmp_path, "new").iterdir()] == [Path(tmp_path, "new", "a.bin")]
    assert Path(tmp_path, "new", "a.bin").stat().st_mode & 0o777 == 0o600
    file.remove()
    file.remove()
    assert file.found() is None


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".a.bin.0123abcd.evalstone.tmp").write_bytes(b"half")
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    (Location.of(tmp_path) / "a.bin").write(b"one")
    assert [*tmp_path.iterdir()] == [tmp_path / "a.bin"]
    assert len(synced) == 1


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    """A folder as the file system of every address."""
    arrow: Any = pytest.importorskip("pyarrow.fs")
    system = arrow.SubTreeFileSystem(str(folder), arrow.LocalFileSystem())
    reached(monkeypatch, system)
    return system


def reached(monkeypatch: pytest.MonkeyPatch, system: Any) -> None:
    """Let every address be one of a file system."""

    def opened(address: str) -> tuple[Any, str]:
        return system, address.partition("://")[2]

    monkeypatch.setattr("evalstone._core.storage._opened_system", opened)


@pytest.mark.parametrize("scheme", ["s3", "hdfs"])
def test_a_failed_write_elsewhere_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    system = elsewhere(monkeypatch, tmp_path)
    (tmp_path / "bucket").mkdir()
    file = Location.of(f"{scheme}://bucket/a.bin")
    with pytest.raises(ZeroDivisionError):
        file.write(lambda stream: (stream.write(b"half"), 1 / 0))
    assert [*(tmp_path / "bucket").iterdir()] == []
    file.write(lambda stream: stream.write(b"one"))
    with pytest.raises(ZeroDivisionError):
        file.write(lambda stream: (stream.write(b"half"), 1 / 0))
    assert file.read() == b"one"

    class Broken:
        """A stream that fails half way and, as those of pyarrow do, completes its file when it is closed."""

        def __init__(self, path: str) -> None:
            self.stream = system.open_output_stream(path)

        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *raised: object) -> None:
            self.stream.close()

        def write(self, data: memoryview) -> None:
            self.stream.write(data[:1])
            raise OSError("connection lost")

    names = ("create_dir", "delete_file", "get_file_info", "move")
    broken = SimpleNamespace(open_output_stream=Broken, **{name: getattr(system, name) for name in names})
    reached(monkeypatch, broken)
    with pytest.raises(StorageError, match=rf"^cannot write '{scheme}:.*bucket/b\.bin': connection lost$"):
        Location("bucket/b.bin", scheme).write(b"two")
    assert [*(tmp_path / "bucket").iterdir()] == [tmp_path / "bucket" / "a.bin"]


def test_a_file_that_goes_while_its_folder_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.x").write_bytes(b"12")
    for name in ("b.x", ".c.x.01234567.evalstone.tmp"):
        (tmp_path / name).symlink_to(tmp_path / "gone")

    def as_before(_: Path) -> bool:
        return True

    monkeypatch.setattr(Path, "is_file", as_before)
    assert [one.name for one in Location.of(tmp_path).files()] == ["a.x"]


def test_files_are_listed_by_name_without_those_being_written(tmp_path: Path) -> None:
    for name in ("b.x", "a.x", "a[1].x", ".c.x", "d.x.1234.evalstone.tmp", "e.y"):
        (tmp_path / name).write_bytes(b"12")
    (tmp_path / "folder.x").mkdir()
    folder = Location.of(tmp_path)
    assert [(one.name, one.size) for one in folder.files("*.x")] == [("a.x", 2), ("a[1].x", 2), ("b.x", 2)]
    assert [one.name for one in folder.files("a[1]*")] == ["a[1].x"]
    assert (folder / "none").files() == []


def test_the_address_of_a_local_file_is_its_path() -> None:
    assert Location.of("file:///data/a.jsonl").path == "/data/a.jsonl"
    assert Location.of("file://localhost/data/a.jsonl").path == "/data/a.jsonl"


def test_a_drive_is_only_read_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone._core.storage.os", SimpleNamespace(**{**vars(os), "name": "nt"}))
    assert Location.of("file:///C:/data/a.jsonl").path == "C:/data/a.jsonl"
    monkeypatch.undo()
    with pytest.raises(
        ConfigError, match=r"^file:///C:/data/a\.jsonl is on a drive of Windows, which this system doesn't"
    ):
        Location.of("file:///C:/data/a.jsonl")


@pytest.mark.parametrize("address", ["file://data/a.jsonl", "file://./a.jsonl", "file://C:/a.jsonl", "file://"])
def test_the_address_of_a_local_file_is_absolute(address: str) -> None:
    with pytest.raises(ConfigError, match="has no absolute path after file://"):
        Location.of(address)


def test_what_cannot_be_reached_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.txt cannot be read: No such file"):
        Location.of(tmp_path / "none.txt").read()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"cannot write '.*/file/x': File exists"):
        (Location.of(tmp_path / "file") / "x").write(b"")
    with pytest.raises(ConfigError, match=r"^s4://x: unknown scheme 's4'; known: abfs, .*, s3, "):
        Location.of("s4://x")
    with pytest.raises(ConfigError, match=r"^https://x/a\.jsonl can't be read over HTTP: download the file"):
        Location.of("https://x/a.jsonl")
    pytest.importorskip("pyarrow")
    with pytest.raises(ConfigError, match=r"^abfs://box/x cannot be opened: .*account"):
        Location.of("abfs://box/x")


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/a/b.x",
        "gs://bucket/a/b.x",
        "hdfs://node:8020/a/b.x",
        "hdfs://ann@node:8020/a/b.x",
        "hdfs:///a/b.x",
        "abfs://box@account.dfs.core.windows.net/a/b.x",
        "abfss://account.dfs.core.windows.net/box/a/b.x",
        "abfs://account@127.0.0.1:10000/box/a/b.x",
        "abfs://account@box/a/b.x",
    ],
)
def test_an_address_keeps_what_names_its_file_system(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow: Any = pytest.importorskip("pyarrow.fs")
    inner = {"s3": "bucket/a/b.x", "gs": "bucket/a/b.x", "hdfs": "/a/b.x"}.get(address.partition(":")[0], "")
    inner = inner or arrow.FileSystem.from_uri(address)[1]
    asked = list[str]()

    class System:
        def get_file_info(self, path: str) -> Any:
            return arrow.FileInfo(path, arrow.FileType.File, size=1)

    def opened(address: str) -> tuple[Any, str]:
        asked.append(address)
        return System(), inner

    monkeypatch.setattr("evalstone._core.storage._opened_system", opened)
    file = Location.of(address)
    assert (str(file), str(file.folder / "b.x"), str(file.absolute)) == (address,) * 3
    assert str(file.found()) == address
    root = asked[-1].rstrip("/")
    assert address.startswith(f"{root}/")
    assert root not in ("abfs://account", "abfs://box")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "s3://bucket/a.jsonl?endpoint_override=http://localhost:9000",
            r"^the address has the option 'endpoint_over.*_URL",
        ),
        ("hdfs://node:8020/a?replication=2", "^the address has the option 'replication'"),
        ("s3://key:SECRET@bucket/a", "^the address has a user or key before its bucket; keys are read from the env"),
        ("s3://key:SEC/RET@bucket/a", "^the address has a user or key"),
        ("gs://anonymous@bucket/a", "^the address has a user or key"),
        ("abfs://box:SECRET@account.dfs.core.windows.net/a", "^the address has a password; keys are read from the env"),
    ],
)
def test_an_address_with_parts_that_are_not_kept_is_refused(address: str, message: str) -> None:
    for read in (Location.of, find_all):
        with pytest.raises(ConfigError, match=message) as raised:
            read(address)
        assert "SEC" not in str(raised.value)


def test_addresses_and_patterns() -> None:
    assert [*map(is_address, ("s3://a/b", "a/b", "C:\\x", "file:///x", Path("a")))] == [True, False, False, True, False]
    assert [*map(is_pattern, ("a*.jsonl", "a?.jsonl", "a[1].jsonl"))] == [True, True, False]
    assert Location.of("file:///tmp/x").local == Path("/tmp/x")
    assert str(Location.of("~/x")) == str(Path.home() / "x")
