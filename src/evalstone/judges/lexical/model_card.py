"""What was measured of the lexical judge, as data. `measured.json` is written by `make train-lexical`."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from evalstone.errors import DataError

FILE = "measured.json"


@dataclass(frozen=True)
class Figures:
    """Over the responses of some data sets, the score being the probability that the passages support a response.

    auroc: in [0, 1], the chance that a supported response has a higher score than one that is not. balanced_accuracy,
    f1: in [0, 1], at a limit of 0.5; f1 of "not supported". calibration_error: ECE over ten bins, in [0, 1], lower is
    better.
    """

    auroc: float
    balanced_accuracy: float
    f1: float
    calibration_error: float


@dataclass(frozen=True)
class DataSetFigures:
    """One data set: its responses, how many of them are not supported, and its sources.

    by_source: trained on other sources of all data sets. left_out: trained on other data sets only. auroc_interval: the
    95 % interval of the former's AUROC. word_overlap_auroc: what the share of words that stand in the context reaches.
    """

    name: str
    rows: int
    positive: int
    sources: int
    by_source: Figures
    left_out: Figures
    auroc_interval: tuple[float, float]
    word_overlap_auroc: float


@dataclass(frozen=True)
class Card:
    """What is known of the judge's accuracy.

    model: the first 16 hexadecimal digits of the model file's SHA-256. pooled: over the data sets together, trained on
    other sources.
    """

    judge: str
    model: str
    data_sets: tuple[DataSetFigures, ...]
    pooled: Mapping[str, Figures]


@functools.cache
def card() -> Card:
    """The figures of the shipped model. Raises DataError when the file is not one of figures."""
    data = json.loads(resources.files("evalstone.judges.lexical").joinpath(FILE).read_text(encoding="utf-8"))
    try:
        sets = tuple(_data_set(name, given) for name, given in data["data_sets"].items())
        pooled = {name: _figures(given) for name, given in data["pooled"].items()}
        return Card(data["judge"], data["model"], sets, pooled)
    except KeyError as error:
        raise DataError(f"{FILE}: {error} is missing; run `make train-lexical`") from None


def _data_set(name: str, given: Mapping[str, Any]) -> DataSetFigures:
    low, high = given["auroc_interval"]
    return DataSetFigures(
        name=name,
        rows=given["rows"],
        positive=given["positive"],
        sources=given["sources"],
        by_source=_figures(given),
        left_out=_figures(given["left_out"]),
        auroc_interval=(low, high),
        word_overlap_auroc=given["word_overlap_auroc"],
    )


def _figures(given: Mapping[str, float]) -> Figures:
    return Figures(given["auroc"], given["balanced_accuracy"], given["f1"], given["calibration_error"])
