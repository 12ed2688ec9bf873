"""`evalstone report`, `compare`, `drift`, `gate`, `power` and `runs`: commands on saved runs."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from evalstone.cli.options import (
    AllowMismatchOption,
    AlphaOption,
    ConfidenceOption,
    CsvOption,
    DataOption,
    ExitCode,
    HtmlOption,
    JsonOption,
    JunitOption,
    LedgerOption,
    MarkdownOption,
    RunArgument,
    SliceByOption,
    TopOption,
    pass_rates,
    scorer_named,
    scorer_numbers,
)
from evalstone.cli.output import PAGE_TOP, as_stdout, console, deliver, json_parts, present, short_judge, table
from evalstone.errors import ConfigError

if TYPE_CHECKING:
    from evalstone.results.human_labels import PPIResult, RoganGladenResult
    from evalstone.results.power_analysis import ScorerPower
    from evalstone.results.run import Run

BaselineOption = Annotated[str | None, typer.Option("--baseline", metavar="RUN", help="A run over the same samples.")]


def find_run(name: str, ledger: str | None, data: str | None = None) -> Run:
    """A run as `read_run` finds it. data: the file with its samples, if its folder doesn't hold them."""
    from evalstone.run.saved import read_run

    run = read_run(name, ledger=ledger)
    if data is None:
        return run
    from evalstone.datasets import load
    from evalstone.results.files import with_data

    return with_data(run, load(data))


def _ledger_runs(ledger: str | None) -> list[dict[str, Any]]:
    """The metadata of a ledger's evaluations, the latest first; with their results, of those that are complete."""
    from evalstone.ledger.base import DEFAULT_LEDGER, is_there
    from evalstone.run.saved import evaluations

    url = ledger or DEFAULT_LEDGER
    if not is_there(url):
        return []
    from evalstone.ledger.store import Ledger

    with Ledger(url) as opened:
        return [{**row.metadata, "run": row.id, "started": row.started} for row in evaluations(opened.runs())]


def report(
    run: RunArgument = "last",
    ledger: LedgerOption = None,
    data: DataOption = None,
    slice_by: SliceByOption = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels", metavar="SCORER=FILE", help="Correct a scorer's mean with human labels (id, label). Repeatable."
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated", help="Correct pass rates with the judge's calibrations, stored beside the ledger."
        ),
    ] = False,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    csv: CsvOption = None,
    junit: JunitOption = None,
    as_json: JsonOption = False,
    top: TopOption = None,
) -> int:
    """Show a saved run, or export it.

    Without options, the run is shown on the terminal. Several formats can be written at once.
    """
    from evalstone._core.json import to_jsonable
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.report.csv import run_csv
    from evalstone.report.junit import run_junit
    from evalstone.report.run_view import run_view

    found = find_run(run, ledger, data)
    corrected = [_corrected_mean(found, text) for text in labels or ()]
    rates = _corrected_rates(found, ledger or DEFAULT_LEDGER) if calibrated else []
    sliced = found.slices(slice_by) if slice_by else ()
    extra = [*corrected, *rates]
    worst = 3 if top is None else top
    plain = found.to_dict()
    if extra:
        plain["corrected"] = to_jsonable(extra)
    if sliced:
        plain["slices"] = to_jsonable(list(sliced))
    present(
        run_view(found, worst=worst, corrected=extra, slices=sliced),
        {"html": html, "markdown": markdown, "csv": csv, "junit": junit, "json": as_stdout(as_json)},
        plain,
        page_view=run_view(found, worst=max(worst, PAGE_TOP), corrected=extra, slices=sliced) if html else None,
        others={"csv": lambda: run_csv(found), "junit": lambda: run_junit(found)},
    )
    return ExitCode.FAILURES if found.failed or not found.complete else ExitCode.OK


def _corrected_mean(run: Run, text: str) -> PPIResult:
    """A mean corrected by the labels that `SCORER=FILE` names; the scorer may be left out if the run has only one."""
    from evalstone.results.human_labels import corrected, load_labels

    scorer, file = _scorer_and_file(run, text)
    return corrected(run, scorer, load_labels(run, scorer, file))


