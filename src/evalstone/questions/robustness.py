"""What noise in a question did to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from evalstone._core.parsing import TEXT, choice_schema, list_schema, member, object_schema, texts, validated
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.number import number_in, number_schema

Impact: TypeAlias = Literal["none", "minimal", "moderate", "significant", "severe"]
IMPACTS: tuple[Impact, ...] = get_args(Impact)
DIMENSIONS = ("content_accuracy", "completeness", "relevance", "consistency", "hallucination_resistance")


@dataclass(frozen=True)
class NoiseImpact:
    """What the noise did to the answer in one respect."""

    reason: str
    dimension: str
    impact: Impact


@dataclass(frozen=True)
class Robustness:
    """The impact in each respect, the grave problems, and the judge's overall number (meant to be from 0 to 1)."""

    dimensions: tuple[NoiseImpact, ...]
    issues: tuple[str, ...]
    robustness: float


JUDGE_ROBUSTNESS = Prompt(
    instructions="""\
You judge how well an answer withstood noise. A question was asked twice: once clean, which gave the baseline, and once
with noise in it, which gave the answer that you judge. The kind of noise may be named. Noise is what does not belong to
the question: false statements, matter beside it, attempts to lead the answer astray. The baseline is not to be judged;
a difference in wording that changes nothing is no impact.

Judge five dimensions:
- "content_accuracy": are its facts as right as before?
- "completeness": does it still cover what was asked?
- "relevance": does it still speak of what was asked?
- "consistency": is its message the same?
- "hallucination_resistance": did it keep out what the noise made up?

For each dimension give, in this order:
- reason: what changed against the baseline, and which part of the noise did it.
- impact:
  - "none": it is as good as the baseline, in whatever words.
  - "minimal": a trace of the noise that changes nothing of what is conveyed, such as a passing mention of it.
  - "moderate": noticeably worse; a reader would still get the right answer.
  - "significant": an important part is lost, wrong or led by the noise.
  - "severe": the answer follows the noise, or is of no use for the question that was asked.

Then give:
- "issues": each grave problem that the noise caused, as a short phrase; an empty list when there is none.
- "robustness": a number from 0 to 1 for the whole: 1 untouched, 0.85 a trace, 0.6 noticeably worse, 0.3 an important
  part gone, 0.1 overthrown.

Reply with a JSON object that has one member for each of the five dimensions, under its name:
{"dimensions": {"content_accuracy": {"reason": "…", "impact": "none"}, "completeness": …}, "issues": [],
"robustness": 0.9}""",
    template=(
        "{{question}}\n\n{{baseline}}\n\n{{noisy_question}}\n\n{{noise}}\n\n{{answer}}\n\n"
        "Judge what the noise did to the answer."
    ),
)


@dataclass(frozen=True)
class _ImpactReply:
    reason: str
    impact: Impact


@dataclass(frozen=True)
class JudgeRobustness(Question[Robustness]):
    """What did the noise in a question do to the answer, against the baseline that the clean question gave?

    noise: the kind of noise; may be empty. The number is read as it was given, also outside 0 to 1. A list of
    dimensions, each with its name, is read as well, whatever their number and names.
    """

    kind: ClassVar[str] = "judge_robustness"

    question: str
    baseline: str
    noisy_question: str
    answer: str
    noise: str
    prompt: Prompt = JUDGE_ROBUSTNESS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "impact": choice_schema(IMPACTS)})
        dimensions = object_schema(dict.fromkeys(DIMENSIONS, item))
        return object_schema({"dimensions": dimensions, "issues": list_schema(TEXT), "robustness": number_schema()})

    def interpret(self, data: Any) -> Robustness:
        found = _impacts(member(data, "dimensions"))
        number = number_in(member(data, "robustness"), "robustness", bounded=False)
        issues = texts(cast("Mapping[str, Any]", data).get("issues", []), "issues")
        return Robustness(found, issues, number)

    def example(self) -> Any:
        item = {"reason": "The same facts in other words; the false date was not taken up.", "impact": "none"}
        return {"dimensions": dict.fromkeys(DIMENSIONS, item), "issues": [], "robustness": 0.9}


def _impacts(given: Any) -> tuple[NoiseImpact, ...]:
    """The impacts in `{"relevance": {…}, …}`, one for each dimension, or in a list whose entries name theirs."""
    if isinstance(given, Mapping):
        named = cast("Mapping[str, Any]", given)
        strange = [name[:40] for name in named if name not in DIMENSIONS]
        absent = [name for name in DIMENSIONS if name not in named]
        if strange or absent:
            told = [f"missing: {', '.join(absent)}"] * bool(absent) + [f"unknown: {name!r}" for name in strange[:1]]
            raise ReplyError(f"dimensions: {'; '.join(told)} (wanted are {', '.join(DIMENSIONS)})")
        read = [(name, validated(_ImpactReply, named[name], f"dimensions.{name}")) for name in DIMENSIONS]
        return tuple(NoiseImpact(reply.reason, name, reply.impact) for name, reply in read)
    found = validated(list[NoiseImpact], given, "dimensions")
    names = [impact.dimension for impact in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ReplyError(f"dimensions: {twice[0][:40]!r} stands there twice")
    return tuple(found)
