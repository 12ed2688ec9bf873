"""Summaries of a run's records: means, intervals, counts and costs per scorer."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar, cast

from evalstone._core.display import joined
from evalstone._core.front_ends import Wording
from evalstone._core.guards import is_array, is_object
from evalstone._core.truth import NoTruthValue
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, UnknownName, invalid, unknown
from evalstone.stats.exact_sum import ExactSum, added
from evalstone.stats.intervals import Interval, mean_interval, missing_bounds
from evalstone.stats.packed_scores import smallest_and_largest
from evalstone.types import (
    TOLERANCE,
    CallSource,
    Note,
    Record,
    Score,
    Skipped,
    StoredScorer,
    Usage,
    note,
    without_fingerprints,
)
from evalstone.types.scorer_names import is_spelled, not_scored, parse_name, titles

MAX_REASONS = 1000
WITHOUT = " without "
V = TypeVar("V")
TOP_REASONS = 5
BINS = 20
"""The number of equal parts of the scale in a histogram."""
CORRECTION_COUNTS = ("corrections", "corrected", "lost")
TINY = 1e-9
"""US dollars; smaller amounts are rounding errors of sums."""


_OMITTED = ("case_metadata", "written_by", "frozen_signature", "description", "definition", "tool", "tool_threshold")
"""Fields that are left out of data if they are empty."""
_EMPTY: tuple[object, ...] = ((), "", {}, None)


@dataclass(frozen=True, kw_only=True)
class ScorerInfo:
    """What results need to know about a scorer."""

    name: str
    """The scorer's name, such as `faithfulness`."""
    signature: str
    """Name, non-default parameters, prompt fingerprints and version; identifies the scorer in records."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""
    case_metadata: tuple[str, ...] = ()
    """The entries of the metadata that answers are held against, such as `goal`, or paths of names in one."""
    written_by: str = ""
    """The kind of question by which a judge writes the first of these entries for samples that have none of them; ""
    if it writes none."""
    frozen_signature: str = ""
    """The signature of the scorer for samples that have what was written; "" if nothing is written."""
    description: str = field(default="", compare=False)
    """What it measures; for a custom scorer, what it asks."""
    definition: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """The table of the name and parameters that define a built-in scorer, as files have it; empty for one with code of
    the user's."""
    tool: str = field(default="", compare=False)
    """The tool whose scores were imported, with its version; "" for a scorer of evalstone."""
    tool_threshold: float | None = field(default=None, compare=False)
    """The score from which on this tool passes a sample; None if it has none, or different ones."""

    def goodness(self, value: float) -> float:
        """How good a score is, from 0 to 1, regardless of scale and direction."""
        fraction = value / self.scale
        return 1 - fraction if self.lower_is_better else fraction

    @classmethod
    def of(cls, stored: StoredScorer) -> ScorerInfo:
        """The scorer of a stored run."""
        return cls(
            name=stored.name,
            signature=stored.signature,
            scale=stored.scale,
            lower_is_better=stored.lower_is_better,
            case_metadata=stored.case_metadata,
            written_by=stored.written_by,
            frozen_signature=stored.frozen_signature,
            description=stored.description,
            definition=stored.definition,
            tool=stored.tool,
            tool_threshold=stored.tool_threshold,
        )

    def to_dict(self) -> dict[str, Any]:
        """The scorer as plain data, without its definition."""
        return {name: value for name, value in self.to_stored().items() if name != "definition"}

    def to_stored(self) -> dict[str, Any]:
        """The scorer as a run stores it."""
        return {name: value for name, value in asdict(self).items() if name not in _OMITTED or value not in _EMPTY}

    @property
    def parameters(self) -> str:
        """The name with its non-default parameters: the signature without fingerprints and version."""
        return without_fingerprints(self.signature)


def scorer_titles(scorers: Sequence[ScorerInfo]) -> dict[str, str]:
    """A run's scorer titles by signature: the name, with parameters if several scorers have the name, or the signature
    if their parameters are the same too."""
    return titles({info.signature: info.name for info in scorers})


