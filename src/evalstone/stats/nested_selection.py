"""Nested cross-validation: the gain of choosing between candidates, on cases that had no part in the choice.

    gain = mean over cases of (goodness of the choice - goodness of the default)         in [-1, 1], higher is better
    goodness = whether the verdict is right ("accuracy"), or 1 - (probability - truth)² ("brier")

The choice is made anew without each of ten parts of the cases, and judged on that part. So the gain is that of the
whole procedure, with its candidates, thresholds and mappings, on new cases. Within a choice, options are compared on
cases that their own thresholds and mappings were not fitted to, in five inner parts. An option replaces the default
only if it is better there by one standard error or more; of several, the best is chosen. A case without a verdict
counts as wrong, and its goodness is 0.

The parts share most of the cases that they choose by, so that a lucky candidate wins in all of them. An interval that
takes the cases for independent would find gains where there are none, the more the more candidates there are. So the
limits are

    gain ± q · √(Σ (sum of the differences of a cluster)²) / n

with q from the same choices on the same differences with random signs, one for each case or cluster: the quantile of
gain / standard error if no candidate is better than the default, and at least that of the normal distribution. If a
choice other than the default changes no held-out case, the limits are ± the upper limit of a share of which none of the
clusters is seen. Only if every choice is the default, the gain is known to be 0.

Sources: Stone 1974, JRSS B 36(2); Varma and Simon 2006, BMC Bioinformatics 7; for the rule of one standard error,
Breiman et al. 1984; for random signs with many hypotheses, Westfall and Young 1993. bench/coverage_align.py simulates
how often a gain is claimed that isn't there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone.errors import DataError
from evalstone.stats._arrays import same_length
from evalstone.stats.calibration import MOST_CERTAIN, best_threshold, folds, isotonic, log_odds, scaled
from evalstone.stats.intervals import Interval, check_confidence

Objective: TypeAlias = Literal["accuracy", "brier"]
Mapped: TypeAlias = Literal["none", "threshold", "temperature", "both", "isotonic"]
Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

OUTER, INNER = 10, 5
FEWEST_CASES = 20
"""The fewest cases with which options are compared at all."""
BETTER_BY = 1.0
"""The standard errors by which an option must be better than the default."""
REPETITIONS, AT_A_TIME = 2000, 500
"""Repetitions with random signs, and how many of them at a time."""
NORMAL = NormalDist()
EDGE = 1e-6
"""The distance of a threshold from 0 and 1."""
_OF_ACCURACY: tuple[Mapped, ...] = ("none", "threshold", "isotonic")
_OF_BRIER: tuple[Mapped, ...] = ("none", "threshold", "temperature", "both", "isotonic")
_MORE: Mapping[Mapped, Mapped] = {"none": "temperature", "threshold": "both"}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a judge said of each case, asked in one way."""

    verdicts: Sequence[bool | None]
    """Whether each verdict is yes; None for a case without one."""
    probabilities: Sequence[float | None] = ()
    """The probability of a yes, None where it is unknown; empty if the judge gives none."""
    at: Mapping[float, Sequence[bool | None]] = field(default_factory=dict[float, Sequence[bool | None]])
    """The verdicts at other thresholds than 0.5, for cases with several labels; empty if `probabilities` say it."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was chosen."""

    candidate: int = 0
    """Its place; 0 is the default."""
    mapped: Mapped = "none"
    """How probabilities are mapped."""
    threshold: float = 0.5
    """The probability from which a verdict is yes."""
    temperature: float = 1.0
    """That of `stats.Scaled`."""
    corners: tuple[tuple[float, float], ...] = ()
    """Those of an isotonic mapping."""

    @property
    def is_default(self) -> bool:
        """Whether nothing is changed."""
        return self == Selection()


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What was said of each case."""

    verdicts: Sequence[bool | None]
    """Whether the verdict is yes; None for a case without one."""
    probabilities: Sequence[float] | None
    """The probability of a yes, 0.5 where it is unknown; None if the judge gives none."""
    unmapped: Sequence[float] | None
    """The probabilities before they are mapped, for measures of rank: mappings of different parts aren't comparable."""

    @classmethod
    def of(cls, verdicts: Floats, shares: Floats, unmapped: Floats, *, known: bool) -> HeldOut:
        """From arrays with NaN for what is unknown. known: whether the judge gives probabilities."""
        return cls(
            verdicts=[None if np.isnan(each) else each > 0.5 for each in verdicts.tolist()],
            probabilities=_certain(shares) if known else None,
            unmapped=_certain(unmapped) if known else None,
        )


