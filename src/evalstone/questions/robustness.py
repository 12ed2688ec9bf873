"""Robustness: the impact of noise in a question on the answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

from evalstone._core.guards import is_mapping
from evalstone._core.parsing import member, object_schema, texts
from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.markers import Between, Subject, WorstFirst
from evalstone.questions.reply import number_in, read_list, read_reply, schema_of

Impact: TypeAlias = Literal["none", "minimal", "moderate", "significant", "severe"]
IMPACTS: tuple[Impact, ...] = get_args(Impact)
DIMENSIONS = ("content_accuracy", "completeness", "relevance", "consistency", "hallucination_resistance")


@dataclass(frozen=True)
class NoiseImpact(NoTruthValue):
    """The impact of the noise in one dimension."""

    reason: str
    dimension: Annotated[str, Subject()]
    impact: Annotated[Impact, WorstFirst(*reversed(IMPACTS))]


@dataclass(frozen=True)
class Robustness(NoTruthValue):
    """The impact in each dimension, the serious issues, and the judge's overall number (should be from 0 to 1)."""

    dimensions: tuple[NoiseImpact, ...]
    issues: tuple[str, ...]
    robustness: Annotated[float, Between(0, 1, (1, 0.85, 0.6, 0.3, 0.1)), WorstFirst()]


JUDGE_ROBUSTNESS = Prompt(
    instructions="""\
You judge how well an answer withstood noise. A question was asked twice: without noise, which gave the baseline, and
with noise, which gave the answer that you judge. Noise is what does not belong to the question: false statements, text
about something else, attempts to lead the answer astray. Do not judge the baseline.

Judge five dimensions:
- "content_accuracy": are its facts as right as before?
- "completeness": does it still cover what was asked?
- "relevance": is it still about what was asked?
- "consistency": is its message the same?
- "hallucination_resistance": did it keep out what the noise made up?

For each dimension give, in this order:
- reason: what changed against the baseline, and which part of the noise caused it.
- impact:
  - "none": it is as good as the baseline, in any words.
  - "minimal": a trace of the noise that changes nothing, such as a passing mention.
  - "moderate": noticeably worse; a reader would still get the right answer.
  - "significant": an important part is lost, wrong or led by the noise.
  - "severe": the answer follows the noise, or is of no use for the question.

Then give:
- issues: each serious problem that the noise caused, in a few words; empty if there is none.
- robustness: the impact on the whole: 1 none, 0.85 minimal, 0.6 moderate, 0.3 significant, 0.1 severe.""",
    template=(
        "{{question}}\n\n{{baseline}}\n\n{{noisy_question}}\n\n{{noise}}\n\n{{answer}}\n\n"
        "Judge what the noise did to the answer."
    ),
)


class JudgeRobustness(Question[Robustness]):
    """What did the noise in a question do to the answer, against the baseline that the clean question gave?

    noise: the kind of noise; may be empty. The overall number is kept even if it is outside 0 to 1. Dimensions may also
    be a list of objects with any names.
    """

    kind = "judge_robustness"
    optional = ("noise",)
    question: str
    baseline: str
    noisy_question: str
    answer: str
    noise: str
    prompt: Prompt = JUDGE_ROBUSTNESS

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        impact = schema_of(NoiseImpact, self, subject=False)
        properties = schema_of(Robustness, self)["properties"]
        dimensions = object_schema({name: {"$ref": "#/$defs/impact"} for name in DIMENSIONS})
        return {**object_schema({**properties, "dimensions": dimensions}), "$defs": {"impact": impact}}

    def from_json(self, data: Any) -> Robustness:
        dimensions = self._dimensions(member(data, "dimensions"))
        number = float(number_in(member(data, "robustness"), "robustness", None, None))
        return Robustness(dimensions, texts(data.get("issues", []), "issues"), number)

    def _dimensions(self, data: Any) -> tuple[NoiseImpact, ...]:
        """The impacts in `{"relevance": {…}, …}`, one for each dimension, or in a list with names."""
        if not is_mapping(data):
            listed: tuple[NoiseImpact, ...] = read_list(NoiseImpact, data, self, "dimensions")
            names = [impact.dimension for impact in listed]
            if repeated := [name for name in names if names.count(name) > 1]:
                raise ReplyError(f"dimensions: {repeated[0][:40]!r} appears twice")
            return listed
        missing = [name for name in DIMENSIONS if name not in data]
        extra = [repr(name[:40]) for name in data if name not in DIMENSIONS]
        if missing or extra:
            problems = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {name}" for name in extra[:1]]
            raise ReplyError(f"dimensions: {'; '.join(problems)} (expected: {', '.join(DIMENSIONS)})")
        return tuple(
            read_reply(NoiseImpact, data[name], self, f"dimensions.{name}", subject=name) for name in DIMENSIONS
        )
