"""Scorers that apply another scorer: to each turn, to each step, or several times."""

from __future__ import annotations

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from types import CoroutineType
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, cast

from evalstone._core.declarations import TEXT, Range, Rule, check_settings
from evalstone._core.display import count
from evalstone._core.guards import is_whole
from evalstone._core.prompts import Prompt
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone.agents.turns import step_samples, turns_of
from evalstone.errors import ConfigError, EvalstoneError, JudgeDeclined, JudgeError, OutcomeError
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.questions.base import Ask, Question, QuestionSpec, context_limits_of
from evalstone.scorers.base import Scorer, ScorerSpec
from evalstone.scorers.needs import Need, listed_needs, needs_of, root_of
from evalstone.scorers.reasons import listed
from evalstone.types import Sample, Score, Skipped
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")
MOST_REPEATS = 1000
SHOWN = 10
_SCORER = Rule("a scorer: a name, a table, a Scorer or a function", lambda _: True)
_TURN = Rule("a whole number: 1 for the first turn, -1 for the last", lambda value: is_whole(value) and value != 0)
_PLAIN = re.compile(r"[\w.:/-]+(?: [\w.:/-]+)*")

ScoredPart: TypeAlias = "tuple[Mapping[str, Any], Sample | None]"
"""The label of a part in the evidence, such as {"turn": 2}, and the part; None for a part that can't be scored."""


