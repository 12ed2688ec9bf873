"""`evalstone report`, `compare`, `drift`, `gate`, `power` and `runs`: commands on saved runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import evalstone
from evalstone._core.display import quoted
from evalstone._core.front_ends import Setting
from evalstone._core.phases import phase
from evalstone.cli import completion, options
from evalstone.cli.options import FOLDER, Outputs, Value, Values, front_end, option
from evalstone.cli.output import (
    calibrations_of,
    formats,
    present,
    to_stderr,
)
from evalstone.cli.thresholds import Thresholds, counted, remember_look
from evalstone.cli.values import numbers_or_one, own_scorers, scorer_named
from evalstone.errors import ConfigError
from evalstone.results.endings import ExitCode, exit_code

IN_LEDGER = "ledger"
"""In place of a label file: the labels in the ledger."""

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.corrections import PPIResult, RoganGladenResult
    from evalstone.results.human_labels import Labels
    from evalstone.results.power_analysis import PowerAnalysis
    from evalstone.results.summary import ScorerInfo
    from evalstone.scorers.base import Scorer


def find_run(name: str, ledger: str | None, data: str | None = None) -> evalstone.Run:
    """A run by its folder, ID or name, or the last one.

    data: the file with its samples, if they are not in its folder. Raises ConfigError if there is no such run.
    """
    run = evalstone.read_run(name, ledger=ledger)
    if data is None:
        return run
    from evalstone.results.files import with_data

    dataset = evalstone.load(data)
    with phase("reading the samples"):
        return with_data(run, dataset)


def _ledger_runs(ledger: str | None) -> list[dict[str, Any]]:
    """The metadata of a ledger's evaluations, latest first, including results if they have ended."""
    from evalstone.ledger.base import DEFAULT_LEDGER, is_there
    from evalstone.run.saved import evaluations

    url = DEFAULT_LEDGER if ledger is None else ledger
    if not is_there(url):
        return []
    from evalstone.ledger.store import Ledger
    from evalstone.types import RunMetadata

    with Ledger(url) as opened:
        rows = [{**row.metadata, "run": row.id, "started": row.started} for row in evaluations(opened.runs())]
        for row in rows:
            RunMetadata.of(row, f"run {row['id']} in {opened.location}")
        return rows


