"""Rubrics that a judge writes for the samples of a dataset, and that are then a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.datasets import Dataset
from evalstone.errors import ConfigError, DataError, OutcomeError
from evalstone.judge_quality.calibrate import JudgeOptions
from evalstone.judges.base import JudgeSpec
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.questions.base import Ask
from evalstone.questions.criteria import WriteCriteria
from evalstone.scorers.base import Scorer
from evalstone.scorers.custom.rubric import OWN, rubric_of, written_criteria
from evalstone.types import Failed, Sample, Score, Skipped


class _Written(Scorer):
    """The criteria that the judge writes for a sample, as evidence."""

    name = "write_rubrics"
    questions = (WriteCriteria,)

    async def score(
        self, ask: Ask, *, input: str, reference: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Score | Skipped:
        try:
            if rubric_of(metadata or {}):
                return Skipped("the sample has a rubric")
        except ConfigError as error:
            raise OutcomeError("the rubric in metadata: ", error) from None
        return Score(self.scale, evidence=await written_criteria(ask, input, reference))


@dataclass(frozen=True)
class WrittenRubrics:
    """A dataset with rubrics, and how many were written.

    written: the samples with a new rubric. kept: those that had one. without: those without an input. errors: why no
    rubric was written, by sample ID. stop_reason: why the run stopped early; empty if it didn't.
    """

    samples: tuple[Sample, ...]
    written: int
    kept: int
    without: int
    errors: Mapping[str, str]
    stop_reason: str = ""


async def write_rubrics(
    dataset: Dataset, *, judge: JudgeSpec, options: JudgeOptions, ledger: str | Path | None = DEFAULT_LEDGER
) -> WrittenRubrics:
    """Have a judge write the rubric of each sample that has none, from its input and reference. The ledger has its
    answers, so that a run of `rubric(generate=True)` with this judge uses the same criteria.

    Raises ConfigError if the judge can't write them, and DataError if every sample has a rubric.
    """
    if all(_has_rubric(sample) for sample in dataset):
        raise DataError(f"{dataset.name}: every sample has a rubric already")
    run = await options.run("rubrics", dataset, [_Written()], judge, ledger)
    rubrics = {
        record.sample_id: [to_jsonable(each) for each in cast("list[Any]", record.evidence)]
        for record in run.records
        if record.value is not None
    }
    failed = {record.sample_id: record.outcome.error for record in run.records if isinstance(record.outcome, Failed)}
    samples = tuple(
        replace(sample, metadata={**sample.metadata, OWN: rubrics[sample.id]}) if sample.id in rubrics else sample
        for sample in dataset
    )
    kept = sum(map(_has_rubric, samples)) - len(rubrics)
    without = len(samples) - kept - len(rubrics) - len(failed)
    return WrittenRubrics(samples, len(rubrics), kept, without, failed, run.stop_reason)


def _has_rubric(sample: Sample) -> bool:
    try:
        return bool(rubric_of(sample.metadata))
    except ConfigError:  # the run says so
        return False
