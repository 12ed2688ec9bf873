"""The results folder: records, summary, and the samples beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import ConfigError, DataError, Sample, __version__, load
from evalstone._core.installed import update_advice
from evalstone.results.files import with_data, write_run
from evalstone.run.saved import read_run
from tests.runs import run_of, samples_of


def test_a_run_comes_back_with_its_samples(tmp_path: Path) -> None:
    run = run_of(["0.5", "skip"], metadata=[{"group": "a"}, {"n": 1}])
    back = read_run(write_run(run, tmp_path / "r"))
    assert list(back.samples or ()) == samples_of(["0.5", "skip"], metadata=[{"group": "a"}, {"n": 1}])
    assert [record.group for record in back] == ["a", None]


def test_a_run_without_its_texts_leaves_none_of_another_run_in_the_folder(tmp_path: Path) -> None:
    write_run(run_of(["0.5"]), tmp_path)
    write_run(replace(run_of(["0.25"]), samples=None), tmp_path)
    assert read_run(tmp_path).samples is None


class Unreadable:
    """Samples whose file has changed."""

    def __iter__(self) -> Iterator[Sample]:
        raise DataError("changed meanwhile")


def test_a_run_whose_samples_can_no_longer_be_read_is_written_without_those_of_another_run(tmp_path: Path) -> None:
    write_run(run_of(["0.25"]), tmp_path)
    with pytest.raises(DataError, match="changed meanwhile"):
        write_run(replace(run_of(["0.5"]), samples=cast(Any, Unreadable())), tmp_path)
    back = read_run(tmp_path)
    assert (back["given"].mean, back.samples) == (0.5, None)


def test_a_file_that_the_run_reads_its_samples_from_is_not_removed(tmp_path: Path) -> None:
    run = read_run(write_run(run_of(["0.5"]), tmp_path))
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write("edited")
    with pytest.raises(DataError, match=r"samples\.jsonl, line 2"):
        write_run(run, tmp_path)
    assert (tmp_path / "samples.jsonl").read_text().endswith("edited")


def test_a_folder_has_no_results_before_all_parts_of_a_run_are_there(tmp_path: Path) -> None:
    write_run(run_of(["0.25"]), tmp_path)
    (tmp_path / "records.jsonl").unlink()
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"records\.jsonl"):
        write_run(run_of(["0.5"]), tmp_path)
    with pytest.raises(ConfigError, match=r"summary\.json is"):
        read_run(tmp_path)


def test_texts_are_taken_from_the_data_set_of_the_run_and_from_no_other() -> None:
    run = replace(run_of(["0.5"]), samples=None)
    assert list(with_data(run, load(samples_of(["0.5"]))).samples or ()) == samples_of(["0.5"])
    with pytest.raises(ConfigError, match="run's samples"):
        with_data(run, load(samples_of(["0.75"])))


def test_a_broken_line_of_samples_is_named(tmp_path: Path) -> None:
    write_run(run_of(["0.5", "0.5"]), tmp_path)
    file = tmp_path / "samples.jsonl"
    file.write_text(file.read_text().splitlines()[0] + '\n{"id": "x", "output": 1}\n')
    with pytest.raises(DataError, match=r"jsonl, line 2: .*output"):
        list(read_run(tmp_path).samples or ())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("given(", "other(", r"records\.jsonl, line 1: 'other\(\w+\)@1' is not a scorer of summary\.json"),
        ('"s2"', '"s1"', r"records\.jsonl, line 2: sample 's1' by 'given\(\w+\)@1' is a duplicate of line 1"),
    ],
)
def test_a_record_that_does_not_belong_to_the_run_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    write_run(run_of(["0.5", "1.0"]), tmp_path)
    file = tmp_path / "records.jsonl"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(DataError, match=told):
        read_run(tmp_path)


def test_a_summary_of_wrong_types_is_refused(tmp_path: Path) -> None:
    write_run(run_of(["0.5", "1.0"]), tmp_path)
    file = tmp_path / "summary.json"
    file.write_text(file.read_text().replace('"scale": 1.0', '"scale": "much"'))
    with pytest.raises(DataError, match=r"summary\.json") as raised:
        read_run(tmp_path)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == (
        "scorers.0.scale",
        "much",
        "a finite number",
    )


def test_a_folder_without_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no ledger either
    with pytest.raises(ConfigError, match=r"summary\.json is"):
        read_run(tmp_path)
    with pytest.raises(ConfigError, match="no results folder"):
        read_run(tmp_path / "nowhere")
    write_run(run_of(["0.5"]), tmp_path)
    (tmp_path / "records.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"records\.jsonl is"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("started", "soon", "started must be a time, such as 2026-01-31T12:00:00.00:00, not 'soon'"),
        ("seconds", -1, "seconds, resumed and the dataset's samples must be 0 or more"),
        ("resumed", "2", "resumed must be a whole number, not '2'"),
    ],
)
def test_a_summary_with_a_wrong_value_is_refused_by_field(tmp_path: Path, field: str, value: Any, told: str) -> None:
    file = write_run(run_of(["0.5"]), tmp_path) / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(DataError, match=rf"summary\.json .*: {told}"):
        read_run(tmp_path)


@pytest.mark.parametrize(("written_by", "told"), [("9.8.7", ", written by evalstone 9.8.7"), (None, "")])
def test_a_folder_of_another_version_says_who_wrote_it_and_what_is_read(
    tmp_path: Path, written_by: str | None, told: str
) -> None:
    write_run(run_of(["0.5"]), tmp_path)
    (tmp_path / "summary.json").write_text(json.dumps({"format": "run/2", "evalstone": written_by, "lines": []}))
    with pytest.raises(ConfigError) as raised:
        read_run(tmp_path)
    reads = f"evalstone {__version__} reads run/1; it is newer: {update_advice()}"
    assert str(raised.value) == f"{tmp_path / 'summary.json'} has the format run/2{told}; {reads}"
