"""The fixture `evalstone`: scores outputs in a test, and checks scores.

What a check raises names the score, what is required, and the evidence. Its traceback ends in the test: that of
evalstone's own frames says nothing more.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, Unpack, cast

import pytest

from evalstone._core import sync
from evalstone._core.declarations import check_argument
from evalstone._core.display import count, safe
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.api import ascore_each, plan_for_one
from evalstone.compat.spring import EvaluationRequest, EvaluationResponse, Evaluator, JudgeEvaluator
from evalstone.datasets import Samples
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.reading import Reading
from evalstone.errors import BudgetExceeded, ConfigError, EvalstoneError, JudgeError, OutcomeError
from evalstone.judges import Judge, parse_judge
from evalstone.judges.base import JudgeSpec
from evalstone.results.gate import Gate, gate
from evalstone.results.gate_criteria import Inconclusive
from evalstone.results.human_labels import LabelsSpec
from evalstone.results.largest_change import BySetting
from evalstone.results.missing_scores import Missing
from evalstone.results.run import Run
from evalstone.results.views.gate import check_cells, check_name, required
from evalstone.results.views.samples import goodness, with_texts
from evalstone.run.bounds import Bound, bounds_of
from evalstone.run.execute import execute
from evalstone.run.plan import Plan, scorer_info
from evalstone.run.planning import TargetSpec, UserSpec, plan_for
from evalstone.scorers import Scorer
from evalstone.scorers.base import ScorerSpec
from evalstone.stats.gates import Decision
from evalstone.testing.explain import LONGEST, Check, explained, sample_lines
from evalstone.testing.names import PROPERTIES, SCORED, system_of
from evalstone.testing.settings import settings_of
from evalstone.testing.summary import as_data, write_test_run
from evalstone.types import Failed, Record, Sample, SampleFields, Skipped
from evalstone.types.records import TARGET_FAILED

T = TypeVar("T")
P = ParamSpec("P")
WORST = 3
"""How many samples a gate that failed shows."""


def _blocking(asynchronous: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """`sync.blocking` of a method, whose errors are raised without the frames they came through."""
    blocking = sync.blocking(asynchronous)

    @functools.wraps(blocking)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return blocking(*args, **kwargs)
        except (AssertionError, EvalstoneError) as error:
            raise error.with_traceback(None) from None

    return call


class Evalstone:
    """What a test scores with.

    Answers are kept in the session's ledger and calls count against its budget. Every method that scores has an
    asynchronous form: `ascore`, `aassert_scores`, `aevaluate`, `aassert_passed`.
    """

    def __init__(self, node: pytest.Item, judge: JudgeSpec) -> None:
        self.judge: Judge
        """Who answers the scorers' questions, unless a call names another judge: the fixture `evalstone_judge`."""
        try:
            self.judge = parse_judge(judge)
        except ConfigError as error:
            raise ConfigError("the fixture evalstone_judge: ", error) from None
        self._node = node
        self._settings = settings_of(node.config)

    # ---- One sample ----

    async def ascore(
        self,
        scorer: ScorerSpec,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        judge: JudgeSpec | None = None,
        keep_reasoning: bool = False,
        **fields: Unpack[SampleFields],
    ) -> Record:
        """Score one sample: `evalstone.score("faithfulness", output="…", context=["…"])`.

        Args and errors: those of `evalstone.score`, without the ledger, which is the session's.
        """
        __tracebackhide__ = True
        _, records = await _here(self._scored([scorer], sample, fields, judge, keep_reasoning=keep_reasoning))
        return records[0]

    async def aassert_scores(
        self,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        min: Mapping[Any, float] | None = None,
        max: Mapping[Any, float] | None = None,
        judge: JudgeSpec | None = None,
        keep_reasoning: bool = False,
        **fields: Unpack[SampleFields],
    ) -> Mapping[str, Record]:
        """Check that each score of a sample reaches its threshold:
        `evalstone.assert_scores(min={"faithfulness": 0.9}, max={"hallucination": 0.1}, output="…", context=["…"])`.

        Args:
            sample: The sample as a whole; or give its fields by name.
            min: Scorer (a name, a Scorer or a function) to lowest acceptable score, where higher is better.
            max: Scorer to highest acceptable score, where lower is better.
            judge: Who answers the scorers' questions.
            keep_reasoning: Whether a model's reasoning in front of the output is scored as a part of it.

        Returns:
            The records, by the scorers as they are in `min` and `max` if these are names, else by their own names.

        Raises:
            AssertionError: A score misses its threshold, was skipped, or failed; with the evidence.
            ConfigError: For an unknown scorer, judge or field, and for a threshold that doesn't fit its scorer.
        """
        __tracebackhide__ = True
        bounds = self._bounds(min, max)
        scorers = [bound.scorer for bound in bounds]
        plan, records = await _here(self._scored(scorers, sample, fields, judge, keep_reasoning=keep_reasoning))
        checks = [
            Check(scorer_info(bound.scorer), record, bound.threshold)
            for bound, record in zip(bounds, records, strict=True)
        ]
        if not all(check.passed for check in checks):
            raise AssertionError(explained(checks, next(iter(plan.dataset)), keeps_reasoning=keep_reasoning))
        return {bound.name: record for bound, record in zip(bounds, records, strict=True)}

    def _bounds(self, min: Mapping[Any, float] | None, max: Mapping[Any, float] | None) -> Sequence[Bound]:
        __tracebackhide__ = True
        try:
            if bounds := bounds_of(min, max):
                return bounds
            raise ConfigError('name scorers and their thresholds: assert_scores(min={"faithfulness": 0.9}, …)')
        except ConfigError as error:
            _raise(error)

    async def _scored(
        self,
        scorers: Iterable[ScorerSpec],
        sample: Sample | Mapping[str, Any] | None,
        fields: Mapping[str, Any],
        judge: JudgeSpec | None,
        *,
        keep_reasoning: bool,
    ) -> tuple[Plan, tuple[Record, ...]]:
        judge = self.judge if judge is None else judge
        plan = plan_for_one(sample, fields, list(scorers), judge=judge, keep_reasoning=keep_reasoning)
        return plan, await self.score_plan(plan)

    async def score_plan(
        self, plan: Plan, *, ledger: str | Path | None = None, budget: float | None = None
    ) -> tuple[Record, ...]:
        """The records of a plan of one sample, by default with the session's ledger and budget."""
        records = await ascore_each(
            plan, ledger=ledger or self._settings.ledger, budget=self._settings.budget if budget is None else budget
        )
        for scorer, record in zip(plan.scorers, records, strict=True):
            self._keep(scorer, record)
            if record.value is not None:
                self._property(scorer.name, record.value)
        return records

    def _keep(self, scorer: Scorer, record: Record) -> None:
        self._node.stash.setdefault(SCORED, []).append(as_data(scorer_info(scorer), record, system_of(self._node)))

    def _property(self, name: str, value: object) -> None:
        """Add a property for JUnit XML, which takes no control characters in names."""
        added = safe(name), value
        self._node.user_properties.append(added)
        self._node.stash[PROPERTIES].append(added)

    # ---- Datasets ----

    async def aevaluate(
        self,
        samples: Samples,
        scorers: ScorerSpec | Iterable[ScorerSpec],
        *,
        judge: JudgeSpec | None = None,
        target: TargetSpec | None = None,
        trials: int | None = None,
        user: UserSpec | None = None,
        map: ColumnMapping | None = None,
        limit: int | None = None,
        keep_reasoning: bool = False,
    ) -> Run:
        """Evaluate samples with scorers.

        Args and errors: those of `evalstone.evaluate`. A target answers every sample anew, and `trials` times
        (`--evalstone-trials` by default). A run that the session's budget ends early raises BudgetExceeded.
        """
        __tracebackhide__ = True
        repeats = {} if target is None else {"trials": trials or self._settings.trials or 1}
        if target is None and trials is not None:
            repeats = {"trials": trials}  # which is refused for more than one
        options: dict[str, Any] = {
            "target": target,
            "user": user,
            "reading": Reading(map=map),
            "limit": limit,
            "keep_reasoning": keep_reasoning,
            **repeats,
        }

        async def evaluated() -> Run:
            plan = plan_for(
                samples,
                scorers,
                judge=self.judge if judge is None else judge,
                ledger=self._settings.ledger,
                **options,
            )
            run = await self.run_plan(plan)
            if not run.complete:  # a mean over a part of the samples must not pass for that of all
                raise BudgetExceeded(f"the run is incomplete: {run.stop_reason}")
            return run

        return await _here(evaluated())

    async def run_plan(self, plan: Plan) -> Run:
        """The run of a plan. It begins anew if it was interrupted: what answers may have changed since."""
        settings = self._settings
        by_signature = {scorer.signature: scorer for scorer in plan.scorers}
        run = await execute(
            plan,
            ledger=settings.ledger,
            resume=False,
            budget=settings.budget,
            on_record=lambda record: self._keep(by_signature[record.signature], record),
            name=self._node.nodeid,
        )
        for line in run.summary:
            if line.mean is not None:
                self._property(run.titles[line.info.signature], line.mean)
        if settings.report is not None:
            write_test_run(run, settings.report, self._node)
        return run

    def assert_gate(
        self,
        run: Run,
        *,
        min: Mapping[str, float] | None = None,
        max: Mapping[str, float] | None = None,
        pass_rate: Mapping[str, tuple[float, float]] | None = None,
        max_regression: Mapping[str, float] | None = None,
        max_difference: Mapping[str, float] | None = None,
        require: Sequence[str] = (),
        baseline: Run | None = None,
        alpha: float | None = 0.05,
        look: int = 1,
        missing: Missing = "worst",
        max_change: BySetting = None,
        allow_mismatch: bool = False,
        labels: Mapping[str, LabelsSpec] | None = None,
        baseline_labels: Mapping[str, LabelsSpec] | None = None,
        inconclusive: Inconclusive = "fail",
    ) -> Gate:
        """Check that a run meets criteria, by a statistical test: `evalstone.assert_gate(run, min={"rouge_l": 0.6})`.

        Args:
            run: The run.
            inconclusive: What a test does whose samples don't decide it: "fail", "pass", or "report", which skips it.
                One in which a scorer has no score, or scores failed and `missing` doesn't ignore them, fails.

        The other parameters are those of `evalstone.gate`.

        Returns:
            The gate.

        Raises:
            AssertionError: A check fails, is inconclusive, or the run is incomplete; with the table of checks and the
                worst samples.
            ConfigError: Those of `evalstone.gate`.
        """
        __tracebackhide__ = True
        check_argument("inconclusive", inconclusive, Inconclusive)
        try:
            result = gate(
                run,
                min=min,
                max=max,
                pass_rate=pass_rate,
                max_regression=max_regression,
                max_difference=max_difference,
                require=require,
                baseline=baseline,
                alpha=alpha,
                look=look,
                missing=missing,
                max_change=max_change,
                allow_mismatch=allow_mismatch,
                labels=labels,
                baseline_labels=baseline_labels,
            )
        except EvalstoneError as error:
            _raise(error)
        return self.check_gate(result, inconclusive=inconclusive)

    def check_gate(self, result: Gate, *, inconclusive: Inconclusive, front_end: FrontEnd = PYTHON) -> Gate:
        """The gate if it passes; see `assert_gate`. front_end: how its text writes settings."""
        __tracebackhide__ = True
        run, missing, shown = result.run, result.missing, result.text(front_end)
        self._property("verdict", result.verdict)
        if not run.complete:
            raise AssertionError(f"the run is incomplete: {safe(run.stop_reason)}\n\n{shown}")
        missed = [one for one in result.decisions if one.verdict != "pass"]
        noun = "sample" if run.trials == 1 else "answer"
        heads = "; ".join(_head(one, noun) for one in missed)
        undecided = result.verdict == "inconclusive" and _measured(run, result.criteria.scorers, missing)
        if result.verdict == "pass" or (undecided and inconclusive == "pass"):
            return result
        if undecided and inconclusive == "report":
            # Not the line in this file, at which pytest would count the skips of different tests as one.
            raise pytest.skip.Exception(heads, _use_item_location=True)
        # Where failures are left out, they are not why the test fails.
        counted = missing != "ignore" or any(one.estimate is None for one in missed)
        raise AssertionError(
            "\n".join(
                [
                    *(_unscored(run, result.criteria.scorers, noun) if counted else ()),
                    heads,
                    "",
                    shown,
                    *_worst(run, result.criteria.scorers, result),
                ]
            )
        )

    # ---- Evaluators ----

    async def aassert_passed(self, evaluator: Evaluator, request: EvaluationRequest) -> EvaluationResponse:
        """Check that an evaluator of `evalstone.compat.spring`, or one of your own, passes a response.

        An evaluator of evalstone keeps its judge, ledger and budget; without one, it has the session's.

        Returns:
            The response.

        Raises:
            AssertionError: The response failed, was not decided, or could not be judged; with the feedback.
        """
        __tracebackhide__ = True
        sample = None
        try:
            if isinstance(evaluator, JudgeEvaluator):
                sample = evaluator.sample(request)
                response = await _here(self._judged(evaluator, sample))
            else:
                response = await evaluator.aevaluate(request)
        except (JudgeError, OutcomeError) as error:
            raise AssertionError(f"{_name(evaluator)} could not judge the response: {safe(str(error), 400)}") from None
        if response.passed is True:
            return response
        score = "" if response.score is None else f" with a score of {response.score:g}"
        threshold = response.metadata.get("threshold")
        requirement = "" if threshold is None or response.score is None else f", and must be at least {threshold:g}"
        status = {"failed": "failed the response", "undecided": "did not decide", "error": "could not judge it"}
        lines = [f"{_name(evaluator)} {status[response.status]}{score}{requirement}: {safe(response.feedback, 400)}"]
        for number, text in enumerate(request.documents, start=1):
            lines.append(f"  document {number}: “{safe(text, 400)}”")
        for name, text in (("question", request.user_text), ("answer", request.response_content)):
            lines += [f"  {name}: “{safe(text, 400)}”"] * bool(text)
        raise AssertionError("\n".join(lines))

    async def _judged(self, evaluator: JudgeEvaluator, sample: Sample) -> EvaluationResponse:
        evaluator = evaluator if evaluator.judge is not None else replace(evaluator, judge=self.judge)
        scorer = evaluator.as_scorer()
        if evaluator.on_undecided == "raise":
            scorer = replace(scorer, on_undecided="keep")
        plan = plan_for_one(sample, {}, scorer, judge=cast(Judge, evaluator.judge))
        (record,) = await self.score_plan(plan, ledger=evaluator.ledger, budget=evaluator.budget)
        return evaluator.response(scorer, record)

    # ---- Synchronous forms ----

    score = _blocking(ascore)
    assert_scores = _blocking(aassert_scores)
    evaluate = _blocking(aevaluate)
    assert_passed = _blocking(aassert_passed)