class Wrapper(Scorer, ABC, kw_only=False):
    """A scorer that applies another one to parts of a sample, or several times, and takes the mean.

    Scale, direction, judges and interpretation are those of the other scorer, and so is the signature, apart from the
    name. A part without a score is left out. If one part fails, the sample fails, and the remaining judge calls are
    canceled.

    Attributes:
        scorer: The scorer to apply: a name, a table, a Scorer or a function. Set its parameters there.
    """

    part: ClassVar[str]
    """The noun for one part."""
    never: ClassVar[tuple[str, ...]] = ()
    """The sample fields that no part has."""

    scorer: Annotated[ReadAs[ScorerSpec, Scorer], _SCORER]
    _: KW_ONLY
    scale: float = field(default=1.0, init=False)
    explain: bool = field(default=False, init=False)
    judge: ReadAs[JudgeSpec | None, Judge | None] = field(default=NOTHING, init=False)

    def __post_init__(self) -> None:
        from evalstone.scorers.registry import parse_scorer  # noqa: PLC0415 - the registry imports this module

        check_settings(self, self.name)  # before they become a part of the name
        try:
            inner = parse_scorer(self.scorer)
        except ConfigError as error:
            raise ConfigError(f"{self.name}: ", error) from None
        if any(isinstance(scorer, type(self)) for scorer in applied(inner)):
            raise ConfigError(f"{self.name} can't be applied to {inner.name}, which already applies it")
        if lacking := [need for need in inner.needs if all(root_of(name) in self.never for name in need.fields)]:
            needs = f"which needs {listed_needs(lacking)}: a {self.part} has none"
            raise ConfigError(f"{self.name} can't be applied to {inner.name}, {needs}")
        object.__setattr__(self, "scorer", inner)
        self.check()
        for name in ("scale", "judge", "lower_is_better", "interpretation", "advice", "questions", "case_metadata"):
            object.__setattr__(self, name, getattr(inner, name))
        object.__setattr__(self, "name", f"{inner.name} {self.suffix}")
        super().__post_init__()

    def check(self) -> None:
        """Raise ConfigError for a scorer that this one can't be applied to."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The text after the other scorer's name. It has every parameter, since the signature has no others."""

    @abstractmethod
    def parts(self, sample: Sample) -> Sequence[ScoredPart]:
        """Return all parts of a sample."""

    def chosen(self, parts: Sequence[ScoredPart]) -> Sequence[ScoredPart]:
        """Return the parts to score."""
        return parts

    def missing(self, parts: Sequence[ScoredPart]) -> str:
        """Return the reason why none of these parts is scored."""
        return f"{self.name} needs {listed_needs(needs_of(self))}"

    @property
    def signature(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The signature of the other scorer under this name: `faithfulness per turn(5c1d77b2, 9a0e41c3)@4`."""
        return self.name + self.scorer.signature.removeprefix(self.scorer.name)

    def check_case(self, metadata: Mapping[str, Any]) -> None:
        self.scorer.check_case(metadata)

    @property
    def checks_cases(self) -> bool:
        return self.scorer.checks_cases

    def frozen(self) -> Scorer:
        inner = self.scorer.frozen()
        return self if inner is self.scorer else replace(self, scorer=inner)

    @property
    def judges(self) -> tuple[Judge, ...]:
        return self.scorer.judges

    @property
    def asks_shared_judge(self) -> bool:
        return self.scorer.asks_shared_judge

    @property
    def may_ask(self) -> bool:
        return self.scorer.may_ask

    def questions_to(self, judge: Judge | None) -> Sequence[QuestionSpec]:
        return self.scorer.questions_to(judge)

    def require_declared(self, question: Question[Any]) -> None:
        self.scorer.require_declared(question)

    @property
    def asks_again(self) -> bool:
        return self.scorer.asks_again

    @property
    def extracts(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.scorer.extracts

    def prompts(self) -> tuple[Prompt, ...]:
        return self.scorer.prompts()

    def description(self) -> str:
        return f"{self.suffix}: {self.scorer.description()}"

    def values(self, sample: Sample) -> dict[str, Any]:
        return {"sample": sample}

    @property
    def needs(self) -> tuple[Need, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (*needs_of(self), *self.scorer.needs)

    def absent(self, values: Mapping[str, Any], sample: Sample | None = None) -> list[str]:
        """The fields that the sample lacks: the parts' own, or those that the other scorer needs and no part has."""
        if not (parts := self.parts(values["sample"])):
            return list(self.required_fields)
        chosen = [part for _, part in self.chosen(parts) if part is not None]
        lacking = [[need.field for need in self.scorer.lacks(part)] for part in chosen]
        if not all(lacking):
            return []
        names = list(dict.fromkeys(name for absent in lacking for name in absent))
        return [name for name in names if all(name in absent for absent in lacking)] or names

    async def run(self, ask: Ask, sample: Sample) -> Score | Skipped:
        return self.scaled(await self.score(ask, sample=sample))

    async def score(self, ask: Ask, *, sample: Sample, **fields: Any) -> Score | Skipped:
        """Return the mean over the parts that have a score."""
        all_parts = self.parts(sample)
        if not (parts := self.chosen(all_parts)):
            return Skipped(self.missing(all_parts))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._outcome(ask, index, *part)) for index, part in enumerate(parts)]
        outcomes = [task.result() for task in tasks]
        scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
        if not scores:
            return Skipped(self._without_score([where for where, _ in parts], cast("Sequence[Skipped]", outcomes)))
        mean = math.fsum(score.value for score in scores) / len(scores)
        evidence = [_as_data(where, outcome) for (where, _), outcome in zip(parts, outcomes, strict=True)]
        reason = self._reason([label(where) for where, _ in parts], outcomes)
        # Rounding may raise a mean of perfect scores above the scale.
        return Score(min(mean, self.scale), reason, evidence={f"{self.part}s": evidence})

    async def _outcome(self, ask: Ask, index: int, where: Mapping[str, Any], part: Sample | None) -> Score | Skipped:
        """The outcome of one part. Errors are raised with the part's label."""
        if part is None:
            return Skipped("it did not succeed")
        try:
            return await self.scorer.run(self.ask_for(ask, index), part)
        except JudgeDeclined as error:
            return Skipped(str(error))
        except JudgeError as error:
            raise JudgeError(f"{label(where)}: {error}", reply=error.reply) from None
        except OutcomeError as error:
            raise OutcomeError(f"{label(where)}: ", error) from None
        except EvalstoneError:
            raise
        except Exception as error:
            error.add_note(f"in {label(where)}")  # an exception of the user's own code
            raise

    def ask_for(self, ask: Ask, index: int) -> Ask:
        """Return the `ask` for the part at this index."""
        return ask

    def _without_score(self, wheres: Sequence[Mapping[str, Any]], outcomes: Sequence[Skipped]) -> str:
        reasons = "; ".join(dict.fromkeys(outcome.reason for outcome in outcomes))
        return f"{label(wheres[0])}: {reasons}" if len(wheres) == 1 else f"no {self.part} has a score: {reasons}"

    def _reason(self, labels: Sequence[str], outcomes: Sequence[Score | Skipped]) -> str:
        """The values of the parts, and the reason of the worst one."""
        scored = [(name, score) for name, score in zip(labels, outcomes, strict=True) if isinstance(score, Score)]
        name, worst = (max if self.lower_is_better else min)(scored, key=lambda pair: pair[1].value)
        reason = f"{name[0].upper()}{name[1:]}: {worst.reason}" if worst.reason else ""
        if len(labels) == 1:
            return reason
        values = [f"{name}: {score.value:.4g}" for name, score in scored[:SHOWN]]
        values += [f"and {len(scored) - SHOWN} more"] * (len(scored) > SHOWN)
        mean = f"Mean of {len(scored)} of {count(len(labels), self.part)} ({', '.join(values)})."
        return f"{mean} {reason}".strip()


