"""Places in the file of traces: each line that was written is read once, with the time at which it was written."""

from __future__ import annotations

import errno
import json
import threading
from array import array
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalstone.collect import reading
from evalstone.collect.reading import Piece, TraceIndex, Written
from tests.traced import span, spans


def line(trace: str) -> bytes:
    return json.dumps(spans(span(1, "chat", {}, trace=trace * 32)), separators=(",", ":")).encode() + b"\n"


LENGTH = len(line("a"))


def opened(written: Written, path: Path, traces: str) -> None:
    path.write_bytes(b"".join(map(line, traces)))
    with path.open("rb") as writer:
        written.open(path, writer)


def pieces(written: Written) -> list[tuple[str, float]]:
    """What is read, a text of traces for each piece, with its time."""
    found = list[Piece](iter(written.read, None))  # pyright: ignore[reportArgumentType]
    assert not any(piece.unreadable for piece in found)
    return [("".join(line.records[0].trace[0] for line in piece.lines), piece.at) for piece in found]


@pytest.fixture
def written() -> Generator[Written]:
    made = Written(1.0)
    yield made
    made.close()


def test_what_is_written_within_the_resolution_is_read_together_and_the_rest_by_its_time(
    written: Written, tmp_path: Path
) -> None:
    opened(written, tmp_path / "t", "abc")
    for number, at in enumerate((0.0, 0.9, 1.0)):
        written.add(number * LENGTH, (number + 1) * LENGTH, at)
    assert pieces(written) == [("ab", 0.0), ("c", 1.0)]


def test_what_is_read_together_has_the_times_of_its_first_and_its_last_write(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "abc")
    for number, at in enumerate((0.0, 0.5, 0.9)):
        written.add(number * LENGTH, (number + 1) * LENGTH, at)
    piece = written.read()
    assert piece is not None
    assert (len(piece.lines), piece.at, piece.until) == (3, 0.0, 0.9)


def test_what_others_have_written_between_two_places_is_not_read(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "axb")
    written.add(0, LENGTH, 0.0)
    written.add(2 * LENGTH, 3 * LENGTH, 0.0)
    assert pieces(written) == [("a", 0.0), ("b", 0.0)]