def made_for(node: pytest.Item, judge: JudgeSpec) -> Evalstone:
    """What a test scores with. A wrong setting or judge fails the test without the source of the plugin."""
    try:
        return Evalstone(node, judge)
    except ConfigError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _head(decision: Decision, noun: str) -> str:
    """What is wrong with a check that didn't pass. noun: what it counts: samples, or their answers in trials."""
    name, rule = safe(check_name(decision)), required(decision)
    if decision.estimate is None:
        return f"{name} has no score, and must be {rule}"
    if decision.kind == "require":
        return f"{name} has the best score in {check_cells(decision)[0]} {noun}s, and must have it in all"
    value = f"{name} is {check_cells(decision)[0]}"
    if decision.verdict == "inconclusive":
        auxiliary = "doesn't" if decision.n == 1 else "don't"
        return f"{value}, and {count(decision.n, noun)} {auxiliary} decide whether it is {rule}"
    return f"{value}, and must be {rule}"


def _unscored(run: Run, scorers: Sequence[str], noun: str) -> Iterator[str]:
    """How many samples, or answers, failed, and why: their scores are missing from what the checks say. And why scorers
    that have no score skipped theirs."""
    titles = {run[name].info.signature: run.titles[run[name].info.signature] for name in scorers}
    records = [record for record in run.records if record.signature in titles]
    errors: dict[str, str] = {}
    for record in records:
        if isinstance(failed := record.outcome, Failed) and record.key not in errors:
            by = "" if failed.by_target else f"{titles[record.signature]}: "
            errors[record.key] = f"{by}{failed.error.removeprefix(TARGET_FAILED)}"
    if errors:
        kinds = Counter(errors.values()).most_common()
        others = f"; and {count(len(kinds) - 1, 'other error')}" if kinds[1:] else ""
        total = len({record.key for record in records})
        yield f"{len(errors):,} of {count(total, noun)} failed: {safe(kinds[0][0], LONGEST)}{others}"
    for line in [run[name] for name in scorers]:
        outcomes = [record.outcome for record in records if record.signature == line.info.signature]
        if not line.n_score and (reasons := Counter(one.reason for one in outcomes if isinstance(one, Skipped))):
            reason, share = reasons.most_common(1)[0][0], f"{reasons.total():,} of {count(len(outcomes), noun)}"
            yield f"{safe(titles[line.info.signature])} skipped {share}: {safe(reason, LONGEST)}"


