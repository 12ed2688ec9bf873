"""The trained model: weights of stems and features, calibration curves, and the measured accuracy.

    z = intercept + Σ weight · (mean - standard deviation of the feature over the claims of a response)
    log odds that the passages support the whole response
        = (1 - s) · (slope · z + offset for the form of the texts)
        + s · (slope · word overlap of the whole response + offset for the form of the texts)         s = OVERLAP_SHARE

Short claims count less in mean and standard deviation. No weight is negative, so less support never raises a score.
Word overlap is less accurate than z on most data, but far worse on none; it corrects z for texts unlike the training
data. `make train-lexical` writes `model.json.gz`; docs/lexical-judge.md has the measurements.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from evalstone.errors import DataError
from evalstone.judges.lexical.features import IDEAL, NAMES
from evalstone.judges.lexical.tokens import STEMMER, Lexicon

FILE = "model.json.gz"
CARD_FILE = "measured.json"
FORMAT = 3
SHORT = 30
OVERLAP_SHARE = 0.2
# Log odds are halved for texts unlike the training data. Not fitted: there is no data to measure it.
KEPT_OUTSIDE = 0.5


@dataclass(frozen=True)
class Curve:
    """A logistic regression over a few numbers."""

    weights: tuple[float, ...]
    offset: float

    def at(self, *values: float) -> float:
        """The probability for these values."""
        return logistic(self.logit(*values))

    def logit(self, *values: float) -> float:
        """The log odds for these values."""
        return self.offset + math.fsum(w * value for w, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True)
class Model:
    """The fitted parameters."""

    lexicon: Lexicon
    weights: tuple[float, ...]
    """The weights in z, one per feature."""
    intercept: float
    response: Curve
    """P(a whole response is supported), from z, z if the passages are structured (else 0), whether they are structured,
    and whether the response is short."""
    overlap: Curve
    """The same, from the response's word overlap, whether the passages are structured, and whether it is short."""
    claim: Curve
    """P(one claim is supported), from its z, assuming that half of all claims are."""
    field_claim: Curve
    """The same for structured passages."""
    passage: Curve
    """P(a passage is relevant), from recall, BM25 and its best sentence."""
    statement: Curve
    """P(a statement is relevant), from the shares of the question in the statement and in the whole answer."""

    def z(self, claims: Sequence[Sequence[float]], sizes: Sequence[int] = (1,)) -> float:
        """The weighted sum of features for a response. claims: their features. sizes: their weights."""
        return self.intercept + math.fsum(w * v for w, v in zip(self.weights, pooled(claims, sizes), strict=True) if w)

    def response_logit(self, z: float | None, overlap: float, *, fields: bool, short: bool) -> float:
        """The log odds that the passages support a whole response. z: None for a response without claims."""
        by_overlap = self.overlap.logit(overlap, float(fields), float(short))
        if z is None:
            return KEPT_OUTSIDE * by_overlap
        by_claims = self.response.logit(z, z * fields, float(fields), float(short))
        return (1 - OVERLAP_SHARE) * by_claims + OVERLAP_SHARE * by_overlap

    def claim_support(self, z: float, *, fields: bool) -> float:
        """The probability that the passages support one claim, assuming that half of all claims are supported."""
        return (self.field_claim if fields else self.claim).at(z)


def pooled(claims: Sequence[Sequence[float]], sizes: Sequence[int]) -> list[float]:
    """For each feature, the mean over the claims minus the standard deviation, weighted by size.

    One unsupported claim therefore counts more than in the mean alone. A response without claims gets `IDEAL`.
    """
    if len(claims) < 2:
        return list(claims[0] if claims else IDEAL)
    total = sum(sizes)
    values: list[float] = []
    for column in zip(*claims, strict=True):
        mean = sum(map(operator.mul, column, sizes)) / total
        squares = sum([size * (value - mean) ** 2 for value, size in zip(column, sizes, strict=True)])
        values.append(mean - math.sqrt(squares / total))
    return values


def logistic(logit: float) -> float:
    """1 / (1 + exp(-logit)), without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def lexicon(documents: int, counts: Mapping[str, int]) -> Lexicon:
    """The weight of each stem: log((documents + 1) / (documents with it + 0.5))."""
    weights = {item: math.log((documents + 1) / (count + 0.5)) for item, count in counts.items()}
    return Lexicon(weights, math.log((documents + 1) / 0.5))


@functools.cache
def shipped() -> Model:
    """The model in this package, loaded once. Raises DataError if the file doesn't match this code."""
    packed = resources.files("evalstone.judges.lexical").joinpath(FILE).read_bytes()
    return from_data(json.loads(gzip.decompress(packed)))


def from_data(data: Mapping[str, Any]) -> Model:
    """A model from its file's content. Raises DataError for a different format, features or stemmer."""
    expected = {"format": FORMAT, "measures": list(NAMES), "stemmer": STEMMER}
    for name, value in expected.items():
        if data.get(name) != value:
            raise DataError(f"{FILE}: {name} should be {value}, not {data.get(name)}; run `make train-lexical`")
    curves = {name: Curve(tuple(curve["weights"]), curve["offset"]) for name, curve in data["curves"].items()}
    return Model(
        lexicon(data["documents"], data["counts"]),
        tuple(data["weights"]),
        data["intercept"],
        **{name: curves[name] for name in ("response", "overlap", "claim", "field_claim", "passage", "statement")},
    )


@functools.cache
def card() -> Mapping[str, Any]:
    """The measured accuracy of the shipped model, from `measured.json`."""
    return json.loads(resources.files("evalstone.judges.lexical").joinpath(CARD_FILE).read_text(encoding="utf-8"))