def find_scorer(name: str, scorers: Sequence[ScorerInfo]) -> ScorerInfo:
    """The scorer with this title or signature, else the only one with this name or these parameters.

    Quotes, spaces and the order of parameters don't matter, and hyphens in a name count as underscores:
    `tool-called( tool='search' )` is `tool_called(tool=search)`.

    Raises:
        UnknownName: there is no such scorer, or there are several; the message names the candidates.
    """
    shown = scorer_titles(scorers)
    matches = [info for info in scorers if name in (shown[info.signature], info.signature)]
    matches = matches or [info for info in scorers if name in (info.parameters, info.name)]
    if not matches:
        try:
            base, parameters = parse_name(name)
        except ValueError as error:
            raise UnknownName(unknown("scorer", name, shown.values()), "; ", error) from None
        matches = [info for info in scorers if is_spelled(info.signature, base, parameters, info.scale)]
        if not matches and not parameters:
            matches = [info for info in scorers if info.name == base]
        if not matches:
            known = base in (info.name for info in scorers)
            hint = "; name only parameters that differ from their default" if known else ""
            raise UnknownName(not_scored(name, shown.values()), hint)
    if len(matches) > 1:
        raise UnknownName(f"{name} is ambiguous; name one of {', '.join(shown[info.signature] for info in matches)}")
    return matches[0]


def values_by_scorer(values: Mapping[str, V], find: Callable[[str], ScorerInfo], what: Wording) -> dict[ScorerInfo, V]:
    """Values keyed by scorer instead of by a scorer's title, signature or name.

    Args:
        values: by name.
        find: the scorer that a name refers to.
        what: what has the values, for errors.

    Raises:
        ConfigError: a scorer is unknown, or two of the names belong to the same one.
    """
    names: dict[ScorerInfo, str] = {}
    for name in values:
        try:
            info = find(name)
        except ConfigError as error:
            raise ConfigError(what, ": ", error) from None
        if (first := names.setdefault(info, name)) != name:
            raise ConfigError(what, f" names {info.name} twice: as {first} and as {name}")
    return dict(zip(names, values.values(), strict=True))


