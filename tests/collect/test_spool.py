"""The spool, and the file of traces: what was received is in both, whatever ends the process."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalstone.collect import spool as spooling
from evalstone.collect.export import has_traces
from evalstone.collect.spool import Complete, Spool, SpoolFull, TracePart
from evalstone.errors import ConfigError, StorageError
from tests.fakes import awaited
from tests.traced import span, spans

LINE = json.dumps(spans(span(1, "chat", {}))).encode()


def part(trace: str = "a", body: bytes = LINE, *, records: int = 1, rooted: bool = True) -> TracePart:
    return TracePart(trace, body, records, rooted)


async def write(path: Path, *bodies: bytes) -> None:
    spool = Spool(path)
    await asyncio.gather(*(spool.append([part(body=body)]) for body in bodies))
    await spool.close()


def kill(spool: Spool) -> None:
    """End without what a process does in closing."""
    spool._connection.close()  # pyright: ignore[reportPrivateUsage]
    spool._export.close()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time."""
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(spooling, "time", SimpleNamespace(monotonic=lambda: now.time))
    return lambda time: setattr(now, "time", time)


def letters(traces: list[Complete]) -> str:
    return "".join(each.trace or "-" for each in traces)


@awaited
async def test_parts_are_appended_to_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await write(path, LINE, LINE)
    await write(path, LINE)
    assert path.read_bytes() == (LINE + b"\n") * 3
    assert path.stat().st_mode & 0o777 == (tmp_path / "t.jsonl.spool").stat().st_mode & 0o777 == 0o600


@awaited
async def test_only_so_much_waits_for_the_disk_and_what_was_written_waits_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling, "WAITING_BYTES", 3 * len(LINE))
    written, loop, really = asyncio.Semaphore(0), asyncio.get_running_loop(), Spool._write  # pyright: ignore[reportPrivateUsage]

    def slowly(self: Spool, parts: list[TracePart]) -> None:
        asyncio.run_coroutine_threadsafe(written.acquire(), loop).result(10)
        really(self, parts)

    monkeypatch.setattr(Spool, "_write", slowly)
    spool, appended = Spool(tmp_path / "t.jsonl"), list[asyncio.Task[None]]()

    async def fill() -> int:
        """How many parts are taken until one is refused."""
        for number in range(10):
            task = asyncio.create_task(spool.append([part()]))
            await asyncio.sleep(0)
            if task.done():
                with pytest.raises(SpoolFull):
                    task.result()
                return number
            appended.append(task)
        raise AssertionError("all were taken")

    assert await fill() == 3  # one is being written, and two wait
    written.release()
    await appended[0]
    assert await fill() == 1  # two are being written, and one waits
    for _ in range(2):
        written.release()
    await asyncio.gather(*appended)
    await spool.close()
    assert (tmp_path / "t.jsonl").read_bytes() == (LINE + b"\n") * 4


