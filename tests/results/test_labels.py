from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone.errors import DataError, EvalstoneError
from evalstone.results.labels import LabeledSamples, LabelReader, read_labels
from evalstone.types import Sample

READER = LabelReader(1.0, False)
ROWS = [
    {"id": "a", "output": "A.", "label": "yes"},
    {"id": "b", "output": "B.", "label": "no"},
    {"id": "c", "output": "C.", "label": None},
]


def labels(source: Any, **options: Any) -> LabeledSamples:
    return read_labels(source, READER, **options)


def write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def test_samples_hold_their_labels_and_those_without_one_are_left_out():
    found = labels(ROWS)
    assert found.labels == {"a": (1.0,), "b": (0.0,)}
    assert [sample.id for sample in found.dataset] == ["a", "b"]
    assert (found.columns, found.words) == (("label",), {"yes": 1, "no": 0})


def test_labels_may_stand_in_the_metadata():
    sample = Sample(id="a", output="A.", metadata={"human_label": "supported", "label2": "no"})
    assert labels([sample]).labels == {"a": (1.0,)}


def test_several_annotators_have_a_column_each(tmp_path: Path):
    text = "id,answer,annotator_1,annotator_2,annotator_3\na,A.,yes,no,\nb,B.,no,no,yes\nc,C.,,,\n"
    found = labels(write(tmp_path / "labels.csv", text))
    assert found.columns == ("annotator_1", "annotator_2", "annotator_3")
    assert found.labels == {"a": (1.0, 0.0, None), "b": (0.0, 0.0, 1.0)}
    assert [sample.id for sample in found.dataset] == ["a", "b"]


def test_columns_can_be_named(tmp_path: Path):
    found = labels(write(tmp_path / "d.csv", "answer,ok?,label\nA.,yes,no\n"), columns=["ok?"])
    assert list(found.labels.values()) == [(1.0,)]


def test_a_list_in_a_cell_is_one_label_an_annotator():
    found = labels([{"id": "a", "output": "A.", "labels": [1, 0, 1]}, {"id": "b", "output": "B.", "labels": [0]}])
    assert found.labels == {"a": (1.0, 0.0, 1.0), "b": (0.0, None, None)}


def test_a_list_that_is_shorter_leaves_the_next_column_at_its_place():
    rows = [
        {"id": "a", "output": "A.", "crowd": ["yes", "no"], "expert": "yes"},
        {"id": "b", "output": "B.", "crowd": ["no"], "expert": "no"},
    ]
    assert labels(rows, columns=["crowd", "expert"]).labels == {"a": (1.0, 0.0, 1.0), "b": (0.0, None, 0.0)}


def test_a_list_may_be_written_as_text_in_a_table(tmp_path: Path):
    file = write(tmp_path / "labels.csv", 'id,label\na,"[1, 0]"\n')
    assert labels(file, data=ROWS).labels == {"a": (1.0, 0.0)}
    for written in ("['yes', 'no']", "['yes' 'no']"):
        file = write(tmp_path / "labels.csv", f'id,label\na,"{written}"\n')
        assert labels(file, data=ROWS).labels == {"a": (1.0, 0.0)}
    with pytest.raises(DataError, match=r"line 2: .*'label'"):
        labels(write(tmp_path / "labels.csv", "id,label\na,\"['yes' 'no', 'no']\"\n"), data=ROWS)


def test_a_column_that_is_named_twice_is_one_annotator():
    assert labels(ROWS, columns=["label", "label"]).labels == {"a": (1.0,), "b": (0.0,)}


def test_labels_beside_the_samples_may_be_a_table_or_come_from_standard_input(monkeypatch: pytest.MonkeyPatch):
    class Table:
        columns = ("id", "label")

        def to_dicts(self) -> list[dict[str, str]]:
            return [{"id": "a", "label": "no"}]

    assert labels(Table(), data=ROWS).labels == {"a": (0.0,)}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": "b", "label": "yes"}\n')))
    assert labels("-", data=ROWS).labels == {"b": (1.0,)}


@pytest.mark.parametrize("none", [{}, []])
def test_no_labels_at_all_are_refused(none: Any):
    with pytest.raises(DataError, match="no labels"):
        labels(none, data=ROWS)


def test_labels_can_lie_in_a_file_beside_the_data(tmp_path: Path):
    data = write(tmp_path / "data.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    beside = write(tmp_path / "labels.csv", "ID,annotator\nc,1\na,0\n")
    found = labels(beside, data=data)
    assert found.labels == {"c": (1.0,), "a": (0.0,)}
    assert [sample.id for sample in found.dataset] == ["a", "c"]


def test_labels_can_be_a_mapping_from_id_to_label():
    assert labels({"a": True, "b": "no"}, data=ROWS).labels == {"a": (1.0,), "b": (0.0,)}
    assert labels([{"id": "a", "label": 0.5}], data=ROWS).labels == {"a": (0.5,)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,label\nx,1\n", r"labels.csv: line 2: no sample has the id 'x'$"),
        ("id,label\na,1\nx,1\ny,0\n", r"line 3: no sample has the id 'x'; 2 of 3 IDs are unknown$"),
        (
            "id,label\nhash-0123456789abcdef,1\n",
            r"the id 'hash-0123456789abcdef' \(a default ID changes with the answer",
        ),
        ("id,label\na,1\nb,0\na,0\n", "line 4: the id 'a' was already labeled at line 2; put each annotator's"),
        ("name,label\na,1\n", "line 2: a row of labels needs an id; its columns are name, label"),
        ("id,label\n,1\n", "line 2: a row of labels needs an id"),
        ("id,label\na,perhaps\n", "line 2: the label in column 'label' must be"),
        ("id,label\na,\n", "no sample has a label in label"),
        ("id,verdict_of_ann\na,1\n", "no column of labels .*verdict_of_ann.*label=…"),
        ("id,label\na,1,2\n", "line 2: 3 cells for 2 columns"),
    ],
)
def test_what_cannot_be_joined_is_told_with_file_line_and_column(tmp_path: Path, text: str, told: str):
    with pytest.raises(DataError, match=told):
        labels(write(tmp_path / "labels.csv", text), data=ROWS)