def _scorer_and_file(run: Run, text: str) -> tuple[str, str]:
    """A scorer's title and a file. Both may contain equals signs: the scorer is the longest part that names one."""
    signs = [place for place, character in enumerate(text) if character == "="]
    for sign in reversed(signs):
        try:
            info = scorer_named(text[:sign], run.scorers, "--labels")
        except ConfigError:
            continue
        return run.titles[info.signature], text[sign + 1 :]
    if len(run.scorers) == 1 and (not signs or Path(text).exists()):
        return run.titles[run.scorers[0].signature], text
    known = ", ".join(run.titles.values())
    raise ConfigError(f"--labels takes SCORER=FILE, where SCORER is one of {known}, not {text!r}")


def _corrected_rates(run: Run, place: str) -> list[RoganGladenResult]:
    """The pass rates of the scorers that the judge is calibrated for."""
    from evalstone.results.calibration import calibration_for
    from evalstone.results.human_labels import corrected_share

    known = [(info, calibration_for(run.judge, info.signature, place)) for info in run.scorers]
    rates = [corrected_share(run, info.signature, one) for info, one in known if one is not None]
    if not rates:
        raise ConfigError(f"{run.judge} is not calibrated for any scorer of this run; see evalstone calibrate")
    return rates


def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Two or more saved runs; the first is the baseline.", show_default=False),
    ] = None,
    ledger: LedgerOption = None,
    slice_by: SliceByOption = None,
    allow_mismatch: AllowMismatchOption = False,
    correction: Annotated[
        str,
        typer.Option(
            "--correction", metavar="holm|fdr_bh|none", help="Correction of p-values for multiple comparisons."
        ),
    ] = "holm",
    confidence: ConfidenceOption = 0.95,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", help="Show this many of the samples that changed most.", min=0),
    ] = 3,
) -> int:
    """Compare runs over the same samples.

    Shows paired differences with confidence intervals, tests, and the samples that changed most.
    """
    from evalstone.report.comparison_view import comparison_view
    from evalstone.report.csv import comparison_csv
    from evalstone.results.compare import compare as compare_runs
    from evalstone.stats.multiple_testing import Correction

    names = runs or []
    if len(names) < 2:
        raise ConfigError(f"compare takes two or more runs (folders, IDs, names or last), not {len(names)}")
    result = compare_runs(
        *(find_run(name, ledger) for name in names),
        slice_by=tuple(slice_by or ()),
        allow_mismatch=allow_mismatch,
        correction=cast("Correction", correction),
        confidence=confidence,
    )
    compared = replace(result, names=dict(zip(result.runs, names, strict=True)))
    present(
        comparison_view(compared, most=top),
        {"html": html, "markdown": markdown, "csv": csv, "json": as_stdout(as_json)},
        compared.to_dict(),
        others={"csv": lambda: comparison_csv(compared)},
    )
    return ExitCode.OK