@dataclass(frozen=True, kw_only=True)
class ScorerSummary(NoTruthValue):
    """One scorer's results over a run."""

    _tested_by = ".mean, against a threshold; it is None without a score"

    info: ScorerInfo
    """The scorer."""
    interval: Interval | None
    """The mean over scored samples (weighted if samples have weights) with its confidence interval; None if no sample
    was scored."""
    n_score: int
    """Samples with a score."""
    n_skipped: int
    """Samples for which the score is undefined."""
    n_failed: int
    """Samples that could not be scored because of an error."""
    asked: int
    """Judge calls that were made."""
    shared: int
    """Questions that an equal call of the same run answered, such as another scorer's."""
    cached: int
    """Questions that the ledger answered."""
    cost: float | None
    """US dollars paid; None if a price is unknown."""
    reasons: tuple[tuple[str, int], ...]
    """The most frequent reasons for skipping or failing, with their counts."""
    corrections: int = 0
    """Requests that corrected malformed replies."""
    corrected: int = 0
    """Judge calls that ended in an answer after a correction."""
    lost: int = 0
    """Judge calls that were paid, or may have been, and ended without an answer."""
    bounds: tuple[float, float] | None = None
    """The lowest and highest possible mean if skipped and failed samples had scores (weighted if samples have weights);
    None if none are missing."""
    refused_settings: Mapping[str, int] = field(default_factory=dict[str, int])
    """Settings that the judges' endpoints refused, with the number of answers given without them."""
    doubtful_citations: int = 0
    """Results with a citation that hardly fits its claim."""
    judges: tuple[str, ...] = ()
    """The identities of the judges used; "openai/x without temperature" if the endpoint refused this setting."""
    all_equal: bool = False
    """Whether there are at least two scores and all are equal."""
    only_verdict: tuple[str, int] | None = None
    """The single verdict that the judges gave on all samples, claims, passages and so on, with its count; None if they
    gave different verdicts or none."""
    unanswered: int = 0
    """Samples that were skipped because the judge declined a question or reached no verdict."""
    histogram: tuple[int, ...] = ()
    """How many scores lie in each of `BINS` equal parts of the scale, from 0 on."""

    @property
    def no_answer(self) -> bool:
        """Whether no sample has a score, and for some that is because the judge gave no answer."""
        return not self.n_score and self.unanswered > 0

    @property
    def doubt(self) -> Note | None:
        """Why the scores may be meaningless: the judge gave no answer, or the same one for everything; else None."""
        if self.no_answer:
            samples = self.n_skipped + self.n_failed
            return note("no_usable_answer", "warning", unanswered=self.unanswered, samples=samples)
        if self.judges and self.all_equal:
            return note("equal_scores", "warning", scores=self.n_score, value=self.mean, scale=self.info.scale)
        if self.n_score > 1 and self.only_verdict is not None and self.only_verdict[1] > 1:
            verdict, times = self.only_verdict
            return note("equal_verdicts", "warning", verdicts=times, verdict=verdict)
        return None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Why to doubt the scores, and why to trust the interval less."""
        return (*filter(None, (self.doubt,)), *(self.interval.notes if self.interval else ()))

    @property
    def mean(self) -> float | None:
        """The mean over scored samples, in [0, scale]; None if no sample was scored."""
        return self.interval.estimate if self.interval else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as stored in `summary.json`."""
        interval = self.interval
        return {
            **self.info.to_stored(),
            "mean": interval.estimate if interval else None,
            "interval": [interval.low, interval.high] if interval else None,
            "confidence": interval.confidence if interval else None,
            "n_score": self.n_score,
            "n_skipped": self.n_skipped,
            "n_failed": self.n_failed,
            "bounds": None if self.bounds is None else list(self.bounds),
            "groups": interval.groups if interval else None,
            **({"effective": interval.effective} if interval and interval.effective is not None else {}),
            "method": interval.method if interval else "",
            "notes": [note.to_dict() for note in self.notes],
            "asked": self.asked,
            "shared": self.shared,
            "cached": self.cached,
            "cost": self.cost,
            "judges": list(self.judges),
            "histogram": list(self.histogram),
            **{name: times for name in CORRECTION_COUNTS if (times := getattr(self, name))},
        }


def summarize(scorers: Sequence[ScorerInfo], records: Iterable[Record]) -> tuple[ScorerSummary, ...]:
    """A summary for each scorer, in the order of the scorers, from a single pass over the records."""
    builders = {info.signature: SummaryBuilder(info) for info in scorers}
    for record in records:
        builders[record.signature].add(record)
    return tuple(builder.summary() for builder in builders.values())


