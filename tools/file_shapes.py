"""The objects in files and JSON output that aren't the fields of a class: `json_schemas` reads them.

A field with a default may be absent. What a field means is below it, or in `page` or `documented`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evalstone.ledger import live
from evalstone.ledger.maintenance import Totals
from evalstone.ledger.scores import ListedScore, Source
from evalstone.live.accounting import Coverage, ScorerCoverage
from evalstone.live.score_drift import LiveDrift, ScorerWatch
from evalstone.results.block_plan import BlockPlan
from evalstone.results.data_check import DataProblem
from evalstone.results.estimate import Estimate, JudgeEstimate
from evalstone.results.slices import ScorerSlices
from evalstone.results.summary import ScorerInfo
from evalstone.scorers.other_systems import Counterpart
from evalstone.stats.mean_watch import MeanWatch
from evalstone.stats.ppi import PPIEstimate
from evalstone.types import JudgeCall, Message, Note, Sample, Trajectory, TrajectoryExpectation, Usage
from evalstone.types.metadata import Drawn, EndingName, RunKind, StoredCell, StoredDataset, StoredTarget
from evalstone.view.drafts import Draft

ABSENT: Any = None
Outcome = Literal["score", "skipped", "failed"]


class Shape:
    """An object of a file."""

    page: ClassVar[tuple[str, str]] = ("", "")
    """A page of docs, and what precedes the table there that says what fields mean."""
    documented: ClassVar[type | None] = None
    """A class with docstrings that say what fields mean."""


@dataclass(kw_only=True)
class Error(Shape):
    """Why there is no score."""

    message: str
    reply: str | None
    """The judge's raw reply, if there was one."""
    exception: str | None = ABSENT
    """The type of the exception, for one in a scorer's code."""
    traceback: str | None = ABSENT


@dataclass(kw_only=True)
class RecordLine(Shape):
    """One outcome: a sample and a scorer. A line of `records.jsonl`."""

    page = ("results.md", "### records.jsonl")

    sample_id: str
    scorer: str
    signature: str
    outcome: Outcome
    value: float | None
    scale: float | None
    reason: str
    evidence: Any
    calls: list[JudgeCall]
    seconds: float
    cost: float | None
    error: Error | None
    group: str = ABSENT
    trial: int = ABSENT
    weight: float = ABSENT


@dataclass(kw_only=True)
class TestScore(Shape):
    """One outcome in a test session. A line of `scores.jsonl`."""

    page = ("results.md", "### records.jsonl")

    test: str
    """The test, as pytest names it."""
    scorer: str
    signature: str
    sample_id: str
    outcome: Outcome
    value: float | None
    scale: float | None
    reason: str
    cost: float | None
    trial: int = ABSENT


@dataclass(kw_only=True)
class ScorerEntry(Shape):
    """A scorer of a run, without its results."""

    page = ("results.md", "A scorer's summary:")

    name: str
    signature: str
    scale: float
    lower_is_better: bool
    case_metadata: list[str] = ABSENT
    written_by: str = ABSENT
    frozen_signature: str = ABSENT
    description: str = ABSENT
    definition: Mapping[str, Any] = ABSENT
    tool: str = ABSENT
    tool_threshold: float = ABSENT


@dataclass(kw_only=True)
class ScorerLine(ScorerEntry):
    """A scorer of a run, with its results if the run has ended."""

    mean: float | None = ABSENT
    interval: tuple[float, float] | None = ABSENT
    confidence: float | None = ABSENT
    method: str = ABSENT
    groups: int | None = ABSENT
    effective: float = ABSENT
    notes: list[Note] = ABSENT
    n_score: int = ABSENT
    n_skipped: int = ABSENT
    n_failed: int = ABSENT
    histogram: list[int] = ABSENT
    bounds: tuple[float, float] | None = ABSENT
    asked: int = ABSENT
    shared: int = ABSENT
    cached: int = ABSENT
    cost: float | None = ABSENT
    judges: list[str] = ABSENT
    corrections: int = ABSENT
    corrected: int = ABSENT
    lost: int = ABSENT


@dataclass(kw_only=True)
class JudgeOfRun(Shape):
    """The judge of a run."""

    identity: str
    note: str
    """Its limitations."""
    cautions: list[Note]
    """Samples that it doesn't suit."""


