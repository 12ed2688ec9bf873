from __future__ import annotations

import csv
import gzip
import io
import json
import math
import pickle
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow  # pyright: ignore[reportMissingTypeStubs]
import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs]
import pytest

from evalstone import check
from evalstone.datasets import Dataset, load
from evalstone.datasets.files import find
from evalstone.errors import DataError, MissingDependency
from evalstone.types import Sample

LINE = '{"input": "q", "output": "a"}\n'


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refusal(source: Any, **how: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(source, **how)
    text = str(caught.value)
    assert text.isprintable()
    return text


@pytest.mark.parametrize("name", ["d.jsonl", "d.ndjson", "D.JSONL", "d.jsonl.gz", "d.json", "d.JSON.GZ"])
def test_json_lines_are_read_under_each_suffix(tmp_path: Path, name: str) -> None:
    data = (LINE + "\n  \n" + LINE.replace("q", "r")).encode()
    path = written(tmp_path, name, gzip.compress(data) if name.lower().endswith(".gz") else data)
    dataset = load(str(path))
    assert [sample.input for sample in dataset] == ["q", "r"]
    assert (dataset.name, len(dataset)) == (name, 2)
    assert dict(dataset.columns) == {"input": "input", "output": "output"}


@pytest.mark.parametrize("key", ["data", "samples", "items", "rows", "examples", "test_cases", "testCases", "goldens"])
def test_json_is_an_array_or_an_object_with_one(tmp_path: Path, key: str) -> None:
    rows = [json.loads(LINE)]
    assert len(load(written(tmp_path, "a.json", json.dumps(rows)))) == 1
    assert len(load(written(tmp_path, "b.json", json.dumps({"version": 1, key: rows}, indent=2)))) == 1


@pytest.mark.parametrize("indent", [None, 2])
def test_json_may_be_one_row(tmp_path: Path, indent: int | None) -> None:
    row = {"question": "q", "answer": "a", "contexts": ["p"], "items": [{"input": "none"}], "topic": "x"}
    (sample,) = load(written(tmp_path, "a.json", json.dumps(row, indent=indent)))
    assert (sample.input, sample.output, sample.context) == ("q", "a", ("p",))
    assert sample.metadata == {"items": [{"input": "none"}], "topic": "x"}
    mapped = load(written(tmp_path, "b.json", '{"q": "x"}'), map={"input": "q"})
    assert [sample.input for sample in mapped] == ["x"]
    talk = load(written(tmp_path, "c.json", '{"messages": [{"role": "user", "content": "hi"}]}'))
    assert [sample.input for sample in talk] == ["hi"]


TABLE: list[Any] = [("q", "a", ["p"]), ("r", None, [])]
LAYOUTS: dict[str, Any] = {
    "records": [{"question": q, "answer": a, "contexts": c} for q, a, c in TABLE],
    "split": {"columns": ["question", "answer", "contexts"], "index": [0, 1], "data": [list(row) for row in TABLE]},
    "columns": {"question": ["q", "r"], "answer": ["a", None], "contexts": [["p"], []]},
    "pandas": {"question": {"0": "q", "1": "r"}, "answer": {"0": "a", "1": None}, "contexts": {"0": ["p"], "1": []}},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_table_is_read_in_each_layout(tmp_path: Path, layout: Any) -> None:
    expected = load(LAYOUTS["records"]).samples
    assert load(written(tmp_path, "d.json", json.dumps(layout))).samples == expected
    assert load(layout).samples == expected


def test_csv_cells_are_text_and_empty_cells_are_absent_but_for_the_answer(tmp_path: Path) -> None:
    table = 'question,answer,contexts,note\n"a\nb",,"[""p"", {""text"": ""r""}]",x\n\nq,0,one passage,\n'
    dataset = load(written(tmp_path, "d.csv", table))
    first, second = dataset
    assert (first.input, first.output, first.context) == ("a\nb", "", ("p", "r"))
    assert (second.input, second.output, second.context) == ("q", "0", ("one passage",))
    assert dict(dataset.columns) == {"question": "input", "answer": "output", "contexts": "context"}
    assert dataset.ignored == ("note",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.tsv", "input\toutput\nq\ta\n"),
        ("d.csv", "input;output\nq;a\n"),
        ("d.csv", '"input";"output";"a, b"\n"q";"a";"c"\n'),
        ("d.csv", "sep=;\r\ninput;output\r\nq;a\r\n"),
        ("f.csv", "input\toutput\nq\ta; b, c\n"),
        ("e.csv", "input\r\nq\r\n"),
    ],
)
def test_other_separators_are_read(tmp_path: Path, name: str, text: str) -> None:
    assert load(written(tmp_path, name, text)).samples[0].input == "q"


def test_rows_of_blank_cells_are_blank_lines_and_blank_cells_are_missing(tmp_path: Path) -> None:
    text = 'input,output\nq,a\n,\n" ","\t"\n,"b"\n" ",c\n'
    samples = load(written(tmp_path, "d.csv", text)).samples
    assert [(sample.input, sample.output) for sample in samples] == [("q", "a"), (None, "b"), (None, "c")]


def test_rows_by_id_are_refused_and_a_single_sample_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"q1": {"question": "q"}, "q2": {"question": "r"}}))
    with pytest.raises(DataError, match="rows under q1, q2"):
        load(path)
    path.write_text(json.dumps({"asked": {"question": "q"}, "said": {"answer": "a"}}))
    (sample,) = load(path, map={"input": "asked.question", "output": "said"})
    assert (sample.input, sample.output) == ("q", "a")


