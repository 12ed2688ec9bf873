"""Texts that spill to a temporary file: read back as they were, in any order, whatever is in memory."""

from __future__ import annotations

import errno
import tempfile

import pytest

from evalstone._core import spilled_texts, temporary
from evalstone._core.spilled_texts import SpilledTexts, SpillFile
from evalstone._core.temporary import TemporaryData
from evalstone.errors import WriteError

TEXTS = [f"{n} é\u2028" * (n % 7) if n % 3 else "x" * n for n in range(500)]


@pytest.mark.parametrize("limit", [1, 700, 1 << 20])
def test_texts_are_read_as_they_were_added(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled_texts, "IN_MEMORY", limit)
    monkeypatch.setattr(temporary, "WINDOW", 64)
    texts = SpilledTexts("texts")
    for text in TEXTS[:200]:
        texts.append(text)
    assert list(texts) == TEXTS[:200]
    texts.extend(TEXTS[200:])
    assert list(texts) == TEXTS == texts
    assert [texts.at(place) for place in (499, 0, 250, 249, 251)] == [TEXTS[n] for n in (499, 0, 250, 249, 251)]
    assert (texts[-1], texts[3:9:2], len(texts)) == (TEXTS[-1], tuple(TEXTS[3:9:2]), 500)
    with pytest.raises(IndexError):
        texts[500]


def test_texts_are_written_each_time_they_outgrow_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled_texts, "IN_MEMORY", 1000)
    written, really = list[int](), TemporaryData.append

    def counted(self: TemporaryData, data: bytes) -> int:
        written.append(len(data))
        return really(self, data)

    monkeypatch.setattr(TemporaryData, "append", counted)
    texts = SpilledTexts("texts")
    for _ in range(25):
        texts.append("x" * 40)  # 100 with what a text takes besides
    assert written == [440, 440]
    texts.extend(["x" * 40] * 7)
    assert written == [440, 440]
    texts.extend(["x" * 40] * 2)
    assert written == [440, 440, 480]


def test_without_texts_there_is_no_file() -> None:
    texts = SpilledTexts("texts")
    assert (list(texts), len(texts), texts[:]) == ([], 0, ())


def test_a_full_disk_loses_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = SpilledTexts("texts")
    texts.append("kept")
    monkeypatch.setattr(spilled_texts, "IN_MEMORY", 1)

    def full(self: TemporaryData, data: bytes) -> int:
        raise WriteError("full")

    monkeypatch.setattr(TemporaryData, "append", full)
    with pytest.raises(WriteError, match="full"):
        texts.extend(["x" * (1 << 20), "last"])
    assert [texts[0], texts[2]] == ["kept", "last"]


@pytest.mark.parametrize("limit", [1, 700, 1 << 20])
def test_lists_that_share_a_file_have_their_own_texts(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled_texts, "IN_MEMORY", limit)
    monkeypatch.setattr(temporary, "WINDOW", 64)
    made, really = list[str](), TemporaryData.__init__

    def counted(self: TemporaryData, what: str) -> None:
        made.append(what)
        really(self, what)

    monkeypatch.setattr(TemporaryData, "__init__", counted)
    file = SpillFile("rows")
    lists = [SpilledTexts(f"{n}", file) for n in range(40)]
    for number, text in enumerate(TEXTS):
        for place, each in enumerate(lists):
            if number % (place + 1) == 0:
                each.append("" if place == 7 else text)
    for place, each in enumerate(lists):
        expected = TEXTS[:: place + 1]
        assert list(each) == ([""] * len(expected) if place == 7 else expected)
    assert made == (["rows"] if limit < 1 << 20 else [])


def test_lists_that_share_a_file_share_the_memory() -> None:
    file = SpillFile("rows")
    limits = list[int]()
    for number in (1, 16, 32, 10_000):
        file.lists = number
        limits.append(file.limit)
    assert limits == [1 << 20, 1 << 20, 1 << 19, 1 << 15]


def test_too_many_open_files_are_no_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(WriteError, match=r"Too many open files\. Raise the limit: ulimit -n"):
        TemporaryData("texts")
