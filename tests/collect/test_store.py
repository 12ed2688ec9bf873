"""The file of what was received."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.formats.records import records_in
from evalstone.collect import store
from evalstone.collect.completion import OpenTraces
from evalstone.collect.reading import Written
from evalstone.collect.store import StoreFull, TraceFile, has_traces
from evalstone.errors import ConfigError
from tests.fakes import awaited
from tests.traced import TRACE, log, logs, span, spans

LINE = json.dumps(spans(span(1, "chat", {}))).encode()


def write(path: Path, *lines: bytes) -> None:
    async def main() -> None:
        file = TraceFile(path)
        await asyncio.gather(*map(file.append, lines))
        await file.close()

    asyncio.run(main())


def test_lines_are_appended_to_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, LINE, LINE)
    write(path, LINE)
    assert path.read_bytes() == (LINE + b"\n") * 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_is_longer_than_what_may_wait_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.collect.store.WAITING_BYTES", 10)
    write(tmp_path / "t.jsonl", LINE)
    assert (tmp_path / "t.jsonl").read_bytes() == LINE + b"\n"


@awaited
async def test_only_so_much_waits_for_the_disk_and_what_was_written_waits_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WAITING_BYTES", 3 * (len(LINE) + 1))
    written = asyncio.Semaphore(0)
    loop, sync = asyncio.get_running_loop(), os.fsync

    def slowly(number: int) -> None:
        asyncio.run_coroutine_threadsafe(written.acquire(), loop).result(10)
        sync(number)

    monkeypatch.setattr(store.os, "fsync", slowly)
    path = tmp_path / "t.jsonl"
    file = TraceFile(path)
    appended = list[asyncio.Task[None]]()

    async def fill() -> int:
        """How many lines are taken until one is refused."""
        for number in range(10):
            task = asyncio.create_task(file.append(LINE))
            await asyncio.sleep(0)
            if task.done():
                with pytest.raises(StoreFull):
                    task.result()
                return number
            appended.append(task)
        raise AssertionError("all were taken")

    assert await fill() == 3, "one is being written, and two wait"
    written.release()
    await appended[0]
    assert await fill() == 1, "two are being written, and one waits"
    for _ in range(2):
        written.release()
    await asyncio.gather(*appended)
    assert await fill() == 3, "as at first"
    for _ in range(2):
        written.release()
    await asyncio.gather(*appended)
    await file.close()
    assert path.read_bytes() == (LINE + b"\n") * 7


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize("size", [20, len(LINE) - 1])
def test_a_line_that_was_cut_by_a_crash_is_removed(tmp_path: Path, kept: int, size: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes((LINE + b"\n") * kept + LINE[:size])
    file = TraceFile(path)
    assert file.removed == size
    asyncio.run(file.close())
    assert path.read_bytes() == (LINE + b"\n") * kept


@pytest.mark.parametrize("kept", [0, 2])
def test_a_last_line_that_is_whole_but_for_its_end_is_kept(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes((LINE + b"\n") * kept + LINE)
    write(path, LINE)
    assert path.read_bytes() == (LINE + b"\n") * (kept + 2)


@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_was_moved_or_removed_is_begun_anew(tmp_path: Path, moved: bool) -> None:
    path, rotated = tmp_path / "t.jsonl", tmp_path / "t.jsonl.1"

    async def main() -> None:
        file = TraceFile(path)
        await file.append(LINE)
        if moved:
            path.rename(rotated)
        else:
            path.unlink()
        await file.append(LINE)
        await file.append(LINE)
        with pytest.raises(ConfigError, match="another process"):
            TraceFile(path)
        await file.close()

    asyncio.run(main())
    assert path.read_bytes() == (LINE + b"\n") * 2
    assert not moved or rotated.read_bytes() == LINE + b"\n"


def test_what_a_failed_write_left_is_removed_once_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"

    async def main() -> None:
        file = TraceFile(path)
        await file.append(LINE)

        def fails(number: int) -> None:
            monkeypatch.undo()
            with path.open("ab") as cut:
                cut.truncate(len(LINE) + 30)
            monkeypatch.setattr(store, "open", _refuse, raising=False)
            _refuse()

        monkeypatch.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="Too many open files"):
            await file.append(LINE)
        monkeypatch.undo()
        await file.append(LINE)
        await file.close()

    asyncio.run(main())
    assert path.read_bytes() == (LINE + b"\n") * 2


def test_a_line_that_ends_where_a_piece_begins_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, half = tmp_path / "t.jsonl", LINE[:30]
    monkeypatch.setattr(store, "_PIECE", len(half) + 1)
    path.write_bytes((LINE + b"\n") * 2 + half)
    write(path)
    assert path.read_bytes() == (LINE + b"\n") * 2


@awaited
async def test_a_close_that_is_canceled_takes_no_line_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, sync = threading.Event(), os.fsync

    def slowly(number: int) -> None:
        release.wait(10)
        sync(number)

    monkeypatch.setattr(store.os, "fsync", slowly)
    file = TraceFile(tmp_path / "t.jsonl")
    appended = asyncio.create_task(file.append(LINE))
    await asyncio.sleep(0)
    closing = asyncio.create_task(file.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    release.set()
    await asyncio.wait_for(appended, 10)
    await file.close()
    assert (tmp_path / "t.jsonl").read_bytes() == LINE + b"\n"


def test_a_file_that_something_else_has_emptied_before_a_write_failed_gets_no_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"

    def fails(number: int) -> None:
        path.write_bytes(b"")
        _refuse()

    async def main() -> None:
        file = TraceFile(path)
        await file.append(LINE)
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", fails)
            with pytest.raises(OSError, match="Too many open files"):
                await file.append(LINE)
        await file.append(LINE)
        await file.close()

    asyncio.run(main())
    assert path.read_bytes() == LINE + b"\n"


def test_a_disk_that_stays_full_takes_no_more_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[int]:
        file, counts = TraceFile(tmp_path / "t.jsonl", Written(1)), list[int]()
        monkeypatch.setattr("os.fsync", _refuse)
        for _ in range(20):
            with pytest.raises(OSError, match="Too many open files"):
                await file.append(LINE)
            counts.append(len(os.listdir("/dev/fd")))  # noqa: PTH208
        await file.close()
        return counts

    counts = asyncio.run(main())
    assert counts[-1] <= counts[0] + 1


@pytest.mark.parametrize("moved", ["before the next line", "after it, and back"])
def test_a_failed_write_costs_no_line_of_a_file_that_took_its_place_or_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    path, other = tmp_path / "t.jsonl", tmp_path / "t.jsonl.1"

    def fails(number: int) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(store, "open", _refuse, raising=False)
        _refuse()

    async def main() -> None:
        file = TraceFile(path)
        await file.append(LINE)
        monkeypatch.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="Too many open files"):
            await file.append(LINE)
        monkeypatch.undo()
        if moved == "before the next line":
            path.rename(other)
            path.write_bytes((LINE + b"\n") * 2)
        else:
            await file.append(LINE)
            path.rename(other)
            await file.append(LINE)
            other.replace(path)
        await file.append(LINE)
        await file.close()

    asyncio.run(main())
    assert path.read_bytes() == (LINE + b"\n") * 3


def _refuse(*_: Any, **__: Any) -> Any:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(
    "content", [b"my notes", b"my notes\n", b"[" * 100_000 + b"\n", b'{"input": "q"}\n', LINE + b"\nmy notes"]
)
def test_a_file_with_anything_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="exists and"):
        TraceFile(path)
    assert path.read_bytes() == content


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "t.jsonl")
    with pytest.raises(ConfigError, match="being written to by another process"):
        TraceFile(tmp_path / "t.jsonl")
    asyncio.run(file.close())
    with pytest.raises(ConfigError, match="No such file"):
        TraceFile(tmp_path / "absent" / "t.jsonl")


@pytest.mark.parametrize("error", [ImportError("fcntl"), OSError(37, "No locks available")])
def test_where_files_cannot_be_locked_they_are_written_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    if isinstance(error, ImportError):
        monkeypatch.setattr("importlib.import_module", fails)
    else:
        monkeypatch.setattr("fcntl.flock", fails)
    file = TraceFile(tmp_path / "t.jsonl")
    assert file.locked is None
    asyncio.run(file.append(LINE))
    asyncio.run(file.close())
    assert (tmp_path / "t.jsonl").read_bytes() == LINE + b"\n"


def test_a_request_that_is_gone_keeps_nobody_from_writing(tmp_path: Path) -> None:
    async def main() -> None:
        file = TraceFile(tmp_path / "t.jsonl")
        gone = asyncio.create_task(file.append(LINE))
        await asyncio.sleep(0)
        gone.cancel()
        for _ in range(2):
            await asyncio.wait_for(file.append(LINE), 5)
        await file.close()

    asyncio.run(main())
    assert (tmp_path / "t.jsonl").read_bytes() == (LINE + b"\n") * 3


def test_whatever_goes_wrong_in_writing_nobody_waits_for_it_and_the_next_line_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        written = Written(1.0)
        file = TraceFile(tmp_path / "t.jsonl", written)
        for place, name in ((store.os, "fsync"), (written, "add")):
            with monkeypatch.context() as broken:
                broken.setattr(place, name, fail)
                with pytest.raises(OSError, match="ZeroDivisionError"):
                    await asyncio.wait_for(file.append(LINE), 5)
            await asyncio.wait_for(file.append(LINE), 5)
        await file.close()

    asyncio.run(main())
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines()
    assert lines == [LINE] * 3, "the first was not written; the second could not be passed on to be read"


def test_a_file_that_is_moved_as_it_is_opened_is_not_read_in_place_of_what_is_written(tmp_path: Path) -> None:
    path, written = tmp_path / "t.jsonl", Written(1.0)
    with path.open("a+b") as writer:
        path.rename(tmp_path / "t.jsonl.1")
        path.touch()
        with pytest.raises(OSError, match="was moved"):
            written.open(path, writer)
    written.close()


def test_a_trace_is_complete_once_its_root_has_ended_and_nothing_more_comes() -> None:
    def add(made: dict[str, object], now: float) -> None:
        open_traces.add([*records_in(spans(made))], now)

    open_traces = OpenTraces(quiet=5)
    add(span(2, "child", {}, parent=1), 0)
    assert list(open_traces.complete(30)) == []
    add(span(1, "root", {}), 31)
    assert list(open_traces.complete(35)) == []
    add(span(3, "child", {}, parent=1), 35)
    assert list(open_traces.complete(39)) == []
    ((*records,),) = open_traces.complete(40)
    assert [record.name for record in records] == ["child", "root", "child"]
    add(span(4, "late", {}, parent=1), 41)
    assert (list(open_traces.complete(100)), open_traces.late) == ([], 1)
    add(span(5, "late", {}, parent=1, events=[{"name": "gen_ai.choice"}]), 42)
    assert open_traces.late == 2, "events of a span are no spans"


def test_a_trace_without_its_root_is_not_waited_for_forever() -> None:
    open_traces = OpenTraces(quiet=5)
    open_traces.add([*records_in(spans(span(2, "child", {}, parent=1)))], 0)
    assert list(open_traces.complete(59)) == []
    assert len(list(open_traces.complete(60))) == 1
    open_traces.add([*records_in(spans(span(2, "child", {}, parent=1, trace=TRACE[::-1])))], 0)
    assert len(list(open_traces.complete(0, all=True))) == 1


def test_a_log_record_is_no_root() -> None:
    open_traces = OpenTraces(quiet=5)
    open_traces.add([*records_in(spans(span(2, "child", {}, parent=1))), *records_in(logs(log(2, "text", {})))], 0)
    assert list(open_traces.complete(59)) == []


def test_what_is_complete_takes_no_room_from_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.collect.completion.MOST_BYTES", 300)
    monkeypatch.setattr("evalstone.collect.completion.MOST_RECORDS", 3)
    open_traces = OpenTraces(quiet=5)
    for now in (0, 10, 20):
        open_traces.add([*records_in(spans(*(span(n, "x", {}, trace=f"{now + 1:032x}") for n in (1, 2, 3))))], now, 300)
        assert list(open_traces.complete(now)) == [], "as many as may wait"
        assert len(list(open_traces.complete(now + 5))) == 1
    open_traces.add([*records_in(spans(span(1, "x", {})))], 30, 301)
    assert len(list(open_traces.complete(30))) == 1, "more than may wait"


@pytest.mark.parametrize(("limit", "most"), [("MOST_RECORDS", 3), ("MOST_BYTES", 300)])
def test_when_too_much_waits_the_traces_longest_without_news_go_first(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(f"evalstone.collect.completion.{limit}", most)
    open_traces = OpenTraces(quiet=5)
    for number in (1, 2, 3, 4, 1):
        open_traces.add([*records_in(spans(span(1, "root", {}, trace=str(number) * 32)))], number, 100)
    assert [records[0].trace[0] for records in open_traces.complete(4)] == ["2", "3"]
    assert len([*open_traces.complete(4, all=True)]) == 2


def test_the_bytes_of_a_request_count_once_however_many_spans_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.collect.completion.MOST_BYTES", 300)
    open_traces = OpenTraces(quiet=5)
    three = [span(1, "root", {}, trace=str(number) * 32) for number in (1, 2, 3)]
    open_traces.add([*records_in(spans(*three))], 0, 300)
    assert list(open_traces.complete(1)) == []


def test_only_so_many_traces_that_are_done_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.collect.completion.REMEMBERED", 2)
    open_traces, complete = OpenTraces(quiet=5), list[str]()
    for number in (1, 2, 3, 3, 2, 1):
        open_traces.add([*records_in(spans(span(1, "root", {}, trace=str(number) * 32)))], number)
        complete += [records[0].trace[0] for records in open_traces.complete(number, all=True)]
    assert (complete, open_traces.late) == (["1", "2", "3", "1"], 2), "the first one is forgotten"


def test_traces_are_recognized_in_every_form_in_which_they_are_read(tmp_path: Path) -> None:
    path, dataset = tmp_path / "t.jsonl", b'{"input": "q"}\n'
    forms = (LINE, b"\n" + LINE + b"\n", b"\xef\xbb\xbf" + LINE, b"[\n " + LINE + b"\n]", gzip.compress(LINE))
    for content in forms:
        path.write_bytes(content)
        assert has_traces(path), content[:20]
    for content in (b"", b"\n", dataset, gzip.compress(dataset), gzip.compress(LINE)[:-9], b"notes"):
        path.write_bytes(content)
        assert not has_traces(path), content[:20]
