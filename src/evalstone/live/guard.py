"""Guards: check an answer before it is sent."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar, Unpack, cast

from evalstone._core import sync
from evalstone._core.declarations import Range, check_argument
from evalstone._core.display import joined, safe, sentence
from evalstone._core.guards import is_array, is_mapping
from evalstone._core.redaction import masked
from evalstone._core.truth import NoTruthValue
from evalstone.agents.reasoning import has_reasoning
from evalstone.api import one_sample
from evalstone.errors import ConfigError, DataError, EvalstoneError, described, error_text
from evalstone.judges.base import Judge, JudgeSpec, leaves
from evalstone.judges.lexical import LexicalJudge
from evalstone.live.frames import USER_ERRORS, copied
from evalstone.live.samples import read_sample
from evalstone.live.sender import LOGGED, OncePerKind
from evalstone.questions.claims import VerifyClaims
from evalstone.report.notes import sentence_of
from evalstone.results.run_notes import reasoning_note
from evalstone.results.summary import scorer_titles
from evalstone.run.bounds import bounds_of
from evalstone.run.opening import open_session
from evalstone.run.plan import scorer_info
from evalstone.run.planning import plan_for
from evalstone.run.scoring import score_sample
from evalstone.scorers import Scorer
from evalstone.targets.answers import Answer
from evalstone.types import SAMPLE_FIELDS, Failed, Record, Sample, SampleFields, Score, Skipped, reaches

log = logging.getLogger("evalstone.live")
P = ParamSpec("P")
R = TypeVar("R")

GuardMode: TypeAlias = Literal["block", "flag"]
OnUndefined: TypeAlias = Literal["block", "pass"]
LOCAL_TIMEOUT = 1.0
"""Seconds within which a guard without a remote judge decides."""
THREADS = 4
"""Answers that the guards of a process check in parallel. Others wait, and waiting counts toward their timeout."""
ARGUMENTS = frozenset(SAMPLE_FIELDS) - {"output"}
"""The fields of a sample that a protected function may have as parameters."""
_NO_FALLBACK: Any = object()
UNSUPPORTED = ("not_mentioned", "contradicted")


@dataclass(frozen=True, kw_only=True)
class GuardVerdict(NoTruthValue):
    """The decision of a guard about one answer."""

    passed: bool
    """Whether every score reaches its threshold. `on_undefined` decides for scorers without a score."""
    blocked: bool
    """Whether the answer must not be sent: it didn't pass, and the guard's mode is "block"."""
    blocked_by: tuple[str, ...]
    """The scorers whose thresholds the answer misses, in any mode."""
    undefined: tuple[str, ...]
    """The scorers without a score: skipped, failed, or too slow."""
    records: tuple[Record, ...]
    """One record per scorer, in order."""
    explanation: str
    """Why the answer didn't pass, and which scorers have no score: a sentence per scorer, with the claims that no
    passage supports and what the nearest passage says. Empty if every scorer has a score that reaches its threshold. It
    quotes the answer: escape it like any other text of a model."""
    seconds: float
    """How long the decision took."""

    def __str__(self) -> str:
        """The decision and its reason: `blocked by faithfulness: faithfulness is 0, below 0.9: …`."""
        decision = "passed" if self.passed else "blocked" if self.blocked else "flagged"
        by = f" by {safe(joined(self.blocked_by))}" if self.blocked_by else ""
        return f"{decision}{by}" + (f": {self.explanation}" if self.explanation else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Guard(NoTruthValue):
    """Checks answers; `guard` makes one. Call it, or await `acheck`, with a sample's fields, or `protect` a function.
    It stores nothing and writes to no ledger."""

    _tested_by = "what it returns when it is called: guard(…)(output=…).passed"

    thresholds: tuple[tuple[Scorer, float], ...]
    judge: Judge
    mode: GuardMode
    on_undefined: OnUndefined
    timeout: float
    on_verdict: Callable[[GuardVerdict], None] | None
    keep_reasoning: bool = False
    _tell: Callable[[str, str], None] = field(init=False, repr=False, default_factory=lambda: OncePerKind("guard").warn)

    def __call__(
        self, sample: Sample | Mapping[str, Any] | None = None, **fields: Unpack[SampleFields]
    ) -> GuardVerdict:
        """Check an answer: `check(input=…, output=…, context=…)`. Waits at most `timeout` seconds.

        Raises:
            ConfigError: For an unknown field of a sample.
            DataError: For a value that can't be read as a field.
        """
        if callable(sample):
            raise ConfigError("a guard is called with an answer; decorate a function with its method protect")
        work = self._start(sample, fields)
        try:
            concurrent.futures.wait([work.future], work.left)
        finally:
            work.future.cancel()
        return self._verdict(work)

    async def acheck(
        self, sample: Sample | Mapping[str, Any] | None = None, **fields: Unpack[SampleFields]
    ) -> GuardVerdict:
        """Check an answer in another thread, so that a long text doesn't block the event loop.

        Raises:
            ConfigError: For an unknown field of a sample.
            DataError: For a value that can't be read as a field.
        """
        work = self._start(sample, fields)
        waiting = asyncio.wrap_future(work.future)
        try:
            await asyncio.wait([waiting], timeout=work.left)
        finally:
            waiting.cancel()
        return self._verdict(work)

    def protect(
        self,
        fallback: Callable[[GuardVerdict], object] | object = _NO_FALLBACK,
        *,
        sample: Callable[..., Sample | Mapping[str, Any]] | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Make a decorator for a function, `def` or `async def`, that returns answers. It never returns a blocked one.

        Args:
            fallback: What to return instead of a blocked answer; or a function that takes the verdict and returns it,
                which can be `async def` if the decorated function is. With mode="flag", no fallback is needed.
            sample: A function that takes the answer and the function's arguments, and returns the sample to check. By
                default, the sample has the arguments that are named like fields of a sample (input, context, …), and
                the returned answer: text, or whatever a target can return, such as an `Answer` with its context.

        Raises:
            ConfigError: If there is no fallback and the mode is "block", or if the function is a generator, because
                its answer would be sent before it is complete.

        The decorated function raises whatever the function or the fallback raises. The sample has the arguments as they
        were when the function was called. An answer that can't be turned into a sample has no score.
        """
        if self.mode == "block" and fallback is _NO_FALLBACK:
            raise ConfigError(
                'a guard with mode="block" needs what is returned in place of a blocked answer: protect(fallback=…)'
            )

        if sample is not None and sync.is_async(sample):
            raise ConfigError("sample must be a plain function, which returns the sample to check")

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if not callable(function):
                raise ConfigError(f"protect takes a function, not {type(function).__name__}")
            name = sync.name_of(function)
            if sync.is_generator(function) or sync.is_async_generator(function):
                raise ConfigError(
                    f"{name} is a generator: what it yields is sent before the answer is whole. "
                    "Collect the answer and protect the function that does"
                )
            in_loop = sync.is_async(function)
            if sync.is_async(fallback) and not in_loop:
                raise ConfigError(f"{name} is a plain function, so its fallback must not be a coroutine function")
            signature = inspect.signature(function)
            logged = set[str]()

            def warn(kind: str, text: str) -> None:
                if kind not in logged:
                    logged.add(kind)
                    log.warning("%s: %s", name, text)

            def read(
                answer: Any, called: float, args: tuple[Any, ...], kwargs: dict[str, Any]
            ) -> Sample | GuardVerdict:
                started = time.monotonic()
                try:
                    if sample is not None:
                        return read_sample(sample(answer, *args, **kwargs))
                    bound = signature.bind(*args, **kwargs)
                    bound.apply_defaults()
                    fields = {name: value for name, value in bound.arguments.items() if name in ARGUMENTS}
                    return _answered(fields, answer, started - called)
                except USER_ERRORS as error:  # the function has answered, which a guard must not undo
                    problem = f"the answer can't be checked: {error_text(error)}"
                    warn("unread", safe(masked(problem), LOGGED))
                    return self._decision(
                        [self._failed(scorer, None, problem) for scorer, _ in self.thresholds], started
                    )

            def sent(verdict: GuardVerdict, answer: Any) -> Any:
                if sample is None and verdict.undefined and (problem := self._unnamed(verdict, signature)):
                    hint = "rename a parameter, return an Answer with it, or give protect a function: sample=…"
                    warn("unnamed", f"{problem}; {hint}")
                if not verdict.blocked:
                    return answer
                return fallback(verdict) if callable(fallback) else fallback

            if in_loop:

                @functools.wraps(function)
                async def acall(*args: P.args, **kwargs: P.kwargs) -> Any:
                    copies, called = _copies(args, kwargs), time.monotonic()
                    answer: Any = await cast("Awaitable[Any]", function(*args, **kwargs))
                    read_sample = read(answer, called, *copies)
                    verdict = await self.acheck(read_sample) if isinstance(read_sample, Sample) else read_sample
                    result = sent(verdict, answer)
                    return await result if verdict.blocked and inspect.isawaitable(result) else result

                return cast("Callable[P, R]", acall)

            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> R:
                copies, called = _copies(args, kwargs), time.monotonic()
                answer = function(*args, **kwargs)
                read_sample = read(answer, called, *copies)
                return sent(self(read_sample) if isinstance(read_sample, Sample) else read_sample, answer)

            return call

        return decorate

    @functools.cached_property
    def _titles(self) -> Mapping[str, str]:
        return scorer_titles([scorer_info(scorer) for scorer, _ in self.thresholds])

    def _failed(self, scorer: Scorer, sample: Sample | None, error: str) -> Record:
        return Record(
            sample_id="" if sample is None else sample.id,
            scorer=self._titles[scorer.signature],
            signature=scorer.signature,
            outcome=Failed(error),
            group=None if sample is None else sample.cluster,
        )

    def _unnamed(self, verdict: GuardVerdict, signature: inspect.Signature) -> str:
        """Which fields a scorer lacks because the protected function has no such parameters; "" if none."""
        for (scorer, _), record in zip(self.thresholds, verdict.records, strict=True):
            fields = [need.text for need in scorer.needs if not need.within(("output", *signature.parameters))]
            if (
                fields
                and isinstance(record.outcome, Skipped)
                and record.outcome.reason.startswith(f"{scorer.name} needs")
            ):
                which = "which is" if len(fields) == 1 else "which are"
                return f"{scorer.name} needs {joined(fields)}, {which} not among its parameters"
        return ""

    def _start(self, sample: Sample | Mapping[str, Any] | None, fields: Mapping[str, Any]) -> _Work:
        work = _Work(read_sample(one_sample(sample, fields)), time.monotonic() + self.timeout)
        try:
            work.future = sync.worker(THREADS).submit(contextvars.copy_context().run, self._score, work)
        except RuntimeError as error:  # the process can't start a thread; a guard must answer
            work.error = described(error)
            work.future = concurrent.futures.Future()
            work.future.set_result(None)
        return work

    def _score(self, work: _Work) -> None:
        if has_reasoning(work.sample):
            self._tell("reasoning", sentence_of(reasoning_note(1, kept=self.keep_reasoning)))
        try:
            asyncio.run(self._score_all(work))
        except TimeoutError:
            pass
        except EvalstoneError as error:  # of opening a judge; a guard must answer
            work.error = str(error)

    async def _score_all(self, work: _Work) -> None:
        own = (judge for scorer, _ in self.thresholds for judge in scorer.judges)
        opened = open_session(self.judge, *own, keep_reasoning=self.keep_reasoning)
        async with asyncio.timeout(work.left), opened as session:

            async def score(scorer: Scorer) -> None:
                try:
                    work.records[scorer.signature] = await score_sample(
                        scorer, work.sample, session, self._titles[scorer.signature]
                    )
                except EvalstoneError as error:  # it would end a run: a refused key, a judge that is gone
                    work.records[scorer.signature] = self._failed(scorer, work.sample, str(error))

            await asyncio.gather(*(score(scorer) for scorer, _ in self.thresholds))

    def _verdict(self, work: _Work) -> GuardVerdict:
        late = work.error or f"no score within {self.timeout:g} s"
        if work.future.done() and not work.future.cancelled() and (error := work.future.exception()) is not None:
            late = described(error)
        done = dict(work.records)  # a copy: a late score must not change the verdict
        records = [
            done[scorer.signature] if scorer.signature in done else self._failed(scorer, work.sample, late)
            for scorer, _ in self.thresholds
        ]
        return self._decision(records, work.started)

    def _decision(self, records: Sequence[Record], started: float) -> GuardVerdict:
        """The verdict for one record of each scorer."""
        blocked_by: list[str] = []
        undefined: list[str] = []
        reasons: list[str] = []
        for (scorer, threshold), record in zip(self.thresholds, records, strict=True):
            title, outcome = record.scorer, record.outcome
            if not isinstance(outcome, Score):
                undefined.append(title)
                if self.on_undefined == "block":
                    blocked_by.append(title)
                why = outcome.reason
                reasons.append(f"{title} has no score: {safe(why).strip().rstrip('.')}.")
            elif not reaches(outcome.value, threshold, scorer.scale, lower_is_better=scorer.lower_is_better):
                blocked_by.append(title)
                beyond = "above" if scorer.lower_is_better else "below"
                reasons.append(f"{title} is {outcome.value:.3g}, {beyond} {threshold:g}: {sentence(_why(outcome))}")
        verdict = GuardVerdict(
            passed=not blocked_by,
            blocked=bool(blocked_by) and self.mode == "block",
            blocked_by=tuple(blocked_by),
            undefined=tuple(undefined),
            records=tuple(records),
            explanation=" ".join(reasons),
            seconds=time.monotonic() - started,
        )
        if self.on_verdict is not None:
            try:
                self.on_verdict(verdict)
            except USER_ERRORS as error:  # the verdict stands, and so does the request
                self._tell("on_verdict", f"on_verdict failed: {described(error)}")
        return verdict


