from __future__ import annotations

import csv
import importlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone import Sample, load
from evalstone.datasets import sample_from
from evalstone.errors import ConfigError, DataError
from evalstone.targets import Answer
from tests.workbooks import write_xlsx

# Any: their types are partly unknown.
numpy: Any = importlib.import_module("numpy")
pandas: Any = importlib.import_module("pandas")
polars: Any = importlib.import_module("polars")
pyarrow: Any = importlib.import_module("pyarrow")
parquet: Any = importlib.import_module("pyarrow.parquet")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def written(row: dict[str, Any], write: Callable[[list[Any]], str]) -> dict[str, Any]:
    return {name: write(value) if isinstance(value, list) else value for name, value in row.items()}  # pyright: ignore[reportUnknownArgumentType]


def doors(row: dict[str, Any]) -> Iterator[Any]:
    """The row in each source that `load` reads, with its lists as values where the source has any, and as text."""
    texts = written(row, json.dumps)
    reprs = written(row, repr)
    tuples = written(row, lambda value: repr(tuple(value)))
    with tempfile.TemporaryDirectory() as folder:
        for cells in (texts, reprs, tuples):
            buffer = io.StringIO()
            csv.writer(buffer).writerows([[*cells], [*cells.values()]])
            path = Path(folder, "d.csv")
            path.write_bytes(buffer.getvalue().encode())
            yield path
        for values in (row, texts, reprs, tuples):
            for suffix, text in (("json", json.dumps([values])), ("jsonl", json.dumps(values))):
                path = Path(folder, f"d.{suffix}")
                path.write_text(text)
                yield path
            table = pyarrow.Table.from_pylist([values])
            parquet.write_table(table, Path(folder, "d.parquet"))
            yield from (Path(folder, "d.parquet"), table, pandas.DataFrame([values]), polars.DataFrame([values]))
            yield [values]
        pandas.DataFrame([row]).to_csv(Path(folder, "d.csv"), index=False)
        yield Path(folder, "d.csv")


@settings(deadline=None, max_examples=40)
@given(st.lists(TEXTS))
def test_a_list_of_passages_is_the_same_through_every_door(passages: list[str]):
    expected = tuple(passage for passage in passages if passage.strip())
    for source in doors({"question": "q", "answer": "a", "contexts": passages}):
        (sample,) = load(source)
        assert (sample.input, sample.output, sample.context) == ("q", "a", expected), source


# XML has no control characters, and reads a carriage return as a line feed.
CELL_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=20).filter(str.strip)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"question": CELL_TEXTS, "answer": CELL_TEXTS, "contexts": st.lists(TEXTS), "topic": CELL_TEXTS}
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None, max_examples=15)
@given(ROWS)
def test_a_table_is_the_same_through_every_door(rows: list[dict[str, Any]]) -> None:
    texts = [written(row, json.dumps) for row in rows]
    expected = list(load(rows))
    frame = pandas.DataFrame(rows)
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        frame.to_csv(at / "labels.csv")
        frame.assign(contexts=[row["contexts"] for row in texts]).to_csv(at / "d.tsv", index=False, sep="\t")
        frame.to_json(at / "d.jsonl", orient="records", lines=True)
        for orient in ("records", "columns", "index", "split"):
            frame.to_json(at / f"{orient}.json", orient=orient)
        (at / "data.json").write_text(json.dumps({"data": rows}))
        frame.to_parquet(at / "d.parquet")
        write_xlsx(at / "d.xlsx", {"A": [[*frame], *([row[name] for name in frame] for row in texts)]})
        for source in (*sorted(at.iterdir()), frame, polars.DataFrame(rows), {name: [*frame[name]] for name in frame}):
            assert list(load(source)) == expected, source