@dataclass(kw_only=True)
class PaidCost(Shape):
    """The cost of a run in US dollars; null if a price is unknown."""

    total: float | None
    this_call: float | None
    """The part since the run was started or last resumed."""
    interrupted: float | None
    """The part for samples that have no record."""
    records: float | None
    """The part of the judge calls in records."""


@dataclass(kw_only=True)
class JudgeStats(Shape):
    """What a composite judge did: other fields depend on its kind."""

    kind: str
    questions: int


@dataclass(kw_only=True)
class RunSummary(Shape):
    """A run, without its records: `summary.json`. A run that has not ended has no results."""

    page = ("results.md", "### summary.json")

    evalstone: str
    id: str
    kind: RunKind
    name: str
    tags: list[str]
    dataset: StoredDataset
    judge: JudgeOfRun
    started: str
    seconds: float
    resumed: int
    resumed_at: str
    stop_reason: str
    ending: EndingName
    warnings: Mapping[str, int]
    judge_stats: Mapping[str, JudgeStats]
    scorers: list[ScorerLine] | None
    code: list[str] = ABSENT
    drawn: Drawn = ABSENT
    target: StoredTarget = ABSENT
    cell: StoredCell = ABSENT
    cost: float | None = ABSENT
    paid: PaidCost = ABSENT
    notes: list[Note] = ABSENT
    run: str = ABSENT
    """In lists of runs: the run's ID."""
    folder: str = ABSENT
    """In lists of runs: the results folder that it is in."""
    slices: list[ScorerSlices] = ABSENT
    """With `--slice-by`: the means of each slice."""
    corrected: list[PPIEstimate | Mapping[str, Any]] = ABSENT
    """With `--labels` or `--calibrated`: the means corrected by human labels, and the rates."""


@dataclass(kw_only=True)
class SampleRow(Shape):
    """A sample: a line of `samples.jsonl`. Fields without a value are left out."""

    documented = Sample

    id: str
    input: str = ABSENT
    output: str = ABSENT
    context: list[str] = ABSENT
    reference: str = ABSENT
    messages: list[Message] = ABSENT
    instructions: str = ABSENT
    metadata: Mapping[str, Any] = ABSENT
    group: str = ABSENT
    weight: float = ABSENT
    trajectory: Trajectory = ABSENT
    expected_trajectory: TrajectoryExpectation = ABSENT
    state: Any = ABSENT
    turns: list[SampleRow] = ABSENT
    trial: int = ABSENT


@dataclass(kw_only=True)
class AskedMessage(Shape):
    """A message of a prompt."""

    role: str
    content: str


@dataclass(kw_only=True)
class Asked(Shape):
    """What a judge was asked: the messages of a prompt, or the inputs of a judge that reads no prompt."""

    messages: list[AskedMessage] = ABSENT
    schema: Any = ABSENT
    """With messages: the JSON schema of the reply."""
    inputs: Mapping[str, str] = ABSENT
    """By name, the texts that the judge was given."""


@dataclass(kw_only=True)
class LabelRow(Shape):
    """A label that a person gave a sample. Columns that are not listed are the user's own."""

    id: str = ABSENT
    """The sample's ID."""
    label: float | bool | str | None = ABSENT
    """A score on the scorer's scale, a rate from 0 to 1, or a word such as yes or no."""


@dataclass(kw_only=True)
class PlannedFile(Shape):
    """A data file of a planned run."""

    address: str
    size: int
    changed: str


@dataclass(kw_only=True)
class PlannedBlock(Shape):
    """Samples that are scored together."""

    file: int
    """The number of the file, from 0."""
    start: int
    """Where the block begins in it, in bytes."""
    stop: int | None
    """Where it ends; null for the end of the file."""
    samples: int
    ids: Mapping[str, str] = ABSENT
    """By number within the block, the IDs of samples whose own are taken."""


@dataclass(kw_only=True)
class PlannedReading(Shape):
    """How the files are read, as `load` has it; null for what isn't said."""

    map: Mapping[str, Any] | None
    split: Mapping[str, str] | None
    encoding: str | None
    sheet: str | None