@dataclass(frozen=True, kw_only=True)
class NestedSelection:
    """A choice, and the gain of choosing on held-out cases."""

    chosen: Selection
    """The choice on all cases."""
    gain: Interval
    """The goodness of the choice minus that of the default, on held-out cases."""
    edge: float
    """The standard errors from the gain to each limit."""
    wins: int
    """The held-out cases on which the choice is better."""
    losses: int
    """The held-out cases on which it is worse."""
    default: HeldOut
    """What the default says of the cases."""
    held_out: HeldOut
    """What choices say of the cases that they didn't see."""
    picks: Mapping[int, int]
    """How often each candidate was chosen without a part of the cases."""


class _Cases:
    """The candidates as arrays."""

    def __init__(self, candidates: Sequence[Candidate], truths: Sequence[bool], groups: Sequence[Hashable] | None):
        self.truths = np.asarray(truths, dtype=np.float64)
        self.groups = groups
        self.verdicts = [_floats(each.verdicts) for each in candidates]
        self.probabilities = [_floats(each.probabilities) if each.probabilities else None for each in candidates]
        self.at = [
            {threshold: _floats(verdicts) for threshold, verdicts in sorted(each.at.items())} for each in candidates
        ]

    def options(self, objective: Objective) -> list[tuple[int, Mapped]]:
        """The options, the default first, and simple ones before others."""
        kinds = _OF_ACCURACY if objective == "accuracy" else _OF_BRIER
        found: list[tuple[int, Mapped]] = []
        for kind in kinds:
            for place in range(len(self.verdicts)):
                known = self.probabilities[place] is not None or (kind == "threshold" and self.at[place])
                if kind == "none" or known:
                    found.append((place, kind))
        return found

    def fitted(self, place: int, kind: Mapped, train: Places) -> Selection:
        """An option with what is fitted to these cases."""
        if kind == "none":
            return Selection(candidate=place)
        if (every := self.probabilities[place]) is None:
            return Selection(candidate=place, mapped=kind, threshold=self._of_grid(place, train))
        known = train[~np.isnan(every[train])]
        shares, truths = every[known].tolist(), (self.truths[known] > 0.5).tolist()
        if len(set(truths)) < 2:
            return Selection(candidate=place)
        if kind == "isotonic":
            return Selection(candidate=place, mapped=kind, corners=isotonic(shares, truths).corners)
        threshold = 0.5
        if kind != "temperature":
            best = best_threshold(shares, truths, "accuracy")
            threshold = 0.5 if best is None else min(max(best[0], EDGE), 1 - EDGE)
        temperature = 1.0 if kind == "threshold" else scaled(shares, truths, threshold).temperature
        return Selection(candidate=place, mapped=kind, threshold=threshold, temperature=temperature)

    def _of_grid(self, place: int, train: Places) -> float:
        """The threshold with the most right verdicts; of several, the one nearest to 0.5."""
        rights = {0.5: self.verdicts[place], **self.at[place]}
        scores = {t: float(np.sum(verdicts[train] == self.truths[train])) for t, verdicts in rights.items()}
        return max(scores, key=lambda threshold: (scores[threshold], -abs(threshold - 0.5)))

    def applied(self, chosen: Selection, places: Places) -> tuple[Floats, Floats]:
        """The verdicts and the probabilities of a yes of a choice; NaN where there are none."""
        verdicts, every = self.verdicts[chosen.candidate][places], self.probabilities[chosen.candidate]
        if chosen.mapped == "none":
            return verdicts, verdicts if every is None else np.where(np.isnan(every[places]), verdicts, every[places])
        if every is None:
            at = {0.5: self.verdicts[chosen.candidate], **self.at[chosen.candidate]}[chosen.threshold][places]
            return at, at
        shares, known = every[places], ~np.isnan(every[places])
        if chosen.corners:
            levels, fitted = zip(*chosen.corners, strict=True)
            mapped = np.asarray(np.interp(shares, levels, fitted), dtype=np.float64)
            decided = mapped >= 0.5
        else:
            z = (_log_odds(shares) - log_odds(chosen.threshold)) / chosen.temperature
            mapped = (1 + np.tanh(z / 2)) / 2
            decided = shares >= chosen.threshold - 1e-9
        return np.where(known, decided, verdicts), np.where(known, mapped, verdicts)

    def goodness(self, chosen: Selection, places: Places, objective: Objective) -> Floats:
        """The goodness of a choice on cases."""
        verdicts, shares = self.applied(chosen, places)
        truths = self.truths[places]
        if objective == "accuracy":
            return (verdicts == truths).astype(np.float64)
        return np.where(np.isnan(shares), 0.0, 1 - (shares - truths) ** 2)

    def gains(self, places: Places, objective: Objective, seed: int) -> Floats | None:
        """For each option, how much better than the default it is on each case, fitted to other cases; None if these
        cases are too few to choose by."""
        truths = self.truths[places]
        if places.size < FEWEST_CASES or not (parts := self.parts(places, INNER, seed)) or np.all(truths == truths[0]):
            return None
        default = self.goodness(Selection(), places, objective)
        return np.array([self.held_out(each, places, parts, objective) - default for each in self.options(objective)])

    def select(self, places: Places, objective: Objective, seed: int, gains: Floats | None) -> Selection:
        """The best option on these cases, by its gains on them."""
        option = 0 if gains is None else int(_best(gains.sum(axis=1, keepdims=True), _spreads(gains))[0])
        place, kind = self.options(objective)[option]
        if objective == "accuracy" and option and (more := _MORE.get(kind)) and self.probabilities[place] is not None:
            parts = self.parts(places, INNER, seed)
            closer = self.held_out((place, more), places, parts, "brier")
            gain = closer - self.held_out((place, kind), places, parts, "brier")
            kind = more if gain.sum() > BETTER_BY * np.sqrt((gain**2).sum()) else kind
        return self.fitted(place, kind, places)

    def held_out(
        self, option: tuple[int, Mapped], places: Places, parts: Sequence[Places], objective: Objective
    ) -> Floats:
        """The goodness of an option on each case, fitted to the cases of the other parts."""
        if option[1] == "none":
            return self.goodness(Selection(candidate=option[0]), places, objective)
        found = np.zeros(places.size)
        for part in parts:
            others = np.delete(places, part)
            found[part] = self.goodness(self.fitted(*option, others), places[part], objective)
        return found

    def parts(self, places: Places, count: int, seed: int) -> list[Places]:
        """Parts of these cases, as their positions in `places`. Cases of one group are in one part."""
        truths = (self.truths[places] > 0.5).tolist()
        groups = None if self.groups is None else [self.groups[place] for place in places.tolist()]
        return [np.array(part, dtype=np.int64) for part in folds(truths, count, groups=groups, seed=seed)]


