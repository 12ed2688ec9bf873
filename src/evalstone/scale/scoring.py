"""Scoring blocks of samples in this process, with one session for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalstone._core import sync
from evalstone._core.declarations import check_argument, check_settings
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import rare_collections
from evalstone._core.sizes import Concurrency
from evalstone.agents.reasoning import answered, has_reasoning
from evalstone.datasets import Dataset
from evalstone.datasets.reading import Reading
from evalstone.errors import ConfigError, RunStopped
from evalstone.judges.base import JudgeSpec, cautioning, leaves
from evalstone.ledger.base import DEFAULT_LEDGER, file_of, shown
from evalstone.models.limits import counting_warnings, stopping
from evalstone.results.gate_criteria import CRITERIA
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.opening import open_session
from evalstone.run.plan import Plan
from evalstone.run.planning import plan_for
from evalstone.run.same_family import same_family_notes
from evalstone.run.scoring import score_sample
from evalstone.run.workers import finish
from evalstone.scorers.base import ScorerSpec
from evalstone.scorers.registry import specs_of
from evalstone.types import Record, Sample

if TYPE_CHECKING:
    from evalstone.run.session import Session

_NOTHING = Dataset(())


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What scores samples, as settings that another process can be sent."""

    scorers: ScorerSpec | Sequence[ScorerSpec]
    judge: JudgeSpec | None = "lexical"
    ledger: str | Path | None = None
    """A ledger on PostgreSQL, which all processes share; None for none."""
    concurrency: int = 32
    keep_reasoning: bool = False
    cache: bool = True
    budget: float | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        check_argument("concurrency", self.concurrency, Concurrency)
        object.__setattr__(self, "ledger", shared_ledger(self.ledger))

    @property
    def listed(self) -> tuple[ScorerSpec, ...]:
        """The scorers, one by one."""
        return specs_of(self.scorers)

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan, without samples. It is made once in each process. Raises ConfigError as `evaluate` does."""
        return plan_for(_NOTHING, self.scorers, judge=self.judge, keep_reasoning=self.keep_reasoning)

    def check(self) -> None:
        """Raise ConfigError if a judge has no key in this process, no known price under a budget, or the scorers can't
        be used."""
        self.plan.check_scorers()
        Budget.of(self.budget, *self.plan.priced_judges)

    def at_risk(self) -> str:
        """What a process that is lost costs, as a sentence; "" for nothing that was paid."""
        if self.ledger is not None or not any(judge.cacheable for judge in leaves(*self.plan.asked_judges)):
            return ""
        return (
            "No ledger on PostgreSQL is named, so processes don't share answers, and those for a block that isn't "
            "finished are lost with its process."
        )

    def __getstate__(self) -> Mapping[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)


def check_in_blocks(given: Iterable[str], way: Literal["engine", "shard"]) -> None:
    """Raise ConfigError for the first setting that a run in blocks doesn't have. given: The settings that aren't at
    their defaults."""
    for name in given:
        if name in _OF_BLOCKS or (way == "engine" and name in OF_RUNS):
            continue
        if name in OF_RUNS:
            raise ConfigError(
                Setting(name), " is about all blocks: give it to evalstone merge, not with ", Setting(way)
            )
        raise ConfigError(Setting(name), " can't be used with ", Setting(way), ": ", _REFUSED[name])


def shared_ledger(ledger: str | Path | None) -> str | None:
    """The ledger of processes that share one; None for the default one, which is a file. Raises ConfigError for any
    other file."""
    if ledger is None or ledger == DEFAULT_LEDGER:
        return None
    if file_of(ledger) is not None:
        raise ConfigError(
            f"the ledger {shown(ledger)} is a file, which several machines can't share; name one on PostgreSQL "
            "(postgresql://user@host/database), or none"
        )
    return str(ledger)


_OF_BLOCKS = frozenset(
    (
        *("data", "base_url", "out", "keep", "engine", "shard", "quiet"),
        *(each.name for settings in (Scoring, Reading) for each in fields(settings)),
    )
)
_OF_TARGETS = (
    "blocks keep records, and have no place for a target's answers; write a run with the target to a folder, then "
    "score its samples.jsonl"
)
_OF_BATCHES = "a batch is sent and read back by one process; leave one of them out"
_OF_CALLS = "other processes than this one score the records; read them from the results folder"
_OF_OUTPUT = "it is about the records of one process; leave it out"
_REFUSED = {
    **dict.fromkeys(("target", "trials", "user"), _OF_TARGETS),
    **dict.fromkeys(("batch", "batch_files", "wait"), _OF_BATCHES),
    **dict.fromkeys(("on_record", "on_sample"), _OF_CALLS),
    **dict.fromkeys(("verbose", "otel"), _OF_OUTPUT),
    "limit": "the blocks are those of whole files; write the first samples to a file of their own, and score that",
    "dry_run": "it is about a run in one process, which makes the same calls; leave one of them out",
    "sequential": "it stops after the first samples, and blocks are scored in any order; leave one of them out",
    "experiment": "the runs of an experiment are scored one by one; write a file without it for each of its runs",
    "stop": "it ends a run in one process; stop the process, and run the same again, which keeps finished blocks",
}
"""Why blocks don't have a setting, and what to do."""
OF_RUNS = frozenset(
    (
        *("name", "tags", "html", "markdown", "csv", "as_json", "top"),
        *(*CRITERIA, "baseline", "allow_mismatch", "inconclusive", "alpha", "missing", "max_change", "look"),
    )
)
"""Settings for all blocks together: an engine has them, and `evalstone merge`, but not a shard."""


