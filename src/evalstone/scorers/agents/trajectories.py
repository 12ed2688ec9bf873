"""Trajectory accuracy, quality and judge: whether the agent took the right steps."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, cast

from evalstone._core.declarations import Range, Rule, check_settings
from evalstone._core.display import count
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone._core.values import NamesArguments
from evalstone.agents.trajectory_comparison import (
    TrajectoryComparison,
    check_efficiency,
    compare_trajectories,
    forbidden,
    tool_failures,
)
from evalstone.errors import ConfigError
from evalstone.questions.base import Ask
from evalstone.questions.tool_use import JudgeSteps, StepVerdicts
from evalstone.scorers.agents import TrajectorySource
from evalstone.scorers.base import Scorer, as_text
from evalstone.scorers.definitions import OURS, Defined, Definition
from evalstone.scorers.reasons import listed, reason_with, shortened
from evalstone.types import (
    ExpectationData,
    ExpectedStep,
    Ordering,
    Score,
    Skipped,
    Trajectory,
    TrajectoryExpectation,
    TrajectoryStep,
)

_EXPECTED = Rule("steps, or an object with steps and limits", lambda _: True)
"""`expectation_of` reads it."""


def expectation_of(scorer: Scorer, field: str) -> TrajectoryExpectation | None:
    """The expectation in a scorer's parameter, read from plain data if necessary."""
    value = getattr(scorer, field)
    try:
        return None if value is None else TrajectoryExpectation.read(value)
    except ConfigError as error:
        raise ConfigError(f"{scorer.name}: {field}: ", error) from None


def step_line(step: TrajectoryStep | ExpectedStep) -> str:
    """A step or an expected step on one line, with its nested steps in brackets."""
    data = [f"{key}={shortened(as_text(value), 300)}" for key, value in step.data.items()]
    line = " ".join([*filter(None, [step.step_type]), step.name, *data])
    inner = step.children.steps if isinstance(step.children, TrajectoryExpectation) else step.children
    return f"{line} [{'; '.join(map(step_line, inner))}]" if inner else line


