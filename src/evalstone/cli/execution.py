"""Runs of the command line: their plan, their signals, their results folder, and how they ended."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import evalstone
from evalstone._core.addresses import beside
from evalstone._core.display import count, ended, named, safe, sentence
from evalstone._core.files import is_file, is_folder, resolved
from evalstone._core.front_ends import COMMAND_LINE, NOTHING, Setting
from evalstone._core.phases import phase
from evalstone._core.redaction import masked
from evalstone.cli import handled
from evalstone.cli.output import (
    check_inputs_stay,
    check_outputs,
    prints_to_stderr,
    to_stderr,
)
from evalstone.cli.values import function_files, say_found, tool_files
from evalstone.errors import ConfigError, DataError, RunAborted
from evalstone.results.endings import BATCH, BUDGET, INTERRUPTED, STORAGE, Ending, ExitCode
from evalstone.results.gate_criteria import CRITERIA, OF_BASELINE, GateCriteria

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.run.plan import Plan

RESUME, WITHOUT_NO_CACHE = "rerun the same command to resume", "rerun without --no-cache to resume"
REQUIRED = {
    "baseline": OF_BASELINE,
    "max_change": OF_BASELINE,
    "allow_mismatch": OF_BASELINE,
    **dict.fromkeys(OF_BASELINE, ("baseline",)),
    **dict.fromkeys(("alpha", "missing", "look"), tuple(CRITERIA)),
    "sequential": ("min", "max", "max_regression"),
    "keep": ("out",),
}
"""Settings, and those of which they require one."""
TESTS_MEANS = "during a run, only means and regressions are tested; test the finished run"
EXCLUDED_BY_SEQUENTIAL = {
    "batch": "the answers of a batch arrive together",
    "batch_files": "the answers of a file arrive together",
    "pass_rate": TESTS_MEANS,
    "max_difference": TESTS_MEANS,
    "look": "a test during the run is its first look",
}
"""What can't be used with tests during the run, and why."""
NO_TEST = Setting("alpha", NOTHING)
MOST_COMMANDS = 20
"""The maximum number of commands for files of requests that are printed."""
SAME_SIGNAL = 1.0
"""Seconds within which a repeated signal counts as the same one."""


def evaluated(
    plan: Plan,
    config: RunConfig,
    stop: evalstone.StopSignal,
    *,
    progress: bool,
    on_record: Callable[[evalstone.Record], None] | None = None,
) -> evalstone.Run:
    """The run of a plan, or the results until an error ended it. Earlier results in `--out` are removed before it
    starts."""
    from evalstone.results.files import remove_results

    if config.out is not None:
        _say_replaced(config.out, config, plan)
        remove_results(config.out)
    try:
        return evalstone.evaluate(
            plan.dataset,
            plan.scorers,
            judge=plan.judge,
            target=plan.target,
            trials=plan.trials,
            user=plan.user,
            keep_reasoning=plan.keep_reasoning,
            concurrency=config.concurrency,
            ledger=config.ledger,
            progress=progress,
            cache=config.cache,
            budget=config.budget,
            batch=evalstone.BatchOptions(wait=config.wait, on_state=to_stderr, files=config.batch_files)
            if config.batching
            else False,
            stop=stop,
            on_record=on_record,
            name=config.name,
            tags=config.tags,
        )
    except evalstone.EvalstoneError as error:
        if error.run is None:
            raise
        return error.run


def _check_replaceable(out: str, config: RunConfig, plan: Plan) -> None:
    """Raise ConfigError if `--out` has the results of another dataset or target. Those of the samples that are in the
    folder itself are no others."""
    from evalstone.datasets.stored import SAMPLES
    from evalstone.results.files import check_replaceable, earlier_run

    if resolved(config.data) == resolved(Path(out, SAMPLES)) or (before := earlier_run(out)) is None:
        return
    target = None if plan.target is None else plan.target.name
    kept = f"; the run stays in the ledger {place}" if (place := _ledger_of(before.id, config.ledger)) else ""
    check_replaceable(out, plan.dataset.name, plan.dataset.version, target, kept)


