"""Files made to fill the memory are refused before they have, with the limit and the setting that lifts it."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstone import evaluate, write_run
from evalstone._core.files import SETTING, numbered_lines
from evalstone.cli.config_file import RunConfig
from evalstone.datasets import load
from evalstone.datasets.json_rows import json_rows, parse_json
from evalstone.errors import ConfigError, DataError
from evalstone.judges.scripted import ReplayJudge
from evalstone.results.files import read_run
from evalstone.results.human_labels import load_labels

pytestmark = pytest.mark.slow

# Arrow's types are not complete.
pa: Any = arrow
pq: Any = parquet
LONG = "x" * 2000
ROW = json.dumps({"input": "q", "output": LONG})
SHORT = json.dumps({"input": "q", "output": "a"})
LIMIT = f"is longer than 0.001 MB; to read it, set {SETTING} to a higher number"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 1000 characters a row."""
    monkeypatch.setenv(SETTING, "0.001")


def refusal(read: Callable[[], Any], path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        read()
    message = str(raised.value)
    assert message.startswith(str(path))
    return message.removeprefix(f"{path}: ")


def repeated(text: str, rows: int) -> Any:
    """A column that says one text many times, and takes the room of one."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def nested(count: int) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.nulls(count, pa.int8()))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("d.jsonl", f"{SHORT}\n{ROW}\n", "line 2"),
        ("d.jsonl", f"{SHORT}\n{LONG}", "line 2"),
        ("d.ndjson", ROW, "line 1"),
        ("d.json", f"[{SHORT},\n{ROW}]", "item 2"),
        ("d.json", f'[{SHORT}, ["{LONG}', "item 2"),
        ("d.json", '{"data": [' + ",".join([SHORT] * 100) + "]}", "the document"),
        ("d.json", ROW.replace(LONG, LONG[:500]) + f"\n{SHORT}\n{ROW}", "line 3"),
        ("d.csv", f'input,output\nq,a\nq,"{LONG}"\n', "line 3"),
        ("d.csv", 'input,output\nq,a\nq,"' + "x\n" * 2000, "the row that begins in line 3"),
        ("d.csv", 'input,output\rq,a\rq,"' + "x\r" * 2000, "the row that begins in line 3"),
        ("d.csv", LONG, "line 1"),
        ("d.tsv", f"input\toutput\nq\t{LONG}\n", "line 2"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_row_that_is_too_long_is_refused(tmp_path: Path, name: str, text: str, place: str, zipped: bool) -> None:
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert refusal(lambda: load(path), path) == f"{place} {LIMIT}"


@pytest.mark.usefixtures("small")
def test_every_file_that_is_read_by_lines_has_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(LONG)
    assert refusal(lambda: ReplayJudge.from_records(path), path) == f"line 1 {LIMIT}"
    run = evaluate([{"output": "a"}], "contains(expected=a)", ledger=None)
    assert LIMIT in refusal(lambda: load_labels(run, "contains", path), path)
    (tmp_path / "d.csv").write_text(LONG)
    assert LIMIT in refusal(lambda: load_labels(run, "contains", tmp_path / "d.csv"), tmp_path / "d.csv")
    (tmp_path / "d.toml").write_text(LONG)
    assert refusal(lambda: RunConfig.load(str(tmp_path / "d.toml")), tmp_path / "d.toml") == f"the text {LIMIT}"


def test_the_files_of_a_run_have_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(evaluate([{"output": LONG}], "contains(expected=a)", ledger=None), tmp_path / "out")
    monkeypatch.setenv(SETTING, "0.0019")
    for name, what in (("records.jsonl", "line 1"), ("summary.json", "the text")):
        text = (path / name).read_text()
        (path / name).write_text(text.rstrip() + " " * 2000)
        assert f"{name}: {what} is longer than 0.0019 " in refusal(lambda: read_run(path), path)
        (path / name).write_text(text)
    run = read_run(path)
    assert run.samples is not None
    assert refusal(lambda: list(run.samples or ()), path / "samples.jsonl").startswith("line 1 is longer")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"input": repeated(LONG, 2)}, f"row 1 {LIMIT}"),
        ({"input": ["q"], "context": pa.ListArray.from_arrays([0, 30], repeated("x" * 100, 30))}, f"row 1 {LIMIT}"),
        ({"input": ["q"], "metadata": pa.StructArray.from_arrays([pa.array([LONG])], ["a"])}, f"row 1 {LIMIT}"),
        ({"input": pa.array([LONG.encode()], pa.binary(2000))}, f"row 1 {LIMIT}"),
        ({"input": repeated("x" * 900, 20_000)}, "rows would take more than"),
        ({"input": pa.nulls(10_000_000, pa.int8())}, "rows would take more than"),
        ({"input": ["q"], "context": nested(10_000_000)}, "rows would take more than"),
        ({"input": repeated("x" * 20_000_000, 1)}, "rows would take more than"),
    ],
)
def test_a_parquet_file_that_unfolds_is_refused(tmp_path: Path, columns: dict[str, Any], problem: str) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    assert problem in refusal(lambda: load(path), path)


def test_many_columns_that_compress_well_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "0.1")
    path, texts = tmp_path / "d.parquet", ["x" * 500] * 100
    table = pa.table({f"c{number}": texts for number in range(10)} | {"input": texts})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False, store_schema=False)
    assert 200 * path.stat().st_size < table.nbytes
    assert len(load(path)) == 100


@pytest.mark.parametrize(
    ("name", "text"),
    [("d.csv.gz", "input\n" + "a\n" * 50_000), ("d.json.gz", "[" + ",".join([SHORT] * 50_000) + "]")],
)
def test_a_small_file_of_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(SETTING, "0.1")
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()))
    assert "whose rows would" in refusal(lambda: load(path), path)


@pytest.mark.usefixtures("small")
def test_many_empty_lists_in_a_row_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"input": "q", "a": [' + "[]," * 50 + "[]]}\n")
    assert "line 1 has more than 31" in refusal(lambda: load(path), path)
    path = tmp_path / "d.csv"
    path.write_text('input,context\nq,"[' + "[]," * 50 + '[]]"\n')
    told = refusal(lambda: load(path), path)
    assert "context has more" in told
    assert "more than 31" in told


def test_the_setting_lifts_the_limit_and_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(ROW)
    monkeypatch.setenv(SETTING, "0.003")
    assert len(load(path)) == 1
    for wrong in ("64 MB", "0", "-1", "nan", "inf"):
        monkeypatch.setenv(SETTING, wrong)
        with pytest.raises(ConfigError, match=f"{SETTING} .* greater than 0, not '{wrong}'"):
            load(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.jsonl", "[" * 100_000),
        ("d.json", '{"a":' * 100_000),
        ("d.json", "[" * 100_000),
        ("d.csv", 'input,context\nq,"' + "[" * 100_000 + "]" * 100_000 + '"\n'),
    ],
)
def test_what_is_nested_deeply_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match="nested too deeply"):
        load(path)


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000 + "]" * 100_000])
def test_numbers_and_nesting_that_python_refuses_end_no_command_with_a_traceback(tmp_path: Path, value: str) -> None:
    (tmp_path / "d.toml").write_text(f"data = {value}\n")
    with pytest.raises(ConfigError, match=r"d\.toml: "):
        RunConfig.load(str(tmp_path / "d.toml"))
    run = evaluate([{"output": "a"}], "contains(expected=a)", ledger=None)
    for name in ("records.jsonl", "samples.jsonl", "summary.json"):
        path = write_run(run, tmp_path / name)
        (path / name).write_text(f'{{"a": {value}}}\n')
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            list(read_run(path).samples or ())
    (tmp_path / "r.jsonl").write_text(value)
    with pytest.raises(DataError, match=r"r\.jsonl, line 1"):
        ReplayJudge.from_records(tmp_path / "r.jsonl")


@given(
    text=st.text(alphabet='ab\r\n"', max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
)
def test_pieces_make_no_difference_to_lines(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    whole = io.StringIO(text, newline="")
    assert [line for _, line in numbered_lines(pieces, any_end=True)] == list(whole)
    assert [line for _, line in numbered_lines(pieces)] == (
        text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(items=st.lists(JSON, max_size=5), size=st.integers(1, 20), indent=st.sampled_from([None, 1]))
def test_an_array_in_pieces_is_the_array(items: list[Any], size: int, indent: int | None) -> None:
    text = json.dumps(items, indent=indent, ensure_ascii=False)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(json_rows(pieces)) == [(f"item {number}", item) for number, item in enumerate(items, start=1)]


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1},\n {"b" 2}]',
        "[1,\n\n  2 3]",
        "[1, 2",
        '[1, "ab',
        "[1]\n x",
        "[",
        "[tru]",
        '[{"a": 1, "a": 2}]',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_what_is_wrong_in_an_array_is_what_is_wrong_in_the_whole(text: str, size: int) -> None:
    with pytest.raises(DataError) as whole:
        parse_json(text)
    with pytest.raises(DataError) as raised:
        list(json_rows([text[at : at + size] for at in range(0, len(text), size)]))
    assert str(raised.value).partition(")")[0] == str(whole.value).partition(")")[0]


def valid(suffix: str) -> bytes:
    """A file of each format with every kind of cell."""
    rows: list[dict[str, Any]] = [
        {"id": "1", "question": "q é 世界", "answer": "a\nb", "contexts": ["p", "r"], "score": 1.5},
        {"id": "2", "question": None, "answer": "c", "contexts": [], "score": None},
    ]
    match suffix.removesuffix(".gz"):
        case "json":
            data = json.dumps(rows, indent=1).encode()
        case "jsonl":
            data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        case "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
            data = text.getvalue().encode()
        case _:
            sink = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), sink)
            data = sink.getvalue()
    return gzip.compress(data, mtime=0) if suffix.endswith(".gz") else data


def was_read_or_refused(path: Path) -> bool:
    try:
        return len(load(path)) > 0
    except DataError as error:
        return str(error).startswith(str(path)) and str(error).isprintable()


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv", "parquet", "json.gz", "jsonl.gz", "csv.gz"])
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.binary(max_size=5)), min_size=1, max_size=4),
    encoding=st.sampled_from(["", "utf-16", "utf-32"]),
)
def test_a_valid_file_that_was_changed_is_read_or_refused_by_name(
    tmp_path: Path, suffix: str, edits: list[tuple[float, int, bytes]], encoding: str
) -> None:
    data = valid(suffix)
    if encoding and suffix in ("json", "jsonl", "csv"):
        data = data.decode().encode(encoding)
    for place, removed, added in edits:
        at = int(place * len(data))
        data = data[:at] + added + data[at + removed :]
    path = tmp_path / f"changed.{suffix}"
    path.write_bytes(data)
    assert was_read_or_refused(path)


@pytest.mark.parametrize(("place", "removed", "added"), [(978, 3, b"'\xfd\x9d"), (867, 4, b""), (699, 2, b"")])
def test_a_parquet_file_whose_metadata_are_damaged_does_not_end_the_process(
    tmp_path: Path, place: int, removed: int, added: bytes
) -> None:
    data, path = valid("parquet"), tmp_path / "damaged.parquet"
    path.write_bytes(data[:place] + added + data[place + removed :])
    assert was_read_or_refused(path)


def loaded(path: Path) -> tuple[str, int]:
    """How `load` ends in a process of its own, and the megabytes that the process took at most."""
    # Not getrusage, which counts what the parent held when it started this process.
    code = (
        "import re, sys\nfrom pathlib import Path\nfrom evalstone.datasets import load\nname = 'loaded'\n"
        "try:\n    load(sys.argv[1])\nexcept Exception as error:\n    name = type(error).__name__\n"
        "print(name, int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) // 1000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, SETTING: "5"},
    )
    name, megabytes = done.stdout.split()
    return name, int(megabytes)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("text", "rows", "most"),
    [
        pytest.param("x" * 4_000_000, 500, 600, id="one text in many rows"),
        pytest.param("x" * 150_000_000, 1, 250, id="one cell"),
    ],
)
def test_a_hostile_file_costs_little_memory(tmp_path: Path, text: str, rows: int, most: int) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"input": repeated(text, rows)}), path, compression="zstd", store_schema=False)
    name, megabytes = loaded(path)
    assert name == "DataError"
    assert megabytes < most


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
@pytest.mark.parametrize("different", [True, False], ids=["different texts", "one text in many lists"])
def test_lists_of_a_large_row_group_cost_little_memory(tmp_path: Path, different: bool) -> None:
    path = tmp_path / "d.parquet"
    if different:
        source = random.Random(1)
        values = pa.array([source.randbytes(350).hex() for _ in range(100_000)])
    else:
        values = repeated("x" * 4_000_000, 2000)
    lists = pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, 4), pa.int32()), values)
    pq.write_table(pa.table({"output": ["o"] * len(lists), "context": lists}), path, store_schema=False)
    name, megabytes = loaded(path)
    assert name == ("loaded" if different else "DataError")
    assert megabytes < (250 if different else 600)