def guard(
    *,
    min: Mapping[Any, float] | None = None,
    max: Mapping[Any, float] | None = None,
    judge: JudgeSpec = "lexical",
    mode: GuardMode = "block",
    on_undefined: OnUndefined = "block",
    timeout: float | None = None,
    on_verdict: Callable[[GuardVerdict], None] | None = None,
    keep_reasoning: bool = False,
) -> Guard:
    """Make a guard, which checks an answer before it is sent.

    An answer passes if each score is at least its `min`, or at most its `max`. Floating-point rounding errors are
    tolerated.

        check = guard(min={"faithfulness": 0.5, "contains(expected='[1]')": 1}, max={"hallucination": 0.5})
        verdict = check(input=question, output=answer, context=passages)

    Args:
        min: Scorer (a name, a Scorer or a function) to lowest acceptable score, where higher is better.
        max: Scorer to highest acceptable score, where lower is better.
        judge: The judge that answers the scorers' questions.
        mode: "block" withholds an answer that doesn't pass; "flag" returns it, and only the verdict says so.
        on_undefined: What happens to an answer if a scorer has no score (skipped, failed, or too slow): "block",
            because the answer is unchecked, or "pass". `verdict.undefined` names these scorers either way.
        timeout: Seconds after which the guard decides with the scores it has. Waiting for other answers counts. The
            default is 1; a remote judge requires a timeout.
        on_verdict: A plain function that is called with each verdict before it is returned, to log or count it. If it
            raises, the error is logged once.
        keep_reasoning: Whether a model's reasoning in front of an answer, such as <think>…</think>, is checked as a
            part of it. If False, it isn't checked, and must not be sent.

    Raises:
        ConfigError: For an unknown scorer or judge; a threshold that doesn't fit its scorer, or is reached by every
            score; and a remote judge without a timeout.
    """
    check_argument("mode", mode, GuardMode)
    check_argument("on_undefined", on_undefined, OnUndefined)
    if on_verdict is not None and (not callable(on_verdict) or sync.is_async(on_verdict)):
        raise ConfigError("on_verdict must be a plain function of a verdict")
    thresholds = tuple((bound.scorer, bound.threshold) for bound in bounds_of(min, max))
    if not thresholds:
        raise ConfigError('a guard needs a scorer and its threshold: guard(min={"faithfulness": 0.5})')
    specs = [scorer for scorer, _ in thresholds]
    for scorer, threshold in thresholds:
        if threshold == (scorer.scale if scorer.lower_is_better else 0):
            raise ConfigError(f"{scorer.name}: every score reaches a threshold of {threshold:g}")
    plan = plan_for([Sample(output="-")], {scorer.signature: scorer for scorer in specs}.values(), judge=judge)
    plan.check_scorers()
    parsed, asked = plan.judge, plan.asked_judges
    if timeout is None:
        if remote := [leaf.identity for leaf in leaves(*asked) if leaf.cacheable]:
            raise ConfigError(
                f"{joined(remote)} may take as long as the network does; name the seconds in which the guard must "
                "decide: timeout=…"
            )
        timeout = LOCAL_TIMEOUT
    if any(isinstance(leaf, LexicalJudge) for leaf in leaves(*asked)):
        from evalstone.judges.lexical.answers import answer_to  # noqa: PLC0415 - slow to import, for guards without it

        # Its model is loaded now, not within a timeout.
        answer_to(VerifyClaims(claims=("Rain fell.",), context=("Rain fell.",)))
    check_argument("timeout", timeout, Annotated[float, Range(0, threading.TIMEOUT_MAX, exclusive=True)], "guard")
    return Guard(
        thresholds=thresholds,
        judge=parsed,
        mode=mode,
        on_undefined=on_undefined,
        timeout=timeout,
        on_verdict=on_verdict,
        keep_reasoning=keep_reasoning,
    )


