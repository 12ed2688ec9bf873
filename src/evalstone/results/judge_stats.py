"""What a run's judges of judges did: how much was escalated and what that saved, how far they agreed, who was mute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from evalstone.types import JudgeCall, Record


class Judging:
    """Counts over a run's records, each question of each judge once, however many scorers asked it."""

    def __init__(self) -> None:
        self._judges: dict[str, _Cascade | _Vote] = {}
        self._seen: set[int] = set()

    def add(self, record: Record) -> None:
        """Count a record's steps, and those of their members."""
        for step in record.steps:
            self._count(step)

    def _count(self, step: JudgeCall) -> None:
        kind = (step.detail or {}).get("kind")
        if kind is not None:
            key = hash((step.judge, step.fingerprint, step.repeat_index))
            if key not in self._seen:
                self._seen.add(key)
                made = _Cascade if kind == "cascade" else _Vote
                self._judges.setdefault(step.judge, made(str(kind))).add(step, step.detail or {})
        for member in step.members:
            self._count(member)

    def told(self) -> dict[str, dict[str, Any]]:
        """The counts by judge, as they stand in `summary.json`."""
        return {judge: counts.told() for judge, counts in self._judges.items()}


class _Cascade:
    """The questions of one cascade."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.then = ""
        self.questions: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.escalated = 0.0
        self.costs: dict[str, list[float | None]] = defaultdict(list)

    def add(self, step: JudgeCall, detail: Mapping[str, Any]) -> None:
        self.then = str(detail["then"])
        self.questions[step.question] += 1
        self.escalated += float(detail["escalated"])
        self.kept[step.question] += not detail["escalated"]
        paid = [member.cost for member in step.members if member.judge == self.then and not member.cached]
        self.costs[step.question] += paid

    def told(self) -> dict[str, Any]:
        """saved_cost: what the questions that were kept would have cost, at the mean cost of those of their kind that
        were escalated and paid for in this run; None where there was none, or its price is unknown."""
        count = self.questions.total()
        return {
            "kind": self.kind,
            "questions": count,
            "escalated": self.escalated,
            "share": self.escalated / count,
            "then": self.then,
            "saved_calls": self.kept.total(),
            "saved_cost": self._saved(),
        }

    def _saved(self) -> float | None:
        total = 0.0
        for kind, count in self.kept.items():
            known = [cost for cost in self.costs[kind] if cost is not None]
            if count and (not known or len(known) < len(self.costs[kind])):
                return None
            total += count * sum(known) / len(known) if count else 0.0
        return total


class _Vote:
    """The questions of one panel, or of one judge that is asked repeatedly."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.questions = 0
        self.verdicts = 0
        self.numbers = 0
        self.agreement = 0.0
        self.entropy = 0.0
        self.silent: Counter[str] = Counter()

    def add(self, step: JudgeCall, detail: Mapping[str, Any]) -> None:
        self.questions += 1
        for vote in detail.get("verdicts", ()):
            if vote.get("agreement") is None:
                self.numbers += 1
                continue
            self.verdicts += 1
            self.agreement += vote["agreement"]
            self.entropy += vote["entropy"]
        self.silent.update(name.partition(" #")[0] for name in detail.get("silent", {}))

    def told(self) -> dict[str, Any]:
        """agreement, entropy: the means over the verdicts. flip_rate: 1 - agreement, for repeated asking."""
        agreement = self.agreement / self.verdicts if self.verdicts else None
        told: dict[str, Any] = {
            "kind": self.kind,
            "questions": self.questions,
            "verdicts": self.verdicts,
            "numbers": self.numbers,
            "agreement": agreement,
            "entropy": self.entropy / self.verdicts if self.verdicts else None,
            "silent": dict(self.silent),
        }
        if self.kind == "self_consistency":
            told["flip_rate"] = None if agreement is None else 1 - agreement
        return told
