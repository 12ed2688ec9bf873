from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, cast

from evalstone._core.declarations import Rule
from evalstone.errors import ConfigError, OutcomeError
from evalstone.questions.alignment import CheckCriteria, CriterionVerdict
from evalstone.questions.base import Ask
from evalstone.questions.criteria import WriteCriteria
from evalstone.scorers.base import Scorer, is_absent
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.needs import METADATA
from evalstone.scorers.reasons import reason_with
from evalstone.types import RUBRICS, Criterion, Sample, Score, Skipped, parse_criteria, rubric_of


def meets(criteria: Sequence[Criterion], met: Sequence[bool]) -> bool:
    """Whether every required criterion is met. If none is required, all of them must be met."""
    required = [m for criterion, m in zip(criteria, met, strict=True) if criterion.required]
    return all(required or met)


_RUBRIC = f"{METADATA}rubric"
_OTHER_RUBRICS = tuple(METADATA + name for name in RUBRICS if METADATA + name != _RUBRIC)
_CRITERIA = Rule("a checklist or a list of criteria", lambda _: True, parse_criteria)


class Rubric(DefinedText):
    """Whether the answer meets every required criterion.

        rubric = 1 if every required criterion is met, else 0          range [0, scale], higher is better

    If no criterion is required, all of them count as required. The criteria are those of the scorer, or else `rubrics`
    or `rubric` in the sample's metadata, or `rubric` in `requestContext` or `additionalContext` there. With `generate`,
    the judge writes them for any other sample from its input and reference, once for all answers. Undefined for a
    sample without a rubric. One judge call, and one more per input to write the criteria. Source: @mastra/evals, which
    uses the judge's copy of the required flags and gives an empty rubric the full score.

    Attributes:
        criteria: A checklist with one criterion per line, or a list of texts, Criterion values and tables.
        generate: Whether the judge writes the criteria of samples that have none. It doesn't see the answer.
    """

    name = "rubric"
    version = 2
    questions = (CheckCriteria,)
    required_fields = ("output", _RUBRIC)
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {_RUBRIC: _OTHER_RUBRICS}
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {_RUBRIC: ("criteria",)}
    case_metadata = RUBRICS
    interpretation = ((1.0, "every required criterion is met"), (0.0, "a required criterion is not met"))
    advice = (
        "The reason lists the criteria that are not met. If one is often in doubt, it may be two criteria: write one "
        "per line, so that a stranger could tell from the answer alone whether it is met."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("1 if every required criterion is met, else 0"),
        "mastra": Definition("the same; a blank answer is judged", undefined="1", blank=("output",), sides=REQUEST),
    }
    definition: Literal["evalstone", "mastra"] = OURS
    _usual: ClassVar[tuple[str, ...]] = ("criteria",)

    criteria: Annotated[Sequence[Criterion] | Sequence[str] | str, _CRITERIA] = ()
    generate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.generate and self.criteria:
            raise ConfigError(f"{self.name}: generate writes criteria, and criteria has some; leave one of them out")
        if self.generate:
            object.__setattr__(self, "questions", (WriteCriteria, CheckCriteria))
            own = {**self.alternatives, _RUBRIC: (*_OTHER_RUBRICS, "input")}
            object.__setattr__(self, "alternatives", own)

    def frozen(self) -> Scorer:
        return replace(self, generate=False) if self.generate else self

    def check_case(self, metadata: Mapping[str, Any]) -> None:
        if not self.criteria:
            rubric_of(metadata)

    def present(self, values: Mapping[str, Any], sample: Sample | None = None) -> dict[str, Any] | Score | Skipped:
        present = super().present(values, sample)
        if isinstance(present, Skipped) and not is_absent(values["output"]):  # it is the rubric that is absent
            return self.undefined(present.reason)
        return present

    async def score(
        self,
        ask: Ask,
        *,
        output: str,
        input: str | None = None,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Score | Skipped:
        criteria = cast("tuple[Criterion, ...]", self.criteria)
        if not criteria:
            try:
                criteria = rubric_of(metadata or {})
            except ConfigError as error:
                raise OutcomeError(f"{self.name}: ", error) from None
        written = not criteria and self.generate and bool(input)
        if written:
            criteria = await written_criteria(ask, input or "", reference)
        if not criteria:
            return self.undefined(self.needs_text([_RUBRIC]))
        descriptions = tuple(criterion.description for criterion in criteria)
        verdicts = await ask(CheckCriteria(criteria=descriptions, task=input or "", answer=output))
        value = self.scale if meets(criteria, [v.met for v in verdicts]) else 0.0
        evidence = {"criteria": criteria, "verdicts": verdicts} if written else verdicts
        return Score(value, _reason(criteria, verdicts), evidence=evidence)


async def written_criteria(ask: Ask, task: str, reference: str | None) -> tuple[Criterion, ...]:
    """The criteria that the judge writes for answers to a task."""
    written = await ask(WriteCriteria(task=task, reference=reference or ""))
    return tuple(Criterion(each.description, each.required) for each in written)


def _reason(criteria: Sequence[Criterion], verdicts: Sequence[CriterionVerdict]) -> str:
    pairs = list(zip(criteria, verdicts, strict=True))
    return reason_with(
        f"{sum(v.met for v in verdicts)} of {len(verdicts)} criteria are met",
        ("required and not met", [v.criterion for c, v in pairs if c.required and not v.met]),
        ("optional and not met", [v.criterion for c, v in pairs if not c.required and not v.met]),
    )
