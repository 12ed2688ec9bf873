"""The survey of a source, in parts, says what reading all of it in one process says."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.datasets import load
from evalstone.datasets.files import find_all
from evalstone.datasets.part_samples import read_part
from evalstone.datasets.parts import Part, parts_of
from evalstone.errors import DataError
from evalstone.run.plan import absent_in
from evalstone.scale.survey import Survey, survey
from evalstone.scorers import parse_scorers

SCORERS = parse_scorers(["exact_match", "context_recall", "goal_reached"])


def surveyed(pattern: Path, step: int = 40) -> Survey:
    """The survey of files in parts of a few bytes each, which other processes could have made."""
    found = Survey()
    for file in find_all(str(pattern)):
        size = file.location.size
        for at in range(0, size, step):
            part = Part(file, at, min(size, at + step))
            found.add(part, pickle.loads(pickle.dumps(survey(part, SCORERS))))
    found.finish()
    return found


rows = st.lists(
    st.fixed_dictionaries(
        {"output": st.sampled_from(["a", "b", "c d"])},
        optional={"id": st.integers(0, 10**6), "reference": st.just("r"), "tag": st.text(max_size=5)},
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda row: row.get("id", object()),
)


@settings(max_examples=60, deadline=None)
@given(rows=rows, step=st.integers(1, 200))
def test_parts_give_the_dataset_that_one_process_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], step: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    dataset, found = load(path), surveyed(path, step)
    assert (found.version, found.samples) == (dataset.version, len(dataset))
    assert (found.reader.columns.became, tuple(found.reader.ignored)) == (dataset.columns, dataset.ignored)
    assert found.lacking == {scorer.signature: absent_in(scorer, dataset) for scorer in SCORERS}
    read = [sample for part in found.parts for _, sample in read_part(part, found.reader)]
    assert [found.renamed.get(number, sample.id) for number, sample in enumerate(read)] == [one.id for one in dataset]


def written(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    return tmp_path / "*.jsonl"


def test_default_ids_avoid_ids_of_ones_own(tmp_path: Path) -> None:
    own = load([{"output": "x"}]).samples[0].id
    text = '{"output": "x"}\n' * 3 + f'{{"output": "y", "id": "{own}-2"}}\n'
    assert surveyed(written(tmp_path, a=text)).renamed == {1: f"{own}-3", 2: f"{own}-4"}


def test_many_equal_samples_are_named_in_a_short_time(tmp_path: Path) -> None:
    """Each with a pass over the others would take 30 s."""
    (file,) = find_all(str(written(tmp_path, a='{"output": "x"}\n')))
    one, number, found = survey(Part(file, 0, 16), SCORERS), 100_000, Survey()
    rows = one.rows * number
    found.add(Part(file), replace(one, keys=one.keys * number, flags=one.flags * number, rows=rows))
    start = time.process_time()
    found.finish()
    assert time.process_time() - start < 5
    own = load([{"output": "x"}]).samples[0].id
    assert found.renamed == {place: f"{own}-{place + 1}" for place in range(1, number)}


def test_a_repeated_id_names_both_lines(tmp_path: Path) -> None:
    a = '{"output": "x"}\n\n{"id": "q", "output": "y"}\n'
    with pytest.raises(DataError) as raised:
        surveyed(written(tmp_path, a=a, b=a), step=17)
    assert str(raised.value) == "line 3 of b.jsonl: the id 'q' is already used by line 3 of a.jsonl"


def test_different_ids_with_the_same_key_are_no_repeated_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(_: str) -> bytes:
        return bytes(16)

    monkeypatch.setattr("evalstone.scale.survey.id_digest", same)
    lines = [f'{{"output": "x", "id": "{id}"}}\n' for id in "qrst"]
    assert surveyed(written(tmp_path, a="".join(lines)), step=30).renamed == {}
    with pytest.raises(DataError) as raised:
        surveyed(written(tmp_path, a="".join([*lines, lines[2]])), step=30)
    assert str(raised.value) == "line 5 of a.jsonl: the id 's' is already used by line 3 of a.jsonl"


def test_an_id_of_ones_own_that_is_a_default_id_is_refused(tmp_path: Path) -> None:
    own = load([{"output": "x"}]).samples[0].id
    with pytest.raises(DataError, match=rf"line 2 of a.jsonl: the id '{own}' is already used by line 1"):
        surveyed(written(tmp_path, a=f'{{"output": "x"}}\n{{"id": "{own}", "output": "other"}}\n'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"output": "x"}\n\n\n{"output": 1, "context": 5}\n', "line 4: context must be a list of passages"),
        ('{"output": "x"}\n\n\n{"output": }\n', "line 4, column 12: not JSON"),
        ('{"x": 1}\n{"y": 2}\n', "no column is recognized (columns: x, y)"),
        ('{"output": "x", "weight": 2}\n{"output": "y", "weight": null}\n', "not one in every row"),
        ('{"resourceSpans": []}\n', "has traces"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_in_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        surveyed(written(tmp_path, a=text), step=17)
    assert message in str(raised.value)


def test_parts_of_parquet_and_csv_give_the_same_dataset(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": [f"q{n}" for n in range(50)], "output": [f"a{n % 7}" for n in range(50)]})
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=20)
    (tmp_path / "d.csv").write_text("id,output\n" + "".join(f"q{n},a{n % 7}\n" for n in range(50)))
    versions = set[str]()
    for name in ("d.parquet", "d.csv"):
        found = Survey()
        for part in parts_of(find_all(str(tmp_path / name)), 8):
            found.add(part, survey(part, SCORERS))
        found.finish()
        versions.add(found.version)
        assert found.version == load(tmp_path / name).version
    assert len(versions) == 1