def report(
    run: options.Run = "last",
    ledger: options.Ledger = None,
    data: options.Data = None,
    slice_by: options.SliceBy = None,
    labels: Annotated[
        Values,
        option(
            "--labels SCORER=FILE",
            "Data",
            "Correct a scorer's mean with human labels: a file (id, label) or `ledger`.",
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        option("--calibrated", "Data", "Correct pass rates with the judge's calibrations, stored next to the ledger."),
    ] = False,
    sample: Annotated[
        Value,
        option(
            "--sample KEY", "Data", "Show one sample instead: its texts, its scores and the judge calls behind them."
        ),
    ] = None,
    scorer: Annotated[
        Values,
        option(
            "--scorer ADDRESS",
            "Data",
            "With --sample: show the prompts of this scorer of your own too, such as `my_scorers.py:Polite`. Its code "
            "is run.",
        ),
    ] = None,
    *,
    outputs: Outputs,
    junit: options.Junit = None,
    top: options.Top = 3,
) -> int:
    """Show a saved run or one of its samples, or export it.

    The run is shown in the terminal, unless a format goes to stdout. Several formats can be written at once.
    """
    if sample is not None:
        of_runs = {"slice_by": slice_by, "labels": labels, "calibrated": calibrated, "junit": junit}
        if named := [name for name, value in of_runs.items() if value]:
            raise ConfigError(
                Setting(named[0]), " is about the whole run, and ", Setting("sample"), " about one sample"
            )
        return _sample_report(find_run(run, ledger, data), sample, own_scorers(scorer), outputs)
    if scorer:
        raise ConfigError(
            Setting("scorer"), " shows the prompts behind one sample; name it with ", Setting("sample", ...)
        )
    from evalstone._core.json import to_jsonable
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.results.views.junit import run_junit
    from evalstone.results.views.run import run_view

    result, location = find_run(run, ledger, data), DEFAULT_LEDGER if ledger is None else ledger
    with phase("making the report"):
        extra: list[PPIResult | RoganGladenResult] = [
            _corrected_mean(result, text, slice_by or (), ledger) for text in labels or ()
        ]
        if calibrated:
            extra += _corrected_rates(result, location)
        sliced = result.slices(slice_by) if slice_by else ()
        plain = result.to_dict()
        plain |= {"corrected": to_jsonable(extra)} if extra else {}
        plain |= {"slices": to_jsonable(list(sliced))} if sliced else {}
        known = calibrations_of(result, location)
        view = run_view(result, front_end(report), worst=top, corrected=extra, slices=sliced, calibrations=known)
    own = {"junit": (junit, lambda: run_junit(result))}
    present(view, formats(view, outputs, plain, csv=result.csv_lines) | own)
    return exit_code(result)


def _sample_report(run: evalstone.Run, key: str, own: Sequence[Scorer], outputs: Outputs) -> int:
    from evalstone.results.views.one_sample import one_sample, one_sample_view
    from evalstone.run.rebuilt import prompts_behind

    with phase("making the report"):
        found = one_sample(run, key)
        keeps = bool(run.keeps_reasoning)
        asked = prompts_behind(
            found.records,
            found.sample,
            run.scorers,
            keeps_reasoning=keeps,
            asking=run.asking,
            own={each.signature: each for each in own},
        )
        found = replace(found, asked=asked)
        view = one_sample_view(run, found)
    present(view, formats(view, outputs, found.to_dict()))
    return ExitCode.OK


def _corrected_mean(run: evalstone.Run, text: str, slice_by: Sequence[str], ledger: str | None) -> PPIResult:
    """A mean corrected with the labels of `SCORER=FILE`. The scorer can be omitted if the run has only one."""
    from evalstone.results.human_labels import corrected

    scorer, file = _scorer_and_file(run, text)
    return corrected(run, scorer, _labels_in(run, scorer, file, ledger), slice_by=slice_by)


def _labels_in(run: evalstone.Run, scorer: str, file: str, ledger: str | None) -> Labels:
    """The labels of a scorer in a file or, if that is `ledger`, in the ledger. Raises ConfigError if none is there."""
    if file != IN_LEDGER:
        return evalstone.load_labels(run, scorer, file)
    from evalstone.judge_quality.labeling import Labeling, Sheet
    from evalstone.ledger.base import existing, shown
    from evalstone.ledger.store import Ledger

    with Ledger(existing(ledger), read_only=True) as opened:
        labels = Labeling.open(opened, Sheet.of(run, scorer), "").means()
    if not labels:
        where = f"{shown(existing(ledger))} has no label of {scorer} in run {run.id} that was chosen at random"
        raise ConfigError(f"{where}; add some with evalstone annotate or evalstone view")
    return labels


def _labels_of(run: evalstone.Run, texts: Sequence[str], option: str, ledger: str | None) -> dict[str, Labels]:
    """The labels of each `SCORER=FILE`, by scorer."""
    labels: dict[str, Labels] = {}
    for text in texts:
        scorer, file = _scorer_and_file(run, text, option)
        _check_once(labels, scorer, f"{option} {text}")
        labels[scorer] = _labels_in(run, scorer, file, ledger)
    return labels


def _labels_of_runs(
    runs: Sequence[evalstone.Run], texts: Sequence[str], ledger: str | None
) -> dict[str, dict[str, Labels]]:
    """The labels of each `RUN:SCORER=FILE`, by the run's letter and the scorer."""
    from evalstone.results.compare import letters_of

    by_letter = letters_of(runs)
    labels: dict[str, dict[str, Labels]] = {}
    for text in texts:
        letter, sign, rest = text.partition(":")
        if not sign or letter not in by_letter:
            known = " or ".join(by_letter)
            raise ConfigError(f"--labels takes RUN:SCORER=FILE, where RUN is {known}, not {quoted(text)}")
        scorer, file = _scorer_and_file(by_letter[letter], rest, form="RUN:SCORER=FILE")
        of_run = labels.setdefault(letter, {})
        _check_once(of_run, scorer, f"--labels {text}")
        of_run[scorer] = _labels_in(by_letter[letter], scorer, file, ledger)
    return labels


def _check_once(labels: Mapping[str, object], scorer: str, usage: str) -> None:
    if scorer in labels:
        raise ConfigError(f"{usage}: {scorer} has labels already; put all of them into one file")


def _scorer_and_file(
    run: evalstone.Run, text: str, option: str = "--labels", form: str = "SCORER=FILE"
) -> tuple[str, str]:
    """A scorer's title and a file. Both may contain equals signs: the longest prefix that names a scorer counts."""
    signs = [index for index, character in enumerate(text) if character == "="]
    for sign in reversed(signs):
        try:
            info = scorer_named(text[:sign], run.scorers, option)
        except ConfigError:
            continue
        return run.titles[info.signature], text[sign + 1 :]
    if len(run.scorers) == 1 and (not signs or Path(text).exists()):
        return run.titles[run.scorers[0].signature], text
    known = ", ".join(run.titles.values())
    raise ConfigError(f"{option} takes {form}, where SCORER is one of {known}, not {quoted(text)}")


def _corrected_rates(run: evalstone.Run, ledger: str) -> list[RoganGladenResult]:
    """The corrected pass rates of the scorers that the judge is calibrated for."""
    from evalstone.report.notes import clause_of
    from evalstone.results.human_labels import corrected_share
    from evalstone.results.saved_calibrations import calibration_for

    calibrations = {
        info.signature: calibration
        for info in run.scorers
        if (calibration := calibration_for(run.judge_of(info.signature), info.signature, ledger, run.keeps_reasoning))
        is not None
    }
    if not calibrations:
        raise ConfigError(f"no scorer of this run is calibrated (judge {run.judge}); see evalstone calibrate")
    usable = {signature: calibration for signature, calibration in calibrations.items() if calibration.unusable is None}
    for signature, calibration in calibrations.items() if usable else ():
        if calibration.unusable is not None:
            why = clause_of(calibration.unusable, front_end(report))
            to_stderr(f"The calibration of {run.titles[signature]} is not used: {why}.")
    return [corrected_share(run, signature, calibration) for signature, calibration in (usable or calibrations).items()]


def compare(
    runs: Annotated[
        Values,
        options.argument("RUN", "Two or more saved runs; the first is the baseline.", complete=completion.runs),
    ] = None,
    ledger: options.Ledger = None,
    slice_by: options.SliceBy = None,
    unpaired: Annotated[
        bool, option("--unpaired", "Statistics", "Compare the means of independent runs over different samples.")
    ] = False,
    allow_mismatch: options.AllowMismatch = False,
    correction: Annotated[
        Literal["holm", "fdr_bh", "none"],
        option("--correction", "Statistics", "Correction of p-values for multiple comparisons."),
    ] = "holm",
    confidence: options.Confidence = 0.95,
    missing: Annotated[
        options.Missing,
        option(
            "--missing",
            "Statistics",
            "Treat samples without a score in one of the runs as the worst case, so that p-values and intervals hold "
            "whatever their scores would be (worst); only those that failed or got no answer from the judge (failed); "
            "or leave them out (ignore).",
        ),
    ] = "worst",
    max_change: options.MaxChange = None,
    margin: Annotated[
        float | dict[str, float] | None,
        option(
            "--margin [SCORER=]X",
            "Statistics",
            "Means that differ by less than X are equivalent.",
            parse=numbers_or_one,
            complete=completion.bounded_scorers,
        ),
    ] = None,
    labels: Annotated[
        Values,
        option(
            "--labels RUN:SCORER=FILE",
            "Data",
            "Also correct differences with human labels of a run's outputs: a file (id, label) or `ledger`; RUN is "
            "A, B … in the order given.",
        ),
    ] = None,
    *,
    outputs: Outputs,
    top: Annotated[int, option("--top N", "Output", "Show this many of the samples that changed most.", min=0)] = 3,
) -> int:
    """Compare runs over the same samples.

    Shows paired differences with confidence intervals, tests, and the samples that changed most.
    """
    from evalstone.results.views.comparison import comparison_view

    names = runs or []
    if len(names) < 2:
        raise ConfigError(f"compare takes two or more runs (folders, IDs, names or last), not {len(names)}")
    loaded = [find_run(name, ledger) for name in names]
    with phase("comparing the runs"):
        result = evalstone.compare(
            *loaded,
            slice_by=tuple(slice_by or ()),
            unpaired=unpaired,
            allow_mismatch=allow_mismatch,
            correction=correction,
            confidence=confidence,
            missing=missing,
            max_change=_by_title(max_change, loaded[0].scorers, "max_change"),
            margin=_by_title(margin, loaded[0].scorers, "margin"),
            labels=_labels_of_runs(loaded, labels or (), ledger),
        )
        compared = replace(result, names=dict(zip(result.runs, names, strict=True)))
        view = comparison_view(compared, front_end(compare), most=top)
    present(view, formats(view, outputs, compared.to_dict(), csv=compared.csv_lines))
    return ExitCode.OK


def _by_title(
    values: float | dict[str, float] | None, scorers: Sequence[ScorerInfo], setting: str
) -> float | dict[str, float] | None:
    """One number for all scorers, or numbers by the titles of the scorers that a setting names."""
    from evalstone.results.summary import scorer_titles, values_by_scorer
    from evalstone.run.plan import named_scorer

    if not isinstance(values, dict):
        return values
    titles = scorer_titles(scorers)
    found = values_by_scorer(values, lambda name: named_scorer(name, scorers), Setting(setting))
    return {titles[info.signature]: x for info, x in found.items()}


def drift(
    before: Annotated[str, options.argument("BEFORE", "The earlier run.", complete=completion.runs)],
    now: Annotated[
        str, options.argument("NOW", "A run over the same outputs, judged now.", complete=completion.runs)
    ] = "last",
    ledger: options.Ledger = None,
    confidence: options.Confidence = 0.95,
    *,
    outputs: Outputs,
) -> int:
    """Check whether a judge has drifted.

    Compares two runs over the same outputs, judged at different times.
    """
    from evalstone.results.views.drift import drift_view

    compared = find_run(before, ledger), find_run(now, ledger)
    with phase("comparing the runs"):
        result = evalstone.drift(*compared, confidence=confidence)
        view = drift_view(result, front_end(drift))
    present(view, formats(view, outputs, result.to_dict()))
    return ExitCode.CHECK_FAILED if result.passed is False else ExitCode.OK


def gate(
    run: options.Run = "last",
    ledger: options.Ledger = None,
    *,
    thresholds: Thresholds,
    look: Annotated[
        int | None,
        option(
            "--look N",
            "Statistics",
            "The number of this look at a growing run.",
            default="the next one recorded in its folder, or 1",
            min=1,
        ),
    ] = None,
    labels: Annotated[
        Values,
        option(
            "--labels SCORER=FILE",
            "Data",
            "Test means corrected with human labels: a file (id, label) or `ledger`.",
        ),
    ] = None,
    baseline_labels: Annotated[
        Values,
        option("--baseline-labels SCORER=FILE", "Data", "Labels of the baseline, for differences from it."),
    ] = None,
    outputs: Outputs,
    junit: options.Junit = None,
) -> int:
    """Check a saved run against thresholds.

    Each check passes, fails, or is inconclusive (with the number of additional samples needed).
    """
    from evalstone._core.files import is_folder
    from evalstone.results.gate import gate_on
    from evalstone.results.looks import LOOKS, next_look
    from evalstone.results.views.gate import gate_view
    from evalstone.results.views.junit import gate_junit

    loaded = find_run(run, ledger)
    criteria = thresholds.criteria(loaded.scorers)
    before = None if thresholds.baseline is None else find_run(thresholds.baseline, ledger)
    if baseline_labels and before is None:
        raise ConfigError("--baseline-labels needs the run that the labels are of: --baseline RUN")
    human = _labels_of(loaded, labels or (), "--labels", ledger)
    theirs = None if before is None else _labels_of(before, baseline_labels or (), "--baseline-labels", ledger)
    folder = Path(run) if is_folder(run) else None
    if look is None:
        look = 1
        if folder is not None and thresholds.rate is not None:  # without a test, it is no look
            look = next_look(folder, loaded, criteria, human, theirs)
        if folder is not None and look > 1:
            to_stderr(
                f"{folder / LOOKS} has gates on other scores or labels in this folder, or on these as they arrived, so "
                f"this is look {look}. If other outputs were scored then, use --look 1."
            )
    with phase("checking the thresholds"):
        result = gate_on(
            loaded,
            criteria,
            baseline=before,
            alpha=thresholds.rate,
            look=look,
            missing=thresholds.missing or "worst",
            largest_changes=thresholds.largest_changes(loaded.scorers, criteria),
            allow_mismatch=thresholds.allow_mismatch,
            labels=human,
            baseline_labels=theirs,
        )
    if folder is not None:
        remember_look(folder, result, human, theirs)
    view = gate_view(result, front_end(gate), thresholds.inconclusive)

    def cases() -> Iterator[str]:
        return gate_junit(result, inconclusive_fails=thresholds.inconclusive == "fail", front_end=front_end(gate))

    own = {"junit": (junit, cases)}
    present(view, formats(view, outputs, result.to_dict()) | own)
    return exit_code(loaded, counted(result.verdict, thresholds.inconclusive))


def power(
    run: options.Run = "last",
    ledger: options.Ledger = None,
    difference: Annotated[
        float, option("--difference -d X", "Statistics", "The true difference of means to detect.", min=0)
    ] = 0.03,
    baseline: options.Baseline = None,
    power: Annotated[
        float, option("--power P", "Statistics", "The probability of detecting the difference.", min=0, max=1)
    ] = 0.8,
    confidence: options.Confidence = 0.95,
    allow_mismatch: options.AllowMismatch = False,
    *,
    outputs: Outputs,
) -> int:
    """Estimate how many samples you need.

    Computes from a pilot run how many samples are needed to detect a difference of means, and what the pilot itself can
    detect. Give a second pilot run over the same samples as --baseline for a much more precise estimate.
    """
    pilot = find_run(run, ledger)
    other = None if baseline is None else find_run(baseline, ledger)
    with phase("estimating"):
        analysis = evalstone.power(
            pilot, difference, baseline=other, power=power, confidence=confidence, allow_mismatch=allow_mismatch
        )
    if not analysis.scorers:
        raise ConfigError(f"run {pilot.id} has no scorer with at least two scores (or groups)")
    view = _power_view(analysis)
    present(view, formats(view, outputs, analysis.to_dict()))
    return ExitCode.OK


def _power_view(analysis: PowerAnalysis) -> View:
    return analysis.view(front_end(power))


def runs(
    folders: Annotated[
        Values, options.argument("FOLDER", "Results folders, or folders that contain some.", complete=FOLDER)
    ] = None,
    ledger: options.Ledger = None,
    tag: Annotated[Values, option("--tag TAG", "Data", "Only runs with this tag.")] = None,
    *,
    outputs: Outputs,
    limit: Annotated[int, option("--limit N", "Output", "Show only the latest N runs.", min=1)] = 20,
) -> int:
    """List saved runs with their mean scores.

    Lists the evaluations in the ledger, and those in the given folders. Runs of calibrations and audits are left out.
    """
    from evalstone.ledger.base import DEFAULT_LEDGER, shown
    from evalstone.results.several_runs import SavedRuns

    listing = [*_ledger_runs(ledger), *(row for name in folders or () for row in _folder_runs(name))]
    matching = [row for row in listing if set(tag or ()) <= set(row.get("tags", ()))]
    latest = sorted(matching, key=lambda row: row["started"], reverse=True)[:limit]
    saved = SavedRuns(tuple(latest), (shown(ledger or DEFAULT_LEDGER), *(folders or ())))
    view = saved.view(front_end(runs))
    present(view, formats(view, outputs, *latest, csv=saved.csv_lines))
    return ExitCode.OK


def _folder_runs(name: str) -> Iterator[dict[str, Any]]:
    """The summaries of the evaluations in a folder or its subfolders."""
    from evalstone._core.files import is_folder
    from evalstone.datasets.stored import SUMMARY
    from evalstone.results.files import read_summary

    folder = Path(name)
    if not is_folder(name):
        raise ConfigError(f"there is no folder {quoted(name)}")
    for file in sorted({*folder.glob(SUMMARY), *folder.glob(f"*/{SUMMARY}")}):
        summary = read_summary(file.parent)
        if summary.get("kind", "evaluation") == "evaluation":
            yield {**summary, "folder": str(file.parent)}