@dataclass(kw_only=True)
class PlanFile(Shape):
    """A run that is scored in blocks: `plan.json`."""

    documented = BlockPlan

    evalstone: str
    """The version that wrote it."""
    fingerprint: str
    dataset: StoredDataset
    scorers: list[ScorerEntry]
    judge: str
    judges: Mapping[str, str]
    asked: list[str]
    keep_reasoning: bool
    keep: str
    reading: PlannedReading
    notes: list[str]
    files: list[PlannedFile]
    blocks: list[PlannedBlock]
    checksum: str
    """A hash of all else."""


@dataclass(kw_only=True)
class DatasetEdits(Shape):
    """The edits of a dataset: the first line names the dataset, the others have one edited sample each."""

    documented = Draft

    dataset: str = ABSENT
    base: str = ABSENT
    replaces: str = ABSENT
    id: str = ABSENT
    """The sample's ID. In all lines but the first, with `sample`."""
    sample: Mapping[str, Any] | None = ABSENT
    """The sample as edited; null if it is removed."""


@dataclass(kw_only=True)
class RecordedError(Shape):
    """The exception that a tool raised."""

    kinds: list[str]
    """The names of its type and of the types that it derives from."""
    text: str
    arguments: list[Any] | None


@dataclass(kw_only=True)
class RecordedCall(Shape):
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any]
    seconds: float
    finished: bool
    """False if the target ended before the tool did."""
    result: Any = ABSENT
    error: RecordedError = ABSENT


@dataclass(kw_only=True)
class ToolCalls(Shape):
    """The tool calls of one answer of a target."""

    sample_id: str
    trial: int
    thread: str
    """The conversation or the attempt that the calls belong to."""
    turn: int
    """The turn of the conversation, from 1."""
    began: int
    """The number of calls of the answer that began."""
    calls: list[RecordedCall]


@dataclass(kw_only=True)
class JudgeCallLine(Shape):
    """A judge call in the log of a `LoggingJudge`."""

    time: str
    """When, in UTC (ISO 8601)."""
    judge: str
    """The judge's identity."""
    calls: list[JudgeCall]
    """The one call."""
    inputs: Mapping[str, Any] = ABSENT
    """The texts that the judge was asked about, with `include_inputs`."""


@dataclass(kw_only=True)
class Import(Shape):
    """Runs imported from another tool: `import --json`."""

    tool: str
    """The tool, with its version if its file has that."""
    runs: list[RunSummary]
    """One run per system."""
    known: list[str]
    """The IDs of runs that were imported before."""
    folders: list[str]
    """The results folders that were written."""


@dataclass(kw_only=True)
class ExperimentEstimate(Shape):
    """The estimated calls and cost of the runs of an experiment."""

    runs: Mapping[str, Estimate]
    """By cell."""


@dataclass(kw_only=True)
class AuditEstimate(Shape):
    """The estimated calls and cost of an audit."""

    judge: str
    """The judge's identity."""
    versions: int
    """Perturbed samples."""
    samples: int
    judges: list[JudgeEstimate]
    calls: int
    usage: Usage
    cost: float | None
    """US dollars; null if a price is unknown."""


@dataclass(kw_only=True)
class LatestRun(Shape):
    """A run in a ledger."""

    run: str
    """The run's ID."""
    started: str
    finished: str | None
    """Null until it is complete."""
    name: str | None
    dataset: StoredDataset
    judge: Mapping[str, Any]


@dataclass(kw_only=True)
class LedgerContents(Shape):
    """What a ledger contains: `ledger info --json`."""

    location: str
    schema_version: str
    size: int
    """In bytes."""
    counts: Mapping[str, int]
    """Rows by kind."""
    samples: int
    """The samples of datasets and of live scores."""
    unfinished: int
    """Runs that are not complete."""
    in_progress: int
    open_batches: int
    answered_by: list[Totals]
    latest: list[LatestRun]
    """The latest runs, latest first."""


@dataclass(kw_only=True)
class ScoreEntry(Shape):
    """A score in a ledger."""

    documented = ListedScore

    time: str
    source: Source
    stream: str | None
    run: str | None
    run_name: str
    entity: str
    scorer: str
    signature: str
    sample_id: str
    state: live.State
    value: float | None
    scale: float | None
    reason: str
    trace: str | None
    cursor: str


@dataclass(kw_only=True)
class ScorePage(Shape):
    """Scores of a ledger, newest first: `ledger scores --json`."""

    scores: list[ScoreEntry]
    next: str | None
    """The cursor of the next page, if this one is full."""