@awaited
async def test_a_close_that_is_canceled_takes_no_part_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, really = threading.Event(), Spool._write  # pyright: ignore[reportPrivateUsage]

    def slowly(self: Spool, parts: list[TracePart]) -> None:
        release.wait(10)
        really(self, parts)

    monkeypatch.setattr(Spool, "_write", slowly)
    spool = Spool(tmp_path / "t.jsonl")
    appended = asyncio.create_task(spool.append([part()]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(spool.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    release.set()
    await asyncio.wait_for(appended, 10)
    await spool.close()
    assert (tmp_path / "t.jsonl").read_bytes() == LINE + b"\n"


@awaited
async def test_a_request_that_is_gone_keeps_nobody_from_writing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "t.jsonl")
    gone = asyncio.create_task(spool.append([part()]))
    await asyncio.sleep(0)
    gone.cancel()
    for _ in range(2):
        await asyncio.wait_for(spool.append([part()]), 5)
    await spool.close()
    assert (tmp_path / "t.jsonl").read_bytes() == (LINE + b"\n") * 3


@awaited
async def test_whatever_goes_wrong_in_writing_nobody_waits_for_it_and_the_next_part_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    spool = Spool(tmp_path / "t.jsonl")
    with monkeypatch.context() as broken:
        broken.setattr(spool, "_insert", fails)
        with pytest.raises(OSError, match="ZeroDivisionError"):
            await asyncio.wait_for(spool.append([part()]), 5)
    await asyncio.wait_for(spool.append([part()]), 5)
    await spool.close()
    assert (tmp_path / "t.jsonl").read_bytes() == LINE + b"\n"


@pytest.mark.parametrize("cut", [0, 20, len(LINE), len(LINE) + 1, len(LINE) + 30, 2 * len(LINE) + 2])
@awaited
async def test_a_file_of_traces_that_a_crash_has_cut_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    path = tmp_path / "t.jsonl"
    await write(path, LINE)
    noted = path.stat().st_size
    monkeypatch.setattr(spooling, "PAUSE", 1000)
    spool = Spool(path)
    spool._noted_at = spooling.time.monotonic()  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        await spool.append([part()])
    kill(spool)
    with path.open("ab") as file:
        file.truncate(noted + cut)
    await Spool(path).close()
    assert path.read_bytes() == (LINE + b"\n") * 3


@pytest.mark.parametrize("moved", [True, False])
@awaited
async def test_a_file_that_was_moved_or_removed_is_begun_anew(tmp_path: Path, moved: bool) -> None:
    path, rotated = tmp_path / "t.jsonl", tmp_path / "t.jsonl.1"
    spool = Spool(path)
    await spool.append([part()])
    if moved:
        path.rename(rotated)
    else:
        path.unlink()
    for _ in range(2):
        await spool.append([part()])
    kill(spool)
    await Spool(path).close()
    assert path.read_bytes() == (LINE + b"\n") * 2
    assert not moved or rotated.read_bytes() == LINE + b"\n"


@awaited
async def test_what_others_append_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await write(path, LINE)
    with path.open("ab") as file:
        file.write(LINE[:-1] + b" }\n")
    await write(path, LINE)
    assert path.read_bytes() == LINE + b"\n" + LINE[:-1] + b" }\n" + LINE + b"\n"
    with path.open("ab") as file:
        file.write(b"my notes")
    with pytest.raises(ConfigError, match="unfinished"):
        Spool(path)
    assert path.read_bytes().endswith(b"my notes")


@awaited
async def test_what_cannot_be_exported_is_in_the_spool_and_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.jsonl"
    spool = Spool(path)
    await spool.append([part()])
    path.rename(tmp_path / "t.jsonl.1")
    path.mkdir()
    for _ in range(2):
        await spool.append([part()])
    assert spool.export_error
    assert len(caplog.messages) == 1
    path.rmdir()
    await spool.append([part()])
    assert spool.export_error == ""
    await spool.close()
    assert path.read_bytes() == (LINE + b"\n") * 3


@awaited
async def test_a_file_that_stays_unwritable_takes_no_more_open_files(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    spool, counts = Spool(path), list[int]()
    path.unlink()
    path.mkdir()
    for _ in range(20):
        await spool.append([part()])
        counts.append(len(os.listdir("/dev/fd")))  # noqa: PTH208
    await spool.close()
    assert counts[-1] <= counts[0] + 1


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b"[" * 100_000 + b"\n", b'{"input": "q"}\n'])
def test_a_file_with_anything_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="has no traces"):
        Spool(path)
    assert path.read_bytes() == content


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "t.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "t.jsonl")
    for name in ("t.jsonl", "link.jsonl"):
        with pytest.raises(ConfigError, match="by another process"):
            Spool(tmp_path / name)
    asyncio.run(spool.close())
    asyncio.run(Spool(tmp_path / "t.jsonl").close())


@pytest.mark.parametrize("out", ["absent/t.jsonl", ".", "/dev/null"])
def test_what_is_no_place_for_a_file_is_refused(tmp_path: Path, out: str) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        Spool(tmp_path / out)


