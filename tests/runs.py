"""Runs with known scores, for the tests of what looks at runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone import Run, Sample, Score, Scorer, Skipped, evaluate
from evalstone.questions.claims import ClaimVerdict


class Given(Scorer):
    """The number that stands in the answer; "skip" is skipped and "fail" fails."""

    name = "given"

    def score(self, *, output: str) -> Score | Skipped:
        if output == "skip":
            return Skipped("nothing to say")
        return Score(float(output) * self.scale, reason=f"says {output}")


class Harm(Given):
    """The same, where lower is better."""

    name = "harm"
    lower_is_better = True


class Claimed(Scorer):
    """One claim, the whole answer, that the first passage contradicts."""

    name = "claimed"

    def score(self, *, output: str, context: Sequence[str]) -> Score:
        verdict = ClaimVerdict(output, "contradicted", (1,), reason=f"because {context[0]}")
        return Score(0.0, f"0 of 1 claim is supported: {output}", evidence=(verdict,))


def samples_of(
    answers: Sequence[object], *, question: str = "How much?", metadata: Sequence[Mapping[str, Any]] | None = None
) -> list[Sample]:
    """One sample an answer, with the ids s1, s2 and so on. metadata: of each, with its group and weight."""
    samples: list[Sample] = []
    for number, answer in enumerate(answers, start=1):
        entries = dict(metadata[number - 1]) if metadata else {}
        group, weight = entries.pop("group", None), entries.pop("weight", None)
        samples.append(
            Sample(id=f"s{number}", input=question, output=str(answer), metadata=entries, group=group, weight=weight)
        )
    return samples


def run_of(answers: Sequence[object], scorers: Any = None, **more: Any) -> Run:
    """A run whose scores are the answers."""
    return evaluate(samples_of(answers, **more), [Given()] if scorers is None else scorers, ledger=None)