def nested_selection(
    candidates: Sequence[Candidate],
    truths: Sequence[bool],
    *,
    objective: Objective = "accuracy",
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> NestedSelection | None:
    """Choose a candidate and a mapping of its probabilities, and estimate the gain over the default.

    Args:
        candidates: The default first, then others, simple ones before others.
        truths: Whether each case is positive.
        objective: What is to be as high as possible: "accuracy", or the negative Brier score ("brier").
        groups: One cluster label per case; cases of one cluster are never on both sides of a split.
        confidence: The confidence level of the interval, in (0, 1).
        seed: Of the splits. The same arguments give the same result.

    Returns:
        The choice and its gain; None with fewer than two positives or two negatives.

    Raises:
        DataError: There is no candidate, or lengths differ.
        ConfigError: confidence is outside (0, 1).
    """
    if not candidates:
        raise DataError("need at least one candidate")
    for each in candidates:
        same_length(truths=truths, verdicts=each.verdicts, groups=groups, probabilities=each.probabilities or None)
        for verdicts in each.at.values():
            same_length(truths=truths, verdicts=verdicts)
    check_confidence(confidence)
    cases = _Cases(candidates, truths, groups)
    every = np.arange(len(truths))
    if min(sum(truths), len(truths) - sum(truths)) < 2 or not (outer := cases.parts(every, OUTER, seed)):
        return None
    options, n = cases.options(objective), len(truths)
    before, own = cases.applied(Selection(), every)
    base = cases.goodness(Selection(), every, objective)
    verdicts, shares, unmapped, goodness = (np.full(n, np.nan) for _ in range(4))
    choices: list[_Choice] = []
    picks, only_default = Counter[int](), True
    for part in outer:
        others = np.delete(every, part)
        gains = cases.gains(others, objective, seed + 1)
        chosen = cases.select(others, objective, seed + 1, gains)
        picks[chosen.candidate] += 1
        only_default = only_default and chosen.is_default
        verdicts[part], shares[part] = cases.applied(chosen, part)
        unmapped[part] = cases.applied(Selection(candidate=chosen.candidate), part)[1]
        goodness[part] = cases.goodness(chosen, part, objective)
        if gains is not None:
            held = [cases.goodness(cases.fitted(*each, others), part, objective) - base[part] for each in options]
            choices.append(_Choice(others, part, gains, np.array(held)))
    difference = goodness - base
    of_cluster = _clusters(groups, n)
    error = float(np.sqrt((np.bincount(of_cluster, difference) ** 2).sum())) / n
    edge = max(NORMAL.inv_cdf((1 + confidence) / 2), _edge(choices, of_cluster, (1 + confidence) / 2, seed))
    estimate, reach = float(difference.mean()), edge * error
    if not error and not only_default:
        reach = 1.0 - ((1.0 - confidence) / 2) ** (1 / (int(of_cluster.max()) + 1))
    known = any(each is not None for each in cases.probabilities)
    return NestedSelection(
        chosen=cases.select(every, objective, seed + 1, cases.gains(every, objective, seed + 1)),
        gain=Interval(
            estimate=estimate,
            low=max(-1.0, estimate - reach),
            high=min(1.0, estimate + reach),
            n=n,
            confidence=confidence,
            groups=None if groups is None else len(set(groups)),
            method="random signs",
        ),
        edge=edge,
        wins=int((difference > 1e-12).sum()),
        losses=int((difference < -1e-12).sum()),
        default=HeldOut.of(before, own, own, known=known),
        held_out=HeldOut.of(verdicts, shares, unmapped, known=known),
        picks=dict(sorted(picks.items())),
    )


@dataclass(frozen=True)
class _Choice:
    """What one of the outer parts is judged by."""

    others: Places
    """The cases that the choice is made by."""
    part: Places
    """The cases that it is judged on."""
    gains: Floats
    """By option, the gain on each of the others, fitted to others of them."""
    held: Floats
    """By option, the gain on each case of the part, fitted to the others."""


def _spreads(gains: Floats) -> Floats:
    """By option, the standard error of the sum of its gains, if their mean is 0."""
    return np.sqrt((gains**2).sum(axis=1))


def _best(sums: Floats, spreads: Floats) -> Places:
    """The option with the largest gain, of those that are better than the default by a standard error; 0 if none is.

    sums: of the gains, by option and repetition.
    """
    enough = sums > np.maximum(BETTER_BY * spreads, 1e-9)[:, None]
    return np.argmax(np.where(enough, sums, 0.0), axis=0)


def _edge(choices: Sequence[_Choice], of_cluster: Places, quantile: float, seed: int) -> float:
    """The quantile of gain / standard error with random signs: if no option is better than the default."""
    n, clusters = of_cluster.size, int(of_cluster.max()) + 1
    members = None if clusters == n else (np.arange(clusters)[:, None] == of_cluster).astype(np.float64)
    source = np.random.default_rng(seed)
    found: list[Floats] = []
    for _ in range(REPETITIONS // AT_A_TIME):
        signs = source.choice(np.array([-1.0, 1.0]), size=(clusters, AT_A_TIME))[of_cluster]
        drawn = np.zeros((n, AT_A_TIME))
        for each in choices:
            best = _best(each.gains @ signs[each.others], _spreads(each.gains))
            drawn[each.part] = each.held[best].T * signs[each.part]
        sums = drawn if members is None else members @ drawn
        spread = np.sqrt((sums**2).sum(axis=0))
        found.append(np.where(spread > 0, drawn.sum(axis=0) / np.where(spread > 0, spread, 1.0), 0.0))
    every = np.sort(np.concatenate(found))
    return float(every[min(every.size - 1, math.ceil(quantile * (every.size + 1)) - 1)])


def _clusters(groups: Sequence[Hashable] | None, n: int) -> Places:
    """The number of each case's cluster, from 0."""
    if groups is None:
        return np.arange(n)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups], dtype=np.int64)


def _certain(shares: Floats) -> list[float]:
    return np.where(np.isnan(shares), 0.5, shares).tolist()


def _log_odds(shares: Floats) -> Floats:
    clipped = np.clip(shares, MOST_CERTAIN, 1 - MOST_CERTAIN)
    return np.log(clipped / (1 - clipped))


def _floats(values: Sequence[float | bool | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
