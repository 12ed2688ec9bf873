"""Summaries of a run's records: means, intervals, counts and costs per scorer, and statistics of composite judges."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar, cast

from evalstone._core.display import joined
from evalstone._core.front_ends import Wording
from evalstone._core.guards import is_array, is_object
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ConfigError, UnknownName, unknown
from evalstone.stats.intervals import Interval, mean_interval, missing_bounds
from evalstone.types import (
    TOLERANCE,
    CallSource,
    Failed,
    JudgeCall,
    Note,
    Outcome,
    Record,
    Score,
    Skipped,
    StoredScorer,
    note,
    total_cost,
    without_fingerprints,
)
from evalstone.types.scorer_names import is_spelled, parse_name, titles

MAX_REASONS = 1000
WITHOUT = " without "
V = TypeVar("V")
TOP_REASONS = 5
BINS = 20
"""The number of equal parts of the scale in a histogram."""
CORRECTION_COUNTS = ("corrections", "corrected", "lost")
TINY = 1e-9
"""US dollars; smaller amounts are rounding errors of sums."""


_OMITTED = ("case_metadata", "description", "definition")
"""Fields that are left out of data if they are empty."""


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
    description: str = field(default="", compare=False)
    """What it measures; for a custom scorer, what it asks."""
    definition: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """The table of the name and parameters that define a built-in scorer, as files have it; empty for one with code of
    the user's."""

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
            description=stored.description,
            definition=stored.definition,
        )

    def to_dict(self) -> dict[str, Any]:
        """The scorer as plain data, without its definition."""
        return {name: value for name, value in self.to_stored().items() if name != "definition"}

    def to_stored(self) -> dict[str, Any]:
        """The scorer as a run stores it."""
        return {name: value for name, value in asdict(self).items() if value or name not in _OMITTED}

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
            raise UnknownName(unknown("scorer", name, shown.values()), hint)
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