class _Work:
    """One answer that is being checked."""

    def __init__(self, sample: Sample, deadline: float) -> None:
        self.sample, self.started, self._deadline = sample, time.monotonic(), deadline
        self.records: dict[str, Record] = {}
        self.error = ""
        self.future: concurrent.futures.Future[None]

    @property
    def left(self) -> float:
        """The seconds until the guard must decide."""
        return max(0.0, self._deadline - time.monotonic())


def _copies(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Copies of the arguments, because the function may change them."""
    return tuple(map(copied, args)), {name: copied(value) for name, value in kwargs.items()}


def _answered(fields: Mapping[str, Any], answer: Any, seconds: float) -> Sample:
    """The sample of a function's arguments, with what it returned. Raises DataError if that isn't an answer."""
    try:
        read = Answer.of(answer, by="the function")
    except DataError as error:
        raise DataError(error, "; give protect a function of the answer and the arguments: sample=…") from None
    given = {name: value for name, value in fields.items() if value is not None}
    return read.fill(read_sample(given) if given else Sample(), seconds=seconds)


def _why(outcome: Score) -> str:
    """The claims that no passage supports, each with the judge's reason; otherwise the score's own reason."""
    items = outcome.evidence if is_array(outcome.evidence) else []  # pyright: ignore[reportUnknownMemberType]
    parts = [item for item in items if is_mapping(item)]
    claims = [
        f"“{safe(str(part['claim']))}” ({safe(str(part.get('reason') or part['verdict']))})"
        for part in parts
        if "claim" in part and part.get("verdict") in UNSUPPORTED
    ]
    return "; ".join(claims) or safe(outcome.reason)
