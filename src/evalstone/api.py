"""The main functions: evaluate a dataset, or score one sample."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from evalstone._core import sync
from evalstone._core.declarations import Rule, check_argument, check_flags
from evalstone._core.front_ends import Setting
from evalstone._core.storage import Location
from evalstone.datasets import Samples, load
from evalstone.datasets.columns import ColumnMapping, unknown_field
from evalstone.datasets.reading import Reading
from evalstone.errors import ConfigError, invalid
from evalstone.judges.base import JudgeSpec, MemberCalls
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.results.record_tables import Keep
from evalstone.results.run import Run
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.call_prices import costs_of_calls
from evalstone.run.case_check import acheck_cases
from evalstone.run.execute import check_names, execute
from evalstone.run.notifier import SampleResult
from evalstone.run.opening import open_session
from evalstone.run.plan import BatchOptions, Plan
from evalstone.run.planning import TargetSpec, UserSpec, plan_for
from evalstone.run.scoring import score_sample
from evalstone.run.session import AskScope
from evalstone.scorers.base import ScorerSpec
from evalstone.scorers.registry import specs_of
from evalstone.types import SAMPLE_FIELDS, Record, Sample, SampleFields

if TYPE_CHECKING:
    from evalstone.judges.cascade import Cascade, CascadeFit, LabeledQuestion
    from evalstone.results.estimate import Estimate

_TAGS = Rule("one text or several", lambda value: isinstance(value, Iterable))


async def aevaluate(
    samples: Samples,
    scorers: ScorerSpec | Iterable[ScorerSpec],
    *,
    judge: JudgeSpec | None = "lexical",
    target: TargetSpec | None = None,
    trials: int = 1,
    user: UserSpec | None = None,
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool | None = None,
    map: ColumnMapping | None = None,
    split: Mapping[str, str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    limit: int | None = None,
    keep_reasoning: bool = False,
    cache: bool = True,
    budget: float | None = None,
    batch: bool | BatchOptions = False,
    stop: StopSignal | None = None,
    on_record: Callable[[Record], Awaitable[None] | None] | None = None,
    on_sample: Callable[[SampleResult], Awaitable[None] | None] | None = None,
    name: str = "",
    tags: str | Iterable[str] = (),
    engine: str | None = None,
    out: str | Path | None = None,
    keep: Keep = "all",
) -> Run:
    """Evaluate samples with scorers.

    Args:
        samples: The samples to score: Sample values, dictionaries, a path, a table, or a Dataset.
        scorers: One or more names, Scorer values or tables.
        judge: The judge. "lexical" needs no key and no network. None if no scorer needs a judge.
        target: The system to evaluate: a function, an address, or a Target. A function receives the arguments that its
            parameters name (input, messages, context, instructions, metadata, trial, thread) and returns text or an
            `Answer`. Its answers replace the samples' outputs before scoring.
        trials: How often the target answers each sample. Every trial is scored; means and intervals are over samples.
        user: The user in conversations, for samples without `turns`: a list of messages, a function whose parameters
            select its arguments (messages, turn, trial, input, metadata), or a judge or a `SimulatedUser`, which
            follows the `goal`, `persona` and `facts` in the sample's metadata.
        concurrency: Maximum number of judge calls in flight.
        ledger: The ledger that stores answers and records, so that no call is paid for twice and an interrupted run
            resumes. None stores nothing.
        progress: Whether to show a progress bar, and what takes long before it; by default only in terminals and
            notebooks.
        map: Sample field to column, as for `load`.
        split: The separator of the passages in a text, as for `load`.
        encoding: The encoding of a text file, as for `load`.
        sheet: The sheet of an Excel file with several.
        limit: Score only the first samples, this many; None for all.
        keep_reasoning: Whether a model's reasoning in front of an output, such as <think>…</think>, is scored as a part
            of it. By default, it is left out, and the run says in how many outputs.
        cache: Whether to reuse answers from the ledger.
        budget: Maximum cost of the run in US dollars. The run stops when the next call could exceed it.
        batch: Use the provider's batch API, at half the price. The run ends when everything is submitted, and the same
            call continues it later. `BatchOptions(wait=True)` waits.
        stop: Ends the run from outside.
        on_record: Called with each record once it is stored, one at a time: `async def` on the event loop, `def` in a
            thread. An exception in it ends the run and propagates.
        on_sample: Called like `on_record`, with each sample and trial once the records of all scorers are stored.
        name: A name for the run, to find it again.
        tags: One or more tags for the run.
        engine: Score blocks of samples on an engine: "ray", which starts Ray on this machine, or "ray:ADDRESS" of a
            cluster. Then the samples are a path or an address, the ledger is on PostgreSQL or none, and nothing but
            samples, scorers, judge, concurrency, map, split, encoding, sheet, keep_reasoning, cache, budget, name and
            tags can be set.
        out: The results folder of a run on an engine, a path or an address. Blocks that are there aren't scored again.
        keep: How much a run on an engine keeps of each record: `all`; `evidence`, which leaves out the judge calls; or
            `scores`, which also leaves out evidence and the reasons of scores.

    Returns:
        The run, with a summary for each scorer and every record.

    Raises:
        ConfigError: Before anything is asked, for whatever the caller can fix.
        RunAborted: When the judge or the target refuses the key or no longer answers. Its `run` has the results so far.
        LedgerError: When the ledger cannot be written.
    """
    check_flags(cache=cache)
    check_argument("progress", progress, bool | None)
    check_argument("stop", stop, StopSignal | None)
    check_argument("keep", keep, Keep)
    check_argument("tags", tags, Annotated[Any, _TAGS])
    labels = (tags,) if isinstance(tags, str) else tuple(tags)
    reading = Reading(map=map, split=split, encoding=encoding, sheet=sheet)
    if progress is None:  # a terminal or a notebook
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    with contextlib.ExitStack() as stack:
        if progress:
            from evalstone.report.progress import showing_phases  # noqa: PLC0415 - rich, which only a terminal needs

            stack.enter_context(showing_phases())
        if engine is not None:
            others = {"target": target, "user": user, "limit": limit, "stop": stop}
            others |= {"trials": trials > 1, "batch": batch, "on_record": on_record, "on_sample": on_sample}
            from evalstone.scale.scoring import check_in_blocks  # noqa: PLC0415 - only for blocks

            check_in_blocks((setting for setting, value in others.items() if value), "engine")
            return await sync.call_at_once(
                functools.partial(
                    _on_engine,
                    engine,
                    samples,
                    reading,
                    out,
                    scorers=specs_of(scorers),
                    judge=judge,
                    ledger=ledger,
                    concurrency=concurrency,
                    keep_reasoning=keep_reasoning,
                    cache=cache,
                    budget=budget,
                    keep=keep,
                    name=name,
                    tags=labels,
                )
            )
        plan = plan_for(
            samples,
            scorers,
            judge=judge,
            target=target,
            trials=trials,
            user=user,
            reading=reading,
            limit=limit,
            keep_reasoning=keep_reasoning,
            ledger=ledger,
        )
        await acheck_cases(plan.dataset, plan.scorers, samples, reading)
        bar = None
        if progress:
            from evalstone.report.progress import progress_bar  # noqa: PLC0415 - as above

            bar = stack.enter_context(progress_bar(plan.size))
        return await execute(
            plan,
            ledger=ledger,
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            batch=batch,
            stop=stop,
            on_record=on_record,
            on_sample=on_sample,
            progress=bar,
            name=name,
            tags=labels,
        )


def _on_engine(
    engine: str,
    samples: object,
    reading: Reading,
    out: str | Path | None,
    *,
    ledger: str | Path | None,
    keep: Keep,
    name: str,
    tags: tuple[str, ...],
    **settings: Any,
) -> Run:
    """The run on an engine. settings: the others of `Scoring`."""
    from evalstone.scale.engines import parse_engine  # noqa: PLC0415 - only for blocks, as the following
    from evalstone.scale.runs import run_on  # noqa: PLC0415
    from evalstone.scale.scoring import Scoring  # noqa: PLC0415

    if not isinstance(samples, str | Path):
        kind = type(samples).__name__
        raise ConfigError(invalid("samples", "a path or an address, which workers can read", samples, kind))
    if out is None:
        raise ConfigError(Setting("engine"), " needs a results folder: ", Setting("out", ...))
    check_names(name, tags)
    scoring, folder = Scoring(ledger=ledger, **settings), Location.of(out)
    return run_on(parse_engine(engine), str(samples), scoring, folder, reading=reading, keep=keep, name=name, tags=tags)


async def adry_run(
    samples: Samples,
    scorers: ScorerSpec | Iterable[ScorerSpec],
    *,
    judge: JudgeSpec | None = "lexical",
    target: TargetSpec | None = None,
    trials: int = 1,
    user: UserSpec | None = None,
    ledger: str | Path | None = DEFAULT_LEDGER,
    map: ColumnMapping | None = None,
    split: Mapping[str, str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    limit: int | None = None,
    keep_reasoning: bool = False,
    cache: bool = True,
) -> Estimate:
    """Estimate the calls, tokens and cost of an evaluation, without a call.

    Args are those of `evaluate`. The ledger is only read, and no key is needed. With a target, a sample's output, or
    else its reference, stands in for the unknown answer.

    Raises:
        ConfigError: The evaluation can't run.
    """
    check_flags(cache=cache)
    reading = Reading(map=map, split=split, encoding=encoding, sheet=sheet)
    from evalstone.run.dry_run import estimate  # noqa: PLC0415 - the lexical judge

    plan = plan_for(
        samples,
        scorers,
        judge=judge,
        target=target,
        trials=trials,
        user=user,
        reading=reading,
        limit=limit,
        keep_reasoning=keep_reasoning,
        ledger=ledger,
    )
    await acheck_cases(plan.dataset, plan.scorers, samples, reading)
    return await estimate(plan, ledger=ledger if cache else None)


async def ascore(
    scorer: ScorerSpec,
    sample: Sample | Mapping[str, Any] | None = None,
    *,
    judge: JudgeSpec | None = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    keep_reasoning: bool = False,
    **fields: Unpack[SampleFields],
) -> Record:
    """Score one sample: `await ascore("faithfulness", output="…", context=["…"])`.

    Args:
        scorer: A name, a Scorer or a table.
        sample: The sample as a whole; or give its fields by name.
        judge: Who answers the scorer's questions.
        ledger: The ledger that stores answers, so that none is paid for twice, as for `evaluate`. It is opened only for
            judges whose answers it stores, such as models. None stores nothing.
        keep_reasoning: Whether a model's reasoning in front of the output is scored as a part of it.

    Returns:
        The record: its outcome is a Score, Skipped or Failed, its `calls` are the judge calls behind it.

    Raises:
        ConfigError: For an unknown scorer, judge or field.
    """
    (record,) = await ascore_each(
        plan_for_one(sample, fields, scorer, judge=judge, keep_reasoning=keep_reasoning), ledger=ledger
    )
    return record


def plan_for_one(
    sample: Sample | Mapping[str, Any] | None,
    fields: Mapping[str, Any],
    scorers: ScorerSpec | Iterable[ScorerSpec],
    *,
    judge: JudgeSpec | None = "lexical",
    keep_reasoning: bool = False,
) -> Plan:
    """The checked plan for scoring one sample, passed as a Sample or as fields. Raises ConfigError like `ascore`."""
    plan = plan_for(load([one_sample(sample, fields)]), scorers, judge=judge, keep_reasoning=keep_reasoning)
    plan.check_scorers()
    return plan


async def ascore_each(
    plan: Plan, *, ledger: str | Path | None = None, budget: float | Budget | None = None
) -> tuple[Record, ...]:
    """The records of a plan with one sample, one per scorer. Scorers share calls."""
    may_ask = any(scorer.may_ask for scorer in plan.scorers)
    (sample,) = plan.dataset
    own = [judge for scorer in plan.scorers for judge in scorer.judges]
    if not may_ask:
        budget = None
    if not (may_ask and any(judge.cacheable for judge in (plan.judge, *own))):
        ledger = None  # which would store nothing, and takes longer to open than code and the lexical judge to score
    keep = plan.keep_reasoning
    async with open_session(plan.judge, *own, ledger=ledger, budget=budget, keep_reasoning=keep) as session:
        scored = [
            asyncio.ensure_future(score_sample(scorer, sample, session, plan.titles[scorer.signature]))
            for scorer in plan.scorers
        ]
        try:
            return tuple(await asyncio.gather(*scored))
        finally:
            await sync.cancel_all(scored)


def one_sample(sample: Sample | Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Sample | Mapping[str, Any]:
    """The sample in the arguments. Raises ConfigError for a sample together with fields, and for an unknown field."""
    for name in fields:
        if name not in ("id", *SAMPLE_FIELDS):
            raise ConfigError(unknown_field(name))
    if sample is None:
        return fields
    if isinstance(sample, str):
        wrong = invalid("sample", "a Sample or a mapping of its fields", sample)
        raise ConfigError(wrong, "; a text is given by the name of its field, such as output=…")
    if fields:
        raise ConfigError(f"give the sample whole or by its fields, not both (fields: {', '.join(fields)})")
    return sample


async def afit_cascade(
    cascade: Cascade,
    labels: Iterable[LabeledQuestion],
    *,
    accuracy: float | None = None,
    escalated: float | None = None,
    risk: float | None = None,
    ledger: str | Path | None = DEFAULT_LEDGER,
    concurrency: int = 32,
    budget: float | None = None,
) -> CascadeFit:
    """Choose a cascade's threshold on labeled questions; see `Cascade.afit`.

    The answers of both judges are kept in the ledger, so that another fit, or a run with this cascade, asks nothing
    again.

    Raises:
        BudgetExceeded: When the budget does not cover all labels. Otherwise as `Cascade.afit`.
    """
    cascade.check()
    async with open_session(cascade, ledger=ledger, concurrency=concurrency, budget=budget) as session:
        return await cascade.afit(
            labels,
            accuracy=accuracy,
            escalated=escalated,
            risk=risk,
            ask=MemberCalls(AskScope(session).ask),
            price=partial(costs_of_calls, ledger=ledger),
        )


evaluate = sync.blocking(aevaluate)
dry_run = sync.blocking(adry_run)
score = sync.blocking(ascore)
fit_cascade = sync.blocking(afit_cascade)
