"""Zip archives of others, also hostile ones."""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone import DataError, MissingDependency
from evalstone.compat.imports import archives
from evalstone.compat.imports.archives import Archive

ZSTANDARD = Path(__file__).parent / "inspect" / "two.eval"
TEXT = "Some text. " * 20_000


def archive(**contents: str) -> bytes:
    """A deflated archive, whose members have these texts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in (contents or {"a.json": TEXT, "b.json": "{}"}).items():
            written.writestr(name, text)
    return file.getvalue()


def texts(path: Path) -> dict[str, str]:
    with Archive(path) as opened:
        return {name: "".join(opened.text(entry)) for name, entry in opened.entries.items()}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("comment", [b"", b"PK\5\6 in a comment"[3:]])
def test_members_are_read(tmp_path: Path, method: int, comment: bytes) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as written:
        written.comment = comment
        written.writestr("a.json", TEXT)
        written.writestr("é/ü.json", "{}")
        with written.open("big.json", "w", force_zip64=True) as member:
            member.write(b"64 bits")
    assert texts(path) == {"a.json": TEXT, "é/ü.json": "{}", "big.json": "64 bits"}


def test_zstandard_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    found = texts(ZSTANDARD)
    assert found["_journal/start.json"].startswith('{"version":2,')
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match="pyarrow is not installed"):
        texts(ZSTANDARD)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0xFFFF, 0xFFFF + 1])
def test_many_entries_are_read_with_and_without_an_end_of_64_bits(tmp_path: Path, count: int) -> None:
    names = [b"%d" % number for number in range(count)]
    locals_ = [struct.pack("<4s5H3L2H", b"PK\3\4", *[0] * 8, len(name), 0) + name for name in names]
    entries, at = list[bytes](), 0
    for name, local in zip(names, locals_, strict=True):
        entries.append(struct.pack("<4s6H3L5H2L", b"PK\1\2", *[0] * 9, len(name), *[0] * 5, at) + name)
        at += len(local)
    directory = b"".join(entries)
    data = b"".join((*locals_, directory))
    data += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(directory), at, 0)
    path = write(tmp_path / "a.zip", data if count == 0xFFFF else of_64_bits(data, count))
    with zipfile.ZipFile(path) as known, Archive(path) as opened:
        assert [*opened.entries] == known.namelist()


def entry_of(data: bytes, name: bytes, offset: int, change: bytes, *, local: bool = False) -> bytes:
    """An archive with other bytes in the directory's entry of a member, or in its own header."""
    at = data.find(name) - 30 if local else data.rfind(name) - 46
    return data[: at + offset] + change + data[at + offset + len(change) :]


def end_of(data: bytes, offset: int, change: bytes) -> bytes:
    at = data.rfind(b"PK\5\6") + offset
    return data[:at] + change + data[at + len(change) :]


def of_64_bits(data: bytes, count: int) -> bytes:
    """An archive whose end says that there are so many entries."""
    at = data.rfind(b"PK\5\6")
    size, offset = struct.unpack_from("<2L", data, at + 12)
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, offset)
    place = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    return data[:at] + end + place + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, offset, 0)


