"""A run: what was evaluated, by which judge, and every record."""

from __future__ import annotations

import functools
import html
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

from evalstone._core.display import (
    aligned,
    count,
    digits_for,
    effective_count,
    limits,
    money,
    number,
    safe,
    sentence,
    visible,
)
from evalstone._core.json import to_jsonable
from evalstone._core.terms import term
from evalstone.errors import MissingDependency
from evalstone.results.drawn import CAUTION, with_sequences
from evalstone.results.endings import BY_NAME, COMPLETE, KILLED, STOPPED, Ending
from evalstone.results.summary import (
    CORRECTION_COUNTS,
    ScorerInfo,
    ScorerSummary,
    find_scorer,
    scorer_titles,
    summarize,
)
from evalstone.types import (
    SUMMARY_FORMAT,
    Drawn,
    Paid,
    Record,
    RunKind,
    RunMetadata,
    Sample,
    StoredTarget,
    installed_version,
    total_cost,
)

if TYPE_CHECKING:
    from evalstone.results.missing_scores import Missing
    from evalstone.results.slices import ScorerSlices, SliceBy
    from evalstone.results.trials import Reliability
    from evalstone.stats.intervals import Interval

TEXTS = ("input", "output", "reference", "context")
TINY = 1e-9
"""US dollars; smaller amounts are rounding errors of sums."""
HEADER = ("scorer", "mean", "95% CI", "scored", "skipped", "failed", "direction")


