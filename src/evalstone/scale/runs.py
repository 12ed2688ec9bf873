"""Runs in blocks: planned once, scored by any process, and merged."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from evalstone._core.declarations import check_argument
from evalstone._core.display import count
from evalstone._core.file_format import installed_version
from evalstone._core.front_ends import Setting, WordingPart
from evalstone._core.json import content_hash
from evalstone._core.phases import Phase, phase
from evalstone._core.run_ids import run_id
from evalstone._core.storage import Location, is_address
from evalstone._core.validation import read_data
from evalstone.datasets import Dataset
from evalstone.datasets.files import cautions, file_name
from evalstone.datasets.part_samples import Block, BlockSamples, check_unchanged
from evalstone.datasets.parts import ROWS_PER_PART, Part, parts_of
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.datasets.rows import RowReader
from evalstone.errors import ConfigError, DataError, RunStopped
from evalstone.judges.aligned import how_asked
from evalstone.results.block_plan import BlockPlan
from evalstone.results.block_writing import write_table
from evalstone.results.endings import COMPLETE
from evalstone.results.files import check_replaceable, write_summary
from evalstone.results.record_blocks import BLOCKS, CALLS, RecordBlocks, block_name
from evalstone.results.record_tables import Keep, record_tables
from evalstone.results.run import Run
from evalstone.results.summary import WITHOUT, ScorerSummary
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan, scorer_info
from evalstone.run.problems import named_judges, problems
from evalstone.scale.engines import Engine
from evalstone.scale.scoring import Caution, OpenScoring, Scoring
from evalstone.scale.survey import PartSurvey, Survey, blocks_of, survey
from evalstone.types import Note, Paid, total_cost

SurveyParts: TypeAlias = Callable[[Sequence[Part]], Iterable[PartSurvey]]
"""Surveys parts, and returns their surveys in the order of the parts."""


def planned(
    source: str,
    scoring: Scoring,
    folder: Location,
    *,
    reading: Reading = AS_FOUND,
    keep: Keep = "all",
    block_rows: int = ROWS_PER_PART,
    workers: int = 0,
    survey_parts: SurveyParts | None = None,
    stop: StopSignal | None = None,
) -> BlockPlan:
    """The plan of a run, which is then in its results folder: the one that is there, or a new one.

    Args:
        source: A path or an address, also with a wildcard.
        scoring: What scores the samples.
        folder: The results folder.
        reading: How the source is read.
        keep: How much is kept of each record.
        block_rows: About how many rows a block has.
        workers: For how many processes there should be enough blocks; 0 if it doesn't matter.
        survey_parts: Surveys the parts of the source; None for this process.
        stop: Once requested, no more parts are read.

    Raises:
        DataError: A row is invalid, or an ID is repeated; the message has file and line.
        ConfigError: Nothing can be scored, a judge has no key, or the folder is a file, or has blocks of another plan
            or results of other data.
        RunStopped: `stop` was requested.
    """
    check_argument("keep", keep, Keep)
    _check_folder(folder)
    files, plan = reading.files(source), scoring.plan
    scoring.check()
    if (before := _plan_in(folder, plan, reading, keep)) is not None and before.is_of(files):
        _check_own_blocks(folder, before)
        return before
    found = Survey(reading)
    parts = parts_of(files, block_rows, workers=workers)
    with (
        surveying(scoring, reading) as survey_part,
        phase(f"reading {file_name(files, source)}", "part", len(parts)) as shown,
    ):
        surveys = map(survey_part, parts) if survey_parts is None else survey_parts(parts)
        for part, surveyed in zip(parts, shown.count(surveys), strict=True):
            found.add(part, surveyed)
            if stop is not None and stop.requested:
                raise RunStopped(stop.reason)
    found.finish()
    for file in files:
        check_unchanged(file.location)
    made = _plan_of(found, plan, file_name(files, source), keep)
    if folder.local is not None:
        check_replaceable(folder.local, made.dataset_name, made.dataset_version, None)
    # Another process may have planned meanwhile.
    if (before := _plan_in(folder, plan, reading, keep)) is not None and before.fingerprint != made.fingerprint:
        theirs, ours = before.dataset_version, made.dataset_version
        data = f"of the dataset {before.dataset_name}, version {theirs}, not {ours}"
        raise _of_another_run(folder, data if theirs != ours else "in other blocks of the same samples")
    _check_own_blocks(folder, made)
    made.write(folder)
    return made


def _check_folder(folder: Location) -> None:
    """Raise ConfigError if a results folder can't be made because it, or what it is in, is a file."""
    if (path := folder.local) is None:
        return
    there = next((each for each in (path, *path.parents) if each.exists()), None)
    if there is not None and not there.is_dir():
        raise ConfigError(f"{folder} can't be the results folder of a run: {there} is a file; name another folder")