class ScorerCounts:
    """What a summary needs of a scorer's records besides their values, weights and groups: counts and sums that can be
    added up in parts. In any order, and from any parts, they are the same.

    An exception are reasons, if there are more than `MAX_REASONS` different ones: those that come first are counted.
    """

    def __init__(self) -> None:
        self.n_score = self.n_skipped = self.n_failed = 0
        self.reasons: Counter[str] = Counter()
        self.more_reasons = False
        """Whether reasons are missing, because there are too many."""
        self.calls: Counter[CallSource] = Counter()
        self.corrections = self.corrected = self.lost = 0
        self.dropped: dict[tuple[str, str, int], int] = {}
        """How many items were dropped from each answer that was used; scorers share the call that gave it."""
        self.cost: ExactSum | None = ExactSum()
        """None if a price is unknown."""
        self.refused_settings: Counter[str] = Counter()
        self.doubtful_citations = 0
        self.judges: set[str] = set()
        self.verdicts: Counter[str] = Counter()  # two different ones at most
        self.unanswered = 0
        self.histogram = [0] * BINS

    def add(self, record: Record, scale: float) -> None:
        """Count a record of a scorer with this scale."""
        outcome = record.outcome
        if isinstance(outcome, Score):
            self.add_score(outcome.value, scale)
        elif isinstance(outcome, Skipped):
            self.add_missing(outcome.reason, failed=False)
        else:
            self.add_missing(outcome.error, failed=True)
        if record.calls:
            self._add_calls(record)

    def add_score(self, value: float, scale: float) -> None:
        """Count a score."""
        self.n_score += 1
        self.histogram[min(BINS - 1, int(BINS * (value / scale + TOLERANCE)))] += 1

    def add_missing(self, reason: str, *, failed: bool) -> None:
        """Count a sample that failed or was skipped. reason: The error, or why it was skipped."""
        self.n_failed += failed
        self.n_skipped += not failed
        self._add_reason(reason)

    def add_call(self, judge: str, answer: Any, usage: Usage, cost: float | None, *, unanswered: bool) -> None:
        """Count a record with one call, which was asked of a single judge. unanswered: Whether it was skipped because
        of it."""
        self.calls["asked"] += answer is not None or usage.requests > 0
        for verdict in _verdicts(answer):
            self._add_verdict(verdict)
        self._add_leaf(usage, cost, answered=answer is not None)
        self.judges.add(judge)
        self.unanswered += unanswered
        self.cost = added(self.cost, cost)

    def _add_reason(self, reason: str, times: int = 1) -> None:
        if reason in self.reasons or len(self.reasons) < MAX_REASONS:
            self.reasons[reason] += times
        else:
            self.more_reasons = True

    def _add_verdict(self, verdict: str, times: int = 1) -> None:
        if verdict in self.verdicts or len(self.verdicts) < 2:
            self.verdicts[verdict] += times

    def _add_calls(self, record: Record) -> None:
        for call in record.calls:
            for source in call.sources():
                self.calls[source] += 1
            for verdict in _verdicts(call.answer):
                self._add_verdict(verdict)
            if isinstance(dropped := (call.detail or {}).get("dropped"), list):
                self.dropped[call.judge, call.fingerprint, call.repeat_index] = len(cast("list[Any]", dropped))
            refused: dict[str, None] = {}
            for leaf in call.leaves():
                if leaf.refused_settings:
                    refused.update(dict.fromkeys(leaf.refused_settings))
                    self.refused_settings.update(leaf.refused_settings)
                doubtful = "doubt" in (leaf.detail or {})
                self._add_leaf(leaf.usage, leaf.cost, answered=leaf.answer is not None, doubtful=doubtful)
            self.judges.add(f"{call.judge}{WITHOUT}{joined(sorted(refused))}" if refused else call.judge)
        self.doubtful_citations += any("citations" in (call.detail or {}) for call in record.calls)
        self.unanswered += unanswered(record)
        self.cost = added(self.cost, record.cost)

    def _add_leaf(self, usage: Usage, cost: float | None, *, answered: bool, doubtful: bool = False) -> None:
        """Count what one judge was asked."""
        if usage.requests > 1:
            self.corrections += usage.requests - 1
            self.corrected += answered and not doubtful
        self.lost += not answered and (usage.requests > 0 or cost is None)

    def merge(self, other: ScorerCounts) -> None:
        """Add the counts of records that come after these."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, times in other.reasons.items():
            self._add_reason(reason, times)
        self.more_reasons |= other.more_reasons
        for verdict, times in other.verdicts.items():
            self._add_verdict(verdict, times)
        self.calls.update(other.calls)
        self.refused_settings.update(other.refused_settings)
        self.dropped.update(other.dropped)
        self.judges |= other.judges
        self.histogram = [a + b for a, b in zip(self.histogram, other.histogram, strict=True)]
        if self.cost is None or other.cost is None:
            self.cost = None
        else:
            self.cost.merge(other.cost)

    def summary(
        self,
        info: ScorerInfo,
        values: Sequence[float],
        groups: Sequence[Hashable] | None = None,
        weights: Mapping[bool, Sequence[float]] | None = None,
    ) -> ScorerSummary:
        """The summary of the records that were counted.

        Args:
            info: Their scorer.
            values: Their values, of those with a score.
            groups: The group of each value; None if no value has one.
            weights: The weights by whether a record has a score; None if no record has one.
        """
        scale, missing = info.scale, self.n_skipped + self.n_failed
        scored = None if weights is None else weights[True]
        both = None if weights is None else (weights[True], weights[False])
        return ScorerSummary(
            info=info,
            interval=mean_interval(values, low=0.0, high=scale, groups=groups, weights=scored),
            n_score=self.n_score,
            n_skipped=self.n_skipped,
            n_failed=self.n_failed,
            asked=self.calls["asked"],
            shared=self.calls["shared"],
            cached=self.calls["cached"],
            cost=None if self.cost is None else self.cost.value,
            # Ties are sorted by text, so that the table of an interrupted run doesn't depend on the order of records.
            reasons=tuple(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))[:TOP_REASONS]),
            corrections=self.corrections,
            corrected=self.corrected,
            lost=self.lost,
            refused_settings=dict(sorted(self.refused_settings.items())),
            doubtful_citations=self.doubtful_citations,
            bounds=missing_bounds(values, missing, 0.0, scale, weights=both) if missing else None,
            judges=tuple(sorted(self.judges)),
            all_equal=len(values) > 1 and len({*smallest_and_largest(values)}) == 1,
            only_verdict=self.verdicts.most_common()[0] if len(self.verdicts) == 1 else None,
            unanswered=self.unanswered,
            histogram=tuple(self.histogram),
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as data, with the reasons if there are few."""
        few = not self.more_reasons and len(self.reasons) <= _STORED_REASONS
        return {
            **{name: getattr(self, name) for name in _SUMMED},
            "reasons": dict(self.reasons) if few else None,
            "calls": dict(self.calls),
            "dropped": [asdict(_StoredDropped(*key, items)) for key, items in self.dropped.items()],
            "cost": None if self.cost is None else self.cost.parts,
            "refused_settings": dict(self.refused_settings),
            "judges": sorted(self.judges),
            "verdicts": dict(self.verdicts),
            "histogram": self.histogram,
        }

    @classmethod
    def from_dict(cls, data: object) -> ScorerCounts:
        """The counts from their data. Raises DataError if a field is missing or has a value of the wrong type."""
        stored = read_data(_StoredCounts, data)
        if len(stored.histogram) != BINS:
            raise DataError(invalid("histogram", f"of {BINS} numbers", stored.histogram, str(len(stored.histogram))))
        counts = cls()
        for name in _SUMMED:
            setattr(counts, name, getattr(stored, name))
        counts.reasons.update(stored.reasons or {})
        counts.more_reasons = stored.reasons is None
        counts.calls.update(cast("Mapping[CallSource, int]", stored.calls))
        counts.dropped = {(one.judge, one.fingerprint, one.repeat_index): one.items for one in stored.dropped}
        counts.cost = None if stored.cost is None else ExactSum(stored.cost)
        counts.refused_settings.update(stored.refused_settings)
        counts.judges.update(stored.judges)
        counts.verdicts.update(stored.verdicts)
        counts.histogram = list(stored.histogram)
        return counts