def test_an_error_in_a_sample_names_its_line(tmp_path: Path):
    with pytest.raises(DataError, match=r"csv: line 3: .*'maybe'"):
        labels(write(tmp_path / "d.csv", "answer,label\nA.,yes\nB.,maybe\n"))
    with pytest.raises(DataError, match="item 1: the label"):
        labels([{"output": "A.", "label": "maybe"}])


@pytest.mark.parametrize(
    ("source", "told"), [(5, "labels must be a path"), ([3], "item 1: a row of labels must be an")]
)
def test_labels_of_another_kind_are_refused(source: Any, told: str):
    with pytest.raises(DataError, match=told):
        labels(source, data=ROWS)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="does not exist"):
        labels(tmp_path / "none.csv")
    with pytest.raises(DataError, match="does not exist"):
        labels(tmp_path / "none.csv", data=ROWS)


def test_an_object_of_labels_by_id_is_read_from_a_file_as_in_python(tmp_path: Path):
    by_id = {"a": "yes", "b": 0}
    data = [{"id": "a", "output": "A."}, {"id": "b", "output": "B."}]
    file = write(tmp_path / "labels.json", json.dumps(by_id))
    assert labels(file, data=data).labels == labels(by_id, data=data).labels == {"a": (1.0,), "b": (0.0,)}


def test_several_annotators_labels_by_id_are_read_from_a_file_as_in_python(tmp_path: Path):
    data = [{"id": "a", "output": "A."}, {"id": "2", "output": "B."}]
    for by_id in ({"a": ["yes", "no"], "2": ["no", None]}, {"a": ["yes", "no"], "2": "no"}):
        file = write(tmp_path / "labels.json", json.dumps(by_id))
        assert labels(file, data=data).labels == labels(by_id, data=data).labels == {"a": (1.0, 0.0), "2": (0.0, None)}


def test_rows_of_labels_under_an_unknown_name_are_refused(tmp_path: Path):
    file = write(tmp_path / "labels.json", '{"results": [{"id": "a", "label": "yes"}]}')
    with pytest.raises(DataError, match=r"json: id 'results': "):
        labels(file, data=[{"id": "a", "output": "A."}])


def test_one_row_of_labels_without_an_id_is_no_object_of_labels_by_id(tmp_path: Path):
    for name, text in (("labels.csv", "name,verdict\na,yes\n"), ("labels.json", '{"name": "a", "label": "yes"}')):
        with pytest.raises(DataError, match=r"id; its columns .*name, "):
            labels(write(tmp_path / name, text), data=[{"id": "a", "output": "A."}])


def test_a_series_is_read_as_the_mapping_from_its_index_and_never_by_position():
    pandas = pytest.importorskip("pandas")
    data = [{"id": str(number), "output": "A."} for number in (3, 1, 2)]
    by_id = {"1": "yes", "2": "no", "3": None}
    expected = labels(by_id, data=data)
    table = pandas.DataFrame({"id": [1, 2, 3], "verdict": list(by_id.values())})
    for series in (
        pandas.Series(by_id),
        pandas.Series(by_id).sample(frac=1, random_state=0),
        pandas.Series(by_id, name="verdict", dtype="string"),
        table.set_index("id")["verdict"],
        table.set_index("id")["verdict"].map({"yes": True, "no": False}).astype("boolean"),
    ):
        found = labels(series, data=data)
        assert (found.dataset.samples, found.labels) == (expected.dataset.samples, expected.labels)
        assert found.columns == ("label",)
    for series in (table["verdict"], table[1:]["verdict"], table.rename_axis("row")["verdict"]):
        with pytest.raises(DataError, match=r"Series .*set_index"):
            labels(series, data=data)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: labels([{"id": "a", "output": "A.", "ground_truth": "yes"}], columns=["ground_truth"]),
        DataError,
        "the labels: 'ground_truth' was read as the samples' reference: rename it",
    ),
    (
        lambda: labels({"a": "yes"}, data=ROWS, columns=["output"]),
        DataError,
        "the labels: no row has the column 'output'; columns: label",
    ),
    (
        lambda: labels(ROWS, columns=["gold"]),
        DataError,
        "the labels: no row has the column 'gold'; columns: label",
    ),
    (
        lambda: labels(
            pytest.importorskip("pandas").concat(
                [pytest.importorskip("pandas").Series({"1": "yes", "2": "no", "3": None})] * 2
            ),
            data=[{"id": str(number), "output": "A."} for number in (3, 1, 2)],
        ),
        DataError,
        (
            "the labels: id '1': the id '1' was already labeled at id '1'; put each annotator's labels "
            "in a separate column"
        ),
    ),
    (
        lambda: labels(pytest.importorskip("polars").Series("label", ["yes"]), data=ROWS),
        DataError,
        (
            "the labels: a Series of labels needs the ids of the samples as its index, and a name such "
            "as id if they are numbers: table.set_index('id')['label']"
        ),
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_labels_without_a_known_column_say_so_as_values_too(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("foo,label\na,1\n")
    with pytest.raises(DataError, match="name the samples with data=") as raised:
        read_labels(path, READER)
    assert (raised.value.kind, raised.value.known) == ("unrecognized", ("foo", "label"))