def _name(evaluator: object) -> str:
    return type(evaluator).__name__


async def _here(work: Coroutine[Any, Any, T]) -> T:
    """The result of evalstone's own code. Its errors are raised from here, without the frames they came through."""
    __tracebackhide__ = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work.close()
        raise ConfigError(
            "this test does not run on asyncio, which the asynchronous methods need; use score, assert_scores, "
            "evaluate or assert_passed"
        ) from None
    try:
        return await work
    except EvalstoneError as error:
        _raise(error)


def _raise(error: EvalstoneError) -> NoReturn:
    __tracebackhide__ = True
    raise error.with_traceback(None) from None


def _measured(run: Run, scorers: Sequence[str], missing: Missing) -> bool:
    """Whether each checked scorer has scores, and none failed: otherwise it isn't the samples that don't decide."""
    lines = [run[name] for name in scorers]
    return all(line.n_score and (missing == "ignore" or not line.n_failed) for line in lines)


def _worst(run: Run, scorers: Sequence[str], result: Gate) -> Iterator[str]:
    """The worst samples of the scorers whose checks don't pass, with the evidence."""
    missed = [one.name for one in result.decisions if one.verdict != "pass"]
    names = [name for name in scorers if any(one == name or one.startswith(f"{name} ") for one in missed)]
    infos = {run[name].info.signature: run[name].info for name in names}
    scored = [
        (goodness(record, infos[record.signature]), record) for record in run.records if record.signature in infos
    ]
    bad = [(-1.0 if good is None else good, record) for good, record in scored if good is None or good < 1]
    keys = list(dict.fromkeys(record.key for _, record in sorted(bad, key=itemgetter(0))))[:WORST]
    keeps = bool(run.keeps_reasoning)
    if keys:
        yield "\nWorst samples:"
    for key, sample in with_texts(run.samples, keys):
        records = [record for _, record in bad if record.key == key]
        checks = [Check(infos[record.signature], record) for record in records]
        yield f"{safe(key)}: {'; '.join(check.text(run.titles[check.info.signature]) for check in checks)}"
        yield from (f"  {line}" for line in sample_lines(checks, sample or Sample(id=key), keeps_reasoning=keeps))
