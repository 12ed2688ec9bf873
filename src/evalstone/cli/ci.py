"""`evalstone ci`: a run, its comparison with a baseline, its checks, and a summary, in one command."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import evalstone
from evalstone._core.display import ended, named, quoted, sentence
from evalstone._core.files import is_file, is_folder, resolved
from evalstone._core.front_ends import COMMAND_LINE, FrontEnd, Setting, WordingPart
from evalstone._core.phases import phase
from evalstone._core.project_files import CONFIG, RESULTS
from evalstone._core.redaction import redacted
from evalstone.cli import completion, options, values
from evalstone.cli.completion import FILE
from evalstone.cli.config_file import RunConfig, keys
from evalstone.cli.execution import (
    check_other_folder,
    checked_plan,
    evaluated,
    interruptible,
    resume_text,
    save,
    say_broken_off,
    without_empty_folders,
)
from evalstone.cli.options import Outputs, Value, front_end, option
from evalstone.cli.output import calibrations_of, check_outputs, deliver, formats, present, say, to_stderr
from evalstone.cli.run import said_ending, say_slots, with_own_code
from evalstone.cli.thresholds import ON_INCONCLUSIVE, tested
from evalstone.errors import ConfigError, EvalstoneError, invalid
from evalstone.results.endings import ExitCode, exit_code
from evalstone.results.gate_criteria import CRITERIA, OF_BASELINE, Inconclusive

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.compare import Comparison
    from evalstone.results.gate import Gate
    from evalstone.results.gate_criteria import GateCriteria

NO_BASELINE = "No baseline is set, so nothing is compared."
SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable in which GitHub names the file for the summary of a step."""
LONGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary. GitHub drops a longer one as a whole."""
REFUSED = {
    "experiment": "which checks a single run; run the experiment, then check its runs with evalstone gate",
    "engine": "which scores in its own process; use evalstone run, then evalstone gate",
    "sequential": "which checks a run after its end; use evalstone run, which stops early",
}
"""Settings of a file that can't be used here, why, and what to do instead."""


def ci(
    config: Annotated[
        str, options.argument("FILE", "The TOML file that describes the run and its thresholds.", complete=FILE)
    ] = CONFIG,
    baseline: Annotated[
        Value,
        option(
            "--baseline RUN",
            "Thresholds",
            "The run to compare with, over the same samples: a folder, ID or name, or last. If it isn't there, the "
            "checks of a difference from it are inconclusive.",
            complete=completion.runs,
        ),
    ] = None,
    allow_mismatch: options.AllowMismatch = False,
    inconclusive: Annotated[
        Inconclusive | None,
        option("--inconclusive", "Thresholds", ON_INCONCLUSIVE, default="report"),
    ] = None,
    ledger: options.Ledger = None,
    out: options.Out = None,
    *,
    outputs: Outputs,
    junit: options.Junit = None,
    quiet: options.Quiet = False,
) -> int:
    """Score, compare with a baseline, and check, in CI.

    Reads evalstone.toml, which evalstone init writes. On GitHub, the result is added to the summary of the step.
    """
    if not config.endswith(".toml"):
        raise ConfigError(invalid("FILE", "a TOML file that describes the run", config, quoted(config)))
    if config == CONFIG and not is_file(config):
        raise ConfigError(f"there is no {CONFIG} in this folder; evalstone init writes one")
    given: dict[str, Any] = {"baseline": baseline, "allow_mismatch": allow_mismatch or None, "ledger": ledger}
    loaded = RunConfig.load(config, **given, inconclusive=inconclusive, out=out, **vars(outputs), quiet=quiet)
    for setting, why in REFUSED.items():
        if getattr(loaded, setting):
            raise ConfigError(f"{config}: {setting} can't be used with evalstone ci, {why}")
    if not any(getattr(loaded, name) for name in CRITERIA):
        raise ConfigError(f"{config} has no threshold, so there is nothing to check; add one, such as [min]")
    settings = with_own_code(loaded if loaded.out is not None else replace(loaded, out=RESULTS))
    with without_empty_folders(settings.out), _naming_keys():
        return _run(settings, junit)


