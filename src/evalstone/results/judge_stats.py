"""Statistics of a run's composite judges: escalations and what they saved, agreement of members, missing answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from evalstone.types import JudgeCall, Record


class JudgeStats:
    """Counts over a run's records; each question of each judge counts once, however many scorers asked it."""

    def __init__(self) -> None:
        self._judges: dict[str, _Cascade | _Vote] = {}
        self._seen: set[int] = set()

    def add(self, record: Record) -> None:
        """Count a record's judge calls, and those of their members."""
        for step in record.steps:
            self._add_call(step)

    def _add_call(self, call: JudgeCall) -> None:
        detail = call.detail or {}
        if (kind := detail.get("kind")) is not None:
            key = hash((call.judge, call.fingerprint, call.repeat_index))
            if key not in self._seen:
                self._seen.add(key)
                if call.judge not in self._judges:
                    self._judges[call.judge] = _Cascade() if kind == "cascade" else _Vote(str(kind))
                self._judges[call.judge].add(call, detail)
        for member in call.members:
            self._add_call(member)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The statistics by judge, as stored in `summary.json`."""
        return {judge: stats.to_dict() for judge, stats in self._judges.items()}


class _Cascade:
    """One cascade's questions: how many escalated to the fallback judge."""

    def __init__(self) -> None:
        self.fallback = ""
        self.questions: Counter[str] = Counter()
        self.not_escalated: Counter[str] = Counter()
        self.escalated = 0.0
        self.fallback_costs: dict[str, list[float | None]] = defaultdict(list)

    def add(self, call: JudgeCall, detail: Mapping[str, Any]) -> None:
        self.fallback = str(detail["then"])
        self.questions[call.question] += 1
        self.escalated += float(detail["escalated"])
        self.not_escalated[call.question] += not detail["escalated"]
        costs = [member.cost for member in call.members if member.judge == self.fallback and not member.cached]
        self.fallback_costs[call.question] += costs

    def to_dict(self) -> dict[str, Any]:
        count = self.questions.total()
        return {
            "kind": "cascade",
            "questions": count,
            "escalated": self.escalated,
            "share": self.escalated / count,
            "then": self.fallback,
            "saved_calls": self.not_escalated.total(),
            "saved_cost": self._saved_cost(),
        }

    def _saved_cost(self) -> float | None:
        """What the questions that did not escalate would have cost, at the mean cost of the escalated ones of their
        kind in this run; None where none was escalated, or a price is unknown."""
        total = 0.0
        for kind, count in self.not_escalated.items():
            if not count:
                continue
            known = [cost for cost in self.fallback_costs[kind] if cost is not None]
            if not known or len(known) < len(self.fallback_costs[kind]):
                return None
            total += count * sum(known) / len(known)
        return total


class _Vote:
    """The questions of one panel, or of one judge asked repeatedly."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.questions = 0
        self.verdicts = 0
        self.numbers = 0
        self.agreement = 0.0
        self.entropy = 0.0
        self.no_answer: Counter[str] = Counter()

    def add(self, _: JudgeCall, detail: Mapping[str, Any]) -> None:
        self.questions += 1
        for vote in detail.get("verdicts", ()):
            if vote.get("agreement") is None:
                self.numbers += 1
                continue
            self.verdicts += 1
            self.agreement += vote["agreement"]
            self.entropy += vote["entropy"]
        self.no_answer.update(name.partition(" #")[0] for name in detail.get("silent", {}))

    def to_dict(self) -> dict[str, Any]:
        """agreement and entropy are means over the verdicts; flip_rate is 1 - agreement, for repeated asking."""
        agreement = self.agreement / self.verdicts if self.verdicts else None
        stats: dict[str, Any] = {
            "kind": self.kind,
            "questions": self.questions,
            "verdicts": self.verdicts,
            "numbers": self.numbers,
            "agreement": agreement,
            "entropy": self.entropy / self.verdicts if self.verdicts else None,
            "silent": dict(self.no_answer),
        }
        if self.kind == "self_consistency":
            stats["flip_rate"] = None if agreement is None else 1 - agreement
        return stats
