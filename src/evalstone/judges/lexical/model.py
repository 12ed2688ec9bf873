"""The trained part of the judge: weights of stems and measures, curves to probabilities, and the measured accuracy.

    z = intercept + Σ weight · (mean - standard deviation of the measure over the claims of a response)
    P(the passages support the whole response) = 1 / (1 + exp(-(slope · z + offset for the form of the texts)))

No weight is below zero, so that no response gains by having less support. `model.json.gz` is written by
`make train-lexical`; docs/lexical-judge.md has what was measured.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from evalstone.errors import DataError
from evalstone.judges.lexical.features import IDEAL, NAMES
from evalstone.judges.lexical.tokens import STEMMER, Lexicon

FILE = "model.json.gz"
CARD_FILE = "measured.json"
FORMAT = 2
SHORT = 30


@dataclass(frozen=True)
class Curve:
    """A logistic curve over a few numbers."""

    weights: tuple[float, ...]
    offset: float

    def at(self, *values: float) -> float:
        """The probability at some values."""
        return logistic(self.logit(*values))

    def logit(self, *values: float) -> float:
        """The log odds at some values."""
        return self.offset + math.fsum(w * value for w, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True)
class Model:
    """The fitted parameters."""

    lexicon: Lexicon
    weights: tuple[float, ...]
    """The weights in z, one for each measure."""
    intercept: float
    response: Curve
    """P(a whole response is supported), over z, z where the passages are fields, whether they are, and whether the
    response is short."""
    claim: Curve
    """P(one claim is supported), over its z, if half of all claims are."""
    field_claim: Curve
    """The same where the passages are fields."""
    passage: Curve
    """P(a passage is relevant), over recall, BM25 and its best sentence."""
    statement: Curve
    """P(a statement is relevant), over the shares of the question in the statement and in the whole answer."""

    def z(self, claims: Sequence[Sequence[float]]) -> float:
        """The weighted sum for a response with these claims, each as its measures."""
        return self.intercept + math.fsum(w * v for w, v in zip(self.weights, pooled(claims), strict=True) if w)

    def response_logit(self, z: float, *, fields: bool, short: bool) -> float:
        """The log odds that the passages support a whole response."""
        return self.response.logit(z, z * fields, float(fields), float(short))

    def claim_support(self, z: float, *, fields: bool) -> float:
        """The probability that the passages support one claim, were half of all claims supported."""
        return (self.field_claim if fields else self.claim).at(z)


def pooled(claims: Sequence[Sequence[float]]) -> list[float]:
    """For each measure, its mean over the claims minus its standard deviation. One unsupported claim then counts more
    than in the mean alone. A response without claims lacks nothing."""
    if len(claims) < 2:
        return list(claims[0] if claims else IDEAL)
    count = len(claims)
    found: list[float] = []
    for column in zip(*claims, strict=True):
        mean = sum(column) / count
        found.append(mean - math.sqrt(sum((value - mean) ** 2 for value in column) / count))
    return found


def logistic(logit: float) -> float:
    """1 / (1 + exp(-logit)), without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def lexicon(documents: int, counts: Mapping[str, int]) -> Lexicon:
    """The weight of each stem: log((documents + 1) / (documents with it + 0.5))."""
    weights = {item: math.log((documents + 1) / (count + 0.5)) for item, count in counts.items()}
    return Lexicon(weights, math.log((documents + 1) / 0.5))


@functools.cache
def shipped() -> Model:
    """The model of this package, read once. Raises DataError when the file is not for this code."""
    packed = resources.files("evalstone.judges.lexical").joinpath(FILE).read_bytes()
    return from_data(json.loads(gzip.decompress(packed)))


def from_data(data: Mapping[str, Any]) -> Model:
    """A model from its file's content. Raises DataError for another format, other measures or another stemmer."""
    wanted = {"format": FORMAT, "measures": list(NAMES), "stemmer": STEMMER}
    for name, value in wanted.items():
        if data.get(name) != value:
            raise DataError(f"{FILE}: {name} should be {value}, not {data.get(name)}; run `make train-lexical`")
    curves = {name: Curve(tuple(given["weights"]), given["offset"]) for name, given in data["curves"].items()}
    return Model(
        lexicon(data["documents"], data["counts"]),
        tuple(data["weights"]),
        data["intercept"],
        **{name: curves[name] for name in ("response", "claim", "field_claim", "passage", "statement")},
    )


@functools.cache
def card() -> Mapping[str, Any]:
    """What was measured of the shipped model, as `measured.json` has it."""
    return json.loads(resources.files("evalstone.judges.lexical").joinpath(CARD_FILE).read_text(encoding="utf-8"))
