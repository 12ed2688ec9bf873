"""Snapshots: what a request takes of what was submitted."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.addresses import import_from
from evalstone.live import frames
from evalstone.live.frames import Content, Settings
from evalstone.types import Sample

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values, max_size=40) | st.dictionaries(st.text() | st.integers(), values, max_size=40),
    max_leaves=80,
)


def sent(content: Content) -> Content:
    """As the worker gets it."""
    copy, size = frames.snapshot(content)
    assert size >= 0
    return frames.restored(pickle.loads(pickle.dumps(copy)))


@given(PLAIN, PLAIN)
@pytest.mark.slow
def test_a_snapshot_is_equal_to_what_it_was_made_of_and_shares_no_list_with_it(fields: Any, answer: Any) -> None:
    content = Content(fields, answer, answered=True, seconds=1.5, problem="p")
    copy, _ = frames.snapshot(content)
    before = repr(content)

    def empty(value: Any) -> None:
        if isinstance(value, dict | list):
            held: Any = cast("Any", value)
            for item in list(held.values() if isinstance(value, dict) else held):
                empty(item)
            held.clear()

    empty(fields)
    empty(answer)
    assert repr(frames.restored(copy)) == before


class Text(str):
    pass


class Number(int):
    pass


OWN: list[tuple[Any, Any]] = [
    (Text("x"), "x"),
    ({Text("k"): Number(3)}, {"k": 3}),
    ({Text("k"): 3}, {"k": 3}),
    (type("Own", (str,), {"__module__": "evalstone_app.models"})("x"), "x"),
    (OrderedDict(a=1), {"a": 1}),
    ([Text("x")] * 50, ["x"] * 50),
    (Sample(output="x"), Sample(output="x")),
]


@pytest.mark.parametrize(("value", "expected"), OWN)
def test_nothing_of_the_applications_classes_is_in_a_frame(value: Any, expected: Any) -> None:
    content = sent(Content(value, [value]))
    assert (content.fields, content.answer) == (expected, [expected])
    assert b"test_frames" not in pickle.dumps(frames.snapshot(Content(value))[0])


def test_lists_that_contain_themselves_or_many_others_are_left_to_the_pickler() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    many: list[Any] = [[]] * 100
    for value in (endless, deep, many):
        assert isinstance(frames.snapshot(Content(value))[0], bytes)
    assert sent(Content(deep)).fields == deep


def test_the_size_of_a_snapshot_grows_with_its_texts_and_values() -> None:
    assert frames.snapshot(Content("x" * 10_000))[1] >= 10_000
    assert frames.snapshot(Content(list(range(25))))[1] > 25 * frames.VALUE_BYTES
    assert frames.snapshot(Content([["x" * 1000] * 100]))[1] >= 1000


async def parts() -> AsyncGenerator[str]:
    yield "x"


@pytest.mark.parametrize("once", [iter("x"), parts()], ids=["iterator", "async generator"])
def test_what_can_be_read_only_once_is_left_to_the_application(once: object) -> None:
    with pytest.raises(TypeError, match=r"only once, .* list"):
        frames.snapshot(Content(once))


class Pipe:
    """Takes and gives a few bytes at a time."""

    def __init__(self) -> None:
        self.held = b""

    def write(self, data: memoryview) -> int:
        self.held += bytes(data[:3])
        return min(3, len(data))

    def read(self, size: int) -> bytes:
        part, self.held = self.held[: min(size, 3)], self.held[min(size, 3) :]
        return part


@pytest.mark.parametrize("data", [b"x", bytes(range(256)) * 3])
def test_a_frame_passes_whole_through_a_pipe_or_not_at_all(data: bytes) -> None:
    pipe: Any = Pipe()
    frames.write(pipe, data)
    frames.write(pipe, data)
    written = pipe.held
    assert [frames.read(pipe) for _ in range(3)] == [data, data, b""]
    for cut in (4, 8, len(written) // 2 - 1):
        pipe.held = written[:cut]
        assert frames.read(pipe) == b""


def test_a_worker_is_told_the_folder_of_a_module_that_was_imported_from_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    (tmp_path / "scorers_of_a_folder.py").write_text("def good(output): return 1.0")
    module: Any = import_from(tmp_path, "scorers_of_a_folder")
    sent = frames.portable(Settings(stream="s", owner="", scorers=(module.good,), judge=None))
    assert pickle.loads(sent)[0] == [(tmp_path, "scorers_of_a_folder", None)]
