"""Rubrics that a judge writes for the samples of a dataset, and that are then a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from evalstone._core import sync
from evalstone._core.json import to_jsonable
from evalstone.datasets import Samples
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.loading import load_for_scoring
from evalstone.datasets.reading import Reading
from evalstone.errors import DataError
from evalstone.judge_quality.calibrate import JudgeOptions
from evalstone.judges.base import JudgeSpec
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.questions.base import Ask
from evalstone.questions.criteria import WriteCriteria
from evalstone.run.budget import StopSignal
from evalstone.run.case_check import acheck_cases
from evalstone.scorers.base import Scorer
from evalstone.scorers.custom.rubric import Rubric, written_criteria
from evalstone.types import OWN_RUBRIC, Failed, Sample, Score, Skipped, rubric_of


class _Written(Scorer):
    """The criteria that the judge writes for a sample, as evidence."""

    name = "write_rubrics"
    questions = (WriteCriteria,)

    async def score(
        self, ask: Ask, *, input: str, reference: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Score | Skipped:
        if rubric_of(metadata or {}):
            return Skipped("the sample has a rubric")
        return Score(self.scale, evidence=await written_criteria(ask, input, reference))


@dataclass(frozen=True, kw_only=True)
class WrittenRubrics:
    """A dataset with rubrics, and how many were written."""

    samples: tuple[Sample, ...]
    """All samples, with their rubrics as `rubrics` in the metadata."""
    written: int
    """The number of samples with a new rubric."""
    kept: int
    """The number of samples that had one."""
    without: int
    """The number of samples without an input, which get none."""
    errors: Mapping[str, str]
    """Why no rubric was written, by sample ID."""
    stop_reason: str = ""
    """Why the run stopped early; "" if it didn't."""


async def awrite_rubrics(
    data: Samples,
    *,
    judge: JudgeSpec,
    map: ColumnMapping | None = None,
    budget: float | None = None,
    cache: bool = True,
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool = False,
    stop: StopSignal | None = None,
) -> WrittenRubrics:
    """Have a judge write the rubric of each sample that has none, from its input and reference.

    It sees no answer. The ledger has what it wrote, so that a run of `rubric(generate=True)` with this judge uses the
    same criteria. Save the samples with `write_jsonl(path, result.samples, redact=False)`, and review them.

    Args:
        data: As for `evaluate`.
        judge: As for `evaluate`; it must write text.
        map: Sample field to column.
        budget: The highest cost in US dollars.
        cache: Whether to use cached answers from the ledger.
        concurrency: The maximum number of concurrent judge calls.
        ledger: As for `evaluate`.
        progress: Whether to show a progress bar.
        stop: A signal that stops the run.

    Raises:
        ConfigError: An argument is invalid, or the judge can't write rubrics.
        DataError: Every sample has a rubric, or a rubric in the data is invalid.
    """
    options = JudgeOptions(concurrency=concurrency, cache=cache, budget=budget, map=map, progress=progress, stop=stop)
    dataset = load_for_scoring(data, map=map)
    await acheck_cases(dataset, [Rubric()], data, Reading(map=map))
    had = [bool(rubric_of(sample.metadata)) for sample in dataset]
    if all(had):
        raise DataError(f"{dataset.name}: every sample has a rubric already")
    run = await options.run("rubrics", dataset, [_Written()], judge, ledger)
    rubrics = {
        record.sample_id: [to_jsonable(each) for each in cast("list[Any]", record.evidence)]
        for record in run.records
        if record.value is not None
    }
    failed = {record.sample_id: record.outcome.error for record in run.records if isinstance(record.outcome, Failed)}
    samples = tuple(
        replace(sample, metadata={**sample.metadata, OWN_RUBRIC: rubrics[sample.id]})
        if sample.id in rubrics
        else sample
        for sample in dataset
    )
    return WrittenRubrics(
        samples=samples,
        written=len(rubrics),
        kept=sum(had),
        without=len(samples) - sum(had) - len(rubrics) - len(failed),
        errors=failed,
        stop_reason=run.stop_reason,
    )


write_rubrics = sync.blocking(awrite_rubrics)
