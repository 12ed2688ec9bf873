"""Calibrations: a judge's scores beside human labels, what was fitted to them, and the files they are stored in."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast

from evalstone._core.json import content_hash, to_jsonable
from evalstone.datasets.writing import write_jsonl
from evalstone.errors import ConfigError, DataError
from evalstone.stats.calibration import Recalibration, parse_recalibration

CALIBRATION_FORMAT = 1
FOLDER = "calibrations"
HOME = ".evalstone"
ROUNDING = 1e-9

Calibrator: TypeAlias = Literal["auto", "platt", "isotonic"]
"""The mapping from scores to probabilities: Platt's logistic curve, isotonic regression, or the better of the two."""


@dataclass(frozen=True)
class LabeledScore:
    """The judge's score and the human labels of one sample, on the scorer's scale."""

    sample: str
    """The sample's id."""
    value: float
    """The judge's score."""
    labels: tuple[float | None, ...]
    """One label per annotator, None where there is none; at least one is present."""

    @property
    def label(self) -> float:
        """The mean of the labels: the human score."""
        present = [label for label in self.labels if label is not None]
        return math.fsum(present) / len(present)

    def truth(self, label_threshold: float) -> bool | None:
        """Whether most labels are at or above the threshold; None for a tie."""
        votes = [label >= label_threshold for label in self.labels if label is not None]
        return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)


