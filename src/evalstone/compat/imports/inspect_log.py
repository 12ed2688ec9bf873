"""A log of inspect while it is read: its header, and what inspect printed.

Printed numbers are means over samples, after those over the epochs of each. They are calculated in the same way here
and compared.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from evalstone._core.display import shortlist
from evalstone._core.guards import is_array, is_object
from evalstone._core.sizes import MOST_SCALE
from evalstone.compat.imports.inspect_scores import TOOL, metric_of
from evalstone.compat.imports.results import (
    About,
    Event,
    Metric,
    OfSystem,
    Printed,
    metric_name,
    number_in,
    object_in,
    objects_in,
    system_name,
    text_in,
)
from evalstone.types import note

MOST_VALUES = 100
"""The most values of a list that are metrics of their own."""
_MEANS = ("mean", "accuracy")
_SPREADS: Mapping[str, Literal["standard error", "deviation", "variance"]] = {
    "stderr": "standard error",
    "std": "deviation",
    "var": "variance",
}


@dataclass
class Folder:
    """What the logs of a task in a folder have in common."""

    systems: set[str] = field(default_factory=set[str])

    def system(self, spec: Mapping[str, Any]) -> str:
        """The name of a log's system."""
        identity = system_name(metric_name(spec.get("model"), "unnamed model"), metric_name(spec.get("solver"), ""))
        if identity in self.systems:
            identity = system_name(identity, text_in(spec, "created") or str(len(self.systems)))
        self.systems.add(identity)
        return identity


class _Tally:
    """The values of a metric by case, as inspect averages them."""

    def __init__(self) -> None:
        self.sums, self.counts, self.unscored = array("d"), array("l"), array("l")
        self.failed = 0
        """How many values are none, and were counted as 0."""

    def add(self, case: int, value: float | None) -> None:
        """Add a trial's value; None for one without a score, as one is that no scale can hold."""
        if (missing := case + 1 - len(self.sums)) > 0:
            for each in (self.sums, self.counts, self.unscored):
                each.extend([0] * missing)
        if value is None or abs(value) > MOST_SCALE:
            self.unscored[case] += 1
        else:
            self.sums[case] += value
            self.counts[case] += 1

    def means(self) -> list[float]:
        """The mean of each case that has a score."""
        return [total / n for total, n in zip(self.sums, self.counts, strict=True) if n]

    @property
    def pooled(self) -> float:
        """The mean of all trials that have a score."""
        return math.fsum(self.sums) / sum(self.counts)


@dataclass
class Log:
    """What is remembered of a log while it is read."""

    system: str
    header: Mapping[str, Any]
    orders: Mapping[Any, int]
    """The places of samples in the dataset, by ID."""
    keys: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """By scorer whose values are objects or lists, its keys or numbers."""
    tallies: dict[str, _Tally] = field(default_factory=dict[str, _Tally])
    cases: dict[str, int] = field(default_factory=dict[str, int])
    rows: int = 0
    completed: int = 0
    limits: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, folder: Folder, header: Mapping[str, Any]) -> Log:
        """The log with this header."""
        spec = object_in(header, "eval")
        ids = object_in(spec, "dataset").get("sample_ids")
        orders = {str(id): place for place, id in enumerate(ids)} if is_array(ids) else {}
        log = cls(folder.system(spec), header, orders)
        for score in printed_scores(header):
            scorer, name = text_in(score, "scorer"), text_in(score, "name")
            if scorer and name and name != scorer:
                log.keys.setdefault(scorer, {})[name] = None
        return log

    def learn(self, scorer: str, value: object) -> dict[str, Any] | None:
        """The values of a scorer by key, if it gives an object or a list; None for any other value."""
        if is_array(value) and len(value) <= MOST_VALUES:
            value = {str(place): each for place, each in enumerate(value)}
        if not is_object(value):
            return None
        self.keys.setdefault(scorer, {}).update(dict.fromkeys(value))
        return value

    def learn_all(self, summaries: object) -> None:
        """Learn from the summaries of samples which scorers give objects."""
        for summary in summaries if is_array(summaries) else ():
            for scorer, score in object_in(summary, "scores").items() if is_object(summary) else ():
                if is_object(score):
                    self.learn(scorer, score.get("value"))

    def count(self, *, completed: bool, limit: object) -> None:
        """Count a sample, and what ended it if that was a limit."""
        self.rows += 1
        self.completed += completed
        if limit:
            what = text_in(limit, "type") if is_object(limit) else str(limit)
            self.limits[what] = self.limits.get(what, 0) + 1

    def tally(self, metric: Metric) -> _Tally:
        """The values of a metric."""
        if (tally := self.tallies.get(metric.name)) is None:
            tally = self.tallies[metric.name] = _Tally()
        return tally

    def metrics(self, scorer: str) -> list[Metric]:
        """The metrics of a scorer, as far as they are known."""
        return [metric_of(scorer, key) for key in keys] if (keys := self.keys.get(scorer)) else [metric_of(scorer)]

    @property
    def scorers(self) -> list[str]:
        """The scorers that every sample should have."""
        named = [text_in(each, "scorer") or text_in(each, "name") for each in printed_scores(self.header)]
        named += [text_in(each, "name") for each in objects_in(object_in(self.header, "eval"), "scorers")]
        return [*dict.fromkeys(filter(None, (*named, *self.keys)))]

    def about(self) -> Iterator[Event]:
        """What the header says of the evaluation."""
        spec, stats = object_in(self.header, "eval"), object_in(self.header, "stats")
        yield About(version=text_in(object_in(spec, "packages"), "inspect_ai"), name=text_in(spec, "task"))
        started = text_in(stats, "started_at") or text_in(spec, "created")
        seconds = _between(stats.get("started_at"), stats.get("completed_at"))
        yield OfSystem(self.system, About(started=started, seconds=seconds))
        if (status := text_in(self.header, "status")) not in ("", "success"):
            error = text_in(object_in(self.header, "error"), "message")
            yield OfSystem(self.system, note("eval_unfinished", "caution", tool=TOOL, status=status, error=error))

    def end(self) -> Iterator[Event]:
        """What inspect printed, and what was noticed of the rows."""
        if self.limits:
            what = ", ".join(self.limits)
            limited = note("samples_limited", tool=TOOL, samples=sum(self.limits.values()), what=what)
            yield OfSystem(self.system, limited)
        results = object_in(self.header, "results")
        planned, logged = number_in(results, "total_samples"), number_in(results, "logged_samples")
        if planned is not None and self.rows:
            yield Printed(kind="rows", value=planned if logged is None else logged, system=self.system)
            if (completed := number_in(results, "completed_samples")) is not None:
                yield Printed(kind="rows", value=completed, system=self.system, ours=self.completed)
        uncompared: list[str] = []
        is_unreduced = object_in(object_in(self.header, "eval"), "config").get("epochs_reducer") == []
        for score in printed_scores(self.header):
            yield from _printed(self, score, uncompared, is_unreduced=is_unreduced)
        if uncompared:
            yield OfSystem(self.system, note("printed_uncompared", tool=TOOL, what=shortlist(uncompared)))


