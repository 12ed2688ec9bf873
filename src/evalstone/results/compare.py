"""Comparison of runs over the same samples: differences, tests, and the samples that changed most.

Differences are taken sample by sample, the second run minus the first. p-values are adjusted over all scorers and pairs
of runs together, and those of the slices over all slices and scorers together.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.results.pairing import Paired, paired
from evalstone.results.run import Run
from evalstone.results.scores import grouped, scored
from evalstone.results.slicing import ABSENT, By, field_name, in_order, several, slice_keys
from evalstone.results.summary import ScorerInfo
from evalstone.stats.comparison import Comparison, ManyComparison, biggest_changes, compare_many, compare_pairs
from evalstone.stats.multiple_testing import benjamini_hochberg, holm

Adjustment: TypeAlias = Literal["holm", "bh"]
_ADJUSTED: Mapping[str, Callable[[Sequence[float]], tuple[float, ...]]] = {"holm": holm, "bh": benjamini_hochberg}
ADJUSTMENT_NAMES: Mapping[Adjustment, str] = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
COMPARISON_FORMAT = 1
MOST_CHANGES = 10


@dataclass(frozen=True)
class Change:
    """A sample whose score differs between two runs."""

    sample: str
    a: float
    b: float


@dataclass(frozen=True)
class Line:
    """One scorer in one pair of runs, over all samples or one slice.

    a, b: the names of the runs, a the baseline. field, key: the slice; empty for all samples. p_value: adjusted.
    one_sided: samples that only one of the runs has a score for. changes: the samples that changed most.
    """

    title: str
    info: ScorerInfo
    a: str
    b: str
    result: Comparison
    p_value: float
    one_sided: int = 0
    field: str = ""
    key: str = ""
    changes: tuple[Change, ...] = ()

    @property
    def sign(self) -> Literal["better", "worse", "unclear"]:
        """Whether b is better or worse than a at the level of the comparison, after adjustment."""
        if self.p_value > 1 - self.result.difference.confidence or self.result.improvement == 0:
            return "unclear"
        return "better" if self.result.improvement > 0 else "worse"


@dataclass(frozen=True)
class Compared:
    """Runs compared.

    runs: by letter ("A", "B" …), the first one the baseline. told: how they differ otherwise. names: what a reader
    calls each run, where it is called anything. friedman: by scorer, with three runs or more, Friedman's test that they
    do not differ at all, over the samples that all of them scored, and every pair of runs.
    """

    runs: Mapping[str, Run]
    lines: tuple[Line, ...]
    slices: tuple[Line, ...]
    told: tuple[str, ...]
    adjustment: Adjustment
    level: float
    names: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    friedman: Mapping[str, ManyComparison] = dataclasses.field(default_factory=dict[str, ManyComparison])

    def __getitem__(self, scorer: str) -> Line:
        """The first line of a scorer, by its title or name. Raises ConfigError for one that was not compared."""
        for line in self.lines:
            if scorer in (line.title, line.info.name, line.info.signature):
                return line
        known = ", ".join(dict.fromkeys(line.title for line in self.lines))
        raise ConfigError(f"the scorer {scorer!r} was not compared; compared: {known}")

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, as `evalstone compare --json` writes it."""
        return {
            "format": COMPARISON_FORMAT,
            "runs": {name: {**run.metadata(), "scorers": None} for name, run in self.runs.items()},
            "told": list(self.told),
            "adjustment": self.adjustment,
            "level": self.level,
            "scorers": [_line(line) for line in self.lines],
            "slices": [_line(line) for line in self.slices],
            "all_runs": {title: to_jsonable(found) for title, found in self.friedman.items()},
        }


def _line(line: Line) -> dict[str, Any]:
    info = line.info
    slice_ = {"field": line.field, "key": line.key} if line.field else None
    return {
        "name": info.name,
        "signature": info.signature,
        "scale": info.scale,
        "lower_is_better": info.lower_is_better,
        "a": line.a,
        "b": line.b,
        "slice": slice_,
        "sign": line.sign,
        "adjusted_p_value": line.p_value,
        "one_sided": line.one_sided,
        **to_jsonable(line.result),
        "gain": line.result.improvement,
        "changes": to_jsonable(line.changes),
    }


