"""Calibrating a judge: what it says of labelled samples, beside what people say of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalstone._core import sync
from evalstone.api import DEFAULT_LEDGER
from evalstone.errors import ConfigError, DataError, RunAborted
from evalstone.judge_quality.evaluating import evaluated
from evalstone.judge_quality.settings import ASKING, LABELLING, Asking, Labelling
from evalstone.results.calibration import Calibration, LabelledScore, keep
from evalstone.results.calibration.labels import Labelled, read_labels
from evalstone.results.calibration.wording import LabelReader
from evalstone.results.run import Run
from evalstone.scorers import Scorer, parse_scorers


async def acalibrate(
    labels: Any,
    scorer: Any = "faithfulness",
    *,
    data: Any = None,
    judge: Any = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    labelling: Labelling = LABELLING,
    asking: Asking = ASKING,
) -> Calibration:
    """Compare a judge with human labels, and keep what was learned beside the ledger.

    labels: samples with one or more columns of labels (anything that `load` reads); or, with `data`, ids and labels of
    samples that are there: a path, a list of objects, or a mapping from id to label. A label is a number in the
    scorer's range, or a word such as yes, no, supported, unsupported. scorer: one scorer, as for `evaluate`. judge,
    ledger: as for `evaluate`; ledger=None keeps nothing, the calibration included, and no calibration is kept of a run
    that ended early. Samples without a label are not judged. Raises DataError for labels that cannot be read, and when
    no labelled sample was scored; ConfigError for whatever else the caller can mend.
    """
    from evalstone.results.calibration.learning import check, learned  # noqa: PLC0415 - import evalstone is to be quick

    chosen = _one(parse_scorers(scorer))
    check(labelling.maximise, labelling.method)
    cut = _cut(labelling, chosen.scale)
    reader = LabelReader(chosen.scale, chosen.lower_is_better, labelling.positive, labelling.label_range)
    found = read_labels(labels, reader, data=data, columns=labelling.columns, mapping=asking.mapping)
    run = await evaluated(found.dataset, [chosen], judge, ledger, asking)
    made = _calibration(run, chosen, found, cut)
    made = learned(made, maximise=labelling.maximise, method=labelling.method)
    if ledger is not None and run.complete:
        keep(made, ledger)
    return made


def usual_threshold(scorer: Scorer) -> float:
    """From which score on a sample counts as yes by itself: the scorer's own threshold, else half the scale."""
    return getattr(scorer, "threshold", 0.5) * scorer.scale


def _one(scorers: tuple[Scorer, ...]) -> Scorer:
    if len(scorers) != 1:
        raise ConfigError(f"labels are of one thing: name one scorer, not {len(scorers)}")
    return scorers[0]


def _cut(labelling: Labelling, scale: float) -> float:
    """From which label on the truth is yes. Raises ConfigError for a cut outside the scale."""
    cut = scale / 2 if labelling.cut is None else labelling.cut
    if isinstance(cut, bool) or not math.isfinite(cut) or not 0 < cut <= scale:
        raise ConfigError(f"the cut must be above 0 and at most {scale:g}, not {cut}")
    return cut


def _calibration(run: Run, scorer: Scorer, found: Labelled, cut: float) -> Calibration:
    line = run.summary[0]
    pairs = tuple(
        LabelledScore(record.sample, record.value, found.labels[record.sample])
        for record in run.records
        if record.value is not None
    )
    if not pairs:
        if run.stop_reason:
            raise RunAborted(f"no labelled sample was scored before the run ended: {run.stop_reason}")
        told = f"no labelled sample was scored: {line.skipped} skipped, {line.failed} failed"
        raise DataError(told + (f"; {line.reasons[0][0]}" if line.reasons else ""))
    return Calibration(
        judge=run.judge,
        scorer=scorer.signature,
        name=scorer.name,
        scale=scorer.scale,
        lower_is_better=scorer.lower_is_better,
        usual=usual_threshold(scorer),
        cut=cut,
        dataset=run.dataset_name,
        version=run.version,
        pairs=pairs,
        skipped=line.skipped,
        failed=line.failed,
        ended=run.stop_reason,
        columns=found.columns,
        words=found.words,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


calibrate = sync.blocking(acalibrate)