def test_messages_ids_and_topics_are_the_same_through_every_door():
    messages = [
        {"role": "user", "content": "It's 5 o'clock?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "clock", "arguments": '{"zone": "CET"}'}}]},
        {"role": "assistant", "content": 'Yes, "five".'},
    ]
    row = {"id": "a", "messages": messages, "turns": [{"input": "Hi"}], "expected_trajectory": ["clock"]}
    expected = sample_from(row)
    assert expected.messages[1].tool_calls[0].arguments == {"zone": "CET"}
    for source in doors(row):
        (sample,) = load(source)
        assert sample.messages == expected.messages, source
        assert sample.turns == expected.turns
        assert sample.expected_trajectory == expected.expected_trajectory


def test_passages_in_python_values_are_read_by_the_same_rule():
    for kind in (Sample, Answer):
        assert kind(output="a", context="('p', \"q's\")").context == ("p", "q's")
        assert kind(output="a", context="[1] p").context == ("[1] p",)
        with pytest.raises(ConfigError, match=r"^context .* commas"):
            kind(output="a", context="['p' 'q', 'r']")
        with pytest.raises(ConfigError, match=r"^context .* empty"):
            kind(output="a", context="nan")


PASSAGES = ("Bern is a city.", "It's old.")
CELLS: dict[str, tuple[str, ...] | str] = {
    '["Bern is a city.", "It\'s old."]': PASSAGES,
    """['Bern is a city.', "It's old."]""": PASSAGES,
    """('Bern is a city.', "It's old.")""": PASSAGES,
    """['Bern is a city.' "It's old."]""": PASSAGES,
    """['Bern is a city.'\n "It's old."]""": PASSAGES,
    """array(['Bern is a city.', "It's old."], dtype=object)""": PASSAGES,
    """[np.str_('Bern is a city.'), np.str_("It's old.")]""": PASSAGES,
    """{"It's old.", 'Bern is a city.'}""": PASSAGES,
    """[{'page_content': 'Bern is a city.', 'metadata': {}}, {'text': "It's old."}]""": PASSAGES,
    """[{'text': 'Bern is a city.'} {'text': "It's old."}]""": PASSAGES,
    """[Document(metadata={}, page_content='Bern is a city.'), Document(page_content="It's old.")]""": PASSAGES,
    """[(Document(page_content='Bern is a city.'), 0.9), (Document(page_content="It's old."), 0)]""": PASSAGES,
    """[NodeWithScore(node=TextNode(text='Bern is a city.'), score=0.5), TextNode(text="It's old.")]""": PASSAGES,
    "page_content='Bern is a city.' metadata={'source': 'a.pdf'}": ("Bern is a city.",),
    "Bern is a city.\nIt's old.": ("Bern is a city.\nIt's old.",),
    "[1] Bern is a city.": ("[1] Bern is a city.",),
    "['Bern' 'is', 'a city.']": "with commas",
    "['Bern is a city.' ... 'old.']": "with commas",
    "['Bern is a city.', 'It": "cut off or broken",
    "[<Document object at 0x7f00>]": "as Python prints them",
    "page_content='It's old.' metadata={}": "as Python prints them",
    "[{'at': Moment(2026)}, 'a']": "without objects as Python prints them",
    "nan": "must be empty if it is missing",
}
"""What the cells of contexts are read as, or why they are refused."""


def cells_in(folder: Path, cell: str) -> Iterator[Any]:
    """A row with this text in its context, in each source that `load` reads, and the context itself."""
    row = {"question": "q", "answer": "a", "contexts": cell}
    for delimiter in ",;\t":
        path = Path(folder, "d.csv")
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([[*row], [*row.values()]])
        yield path
    for suffix, text in (("json", json.dumps([row])), ("jsonl", json.dumps(row))):
        path = Path(folder, f"d.{suffix}")
        path.write_text(text)
        yield path
    table = pyarrow.Table.from_pylist([row])
    parquet.write_table(table, Path(folder, "d.parquet"))
    yield from (Path(folder, "d.parquet"), table, pandas.DataFrame([row]), polars.DataFrame([row]), [row])
    yield {name: [value] for name, value in row.items()}
    yield write_xlsx(Path(folder, "d.xlsx"), {"Answers": [[*row], [*row.values()]]})


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_read_alike_through_every_door(tmp_path: Path, cell: str) -> None:
    expected = CELLS[cell]
    for source in cells_in(tmp_path, cell):
        if isinstance(expected, str):
            with pytest.raises(DataError, match=expected):
                load(source)
        else:
            (sample,) = load(source)
            assert sample.context == expected, source
    for kind in (Sample, Answer):
        if isinstance(expected, str):
            with pytest.raises(DataError, match=f"^context .*{expected}"):
                kind(output="a", context=cell)
        else:
            assert kind(output="a", context=cell).context == expected


@dataclass
class Document:
    """As LangChain has it."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class TextNode:
    """As LlamaIndex has it."""

    text: str


@dataclass
class NodeWithScore:
    """As LlamaIndex has it; its text is a property."""

    node: TextNode
    score: float

    @property
    def text(self) -> str:
        return self.node.text


@pytest.mark.parametrize(
    "value",
    [
        [Document("Bern is a city."), Document("It's old.")],
        [(Document("Bern is a city."), 0.9), (Document("It's old."), 0.1)],
        [NodeWithScore(TextNode("Bern is a city."), 0.5), TextNode("It's old.")],
        {"It's old.", "Bern is a city."},
        frozenset({"It's old.", "Bern is a city."}),
        numpy.array(["Bern is a city.", "It's old."]),
        polars.Series(["Bern is a city.", "It's old."]),
        ("Bern is a city.", {"text": "It's old."}),
        [{"node": {"text": "Bern is a city."}, "score": 1.0}, {"kwargs": {"page_content": "It's old."}}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_documents_of_libraries_and_sets_are_passages(value: Any) -> None:
    assert Sample(context=value).context == PASSAGES
    assert Answer(output="a", context=value).context == PASSAGES
    assert sample_from({"contexts": value}).context == PASSAGES
    (sample,) = load(pandas.DataFrame({"output": ["a"], "contexts": [value]}))
    assert sample.context == PASSAGES


def test_a_series_of_polars_as_text_is_refused() -> None:
    with pytest.raises(DataError, match="context must be a list, not objects as Python prints them"):
        sample_from({"output": "a", "context": str(polars.Series(["Bern is a city.", "It's old."]))})


def test_a_dataset_of_hugging_face_gives_rows_whatever_its_format() -> None:
    class Formatted:
        rows = ({"output": "a", "context": ["p"]},)

        def __init__(self, format: str | None = "pandas") -> None:
            self.format = format

        def with_format(self, format: str | None) -> Formatted:
            return Formatted(format)

        def __iter__(self) -> Iterator[Any]:
            return (row if self.format is None else pandas.DataFrame(row) for row in self.rows)

    (sample,) = load(Formatted())
    assert sample.context == ("p",)


def test_an_object_of_nulls_is_no_passage_as_in_parquet_files() -> None:
    documents = [{"text": "p", "score": 1.0}, {"text": None, "score": None}, None]
    assert sample_from({"output": "a", "context": documents}).context == ("p",)
    for item in ({"text": None, "score": 1.0}, {}):
        with pytest.raises(DataError, match="passage 1 must be text or an object with"):
            Sample(context=[item])


def test_an_object_without_a_text_is_no_passage() -> None:
    with pytest.raises(DataError, match="context must be a list of passages; passage 1 must be text or an object with"):
        Sample(context=[object()])
    with pytest.raises(DataError, match="context must be a list of passages, not object"):
        Sample(context=object())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_list_that_cannot_be_read_is_named_with_its_line_and_column(tmp_path: Path, suffix: str):
    rows = [{"output": "a", "ctxs": "['p', 'q']"}, {"output": "a", "ctxs": "['p' 'q',\n 'r']"}]
    path = tmp_path / f"d.{suffix}"
    if suffix == "csv":
        pandas.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError) as caught:
        load(path)
    line = 3 if suffix == "csv" else 2
    assert f"line {line}: column 'ctxs', " in str(caught.value)
    assert "read as context" in str(caught.value)


def test_an_error_of_a_passage_names_the_passage() -> None:
    with pytest.raises(DataError) as raised:
        load([{"input": "q", "context": ["p", 5]}])
    assert (raised.value.field, raised.value.value) == ("passage 2", 5)
