"""What a Python user calls: evaluate many samples, or score one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evalstone._core import sync
from evalstone.datasets import Dataset, load
from evalstone.errors import ConfigError, unknown
from evalstone.judges.cascade import Cascade
from evalstone.judges.fitting import CascadeFit, LabelledQuestion
from evalstone.judges.parse import parse_judge
from evalstone.ledger import AsyncLedger
from evalstone.results.run import Run
from evalstone.run.apply import apply
from evalstone.run.batch.options import Batch
from evalstone.run.budget import Budget, Stop
from evalstone.run.plan import Plan
from evalstone.run.runner import execute
from evalstone.run.session import Asker
from evalstone.scorers import parse_scorers
from evalstone.types import SAMPLE_FIELDS, Record, Sample

DEFAULT_LEDGER = "sqlite:///.evalstone/ledger.db"


def plan_for(
    samples: Any,
    scorers: Any,
    *,
    judge: Any = "lexical",
    mapping: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of an evaluation, not yet checked. Arguments as for `evaluate`."""
    dataset = samples if isinstance(samples, Dataset) else load(samples, mapping=mapping)
    return Plan(dataset, parse_scorers(scorers), parse_judge(judge))


async def aevaluate(
    samples: Any,
    scorers: Any,
    *,
    judge: Any = "lexical",
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool = False,
    mapping: Mapping[str, str] | None = None,
    fresh: bool = False,
    budget: float | None = None,
    batch: bool | Batch = False,
    stop: Stop | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> Run:
    """Evaluate samples with scorers, and return the run.

    samples: Sample values, dictionaries, a path (JSON, JSONL, CSV, Parquet), a table, or a Dataset. scorers: names such
    as "faithfulness" or "context_relevance(scale=10)", Scorer values, evaluators. judge: "lexical" (no key, no
    network), "openai/gpt-5.1" and the like, a table of settings, or a Judge. concurrency: judge calls under way at
    once, at most. ledger: where answers and records are kept, so that nothing is paid for twice and the same call takes
    up an unfinished run; None keeps nothing. progress: show a progress bar. mapping: sample field to column, where the
    columns have names of your own. fresh: ask again what the ledger has. budget: US dollars that the run may pay at
    most; it then ends with what it has. batch: ask through the provider's batch API, at half the price; the run ends
    when everything is submitted, and the same call later goes on; `Batch(wait=True)` waits. stop: ends the run from
    outside. on_record: called with each record. Raises ConfigError, before anything is asked, for whatever the caller
    can mend.
    """
    plan = plan_for(samples, scorers, judge=judge, mapping=mapping)
    with contextlib.ExitStack() as stack:
        listeners = [on_record] if on_record is not None else []
        if progress:
            from evalstone.report.progress import progress_bar  # noqa: PLC0415 - rich, which only a terminal needs

            listeners.append(stack.enter_context(progress_bar(plan.size)))

        def tell(record: Record) -> None:
            for listener in listeners:
                listener(record)

        return await execute(
            plan,
            ledger=ledger,
            concurrency=concurrency,
            fresh=fresh,
            budget=budget,
            batch=batch,
            stop=stop,
            on_record=tell,
        )


async def ascore(
    scorer: Any,
    sample: Sample | Mapping[str, Any] | None = None,
    *,
    judge: Any = "lexical",
    ledger: str | Path | None = None,
    **fields: Any,
) -> Record:
    """Score one sample: `await ascore("faithfulness", output="…", context=["…"])`.

    The sample is given whole, or by its fields. The record holds the outcome (Score, Skipped or Failed) and the steps
    behind it. Raises ConfigError for an unknown scorer, judge or field.
    """
    for name in fields:
        if name not in ("id", *SAMPLE_FIELDS):
            raise ConfigError(unknown("sample field", name, ("id", *SAMPLE_FIELDS)))
    if sample is None:
        sample = fields
    elif fields:
        raise ConfigError(f"give the sample whole or by its fields, not both (fields: {', '.join(fields)})")
    plan = plan_for([sample], [scorer], judge=judge)
    if any(s.questions for s in plan.scorers):
        plan.judge.check()
    async with contextlib.AsyncExitStack() as stack:
        book = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        await stack.enter_async_context(plan.judge.opened())
        asker = Asker(plan.judge, ledger=book)
        stack.push_async_callback(asker.close)
        return await apply(plan.scorers[0], next(iter(plan.dataset)), asker)


async def afit_cascade(
    cascade: Cascade,
    labels: Iterable[LabelledQuestion],
    *,
    accuracy: float | None = None,
    escalated: float | None = None,
    ledger: str | Path | None = DEFAULT_LEDGER,
    concurrency: int = 32,
    budget: float | None = None,
) -> CascadeFit:
    """Choose a cascade's threshold on labelled questions, and say what it comes to: see `Cascade.afit`.

    Both judges' answers are kept in the ledger, so that trying another wish asks nothing again, and neither does a run
    with this cascade. Raises what `Cascade.afit` raises, and BudgetExceeded when the budget does not reach.
    """
    cascade.check()
    purse = None if budget is None else Budget(budget, cascade)
    async with contextlib.AsyncExitStack() as stack:
        book = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        await stack.enter_async_context(cascade.opened())
        asker = Asker(cascade, ledger=book, concurrency=concurrency, budget=purse)
        stack.push_async_callback(asker.close)
        return await cascade.afit(labels, accuracy=accuracy, escalated=escalated, put=asker.through)


evaluate = sync.blocking(aevaluate)
score = sync.blocking(ascore)
fit_cascade = sync.blocking(afit_cascade)
