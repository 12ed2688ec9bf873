"""Saved runs: from a results folder, or from the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalstone._core.display import count, excerpt
from evalstone._core.files import is_file, is_folder
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import rare_collections
from evalstone._core.phases import phase
from evalstone._core.storage import is_address
from evalstone.datasets.read_samples import ReadSamples
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError, absent, invalid
from evalstone.ledger import RunRow
from evalstone.ledger.base import chunks
from evalstone.results.files import read_run as read_folder
from evalstone.results.run import Run
from evalstone.results.spilling import SpillingRecords
from evalstone.results.summary import TINY, ScorerInfo, ScorerSummary, summarize
from evalstone.types import NO_USAGE, Paid, Record, RunMetadata, Sample, StoredTarget, total_cost

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger, LedgerSamples

_ANSWERS_PER_READ = 1000


def read_run(name: str | Path, *, ledger: str | Path | None = None) -> Run:
    """Read a run from a results folder, or from the ledger by its ID or name.

    Args:
        name: a folder or its address (`s3://bucket/results`), the ID of a run, or a run name. A name selects the
            latest evaluation with that name, and "last" selects the latest evaluation.
        ledger: path or URL of the ledger; by default `.evalstone/ledger.db`.

    Raises:
        ConfigError: there is no such folder and no such run in the ledger (its kind is "missing"), the name is that of
            several systems that were imported together, or it is no text and no path.
    """
    if not isinstance(name, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        shown = f"{excerpt(name)} ({type(name).__name__})"
        raise ConfigError(invalid("a run", "a results folder, an ID or a name", name, shown))
    return read_folder(name) if is_folder(name) or is_address(name) else _of_ledger(name, ledger)


def recorded_run(name: str, *, ledger: str | Path | None = None) -> Run:
    """The run in the ledger that `replay:NAME` names. A name or "last" selects the latest evaluation that isn't a
    replay; otherwise a repeated run would replay its predecessor. Arguments and errors are those of `read_run`."""
    return _of_ledger(name, ledger, replays=False)


def _of_ledger(name: str | Path, ledger: str | Path | None, *, replays: bool = True) -> Run:
    from evalstone.ledger.base import DEFAULT_LEDGER, is_there, shown  # noqa: PLC0415 - a folder needs no ledger

    url = DEFAULT_LEDGER if ledger is None else ledger
    if is_there(url):
        from evalstone.ledger.store import Ledger  # noqa: PLC0415 - a folder needs no ledger

        with Ledger(str(url), read_only=True) as opened:
            if (row := find_row(opened, str(name), replays=replays)) is not None:
                version = RunMetadata.of(row.metadata, f"run {row.id} in {opened.location}").dataset.version
                with phase(f"reading run {row.id}"):
                    run = with_cost(Run.from_dict(row.metadata, *_records(opened, row)), row)
                # A run that was imported, or killed early, may have no samples.
                if opened.samples(version) != run.n_samples:
                    return run
                return dataclasses.replace(run, samples=samples_of_run(run, str(url)))
    if name == "last":
        raise ConfigError(
            absent(
                "run",
                f"there are no saved runs in the ledger {shown(url)}; run `evalstone run` first, or name a results "
                "folder or another ledger with ",
                Setting("ledger", ...),
            )
        )
    if is_file(name):
        raise ConfigError(f"{json_line(str(name))} is a file; name its folder, {json_line(str(Path(name).parent))}")
    where = f"no run of that id or name in the ledger {shown(url)}"
    raise ConfigError(absent("run", f"there is no results folder {json_line(str(name))}, and {where}"))


def _records(ledger: Ledger, row: RunRow) -> tuple[Sequence[Record], tuple[ScorerSummary, ...]]:
    """The records of a run and their summaries, from one pass."""
    scorers = [*map(ScorerInfo.of, RunMetadata.of(row.metadata, f"run {row.id} in {ledger.location}").scorers)]
    records = SpillingRecords([info.signature for info in scorers])

    def read() -> Iterator[Record]:
        for line, record in ledger.record_lines(row.id):
            records.append(record, line)
            yield record

    with rare_collections():
        summary = summarize(scorers, read())
    records.columns.seal()
    return records, summary


def samples_of_run(run: Run, url: str) -> Sequence[Sample]:
    """The samples of a run in a ledger with the target's answers, read in each iteration. All of them must be there."""
    from evalstone.ledger.store import LedgerSamples  # noqa: PLC0415 - a folder needs no ledger

    samples = LedgerSamples(url, run.dataset_version)
    return samples if run.target is None else _Answered(samples, run)


def with_cost(run: Run, row: RunRow) -> Run:
    """The run with the cost in its row, which is ahead of its metadata if it was killed, or is in progress."""
    stored, total = run.paid, row.paid
    if stored is not None and (stored.total is None or (total is not None and total - stored.total < TINY)):
        return run
    before = 0.0 if stored is None or stored.total is None else stored.total
    paid = Paid(
        total=total,
        this_call=None if total is None else total - before,
        records=total_cost(line.cost for line in run.summary),
    )
    # What is stored of the target's answers is from before the invocation that was killed.
    target = run.target and dataclasses.replace(
        run.target, answers=0, failed=0, cached=0, cost=None, user_cost=0.0, usage=NO_USAGE, seconds={}
    )
    return dataclasses.replace(run, paid=paid, target=target)


