"""Fitting the lexical judge: logistic regression without negative weights, curves to probabilities, cross-validation.

Everything here gives the same numbers each time: no random number is drawn, and folds hang on a hash of the source.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lexical_data import DATA_SETS, RAGTRUTH, Numbers, Row
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b

from evalstone.judges.lexical.classifier import CONFLICTED
from evalstone.judges.lexical.model import KEPT_OUTSIDE, OVERLAP_SHARE

FOLDS = 5
RIDGE = 0.2
CURVE_RIDGE = 0.0005
# In the curve these count for a quarter: the judge sees next to nothing in them, so that their share of supported
# responses would be all that they teach it.
UNSEEN = {"summedits": 0.25, "storysumm": 0.25}

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """The measured rows as columns."""

    measures: Numbers
    supported: Flags
    overlap: Numbers
    plain_overlaps: Numbers
    fields: Flags
    short: Flags
    silent: Flags
    refusal: Flags
    conflict: Flags
    sets: NDArray[np.str_]
    folds: NDArray[np.int64]
    groups: NDArray[np.str_]

    def of(self, *names: str) -> Flags:
        """Which rows are of some datasets."""
        return np.isin(self.sets, names)

    def where(self, rows: Flags) -> Table:
        """Some of the rows."""
        return Table(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclass(frozen=True)
class Fit:
    """z = intercept + weights · measures."""

    weights: Numbers
    intercept: float

    def z(self, measures: Numbers) -> Numbers:
        """The weighted sums of some rows."""
        return measures @ self.weights + self.intercept


def table(rows: Sequence[Row]) -> Table:
    """Rows as columns."""
    return Table(
        np.array([row.pooled for row in rows], dtype=float),
        np.array([row.supported for row in rows]),
        np.array([row.overlap for row in rows]),
        np.array([row.plain_overlaps for row in rows]),
        np.array([row.fields for row in rows]),
        np.array([row.short for row in rows]),
        np.array([not row.claims for row in rows]),
        np.array([row.refusal for row in rows]),
        np.array([row.conflict for row in rows]),
        np.array([row.data_set for row in rows]),
        np.array([fold_of(row.group) for row in rows]),
        np.array([row.group for row in rows]),
    )


def fold_of(group: str) -> int:
    """The fold of a source, the same for all responses to it."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") % FOLDS


def balanced(sets: NDArray[np.str_], supported: Flags, within: Flags) -> Numbers:
    """Weights by which each dataset counts the same, and so do the supported and the other rows of each."""
    weights = np.zeros(len(sets))
    for name in sorted(set(sets[within].tolist())):
        for value in (False, True):
            rows = within & (sets == name) & (supported == value)
            if rows.any():
                weights[rows] = 0.5 / rows.sum()
    return weights


def natural(sets: NDArray[np.str_], within: Flags) -> Numbers:
    """Weights by which each dataset counts the same, but those of UNSEEN, with its own share of supported rows."""
    weights = np.zeros(len(sets))
    for name in sorted(set(sets[within].tolist())):
        rows = within & (sets == name)
        weights[rows] = UNSEEN.get(name, 1.0) / rows.sum()
    return weights


def logistic_fit(
    measures: Numbers, supported: Flags, weights: Numbers, *, ridge: float, signs: Sequence[bool]
) -> tuple[Numbers, float]:
    """Logistic regression on standardised columns. signs: which columns may not have a weight below zero."""
    used = weights > 0
    kept, signed, shares = measures[used], np.where(supported[used], 1.0, -1.0), weights[used] / weights[used].sum()
    mean = shares @ kept
    spread = np.sqrt(shares @ (kept - mean) ** 2) + 1e-6
    scaled = (kept - mean) / spread

    def loss(point: Numbers) -> tuple[float, Numbers]:
        margin = signed * (scaled @ point[:-1] + point[-1])
        slope = -signed * shares / (1 + np.exp(margin))
        value = float(shares @ np.logaddexp(0, -margin) + ridge / 2 * point[:-1] @ point[:-1])
        return value, np.append(scaled.T @ slope + ridge * point[:-1], slope.sum())

    bounds = [(0.0 if sign else None, None) for sign in signs] + [(None, None)]
    start: Numbers = np.zeros(len(signs) + 1)
    point, _, _ = fmin_l_bfgs_b(loss, start, bounds=bounds, maxiter=2000, factr=100, pgtol=1e-8)
    found = point[:-1] / spread
    return found, float(point[-1] - found @ mean)