def test_pieces_end_with_a_line(written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PIECE", LENGTH + 10)
    opened(written, tmp_path / "t", "abcde")
    written.add(0, 5 * LENGTH, 0.0)
    assert pieces(written) == [(trace, 0.0) for trace in "abcde"]


def test_each_line_has_its_place_and_its_length(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "abc")
    written.add(LENGTH, 3 * LENGTH, 0.0)
    piece = written.read()
    assert piece is not None
    assert [each[1:] for each in piece.lines] == [(LENGTH, LENGTH), (2 * LENGTH, LENGTH)]


def test_lines_that_are_no_traces_are_said_and_the_others_read(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "ab")
    (tmp_path / "t").write_bytes(line("a").replace(b"{", b"[", 1) + line("b"))
    written.add(0, 2 * LENGTH, 0.0)
    piece = written.read()
    assert piece is not None
    assert len(piece.lines) == 1
    assert piece.unreadable


def test_a_line_that_is_nested_too_deeply_is_said(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "")
    (tmp_path / "t").write_bytes(b"[" * 100_000 + b"\n")
    written.add(0, 100_001, 0.0)
    piece = written.read()
    assert piece is not None
    assert (piece.lines, bool(piece.unreadable)) == ([], True)


def test_a_line_that_something_else_has_cut_is_said_once(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "t", "a")
    (tmp_path / "t").write_bytes(line("a")[:-10])
    written.add(0, LENGTH, 0.0)
    found = [written.read() for _ in range(2)]
    assert [piece and piece.unreadable for piece in found] == ["the file is shorter than it was", None]


def test_an_error_of_the_disk_is_said_and_what_comes_after_it_read(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    opened(written, tmp_path / "t", "ab")
    written.add(0, LENGTH, 0.0)
    written.add(LENGTH, 2 * LENGTH, 5.0)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "_lines", broken)
        piece = written.read()
    assert piece is not None
    assert piece.unreadable == "Input/output error"
    assert pieces(written) == [("b", 5.0)]


def test_a_file_that_another_has_replaced_since_it_was_opened_to_write_is_refused(
    written: Written, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(line("a"))
    with (tmp_path / "first").open("rb") as writer, pytest.raises(OSError, match="was moved"):
        written.open(tmp_path / "second", writer)


def test_a_file_to_which_nothing_was_written_is_closed_with_the_next_one(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "first", "a")
    (first,) = written._files  # pyright: ignore[reportPrivateUsage]
    opened(written, tmp_path / "second", "a")
    assert first.closed


def test_a_file_that_was_moved_is_closed_once_it_was_read(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "first", "ab")
    written.add(0, LENGTH, 0.0)
    written.add(LENGTH, 2 * LENGTH, 5.0)
    opened(written, tmp_path / "second", "c")
    first, _ = files = list(written._files)  # pyright: ignore[reportPrivateUsage]
    written.read()
    assert [file.closed for file in files] == [False, False]
    written.read()
    assert [file.closed for file in files] == [True, False]
    assert first not in written._files  # pyright: ignore[reportPrivateUsage]
    written.add(0, LENGTH, 6.0)
    assert pieces(written) == [("c", 6.0)]


def test_a_place_in_another_file_is_read_there(written: Written, tmp_path: Path) -> None:
    opened(written, tmp_path / "first", "ax")
    written.add(0, LENGTH, 0.0)
    opened(written, tmp_path / "second", "xb")
    written.add(LENGTH, 2 * LENGTH, 0.0)
    assert pieces(written) == [("a", 0.0), ("b", 0.0)]


def test_what_is_written_while_the_place_before_it_is_done_is_read(written: Written, tmp_path: Path) -> None:
    class Extents(deque[Any]):
        """In which something is added just before the first is taken out."""

        def popleft(self) -> Any:
            if not adding.ident:
                adding.start()
                adding.join(0.1)
            return super().popleft()

    opened(written, tmp_path / "t", "ab")
    written._extents = Extents()  # pyright: ignore[reportPrivateUsage]
    written.add(0, LENGTH, 0.0)
    adding = threading.Thread(target=written.add, args=(LENGTH, 2 * LENGTH, 0.0))
    first = written.read()
    adding.join()
    assert first is not None
    assert pieces(written) == [("b", 0.0)]


def test_an_index_has_the_places_of_what_was_there_and_of_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BLOCK", 2)
    path = tmp_path / "t"
    path.write_bytes(b"".join(map(line, "aba")))
    index = TraceIndex(path)
    index.look_back()
    with path.open("ab") as file:
        for number, trace in enumerate("bcabd", 3):
            file.write(line(trace))
            index.add(path.stat(), number * LENGTH, {trace * 32})
        file.write(line("d")[:-9] + b"\n")

    def read(traces: str, scored: str) -> dict[str, int]:
        found = index.records_of([trace * 32 for trace in traces], {trace * 32 for trace in scored})
        return {trace[0]: len(records) for trace, records in found.items()}

    assert read("abcde", "") == {"a": 2, "b": 1}, "of what was not scored, only what came before"
    assert read("abcde", "abcde") == {"a": 3, "b": 3, "c": 1, "d": 1}
    monkeypatch.setattr(reading, "LOOKED_BACK", 2 * LENGTH)
    for number in (8, 9):
        index.add(path.stat(), number * LENGTH, {"e" * 32})
    assert read("bd", "bd") == {"b": 2, "d": 1}, "the blocks before are forgotten"


def test_a_file_that_takes_the_place_of_one_that_was_indexed_has_its_own_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BLOCK", 1)
    path = tmp_path / "t"
    path.write_bytes(line("a") + line("b"))
    index = TraceIndex(path)
    index.look_back()
    index.add(path.stat(), LENGTH, {"b" * 32})
    path.rename(tmp_path / "moved")
    path.write_bytes(b"".join(map(line, "abc")))
    index.add(path.stat(), 2 * LENGTH, {"c" * 32})
    traces = [trace * 32 for trace in "abc"]
    assert index.records_of(traces, ()) == {}
    assert list(index.records_of(traces, set(traces))) == ["c" * 32]


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"a" * 32, b"A" * 32), (b'"traceId"', b'"trace_id"'), (b'"traceId":', b'"traceId" : ')],
    ids=["capitals", "snake case", "spaces"],
)
def test_an_index_knows_each_form_of_the_id_of_a_trace(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "t"
    path.write_bytes(b'{"traceId":"\xff"}\n' + line("a").replace(before, after))
    index = TraceIndex(path)
    index.look_back()
    assert list(index.records_of(["a" * 32], ())) == ["a" * 32]


def test_of_a_line_only_the_traces_that_are_asked_for_are_found(tmp_path: Path) -> None:
    path = tmp_path / "t"
    both = spans(*(span(1, "chat", {}, trace=trace * 32) for trace in "ab"))
    path.write_text(json.dumps(both, separators=(",", ":")) + "\n")
    index = TraceIndex(path)
    index.look_back()
    found = index.records_of(["a" * 32], ())
    assert [record.trace for records in found.values() for record in records] == ["a" * 32]


def test_a_line_that_cannot_be_read_costs_no_other_line_of_its_trace(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(line("a")[:-9] + b"\n" + line("a"))
    index = TraceIndex(path)
    index.look_back()
    assert len(index.records_of(["a" * 32], ())["a" * 32]) == 1


def test_places_beyond_four_gigabytes_are_kept() -> None:
    start = reading._start("a")  # pyright: ignore[reportPrivateUsage]
    places = [0, 5 << 30, (1 << 40) - 1]
    block = array("Q", [start | place for place in places])
    assert list(reading._places_of("a", block)) == places  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("replaced", [True, False])
def test_an_index_forgets_a_file_that_was_moved(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "t"
    path.write_bytes(line("a"))
    index = TraceIndex(path)
    index.look_back()
    path.rename(tmp_path / "moved")
    if replaced:
        path.write_bytes(line("b") * 2)
    assert index.records_of(["a" * 32], {"a" * 32}) == {}
    (tmp_path / "moved").replace(path)
    assert index.records_of(["a" * 32], {"a" * 32}) == {}
    path.rename(tmp_path / "moved")
    path.write_bytes(line("c"))
    index.add(path.stat(), 0, {"c" * 32})
    assert list(index.records_of(["a" * 32, "c" * 32], {"a" * 32, "c" * 32})) == ["c" * 32]


def test_an_index_looks_back_so_far_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"".join(map(line, "abc")))
    monkeypatch.setattr(reading, "LOOKED_BACK", 2 * LENGTH + 1)
    index = TraceIndex(path)
    index.look_back()
    assert [trace[0] for trace in index.records_of([trace * 32 for trace in "abc"], ())] == ["b", "c"]
    monkeypatch.setattr(reading, "LOOKED_BACK", 3 * LENGTH)
    index.look_back()
    assert [trace[0] for trace in index.records_of([trace * 32 for trace in "abc"], ())] == ["a", "b", "c"]