class _Answered(ReadSamples):
    """The samples of a run with the target's answers in the ledger."""

    def __init__(self, samples: LedgerSamples, run: Run) -> None:
        self._samples, self._target = samples, run.target
        self._scored = {(entry.sample_id, entry.trial) for entry in run.columns.entries()}

    def read(self) -> Iterator[Sample]:
        # The ledger and targets, which a run without a target doesn't need.
        from evalstone.ledger.base import existing  # noqa: PLC0415
        from evalstone.ledger.store import Ledger  # noqa: PLC0415
        from evalstone.run.plan import cases  # noqa: PLC0415

        if (target := self._target) is None:
            yield from self._samples
            return
        with Ledger(existing(self._samples.url), read_only=True) as ledger:
            for some in chunks(cases(self._samples, target.trials), _ANSWERS_PER_READ):
                for sample, answered in zip(some, _answered(ledger, target, some), strict=True):
                    if answered is not None:
                        yield answered
                    elif (sample.id, sample.trial) in self._scored:
                        yield sample


def _answered(ledger: Ledger, target: StoredTarget, samples: Sequence[Sample]) -> Iterator[Sample | None]:
    """The samples with the target's answers; None for one that has no answer."""
    from evalstone.run.answer_rows import answer_key, read_answer  # noqa: PLC0415 - a run without a target needs none

    keys = [answer_key(sample, target.inputs, target.scope, target.user) for sample in samples]
    stored = ledger.answers_to(keys)
    for sample, key in zip(samples, keys, strict=True):
        outcome = read_answer(sample, stored[key]) if key in stored else None
        yield None if outcome is None else outcome.sample


class CaseSamples:
    """The samples of a run in the ledger by their case: the number of the sample and trial."""

    def __init__(self, dataset: str, target: StoredTarget | None) -> None:
        self._dataset, self._target = dataset, target
        self._block: tuple[int, list[Sample]] = 0, []
        """The block that was read last, after the number of its first sample."""

    def read(self, ledger: Ledger, cases: Sequence[int]) -> dict[int, Sample]:
        """The samples of cases in ascending order, with the target's answers, as far as they are stored."""
        from evalstone.run.plan import cases as cases_of  # noqa: PLC0415 - it imports targets

        trials = 1 if self._target is None else self._target.trials
        found: dict[int, Sample] = {}
        for case in cases:
            first, samples = self._block
            number, trial = divmod(case, trials)
            if not first <= number < first + len(samples):
                first, samples = self._block = ledger.samples_around(self._dataset, number)
            if number < first + len(samples):
                sample = samples[number - first]
                found[case] = sample if self._target is None else [*cases_of([sample], trials)][trial]
        if self._target is not None:
            for some in chunks(list(found), _ANSWERS_PER_READ):
                answers = _answered(ledger, self._target, [found[case] for case in some])
                found.update((case, each) for case, each in zip(some, answers, strict=True) if each is not None)
        return found


def find_row(ledger: Ledger, name: str, *, replays: bool = True) -> RunRow | None:
    """The run with this ID, or else the latest evaluation with this name; "last" selects the latest evaluation.

    replays: whether to include replays.

    Raises ConfigError if that evaluation was imported with those of other systems, which have the name, too.
    """
    row = None if name == "last" else ledger.run(name)
    if row is None and name:
        matches = [row for row in evaluations(ledger.runs()) if name in ("last", row.metadata.get("name"))]
        row = next((row for row in matches if replays or not _is_replay(row)), None)
        if row is not None and name != "last" and _is_imported(row):
            _check_one_system(name, row, matches)
    return row


def _check_one_system(name: str, row: RunRow, others: Sequence[RunRow]) -> None:
    """Raise ConfigError if runs of other systems were imported with a run, which have its name, too."""
    together = {_system(each): each.id for each in reversed(others) if each.finished == row.finished}
    if len(together) > 1:
        listing = "; ".join(f"{id} ({excerpt(system)})" for system, id in together.items())
        raise ConfigError(
            f"{count(len(together), 'run')} of different systems were imported as {excerpt(name)}. Name one by its ID: "
            f"{listing}"
        )


def _is_imported(row: RunRow) -> bool:
    return any(scorer.get("tool") for scorer in row.metadata.get("scorers", ()))


def _is_replay(row: RunRow) -> bool:
    return _system(row).startswith("replay:")


def _system(row: RunRow) -> str:
    """The identity of a run's target; "" without one."""
    match row.metadata.get("target"):
        case {"identity": str(identity)}:
            return identity
        case _:
            return ""


def evaluations(rows: Sequence[RunRow]) -> list[RunRow]:
    """The evaluations among runs, without those of calibrations and audits."""
    return [row for row in rows if row.metadata.get("kind", "evaluation") == "evaluation"]