@dataclass(kw_only=True)
class Dropped(Shape):
    """Samples that were sampled, but not scored."""

    queue: int
    """The queue was full."""
    budget: int
    """The day's budget was spent."""


@dataclass(kw_only=True)
class CoverageCounts(Shape):
    """How much was scored."""

    documented = ScorerCoverage

    seen: int
    filtered: int
    eligible: int
    declined: int
    n_score: int
    n_skipped: int
    n_failed: int
    pending: int
    unaccounted: int
    dropped: Dropped
    sampled: int
    coverage: float | None


@dataclass(kw_only=True)
class CoverageOfScorer(CoverageCounts):
    """How much one scorer scored."""

    scorer: str
    signature: str


@dataclass(kw_only=True)
class LiveCoverage(Shape):
    """How much of the traffic was scored: `live coverage --json`."""

    documented = Coverage

    stream: str
    since: str | None
    until: str | None
    scorers: list[CoverageOfScorer]
    total: CoverageCounts


@dataclass(kw_only=True)
class WatchTest(Shape):
    """One test of a scorer: a mean that is watched."""

    documented = MeanWatch

    of: str
    """score, scored (the share of samples with a score), or score, rising."""
    verdict: str
    baseline: float
    """The mean of the baseline."""
    bound: float
    """The baseline's lower confidence limit minus the tolerance."""
    mean: float | None
    values: int
    """The number of units watched."""
    alarm: str | None
    """The start of the unit that raised the first alarm."""
    changed: str | None
    """An estimate of when the mean changed."""
    mean_since: float | None
    evidence: float
    """The largest total capital so far."""


@dataclass(kw_only=True)
class ScorerOfWatch(Shape):
    """One scorer's drift between a baseline and live scores."""

    documented = ScorerWatch

    title: str
    info: ScorerInfo
    verdict: str
    mean: float | None
    baseline: float | None
    tests: list[WatchTest]
    units: int
    waiting: int
    late: int
    unfinished: int
    alarm_by_unfinished: bool


@dataclass(kw_only=True)
class LiveDriftResult(Shape):
    """Whether live scores became worse than a baseline: `live drift --json`."""

    documented = LiveDrift

    baseline: str
    stream: str
    since: str | None
    alpha: float
    cycle_seconds: float | None
    notes: list[Note]
    scorers: list[ScorerOfWatch]


@dataclass(kw_only=True)
class ScorerParameter(Shape):
    """A parameter of a scorer."""

    description: str
    allowed: str
    required: bool
    default: Any = ABSENT


@dataclass(kw_only=True)
class Range(Shape):
    """What scores from a number on mean; the number is under `from`."""

    meaning: str


@dataclass(kw_only=True)
class ScorerNeed(Shape):
    """A field of samples that a scorer needs; `metadata.NAME` is an entry of the metadata."""

    field: str
    alternatives: list[str]
    """The fields that may stand in for it: one is enough."""
    parameters: list[str]
    """The parameters of the scorer that supply it for all samples: one is enough."""


@dataclass(kw_only=True)
class ScorerDescription(Shape):
    """A scorer that is installed: `scorers --json`. A plug-in that can't be used has an `error`, and only `name` and
    `package` besides it."""

    name: str
    package: str | None
    """The package of a plug-in."""
    summary: str = ABSENT
    version: int = ABSENT
    needs: list[ScorerNeed] = ABSENT
    """The fields that a sample must have; without one, it is skipped. Empty if its parameters decide that."""
    range: tuple[float, float] | None = ABSENT
    lower_is_better: bool | None = ABSENT
    judge_calls: list[str] | None = ABSENT
    """The kinds of questions that it asks a judge."""
    parameters: Mapping[str, ScorerParameter] = ABSENT
    definitions: Mapping[str, str] = ABSENT
    interpretation: list[Range] = ABSENT
    advice: str = ABSENT
    error: str = ABSENT


@dataclass(kw_only=True)
class Counterparts(Shape):
    """What the names of another tool are here: `scorers --from TOOL --json`."""

    system: str
    names: list[Counterpart]


@dataclass(kw_only=True)
class Problem(Shape):
    """A problem of a dataset."""

    documented = DataProblem

    place: str
    field: str
    message: str


@dataclass(kw_only=True)
class SliceKey(Shape):
    """A slice of the samples."""

    field: str
    key: Any