def _say_replaced(out: str, config: RunConfig, plan: Plan) -> None:
    """Print which results are replaced, unless they are of the same dataset, scorers, judge and target."""
    from evalstone.ledger.base import shown
    from evalstone.results.files import earlier_run

    if (before := earlier_run(out)) is None:
        return
    signatures = [one.signature for one in before.scorers]
    target = None if plan.target is None else plan.target.identity
    was = before.dataset.version, signatures, before.target and before.target.identity
    same = was == (plan.dataset.version, [one.signature for one in plan.scorers], target)
    if same and all(judge.identity in before.judge.identity for judge in plan.asked_judges):
        return
    place = _ledger_of(before.id, config.ledger)
    to_stderr(
        f"Replacing the results in {out}: run {before.id} of {before.started[:16].replace('T', ' ')}, "
        f"{count(before.dataset.samples, 'sample')} of {named(before.dataset.name)}, {', '.join(signatures)}. "
        + (f"It stays in the ledger {place}." if place else f"It is not in the ledger {shown(config.ledger)}.")
    )


def _ledger_of(run: str, ledger: str) -> str:
    """The ledger, as it is shown, if it has this run; else ""."""
    from evalstone.ledger.base import is_there, shown
    from evalstone.ledger.store import Ledger

    if not is_there(ledger):
        return ""
    with Ledger(ledger, read_only=True) as opened:
        return shown(ledger) if opened.run(run) is not None else ""


def save(result: evalstone.Run, config: RunConfig, stop: evalstone.StopSignal | None = None) -> list[str]:
    """Write a run to `--out`; returns the folder's name, or nothing without `--out`. The first signal requests `stop`,
    for what follows. A second one ends the program.

    If a run that was broken off can't be written, that is only printed, because something else went wrong before.
    """
    from evalstone.ledger.base import shown

    if config.out is None:
        return []
    out = config.out

    def first(name: str) -> None:
        if stop is not None:
            stop.request("interrupted", INTERRUPTED)
        to_stderr(f"Writing the results to {out}. {name} again to force.")

    try:
        with handled(_twice(first)):
            return [str(evalstone.write_run(result, out, keep=config.keep))]
    except KeyboardInterrupt:
        to_stderr(f"Stopped. The results are in {shown(config.ledger)}, run {result.id}.")
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except evalstone.EvalstoneError as error:
        if not result.ending.broken_off:
            raise
        to_stderr(f"The results so far can't be written: {error}")
        return []