def _check_own_blocks(folder: Location, plan: BlockPlan) -> None:
    """Raise ConfigError if a results folder has blocks of other plans than its own."""
    if other := _other_plans(folder, plan):
        names = ", ".join(f"{name}-*" for name in other[:3]) + (", …" if len(other) > 3 else "")
        raise ConfigError(
            f"{folder} has blocks of another run, with other data, scorers, prompts, or judges than its plan: delete "
            f"{names} in {BLOCKS} and {CALLS}, and run the commands of one of them again"
        )


def _plan_in(folder: Location, plan: Plan, reading: Reading, keep: Keep) -> BlockPlan | None:
    """The plan in a folder; None if there is none. Raises ConfigError if this run would score its blocks otherwise."""
    before = BlockPlan.read(folder)
    if before is not None and (other := _difference(before, plan, reading, keep)):
        raise _of_another_run(folder, *other)
    return before


def _of_another_run(folder: Location, *how: WordingPart) -> ConfigError:
    return ConfigError(
        f"{folder} has the blocks of another run: ", *how, "; run it as before, name another folder, or remove this one"
    )


def _difference(before: BlockPlan, plan: Plan, reading: Reading, keep: Keep) -> tuple[WordingPart, ...]:
    """How a plan in blocks differs from what this process would do with its blocks; empty for not at all."""
    if before.evalstone != (here := installed_version()):
        return (f"by evalstone {before.evalstone}, and this is {here}, which may score differently",)
    theirs, ours = ([each.signature for each in scorers] for scorers in (before.scorers, plan.scorers))
    if theirs != ours:
        return (f"by the scorers {', '.join(theirs)}, not {', '.join(ours)}",)
    if before.judge != plan.judge.identity:
        return (f"with the judge {before.judge}, not {plan.judge.identity}",)
    if before.keep_reasoning != plan.keep_reasoning:
        return "with ", Setting("keep_reasoning", before.keep_reasoning)
    if before.keep != keep:
        return "with ", Setting("keep", before.keep), ", not ", Setting("keep", keep)
    now = reading.to_dict()
    for name, value in before.reading.to_dict().items():
        if value != now[name]:
            return ("without ", Setting(name)) if value is None else ("with ", Setting(name, value))
    if before.fingerprint != _fingerprint(plan, before.dataset_version, reading, before.blocks):
        return ("with other prompts, or other judges of its scorers",)
    return ()


@contextmanager
def surveying(scoring: Scoring, reading: Reading = AS_FOUND) -> Generator[Callable[[Part], PartSurvey]]:
    """What surveys parts in one process."""
    yield lambda part: survey(part, scoring.plan.scorers, reading)


def _fingerprint(plan: Plan, version: str, reading: Reading, blocks: Sequence[Block]) -> str:
    borders = [[block.part.start, block.part.stop, block.samples] for block in blocks]
    return content_hash([plan.fingerprint_on(version), reading.to_dict(), borders])


def _plan_of(found: Survey, plan: Plan, name: str, keep: Keep) -> BlockPlan:
    if not found.samples:
        raise ConfigError(f"{name} has no samples")
    reader: RowReader = found.reader
    absent = [found.lacking[scorer.signature] for scorer in plan.scorers]
    if all(fields is not None for fields in absent):
        data = Dataset((), name, reader.columns.became, tuple(reader.ignored))
        raise replace(plan, dataset=data).unscorable(absent, found.samples)
    blocks = blocks_of(found)
    files = tuple(dict.fromkeys(part.file for part in found.parts))
    return BlockPlan(
        fingerprint=_fingerprint(plan, found.version, found.how, blocks),
        dataset_name=name,
        dataset_version=found.version,
        n_samples=found.samples,
        scorers=tuple(map(scorer_info, plan.scorers)),
        judge=plan.judge.identity,
        judges={judge.identity: judge.note for judge in plan.judges},
        asked=tuple(judge.identity for judge in plan.asked_judges),
        asking=how_asked(plan.asked_judges),
        keep_reasoning=plan.keep_reasoning,
        keep=keep,
        reading=found.how,
        files=files,
        blocks=blocks,
        notes=(*cautions(files), *reader.notes(), *found.notes.lines()),
    )