def fit(rows: Table, within: Flags) -> Fit:
    """The weights of the measures, on some rows."""
    weights = balanced(rows.sets, rows.supported, within)
    signs = [True] * rows.measures.shape[1]
    return Fit(*logistic_fit(rows.measures, rows.supported, weights, ridge=RIDGE, signs=signs))


def curve_columns(z: Numbers, fields: Flags, short: Flags) -> Numbers:
    """What the curve of a response is over."""
    return np.column_stack([z, z * fields, fields, short]).astype(float)


def out_of_fold(rows: Table, within: Flags) -> Numbers:
    """z of each row by a fit on the other folds; 0 outside `within`."""
    z = np.zeros(len(rows.sets))
    for fold in range(FOLDS):
        there = within & (rows.folds == fold)
        if there.any():
            z[there] = fit(rows, within & (rows.folds != fold)).z(rows.measures[there])
    return z


def response_curve(rows: Table, within: Flags, z: Numbers) -> tuple[Numbers, float]:
    """From z to the probability of support, on out-of-fold z of the responses that make a claim."""
    columns = curve_columns(z, rows.fields, rows.short)
    weights = natural(rows.sets, within & ~rows.silent)
    return logistic_fit(columns, rows.supported, weights, ridge=CURVE_RIDGE, signs=[True, False, False, False])


def overlap_curve(rows: Table, within: Flags) -> tuple[Numbers, float]:
    """The same from word overlap."""
    weights = natural(rows.sets, within & ~rows.silent)
    signs = [True, False, False]
    return logistic_fit(overlap_columns(rows), rows.supported, weights, ridge=CURVE_RIDGE, signs=signs)


def overlap_columns(rows: Table) -> Numbers:
    """What the curve of word overlap is over."""
    return np.column_stack([rows.overlap, rows.fields, rows.short]).astype(float)


def predicted(rows: Table, train: Flags, test: Table) -> Numbers:
    """P(supported) of the test rows, by weights and curves that have seen the train rows alone."""
    slopes, offset = response_curve(rows, train, out_of_fold(rows, train))
    overlap_slopes, overlap_offset = overlap_curve(rows, train)
    z = fit(rows, train).z(test.measures)
    by_claims = curve_columns(z, test.fields, test.short) @ slopes + offset
    by_overlap = overlap_columns(test) @ overlap_slopes + overlap_offset
    logit = (1 - OVERLAP_SHARE) * by_claims + OVERLAP_SHARE * by_overlap
    logit = np.where(test.silent, np.where(test.refusal, 0, KEPT_OUTSIDE * by_overlap), logit)
    found = 1 / (1 + np.exp(-logit))
    return np.where(test.conflict, np.minimum(found, CONFLICTED), found)


def by_source(rows: Table) -> Numbers:
    """P(supported) of each row by what was fitted on other sources."""
    found = np.zeros(len(rows.sets))
    for fold in range(FOLDS):
        test = rows.folds == fold
        found[test] = predicted(rows, ~test, rows.where(test))
    return found


def left_out(rows: Table) -> Numbers:
    """P(supported) of each row by what was fitted on other datasets; RAGTruth's three are left out together."""
    found = np.zeros(len(rows.sets))
    for names in (RAGTRUTH, *((name,) for name in DATA_SETS if name not in RAGTRUTH)):
        test = rows.of(*names)
        found[test] = predicted(rows, ~test, rows.where(test))
    return found
