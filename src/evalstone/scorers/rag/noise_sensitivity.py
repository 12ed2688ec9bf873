from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from evalstone._core.declarations import TEXT, Range
from evalstone.errors import OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.robustness import IMPACTS, JudgeRobustness, Robustness
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.needs import METADATA
from evalstone.scorers.reasons import reason_with
from evalstone.types import Score, Skipped

NOISY_QUERY = "noisy_query"
"""The entry of the metadata, and the parameter that replaces it."""


class NoiseSensitivity(DefinedText):
    """How robust the answer is to noise in the question.

        claimed  = the judge's own number, clipped to [0, 1]
        measured = mean over dimensions of: none 1, minimal 0.85, moderate 0.6, significant 0.3, severe 0.1
        agreed   = claimed, or the lower of both when they differ by more than 0.2
        noise sensitivity = max(0, agreed - min(0.1 · grave issues, 0.3))          range [0, scale], higher is better

    1 means that the noise had no effect: despite its name, it measures robustness. All numbers are parameters. The
    output is the answer to the noisy question, and the input is the clean question. Undefined for a sample without the
    noisy question or the baseline. One judge call. Source: @mastra/evals; its documentation always takes the lower of
    both numbers, its code only if they differ by more than the limit, as here.

    Attributes:
        baseline: The answer to the clean question; by default the sample's reference.
        noisy_query: The question with noise; by default `noisy_query` in the sample's metadata.
        noise: The kind of noise, in a word, for the judge.
        none: The value of a dimension that the noise did not affect.
        minimal: The value of a dimension with a minimal impact.
        moderate: The value of a dimension with a moderate impact.
        significant: The value of a dimension with a significant impact.
        severe: The value of a dimension with a severe impact.
        discrepancy: How far the judge's number and the measured one may differ.
        issue: The penalty for each grave issue.
        issue_limit: The highest penalty for all grave issues together.
    """

    name = "noise_sensitivity"
    version = 2
    questions = (JudgeRobustness,)
    required_fields = ("input", "output", "reference", f"{METADATA}{NOISY_QUERY}")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "reference": ("baseline",),
        f"{METADATA}{NOISY_QUERY}": (NOISY_QUERY,),
    }
    case_metadata = (NOISY_QUERY,)
    interpretation = (
        (0.8, "the noise had almost no effect"),
        (0.5, "noticeably worse under noise"),
        (0.2, "the noise cost something important"),
        (0.0, "the answer followed the noise"),
    )
    advice = (
        "See which dimension suffered. If the answer adopted false statements, instruct the model to question its "
        "input. If it went off topic, repeat the question at the end of the prompt."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("max(0, agreed - min(0.1 · grave issues, 0.3))"),
        "mastra": Definition(
            "the same; an empty question or answer is an error", blank=("input", "output"), sides=REQUEST
        ),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    baseline: Annotated[str | None, TEXT] = None
    noisy_query: Annotated[str | None, TEXT] = None
    noise: str = ""
    none: Annotated[float, Range(0, 1)] = 1.0
    minimal: Annotated[float, Range(0, 1)] = 0.85
    moderate: Annotated[float, Range(0, 1)] = 0.6
    significant: Annotated[float, Range(0, 1)] = 0.3
    severe: Annotated[float, Range(0, 1)] = 0.1
    discrepancy: Annotated[float, Range(0)] = 0.2
    issue: Annotated[float, Range(0)] = 0.1
    issue_limit: Annotated[float, Range(0)] = 0.3

    def robustness(self, judged: Robustness) -> float:
        """The formula; without dimensions the judge's own number, minus the penalty for grave issues."""
        agreed = max(0.0, min(1.0, judged.robustness))
        if judged.dimensions:
            total = 0.0
            for dimension in judged.dimensions:
                total += getattr(self, dimension.impact)
            measured = total / len(judged.dimensions)
            if abs(agreed - measured) > self.discrepancy:
                agreed = min(agreed, measured)
        return max(0.0, agreed - min(len(judged.issues) * self.issue, self.issue_limit))

    async def score(
        self,
        ask: Ask,
        *,
        input: str,
        output: str,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Score | Skipped:
        baseline = reference or "" if self.baseline is None else self.baseline
        noisy: Any = (metadata or {}).get(NOISY_QUERY) if self.noisy_query is None else self.noisy_query
        texts = {"the question": input, "the answer": output, "the baseline": baseline, "the noisy question": noisy}
        for label, text in texts.items():
            if not isinstance(text, str) or not text:
                raise OutcomeError(f"{self.name}: {label} is empty or not text")
        question = JudgeRobustness(
            question=input, baseline=baseline, noisy_question=noisy, answer=output, noise=self.noise or "not named"
        )
        judged = await ask(question)
        return Score(self.robustness(judged) * self.scale, _reason(judged), evidence=judged)


def _reason(judged: Robustness) -> str:
    summary = f"the judge's number is {judged.robustness:g}"
    for impact in reversed(IMPACTS):
        if dimensions := [d.dimension for d in judged.dimensions if d.impact == impact]:
            summary += f"; {impact}: {', '.join(dimensions)}"
    return reason_with(summary, ("grave issues", judged.issues))