class PerTurn(Wrapper, kw_only=False):
    """The mean of a scorer over the turns of a conversation.

        per turn = mean of the score over the turns that have one          range, direction: those of the scorer

    The turns are the sample's, or else each user message with everything up to the next one. A turn is a sample with
    its own input, output, messages, context, reference and state. If the turns come from messages, only the last one
    has a context, reference and state: the sample's. Undefined when there are no turns, none has a score, or there is
    no turn with this number. As many judge calls as the scorer makes for each turn. Source: our own.

    Attributes:
        turn: The number of the turn to score: 1 for the first, -1 for the last. None scores all turns.
    """

    name = "per_turn"
    part = "turn"
    never = ("turns",)
    required_fields = ("turns",)
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"turns": ("messages",)}

    turn: Annotated[int | None, _TURN] = None

    @property
    def suffix(self) -> str:
        if self.turn is None:
            return "per turn"
        last = "in the last turn" if self.turn == -1 else f"in turn {-self.turn} from the end"
        return f"in turn {self.turn}" if self.turn > 0 else last

    def parts(self, sample: Sample) -> Sequence[ScoredPart]:
        return [({"turn": number}, turn) for number, turn in enumerate(turns_of(sample), start=1)]

    def chosen(self, parts: Sequence[ScoredPart]) -> Sequence[ScoredPart]:
        if self.turn is None:
            return parts
        index = self.turn - 1 if self.turn > 0 else len(parts) + self.turn
        return parts[index : index + 1] if index >= 0 else ()

    def missing(self, parts: Sequence[ScoredPart]) -> str:
        if not parts:
            return super().missing(parts)
        return f"the conversation has {count(len(parts), 'turn')}, so no turn {self.turn}"


