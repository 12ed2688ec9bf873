"""The samples of a saved run as a sequence."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone import ConfigError, DataError, Sample, evaluate, read_run, write_run
from evalstone.datasets import read_samples
from evalstone.datasets.read_samples import StoredSamples
from evalstone.datasets.stored import write_samples

SAMPLES = [Sample(id=f"q{number}", input=f"{number}", output="{}") for number in range(40)]


@pytest.mark.parametrize("in_memory", [1, 40, 1000])
def test_samples_of_a_file_are_a_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(read_samples, "_IN_MEMORY", in_memory)
    write_samples(tmp_path / "s.jsonl", SAMPLES)
    samples = StoredSamples(tmp_path / "s.jsonl")
    assert len(samples) == 40
    assert (samples[0], samples[-1]) == (SAMPLES[0], SAMPLES[-1])
    assert list(samples[3:6]) == SAMPLES[3:6]
    assert (list(samples), len(samples)) == (SAMPLES, 40)
    assert SAMPLES[7] in samples
    with pytest.raises(IndexError):
        samples[40]


def test_an_index_and_an_iteration_agree_after_the_file_has_changed(tmp_path: Path) -> None:
    write_samples(tmp_path / "s.jsonl", SAMPLES)
    samples = StoredSamples(tmp_path / "s.jsonl")
    assert samples[0] == SAMPLES[0]
    write_samples(tmp_path / "s.jsonl", SAMPLES[5:])
    assert list(samples) == SAMPLES
    assert list(StoredSamples(tmp_path / "s.jsonl")) == SAMPLES[5:]


def test_whether_there_are_samples_is_known_from_the_first(tmp_path: Path) -> None:
    write_samples(tmp_path / "s.jsonl", SAMPLES[:1])
    with (tmp_path / "s.jsonl").open("a") as file:
        file.write("broken\n")
    assert StoredSamples(tmp_path / "s.jsonl")
    with pytest.raises(DataError, match=r"s\.jsonl, line 2: not JSON"):
        StoredSamples(tmp_path / "s.jsonl")[0]
    (tmp_path / "s.jsonl").write_text("")
    assert not StoredSamples(tmp_path / "s.jsonl")


def test_the_length_of_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        len(StoredSamples(tmp_path / "gone.jsonl"))


def test_indexed_samples_stay_out_of_memory(tmp_path: Path) -> None:
    with (tmp_path / "s.jsonl").open("w") as file:
        file.writelines(f'{{"id": "q{number}", "output": "{"x" * 1000}"}}\n' for number in range(8_000))
    samples = StoredSamples(tmp_path / "s.jsonl")
    tracemalloc.start()
    try:
        assert (samples[-1].id, samples[1].id, len(samples)) == ("q7999", "q1", 8_000)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 6_000_000  # all of them take 11 MB


def bracketed(input: str) -> str:
    return f"[{input}]"


@pytest.mark.parametrize("target", [None, bracketed])
def test_samples_of_a_saved_run_are_a_sequence(tmp_path: Path, target: Callable[[str], str] | None) -> None:
    ledger = tmp_path / "ledger.db"
    trials = 1 if target is None else 2
    run = evaluate(SAMPLES, "json_valid", judge=None, target=target, trials=trials, ledger=ledger)
    for back in (read_run(write_run(run, tmp_path / "results")), read_run(run.id, ledger=ledger)):
        assert run.samples is not None
        assert back.samples is not None
        assert len(back.samples) == len(run.samples) == 40 * trials
        assert back.samples[3] == run.samples[3]
        assert list(back.samples[-2:]) == list(run.samples[-2:])