def test_columns_without_a_name_or_a_cell_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("question;answer;;\nq;a;;\nr;b;\ns;c; ;\n")
    assert [(sample.input, sample.output) for sample in load(path)] == [("q", "a"), ("r", "b"), ("s", "c")]


def test_a_csv_context_that_begins_like_a_list_is_one_passage(tmp_path: Path) -> None:
    for cell in ["[1] a footnote", "{a}: b", "(x)"]:
        buffer = io.StringIO()
        csv.writer(buffer).writerows([["input", "context"], ["q", cell]])
        assert load(written(tmp_path, "d.csv", buffer.getvalue())).samples[0].context == (cell,)


@pytest.mark.slow
def test_a_cell_of_one_megabyte_is_read_and_the_limit_put_back(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    dataset = load(written(tmp_path, "d.csv", f"input,output\nq,{'x' * 1_000_000}\n"))
    assert len(dataset.samples[0].output or "") == 1_000_000
    assert csv.field_size_limit() == before


def test_files_that_are_read_in_turns_have_cells_of_any_size(tmp_path: Path) -> None:
    long = "x" * 200_000
    path = written(tmp_path, "d.csv", f"output\na\n{long}\n{long}\n")
    before = csv.field_size_limit()
    first, second = (find(path).rows() for _ in range(2))
    for rows in (first, second, first):
        next(rows)
        assert csv.field_size_limit() == before
    assert [row["output"] for _, row in first] == [long]
    assert [row["output"] for _, row in second] == [long, long]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_that_of_the_header(tmp_path: Path, delimiter: str) -> None:
    path = written(tmp_path, "d.csv", f'question{delimiter}"a,;|\tb"{delimiter}answer\nq{delimiter}n{delimiter}a\n')
    assert load(path).samples[0].output == "a"
    assert check(path).delimiter == delimiter


def test_blank_lines_and_rows_above_the_header_are_skipped_as_in_excel_files(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", '\n;"";\n\nquestion;answer;n\nq;a, b, c, d;1\n')
    assert load(path).samples[0].output == "a, b, c, d"
    assert check(path).problems == ()
    assert "line 7: 2 cells" in refusal(written(tmp_path, "e.csv", "\n;;\n\n\nquestion;answer;n\nq;a;1\nr;s\n"))


def test_a_link_to_nothing_is_told_from_a_file_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(DataError, match="is a link to a file that does not exist, or to itself"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-8"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    text = "input,output\nq,Zürich 世界\n"
    assert load(written(tmp_path, "d.csv", text.encode(encoding))).samples[0].output == "Zürich 世界"


def test_parquet_is_read(tmp_path: Path) -> None:
    table: Any = pyarrow
    rows = table.table({"question": ["q", "r"], "contexts": [["p"], []], "score": [1.5, None]})
    parquet: Any = pyarrow.parquet
    parquet.write_table(rows, tmp_path / "d.parquet")
    dataset = load(tmp_path / "d.parquet")
    assert [sample.context for sample in dataset] == [("p",), ()]
    assert [sample.metadata for sample in dataset] == [{"score": 1.5}, {}]


def test_columns_of_every_type_are_read_from_parquet_as_from_the_table(tmp_path: Path) -> None:
    arrow: Any = pyarrow
    text = arrow.string()
    entries = arrow.map_(text, text)
    entry = [("k", "v"), ("l", None)]
    columns = {
        "map": arrow.array([entry, None, []], entries),
        "map of lists": arrow.array([[(1, ["a", "b"])], None, [(2, [])]], arrow.map_(arrow.int64(), arrow.list_(text))),
        "map of maps": arrow.array([[("k", entry)], None, []], arrow.map_(text, entries)),
        "list of maps": arrow.array([[entry, None], None, []], arrow.list_(entries)),
        "struct with a map": arrow.array([{"m": entry}, None, {"m": None}], arrow.struct([("m", entries)])),
        "list of structs": arrow.array([[{"a": "x", "b": ["y"]}], None, []]),
        "list of lists": arrow.array([[["a"], []], None, []]),
        "lists of two": arrow.array([["a", "b"], ["", "e"], ["c", "d"]], arrow.list_(text, 2)),
        "list of nulls": arrow.array([[None], None, []]),
        "days": arrow.array([timedelta(1), None, None]),
        "bytes": arrow.array([b"\xff", None, None]),
        "nulls": arrow.nulls(3),
    }
    table = arrow.table({"question": ["q", "r", "s"], **columns})
    parquet: Any = pyarrow.parquet
    parquet.write_table(table, tmp_path / "d.parquet")
    dataset = load(tmp_path / "d.parquet")
    assert dataset.samples[0].metadata["map"] == {"k": "v", "l": None}
    assert dataset.samples[0].metadata["map of lists"] == {"1": ["a", "b"]}
    assert dataset.samples == load(table).samples
    assert dataset.samples[1:] == load(table.slice(1)).samples


def test_a_map_is_read_as_an_object(tmp_path: Path) -> None:
    arrow: Any = pyarrow
    calls = arrow.struct([("name", arrow.string()), ("input_parameters", arrow.map_(arrow.string(), arrow.string()))])
    rows: list[dict[str, Any]] = [
        {"input": "q", "output": "a", "tools_called": [{"name": "f", "input_parameters": {"city": "Bern"}}]},
        {"input": "r", "output": "b", "tools_called": [], "metadata": {"topic": "x"}, "relevant": {"d2": 2.0}},
    ]
    types = {
        "input": arrow.string(),
        "output": arrow.string(),
        "tools_called": arrow.list_(calls),
        "metadata": arrow.map_(arrow.string(), arrow.string()),
        "relevant": arrow.map_(arrow.string(), arrow.float64()),
    }
    table = arrow.table([arrow.array([row.get(name) for row in rows], of) for name, of in types.items()], list(types))
    parquet: Any = pyarrow.parquet
    parquet.write_table(table, tmp_path / "d.parquet")
    array = table.to_struct_array()
    for source in (table, table.to_batches()[0], array, array.chunk(0), tmp_path / "d.parquet"):
        assert load(source).samples == load(rows).samples


def test_a_map_with_a_key_twice_is_refused_with_its_column(tmp_path: Path) -> None:
    arrow: Any = pyarrow
    tags = arrow.array([[("k", "v"), ("l", "w"), ("k", "x")]], arrow.map_(arrow.string(), arrow.string()))
    table = arrow.table({"input": ["q"], "tags": tags})
    parquet: Any = pyarrow.parquet
    parquet.write_table(table, tmp_path / "d.parquet")
    for source in (table, tmp_path / "d.parquet"):
        assert "column 'tags' must" in refusal(source)
        assert "key 'k' twice" in refusal(source)


@pytest.mark.parametrize(("number", "read"), [(math.nan, None), (math.inf, "inf"), (-math.inf, "-inf")])
def test_numbers_that_json_lacks_do_not_refuse_the_row(tmp_path: Path, number: float, read: str | None) -> None:
    for arguments in ({"x": number}, json.dumps({"x": number})):
        call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
        row = {"messages": [{"role": "assistant", "content": "a", "tool_calls": [call]}], "state": {"x": number}}
        for source in ([row], written(tmp_path, "d.jsonl", json.dumps(row))):
            (sample,) = load(source)
            assert sample.messages[0].tool_calls[0].arguments == sample.state == {"x": read}


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pyarrow is not installed.*\[parquet\]"):
        load(written(tmp_path, "d.parquet", "x"))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE.encode())))
    dataset = load("-")
    assert (dataset.name, dataset.samples[0].input) == ("stdin", "q")