def place_of_64_bits(data: bytes) -> bytes:
    """An archive whose directory is said to be behind its end."""
    at = data.rfind(b"PK\6\7") + 8
    return data[:at] + b"\xff" * 4 + data[at + 4 :]


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"PK", "the archive is cut off: its directory, which is at the end, is missing"),
    "truncated": (lambda data: data[:-30], "the archive is cut off: its directory"),
    "followed": (lambda data: data + b"x", "its end isn't that of the file"),
    "preceded": (lambda data: b"x" + data, "directory isn't where its end says"),
    "2^31 entries": (lambda data: of_64_bits(data, 2**31), "an archive of 2,147,483,648 entries; at most 1,000,000"),
    "fewer entries": (lambda data: of_64_bits(data, 1), "has more than the 1 entries that it says"),
    "more entries": (lambda data: end_of(data, 8, b"\3\0\3\0"), "the archive's directory is cut off"),
    "wrong place": (lambda data: place_of_64_bits(of_64_bits(data, 2)), "the place of its directory is wrong"),
    "no place": (lambda data: end_of(data, 12, b"\xff" * 8), "the place of its directory is missing"),
    "split": (lambda data: end_of(data, 4, b"\1\0"), "the archive is one part of several"),
    "encrypted": (lambda data: entry_of(data, b"a.json", 8, b"\1"), "'a.json' is encrypted"),
    "bzip2": (lambda data: entry_of(data, b"a.json", 10, b"\14"), "'a.json' is bzip2; it should be stored, deflated"),
    "unknown": (lambda data: entry_of(data, b"a.json", 10, b"\77"), "'a.json' is compressed by method 63"),
    "larger": (lambda data: entry_of(data, b"a.json", 24, b"\1\0\0\0"), "has more than the 1 bytes that it says"),
    "smaller": (lambda data: entry_of(data, b"b.json", 24, b"\7\0\0\0"), "is cut off: it has 2 of its 7 bytes"),
    "damaged": (lambda data: entry_of(data, b"a.json", 16, b"\0\0\0\0"), "'a.json' is damaged: its checksum is wrong"),
    "no deflate": (lambda data: entry_of(data, b"a.json", 36, b"\xff\xff", local=True), "'a.json' is damaged"),
    "cut": (lambda data: entry_of(data, b"b.json", 20, b"\1\0\0\0"), "'b.json' is cut off"),
    "overlap": (lambda data: entry_of(data, b"b.json", 42, b"\0\0\0\0"), "entries of the archive overlap"),
    "renamed": (lambda data: entry_of(data, b"a.json", 30, b"x", local=True), "'a.json' has another name in the"),
    "elsewhere": (lambda data: entry_of(data, b"a.json", 0, b"xx", local=True), "'a.json' isn't where the archive's"),
    "too far": (lambda data: entry_of(data, b"b.json", 20, b"\0\0\1\0"), "reaches into its directory"),
    "no entry": (lambda data: entry_of(data, b"a.json", 0, b"xx"), "the archive's directory is damaged"),
    "no name": (lambda data: entry_of(entry_of(data, b"a.json", 9, b"\10"), b"a.json", 46, b"\xff"), "is no text"),
    "parent": (lambda _: archive(**{"../a": "x"}), r"'\.\./a' is a path out of the archive"),
    "inner parent": (lambda _: archive(**{"a/../../b": "x"}), "is a path out of the archive"),
    "absolute": (lambda _: archive(**{"/etc/passwd": "x"}), "'/etc/passwd' is a path out of the archive"),
    "drive": (lambda _: archive(**{"C:x": "x"}), "'C:x' is a path out of the archive"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_in_words(tmp_path: Path, kind: str) -> None:
    change, problem = HOSTILE[kind]
    with pytest.raises(DataError, match=problem):
        texts(write(tmp_path / "a.zip", change(archive())))


def test_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("a.json", b"\xff\xfe")
    with pytest.raises(DataError, match=r"'a.json' is no UTF-8 text"):
        texts(path)


def test_a_bomb_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.01")
    path = write(tmp_path / "a.zip", archive(a="x" * 1_000_000))
    with pytest.raises(DataError, match="whose rows would take more than"):
        texts(path)
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "64")
    monkeypatch.setattr(archives, "MOST_ENTRIES", 2)
    assert len(texts(write(path, archive()))) == 2
    monkeypatch.setattr(archives, "MOST_ENTRIES", 1)
    with pytest.raises(DataError, match="an archive of 2 entries; at most 1"):
        texts(path)


@pytest.mark.parametrize(
    ("method", "name"),
    [(1, "shrunk"), (6, "imploded"), (9, "Deflate64"), (12, "bzip2"), (14, "LZMA"), (95, "XZ"), (98, "PPMd")],
)
def test_a_method_that_isnt_read_is_named(tmp_path: Path, method: int, name: str) -> None:
    path = write(tmp_path / "a.zip", entry_of(archive(), b"a.json", 10, bytes((method, 0))))
    with pytest.raises(DataError, match=f"'a.json' is {name}; it should be stored"):
        texts(path)


def test_an_archive_without_members_has_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", struct.pack("<4s4H2LH", b"PK\5\6", *[0] * 7))
    assert texts(path) == {}


def of_wide_entries(members: dict[bytes, bytes], wide: tuple[bool, bool, bool], before: bytes = b"") -> bytes:
    """An archive of stored members whose sizes (content, packed) and places are of 64 bits where `wide` says it.
    before: What their extra field has before them."""
    locals_, entries, at = list[bytes](), list[bytes](), 0
    for name, content in members.items():
        check, size = zlib.crc32(content), len(content)
        head = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 0, check, size, size, len(name), 0)
        numbers = [0xFFFFFFFF if is_wide else number for is_wide, number in zip(wide, (size, size, at), strict=True)]
        true = [number for is_wide, number in zip(wide, (size, size, at), strict=True) if is_wide]
        extra = before + struct.pack(f"<2H{len(true)}Q", 1, 8 * len(true), *true)
        entry = struct.pack(
            *("<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 0, check, numbers[1], numbers[0], len(name), len(extra)),
            *(3, 0, 0, 0, numbers[2]),
        )
        entries.append(entry + name + extra + b"say")
        locals_.append(head + name + content)
        at += len(locals_[-1])
    directory = b"".join(entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), at, 0)
    return b"".join((*locals_, directory, end))


@pytest.mark.parametrize("wide", [*itertools.product((False, True), repeat=3)])
@pytest.mark.parametrize("before", [b"", struct.pack("<2H3s", 0x5455, 3, b"abc")])
def test_sizes_and_places_of_64_bits_are_read_also_after_other_fields_and_before_comments(
    tmp_path: Path, wide: tuple[bool, bool, bool], before: bytes
) -> None:
    members = {b"a.json": b"[1, 2, 3]", b"b.json": b"{}"}
    path = write(tmp_path / "a.zip", of_wide_entries(members, wide, before))
    with zipfile.ZipFile(path) as known:
        assert {name.encode(): known.read(name) for name in known.namelist()} == members
    assert texts(path) == {"a.json": "[1, 2, 3]", "b.json": "{}"}


def test_a_size_of_64_bits_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    data = of_wide_entries({b"a.json": b"[1]"}, (True, True, False))
    path = write(tmp_path / "a.zip", entry_of(data, b"a.json", 46 + 6 + 2, struct.pack("<H", 8)))
    with pytest.raises(DataError, match=r"the size of 'a\.json' is damaged"):
        texts(path)