class SummaryBuilder:
    """Accumulates one scorer's records into a summary. It keeps values and counts, not the records."""

    def __init__(self, info: ScorerInfo) -> None:
        self.info = info
        self.values = array("d")
        self.weights: dict[bool, array[float]] = {True: array("d"), False: array("d")}
        """Weights by whether the sample has a score; empty until the first sample with a weight."""
        self._weighted = False
        self.groups = array("q")
        self._group_numbers: dict[str, int] = {}
        self.counts: Counter[type[Outcome]] = Counter()
        self.reasons: Counter[str] = Counter()
        self.calls: Counter[CallSource] = Counter()
        self.corrections = self.corrected = self.lost = 0
        self.dropped: dict[tuple[str, str, int], int] = {}
        """How many items were dropped from each answer that was used; scorers share the call that gave it."""
        self.cost: float | None = 0.0
        self.refused_settings: Counter[str] = Counter()
        self.doubtful_citations = 0
        self.judges: dict[str, None] = {}
        self.verdicts: Counter[str] = Counter()  # two different ones at most
        self.unanswered = 0
        self.histogram = [0] * BINS

    def add(self, record: Record) -> None:
        """Add a record of this scorer."""
        outcome, name = record.outcome, record.group
        self._add_weight(record)
        self.counts[type(outcome)] += 1
        if isinstance(outcome, Score):
            # Groups are numbered. Samples without a group get unique negative numbers, stored from the first group on.
            if name is not None and not self._group_numbers:
                self.groups.extend(range(-len(self.values), 0))
            if name is not None:
                self.groups.append(self._group_numbers.setdefault(name, len(self._group_numbers)))
            elif self._group_numbers:
                self.groups.append(-len(self.values) - 1)
            self.values.append(outcome.value)
            self.histogram[min(BINS - 1, int(BINS * (outcome.value / self.info.scale + TOLERANCE)))] += 1
        else:
            reason = outcome.reason if isinstance(outcome, Skipped) else outcome.error
            if reason in self.reasons or len(self.reasons) < MAX_REASONS:
                self.reasons[reason] += 1
        for call in record.calls:
            for source in call.sources():
                self.calls[source] += 1
            for verdict in _verdicts(call.answer):
                if verdict in self.verdicts or len(self.verdicts) < 2:
                    self.verdicts[verdict] += 1
            if isinstance(dropped := (call.detail or {}).get("dropped"), list):
                self.dropped[call.judge, call.fingerprint, call.repeat_index] = len(cast("list[Any]", dropped))
            refused: dict[str, None] = {}
            for leaf in call.leaves():
                if leaf.refused_settings:
                    refused.update(dict.fromkeys(leaf.refused_settings))
                    self.refused_settings.update(leaf.refused_settings)
                if leaf.usage.requests > 1:
                    self.corrections += leaf.usage.requests - 1
                    self.corrected += leaf.answer is not None and "doubt" not in (leaf.detail or {})
                self.lost += leaf.answer is None and (leaf.usage.requests > 0 or leaf.cost is None)
            self.judges.setdefault(f"{call.judge}{WITHOUT}{joined(sorted(refused))}" if refused else call.judge)
        if record.calls:
            self.doubtful_citations += any("citations" in (call.detail or {}) for call in record.calls)
            self.unanswered += unanswered(record)
            self.cost = total_cost((self.cost, record.cost))

    def _add_weight(self, record: Record) -> None:
        """Store the record's weight. Call it before the record is counted."""
        if record.weight is None and not self._weighted:
            return
        if not self._weighted:
            self._weighted = True
            for scored in (True, False):
                before = sum(times for kind, times in self.counts.items() if (kind is Score) == scored)
                self.weights[scored].extend([1.0] * before)
        self.weights[isinstance(record.outcome, Score)].append(1.0 if record.weight is None else record.weight)

    def summary(self) -> ScorerSummary:
        """The summary of the records so far."""
        scale, missing = self.info.scale, self.counts[Skipped] + self.counts[Failed]
        groups = self.groups if self._group_numbers else None
        weights = (self.weights[True], self.weights[False]) if self._weighted else None
        return ScorerSummary(
            info=self.info,
            interval=mean_interval(self.values, low=0.0, high=scale, groups=groups, weights=weights and weights[0]),
            n_score=self.counts[Score],
            n_skipped=self.counts[Skipped],
            n_failed=self.counts[Failed],
            asked=self.calls["asked"],
            shared=self.calls["shared"],
            cached=self.calls["cached"],
            cost=self.cost,
            # Ties are sorted by text, so that the table of an interrupted run doesn't depend on the order of records.
            reasons=tuple(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))[:TOP_REASONS]),
            corrections=self.corrections,
            corrected=self.corrected,
            lost=self.lost,
            refused_settings=dict(self.refused_settings),
            doubtful_citations=self.doubtful_citations,
            bounds=missing_bounds(self.values, missing, 0.0, scale, weights=weights) if missing else None,
            judges=tuple(sorted(self.judges)),
            all_equal=len(self.values) > 1 and min(self.values) == max(self.values),
            only_verdict=self.verdicts.most_common()[0] if len(self.verdicts) == 1 else None,
            unanswered=self.unanswered,
            histogram=tuple(self.histogram),
        )


def unanswered(record: Record) -> bool:
    """Whether a sample was skipped because the judge declined a question or reached no verdict."""
    return isinstance(record.outcome, Skipped) and any(
        call.answer is None or "undecided" in _verdicts(call.answer) for call in record.calls
    )


def _verdicts(answer: Any) -> Iterator[str]:
    """The verdicts in an answer in JSON form: of an object, or of each item of a list."""
    for item in answer if is_array(answer) else (answer,):
        if is_object(item) and isinstance(verdict := item.get("verdict"), str):
            yield verdict


# ---- Composite judges ----