def test_equal_rows_by_the_thousand_get_ids_that_differ(tmp_path: Path) -> None:
    dataset = load(written(tmp_path, "d.jsonl", LINE * 3000))
    assert len({sample.id for sample in dataset}) == 3000


def test_a_missing_file_is_refused_with_near_names(tmp_path: Path) -> None:
    written(tmp_path, "cases.jsonl", LINE)
    assert refusal(tmp_path / "case.jsonl").endswith("mean cases.jsonl?")
    assert refusal(tmp_path / "no" / "d.json").endswith("its folder")
    assert "does not exist" in refusal("\x1b[31m\0x.json")
    assert "cannot be read" in refusal("x" * 5000)


def test_a_folder_is_refused_with_what_it_contains(tmp_path: Path) -> None:
    written(tmp_path, "cases.csv.gz", "")
    assert refusal(tmp_path).startswith(f"{tmp_path} is a folder")
    assert refusal(tmp_path).endswith("cases.csv.gz")
    written(tmp_path, "state.json", "{}")
    assert "it contains" in refusal(tmp_path)
    written(tmp_path, "dataset_info.json", "{}")
    assert refusal(tmp_path).endswith("or load it in Python with datasets.load_from_disk")


BROKEN = [
    ("d.jsonl", LINE + '{"input": "q\x1b", }\n', "line 2, column 13: not JSON (Invalid control character at): '{"),
    ("d.jsonl", LINE + "[1]\n", "line 2: a row must be an object, not list: [1]"),
    ("d.jsonl", '[{"output": "a"}, {"output": "b"}]', "; a list of rows belongs into a .json file"),
    (
        "d.jsonl",
        '[\n {"output": "a"}\n]\n',
        "line 1: a JSON array begins here, but each line must be an object; give the file a name that ends with .json",
    ),
    ("d.jsonl", LINE + '\n{"output": [1]}', "line 3: output must be text, not list: [1]"),
    ("d.jsonl", "[" * 100_000, "line 1: nested too deeply"),
    ("d.jsonl", '{"n": ' + "1" * 5000 + "}", "line 1: a number of too many digits: "),
    ("d.jsonl", LINE + "null", "line 2: a row must be an object, not NoneType: None"),
    ("d.json", '[\n {"input": "q"},\n {"input" "q"}\n]', "line 3, column 11: not JSON (Expecting ':' delimiter)"),
    ("d.json", '[{"input": "q"}, {"input": [1]}]', "item 2: input must be text, not list: [1]"),
    ("d.json", '"text"', "must be a list of objects, not str: 'text'"),
    ("d.json", '{"cases": [{"input": "q"}]}', "must be a list of objects, or an object with one under data, samples"),
    (
        "d.json",
        '{"cases": [{"input": "q"}], "n": 1}',
        "an object with cases, n; if the samples are in cases, name it data",
    ),
    (
        "d.jsonl",
        '{"id": "m", "role": "user", "content": {"parts": []}}',
        "line 1: each row is a message, and a sample is",
    ),
    ("d.csv", "type,content\nhuman,Hi\n", "line 2: each row is a message, and a sample is a conversation; save the"),
    (
        "d.json",
        '{"evalId": "e", "results": {}, "config": {}, "metadata": {}}',
        "results of promptfoo, whose rows are in",
    ),
    ("d.csv", "sample_id,scorer,outcome,question\na,b,score,q\n", "these are scores, as report --csv writes them; the"),
    ("d.json", '{"version": 1}', "no column is recognized (columns: version)"),
    ("d.json", '{"question": ["q", "r"], "answer": ["a"]}', "equal lengths; the lengths are question 2, answer 1"),
    ("d.json", '{"columns": ["input", "output"], "data": [["q", "a"], ["r"]]}', "row 2: 1 cells for 2 columns"),
    ("d.json", '{"columns": ["input", "input"], "data": []}', "two columns are named 'input'"),
    ("d.json", '{"columns": ["input"], "data": [5]}', "row 1 must be a list of cells, not int: 5"),
    ("d.json", '{"columns": ["input"], "data": [["q"], [[5]]]}', "row 2: input must be text, not list: [5]"),
    ("d.json", '{"question": ["q", [5]], "answer": ["a", "b"]}', "column 'question', read as input, must be text"),
    ("d.jsonl", LINE + '{"input": "q", "output": "a", "input": "r"}', "line 2: duplicate key 'input' in one object"),
    ("d.jsonl", '{"input": "\\"input\\": {", "in\\u0070ut": "q"}', "line 1: duplicate key 'input' in one object"),
    ("d.json", '[{"id": 1},\n {"id": 2,\n  "a": {"id": 3},\n  "id": 4}]', "line 4: duplicate key 'id' in one object"),
    ("d.json", '{"input": "q", "meta": [{"a": 1,\n "a": 1}]}', "line 2: duplicate key 'a' in one object"),
    ("d.json", '{"data": [], "rows": []}', "it has lists under data, rows"),
    ("d.json", "{}", "it is an object with nothing"),
    (
        "d.jsonl",
        '{"id": 1, "input": "q"}\n\n{"id": "1", "input": "r"}\n',
        "line 3: the id '1' is already used by line 1",
    ),
    (
        "d.jsonl",
        '{"id": "a\\u0000b", "input": "q"}\n{"id": "a\\\\u0000b", "input": "r"}\n',
        r"line 2: the id 'a\\u0000b' is already used by line 1 (NUL ",
    ),
    (
        "d.jsonl",
        '{"id": "a\\\\ud800b", "input": "q"}\n{"id": "a\\ud800b", "input": "r"}\n',
        r"line 2: the id 'a\ud800b' is already used by line 1 (NUL ",
    ),
    ("d.json", "", "has no samples"),
    ("d.json", "[]", "has no samples"),
    ("d.jsonl", "\n\n", "has no samples"),
    ("d.csv", "", "has no samples"),
    ("d.csv", "input,output\n", "has no samples"),
    ("d.csv", "Report,,\n,,\nquestion,answer,n\n", "'answer'; if this is the header, delete what is above it"),
    ("d.csv", "Report,,\nquestion,good,n\n", "the first extra one is 'good'"),
    (
        "d.csv",
        ",input\n0,q\n1,r\n5,s\n",
        "line 4: the first column has no name and counts the rows before this one, but ",
    ),
    ("d.csv", ",input\n0,q\n1,r\n,s\n", "but has '' here; give it a name, or write a pandas table with index=False"),
    ("d.csv", "index,,input,level_0\n0,q,r,s\n", "line 1: column 2 has no name in the header"),
    ("d.csv", "\n,\na,b\n", "has no samples"),
    ("d.csv", "input,,output\na,b,c\n", "line 1: column 2 has no name in the header: input, , output"),
    ("d.csv", "input,output,input\na,b,c\n", "line 1: two columns of the header are named 'input'"),
    ("d.csv", 'input,output\n"a\nb",c\nd,e,f\n', "line 4: 3 cells for 2 columns; the first extra one is 'f'"),
    ("d.csv", "question;answer;;\nq;a;;x\n", "line 2: 4 cells for 2 columns; the first extra one is 'x'"),
    ("d.csv", "question,answer\nq,Well,\n", "line 2: 3 cells for 2 columns; the first extra one is ''"),
    ("d.csv", "question;;answer\nq;;a\n", "line 1: column 2 has no name in the header: question, , answer"),
    ("d.csv", "sep=;\ninput;output\nq;a;b\n", "line 3: 3 cells for 2 columns; the first extra one is 'b'"),
    ("d.csv", 'input,output\nq,"a \\"b\\""\n', "line 2: broken CSV (',' expected after '\"'); quotes inside a cell"),
    ("d.csv", 'input,output\nq,"a \\"b\\""\n', "not written with a backslash (pandas: doublequote=True; Spark: "),
    ("d.csv", "input,output,note\nq,a,n\n\nr\n", "line 4: 1 cell for 3 columns; there is none for 'output'"),
    ("d.tsv", "input\toutput\nq\ta\nr\n", "line 3: 1 cell for 2 columns; there is none for 'output'"),
    ("d.csv", 'input,output\na,b\n"c,d\n', "line 3: broken CSV (unexpected end of data)"),
    ("d.tsv", 'input\toutput\n"a"b\tc\n', "line 2: broken CSV ('\\t' expected after '\"')"),
    ("d.csv", "who,what\na,b\n", "no column is recognized (columns: who, what); input, output"),
    (
        "d.csv",
        "input,context\nq,\"['a' ... 'b']\"\n",
        "context must be a list with commas (numpy prints arrays without)",
    ),
    ("d.csv", 'input,context\nq,"[""a b"", ""c d"\n', "line 2: context must be a complete list; this one is cut off"),
    ("d.csv", 'input,context\nq,"{""a"": [""b""]}"\n', "line 2: context must be a list of passages, not dict"),
    ("d.csv", b"input\nq\nZ\xfcrich\n", "not UTF-8: byte 10 (0xfc, line 3); save the file as UTF-8"),
    ("d.csv", b"\xef\xbb\xbfinput\nZ\xfcrich\n", "not UTF-8: byte 11 (0xfc, line 2); save"),
    ("d.csv", "input\nq\0\n", "NUL character in line 2"),
    ("d.jsonl", '{"output": "a\0b"}\n', "NUL character in line 1"),
    ("d.csv", "input\nq\n".encode("utf-16-le"), "NUL character in line 1"),
    ("d.jsonl.gz", b"plain", "not a complete gzip file"),
    ("d.jsonl.gz", gzip.compress(LINE.encode() * 100, mtime=0)[:-12], "not a complete gzip file"),
    ("d.xls", "x", " has an unknown suffix; readable are .json, .jsonl, "),
    ("d.xls", "", "; save it as .xlsx, or the sheet as CSV UTF-8"),
    ("d", "x", " has an unknown suffix; readable are .json, .jsonl, "),
    ("d.parquet.gz", "x", " has an unknown suffix; readable are .json, .jsonl, "),
    (".gz", "x", " has an unknown suffix; readable are .json, .jsonl, "),
    ("d.parquet", b"PAR1 no", "not a Parquet file that pyarrow can read"),
]