def printed_scores(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scorers with the metrics that inspect calculated. Versions before 0.3.18 had one, beside its metrics."""
    results = object_in(header, "results")
    if one := object_in(results, "scorer"):
        return [{"scorer": one.get("name"), "metrics": results.get("metrics"), **one}]
    return objects_in(results, "scores")


def _between(start: object, end: object) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _printed(log: Log, score: Mapping[str, Any], uncompared: list[str], *, is_unreduced: bool) -> Iterator[Event]:
    scorer, key = text_in(score, "scorer") or text_in(score, "name"), text_in(score, "name")
    name = (metric_of(scorer, key) if key in log.keys.get(scorer, ()) else metric_of(scorer)).name
    tally, reducer = log.tallies.get(name), score.get("reducer")
    metrics = {label: each for label, each in object_in(score, "metrics").items() if is_object(each)}
    if tally is None or reducer not in (None, "mean"):
        uncompared += [f"{name}: {label}{f' ({reducer})' if reducer else ''}" for label in metrics]
        return
    means = tally.means()
    if not is_unreduced:
        if (value := number_in(score, "scored_samples")) is not None:
            yield Printed(kind="scores", value=value, metric=name, system=log.system, ours=len(means))
        if (value := number_in(score, "unscored_samples")) is not None:
            yield Printed(kind="failed", value=value, metric=name, system=log.system, ours=_unscored(tally))
    for label, metric in metrics.items():
        value = number_in(metric, "value")
        what = text_in(metric, "name").rpartition("/")[2]
        if value is None or not means or metric.get("group") or object_in(metric, "params").get("cluster"):
            uncompared.append(f"{name}: {label}")
        elif what in _MEANS and (is_unreduced or math.isclose(value, tally.pooled, rel_tol=1e-12, abs_tol=1e-12)):
            yield Printed(kind="mean", value=value, metric=name, system=log.system)
        elif what in _MEANS:
            yield Printed(kind="mean", value=value, metric=name, system=log.system, ours=statistics.fmean(means))
            yield OfSystem(log.system, note("printed_by_case", "fact", name, tool=TOOL))
            if tally.failed:
                with_failed = note("printed_with_failed", "caution", name, tool=TOOL, failed=tally.failed, what="mean")
                yield OfSystem(log.system, with_failed)
        elif what in _SPREADS and not is_unreduced:
            ours = _spread(what, means)
            yield Printed(kind=_SPREADS[what], value=value, metric=name, system=log.system, ours=ours)
        else:
            uncompared.append(f"{name}: {label}")


def _unscored(tally: _Tally) -> int:
    """The number of cases without a score, although there was a scorer for them."""
    return sum(not n and bool(missing) for n, missing in zip(tally.counts, tally.unscored, strict=True))


def _spread(what: str, values: Sequence[float]) -> float:
    variance = statistics.variance(values) if len(values) > 1 else 0.0
    return variance if what == "var" else math.sqrt(variance / (len(values) if what == "stderr" else 1))
