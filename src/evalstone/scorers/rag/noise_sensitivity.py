"""Noise sensitivity: how well an answer withstands noise in its question.

    claimed  = the judge's own number, held within 0 and 1
    measured = mean over dimensions of: none 1, minimal 0.85, moderate 0.6, significant 0.3, severe 0.1
    agreed   = claimed, or the lower of both when they differ by more than 0.2
    noise sensitivity = max(0, agreed - min(0.1 · grave issues, 0.3))          range [0, scale], higher is better

1 means that the noise did nothing: despite its name, it measures robustness. All figures can be set. The output is the
answer to the noisy question, the input is the clean question. Undefined for a sample that lacks the noisy question or
the baseline; an empty question or answer is an error. One judge call. Source: @mastra/evals; its documentation takes
the lower of both numbers always, its code beyond the difference, as here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone.errors import ConfigError, OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.robustness import IMPACTS, JudgeRobustness, Robustness
from evalstone.scorers.base import Scorer, listed
from evalstone.types import Score, Skipped

NOISY_QUERY = "noisy_query"


@dataclass(frozen=True, kw_only=True)
class NoiseSensitivity(Scorer):
    """How well the answer withstands noise in the question.

    baseline: the answer to the clean question; the sample's reference if not given. noisy_query: the question with
    noise; `noisy_query` in the sample's metadata if not given. noise: its kind, in a word, for the judge. none to
    severe: the weights. discrepancy: how far both numbers may differ. issue, issue_limit: what each grave issue costs,
    and all together at most.
    """

    name = "noise_sensitivity"
    asks = (JudgeRobustness,)
    bands = (
        (0.8, "the noise did next to nothing"),
        (0.5, "noticeably worse under noise"),
        (0.2, "the noise took something important"),
        (0.0, "the answer followed the noise"),
    )
    advice = (
        "See which dimension suffered. Where false statements were taken up, instruct the model to question what it is "
        "told; where it strayed, restate the question at the end of the prompt."
    )

    baseline: str | None = None
    noisy_query: str | None = None
    noise: str = ""
    none: float = 1.0
    minimal: float = 0.85
    moderate: float = 0.6
    significant: float = 0.3
    severe: float = 0.1
    discrepancy: float = 0.2
    issue: float = 0.1
    issue_limit: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("baseline", "noisy_query"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ConfigError(
                    f"{self.name}: {name} must be a text that is not empty; leave it out to take the sample's"
                )
        for impact in IMPACTS:
            if not 0 <= getattr(self, impact) <= 1:
                raise ConfigError(f"the weight of impact {impact} must be in [0, 1], not {getattr(self, impact)}")
        for name in ("discrepancy", "issue", "issue_limit"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{self.name}: {name} must be a number from 0, not {getattr(self, name)}")

    async def score(
        self,
        ask: Ask,
        *,
        input: str,
        output: str,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Score | Skipped:
        baseline = reference if self.baseline is None else self.baseline
        noisy = (metadata or {}).get(NOISY_QUERY) if self.noisy_query is None else self.noisy_query
        if baseline is None or noisy is None:
            absent = ["a baseline (or reference)"] * (baseline is None) + ["noisy_query in metadata"] * (noisy is None)
            return Skipped(f"{self.name} needs {' and '.join(absent)}")
        texts = {"the question": input, "the answer": output, "the baseline": baseline, "the noisy question": noisy}
        for told, text in texts.items():
            if not isinstance(text, str) or not text:
                raise OutcomeError(f"{self.name}: {told} is empty or no text")
        found = await ask(
            JudgeRobustness(
                question=input, baseline=baseline, noisy_question=noisy, answer=output, noise=self.noise or "not named"
            )
        )
        return Score(robustness(found, self) * self.scale, self.scale, _reason(found), found)


def robustness(found: Robustness, figures: NoiseSensitivity) -> float:
    """The formula above; without dimensions the judge's own number, less the issues."""
    agreed = max(0.0, min(1.0, found.robustness))
    if found.dimensions:
        total = 0.0
        for impact in found.dimensions:
            total += getattr(figures, impact.impact)
        measured = total / len(found.dimensions)
        if abs(agreed - measured) > figures.discrepancy:
            agreed = min(agreed, measured)
    return max(0.0, agreed - min(len(found.issues) * figures.issue, figures.issue_limit))


def _reason(found: Robustness) -> str:
    told = [f"the judge's number is {found.robustness:g}"]
    for impact in reversed(IMPACTS):
        if hit := [d.dimension for d in found.dimensions if d.impact == impact]:
            told.append(f"{impact}: {', '.join(hit)}")
    if found.issues:
        told.append(f"grave issues: {listed(found.issues)}")
    return "; ".join(told) + "."
