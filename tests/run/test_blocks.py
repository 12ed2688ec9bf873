"""Records of scorers that never wait are stored together; all others one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone import Record, Sample, Scorer, evaluate, read_run
from evalstone.errors import ConfigError
from evalstone.ledger import AsyncLedger
from evalstone.run import execute, runner
from evalstone.run.scoring import score_sample
from evalstone.run.session import Session
from tests.runs import Given

SAMPLES = [Sample(id=str(number), input="q", output="a", reference="a") for number in range(600)]


def nothing(_: object) -> None:
    """Nothing, with each record or sample."""


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records were stored together, each time."""
    kept, stored = AsyncLedger.keep_records, list[int]()

    async def keep_records(ledger: AsyncLedger, run: str, records: list[tuple[int, Record, str | None]]) -> None:
        stored.append(len(records))
        await kept(ledger, run, records)

    monkeypatch.setattr(AsyncLedger, "keep_records", keep_records)
    return stored


def test_code_scorers_store_their_records_together(
    sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "HOLD", 60.0)
    run = evaluate(SAMPLES, ["exact_match", "levenshtein"], ledger=tmp_path / "l.db")
    assert (len(run), sum(sizes)) == (1200, 1200)
    assert max(sizes) == runner.BLOCK
    assert len(sizes) < 50
    stored = read_run(run.id, ledger=tmp_path / "l.db")
    assert {(one.sample_id, one.signature, one.value) for one in stored} == {
        (o.sample_id, o.signature, o.value) for o in run
    }


def test_a_record_waits_no_longer_than_its_time(
    sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "HOLD", 0.0)
    evaluate(SAMPLES[:50], "exact_match", ledger=tmp_path / "l.db")
    assert sizes == [1] * 50


@pytest.mark.parametrize("options", [{"on_record": nothing}, {"on_sample": nothing}, {"budget": 1.0}])
def test_records_that_someone_waits_for_are_stored_one_by_one(
    options: dict[str, Any], sizes: list[int], tmp_path: Path
) -> None:
    evaluate(SAMPLES[:50], "exact_match", ledger=tmp_path / "l.db", **options)
    assert sizes == [1] * 50


def test_a_scorer_that_may_wait_stores_each_record(sizes: list[int], tmp_path: Path) -> None:
    numbers = [Sample(id=str(number), output="0.5", reference="1") for number in range(20)]
    evaluate(numbers, ["exact_match", Given()], ledger=tmp_path / "l.db")
    assert sizes == [1] * 40


def test_an_error_loses_no_record_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def score(scorer: Scorer, sample: Sample, session: Session, title: str) -> Record:
        if sample.id == "100":
            raise ConfigError("the disk is gone")
        return await score_sample(scorer, sample, session, title)

    monkeypatch.setattr(runner, "score_sample", score)
    with pytest.raises(ConfigError) as raised:
        evaluate(SAMPLES, "exact_match", ledger=tmp_path / "l.db", concurrency=1)
    assert len(raised.value.run) >= 100
    assert len(read_run("last", ledger=tmp_path / "l.db")) == len(raised.value.run)