@dataclass(frozen=True)
class Threshold:
    """The score from which a sample counts as yes, fitted to labels."""

    value: float
    """The threshold, on the scorer's scale."""
    objective: str
    """The measure it maximizes, such as "balanced_accuracy"."""
    in_sample: float
    """The measure on the samples the threshold was fitted to; optimistic."""
    cross_validated: float | None
    """The measure when each fold uses the threshold of the other folds; None with too few labels."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """One judge and one scorer beside human labels."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}

    judge: str
    """The judge's identity."""
    scorer: str
    """The scorer's signature."""
    name: str
    """The scorer's name."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""
    default_threshold: float
    """The score from which a sample counts as yes by default."""
    label_threshold: float
    """The label from which the truth is yes, on the scorer's scale."""
    dataset: str
    """The name of the dataset."""
    version: str
    """The version of the dataset."""
    pairs: tuple[LabeledScore, ...]
    """The labeled samples with a score."""
    skipped: int = 0
    """Labeled samples that were skipped."""
    failed: int = 0
    """Labeled samples that failed."""
    stop_reason: str = ""
    """Why the run stopped early; "" when it completed."""
    columns: tuple[str, ...] = ()
    """The columns of labels."""
    words: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each word among the labels was read as, in [0, 1]."""
    threshold: Threshold | None = None
    """The fitted threshold; None when the labels have only one truth."""
    recalibration: Recalibration | None = None
    """The fitted mapping from score / scale to the probability of yes; None when the labels have only one truth."""
    created: str = ""
    """When, in UTC (ISO 8601)."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise DataError(f"scale: must be above 0, not {self.scale}")
        if len({len(pair.labels) for pair in self.pairs}) != 1:
            raise DataError("pairs: at least one is needed, each with one label per column")
        for pair in self.pairs:
            present = [label for label in pair.labels if label is not None]
            if not present:
                raise DataError(f"sample {pair.sample!r} has no label")
            for number in (pair.value, *present):
                if not -ROUNDING <= number <= self.scale + ROUNDING:
                    raise DataError(f"sample {pair.sample!r}: {number} is not in [0, {self.scale:g}]")
        if self.recalibration is not None:
            parse_recalibration(self.recalibration.to_dict())

    @functools.cached_property
    def decided(self) -> tuple[tuple[float, bool], ...]:
        """Score / scale and truth of the samples whose annotators are not tied."""
        truths = ((pair.value / self.scale, pair.truth(self.label_threshold)) for pair in self.pairs)
        return tuple((value, truth) for value, truth in truths if truth is not None)

    @property
    def undecided(self) -> int:
        """Samples whose annotators are tied."""
        return len(self.pairs) - len(self.decided)

    def probability(self, value: float) -> float | None:
        """The probability that people say yes, for a score in [0, scale]; None when no mapping was fitted."""
        return None if self.recalibration is None else self.recalibration(value / self.scale)

    def to_dict(self) -> dict[str, Any]:
        """The calibration with its measures as plain data; `from_dict` reads it back."""
        from evalstone.results.calibration_measures import measure  # noqa: PLC0415 - numpy

        values = {item.name: to_jsonable(getattr(self, item.name)) for item in dataclasses.fields(self)}
        recalibration = None if self.recalibration is None else self.recalibration.to_dict()
        return {
            "format": CALIBRATION_FORMAT,
            **values,
            "recalibration": recalibration,
            "undecided": self.undecided,
            "measures": to_jsonable(measure(self)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """A calibration from its plain data; its measures are not read.

        Raises:
            DataError: the data has another format, or a value does not fit its field.
        """
        from evalstone._core.validation import read_json  # noqa: PLC0415 - pydantic

        if data.get("format") != CALIBRATION_FORMAT:
            raise DataError(f"calibration format {data.get('format')!r} is not {CALIBRATION_FORMAT}")
        return read_json(cls, json.dumps(data))


def calibrations_folder(ledger: str | Path) -> Path:
    """The folder of calibrations that belongs to a ledger: `calibrations` beside its file.

    For a ledger on a server it is `.evalstone/calibrations` in the current folder. An existing folder is itself.
    """
    text = str(ledger).removeprefix("sqlite:///")
    if "://" in text:
        return Path(HOME) / FOLDER
    path = Path(text)
    return path if path.is_dir() else path.parent / FOLDER


def calibration_file(judge: str, scorer: str, folder: Path) -> Path:
    """The file of a judge's identity and a scorer's signature in a folder of calibrations."""
    return folder / f"{content_hash(judge)[:12]}-{content_hash(scorer)[:12]}.json"


def save_calibration(calibration: Calibration, ledger: str | Path) -> Path:
    """Store a calibration beside the ledger, replacing one of the same judge and scorer, and return the file.

    Raises:
        ConfigError: the file cannot be written.
    """
    folder = calibrations_folder(ledger)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"calibrations cannot be written to {folder}: {error.strerror or error}") from None
    file = calibration_file(calibration.judge, calibration.scorer, folder)
    write_jsonl(file, [calibration.to_dict()])
    return file


def calibration_for(judge: str, scorer: str, ledger: str | Path) -> Calibration | None:
    """The stored calibration of a judge (its identity) with a scorer (its signature), or None.

    Args:
        judge: the judge's identity.
        scorer: the scorer's signature.
        ledger: a ledger's path or URL, or a folder of calibrations.

    Raises:
        DataError: the file cannot be read as a calibration.
    """
    file = calibration_file(judge, scorer, calibrations_folder(ledger))
    if not file.is_file():
        return None
    stored = _read(file)
    return stored if (stored.judge, stored.scorer) == (judge, scorer) else None


def list_calibrations(ledger: str | Path) -> tuple[Calibration, ...]:
    """All calibrations stored beside a ledger, or in a folder, by judge and scorer.

    Raises:
        DataError: a file cannot be read as a calibration.
    """
    folder = calibrations_folder(ledger)
    stored = [_read(file) for file in folder.glob("*-*.json")] if folder.is_dir() else []
    return tuple(sorted(stored, key=lambda calibration: (calibration.judge, calibration.scorer)))


def _read(file: Path) -> Calibration:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise DataError(f"it must hold an object, not {type(data).__name__}")
        return Calibration.from_dict(cast("dict[str, Any]", data))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, DataError) as error:
        raise DataError(f"{file} is not a calibration: {error}") from None
