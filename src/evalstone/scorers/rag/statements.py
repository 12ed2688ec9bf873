"""Answer relevancy and answer similarity: how the answer's statements relate to the question or the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from evalstone._core.declarations import Range
from evalstone._core.display import count
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.statements import (
    MATCHES,
    CompareStatements,
    JudgeStatements,
    ListStatements,
    StatementComparison,
    StatementVerdict,
)
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.reasons import reason_with
from evalstone.types import Score, Skipped

DEFAULT_WEIGHT = 0.3


def addressing_share(verdicts: Sequence[StatementVerdict], weight: float) -> float:
    """(yes + weight · partly) / all, for at least one verdict."""
    full = sum(v.addresses == "yes" for v in verdicts)
    partly = sum(v.addresses == "partly" for v in verdicts)
    return (full + weight * partly) / len(verdicts)


def not_off_topic_share(verdicts: Sequence[StatementVerdict], _: float) -> float:
    """(yes + partly) / all, for at least one verdict."""
    return addressing_share(verdicts, 1.0)


class AnswerRelevancy(DefinedText):
    """How much of the answer addresses the question.

        answer relevancy = (addressing + w · partly addressing) / statements,   w = 0.3          range [0, scale]

    Higher is better. Relevancy is not correctness: a wrong answer to the question addresses it. `definition` applies
    another system's formula to the same answers. Undefined for an answer without statements. Two judge calls. Source:
    @mastra/evals. ragas has another measure of this name, by embeddings.

    Attributes:
        uncertainty_weight: The weight w of a statement that partly addresses the question, in [0, 1].
    """

    name = "answer_relevancy"
    version = 2
    questions = (ListStatements, JudgeStatements)
    interpretation = (
        (0.9, "the answer sticks to the question"),
        (0.6, "some of it is off topic"),
        (0.3, "much of it is off topic"),
        (0.0, "the answer does not address the question"),
    )
    advice = (
        "Ask the model to answer first and keep background short. Check that the question reaches the model unchanged."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("(addressing + w · partly) / statements, w = 0.3", addressing_share),
        "deepeval": Definition("(addressing + partly) / statements", not_off_topic_share, "1"),
        "mastra": Definition(
            "(addressing + w · partly) / statements, w = 0.3",
            addressing_share,
            "0",
            blank=("input", "output"),
            sides=REQUEST,
        ),
    }
    definition: Literal["evalstone", "deepeval", "mastra"] = OURS

    uncertainty_weight: Annotated[float, Range(0, 1)] = DEFAULT_WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.definition == "deepeval" and self.uncertainty_weight != DEFAULT_WEIGHT:
            raise ConfigError(f"{self.name}: the deepeval definition has no uncertainty_weight; leave it out")

    async def score(self, ask: Ask, *, input: str, output: str) -> Score | Skipped:
        statements = await ask(ListStatements(answer=output))
        if not statements:
            return self.undefined("the answer makes no statement")
        verdicts = await ask(JudgeStatements(question=input, statements=statements))
        value = self.compute(verdicts, self.uncertainty_weight) * self.scale
        return Score(value, _relevancy_reason(verdicts), evidence=verdicts)


def _relevancy_reason(verdicts: Sequence[StatementVerdict]) -> str:
    off_topic = [v.statement for v in verdicts if v.addresses == "no"]
    partly = sum(v.addresses == "partly" for v in verdicts)
    full = len(verdicts) - len(off_topic) - partly
    verb = "addresses" if len(verdicts) == 1 else "address"
    reason = f"{full} of {count(len(verdicts), 'statement')} {verb} the question, {partly} partly"
    return reason_with(reason, ("off topic", off_topic))


EXTRA_LIMIT = 0.2


class AnswerSimilarity(DefinedText):
    """How closely the answer matches the reference in content.

        credit  = exact 1 + b, semantic t, partial t / 2, missing -m       b = 0.2, t = 0.8, m = 0.15
        base    = Σ over statements of the reference of credit  /  (statements · (1 + b))
        penalty = contradictions · 1  +  min(extra statements · 0.05, 0.2)
        answer similarity = base - penalty, clipped to [0, 1]          range [0, scale]

    Higher is better. All numbers except the 0.2 are parameters. The bonus makes exact wording the standard: an answer
    that says everything in other words gets 0.8 / 1.2 = 0.67. Undefined when the reference makes no statement, and
    without a reference, unless require_reference=False makes that 0. Three judge calls; the first is shared with answer
    relevancy. Source: @mastra/evals; its documentation doesn't divide the cost of missing statements, but its code
    does.

    Attributes:
        semantic: The credit for a statement in other words; half of it for part of the statement.
        exact_bonus: The extra credit for the same words.
        missing: The penalty for each missing statement.
        contradiction: The penalty for each contradicted statement.
        extra: The penalty for each statement beyond the reference.
        require_reference: Skip a sample without a reference; False scores it 0.
    """

    name = "answer_similarity"
    questions = (ListStatements, ListStatements, CompareStatements)
    required_fields = ("output", "reference")
    interpretation = (
        (0.9, "the same, almost word for word"),
        (0.6, "the same in other words"),
        (0.3, "part of it is missing or wrong"),
        (0.0, "the answer says something else, or contradicts the reference"),
    )
    advice = (
        "Look at contradictions first, since by default each one costs the whole score; then at what is missing. If a "
        "paraphrase is just as good, set exact_bonus to 0 and semantic to 1."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("base - penalty, clipped to [0, 1]"),
        "mastra": Definition(
            "the same; a blank answer is judged, a blank reference an error",
            undefined="0",
            blank=("output", "reference"),
        ),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    semantic: Annotated[float, Range(0, 1)] = 0.8
    exact_bonus: Annotated[float, Range(0)] = 0.2
    missing: Annotated[float, Range(0)] = 0.15
    contradiction: Annotated[float, Range(0)] = 1.0
    extra: Annotated[float, Range(0)] = 0.05
    require_reference: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.require_reference:
            object.__setattr__(self, "required_fields", ("output",))

    def similarity(self, comparison: StatementComparison) -> float:
        """The formula, for at least one statement of the reference."""
        best = 1 + self.exact_bonus
        credit = {"exact": best, "semantic": self.semantic, "partial": self.semantic * 0.5, "missing": -self.missing}
        total = 0.0
        for match in comparison.matches:
            total += credit[match.match]
        value = total / (len(comparison.matches) * best)
        value -= len(comparison.contradictions) * self.contradiction
        value -= min(len(comparison.extra) * self.extra, EXTRA_LIMIT)
        return max(0.0, min(1.0, value))

    async def score(self, ask: Ask, *, output: str, reference: str = "") -> Score | Skipped:
        if is_blank(reference):
            if self.require_reference:
                raise OutcomeError(f"{self.name} needs a reference; the sample's is blank")
            return Score(0.0, "There is no reference to compare with.")
        answer_statements = await ask(ListStatements(answer=output))
        reference_statements = await ask(ListStatements(answer=reference))
        if not reference_statements:
            return self.undefined("the reference makes no statement")
        comparison = await ask(CompareStatements(reference=reference_statements, answer=answer_statements))
        return Score(self.similarity(comparison) * self.scale, _similarity_reason(comparison), evidence=comparison)


def _similarity_reason(comparison: StatementComparison) -> str:
    counts = ((kind, sum(m.match == kind for m in comparison.matches)) for kind in MATCHES)
    return reason_with(
        f"of {len(comparison.matches)} statements of the reference "
        + ", ".join(f"{n} {kind}" for kind, n in counts if n),
        ("missing", [m.statement for m in comparison.matches if m.match == "missing"]),
        ("contradicted", [c.reference for c in comparison.contradictions]),
        ("beyond the reference", comparison.extra),
    )
