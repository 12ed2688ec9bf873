from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone._core import atomic_files
from evalstone._core.atomic_files import check_writable
from evalstone._core.literals import written_list
from evalstone.datasets import json_line, load, write_jsonl
from evalstone.datasets.writing import write_text
from evalstone.errors import ConfigError, DataError, WriteError
from evalstone.types import Message, Sample, ToolCall

HOSTILE = (
    '\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\x7f\x9b\r\n\t\u202a\u202e\u2066\u2069\u200e\u200f\u061c\ud800\udfff\0"\\'
)
# A high surrogate before a low one is one character to every JSON reader.
TEXTS = st.text(st.one_of(st.sampled_from(HOSTILE), st.characters(exclude_categories=())), max_size=40).filter(
    lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text)
)
PLAIN_TEXTS = TEXTS.filter(lambda text: bool(text.strip()))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_a_line_of_json_reads_back_as_what_it_was(value: Any) -> None:
    line = json_line(value)
    assert json.loads(line) == value
    assert len(line.splitlines()) == 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", line)
    line.encode()


def test_text_of_every_script_stays_readable() -> None:
    assert json_line({"a": "Zürich 世界 עברית 🎉"}) == '{"a": "Zürich 世界 עברית 🎉"}'


CALLS = st.builds(
    ToolCall,
    name=PLAIN_TEXTS,
    arguments=st.dictionaries(TEXTS, JSON, max_size=2),
    result=JSON,
    id=PLAIN_TEXTS,
    state=st.sampled_from(["result", "call", "error"]),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant"]),
    content=TEXTS,
    tool_calls=st.lists(CALLS, max_size=2),
    reasoning=st.none() | PLAIN_TEXTS,
)
SAMPLES = st.builds(
    Sample,
    id=PLAIN_TEXTS,
    input=TEXTS,
    output=TEXTS,
    context=st.none() | st.lists(PLAIN_TEXTS, max_size=3),
    reference=st.none() | TEXTS,
    messages=st.lists(MESSAGES, max_size=3),
    instructions=TEXTS,
    metadata=st.dictionaries(
        st.text(st.characters(categories=["N"]), min_size=1), JSON.filter(lambda value: value is not None), max_size=3
    ),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, min_size=1, max_size=5, unique_by=lambda sample: sample.id))
def test_samples_read_back_as_what_they_were(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> None:
    path = tmp_path_factory.mktemp("written") / "d.jsonl"
    write_jsonl(path, samples)
    dataset = load(path)
    assert list(dataset) == samples
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(samples)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_hostile_rows_are_read_or_refused_and_nothing_else(rows: list[tuple[str, str]]) -> None:
    listed = [{"input": one, "context": [two]} for one, two in rows]
    assert [sample.input for sample in load(listed)] == [one for one, _ in rows]
    texts = [{"input": one, "context": two} for one, two in rows]
    refused = [number for number, (_, two) in enumerate(rows, start=1) if is_refused(two)]
    if refused:
        with pytest.raises(DataError, match=f"item {refused[0]}: context must"):
            load(texts)
    else:
        assert [sample.input for sample in load(texts)] == [one for one, _ in rows]


def is_refused(text: str) -> bool:
    try:
        value: Any = written_list(text)
    except DataError:
        return True
    return isinstance(value, dict) or (
        isinstance(value, list) and not set(map(type, cast("list[Any]", value))) <= {str}
    )


def test_a_file_is_replaced_whole_and_its_folder_left_clean(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_jsonl(path, [{"a": 1}])
    write_jsonl(path, [{"a": 2}, {"b": "\u2028"}])
    assert path.read_bytes() == b'{"a": 2}\n{"b": "\\u2028"}\n'
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]


def test_a_writer_that_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_jsonl(path, [{"a": 1}])

    def rows() -> Iterator[object]:
        yield {"a": 2}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(path, rows())
    assert path.read_text() == '{"a": 1}\n'
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]


def test_a_link_keeps_pointing_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write_jsonl(tmp_path / "link.jsonl", [{"a": 1}])
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == '{"a": 1}\n'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_numbers_that_json_cannot_hold_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="as JSON"):
        json_line(value)


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        write_jsonl(tmp_path / "no" / "d.jsonl", [])
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        write_jsonl(tmp_path / "file" / "d.jsonl", [])


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, ["one\n", "two\n"])
        assert os.read(reader, 100) == b"one\ntwo\n"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def left_behind(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".tmp"))


WRITE_FOREVER = """
import itertools, sys
from evalstone.datasets.writing import write_text

def parts():
    yield "x"
    print("writing", flush=True)
    sys.stdin.read()

write_text(sys.argv[1], parts())
"""


def test_what_a_killed_writer_leaves_is_deleted_by_the_next_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    foreign = [".d.jsonl.0123abcd.evalstone.tmp.tmp", ".d.jsonl.0123abcd.tmp", ".d.jsonl.mine.evalstone.tmp"]
    foreign.append(".other.jsonl.0123abcd.evalstone.tmp")
    for name in foreign:
        (tmp_path / name).write_text("not ours")
    command = [sys.executable, "-c", WRITE_FOREVER, str(path)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
        assert len(left_behind(tmp_path)) == len(foreign) + 2
        writers[0].kill()
        writers[0].communicate()
        check_writable(path)
        write_text(path, ["whole"])
        assert len(left_behind(tmp_path)) == len(foreign) + 1
        assert writers[1].communicate("")[0] == ""
        assert writers[1].returncode == 0
        assert path.read_text() == "x"
        assert left_behind(tmp_path) == foreign
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def test_a_temporary_file_that_another_writer_takes_for_an_abandoned_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[str] = []

    def lock(file: Any, *, wait: bool = True) -> bool:
        locked.append(file.name)
        if len(locked) == 1:
            Path(file.name).unlink()
        return True

    monkeypatch.setattr(atomic_files, "lock", lock)
    write_text(tmp_path / "d.jsonl", ["whole"])
    assert (tmp_path / "d.jsonl").read_text() == "whole"
    assert len(set(locked)) == 2


def test_a_file_is_on_the_disk_before_it_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("old")
    synced: list[str] = []

    def fsync(_: int) -> None:
        synced.append(path.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(path, ["new"])
    assert synced == ["old"]


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "d.jsonl")
    assert not any(tmp_path.iterdir())


def test_a_file_that_is_created_is_its_owners_alone_and_one_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    seen: list[int] = []

    def parts() -> Iterator[str]:
        yield "x"
        (beside,) = tmp_path.glob(".d.jsonl.*.tmp")
        seen.append(beside.stat().st_mode & 0o777)

    write_text(path, parts())
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    write_text(path, parts())
    assert path.stat().st_mode & 0o777 == 0o644
    assert seen == [0o600, 0o644]


def test_a_full_disk_is_no_wrong_path(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(WriteError, match="File too large"):
            write_text(tmp_path / "d.txt", ["x" * 2000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