@dataclass(frozen=True)
class Caution:
    """A note on samples that a judge doesn't suit."""

    judge: str
    """The identity of the judge that may be asked."""
    source: int
    """The number of the one that says it, among those whose notes are those of the judge: itself, or members of it."""
    note: Mapping[str, Any]
    """The note as data."""


@dataclass(frozen=True)
class Scored:
    """The records of some samples, and what else scoring them has shown."""

    records: list[Record]
    """In the order of the samples, and of the scorers for each."""
    warnings: Mapping[str, int]
    reasoned: int
    """The number of outputs that begin with reasoning."""
    cautions: tuple[Caution, ...]
    """Notes on the samples that a judge doesn't suit, of all judges that may be asked."""


class OpenScoring:
    """A process's access to judges and ledger, for as many blocks as it scores.

    Its session, with calls in flight, limits and recent answers, lives on the event loop of `sync`. scope: what its
    budget and `max_requests` are for, as for `open_session`. stop: once requested, no more records are begun. Raises
    ConfigError as `Scoring.check` does.
    """

    def __init__(self, scoring: Scoring, scope: str = "", stop: StopSignal | None = None) -> None:
        scoring.check()
        self.plan = scoring.plan
        self._scoring, self._scope, self._stop = scoring, scope, stop or StopSignal()
        self._stack = contextlib.AsyncExitStack()
        self._session: Session | None = None

    def score(self, samples: Sequence[Sample], on_record: Callable[[], None] | None = None) -> Scored:
        """Score samples. on_record: called after each record, on another thread.

        Raises:
            ConfigError: As for a run. The calls in flight are finished first.
            RunAborted: As for a run.
            StorageError: As for a run.
        """
        return sync.run(self._scored(samples, on_record))

    def close(self) -> None:
        """Cancel calls in flight, give back what isn't used of shared limits, and close the connections. They are
        opened again if needed."""
        self._session = None
        sync.run(self._stack.aclose())

    async def _opened(self) -> Session:
        if self._session is None:
            plan, scoring = self.plan, self._scoring
            may_ask = any(scorer.may_ask for scorer in plan.scorers)
            own = [judge for judge in plan.judges if judge is not plan.judge]
            self._session = await self._stack.enter_async_context(
                open_session(
                    plan.judge,
                    *own,
                    ledger=scoring.ledger if may_ask else None,
                    concurrency=scoring.concurrency,
                    budget=Budget.of(scoring.budget, *plan.priced_judges) if may_ask else None,
                    cache=scoring.cache,
                    keep_reasoning=plan.keep_reasoning,
                    scope=self._scope,
                    stop=self._stop,
                )
            )
        return self._session

    async def _scored(self, samples: Sequence[Sample], on_record: Callable[[], None] | None) -> Scored:
        session = await self._opened()
        scorers, plan, stop = self.plan.scorers, self.plan, self._stop
        records: list[Record | None] = [None] * (len(samples) * len(scorers))
        cells = enumerate(itertools.product(samples, scorers))
        errors: list[BaseException] = []

        def on_error(error: BaseException) -> str:
            errors.append(error)
            return str(error)

        async def work() -> None:
            for number, (sample, scorer) in cells:
                if stop.requested:
                    raise RunStopped(stop.reason)
                if errors:
                    break
                records[number] = record = await score_sample(scorer, sample, session, plan.titles[scorer.signature])
                session.check(record)
                if on_record is not None:
                    on_record()

        # There are more workers than slots for calls, so one that waits for a shared call leaves no slot empty.
        immediate = all(scorer.is_immediate for scorer in scorers)
        rarely = rare_collections(1 if immediate else 2 * self._scoring.concurrency)
        with counting_warnings() as warnings, rarely, stopping(lambda: stop.requested):
            workers = 1 if immediate else min(2 * self._scoring.concurrency, len(records))
            await finish([asyncio.ensure_future(work()) for _ in range(workers)], session, on_error)
        found = [record for record in records if record is not None]
        return Scored(
            records=found,
            warnings=dict(warnings),
            reasoned=sum(map(has_reasoning, samples)),
            cautions=tuple(self._cautions(samples)),
        )

    def _cautions(self, samples: Sequence[Sample]) -> Iterator[Caution]:
        # Also of a judge that wasn't asked here: it may be asked for other samples, and its notes are on all of them.
        judges = self.plan.judges if any(scorer.may_ask for scorer in self.plan.scorers) else ()
        scored = samples if self.plan.keep_reasoning else [*map(answered, samples)] if cautioning(*judges) else ()
        notes = {each.identity: each.cautions(scored) for each in cautioning(*judges)}
        for judge in judges:
            sources = [notes[source.identity] for source in judge.with_cautions()]
            for number, found in enumerate([*sources, same_family_notes(judge, None, samples)]):
                yield from (Caution(judge.identity, number, note.to_dict()) for note in found)