def block_files(folder: Location, plan: BlockPlan, block: Block) -> tuple[Location, Location]:
    """The files of a block: its records and its judge calls."""
    name = block_name(plan.fingerprint, block.number)
    return folder / BLOCKS / name, folder / CALLS / name


def missing_blocks(folder: Location, plan: BlockPlan) -> list[Block]:
    """The blocks that are still to be scored."""
    there = {file.name for file in (folder / BLOCKS).files(f"{plan.fingerprint}-*")}
    return [block for block in plan.blocks if block_name(plan.fingerprint, block.number) not in there]


class BlockResult(NamedTuple):
    """What became of a block."""

    samples: int
    """The number of its samples."""
    now: bool
    """Whether it was scored now; otherwise, it was there before."""


def score_block(
    folder: Location,
    plan: BlockPlan,
    block: Block,
    opened: OpenScoring,
    on_record: Callable[[], None] | None = None,
) -> BlockResult:
    """Score a block that isn't there, and write its files. on_record: as for `OpenScoring.score`.

    Raises:
        ConfigError: Its file has changed.
        DataError: A sample has no record of a scorer.
        RunAborted: The judge is gone, or refuses the key.
    """
    records_file, calls_file = block_files(folder, plan, block)
    if records_file.found() is not None:  # another process scored it, maybe one whose result was lost
        return BlockResult(block.samples, now=False)
    samples = list(block.read(plan.reading))
    began = datetime.now(UTC)
    scored = opened.score(samples, on_record)
    if (found := len(scored.records)) != (expected := block.samples * len(plan.scorers)):
        raise DataError(f"block {block.number} has {count(found, 'record')}, not {expected:,}, and isn't written")
    table, calls = record_tables(
        scored.records,
        plan.scorers,
        plan.keep,
        plan=plan.fingerprint,
        block=block.number,
        attempt=secrets.token_hex(8),
        evalstone=installed_version(),
        began=began.isoformat(timespec="milliseconds"),
        ended=datetime.now(UTC).isoformat(timespec="milliseconds"),
        warnings=dict(scored.warnings),
        reasoned=scored.reasoned,
        cautions=[asdict(caution) for caution in scored.cautions],
    )
    if records_file.found() is not None:  # another process scored it meanwhile
        return BlockResult(block.samples, now=False)
    if calls is not None:  # first, because a block is done once its records are there
        calls_file.write(partial(write_table, calls, folder=CALLS))
    records_file.write(partial(write_table, table))
    return BlockResult(block.samples, now=True)


@dataclass(frozen=True, kw_only=True)
class _About:
    """What the metadata of a block say besides what every block has."""

    evalstone: str = ""
    began: str = ""
    ended: str = ""
    warnings: dict[str, int] = field(default_factory=dict[str, int])
    reasoned: int = 0
    cautions: tuple[Caution, ...] = ()


def merged(folder: Location, *, name: str = "", tags: tuple[str, ...] = ()) -> Run:
    """The run whose blocks are all in a results folder, which then has its summary.

    Raises:
        ConfigError: There is no plan, blocks are missing, or there are some of another plan.
        DataError: A block is damaged, lacks records, or was scored otherwise than the plan says.
    """
    plan = BlockPlan.read(folder)
    if plan is None:
        raise ConfigError(f"{folder} has no run in blocks: plan.json is missing")
    _check_own_blocks(folder, plan)
    if missing := missing_blocks(folder, plan):
        some = ", ".join(str(block.number + 1) for block in missing[:5]) + (", …" if len(missing) > 5 else "")
        raise ConfigError(
            f"{folder} lacks {count(len(missing), 'block')} of {len(plan.blocks):,} ({some}); run the commands that "
            "score them again"
        )
    records = RecordBlocks.of_folder(folder, plan.scorers, plan.fingerprint, len(plan.blocks), plan.keep)
    records.check_samples([block.samples for block in plan.blocks])
    run = _run_of(plan, records, name, tags)
    write_summary(run, folder, records)
    return run


def _other_plans(folder: Location, plan: BlockPlan) -> list[str]:
    """The fingerprints of other plans that a results folder has blocks of: of processes that planned at the same
    moment."""
    files = (file for kind in (BLOCKS, CALLS) for file in (folder / kind).files("*-??????.parquet"))
    return sorted({file.name.rpartition("-")[0] for file in files} - {plan.fingerprint})