_SUMMED = ("n_score", "n_skipped", "n_failed", "doubtful_citations", "unanswered", *CORRECTION_COUNTS)
_STORED_REASONS = 50
"""The number of different reasons up to which a block's metadata have them. More are counted in its records."""


@dataclass(frozen=True)
class _StoredDropped:
    """The items that were dropped from an answer."""

    judge: str
    fingerprint: str
    repeat_index: int
    items: int


@dataclass(frozen=True, kw_only=True)
class _StoredCounts:
    """The data of `ScorerCounts`."""

    n_score: int
    n_skipped: int
    n_failed: int
    doubtful_citations: int
    unanswered: int
    corrections: int
    corrected: int
    lost: int
    reasons: Mapping[str, int] | None
    calls: Mapping[str, int]
    dropped: tuple[_StoredDropped, ...]
    cost: tuple[float, ...] | None
    refused_settings: Mapping[str, int]
    judges: tuple[str, ...]
    verdicts: Mapping[str, int]
    histogram: tuple[int, ...]


class SummaryBuilder:
    """Accumulates one scorer's records into a summary. It keeps values and counts, not the records."""

    def __init__(self, info: ScorerInfo, counts: ScorerCounts | None = None) -> None:
        self.info = info
        self.counts = ScorerCounts() if counts is None else counts
        self.values = array("d")
        self.weights: dict[bool, array[float]] = {True: array("d"), False: array("d")}
        """Weights by whether the sample has a score; empty until the first sample with a weight."""
        self._weighted = False
        self.groups = array("q")
        self._group_numbers: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Add a record of this scorer."""
        self._add_weight(record.weight, scored=isinstance(record.outcome, Score))
        if isinstance(record.outcome, Score):
            self._add_value(record.outcome.value, record.group)
        self.counts.add(record, self.info.scale)

    def add_score(self, value: float, group: str | None, weight: float | None) -> None:
        """Add a record with a score, without its calls."""
        if weight is not None or self._weighted:
            self._add_weight(weight, scored=True)
        if group is not None or self._group_numbers:
            self._add_group(group)
        self.values.append(value)
        self.counts.add_score(value, self.info.scale)

    def add_missing(self, reason: str, weight: float | None, *, failed: bool) -> None:
        """Add a record that failed or was skipped, without its calls. reason: The error, or why it was skipped."""
        self._add_weight(weight, scored=False)
        self.counts.add_missing(reason, failed=failed)

    def _add_value(self, value: float, group: str | None) -> None:
        self._add_group(group)
        self.values.append(value)

    def _add_group(self, name: str | None) -> None:
        """Store the group of the next value. Groups are numbered. Samples without a group get unique negative numbers,
        stored from the first group on."""
        if name is not None and not self._group_numbers:
            self.groups.extend(range(-len(self.values), 0))
        if name is not None:
            self.groups.append(self._group_numbers.setdefault(name, len(self._group_numbers)))
        elif self._group_numbers:
            self.groups.append(-len(self.values) - 1)

    def _add_weight(self, weight: float | None, *, scored: bool) -> None:
        """Store the weight of a record. Call it before the record is counted."""
        if weight is None and not self._weighted:
            return
        if not self._weighted:
            self._weighted = True
            self.weights[True].extend([1.0] * self.counts.n_score)
            self.weights[False].extend([1.0] * (self.counts.n_skipped + self.counts.n_failed))
        self.weights[scored].append(1.0 if weight is None else weight)

    def summary(self) -> ScorerSummary:
        """The summary of the records so far."""
        groups = self.groups if self._group_numbers else None
        return self.counts.summary(self.info, self.values, groups, self.weights if self._weighted else None)


def unanswered(record: Record) -> bool:
    """Whether a sample was skipped because the judge declined a question or reached no verdict."""
    return isinstance(record.outcome, Skipped) and any(is_unanswered(call.answer) for call in record.calls)


def is_unanswered(answer: Any) -> bool:
    """Whether a judge declined a question or reached no verdict. answer: Its answer as JSON data."""
    return answer is None or "undecided" in _verdicts(answer)


def _verdicts(answer: Any) -> Iterator[str]:
    """The verdicts in an answer in JSON form: of an object, or of each item of a list."""
    for item in answer if is_array(answer) else (answer,):
        if is_object(item) and isinstance(verdict := item.get("verdict"), str):
            yield verdict