def compare(
    a: Run,
    b: Run,
    *others: Run,
    by: By | Iterable[By] | None = None,
    anyway: bool = False,
    adjustment: Adjustment = "holm",
    level: float = 0.95,
) -> Compared:
    """Compare runs over the same samples; the first is the baseline of all others.

    by: fields of the metadata, or functions of a sample, whose slices are compared as well. anyway: also where judges,
    signatures or cases differ, which is then in `told`. adjustment: "holm" (no wrong finding at all) or "bh" (some
    share of wrong ones among the findings). Raises ConfigError for runs that cannot be compared.
    """
    if adjustment not in _ADJUSTED:
        raise ConfigError(f"adjustment must be holm or bh, not {adjustment!r}")
    runs = dict(zip((_letter(n) for n in itertools.count()), (a, b, *others), strict=False))
    lines: list[Line] = []
    slices: list[Line] = []
    told: dict[str, None] = {}
    for name, run in itertools.islice(runs.items(), 1, None):
        pairing = paired(a, run, anyway=anyway)
        told.update(dict.fromkeys(f"A and {name}: {text}" for text in pairing.told))
        for one in pairing.scorers:
            lines += _compared(one, name, level)
            for way in several(by):
                slices += _sliced(one, name, level, field_name(way), slice_keys(a, way))
    adjust = _ADJUSTED[adjustment]
    made = Compared(runs, _adjusted(lines, adjust), _adjusted(slices, adjust), tuple(told), adjustment, level)
    return dataclasses.replace(made, friedman=_all_runs(runs, lines, level)) if others else made


def _all_runs(runs: Mapping[str, Run], lines: Sequence[Line], level: float) -> dict[str, ManyComparison]:
    """All runs at once, for those scorers that every run has."""
    found: dict[str, ManyComparison] = {}
    for title, of_scorer in itertools.groupby(sorted(lines, key=lambda line: line.title), key=lambda line: line.title):
        compared = list(of_scorer)
        if len(compared) != len(runs) - 1:
            continue
        info = compared[0].info
        values = {name: scored(run, run[title].info.signature) for name, run in runs.items()}
        common = [sample for sample in values["A"][0] if all(sample in scores for scores, _ in values.values())]
        columns = {name: [scores[sample] for sample in common] for name, (scores, _) in values.items()}
        named = {name: group for _, groups in reversed(values.values()) for name, group in groups.items()}
        groups = grouped(common, named)
        result = compare_many(
            columns, scale=info.scale, confidence=level, groups=groups, lower_is_better=info.lower_is_better
        )
        if result is not None:
            found[title] = result
    return found


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"R{number + 1}"


def _compared(one: Paired, name: str, level: float) -> list[Line]:
    info = one.info
    result = compare_pairs(
        one.a, one.b, scale=info.scale, confidence=level, groups=one.groups, lower_is_better=info.lower_is_better
    )
    if result is None:
        return []
    changed = biggest_changes(one.a, one.b, MOST_CHANGES)
    changes = tuple(Change(one.samples[place], one.a[place], one.b[place]) for place in changed)
    return [Line(one.title, info, "A", name, result, result.p_value, one.one_sided, changes=changes)]


def _sliced(one: Paired, name: str, level: float, field: str, keys: Mapping[str, str]) -> list[Line]:
    places: dict[str, list[int]] = {}
    for place, sample in enumerate(one.samples):
        places.setdefault(keys.get(sample, ABSENT), []).append(place)
    lines: list[Line] = []
    for key, chosen in sorted(places.items(), key=lambda item: in_order(item[0])):
        part = dataclasses.replace(
            one,
            samples=tuple(one.samples[place] for place in chosen),
            a=[one.a[place] for place in chosen],
            b=[one.b[place] for place in chosen],
            groups=None if one.groups is None else tuple(one.groups[place] for place in chosen),
            one_sided=0,
        )
        lines += [dataclasses.replace(line, field=field, key=key) for line in _compared(part, name, level)]
    return lines


def _adjusted(lines: Sequence[Line], adjust: Callable[[Sequence[float]], tuple[float, ...]]) -> tuple[Line, ...]:
    p_values = adjust([line.p_value for line in lines]) if lines else ()
    return tuple(dataclasses.replace(line, p_value=p) for line, p in zip(lines, p_values, strict=True))