DROPPED_ITEMS = "ungrounded items dropped"
LEFT_OUT_REASONING, KEPT_REASONING = "reasoning left out of outputs", "reasoning kept in outputs"
"""The warnings about outputs that begin with a model's reasoning."""
DOUBTFUL_CITATIONS = "doubtful citations"
"""The warning about results with a citation that doesn't fit its claim."""
NOTED = (LEFT_OUT_REASONING, KEPT_REASONING, DROPPED_ITEMS, DOUBTFUL_CITATIONS)
"""The warnings that `warning_notes` puts into sentences."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of an evaluation: a sequence of records, with a summary for each scorer.

    Print a run to see the summary table, the reasons for missing or doubtful results, and the cost.
    `run["faithfulness"].mean` is a scorer's mean, and `run[0]` is the first record.
    """

    id: str
    """The run's identifier."""
    dataset_name: str
    """The name of the dataset."""
    version: str
    """The version of the dataset: a hash of its samples."""
    samples: int
    """How many samples the dataset has."""
    judge: str
    """The judge's identity, or several, comma-separated; "none" if no scorer used a judge."""
    judge_note: str
    """A note about the judge, or ""."""
    scorers: tuple[ScorerInfo, ...]
    """The scorers, in table order."""
    records: Sequence[Record]
    """One record for each sample and scorer, in the order of the dataset. If the run is from a ledger without the
    samples, in the order in which they were written. Many records are read from a temporary file."""
    summary: tuple[ScorerSummary, ...]
    """One summary per scorer: mean, confidence interval, counts, cost."""
    started: str
    """When the run started, in UTC (ISO 8601)."""
    seconds: float
    """The duration in seconds; of a resumed run, since it was resumed."""
    resumed: int = 0
    """How many records come from an interrupted run with the same plan."""
    resumed_at: str = ""
    """When the run was last resumed, in UTC (ISO 8601); "" if it wasn't."""
    code: tuple[str, ...] = ()
    """Of a resumed run, the files of your code that were compared with the interrupted one's, and are unchanged."""
    stop_reason: str = ""
    """Why the run stopped early; "" if it is complete."""
    ending: Ending = COMPLETE
    """The cause that ended the run (docs/endings.md)."""
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    """Problems during the run, such as rate limiting, with their counts."""
    dataset: Iterable[Sample] | None = field(default=None, compare=False)
    """The samples, if available. They may be read from a file on each iteration."""
    batches: tuple[str, ...] = ()
    """Provider batches the run is waiting for."""
    judge_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """For each composite judge: escalations, savings, agreement of its members."""
    name: str = ""
    """The run's name, or ""."""
    tags: tuple[str, ...] = ()
    """The run's tags."""
    kind: RunKind = "evaluation"
    """The purpose of the run, such as an evaluation or an audit."""
    drawn: Drawn | None = None
    """The order in which the samples were drawn, if the run's gate stopped it."""
    target: StoredTarget | None = None
    """The target that answered the samples; None if existing answers were scored."""
    paid: Paid | None = None
    """What the run has paid; None if the results of a killed run are read from a folder."""

    def __post_init__(self) -> None:
        if self.stop_reason and self.ending is COMPLETE:
            object.__setattr__(self, "ending", STOPPED)

    @property
    def keeps_reasoning(self) -> bool | None:
        """Whether the reasoning in front of outputs was scored; None if no output begins with any."""
        return True if KEPT_REASONING in self.warnings else False if LEFT_OUT_REASONING in self.warnings else None

    @property
    def trials(self) -> int:
        """How often the target answered each sample; 1 without a target."""
        return 1 if self.target is None else self.target.trials

    @property
    def complete(self) -> bool:
        """Whether every sample was processed by every scorer."""
        return not self.stop_reason

    @overload
    def __getitem__(self, key: str) -> ScorerSummary: ...
    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Record]: ...
    def __getitem__(self, key: str | int | slice) -> ScorerSummary | Record | Sequence[Record]:
        """A scorer's summary, by title, signature or name; or records, by position.

        Raises:
            ConfigError: no scorer has this name, or several do.
        """
        if not isinstance(key, str):
            return self.records[key]
        info = find_scorer(key, self.scorers)
        return next(line for line in self.summary if line.info == info)

    @functools.cached_property
    def titles(self) -> Mapping[str, str]:
        """Each scorer's title by signature: its name, with parameters if other scorers have the same name."""
        return scorer_titles(self.scorers)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def cost(self) -> float | None:
        """US dollars that this run has paid; None if a price is unknown.

            cost = recorded_cost + interrupted_cost

        Includes judge calls, a simulated user, and the target if it reports its cost. Calls count even if their sample
        has no record. For an interrupted run, all invocations are included. Cached answers cost nothing.
        """
        return self.recorded_cost if self.paid is None else self.paid.total

    @property
    def interrupted_cost(self) -> float | None:
        """US dollars of the cost that belong to no record and no target answer, because the run ended before their
        sample was finished. If the run is resumed, its records have these calls as cached. None if the cost is
        unknown, or if the run was killed before the target's cost was added up."""
        if self.paid is None or self.paid.total is None or (recorded := self._recorded()) is None:
            return None
        return max(0.0, self.paid.total - recorded)

    @property
    def recorded_cost(self) -> float | None:
        """US dollars of the cost that belong to records and target answers. None if a price is unknown, if the run
        ended early and no record has a call of its own, or if it was killed before the target's cost was added up."""
        if self.stop_reason and self.judge != "none" and all(line.questions == line.cached for line in self.summary):
            return None
        return self._recorded()

    def _recorded(self) -> float | None:
        if self.target is None:
            return self.judge_cost
        if self.records and not (self.target.answers or self.target.failed):
            return None  # it was killed before the target's cost was added up
        return total_cost((self.target.cost or 0.0, self.target.user_cost, self.judge_cost))

    @property
    def judge_cost(self) -> float | None:
        """US dollars of the judge calls in records; None if a price is unknown."""
        return total_cost(map(attrgetter("cost"), self.summary))

    @property
    def cost_text(self) -> str:
        """The cost of the run in words: the cost in results, the cost outside of them, the cost of a target, and, for
        an interrupted run, the cost of this invocation."""
        if self.cost is None or self.interrupted_cost is None:
            return f"cost {money(self.cost)}{self._this_call}"
        parts: dict[str, float | None] = {"results": self._recorded()}
        if self.target is not None:
            parts = {"target": self.target.cost, "user": self.target.user_cost or None, "judge": self.judge_cost}
        if self.interrupted_cost > TINY:
            parts["interrupted samples"] = self.interrupted_cost
        known = [f"{name} {money(cost)}" for name, cost in parts.items() if cost is not None]
        if list(parts) == ["results"]:
            known.clear()
        elif len(known) == 1:
            return f"judge cost {money(self.judge_cost)}{self._this_call}"
        split = f" ({', '.join(known)})" if known else ""
        return f"cost {money(self.cost)}{split}{self._this_call}"

    @property
    def _this_call(self) -> str:
        """The cost of this invocation of an interrupted run, in words; "" if it is the whole cost."""
        if self.paid is None or self.cost is None or self.paid.this_call is None:
            return ""
        return "" if self.cost - self.paid.this_call < TINY else f", {money(self.paid.this_call)} of it in this call"

    @property
    def duration_text(self) -> str:
        """The duration in words; of a resumed run, with the time since which it counts."""
        since = f" since it was resumed ({self.resumed_at[:19].replace('T', ' ')} UTC)" if self.resumed_at else ""
        return f"{self.seconds:.1f} s{since}"

    @property
    def failed(self) -> int:
        """How many outcomes failed."""
        return sum(line.failed for line in self.summary)

    def slices(self, by: SliceBy | Iterable[SliceBy], *, confidence: float = 0.95) -> tuple[ScorerSlices, ...]:
        """The mean of each slice, and the slices that are worse than the other samples.

        Args:
            by: a metadata field, a function of a sample, or several of them.
            confidence: the confidence level of intervals and findings.

        Raises:
            ConfigError: no sample has the field, or the samples are not available.
        """
        from evalstone.results.slices import slices  # noqa: PLC0415 - numpy, which only slices need

        return slices(self, by, confidence=confidence)

    def reliability(
        self,
        scorer: str | None = None,
        *,
        threshold: float | None = None,
        confidence: float = 0.95,
        missing: Missing = "worst",
    ) -> tuple[Reliability, ...]:
        """How reliably the target passes over repeated trials: pass@k, pass^k, and the flaky samples.

        The arguments and errors are those of `evalstone.results.trials.reliability`.
        """
        from evalstone.results.trials import reliability  # noqa: PLC0415 - only runs with trials need it

        return reliability(self, scorer, threshold=threshold, confidence=confidence, missing=missing)

    def metadata(self) -> dict[str, Any]:
        """The run without its results: dataset, judge, scorers."""
        return {
            "format": SUMMARY_FORMAT,
            "evalstone": installed_version(),
            "run": self.id,
            "kind": self.kind,
            "name": self.name,
            "tags": list(self.tags),
            "dataset": {"name": self.dataset_name, "version": self.version, "samples": self.samples},
            "judge": {"identity": self.judge, "note": self.judge_note},
            "started": self.started,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "resumed_at": self.resumed_at,
            **({"code": list(self.code)} if self.resumed_at else {}),
            "stop_reason": self.stop_reason,
            "ending": self.ending.name,
            "warnings": dict(self.warnings),
            "judge_stats": dict(self.judge_stats),
            **({} if self.drawn is None else {"drawn": to_jsonable(self.drawn)}),
            **({} if self.target is None else {"target": to_jsonable(self.target)}),
            "scorers": [info.to_dict() for info in self.scorers],
        }

    def to_dict(self) -> dict[str, Any]:
        """The run as stored in `summary.json`."""
        paid = None if self.paid is None else {**to_jsonable(self.paid), "interrupted": self.interrupted_cost}
        return {
            **self.metadata(),
            "cost": self.recorded_cost,
            **({} if paid is None else {"paid": paid}),
            "scorers": list(map(ScorerSummary.to_dict, self.summary)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], records: Sequence[Record]) -> Run:
        """Create a run from its `summary.json` and its records. Summaries are computed again from the records.

        Raises:
            ConfigError: the data has another format.
            DataError: a field is missing, or has a value of the wrong type.
        """
        stored = RunMetadata.of(data, f"run {data.get('run')}")
        scorers = tuple(map(ScorerInfo.of, stored.scorers))
        summary, drawn = summarize(scorers, records), stored.drawn
        trials = 1 if stored.target is None else stored.target.trials
        finished = len(records) == stored.dataset.samples * trials * len(scorers)
        return cls(
            id=stored.run,
            dataset_name=stored.dataset.name,
            version=stored.dataset.version,
            samples=stored.dataset.samples,
            judge=stored.judge.identity,
            judge_note=stored.judge.note,
            scorers=scorers,
            records=tuple(records),
            summary=summary if drawn is None else with_sequences(summary, records, drawn),
            started=stored.started,
            seconds=stored.seconds,
            resumed=stored.resumed,
            resumed_at=stored.resumed_at,
            code=stored.code,
            stop_reason=stored.stop_reason or ("" if finished else "unfinished"),
            ending=BY_NAME[stored.ending] if stored.stop_reason or finished else KILLED,
            warnings=stored.warnings,
            judge_stats=stored.judge_stats,
            name=stored.name,
            tags=stored.tags,
            kind=stored.kind,
            drawn=drawn,
            target=stored.target,
            paid=stored.paid,
        )

    def to_dicts(self, *, wide: bool = False) -> list[dict[str, Any]]:
        """The records as dictionaries, as in `records.jsonl`.

        Args:
            wide: return one row per sample, or per sample and trial. It has the ID, the trial if there are several, the
                texts if available, and a column with each scorer's value (None without a score).
        """
        if not wide:
            return [record.to_dict() for record in self.records]
        texts = {(s.id, s.trial): {name: getattr(s, name) for name in TEXTS} for s in self.dataset or ()}
        rows: dict[tuple[str, int | None], dict[str, Any]] = {}
        columns = {
            signature: title if title not in ("sample", "trial", *TEXTS) else signature
            for signature, title in self.titles.items()
        }
        for record in self.records:
            case = record.sample, record.trial
            row = rows.get(case)
            if row is None:
                trial = {} if record.trial is None else {"trial": record.trial}
                row = rows[case] = {"sample": record.sample, **trial, **texts.get(case, {})}
                row.update(dict.fromkeys(columns.values()))
            row[columns[record.scorer]] = record.value
        return list(rows.values())

    def to_pandas(self, *, wide: bool = False) -> Any:
        """The records as a pandas DataFrame; `wide` as for `to_dicts`. Raises MissingDependency without pandas."""
        return _library("pandas").DataFrame(self.to_dicts(wide=wide))

    def to_polars(self, *, wide: bool = False) -> Any:
        """The records as a polars DataFrame, without judge calls and evidence; `wide` as for `to_dicts`.

        Raises:
            MissingDependency: polars is not installed.
        """
        nested = () if wide else ("steps", "evidence", "error")
        rows = [{name: value for name, value in row.items() if name not in nested} for row in self.to_dicts(wide=wide)]
        return _library("polars").DataFrame(rows, infer_schema_length=None)

    @property
    def title(self) -> str:
        """Dataset, number of samples and judge in one line."""
        return f"{self.dataset_name}: {self.samples_and_judge}"

    @property
    def samples_and_judge(self) -> str:
        """Samples and trials, target and judge: "60 samples × 4 trials · target app:agent · judge lexical@7"."""
        several = len({judge for line in self.summary for judge in line.judges}) > 1
        judge = "no judge needed" if self.judge == "none" else f"{'judges' if several else 'judge'} {self.judge}"
        samples = count(self.samples, "sample")
        if self.target is None:
            return f"{samples} · {judge}"
        trials = f" × {self.trials:,} trials" if self.trials > 1 else ""
        # The settings and prompts of a simulated user are in summary.json.
        user = f" · user {self.target.user.partition(' as user (')[0]}" if self.target.user else ""
        return f"{samples}{trials} · target {self.target.identity}{user} · {judge}"

    @property
    def calls(self) -> str:
        """How many judge calls were made and how many were cached, in words; "" if there were none."""
        questions, cached = (sum(getattr(line, name) for line in self.summary) for name in ("questions", "cached"))
        return f"{count(questions - cached, 'judge call')}, {cached:,} cached" if questions else ""

    @property
    def corrections(self) -> str:
        """How many malformed replies were corrected and calls lost, in words; "" if there were none."""
        asked, helped, lost = (sum(getattr(line, name) for line in self.summary) for name in CORRECTION_COUNTS)
        parts = [f"{count(asked, 'correction')} of malformed replies, {helped:,} helped"] if asked else []
        was = "was" if lost == 1 else "were"
        return "; ".join([*parts, f"{count(lost, 'judge call')} {was} paid and gave no answer"] if lost else parts)

    def judge_of(self, scorer: str) -> str:
        """The judges that a scorer used, by its title, signature or name; "none" if it used none.

        Raises ConfigError for an unknown scorer.
        """
        return ", ".join(self[scorer].judges) or "none"

    def _notes(self) -> Iterator[str]:
        """Why the run ended early, why scores are doubtful, why results are missing, and what the run cost."""
        if self.stop_reason:
            yield f"The run ended early: {safe(self.stop_reason)}"
        if self.drawn is not None:
            yield sentence(CAUTION)
        yield from warning_notes(self)
        for line in self.summary:
            title = self.titles[line.info.signature]
            for text in (*filter(None, (line.doubt,)), *score_notes(line, self.trials)):
                yield f"{title}: {text}"
            for reason, times in line.reasons:
                yield f"{title}: {times:,} × {safe(reason)}"
        if self.corrections:
            yield self.corrections
        if self.target is not None and self.target.note:
            yield sentence(self.target.note)
        yield " · ".join(filter(None, (self.calls, self.cost_text, self.duration_text)))

    def _rows(self) -> list[tuple[str, ...]]:
        return [(self.titles[line.info.signature], *_numbers(line)) for line in self.summary]

    def _of_trials(self) -> tuple[list[tuple[str, ...]], list[str]]:
        """The table of several trials, and what it says; empty for one trial."""
        from evalstone.results.trial_text import (  # noqa: PLC0415 - few runs have several
            trial_lead,
            trial_notes,
            trial_results,
            trial_table,
        )

        if not (results := trial_results(self)):
            return [], []
        return trial_table(results), [*trial_lead(results), *trial_notes(self, results)]

    def __str__(self) -> str:
        lines = [self.title, "", *aligned([HEADER, *self._rows()], words=("scorer",))]
        trials, notes = self._of_trials()
        if trials:
            lines += ["", *aligned(trials, words=("scorer",), drop_empty=True)]
        return visible("\n".join((*lines, "", *notes, *self._notes())))

    def _repr_html_(self) -> str:
        """The summary table for notebooks."""

        def row(tag: str, cells: Iterable[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in map(visible, cells)) + "</tr>"

        def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
            body = "".join(row("td", cells) for cells in rows)
            return f"<table><thead>{row('th', header)}</thead><tbody>{body}</tbody></table>"

        trials, notes = self._of_trials()
        tables = table(HEADER, self._rows()) + (table(trials[0], trials[1:]) if trials else "")
        shown = "<br>".join(map(html.escape, (*notes, *self._notes())))
        return f"<p>{html.escape(visible(self.title))}</p>{tables}<p>{shown}</p>"

    def __repr__(self) -> str:
        return f"<Run {self.id}: {count(len(self.records), 'record')} of {count(len(self.scorers), 'scorer')}>"


def warning_notes(run: Run) -> Iterator[str]:
    """What the scores leave out or may rest on, by the run's warnings: reasoning, dropped items, citations."""
    yield from _reasoning_notes(run)
    yield from _dropped_items_note(run)
    yield from _citation_note(run)


def _dropped_items_note(run: Run) -> Iterator[str]:
    """How many items of the judges' lists were dropped, if any."""
    if times := run.warnings.get(DROPPED_ITEMS):
        yield (
            f"The judges listed {count(times, 'item')} not found in the judged text, even after a correction. "
            "The scores leave out what records.jsonl names as dropped."
        )


def _reasoning_notes(run: Run) -> Iterator[str]:
    """How many outputs begin with a model's reasoning, and whether it is scored."""
    for warning, scored in ((LEFT_OUT_REASONING, False), (KEPT_REASONING, True)):
        if times := run.warnings.get(warning):
            yield reasoning_note(count(times, "output begins", "outputs begin"), scored=scored)


def reasoning_note(outputs: str, *, scored: bool) -> str:
    """That outputs begin with a model's reasoning, and whether it is scored. outputs: the beginning of the sentence."""
    hint = term("keep_reasoning", True)
    left_out = f"is not scored ({hint} scores it)" if hint else "is not scored"
    how = "is scored as a part of the answer" if scored else left_out
    return f"{outputs} with a model's reasoning, such as <think>…</think>; it {how}."


def _citation_note(run: Run) -> Iterator[str]:
    """How many results rest on a citation that doesn't fit its claim."""
    if times := run.warnings.get(DOUBTFUL_CITATIONS):
        yield (
            f"In {count(times, 'result')}, the judge cites a passage that has no word in common with a claim, although "
            "another passage has: see `citations` in the judge calls of the records. No verdict was changed."
        )


def score_notes(line: ScorerSummary, trials: int) -> Iterator[str]:
    """What the mean would be with the missing scores, clusters and weights, and why to doubt the interval."""
    if line.bounds is not None:
        missing, digits = line.skipped + line.failed, digits_for(line.info.scale)
        low, high = (number(bound, digits) for bound in line.bounds)
        noun = "sample" if trials == 1 else "trial"
        yield (
            f"{missing:,} of {count(line.scored + missing, noun)} {'has' if missing == 1 else 'have'} no score; "
            f"with {'it' if missing == 1 else 'them'}, the mean would be between {low} and {high}"
        )
    if line.interval is not None:
        yield from sample_notes(line.interval, trials)
        yield from filter(None, (line.interval.caution,))


def sample_notes(interval: Interval, trials: int = 1) -> Iterator[str]:
    """Whether samples are clustered or weighted. trials: the number of trials of each sample."""
    if interval.groups is not None:
        why = "clustered samples" if trials == 1 else "trials of a sample are not independent"
        yield f"{why}: cluster-robust interval ({count(interval.groups, 'cluster')})"
    if interval.effective is not None:
        yield weighted_note(interval.effective, interval.n)


def weighted_note(effective: float, n: int) -> str:
    """A note that a mean is weighted, with the effective sample size (Kish)."""
    return (
        f"weighted mean: {count(n, 'sample')} of unequal weight say about as much as "
        f"{effective_count(effective)} of equal weight"
    )


def _numbers(line: ScorerSummary) -> tuple[str, ...]:
    """The cells after the scorer's title, under HEADER."""
    interval, digits = line.interval, digits_for(line.info.scale)
    mean = number(line.mean, digits)
    spread = "-" if interval is None else limits(interval.low, interval.high, digits)
    direction = "lower is better" if line.info.lower_is_better else "higher is better"
    return mean, spread, str(line.scored), str(line.skipped), str(line.failed), direction


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingDependency(name, name) from None