@contextmanager
def _naming_keys() -> Generator[None]:
    """Within the block, errors write settings as users of this command do."""
    try:
        yield
    except ConfigError as error:
        error.parts = tuple(map(_written, error.parts))
        raise


def _front_end() -> FrontEnd:
    return front_end(ci, frozenset(keys()))


def _written(part: WordingPart) -> WordingPart:
    """A part of a message as users of this command write it. A setting of another command stays as it is."""
    return _front_end().written([part]) or (part if isinstance(part, Setting) else "")


def _text(error: EvalstoneError) -> str:
    error.parts = tuple(map(_written, error.parts))
    return error.text(COMMAND_LINE)


def _run(whole: RunConfig, junit: str | None) -> int:
    """Run, compare, check, save and show; returns the exit code."""
    from evalstone.ledger.base import shown
    from evalstone.results.views.junit import gate_junit
    from evalstone.run.baseline import check_comparable

    check_outputs(whole.files | {"junit": junit}, (whole.file, whole.data, whole.baseline, whole.ledger))
    check_other_folder(whole)
    baseline = _baseline(whole)
    absent = whole.baseline if baseline is None else None
    unchecked = [name for name in OF_BASELINE if getattr(whole, name)]
    config = whole if unchecked else replace(whole, baseline=None, allow_mismatch=False)
    plan, criteria = checked_plan(config)
    if absent is not None:
        undecided = f", and {' and '.join(unchecked)} can't be decided" if unchecked else ""
        to_stderr(f"There is no baseline {named(absent)}, so nothing is compared{undecided}. {_advice(whole, absent)}")
    if baseline is not None:
        with whole.naming_file("baseline", "allow_mismatch"):
            titles = criteria.of_baseline or plan.titles.values()
            check_comparable(baseline, plan, titles, allow_mismatch=whole.allow_mismatch)
    values.say_code(plan.target, plan.user)
    say_slots(plan, config)
    with interruptible(resume=resume_text(config)) as stop:
        result = evaluated(plan, config, stop, progress=not config.quiet)
    saved = save(result, config)
    if result.ending.broken_off:
        say_broken_off(result, config, plan.size, saved)
    gate, checks, failure = _checked(result, criteria, config, baseline, absent)
    if baseline is None:
        comparison, difference = None, NO_BASELINE if absent is None else _advice(whole, absent)
    else:
        comparison, difference = _compared(baseline, result, whole)
    with phase("making the report"):
        view = _view(result, config, checks, difference)

    def cases() -> Iterator[str]:
        if gate is not None:
            yield from gate_junit(gate, inconclusive_fails=config.inconclusive == "fail", front_end=_front_end())

    parts = [part.to_dict() for part in (result, gate, comparison) if part is not None]
    documents = formats(view, config, *parts) | {"junit": (None if gate is None else junit, cases)}
    _summarize(view)
    if result.ending.broken_off:  # why, is on standard error already
        deliver(documents)
        return exit_code(result, saved=False)
    if present(view, documents):
        say("")
        say(f"Results: {', '.join(saved)}")
        say(f"Ledger:  {shown(config.ledger)}, run {result.id}")
    if gate is None:
        to_stderr(f"evalstone: {failure}")
        return ExitCode.INCOMPLETE
    if baseline is not None and isinstance(difference, str):
        to_stderr(difference)
    return said_ending(result, gate.verdict, config)


def _baseline(config: RunConfig) -> evalstone.Run | None:
    """The run to compare with; None if none is set, or the one that is set isn't there: no run, or an empty folder.

    Raises ConfigError for a baseline that is there but isn't a run.
    """
    if config.baseline is None:
        return None
    with config.naming_file("baseline"):
        if not config.baseline.strip():
            raise ConfigError(invalid(Setting("baseline"), "a results folder, an ID or a name", config.baseline))
        if is_folder(config.baseline) and not any(Path(config.baseline).iterdir()):
            return None
        try:
            return evalstone.read_run(config.baseline, ledger=config.ledger)
        except ConfigError as error:
            if error.kind != "missing":
                raise
    return None


