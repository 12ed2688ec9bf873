"""A run: what was evaluated, by which judge, and every record."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast, overload

from evalstone._core.display import (
    count,
)
from evalstone._core.file_format import RUN_FORMAT, installed_version
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, absent, invalid
from evalstone.report.frames import Framed, SampleRows, pandas_frame, polars_frame, rows_by_column
from evalstone.report.shown import Shown
from evalstone.results.columns import Columns
from evalstone.results.drawn import with_sequences
from evalstone.results.endings import COMPLETE, KILLED, STOPPED, Ending, ending_named
from evalstone.results.losses import loss_note
from evalstone.results.run_notes import doubts_of, reasoning_kept, scores_note
from evalstone.results.stored_records import StoredRecords, columns_of
from evalstone.results.summary import (
    ScorerInfo,
    ScorerSummary,
    find_scorer,
    scorer_titles,
    summarize,
)
from evalstone.types import (
    NOTHING_STORED,
    Asking,
    Drawn,
    Note,
    Paid,
    Record,
    RunKind,
    RunMetadata,
    Sample,
    StoredCell,
    StoredTarget,
    total_cost,
)

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.missing_scores import Missing
    from evalstone.results.slices import ScorerSlices, SliceBy
    from evalstone.results.trials import Reliability

TEXTS = ("input", "output", "reference", "context")


@dataclass(frozen=True, kw_only=True)
class Run(Framed, Shown):
    """The result of an evaluation: a sequence of records, with a summary for each scorer.

    Print a run to see the summary table, the reasons for missing or doubtful results, and the cost.
    `run["faithfulness"].mean` is a scorer's mean, and `run[0]` is the first record.
    """

    _tested_by = "gate(run, …).passed, or len(run)"

    id: str
    """The run's identifier."""
    dataset_name: str
    """The name of the dataset."""
    dataset_version: str
    """The version of the dataset: a hash of its samples."""
    n_samples: int
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
    cautions: tuple[Note, ...] = ()
    """What the judges say of samples that they don't suit. They are among the notes."""
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
    samples: Sequence[Sample] | None = field(default=None, compare=False)
    """The samples, if available. Those of a large or saved run are read from a file when they are needed."""
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
    cell: StoredCell | None = None
    """The place of the run in an experiment; None if it is in none."""
    asking: Asking = field(default_factory=Asking, repr=False)
    """How the judges were asked."""
    paid: Paid | None = None
    """What the run has paid; None if the results of a killed run are read from a folder."""

    def __post_init__(self) -> None:
        if self.stop_reason and self.ending is COMPLETE:
            object.__setattr__(self, "ending", STOPPED)

    @property
    def keeps_reasoning(self) -> bool | None:
        """Whether the reasoning in front of outputs was scored; None if no output begins with any."""
        return reasoning_kept(self.warnings)

    @functools.cached_property
    def columns(self) -> Columns:
        """The scores of the records, without what is behind them."""
        return columns_of(self.scorers, self.records)

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
            UnknownName: no scorer has this name, or several do.
        """
        if not isinstance(key, str):
            if not isinstance(key, slice) and not hasattr(key, "__index__"):
                kind = type(cast("object", key)).__name__
                raise TypeError(f"a run has scorers by name and records by position, but {kind} is neither")
            return self.records[key]
        info = find_scorer(key, self.scorers)
        return next(line for line in self.summary if line.info == info)

    def __contains__(self, item: object) -> bool:
        """Whether `run[item]` is the summary of a scorer, for a text; otherwise, whether it is one of the records."""
        if not isinstance(item, str):
            return item in self.records
        try:
            find_scorer(item, self.scorers)
        except ConfigError:
            return False
        return True

    def mean(self, scorer: str) -> float:
        """A scorer's mean, in [0, scale], by the scorer's title, signature or name. `run[scorer].mean` is the same, or
        None without a score.

        Raises:
            UnknownName: no scorer has this name, or several do.
            ConfigError: no sample has a score.
        """
        line = self[scorer]
        if line.mean is None:
            counts = f"{line.n_skipped:,} skipped, {line.n_failed:,} failed"
            raise ConfigError(absent("mean", f"{self.titles[line.info.signature]} has no score, so no mean: {counts}"))
        return line.mean

    def scores(self, scorer: str) -> dict[str, float]:
        """A scorer's scores by the IDs of the samples, in their order. Samples without a score are left out. Of several
        trials of a sample, it is the mean of those that have a score.

        Raises:
            UnknownName: no scorer has this name, or several do.
        """
        from evalstone.results.scores import scores_of  # noqa: PLC0415 - it imports statistics

        scores = scores_of(self, self[scorer].info.signature)
        scores = scores if self.trials == 1 else scores.by_sample
        return {id: value for id, value in zip(scores.samples, scores.values, strict=True) if value is not None}

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
        if self.stop_reason and self.judge != "none" and not any(line.asked for line in self.summary):
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
    def n_failed(self) -> int:
        """How many outcomes failed."""
        return sum(line.n_failed for line in self.summary)

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
            "format": RUN_FORMAT,
            "evalstone": installed_version(),
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "tags": list(self.tags),
            "dataset": {"name": self.dataset_name, "version": self.dataset_version, "samples": self.n_samples},
            "judge": {
                "identity": self.judge,
                "note": self.judge_note,
                "cautions": [caution.to_dict() for caution in self.cautions],
            },
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
            **({} if self.cell is None else {"cell": to_jsonable(self.cell)}),
            **({} if self.asking == NOTHING_STORED else {"asking": to_jsonable(self.asking)}),
            "scorers": [info.to_stored() for info in self.scorers],
        }

    def to_junit(self) -> str:
        """JUnit XML for CI servers, with a suite per scorer and a case per sample: scores pass, with their values,
        skipped ones are skipped, and failed ones are errors. Whether scores are good enough is up to a gate."""
        from evalstone.results.views.junit import run_junit  # noqa: PLC0415 - only who writes it needs it

        return "".join(run_junit(self))

    def to_dict(self) -> dict[str, Any]:
        """The run as stored in `summary.json`."""
        paid = None if self.paid is None else {**to_jsonable(self.paid), "interrupted": self.interrupted_cost}
        return {
            **self.metadata(),
            "cost": self.recorded_cost,
            **({} if paid is None else {"paid": paid}),
            "notes": [note.to_dict() for note in self.notes],
            "scorers": list(map(ScorerSummary.to_dict, self.summary)),
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], records: Sequence[Record], summary: tuple[ScorerSummary, ...] | None = None
    ) -> Run:
        """Create a run from its `summary.json` and its records.

        Args:
            data: the content of `summary.json`.
            records: the records.
            summary: the scorers' summaries, if they are known. Otherwise, they are computed from the records: those in
                `data` are not used.

        Raises:
            DataError: the data has another format, a field is missing, or has a value of the wrong type.
        """
        stored = RunMetadata.of(data, f"run {data.get('id')}")
        scorers = tuple(map(ScorerInfo.of, stored.scorers))
        drawn = stored.drawn
        summary = summarize(scorers, records) if summary is None else summary
        trials = 1 if stored.target is None else stored.target.trials
        finished = len(records) == stored.dataset.samples * trials * len(scorers)
        return cls(
            id=stored.id,
            dataset_name=stored.dataset.name,
            dataset_version=stored.dataset.version,
            n_samples=stored.dataset.samples,
            judge=stored.judge.identity,
            judge_note=stored.judge.note,
            cautions=tuple(map(Note.of, stored.judge.cautions)),
            scorers=scorers,
            records=records if isinstance(records, StoredRecords) else tuple(records),
            summary=summary if drawn is None else with_sequences(summary, columns_of(scorers, records), drawn),
            started=stored.started,
            seconds=stored.seconds,
            resumed=stored.resumed,
            resumed_at=stored.resumed_at,
            code=stored.code,
            stop_reason=stored.stop_reason or ("" if finished else "unfinished"),
            ending=ending_named(stored.ending) if stored.stop_reason or finished else KILLED,
            warnings=stored.warnings,
            judge_stats=stored.judge_stats,
            name=stored.name,
            tags=stored.tags,
            kind=stored.kind,
            drawn=drawn,
            target=stored.target,
            cell=stored.cell,
            asking=stored.asking,
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
        texts = {(s.id, s.trial): {name: getattr(s, name) for name in TEXTS} for s in self.samples or ()}
        rows: dict[tuple[str, int | None], dict[str, Any]] = {}
        columns = {
            signature: title if title not in ("sample_id", "trial", *TEXTS) else signature
            for signature, title in self.titles.items()
        }
        for record in self.records:
            case = record.sample_id, record.trial
            row = rows.get(case)
            if row is None:
                trial = {} if record.trial is None else {"trial": record.trial}
                row = rows[case] = {"sample_id": record.sample_id, **trial, **texts.get(case, {})}
                row.update(dict.fromkeys(columns.values()))
            row[columns[record.signature]] = record.value
        return list(rows.values())

    def sample_rows(self) -> SampleRows:
        """One row per sample and scorer, in the order of the dataset if it is available."""
        from evalstone.results.views.sample_rows import run_rows  # noqa: PLC0415 - only who exports needs it

        return run_rows(self)

    def to_pandas(self, *, wide: bool = False) -> Any:
        """One row per sample and scorer as a pandas DataFrame, with the columns of the CSV file.

        Args:
            wide: one row per sample, as for `to_dicts`.

        Raises:
            MissingDependency: pandas is not installed.
        """
        return super().to_pandas() if not wide else pandas_frame(rows_by_column(self.to_dicts(wide=True)))

    def to_polars(self, *, wide: bool = False) -> Any:
        """The same as a polars DataFrame. Raises MissingDependency without polars."""
        return super().to_polars() if not wide else polars_frame(rows_by_column(self.to_dicts(wide=True)))

    @property
    def title(self) -> str:
        """Dataset, number of samples and judge in one line."""
        return f"{self.dataset_name}: {self.samples_and_judge}"

    @property
    def samples_and_judge(self) -> str:
        """Samples and trials, target and judge: "60 samples × 4 trials · target app:agent · judge lexical@7"."""
        several = len({judge for line in self.summary for judge in line.judges}) > 1
        judge = "no judge needed" if self.judge == "none" else f"{'judges' if several else 'judge'} {self.judge}"
        samples = count(self.n_samples, "sample")
        if self.target is None:
            return f"{samples} · {judge}"
        trials = f" × {self.trials:,} trials" if self.trials > 1 else ""
        # The settings and prompts of a simulated user are in summary.json.
        user = f" · user {self.target.user.partition(' as user (')[0]}" if self.target.user else ""
        return f"{samples}{trials} · target {self.target.identity}{user} · {judge}"

    def judge_of(self, scorer: str) -> str:
        """The judges that a scorer used, by its title, signature or name; "none" if it used none.

        Raises ConfigError for an unknown scorer.
        """
        return ", ".join(self[scorer].judges) or "none"

    @property
    def notes(self) -> tuple[Note, ...]:
        """Why the numbers are doubtful or incomplete, what they rest on, and where low answers are lost."""
        of_scorers = (
            each for line in self.summary for each in scores_note(line, self.titles[line.info.signature], self.trials)
        )
        lost = loss_note(self)
        return *doubts_of(self), *of_scorers, *(() if lost is None else (lost,))

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The report that `evalstone report` shows."""
        from evalstone.results.views.run import run_view  # noqa: PLC0415 - only showing a run needs it

        return run_view(self, front_end)

    def brief(self, front_end: FrontEnd = PYTHON) -> View:
        """The report without samples, which needs neither their texts nor numpy."""
        from evalstone.results.views.run import run_view  # noqa: PLC0415 - as above

        return run_view(self, front_end, brief=True)

    def csv_lines(self) -> Iterable[str]:
        """One row per sample and scorer."""
        return self.sample_rows().csv_lines()

    def __repr__(self) -> str:
        return f"<Run {self.id}: {count(len(self.records), 'record')} of {count(len(self.scorers), 'scorer')}>"


def check_runs(**values: object) -> None:
    """Check arguments that must be runs, by name.

    Raises:
        ConfigError: One is something else, such as the folder of a run.
    """
    for name, value in values.items():
        if not isinstance(value, Run):
            raise ConfigError(invalid(Setting(name), "a Run, as evaluate and read_run return it", value))