class PerStep(Wrapper, kw_only=False):
    """The mean of a scorer over the steps of a trajectory.

        per step = mean of the score over the steps that have one          range, direction: those of the scorer

    The steps are those of the sample's trajectory, including nested steps, or else the tool calls in its messages. A
    step is a sample. Its input is its arguments, or else the output of the previous step. Its output is its result, as
    text or JSON, and its state is its data. Context, instructions and metadata are the sample's. A step has no
    messages, trajectory or reference, so a scorer that requires one of them is refused, unless a field that a step has
    may stand in for it. Steps that failed or did not end are not scored. Undefined when there are no steps, none has a
    score, or none has this name. As many judge calls as the scorer makes for each step. Source: our own.

    Attributes:
        step: The name of the steps to score. None scores all steps.
    """

    name = "per_step"
    part = "step"
    never = ("turns", "messages", "trajectory", "reference", "expected_trajectory")
    required_fields = ("trajectory",)
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"trajectory": ("messages",)}

    step: Annotated[str | None, TEXT] = None

    @property
    def suffix(self) -> str:
        if self.step is None:
            return "per step"
        return f"in step {self.step if _PLAIN.fullmatch(self.step) else repr(self.step)}"

    def parts(self, sample: Sample) -> Sequence[ScoredPart]:
        steps = enumerate(step_samples(sample), start=1)
        return [({"step": number, "name": step.name}, sample_of_step) for number, (step, sample_of_step) in steps]

    def chosen(self, parts: Sequence[ScoredPart]) -> Sequence[ScoredPart]:
        return [part for part in parts if self.step in (None, part[0]["name"])]

    def missing(self, parts: Sequence[ScoredPart]) -> str:
        if not parts:
            return super().missing(parts)
        names = list(dict.fromkeys(where["name"] for where, _ in parts))
        return f"there is no step {self.step!r}; the steps are {listed(names, SHOWN)}"


class Repeated(Wrapper, kw_only=False):
    """The mean of a scorer over repeated judge calls.

        repeated = mean of the score over the repetitions that have one          range, direction: those of the scorer

    Each repetition has its own judge calls, numbered from 0 in the ledger. Number 0 is the answer without repetitions.
    The evidence has every judgment, so that the variance of the judge can be estimated. Undefined when no repetition
    has a score. `repeats` times as many judge calls as the scorer makes. Source: our own.

    Attributes:
        repeats: The number of repetitions, from 2 to 1,000. The judge's answers must be able to vary: use a model with
            a temperature above 0, or with a seed, which differs for each repetition.
    """

    name = "repeated"
    part = "judgment"

    repeats: Annotated[int, Range(2, MOST_REPEATS)] = 3

    def check(self) -> None:
        if not self.scorer.may_ask:
            raise ConfigError(f"{self.name}: {self.scorer.name} doesn't ask a judge, so its score can't vary")

    @property
    def suffix(self) -> str:
        return f"repeated {self.repeats} times"

    @property
    def asks_again(self) -> bool:
        return True

    def parts(self, sample: Sample) -> Sequence[ScoredPart]:
        return [({"judgment": number}, sample) for number in range(1, self.repeats + 1)]

    def ask_for(self, ask: Ask, index: int) -> Ask:
        return _Repetition(ask, index)


class _Repetition:
    """An `ask` for one repetition of every answer."""

    def __init__(self, ask: Ask, number: int) -> None:
        self._ask, self._number = cast(Any, ask), number

    @property
    def context_limits(self) -> ContextLimits:
        return context_limits_of(self._ask)

    def __call__(self, question: Question[A], judge: Judge | None = None) -> CoroutineType[Any, Any, A]:
        # It is not a coroutine function, so that a coroutine that isn't awaited is noticed.
        return self._ask(question, judge, self._number if question.repeatable else 0)


def applied(scorer: Scorer) -> Iterator[Scorer]:
    """A scorer and the scorers that it applies."""
    yield scorer
    if isinstance(scorer, Wrapper):
        yield from applied(scorer.scorer)


def label(where: Mapping[str, Any]) -> str:
    """The label of a part as text: "turn 2", "step 3, search"."""
    return ", ".join(f"{name} {value}" if isinstance(value, int) else str(value) for name, value in where.items())


def _as_data(where: Mapping[str, Any], outcome: Score | Skipped) -> Mapping[str, Any]:
    value = outcome.value if isinstance(outcome, Score) else None
    evidence = {"evidence": outcome.evidence} if isinstance(outcome, Score) else {}
    return {**where, "value": value, "reason": outcome.reason, **evidence}