class JudgeStats:
    """Statistics of composite judges in a run: escalations and savings, agreement of members, missing answers.

    Each question to a judge counts once, however many scorers asked it. Intervals treat the questions about one sample,
    or one group of samples, as a cluster.
    """

    def __init__(self) -> None:
        self._judges: dict[str, _Cascade | _Vote] = {}
        self._seen: set[int] = set()

    def add(self, record: Record) -> None:
        """Count a record's judge calls, and those of their members."""
        cluster = hash((record.group is None, record.sample_id if record.group is None else record.group))
        for call in record.calls:
            self._add_call(call, cluster)

    def _add_call(self, call: JudgeCall, cluster: int) -> None:
        detail = call.detail or {}
        if (kind := detail.get("kind")) is not None:
            key = hash((call.judge, call.fingerprint, call.repeat_index))
            if key not in self._seen:
                self._seen.add(key)
                if call.judge not in self._judges:
                    self._judges[call.judge] = _Cascade() if kind == "cascade" else _Vote(str(kind))
                self._judges[call.judge].add(call, detail, cluster)
        for member in call.members:
            self._add_call(member, cluster)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The statistics by judge, as stored in `summary.json`."""
        return {judge: stats.to_dict() for judge, stats in self._judges.items()}


class _Cascade:
    """One cascade's questions: how many escalated to the fallback judge."""

    def __init__(self) -> None:
        self.fallback = ""
        self.shares, self.clusters = array("d"), array("q")
        """By question, the share that was escalated, and the cluster."""
        self.not_escalated: Counter[str] = Counter()
        self.fallback_costs: dict[str, list[float | None]] = defaultdict(list)

    def add(self, call: JudgeCall, detail: Mapping[str, Any], cluster: int) -> None:
        self.fallback = str(detail["fallback"])
        self.shares.append(float(detail["escalated"]))
        self.clusters.append(cluster)
        self.not_escalated[call.question] += not detail["escalated"]
        costs = [member.cost for member in call.members if member.judge == self.fallback and member.source == "asked"]
        self.fallback_costs[call.question] += costs

    def to_dict(self) -> dict[str, Any]:
        share = mean_interval(self.shares, low=0.0, high=1.0, groups=self.clusters)
        return {
            "kind": "cascade",
            "questions": len(self.shares),
            "escalated": math.fsum(self.shares),
            "share": None if share is None else share.estimate,
            "share_interval": None if share is None else [share.low, share.high],
            "fallback": self.fallback,
            "saved_calls": self.not_escalated.total(),
            "saved_cost": self._saved_cost(),
        }

    def _saved_cost(self) -> float | None:
        """The cost that questions without escalation saved, at the mean cost of escalated questions of the same kind in
        this run; None if none of a kind was escalated, or a price is unknown."""
        saved: list[float | None] = []
        for kind, times in self.not_escalated.items():
            costs = self.fallback_costs[kind]
            total = total_cost(costs) if costs else None
            saved.append(0.0 if not times else None if total is None else times * total / len(costs))
        return total_cost(saved)


class _Vote:
    """The questions to a panel, or to a self-consistency judge."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.questions = 0
        self.verdicts = 0
        self.numbers = 0
        self.agreements, self.weights, self.clusters = array("d"), array("d"), array("q")
        """By question with verdicts: their mean agreement, their number, and the cluster."""
        self.entropy = 0.0
        self.no_answer: Counter[str] = Counter()

    def add(self, _: JudgeCall, detail: Mapping[str, Any], cluster: int) -> None:
        self.questions += 1
        agreements: list[float] = []
        for vote in detail.get("verdicts", ()):
            if vote.get("agreement") is None:
                self.numbers += 1
                continue
            agreements.append(vote["agreement"])
            self.entropy += vote["entropy"]
        if agreements:
            self.verdicts += len(agreements)
            self.agreements.append(math.fsum(agreements) / len(agreements))
            self.weights.append(len(agreements))
            self.clusters.append(cluster)
        self.no_answer.update(name.partition(" #")[0] for name in detail.get("no_answer", {}))

    def to_dict(self) -> dict[str, Any]:
        """agreement and entropy are means over verdicts; flip_rate, for self-consistency, is 1 - agreement."""
        interval = mean_interval(self.agreements, low=0.0, high=1.0, groups=self.clusters, weights=self.weights)
        agreement = None if interval is None else interval.estimate
        stats: dict[str, Any] = {
            "kind": self.kind,
            "questions": self.questions,
            "verdicts": self.verdicts,
            "numbers": self.numbers,
            "agreement": agreement,
            "agreement_interval": None if interval is None else [interval.low, interval.high],
            "entropy": self.entropy / self.verdicts if self.verdicts else None,
            "no_answer": dict(self.no_answer),
        }
        if self.kind == "self_consistency":
            stats["flip_rate"] = None if agreement is None else 1 - agreement
        return stats