@pytest.mark.parametrize(("name", "data", "text"), BROKEN)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, name: str, data: str | bytes, text: str) -> None:
    path = written(tmp_path, name, data)
    message = refusal(path)
    assert text in message
    assert message.startswith(str(path))


def test_a_nul_character_is_read_where_json_escapes_it(tmp_path: Path) -> None:
    (sample,) = load(written(tmp_path, "d.jsonl", '{"output": "a\\u0000b"}\n'))
    assert sample.output == "a\0b"


def test_equal_rows_without_ids_are_told_apart_by_a_number() -> None:
    dataset = load([{"input": "q"}, {"input": "r"}, {"input": "q"}, {"input": "q"}])
    first = dataset.samples[0].id
    assert [sample.id for sample in dataset][2:] == [f"{first}-2", f"{first}-3"]
    taken = load([{"input": "q"}, {"input": "q"}, {"id": f"{first}-2", "input": "q"}])
    assert [sample.id for sample in taken] == [first, f"{first}-3", f"{first}-2"]


def test_the_version_is_that_of_ids_contents_and_order() -> None:
    one, two = {"input": "q"}, {"input": "r"}
    version = load([one, two]).version
    assert version == load([{"question": "q"}, two]).version
    assert len(version) == 16
    assert version != load([two, one]).version
    assert version != load([{**one, "id": "1"}, two]).version


