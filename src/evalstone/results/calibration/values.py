"""A judge beside human labels: the pairs that everything is computed from, and what was learned from them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import DataError
from evalstone.stats.calibration import Recalibration, parse_recalibration
from evalstone.stats.intervals import Interval

CALIBRATION_FORMAT = 1
Method: TypeAlias = Literal["auto", "platt", "isotonic"]


@dataclass(frozen=True)
class LabelledScore:
    """What the judge and what people said of one sample, on the scorer's scale.

    value: the judge's score. labels: one a column of labels; None where that annotator gave none. At least one did.
    """

    sample: str
    value: float
    labels: tuple[float | None, ...]

    @property
    def given(self) -> tuple[float, ...]:
        """The labels that were given."""
        return tuple(label for label in self.labels if label is not None)

    @property
    def label(self) -> float:
        """The mean of the labels: what a correction for the judge's errors takes as the human score."""
        return math.fsum(self.given) / len(self.given)

    def truth(self, cut: float) -> bool | None:
        """Whether most labels are at or above the cut; None where as many are above as below."""
        votes = [label >= cut for label in self.given]
        return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)


@dataclass(frozen=True)
class Threshold:
    """From which value on a score counts as yes, and how good that is.

    measure: the name of what it maximises. reached: that measure on the samples it was chosen on, which flatters.
    cross_validated: the same when each fold is judged by the threshold of the others; None with too few labels.
    """

    value: float
    measure: str
    reached: float
    cross_validated: float | None


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """One judge and one scorer beside human labels.

    judge: its identity. scorer: its signature. usual: the threshold that the scorer has by itself. cut: from which
    label on the truth is yes. pairs: the labelled samples that were scored. skipped, failed: those that were not.
    columns: the columns of labels. words: what each word among the labels was read as, in [0, 1]. threshold,
    recalibration: what was learned; None where the labels have only one truth. created: when, in UTC.
    """

    judge: str
    scorer: str
    name: str
    scale: float
    lower_is_better: bool
    usual: float
    cut: float
    dataset: str
    version: str
    pairs: tuple[LabelledScore, ...]
    skipped: int = 0
    failed: int = 0
    ended: str = ""
    columns: tuple[str, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict[str, float])
    threshold: Threshold | None = None
    recalibration: Recalibration | None = None
    created: str = ""

    @functools.cached_property
    def decided(self) -> tuple[tuple[float, bool], ...]:
        """Score and truth of the samples whose annotators are not evenly split, the score on the scale from 0 to 1."""
        found = ((pair.value / self.scale, pair.truth(self.cut)) for pair in self.pairs)
        return tuple((value, truth) for value, truth in found if truth is not None)

    @property
    def undecided(self) -> int:
        """Samples on which the annotators are evenly split."""
        return len(self.pairs) - len(self.decided)

    def probability(self, value: float) -> float | None:
        """The probability that people say yes, for a score in [0, scale]; None where nothing was learned."""
        return None if self.recalibration is None else self.recalibration(value / self.scale)

    def to_dict(self) -> dict[str, Any]:
        """The calibration as plain data; `from_dict` reads it back."""
        threshold = self.threshold
        return {
            "format": CALIBRATION_FORMAT,
            "judge": self.judge,
            "scorer": {
                "name": self.name,
                "signature": self.scorer,
                "scale": self.scale,
                "lower_is_better": self.lower_is_better,
                "threshold": self.usual,
            },
            "dataset": {"name": self.dataset, "version": self.version},
            "labels": {"columns": list(self.columns), "words": dict(self.words), "cut": self.cut},
            "counts": {
                "scored": len(self.pairs),
                "skipped": self.skipped,
                "failed": self.failed,
                "undecided": self.undecided,
            },
            "threshold": None if threshold is None else dict(vars(threshold)),
            "recalibration": None if self.recalibration is None else self.recalibration.to_dict(),
            "created": self.created,
            "ended": self.ended,
            "pairs": [{"sample": p.sample, "value": p.value, "labels": list(p.labels)} for p in self.pairs],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """A calibration from its plain data. Raises DataError for another format, or what is none: a score or label
        that is no finite number on the scale is not let through."""
        if data.get("format") != CALIBRATION_FORMAT:
            raise DataError(f"calibration format {data.get('format')!r} is not {CALIBRATION_FORMAT}")
        try:
            return cls._read(data)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"not a calibration ({error!r})") from None

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Calibration:
        scorer, dataset, labels = data["scorer"], data["dataset"], data["labels"]
        threshold, recalibration = data["threshold"], data["recalibration"]
        if (scale := _number(scorer["scale"])) <= 0:
            raise ValueError(f"a scale above 0 is wanted, not {scale}")
        pairs = tuple(_pair(item, scale) for item in data["pairs"])
        if len({len(pair.labels) for pair in pairs}) != 1:
            raise ValueError("pairs with one label a column each are wanted")
        return cls(
            judge=str(data["judge"]),
            scorer=str(scorer["signature"]),
            name=str(scorer["name"]),
            scale=scale,
            lower_is_better=bool(scorer["lower_is_better"]),
            usual=_number(scorer["threshold"]),
            cut=_number(labels["cut"]),
            dataset=str(dataset["name"]),
            version=str(dataset["version"]),
            pairs=pairs,
            skipped=int(data["counts"]["skipped"]),
            failed=int(data["counts"]["failed"]),
            ended=str(data["ended"]),
            columns=tuple(map(str, labels["columns"])),
            words={str(word): float(value) for word, value in labels["words"].items()},
            threshold=None if threshold is None else _threshold(threshold),
            recalibration=None if recalibration is None else parse_recalibration(recalibration),
            created=str(data["created"]),
        )


def _pair(item: Mapping[str, Any], scale: float) -> LabelledScore:
    given = cast("list[Any]", item["labels"])
    labels = tuple(None if label is None else _number(label, 0, scale) for label in given)
    if not any(label is not None for label in labels):
        raise ValueError(f"sample {item['sample']!r} has no label")
    return LabelledScore(str(item["sample"]), _number(item["value"], 0, scale), labels)


def _threshold(data: Mapping[str, Any]) -> Threshold:
    checked = data["cross_validated"]
    measure, reached = str(data["measure"]), _number(data["reached"])
    return Threshold(_number(data["value"]), measure, reached, None if checked is None else _number(checked))


def _number(value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in [low, high], rounding aside."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"a finite number is wanted, not {value!r}")
    if not low - 1e-9 <= value <= high + 1e-9:
        raise ValueError(f"a number in [{low:g}, {high:g}] is wanted, not {value!r}")
    return float(value)


def interval_as_data(found: Interval | None) -> dict[str, Any] | None:
    """An estimate with its interval as plain data."""
    if found is None:
        return None
    return {"value": found.mean, "low": found.low, "high": found.high, "n": found.n, "level": found.confidence}