class TrajectoryAccuracy(Defined, TrajectorySource):
    """How many of the expected steps were taken, in the expected order.

        trajectory accuracy = expected steps found / expected steps - deductions      range [0, scale], higher is better

    The trajectory is the sample's, or else the tool calls in its messages. A step matches an expected step if the names
    are equal. If the expected step has a type or data, these must match too. Nested steps are ignored. The value is
    clipped to [0, 1]. With an empty list of expected steps, it is 1 for an empty trajectory, else 0.

    Undefined when no steps are expected, except with definition="mastra". No judge call. Source: @mastra/evals. Data
    are compared as JSON regardless of key order; in @mastra/evals, key order matters.

    Attributes:
        expected: The expected steps; they override those of the sample's expected trajectory.
        ordering: "relaxed": in the expected order, with any steps between them; "unordered": anywhere; "strict": each
            in its position, minus 0.5 / expected steps for each extra step. The sample's own ordering overrides it.
        allow_repeated_steps: False deducts 0.1 for each name that occurs more than once. The sample's own setting
            overrides it.
    """

    name = "trajectory_accuracy"
    version = 2
    required_fields = ("trajectory", "expected_trajectory")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"expected_trajectory": ("expected",)}
    interpretation = (
        (1.0, "the expected steps were taken"),
        (0.7, "most expected steps were taken"),
        (0.3, "many expected steps are missing or out of order"),
        (0.0, "the agent took a different path"),
    )
    advice = (
        "Read which steps are missing or out of order. If other paths are just as good, relax the expectation: set "
        "ordering to relaxed or unordered, or expect names without data."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("expected steps found / expected steps - deductions"),
        "mastra": Definition("the same; 0 where no steps are expected", otherwise=0.0),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    expected: Annotated[ReadAs[ExpectationData | None, TrajectoryExpectation | None], _EXPECTED] = NOTHING
    ordering: Ordering = "relaxed"
    allow_repeated_steps: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected", expectation_of(self, "expected"))
        if self.definition != OURS:
            object.__setattr__(self, "required_fields", ("trajectory",))

    def score(
        self, *, trajectory: Trajectory, expected_trajectory: TrajectoryExpectation | None = None
    ) -> Score | Skipped:
        own = self.expected or TrajectoryExpectation()
        defaults = TrajectoryExpectation(ordering=self.ordering, allow_repeated_steps=self.allow_repeated_steps)
        expectation = (expected_trajectory or TrajectoryExpectation()).over(own.over(defaults))
        steps = own.steps if own.steps is not None else expectation.steps
        if steps is None:
            return self.undefined("no steps are expected")
        compared = compare_trajectories(
            trajectory,
            steps,
            ordering=expectation.ordering or self.ordering,
            allow_repeated_steps=expectation.allow_repeated_steps is not False,
        )
        return Score(compared.value * self.scale, _accuracy_reason(compared), evidence=compared)


def _accuracy_reason(compared: TrajectoryComparison) -> str:
    steps = count(compared.expected, "expected step")
    return reason_with(
        f"{compared.matched} of {steps} {'was' if compared.expected == 1 else 'were'} taken",
        ("missing", compared.missing),
        ("out of order", compared.out_of_order),
        ("not expected", compared.extra),
        ("repeated", compared.repeated),
    )


def judged_value(verdicts: StepVerdicts, *, necessary: float, in_order: float, missing: float) -> float:
    """The weighted shares, clipped to [0, 1]; the weights are those of necessary, ordered and missing steps."""
    n, m = len(verdicts.steps), len(verdicts.missing)
    if not n:
        return 0.0 if m else 0.5 if verdicts.extra else 1.0
    needed = sum(v.necessary for v in verdicts.steps)
    placed = sum(v.in_order for v in verdicts.steps)
    value = necessary * needed / n + in_order * placed / n - missing * m / (n + m)
    return min(1.0, max(0.0, value))


class TrajectoryJudge(TrajectorySource):
    """Whether the steps were needed and in order, according to a judge.

        trajectory judge = 0.6 x necessary / n + 0.3 x in order / n - 0.1 x m / (n + m)
        range [0, scale], higher is better; n steps taken, m steps missing

    A perfect trajectory therefore gets 0.9 of the scale; with `necessary=2/3, in_order=1/3`, it gets all of it. The
    value is clipped to [0, 1]. A trajectory without steps gets 0 if the judge names missing steps, else 0.5 if it names
    steps that should not have been taken, else 1. The steps are the sample's trajectory, or else the tool calls in its
    messages. Undefined when the judge gives no verdict on the steps. One judge call. Source: @mastra/evals, which
    accepts any number of verdicts.

    Attributes:
        expected: The expected steps, shown to the judge; by default the sample's, if it has any.
        necessary: The weight of steps that were needed, in [0, 1].
        in_order: The weight of steps in their order, in [0, 1].
        missing: The weight of missing steps, in [0, 1].
    """

    name = "trajectory_judge"
    questions = (JudgeSteps,)
    interpretation = (
        (0.85, "the task needed these steps, in this order"),
        (0.6, "some steps were not needed, or came at the wrong time"),
        (0.3, "many steps were not needed"),
        (0.0, "the agent went off track"),
    )
    advice = (
        "Read the steps that were not needed, and the missing ones. Have the agent plan before it acts, limit the "
        "number of steps, or give the order in the instructions."
    )

    expected: Annotated[ReadAs[ExpectationData | None, TrajectoryExpectation | None], _EXPECTED] = NOTHING
    necessary: Annotated[float, Range(0, 1)] = 0.6
    in_order: Annotated[float, Range(0, 1)] = 0.3
    missing: Annotated[float, Range(0, 1)] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected", expectation_of(self, "expected"))

    async def score(
        self, ask: Ask, *, input: str, trajectory: Trajectory, expected_trajectory: TrajectoryExpectation | None = None
    ) -> Score:
        expectation = self.expected or expected_trajectory
        expected = (expectation.steps if expectation is not None else None) or ()
        question = JudgeSteps(
            task=input, steps=tuple(map(step_line, trajectory.steps)), expected=tuple(map(step_line, expected))
        )
        verdicts = await ask(question)
        value = judged_value(verdicts, necessary=self.necessary, in_order=self.in_order, missing=self.missing)
        return Score(value * self.scale, _judge_reason(verdicts), evidence=verdicts)


def _judge_reason(verdicts: StepVerdicts) -> str:
    n = len(verdicts.steps)
    needless = [v.step for v in verdicts.steps if not v.necessary]
    late = [v.step for v in verdicts.steps if not v.in_order]
    return reason_with(
        f"{n - len(needless)} of {n} steps were needed, {n - len(late)} in order" if n else "No step was taken",
        ("not needed", needless),
        ("out of order", late),
        ("missing", verdicts.missing),
        ("extra", verdicts.extra),
    )


INSIDE = 0.3
RETRIES = 2


@dataclass(frozen=True, kw_only=True)
class TrajectoryWeights(metaclass=NamesArguments):
    """The weights of the parts of a level. A negative weight counts as 0."""

    accuracy: float = 0.4
    efficiency: float = 0.3
    tool_failures: float = 0.2
    forbidden: float = 0.1

    def __post_init__(self) -> None:
        check_settings(self, type(self).__name__)


@dataclass(frozen=True)
class LevelResult:
    """The result at one level.

    Attributes:
        path: The names of the steps that lead to it.
        value: The value, including that of the levels inside.
        parts: The parts that applied, by name.
        missing: Expected steps that were not taken.
        hits: The forbidden tools and sequences that occurred.
        inside: The levels of nested steps.
    """

    path: tuple[str, ...]
    value: float
    parts: Mapping[str, float]
    missing: tuple[str, ...] = ()
    hits: tuple[str, ...] = ()
    inside: tuple[LevelResult, ...] = ()

    def walk(self) -> Iterator[LevelResult]:
        """This level and all inside it."""
        yield self
        for level in self.inside:
            yield from level.walk()


def parts_of(actual: Trajectory, expected: TrajectoryExpectation) -> dict[str, float]:
    """The parts that apply at one level, by name and rounded, except for forbidden steps."""
    parts: dict[str, float] = {}
    if expected.steps is not None:
        compared = compare_trajectories(
            actual,
            expected.steps,
            ordering=expected.ordering or "relaxed",
            allow_repeated_steps=expected.allow_repeated_steps is not False,
        )
        parts["accuracy"] = _rounded(compared.value)
    budgets = (expected.max_steps, expected.max_total_tokens, expected.max_total_seconds)
    if any(entry is not None for entry in (*budgets, expected.no_redundant_calls)):
        efficiency = check_efficiency(
            actual,
            max_steps=expected.max_steps,
            max_total_tokens=expected.max_total_tokens,
            max_total_seconds=expected.max_total_seconds,
            no_redundant_calls=expected.no_redundant_calls is not False,
        )
        parts["efficiency"] = _rounded(efficiency.value)
    retries = RETRIES if expected.max_retries_per_tool is None else expected.max_retries_per_tool
    failures = tool_failures(actual, max_retries_per_tool=retries)
    if failures.patterns:
        parts["tool_failures"] = _rounded(failures.value)
    return parts


def weighted_mean(parts: Mapping[str, float], weights: TrajectoryWeights) -> float:
    """The weighted mean of the parts; 1 if there are none, or all weights are 0."""
    shares = {name: max(0.0, getattr(weights, name)) for name in parts}
    total = sum(shares.values())
    return sum(shares[name] * value for name, value in parts.items()) / total if total else 1.0


def review(
    actual: Trajectory, expected: TrajectoryExpectation, weights: TrajectoryWeights, path: tuple[str, ...] = ()
) -> LevelResult:
    """One level and those inside it."""
    parts = parts_of(actual, expected)
    tools, sequences = expected.forbidden_tools or (), expected.forbidden_sequences or ()
    hits = forbidden(actual, tools=tools, sequences=sequences)
    if tools or sequences:
        parts["forbidden"] = 0.0 if hits else 1.0
    missing: list[str] = []
    inside: list[LevelResult] = []
    for step, children, match in inner_pairs(actual.steps, expected.steps or ()):
        below = (*path, step.name)
        if match is None:
            missing.append(step.name)
            inside.append(LevelResult(below, 0.0, {}))
        else:
            inner = Trajectory(steps=match.children, total_seconds=match.seconds)
            inside.append(review(inner, children, weights, below))
    value = 0.0 if hits else weighted_mean(parts, weights)
    if inside:
        value = (1 - INSIDE) * value + INSIDE * (sum(level.value for level in inside) / len(inside))
    if hits or any(below.hits for level in inside for below in level.walk()):
        value = 0.0
    return LevelResult(path, math.floor(value * 100 + 0.5) / 100, parts, tuple(missing), hits, tuple(inside))


def inner_pairs(
    steps: Sequence[TrajectoryStep], expected: Sequence[ExpectedStep]
) -> Iterator[tuple[ExpectedStep, TrajectoryExpectation, TrajectoryStep | None]]:
    """Each expected step with `children`, its children, and the first unmatched step of its name (and type)."""
    unmatched = list(steps)
    for step in expected:
        if step.children is not None:
            match = next((s for s in unmatched if s.name == step.name and step.step_type in (None, s.step_type)), None)
            unmatched = [s for s in unmatched if s is not match]
            yield step, step.children, match


def _rounded(value: float) -> float:
    """Two decimals, half up, as the source rounds a part. It rounds a level without adding epsilon."""
    return math.floor((value + sys.float_info.epsilon) * 100 + 0.5) / 100


def expects_something(expected: TrajectoryExpectation) -> bool:
    """Whether a trajectory could fail any of the expectations."""
    limits = (expected.max_steps, expected.max_total_tokens, expected.max_total_seconds)
    entries = (expected.steps, expected.no_redundant_calls, expected.max_retries_per_tool, *limits)
    return any(entry is not None for entry in entries) or bool(expected.forbidden_tools or expected.forbidden_sequences)


class TrajectoryQuality(Defined, TrajectorySource):
    """How well the steps meet all expectations, including those for nested steps.

        level              = Σ weight x part / Σ weight, over the parts that count; 0 after something forbidden
        trajectory quality = level, or 0.7 x level + 0.3 x mean of the levels inside steps
        range [0, scale], higher is better

    A level is a weighted mean of the parts that apply:

    - accuracy (weight 0.4), if steps are expected: the share of steps taken, as in `trajectory_accuracy`
    - efficiency (0.3), if there is a budget or `no_redundant_calls`: the mean over these limits, each 1 if it is met,
      else less
    - tool failures (0.2), if a failed call was retried: 1, minus 0.2 for each retry beyond `max_retries_per_tool` (2 by
      default)
    - forbidden (0.1), if anything is: 0 if it was done, or else 1

    A negative weight counts as 0. If all weights that apply are 0, the level is 1. An expected step with `children` is
    also scored inside, in the same way; if it was not taken, that level is 0. A forbidden step at any level makes the
    whole score 0.

    The trajectory is the sample's, or else the tool calls in its messages. Undefined when nothing is expected, except
    with definition="mastra", where it is 1 minus the cost of retries. A budget that can't be measured is an error.
    Parts and levels are rounded to two decimals before they are weighted, to give the same values as the source. No
    judge call. Source: @mastra/evals.

    Attributes:
        defaults: The expectations for every sample. A sample's own expectations override them, entry by entry.
        weights: The weight of each part of a level.
    """

    name = "trajectory_quality"
    version = 2
    required_fields = ("trajectory", "expected_trajectory")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"expected_trajectory": ("defaults",)}
    interpretation = (
        (0.95, "everything is as expected"),
        (0.7, "mostly as expected: read which part fell short"),
        (0.3, "much is missing, or far over budget"),
        (0.0, "the agent took a different path, or did something forbidden"),
    )
    advice = (
        "Read the parts. Accuracy: see which steps are missing. Efficiency: limit steps, shorten prompts, and reuse "
        "results instead of repeating calls. Tool failures: fix the tool, or tell the agent what its errors mean."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("level, or 0.7 x level + 0.3 x mean of the levels inside steps"),
        "mastra": Definition("the same; 1 less retries where nothing is expected", otherwise=1.0),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    defaults: Annotated[ReadAs[ExpectationData | None, TrajectoryExpectation | None], _EXPECTED] = NOTHING
    weights: TrajectoryWeights | Mapping[str, float] = field(default_factory=TrajectoryWeights)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "defaults", expectation_of(self, "defaults"))
        if self.definition != OURS:
            object.__setattr__(self, "required_fields", ("trajectory",))

    def score(
        self, *, trajectory: Trajectory, expected_trajectory: TrajectoryExpectation | None = None
    ) -> Score | Skipped:
        defaults = self.defaults or TrajectoryExpectation()
        expected = (expected_trajectory or TrajectoryExpectation()).over(defaults)
        level = review(trajectory, expected, cast(TrajectoryWeights, self.weights))
        if not expects_something(expected) and (self.definition == OURS or not level.parts):
            return self.undefined("nothing is expected of the trajectory")
        return Score(level.value * self.scale, _quality_reason(level), evidence=level)


def _quality_reason(level: LevelResult) -> str:
    lines: list[str] = []
    for below in level.walk():
        parts = [f"{name.replace('_', ' ')} {value:.2f}" for name, value in below.parts.items()]
        if below.missing:
            parts.append(f"not taken: {listed(below.missing)}")
        if below.hits:
            parts.append(f"did {listed(below.hits)}")
        if parts:
            lines.append(f"{' > '.join(below.path)}: {', '.join(parts)}" if below.path else ", ".join(parts))
    return "; ".join(lines) + "." if lines else "None of the expectations applied, and nothing went wrong."