def _run_of(plan: BlockPlan, records: RecordBlocks, name: str, tags: tuple[str, ...]) -> Run:
    abouts = [read_data(_About, said) for said in records.said]
    if other := [number for number, about in enumerate(abouts) if about.evalstone != plan.evalstone]:
        raise DataError(
            f"{count(len(other), 'block')} of {len(abouts):,} (such as {block_name(plan.fingerprint, other[0])}) "
            f"{'was' if len(other) == 1 else 'were'} scored by evalstone {abouts[other[0]].evalstone}, not "
            f"{plan.evalstone}, which may score differently; delete them, and score them again"
        )
    summary = records.summaries()
    judges, judge_note = named_judges(plan.asked, plan.judges, summary)
    warnings = sum((Counter(about.warnings) for about in abouts), Counter[str]())
    reasoned = sum(about.reasoned for about in abouts)
    began, ended = min(about.began for about in abouts), max(about.ended for about in abouts)
    cost = total_cost(line.cost for line in summary)
    return Run(
        id=run_id(datetime.fromisoformat(began), plan.fingerprint),
        kind="evaluation",
        dataset_name=plan.dataset_name,
        dataset_version=plan.dataset_version,
        n_samples=plan.n_samples,
        judge=judges,
        judge_note=judge_note,
        cautions=_cautions(plan, abouts, summary),
        scorers=plan.scorers,
        records=records,
        summary=summary,
        started=datetime.fromisoformat(began).isoformat(timespec="seconds"),
        seconds=(datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds(),
        ending=COMPLETE,
        warnings=problems(warnings, summary, records.dropped, reasoned, keep_reasoning=plan.keep_reasoning),
        judge_stats=records.judge_stats(),
        asking=plan.asking,
        samples=BlockSamples(plan.blocks, plan.reading),
        paid=Paid(total=cost, this_call=cost, records=cost),
        name=name,
        tags=tags,
    )


_COUNTED = ("samples", "of")
"""The values of a note that depend on how many samples a judge was shown."""


def _cautions(plan: BlockPlan, abouts: Iterable[_About], summary: Iterable[ScorerSummary]) -> tuple[Note, ...]:
    """The notes of the judges that were asked, on all samples: equal ones once, their numbers of samples added up."""
    asked = {identity.partition(WITHOUT)[0] for line in summary for identity in line.judges}
    samples: dict[str, Counter[tuple[int, Note]]] = {judge: Counter() for judge in plan.judges if judge in asked}
    for stored in (caution for about in abouts for caution in about.cautions):
        if stored.judge in asked:
            found = Note.of(stored.note)
            uncounted = {name: 0 if name in _COUNTED else value for name, value in found.values}
            key = stored.source, replace(found, values=tuple(uncounted.items()))
            samples[stored.judge][key] += found["samples"] or 0
    notes = (pair for of in samples.values() for pair in sorted(of.items(), key=lambda pair: pair[0][0]))
    return tuple(dict.fromkeys(_on_all(found, of, plan) for (_, found), of in notes))


def _on_all(found: Note, samples: int, plan: BlockPlan) -> Note:
    """A note with its number of samples, of all those of the run."""
    numbers = {"samples": samples, "of": plan.n_samples}
    return replace(found, values=tuple((name, numbers.get(name, value)) for name, value in found.values))


@contextmanager
def scoring_blocks(
    scoring: Scoring, folder: Location, plan: BlockPlan, stop: StopSignal | None = None, shown: Phase | None = None
) -> Generator[Callable[[Block], BlockResult]]:
    """What scores blocks in one process, with one session, which is closed at the end.

    stop: as for `OpenScoring`. shown: a phase that counts samples once they are scored.

    Raises ConfigError if this process would score otherwise than the plan says, doesn't see the plan in the folder, or
    a judge has no key in it.
    """
    if other := _difference(plan, scoring.plan, plan.reading, plan.keep):
        raise ConfigError(
            "the run was planned ",
            *other,
            ": install the same evalstone and the same code of your own everywhere",
        )
    there = BlockPlan.read(folder)
    if there is None or there.fingerprint != plan.fingerprint:
        raise ConfigError(
            f"{folder} isn't the results folder of the run in the process that scores its blocks: plan.json is "
            f"{'missing' if there is None else 'of another run'}; name a folder that all processes share, or an address"
        )
    with contextlib.closing(OpenScoring(scoring, plan.fingerprint, stop)) as opened:

        def score(block: Block) -> BlockResult:
            counting = None if shown is None else _Counting(shown, len(plan.scorers))
            result = score_block(folder, plan, block, opened, counting)
            if shown is not None and not result.now:
                shown.done += result.samples
            return result

        yield score


class _Counting:
    """Counts the samples of a phase, by their records."""

    def __init__(self, phase: Phase, scorers: int) -> None:
        self._phase, self._scorers = phase, scorers
        self._before, self._records = phase.done, 0

    def __call__(self) -> None:
        self._records += 1
        self._phase.done = self._before + self._records // self._scorers


def run_on(
    engine: Engine,
    source: str,
    scoring: Scoring,
    folder: Location,
    *,
    reading: Reading = AS_FOUND,
    keep: Keep = "all",
    block_rows: int = ROWS_PER_PART,
    name: str = "",
    tags: tuple[str, ...] = (),
    on_plan: Callable[[BlockPlan], None] | None = None,
) -> Run:
    """Run on an engine: survey, score the blocks that aren't there, and merge.

    Args:
        engine: The engine.
        source: A path or an address, also with a wildcard.
        scoring: What scores the samples.
        folder: The results folder.
        reading: How the source is read.
        keep: How much is kept of each record.
        block_rows: About how many rows a block has.
        name: The name of the run.
        tags: The tags of the run.
        on_plan: Called with the plan before anything is scored.

    Raises:
        ConfigError: A scorer or the judge can't be sent to other processes; else as `planned`.
        RunAborted: The engine lost a worker too often. Finished blocks are kept.
        StorageError: A block can't be written, such as to a full disk. Finished blocks are kept.
    """
    if not is_address(source):  # workers may run in another folder
        source = str(Path(Location.of(source).path).absolute())
    with engine:
        for spec in scoring.listed:
            engine.check_sendable(spec, f"the scorer {spec if isinstance(spec, str) else type(spec).__name__}")
        engine.check_sendable(scoring.judge, "the judge")
        plan = planned(
            source,
            scoring,
            folder,
            reading=reading,
            keep=keep,
            block_rows=block_rows,
            workers=engine.workers,
            survey_parts=lambda parts: engine.map(partial(surveying, scoring, reading), parts, ordered=True),
        )
        if on_plan is not None:
            on_plan(plan)
        blocks = missing_blocks(folder, plan)
        with phase(f"scoring on {engine.name}", "sample", plan.n_samples) as progress:
            progress.done = plan.n_samples - sum(block.samples for block in blocks)
            for result in engine.map(partial(scoring_blocks, scoring, folder.absolute, plan), blocks, ordered=False):
                progress.done += result.samples
    return merged(folder, name=name, tags=tags)


def run_shard(
    source: str,
    scoring: Scoring,
    folder: Location,
    number: int,
    shards: int,
    *,
    reading: Reading = AS_FOUND,
    keep: Keep = "all",
    block_rows: int = ROWS_PER_PART,
    stop: StopSignal | None = None,
    on_plan: Callable[[BlockPlan], None] | None = None,
) -> tuple[int, int]:
    """Score the blocks of one of several shards in this process. number: from 1. stop: once requested, no more records
    are begun, and RunStopped is raised after the calls in flight. on_plan: as for `run_on`.

    Returns:
        The numbers of blocks that were scored now, and of those of the shard.
    """
    plan = planned(
        source, scoring, folder, reading=reading, keep=keep, block_rows=block_rows, workers=shards, stop=stop
    )
    if on_plan is not None:
        on_plan(plan)
    own = shard_of(plan.blocks, number, shards)
    missing = {block.number for block in missing_blocks(folder, plan)}
    samples, scored = sum(block.samples for block in own if block.number in missing), 0
    with (
        phase(f"scoring shard {number} of {shards}", "sample", samples) as progress,
        scoring_blocks(scoring, folder, plan, stop, progress) as score,
    ):
        for block in own:
            if block.number in missing:
                scored += score(block).now
    return scored, len(own)


def shard_of(blocks: Sequence[Block], number: int, shards: int) -> Sequence[Block]:
    """The blocks of a shard: neighbors, because they are read from the same files. number: from 1."""
    return blocks[len(blocks) * (number - 1) // shards : len(blocks) * number // shards]