@contextmanager
def without_empty_folders(*folders: str | None) -> Generator[None]:
    """Results folders that are created inside this context, and their parents, are removed at its end if nothing was
    written into them."""
    paths = [Path(folder) for folder in folders if folder is not None]
    missing = {path for each in paths for path in (each, *each.parents) if not (is_folder(path) or is_file(path))}
    try:
        yield
    finally:
        for path in sorted(missing, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # it is not empty, or was not created
                path.rmdir()


@prints_to_stderr()
def checked_plan(config: RunConfig, *, calls: bool = True) -> tuple[Plan, GateCriteria]:
    """The checked plan of a run and its criteria. calls: whether judges and targets are called, and need
    their keys."""
    from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY
    from evalstone.results.files import prepare
    from evalstone.results.record_tables import check_installed
    from evalstone.run.case_check import check_cases
    from evalstone.run.hidden_plugins import hidden_plugins
    from evalstone.run.planning import plan_for
    from evalstone.scorers import parse_scorers

    check_run_names(config)
    with config.naming_file("map", "split", "encoding", "sheet"):
        reading = config.reading
        try:
            with beside(config.folder("data")) as found:
                dataset = evalstone.load(config.data, **reading.to_dict())
            say_found(found)
        except DataError as error:
            if error.advice or not is_file(config.data):
                raise
            command = " ".join(("evalstone check", shlex.quote(config.data), *reading.options()))
            raise error.advised(f"{command} lists all problems of the file") from None
        except KeyboardInterrupt:
            to_stderr(f"Interrupted while {named(config.data)} was read; nothing was asked.")
            raise SystemExit(ExitCode.INTERRUPTED) from None
    for note in dataset.notes:
        to_stderr(safe(f"{dataset.name}: {note}", 2000))
    with config.naming_file("scorers"):
        scorers = parse_scorers(config.scorers)
    with config.naming_file("judge"):
        judge = evalstone.parse_judge(config.judge)
    for said in hidden_plugins((scorer.name for scorer in scorers), config.judge):
        to_stderr(said)
    with config.naming_file("target", "trials", "user"):
        plan = plan_for(
            dataset,
            scorers,
            judge=judge,
            target=config.target,
            trials=config.trials,
            user=config.user,
            limit=config.limit,
            keep_reasoning=config.keep_reasoning,
            ledger=config.ledger,
        )
    with config.naming_file("data"):
        check_cases(plan.dataset, scorers, config.data, reading)
    with config.naming_file("batch", "batch_files", "wait", "cache", *REQUIRED):
        _check_modes(config, plan)
    with phase("checking the samples"):
        plan.check(asking=calls and not config.batching, answering=calls)
    criteria = checked_criteria(config, plan)
    if config.out is not None:
        if config.keep is not None:
            check_installed()
        prepare(config.out)
        for name in (RECORDS, SUMMARY, SAMPLES):
            check_inputs_stay({config.named("out"): str(Path(config.out) / name)}, (config.ledger,))
    settings = (config.data, config.file, config.baseline, config.ledger, config.out, config.judge, config.target)
    code = (*plan.code_files, *function_files(plan.target, plan.user))
    check_outputs(config.files, (*settings, *code, *tool_files(plan.target)))
    if config.out is not None:
        _check_replaceable(config.out, config, plan)
    return plan, criteria


def check_run_names(config: RunConfig) -> None:
    """Raise ConfigError for a name or a tag that a run can't have."""
    from evalstone.run.execute import check_names

    with config.naming_file("name", "tags"):
        check_names(config.name, config.tags)


def checked_criteria(config: RunConfig, plan: Plan) -> GateCriteria:
    """The criteria of a run. Raises ConfigError for those that don't fit its scorers."""
    from evalstone.run.plan import scorer_info

    infos = [scorer_info(one) for one in plan.scorers]
    with config.naming_file(*CRITERIA):
        criteria = config.criteria(infos)
    with config.naming_file("max_change"):
        config.largest_changes(infos, criteria)
    return criteria


def _check_modes(config: RunConfig, plan: Plan) -> None:
    """Raise ConfigError for settings that exclude or require each other."""
    batch = "batch" if config.batch else "batch_files"
    if config.batch and config.batch_files is not None:
        both = f"{config.named('batch')} and {config.named('batch_files')}"
        raise ConfigError(f"{both} exclude each other: the one submits the requests, the other writes them to files")
    if config.batch_files is not None and not config.batch_files.strip():
        raise ConfigError(f"{config.named('batch_files')} is the path of a folder, not {config.batch_files!r}")
    if config.batching and plan.target is not None:
        raise ConfigError(
            f"{config.named(batch)} can't be used with a target; save its answers with "
            f"{config.named('out', batch)}, then score samples.jsonl"
        )
    if config.wait and not config.batching:
        either = f"{config.named('batch', 'wait')} or {config.named('batch_files', 'wait')}"
        raise ConfigError(f"{config.named('wait')} requires {either}")
    if config.batching and not config.cache:
        both = f"{config.named(batch)} and {config.named('cache')}"
        raise ConfigError(f"{both} exclude each other: batch answers are read from the ledger")
    check_required(config)
    for other in EXCLUDED_BY_SEQUENTIAL if config.sequential else ():
        if _is_set(config, other):
            both = f"{config.named('sequential')} can't be used with {config.named(other, 'sequential')}"
            raise ConfigError(f"{both}: {EXCLUDED_BY_SEQUENTIAL[other]}")
    if config.sequential and config.rate is None:
        raise ConfigError(f"{config.named('sequential')} is a test, which needs an error rate: leave out ", NO_TEST)
    check_other_folder(config)
    if config.batching:
        from evalstone.models.batch import batch_api
        from evalstone.run.batch.runner import batch_judge

        batch_api(batch_judge(plan.judge), config.batch_files)


def check_other_folder(config: RunConfig) -> None:
    """Raise ConfigError if the results would replace those of the baseline."""
    if config.out is not None and config.baseline is not None and _same_folder(config.out, config.baseline):
        both = f"{config.named('out')} and {config.named('baseline')}"
        raise ConfigError(f"{both} are the same folder, {config.out}: the run would replace its baseline")


def check_required(config: RunConfig) -> None:
    """Raise ConfigError for a setting without another one that it requires."""
    for setting, needed in REQUIRED.items():
        if _is_set(config, setting) and not any(_is_set(config, other) for other in needed):
            *others, last = (config.named(other, setting) for other in needed)
            either = f"{', '.join(others)} or {last}" if others else last
            raise ConfigError(f"{config.named(setting)} requires {either}")


def _is_set(config: RunConfig, setting: str) -> bool:
    value = getattr(config, setting)
    return value is not None and value is not False and value not in ({}, [])


def _same_folder(one: str, other: str) -> bool:
    return is_folder(one) and is_folder(other) and resolved(one) == resolved(other)


@contextmanager
def interruptible(
    *, shuffled: bool = False, resume: str = RESUME, kept: str = "Finished calls are in the ledger", waits: bool = True
) -> Generator[evalstone.StopSignal]:
    """Within the block, the first signal stops the run after the calls in flight; a second one forces it.

    Args:
        shuffled: As for `StopSignal`.
        resume: How to resume, as a part of a sentence.
        kept: What isn't lost, as a part of a sentence.
        waits: Whether calls in flight can be waited for; otherwise, the first signal ends the run.
    """
    stop = evalstone.StopSignal(shuffled=shuffled)

    def first(name: str) -> None:
        stop.request("interrupted", INTERRUPTED)
        to_stderr(f"Stopping; waiting for calls in flight. {name} again to force.")

    try:
        with handled(_twice(first) if waits else signal.default_int_handler), prints_to_stderr():
            yield stop
    except RunAborted as error:
        interrupted = stop.requested and stop.ending is INTERRUPTED
        finished = f"{kept}; {resume}."
        to_stderr(
            f"Interrupted; {resume}." if interrupted else f"evalstone: {ended(error.text(COMMAND_LINE))} {finished}"
        )
        raise SystemExit(ExitCode.INTERRUPTED if interrupted else ExitCode.INCOMPLETE) from None
    except KeyboardInterrupt:
        to_stderr(f"Stopped. {kept}; {resume}.")
        raise SystemExit(ExitCode.INTERRUPTED) from None


def _twice(first: Callable[[str], None]) -> Callable[[int, FrameType | None], None]:
    """A handler of signals that calls `first` with the name of the first one, and raises KeyboardInterrupt at a second.

    A second SIGTERM or SIGHUP right after the first counts as the same one: `timeout` and shells send it twice, to the
    process and to its group.
    """
    seen, since = 0, 0.0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal seen, since
        if not seen:
            seen, since = number, time.monotonic()
            to_stderr("")
            first("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        elif number == signal.SIGINT or number != seen or time.monotonic() - since > SAME_SIGNAL:
            signal.default_int_handler(number, frame)

    return on_signal


def resume_text(config: RunConfig, ending: Ending = INTERRUPTED) -> str:
    """How to resume a run that ended early, as a part of a sentence."""
    if not config.cache:
        return f"rerun without {config.named('cache')} to resume"
    if ending is BUDGET and config.budget is not None:
        return f"rerun the same command with a higher {config.named('budget')} to resume"
    return RESUME


def say_broken_off(result: evalstone.Run, config: RunConfig, size: int, saved: Sequence[str]) -> None:
    """Print why a run was broken off, what is saved, and how to resume. saved: the folder of `--out`."""
    from evalstone.ledger.base import shown
    from evalstone.run.plan import WAITING

    interrupted = result.ending is INTERRUPTED
    places = [*(() if result.ending is STORAGE else (shown(config.ledger),)), *saved]
    # A rerun scores failed samples again, so their results aren't progress.
    results = f"{len(result) - result.n_failed:,} of {size:,} results are saved in {' and '.join(places)}"
    if result.batches and (interrupted or result.ending is BATCH):
        to_stderr(f"{WAITING}{', '.join(result.batches)}" if interrupted else result.stop_reason)
        if config.batch_files is not None:
            _say_how_to_answer(result, config)
        to_stderr(f"{results}, run {result.id}. To collect the answers later, run:\n")
        to_stderr(f"evalstone {shlex.join(map(masked, sys.argv[1:]))}")
        return
    reason = "" if interrupted else f"evalstone: {ended(masked(result.stop_reason))} "
    calls = "" if result.ending is STORAGE else ", and all finished calls"
    again = f"; {count(result.n_failed, 'score')} failed" if result.n_failed else ""
    stored = f"{results}{calls}{again}; " if places else ""
    to_stderr(f"{reason}{sentence(f'{stored}{resume_text(config, result.ending)}')}")


def _say_how_to_answer(result: evalstone.Run, config: RunConfig) -> None:
    """Print what answers the files of requests that have no results yet."""
    from evalstone.models.batch.files import unanswered, vllm_command
    from evalstone.run.batch.runner import batch_judge

    if not (files := unanswered(result.batches)):
        return
    judge = batch_judge(evalstone.parse_judge(config.judge))
    to_stderr("To answer the requests with vLLM, run:\n")
    for file in files[:MOST_COMMANDS]:
        to_stderr(masked(vllm_command(file, judge.model)))
    if len(files) > MOST_COMMANDS:
        to_stderr(f"… and the same for {count(len(files) - MOST_COMMANDS, 'more file')}")
    to_stderr("")