def drift(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The earlier run.")],
    now: Annotated[str, typer.Argument(metavar="NOW", help="A run over the same outputs, judged now.")] = "last",
    ledger: LedgerOption = None,
    confidence: ConfidenceOption = 0.95,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check whether a judge has drifted.

    Compares two runs over the same outputs, judged at different times.
    """
    from evalstone.report.comparison_view import drift_view
    from evalstone.results.drift import judge_drift

    found = judge_drift(find_run(before, ledger), find_run(now, ledger), confidence=confidence)
    places = {"html": html, "markdown": markdown, "json": as_stdout(as_json)}
    present(drift_view(found), places, found.to_dict())
    return ExitCode.FAILED_THRESHOLD if found.drifted else ExitCode.OK


def gate(
    run: RunArgument = "last",
    ledger: LedgerOption = None,
    minimum: Annotated[
        list[str] | None,
        typer.Option(
            "--min", metavar="SCORER=X", help="The mean is at least X, for scorers where higher is better. Repeatable."
        ),
    ] = None,
    maximum: Annotated[
        list[str] | None,
        typer.Option(
            "--max", metavar="SCORER=X", help="The mean is at most X, for scorers where lower is better. Repeatable."
        ),
    ] = None,
    max_regression: Annotated[
        list[str] | None,
        typer.Option(
            "--max-regression",
            metavar="SCORER=X",
            help="The mean is worse than the baseline's by at most X (non-inferiority). Repeatable.",
        ),
    ] = None,
    pass_rate: Annotated[
        list[str] | None,
        typer.Option(
            "--pass-rate",
            metavar="SCORER@SCORE=SHARE",
            help="At least this share of samples reaches this score: faithfulness@0.8=0.9. Repeatable.",
        ),
    ] = None,
    baseline: BaselineOption = None,
    allow_mismatch: AllowMismatchOption = False,
    alpha: AlphaOption = 0.05,
    inconclusive: Annotated[
        str,
        typer.Option(metavar="exit4|pass|fail", help="How an inconclusive result counts."),
    ] = "exit4",
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check a saved run against thresholds.

    Each check passes, fails, or is inconclusive (with the number of additional samples needed).
    """
    from evalstone.report.comparison_view import gate_view
    from evalstone.report.junit import gate_junit
    from evalstone.results.gate import GateCriteria
    from evalstone.results.gate import gate as check

    codes = {"exit4": ExitCode.INCONCLUSIVE, "pass": ExitCode.OK, "fail": ExitCode.FAILED_THRESHOLD}
    if inconclusive not in codes:
        raise ConfigError(f"--inconclusive takes exit4, pass or fail, not {inconclusive!r}")
    found = find_run(run, ledger)

    def titled(values: Mapping[str, Any], option: str) -> dict[str, Any]:
        return {found.titles[scorer_named(name, found.scorers, option).signature]: x for name, x in values.items()}

    criteria = GateCriteria(
        minimum=titled(scorer_numbers(minimum or [], "--min"), "--min"),
        maximum=titled(scorer_numbers(maximum or [], "--max"), "--max"),
        max_regression=titled(scorer_numbers(max_regression or [], "--max-regression"), "--max-regression"),
        pass_rate=titled(pass_rates(pass_rate or []), "--pass-rate"),
    )
    before = None if baseline is None else find_run(baseline, ledger)
    result = check(found, criteria, baseline=before, alpha=alpha, allow_mismatch=allow_mismatch)
    present(
        gate_view(result),
        {"html": html, "markdown": markdown, "junit": junit, "json": as_stdout(as_json)},
        result.to_dict(),
        others={"junit": lambda: gate_junit(result, inconclusive_fails=inconclusive == "fail")},
        always_show=True,
    )
    verdicts = {"pass": ExitCode.OK, "fail": ExitCode.FAILED_THRESHOLD, "inconclusive": codes[inconclusive]}
    code = verdicts[result.verdict]
    return ExitCode.FAILURES if code == ExitCode.OK and (found.failed or not found.complete) else code


def power(
    run: RunArgument = "last",
    ledger: LedgerOption = None,
    difference: Annotated[
        float, typer.Option("--difference", "-d", metavar="X", help="The true difference of means to detect.", min=0)
    ] = 0.03,
    baseline: BaselineOption = None,
    power: Annotated[
        float,
        typer.Option(metavar="P", help="The probability of detecting the difference.", min=0, max=1),
    ] = 0.8,
    confidence: ConfidenceOption = 0.95,
    allow_mismatch: AllowMismatchOption = False,
    as_json: JsonOption = False,
) -> int:
    """Estimate how many samples you need.

    Computes from a pilot run how many samples are needed to detect a difference of means, and what the pilot itself can
    detect. Give a second pilot run over the same samples as --baseline for a much more precise estimate.
    """
    from evalstone.results.power_analysis import sample_size

    pilot = find_run(run, ledger)
    other = None if baseline is None else find_run(baseline, ledger)
    found = sample_size(
        pilot, difference, baseline=other, power=power, confidence=confidence, allow_mismatch=allow_mismatch
    )
    if not found.scorers:
        raise ConfigError(f"run {pilot.id} has no scorer with at least two scores")
    if not deliver({"json": (as_stdout(as_json), json_parts(found.to_dict()))}):
        _show_power(
            found.scorers,
            found.baseline is not None,
            f"To detect a true difference of {difference:g} with a power of {power:.0%}:",
        )
    return ExitCode.OK


def _show_power(plans: Sequence[ScorerPower], paired: bool, heading: str) -> None:
    from rich.text import Text

    screen = console()
    screen.print(heading)
    numbers = ("samples needed", "80 % range", "pilot samples", "std. deviation", "minimum detectable difference")
    rows = table("scorer", *numbers, numbers=numbers)
    for one in plans:
        plan = one.plan
        needed, between = f"{plan.needed:,}", f"{plan.needed_low:,} to {plan.needed_high:,}"
        detectable = f"{plan.detectable:.3f}" if plan.detectable else "-"
        rows.add_row(
            Text(one.title),
            Text(needed if plan.deviation else "-", style="bold"),
            between if plan.deviation else "-",
            f"{plan.n:,}",
            f"{plan.deviation:.3f}",
            detectable,
        )
    screen.print(rows)
    for note in _power_notes(plans, paired):
        screen.print(Text(note, style="dim"))


def _power_notes(plans: Sequence[ScorerPower], paired: bool) -> Iterator[str]:
    if paired:
        yield "Both runs score the same samples; the deviation is that of the differences between the two pilot runs."
    else:
        yield (
            "Both runs score the same samples. Their scores are taken as uncorrelated, which usually asks for far too "
            "many samples; add --baseline with a second pilot run."
        )
    for one in plans:
        if one.design_effect > 1:
            yield f"{one.title}: clustered samples, so {one.design_effect:.1f} times as many are needed."
        if one.plan.caution:
            yield f"{one.title}: {one.plan.caution}."


def runs(
    folders: Annotated[
        list[str] | None,
        typer.Argument(metavar="FOLDER", help="Results folders, or folders that contain some.", show_default=False),
    ] = None,
    ledger: LedgerOption = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Only runs with this tag. Repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Show only the latest N runs.", min=1)] = 20,
    as_json: JsonOption = False,
) -> int:
    """List saved runs with their mean scores.

    Lists the evaluations in the ledger, and those in the given folders. Runs of calibrations and audits are left out.
    """
    found = [*_ledger_runs(ledger), *(row for name in folders or () for row in _folder_runs(name))]
    wanted = [row for row in found if set(tag or ()) <= set(row.get("tags", ()))]
    latest = sorted(wanted, key=lambda row: row["started"], reverse=True)[:limit]
    if not deliver({"json": (as_stdout(as_json), json_parts(latest))}):
        _show_runs(latest)
    return ExitCode.OK


def _folder_runs(name: str) -> Iterator[dict[str, Any]]:
    """The summaries of the evaluations in a folder, or in the folders within."""
    from evalstone.results.files import read_summary

    folder = Path(name)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {name}")
    for file in sorted({*folder.glob("summary.json"), *folder.glob("*/summary.json")}):
        summary = read_summary(file.parent)
        if summary.get("kind", "evaluation") == "evaluation":
            yield {**summary, "folder": str(file.parent)}


def _show_runs(found: Sequence[Mapping[str, Any]]) -> None:
    from rich.text import Text

    from evalstone.report.text import safe

    screen = console()
    if not found:
        screen.print("No runs found.")
        return
    rows = table("run", "started (UTC)", "name", "tags", "dataset", "judge", "means", numbers=(), fold=True)
    for row in found:
        means = [
            f"{one['name']} {'-' if one.get('mean') is None else format(one['mean'], '.3f')}" for one in row["scorers"]
        ]
        cells = (
            row.get("folder") or row["run"],
            row["started"][:16].replace("T", " "),
            row.get("name", ""),
            ", ".join(row.get("tags", ())),
            f"{row['dataset']['name']} ({row['dataset']['samples']:,})",
        )
        unfinished = " (incomplete)" if row.get("ended") or "cost" not in row else ""
        rows.add_row(
            *(Text(safe(cell, 80)) for cell in cells),
            Text(short_judge(row["judge"]["identity"])),
            Text(safe(", ".join(means), 400) + unfinished),
        )
    screen.print(rows)
