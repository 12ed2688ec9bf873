"""Statistics of the composite judges of a run: escalations and savings, agreement of members, missing answers."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalstone.stats.exact_sum import ExactSum, added
from evalstone.stats.intervals import mean_interval
from evalstone.types import JudgeCall, Record


class JudgeStats:
    """Statistics of composite judges in a run: escalations and savings, agreement of members, missing answers.

    Each question to a judge counts once, however many scorers asked it. Intervals treat the questions about one sample,
    or one group of samples, as a cluster.

    Args:
        rows: A list that gets each question as a row of JSON data, for the `add_row` of other statistics.
    """

    def __init__(self, rows: list[Sequence[Any]] | None = None) -> None:
        self._judges: dict[str, _Cascade | _Vote | _Aligned] = {}
        self._seen: set[int] = set()
        self._rows = rows

    def add(self, record: Record) -> None:
        """Count a record's judge calls, and those of their members."""
        for call in record.calls:
            self._add_call(call, record)

    def _add_call(self, call: JudgeCall, record: Record) -> None:
        detail = call.detail or {}
        if (kind := detail.get("kind")) is not None:
            key = _stable_hash(call.judge, call.fingerprint, str(call.repeat_index))
            if key not in self._seen:
                group = record.group
                cluster = _stable_hash(*(("sample", record.sample_id) if group is None else ("group", group)))
                of_kind = _OF_KINDS.get(str(kind), _Vote)
                row = (key, call.judge, str(kind), cluster, of_kind.row(call, detail))
                if self._rows is not None:
                    self._rows.append(row)
                self.add_row(row)
        for member in call.members:
            self._add_call(member, record)

    def add_row(self, row: Sequence[Any]) -> None:
        """Count a question from its row."""
        key, judge, kind, cluster, content = row
        if key in self._seen:
            return
        self._seen.add(key)
        if judge not in self._judges:
            self._judges[judge] = _OF_KINDS.get(kind, _Vote)(kind)
        self._judges[judge].add(content, cluster)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The statistics by judge, as stored in `summary.json`."""
        return {judge: stats.to_dict() for judge, stats in sorted(self._judges.items())}


def _stable_hash(*texts: str) -> int:
    """A hash of texts that is the same in every process."""
    content = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


class _Costs:
    """The number and the sum of costs."""

    def __init__(self) -> None:
        self.number = 0
        self.total: ExactSum | None = ExactSum()

    def add(self, costs: Iterable[float | None]) -> None:
        for cost in costs:
            self.number += 1
            self.total = added(self.total, cost)


class _Cascade:
    """One cascade's questions: how many escalated to the fallback judge."""

    def __init__(self, _: str) -> None:
        self.fallback = ""
        self.shares, self.clusters = array("d"), array("q")
        """By question, the share that was escalated, and the cluster."""
        self.not_escalated: Counter[str] = Counter()
        self.fallback_costs: dict[str, _Costs] = defaultdict(_Costs)

    @staticmethod
    def row(call: JudgeCall, detail: Mapping[str, Any]) -> Sequence[Any]:
        """What counts of a question."""
        fallback = str(detail["fallback"])
        costs = [member.cost for member in call.members if member.judge == fallback and member.source == "asked"]
        return fallback, float(detail["escalated"]), call.question, costs

    def add(self, content: Sequence[Any], cluster: int) -> None:
        self.fallback, share, question, costs = content
        self.shares.append(share)
        self.clusters.append(cluster)
        self.not_escalated[question] += not share
        self.fallback_costs[question].add(costs)

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
        saved: list[float] = []
        for kind, times in self.not_escalated.items():
            if not times:
                continue
            costs = self.fallback_costs[kind]
            if not costs.number or costs.total is None:
                return None
            saved.append(times * costs.total.value / costs.number)
        return math.fsum(saved)


class _Vote:
    """The questions to a panel, or to a self-consistency judge."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.questions = 0
        self.verdicts = 0
        self.numbers = 0
        self.agreements, self.weights, self.clusters = array("d"), array("d"), array("q")
        """By question with verdicts: their mean agreement, their number, and the cluster."""
        self.entropy = ExactSum()
        self.no_answer: Counter[str] = Counter()

    @staticmethod
    def row(_: JudgeCall, detail: Mapping[str, Any]) -> Sequence[Any]:
        """What counts of a question: the agreement and entropy of each verdict, how many votes had none, and the
        members without an answer."""
        votes: list[Mapping[str, Any]] = [*detail.get("verdicts", ())]
        voted = [(vote["agreement"], vote["entropy"]) for vote in votes if vote.get("agreement") is not None]
        silent = [name.partition(" #")[0] for name in detail.get("no_answer", {})]
        return voted, len(votes) - len(voted), silent

    def add(self, content: Sequence[Any], cluster: int) -> None:
        voted, numbers, silent = content
        self.questions += 1
        self.numbers += numbers
        for _, entropy in voted:
            self.entropy.add(entropy)
        if voted:
            self.verdicts += len(voted)
            self.agreements.append(math.fsum(agreement for agreement, _ in voted) / len(voted))
            self.weights.append(len(voted))
            self.clusters.append(cluster)
        self.no_answer.update(silent)

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
            "entropy": self.entropy.value / self.verdicts if self.verdicts else None,
            "no_answer": dict(sorted(self.no_answer.items())),
        }
        if self.kind == "self_consistency":
            stats["flip_rate"] = None if agreement is None else 1 - agreement
        return stats


class _Aligned:
    """The questions that an aligned judge was asked as it was aligned."""

    def __init__(self, _: str) -> None:
        self.questions = 0
        self.left_out = 0
        self.changed = 0

    @staticmethod
    def row(_: JudgeCall, detail: Mapping[str, Any]) -> Sequence[Any]:
        """What counts of a question: whether an example was left out, and whether a label was changed."""
        return bool(detail.get("left_out")), bool(detail.get("changed"))

    def add(self, content: Sequence[Any], _: int) -> None:
        left_out, changed = content
        self.questions += 1
        self.left_out += left_out
        self.changed += changed

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "aligned",
            "questions": self.questions,
            "left_out": self.left_out,
            "changed": self.changed,
        }


_OF_KINDS: Mapping[str, type[_Cascade | _Vote | _Aligned]] = {"cascade": _Cascade, "aligned": _Aligned}