def test_a_data_set_refuses_ids_that_repeat() -> None:
    with pytest.raises(DataError, match=r"sample 2: the id 'a' is already used by sample 1"):
        Dataset((Sample(id="a"), Sample(id="a", input="q")))


def test_calls_of_traces_with_ids_that_databases_store_alike_are_named_by_their_place() -> None:
    attributes = [
        {"key": f"gen_ai.{name}", "value": {"stringValue": text}}
        for name, text in (
            ("operation.name", "chat"),
            ("completion.0.role", "assistant"),
            ("completion.0.content", "x"),
        )
    ]
    span = {"spanId": "c", "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": attributes}
    rows = [{**span, "traceId": trace} for trace in ("a\0", "a\\u0000")]
    with pytest.raises(
        DataError, match=r"^sample 2: the id 'a\\+u0000-c' is already used by sample 1 \(NUL "
    ) as caught:
        load(rows)
    assert str(caught.value).isprintable()


def test_a_data_set_is_a_value() -> None:
    dataset = load([{"question": "q", "topic": "x"}])
    assert pickle.loads(pickle.dumps(dataset)) == dataset
    assert load(dataset) is dataset


def test_a_mapping_that_no_row_has_is_refused_after_reading(tmp_path: Path) -> None:
    path = written(tmp_path, "d.jsonl", '{"q": "a"}\n{"answers_given": "b"}\n')
    assert [sample.input for sample in load(path, map={"input": "q"})] == ["a", None]
    text = refusal(path, map={"input": "q", "output": "answer_given"})
    assert text.endswith("mean answers_given?")


@pytest.mark.parametrize("orient", ["index", "columns"])
def test_tables_of_pandas_by_index_and_by_column_have_the_same_rows(tmp_path: Path, orient: str):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    rows = [{"id": "x", "messages": messages}, {"id": "y", "messages": messages}]
    columns = {name: {str(at): row[name] for at, row in enumerate(rows)} for name in ("id", "messages")}
    value = {str(at): row for at, row in enumerate(rows)} if orient == "index" else columns
    path = written(tmp_path, "d.json", json.dumps(value))
    assert list(load(path)) == list(load(rows))
    only = {"messages": columns["messages"]} if orient == "columns" else {"0": rows[0]}
    assert load(written(tmp_path, "e.json", json.dumps(only))).samples[0].output == "a"