def test_another_database_is_no_spool(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.spool"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="of this version"):
        Spool(tmp_path / "t.jsonl")
    assert path.read_bytes() == before
    path.write_bytes(b"something else" * 1000)
    with pytest.raises(ConfigError, match="no spool"):
        Spool(tmp_path / "t.jsonl")


@awaited
async def test_a_damaged_spool_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.spool"
    await write(tmp_path / "t.jsonl", *[LINE] * 50)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(StorageError, match=r"jsonl\.spool is damaged"):
        Spool(tmp_path / "t.jsonl")


@awaited
async def test_a_spool_that_was_moved_or_removed_takes_no_more(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    await spool.append([part()])
    (tmp_path / "t.jsonl.spool").unlink()
    with pytest.raises(OSError, match="moved or removed"):
        await spool.append([part()])
    await spool.close()


@awaited
async def test_a_trace_is_complete_when_nothing_came_for_so_long_and_one_without_a_root_much_later(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    spool, found = Spool(tmp_path / "t.jsonl", scored=True), list[str]()
    await spool.append([part("a"), part("b", rooted=False)])
    clock(3.0)
    await spool.append([part("a", rooted=False)])
    for now in (7.9, 8.0, 59.9, 60.0):
        clock(now)
        complete = spool.complete(5.0)
        assert [each.again for each in complete] == [False] * len(complete)
        found.append(letters(complete))
        spool.done(complete)
    assert found == ["", "a", "", "b"]
    await spool.close()


@awaited
async def test_traces_are_complete_in_the_order_in_which_something_last_came(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    for now, traces in ((0.0, "ac"), (1.0, "b"), (2.0, "a")):
        clock(now)
        await spool.append(list(map(part, traces)))
    assert letters(spool.complete(5.0, all=True)) == "cba"
    await spool.close()


@awaited
async def test_records_without_a_trace_are_complete_so_long_after_the_first_of_them_time_and_again(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    for began in (0.0, 10.0):
        for later in (0.0, 4.0):
            clock(began + later)
            await spool.append([part("", rooted=False)])
        clock(began + 4.9)
        assert spool.complete(5.0) == []
        clock(began + 5.0)
        (complete,) = spool.complete(5.0)
        assert (complete.trace, complete.waiting, len(spool.parts(complete))) == ("", 2, 2)
        await spool.append([part("", rooted=False)])
        spool.done([complete])
        assert spool.waiting == 1, "what came meanwhile"
        clock(began + 10.0)
        (complete,) = spool.complete(5.0)
        spool.done([complete])
    assert spool.late == 0
    await spool.close()


@awaited
async def test_what_comes_late_opens_its_trace_again_unless_it_is_a_score(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    await spool.append([part("a")])
    clock(5.0)
    first = spool.complete(5.0)
    await spool.append([part("a", records=0)])
    spool.done(first)
    assert (spool.late, spool.waiting) == (0, 0)
    await spool.append([part("a", records=2)])
    assert (spool.late, spool.waiting) == (2, 2)
    clock(10.0)
    (again,) = spool.complete(5.0)
    assert (again.again, len(spool.parts(again))) == (True, 3)
    spool.done([again])
    assert spool.waiting == 0
    await spool.close()


@awaited
async def test_what_waits_is_there_after_a_restart_and_waits_for_clients_that_were_cut_off(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(1000.0)
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    await spool.append([part("a"), part("b")])
    clock(1004.0)
    kill(spool)
    clock(3.0)  # another machine's, or after it was started anew
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    assert spool.waiting == 2
    clock(7.9)
    assert spool.complete(5.0) == []
    clock(8.0)
    assert letters(spool.complete(5.0)) == "ab"
    await spool.close()


@awaited
async def test_what_was_received_without_scoring_is_read_with_what_comes_later(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    await write(tmp_path / "t.jsonl", LINE, b"{}")
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    assert spool.complete(5.0, all=True) == []
    await spool.append([part("a", b"[]")])
    (complete,) = spool.complete(5.0, all=True)
    assert (spool.parts(complete), complete.waiting, complete.again) == ([LINE, b"{}", b"[]"], 1, False)
    await spool.close()


@awaited
async def test_of_a_trace_so_much_is_read_and_it_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "MOST_OF_TRACE", 3)
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    await spool.append([part("a", b"{}")])
    assert spool.complete(60.0) == []
    await spool.append([part("a", b"{}"), part("a", b"{}")])
    (complete,) = spool.complete(60.0)
    assert len(spool.parts(complete)) == 2
    spool.done([complete])
    await spool.append([part("a", b"{}")])
    assert (spool.complete(60.0, all=True), spool.late) == ([], 1)
    await spool.close()


@awaited
async def test_log_records_without_a_trace_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "MOST_OF_LOGS", 3)
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    await spool.append([part("", b"{}")] * 5)
    complete = spool.complete(60.0, all=True)
    assert [len(spool.parts(each)) for each in complete] == [2, 2, 1]
    spool.done(complete)
    assert (spool.waiting, spool.late) == (0, 0)
    await spool.close()


@awaited
async def test_a_spool_stays_within_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'"' + b"x" * 10_000 + b'"'
    monkeypatch.setattr(spooling, "KEPT_BYTES", 1_000_000)
    monkeypatch.setattr(spooling, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(spooling, "WAITING_BYTES", 100_000)
    monkeypatch.setattr(spooling, "PAUSE", 0)
    monkeypatch.setattr(spooling, "_PRUNED", 10)
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    for number in range(300):
        await spool.append([part(str(number), body)])
    assert spool.dropped
    assert spool.waiting + spool.dropped == 300
    assert letters(spool.complete(60.0, all=True)[:1]) == str(spool.dropped)  # the oldest were removed
    while complete := spool.complete(60.0, all=True):
        spool.done(complete)
    for number in range(300, 400):
        await spool.append([part(str(number), body)])
        spool.done(spool.complete(60.0, all=True))
    await spool.close()
    assert (tmp_path / "t.jsonl.spool").stat().st_size < 1_200_000
    assert len((tmp_path / "t.jsonl").read_bytes().splitlines()) == 400


@awaited
async def test_nothing_is_removed_that_was_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "KEPT_BYTES", 0)
    path = tmp_path / "t.jsonl"
    spool = Spool(path)
    path.unlink()
    path.mkdir()
    for number in range(5):
        await spool.append([part(str(number))])
    path.rmdir()
    await spool.close()
    assert path.read_bytes() == (LINE + b"\n") * 5


def test_traces_are_recognized_in_every_form_in_which_they_are_read(tmp_path: Path) -> None:
    path, dataset = tmp_path / "t.jsonl", b'{"input": "q"}\n'
    forms = (LINE, b"\n" + LINE + b"\n", b"\xef\xbb\xbf" + LINE, b"[\n " + LINE + b"\n]", gzip.compress(LINE))
    for content in forms:
        path.write_bytes(content)
        assert has_traces(path), content[:20]
    for content in (b"", b"\n", dataset, gzip.compress(dataset), gzip.compress(LINE)[:-9], b"notes"):
        path.write_bytes(content)
        assert not has_traces(path), content[:20]