def _advice(config: RunConfig, absent: str) -> str:
    """What to do about a baseline that isn't there."""
    if absent == "last":
        keep = "keep the ledger"
    elif config.out is not None and resolved(config.out) == resolved(absent):
        keep = "write that one to another folder"
    else:
        keep = f"copy {config.out} to {named(absent)}"
    undecided = config.inconclusive == "report" and any(getattr(config, name) for name in OF_BASELINE)
    passing = " To pass without a baseline, use --inconclusive pass." if undecided else ""
    return f"To compare the next run with this one, {keep}.{passing}"


def _checked(
    result: evalstone.Run,
    criteria: GateCriteria,
    config: RunConfig,
    baseline: evalstone.Run | None,
    absent: str | None,
) -> tuple[Gate | None, View | None, str]:
    """The gate on a run and its checks; or why it can't be checked: it is still shown."""
    try:
        against = baseline if criteria.of_baseline else None
        return *tested(
            result, criteria, config, against, look=config.look, out=config.out, absent=absent, front_end=_front_end()
        ), ""
    except EvalstoneError as error:
        return None, None, ended(_text(error))


def _compared(
    baseline: evalstone.Run, result: evalstone.Run, config: RunConfig
) -> tuple[Comparison | None, View | str]:
    """The comparison of a run with its baseline, and how it is shown; or why there is none, as a sentence."""
    from evalstone.results.views.comparison import comparison_view

    try:
        with phase("comparing the runs"):
            compared = evalstone.compare(
                baseline,
                result,
                allow_mismatch=config.allow_mismatch,
                max_change=config.max_change,
                missing=config.missing or "worst",
            )
    except EvalstoneError as error:
        return None, sentence(f"the run can't be compared with the baseline: {_text(error)}")
    comparison = replace(compared, names=dict(zip(compared.runs, ("the baseline", "this run"), strict=True)))
    return comparison, comparison_view(comparison, _front_end(), most=config.top)


def _view(result: evalstone.Run, config: RunConfig, checks: View | None, difference: View | str) -> View:
    """The run with its checks and the difference from the baseline, which come first."""
    from evalstone.report.view import Section
    from evalstone.results.views.run import run_view

    calibrations = calibrations_of(result, config.ledger)
    view = run_view(result, _front_end(), worst=config.top, calibrations=calibrations)
    first = () if checks is None else checks.sections
    verdict = None if checks is None else checks.verdict
    if isinstance(difference, str):
        second = Section("Baseline", lead=(difference,))
        return replace(view, verdict=verdict, sections=(*first, second, *view.sections))
    compared = [replace(section, lead=(difference.lead, *section.lead)) for section in difference.sections]
    return replace(
        view,
        verdict=verdict,
        warnings=(*view.warnings, *difference.warnings),
        sections=(*first, *compared, *view.sections),
        examples=(*difference.examples, *view.examples),
    )


def _summarize(view: View) -> None:
    """Add the result to the summary of the step, if GitHub names its file. A result that is too long for it is added
    without samples."""
    if not (file := os.environ.get(SUMMARY)):
        return
    from evalstone.report.markdown import lines

    texts = ("".join(f"{line}\n" for line in lines(each)) for each in (view, replace(view, examples=(), details=())))
    fitting = (text for text in texts if len(text.encode()) <= LONGEST_SUMMARY)
    text = next(fitting, f"The result is too long for a summary; it has {LONGEST_SUMMARY:,} bytes at most.\n")
    try:
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(f"\n{redacted(text)}")
    except OSError as error:  # the verdict counts, and the results are saved
        to_stderr(f"The summary can't be written to {file}: {error.strerror or error}")
