"""`evalstone calibrate`, `audit` and `judges`: how far a judge can be trusted."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from evalstone.cli.options import (
    BaseUrlOption,
    BudgetOption,
    ConcurrencyOption,
    DryRunOption,
    ExitCode,
    HtmlOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    MapOption,
    NoCacheOption,
    QuietOption,
    field_columns,
    finite,
    judge_spec,
)
from evalstone.cli.output import as_stdout, console, deliver, present, short_judge, table, to_stderr
from evalstone.cli.run import INTERRUPTION, RESUME, interruptible
from evalstone.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evalstone.judge_quality.audit import AuditConfig
    from evalstone.judge_quality.calibrate import JudgeOptions
    from evalstone.judges.base import Judge
    from evalstone.judges.providers.base import ProviderInfo
    from evalstone.results.calibration import Calibration
    from evalstone.run.budget import StopSignal

COMPOSITE_JUDGES = {
    "panel(openai/gpt-5.1, google/gemini-2.5-pro, lexical)": "several judges vote: majority, mean or unanimous",
    "cascade(lexical, openai/gpt-5.1, threshold=0.9)": "asks the second judge where the first is unsure",
    "self_consistency(openai/gpt-5.1(temperature=0.7), n=5)": "asks one judge several times and takes the vote",
}


def calibrate(
    labels: Annotated[
        str, typer.Option("--labels", metavar="FILE", help="Samples with label columns; with --data, IDs and labels.")
    ],
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="The samples, if the labels are in a separate file.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="COLUMN", help="A column of labels; one per annotator. Repeatable."),
    ] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option("--positive", metavar="WORD", help="A label that means yes; all others mean no. Repeatable."),
    ] = None,
    label_range: Annotated[
        str | None,
        typer.Option("--label-range", metavar="LOW:HIGH", help="The range of numeric labels, such as 1:5."),
    ] = None,
    label_threshold: Annotated[
        float | None,
        typer.Option(
            "--label-threshold",
            metavar="LABEL",
            help="The lowest label that means yes, on the scorer's scale. Default: half the scale.",
        ),
    ] = None,
    map: MapOption = None,
    scorer: Annotated[
        str, typer.Option("--scorer", "-s", metavar="SCORER", help="The scorer to calibrate.")
    ] = "faithfulness",
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    budget: BudgetOption = None,
    no_cache: NoCacheOption = None,
    per_judge: Annotated[
        bool, typer.Option("--per-judge", help="Calibrate each member of a composite judge as well.")
    ] = False,
    ledger: LedgerOption = None,
    concurrency: ConcurrencyOption = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="MEASURE", help="What the threshold maximizes: balanced_accuracy, accuracy, f1, kappa, ..."
        ),
    ] = "balanced_accuracy",
    calibrator: Annotated[
        str, typer.Option(metavar="platt|isotonic|auto", help="How scores become probabilities.")
    ] = "auto",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a copy of the calibration (JSON)."),
    ] = None,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="Write the reliability diagram."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Compare a judge with human labels.

    Shows how accurate the judge is and which threshold to use. The calibration is saved beside the ledger.
    """
    from evalstone.datasets.writing import json_line, write_jsonl, write_text
    from evalstone.judge_quality.calibrate import LabelConfig
    from evalstone.judge_quality.calibrate import calibrate as calibrate_judge
    from evalstone.judges.parse import parse_judge
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.report.html import reliability_svg
    from evalstone.report.quality_view import reliability_chart
    from evalstone.report.text import count
    from evalstone.results.calibration import calibration_file

    if per_judge and budget is not None:
        raise ConfigError("--per-judge can't be combined with --budget; calibrate the judges one by one")
    place = ledger or DEFAULT_LEDGER
    main_judge = parse_judge(judge_spec(judge or "lexical", base_url))
    label_config = LabelConfig(
        columns=tuple(label or ()),
        positive=tuple(positive or ()),
        label_range=None if label_range is None else _label_range(label_range),
        label_threshold=label_threshold,
        objective=objective.replace("-", "_"),
        calibrator=cast("Literal['auto', 'platt', 'isotonic']", calibrator),
    )
    found: list[Calibration] = []
    with interruptible() as stop:
        options = _judge_options(map, concurrency, budget, no_cache, quiet, stop)
        for one in (main_judge, *(main_judge.members if per_judge else ())):
            made = calibrate_judge(
                labels, scorer, data=data, judge=one, ledger=place, config=label_config, options=options
            )
            if made.stop_reason == INTERRUPTION:
                to_stderr(f"Interrupted after {count(len(made.pairs), 'labeled sample')}; {RESUME}.")
                return ExitCode.INTERRUPTED
            found.append(made)
    first = found[0]
    saved: dict[str, str] = {}
    if not first.stop_reason:
        saved["Saved:"] = str(calibration_file(first.judge, first.scorer, place))
    if out is not None:
        write_jsonl(out, [first.to_dict()])
        saved["Copy: "] = out
    if svg is not None:
        write_text(svg, [reliability_svg(reliability_chart(first))])
        saved["Plot: "] = svg
    if not deliver({"json": (as_stdout(as_json), lambda: [json_line(made.to_dict()) + "\n" for made in found])}):
        _show_calibrations(found, main_judge, saved)
    return ExitCode.FAILURES if any(made.failed or made.stop_reason for made in found) else ExitCode.OK


def _label_range(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ConfigError(f"--label-range takes LOW:HIGH, such as 1:5, not {text!r}")
    return finite(low, "--label-range"), finite(high, "--label-range")


def _judge_options(
    mapping: list[str] | None,
    concurrency: int | None,
    budget: float | None,
    no_cache: bool | None,
    quiet: bool,
    stop: StopSignal,
) -> JudgeOptions:
    from evalstone.judge_quality.calibrate import JudgeOptions

    return JudgeOptions(
        concurrency=concurrency or 32,
        use_cache=not no_cache,
        budget=budget,
        mapping=field_columns(mapping or []) or None,
        progress=not quiet and sys.stderr.isatty(),
        stop=stop,
    )


def _show_calibrations(found: Sequence[Calibration], judge: Judge, saved: dict[str, str]) -> None:
    from evalstone.report.quality_view import calibration_view
    from evalstone.report.terminal import show

    screen = console()
    show(calibration_view(found[0]), screen)
    if len(found) > 1:
        screen.print()
        screen.print(_calibrations_table("each judge", found))
    elif judge.members:
        screen.print("To calibrate its members as well, add --per-judge.", style="dim")
    screen.print()
    for what, place in saved.items():
        screen.print(f"{what} {place}")


def audit(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Samples (JSON, JSONL, CSV, Parquet). Default: bundled RAG answers."),
    ] = None,
    perturbation: Annotated[
        list[str] | None,
        typer.Option(
            "--perturbation", metavar="NAME", help="A perturbation, or a family of them. Repeatable. Default: all."
        ),
    ] = None,
    list_perturbations: Annotated[bool, typer.Option("--list", help="List the perturbations and exit.")] = False,
    paraphrase: Annotated[
        list[str] | None,
        typer.Option("--paraphrase", metavar="COLUMN", help="A column with paraphrases of the output. Repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Maximum number of samples, drawn at random.", min=1)] = 100,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="The lowest score that means yes. Default: the calibrated threshold, else half the scale.",
        ),
    ] = None,
    map: MapOption = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option("--scorer", "-s", metavar="SCORER", help="A scorer. Repeatable. Default: faithfulness."),
    ] = None,
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    budget: BudgetOption = None,
    no_cache: NoCacheOption = None,
    ledger: LedgerOption = None,
    concurrency: ConcurrencyOption = None,
    dry_run: DryRunOption = False,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Test a judge's robustness to irrelevant changes.

    Each sample is judged unchanged and with small perturbations, such as reordered passages or an injected instruction.
    """
    from evalstone.datasets.demo import DEMO_DATA
    from evalstone.judge_quality.audit import AuditConfig
    from evalstone.judge_quality.audit import audit as audit_judge
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.report.quality_view import audit_view

    if list_perturbations:
        _list_perturbations()
        return ExitCode.OK
    source, scorers = data or DEMO_DATA, scorer or ["faithfulness"]
    spec, place = judge_spec(judge or "lexical", base_url), ledger or DEFAULT_LEDGER
    config = AuditConfig(
        perturbations=tuple(perturbation or ()),
        paraphrases=tuple(paraphrase or ()),
        samples=samples,
        threshold=threshold,
    )
    with interruptible() as stop:
        options = _judge_options(map, concurrency, budget, no_cache, quiet, stop)
        if dry_run:
            _audit_dry_run(source, scorers, spec, place, config, options)
            return ExitCode.OK
        made = audit_judge(source, scorers, judge=spec, ledger=place, config=config, options=options)
    if made.stop_reason == INTERRUPTION:
        to_stderr(f"Interrupted; {RESUME}.")
        return ExitCode.INTERRUPTED
    present(audit_view(made), {"html": html, "json": as_stdout(as_json)}, made.to_dict())
    return ExitCode.FAILURES if made.failed or made.stop_reason else ExitCode.OK


def _list_perturbations() -> None:
    from evalstone.judge_quality.perturbations import PERTURBATIONS

    rows = table("perturbation", "family", "a judge that reacts prefers or follows", fold=True)
    for one in PERTURBATIONS.values():
        rows.add_row(one.name, one.family, one.why)
    console().print(rows)


def _audit_dry_run(
    source: Any, scorers: Sequence[str], judge: Any, ledger: str, config: AuditConfig, options: JudgeOptions
) -> None:
    from evalstone._core import sync
    from evalstone.judge_quality.audit import estimate_audit
    from evalstone.report.text import count, money
    from evalstone.types import NO_USAGE, total_cost

    found = sync.run(
        estimate_audit(
            source, scorers, judge=judge, ledger=ledger if options.use_cache else None, config=config, options=options
        )
    )
    versions, plain = found[:2]
    price = total_cost(one.cost for one in found)
    usage = sum((one.usage for one in found), NO_USAGE)
    cost = "cost unknown" if price is None else f"about {money(price)}"
    calls = count(sum(one.calls for one in found), "call")
    screen = console()
    samples = count(plain.samples, "sample")
    screen.print(f"{count(versions.samples, 'version')} of {samples} · judge {short_judge(versions.judge)} · dry run")
    screen.print(
        f"{calls}, about {usage.input:,} input and {usage.output:,} output tokens, {cost}; "
        "retries and reasoning tokens not included"
    )


def judges(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="JUDGE",
            help="A judge to describe, as --judge takes it: 'cascade(lexical, openai/gpt-5.1, threshold=0.9)'.",
        ),
    ] = None,
    ledger: LedgerOption = None,
) -> int:
    """List the judges, or describe one.

    Shows which API keys are set, prices, and measured accuracy. Makes no judge calls.
    """
    from evalstone.judges.parse import parse_judge
    from evalstone.ledger.base import DEFAULT_LEDGER

    if name is None:
        _list_judges(console(), ledger or DEFAULT_LEDGER)
    else:
        _describe(parse_judge(name), console(), ledger or DEFAULT_LEDGER)
    return ExitCode.OK


def _list_judges(screen: Console, ledger: str) -> None:
    from rich.text import Text

    from evalstone.judges.lexical import LexicalJudge
    from evalstone.judges.providers.base import PROVIDERS
    from evalstone.results.calibration import list_calibrations

    lexical = LexicalJudge()
    screen.print(Text.assemble(("lexical", "bold"), f"  {lexical.identity}; no API key, no network, no cost"))
    screen.print(Text(f"  {lexical.note}", style="dim"))
    numbers = ("responses", "unsupported", "AUROC [95% CI]", "left out of training", "word overlap")
    measured = table("  measured on", *numbers, numbers=numbers)
    for name, one in lexical.card["data_sets"].items():
        low, high = one["auroc_interval"]
        auroc = f"{one['auroc']:.3f} [{low:.3f}, {high:.3f}]"
        left_out, overlap = f"{one['left_out']['auroc']:.3f}", f"{one['word_overlap_auroc']:.3f}"
        measured.add_row(f"  {name}", f"{one['rows']:,}", f"{one['positive']:,}", auroc, left_out, overlap)
    screen.print(measured)
    screen.print("  0.5 is chance, 1 is perfect; see docs/lexical-judge.md.\n", style="dim")
    models = table("language models", "API key", "endpoint", fold=True)
    for provider, how in PROVIDERS.items():
        models.add_row(f"{provider}/MODEL", _key(how), Text(_endpoint(how), style="dim"))
    screen.print(models)
    screen.print("To measure a model on your data: evalstone calibrate --judge NAME --labels FILE\n", style="dim")
    composites = table("composite judges", "", fold=True)
    for example, purpose in COMPOSITE_JUDGES.items():
        composites.add_row(example, Text(purpose, style="dim"))
    screen.print(composites)
    if known := list_calibrations(ledger):
        screen.print()
        screen.print(_calibrations_table("calibrated here", known))
    screen.print("\nevalstone judges NAME describes one and checks that it is ready.", style="dim")


def _key(provider: ProviderInfo) -> Text:
    """Whether the API key is set; never the key itself."""
    from rich.text import Text

    if not provider.key:
        return Text("none" if provider.base_url else "its own", style="dim")
    is_set = bool(os.environ.get(provider.key))
    return Text.assemble(provider.key, ("  set", "green") if is_set else ("  not set", "dim"))


def _endpoint(provider: ProviderInfo) -> str:
    own = next((name for name in provider.base_url_from if os.environ.get(name)), None)
    if own is not None:
        return f"the URL in {own}"
    return provider.base_url or 'pydantic-ai (pip install "evalstone[providers]")'


def _describe(judge: Judge, screen: Console, ledger: str) -> None:
    from rich.text import Text

    from evalstone.report.text import safe
    from evalstone.results.calibration import list_calibrations

    screen.print(Text(safe(judge.identity, 500), style="bold"))
    if judge.note:
        screen.print(Text(safe(judge.note, 1000), style="dim"))
    screen.print()
    members = list(_tree(judge))
    for depth, one in members:
        name = f"{'  ' * depth}{safe(one.identity, 200) if depth else ''}"
        if not one.members:
            screen.print(Text.assemble(name, ": " if depth else "", (f"{_price(one)}; {_readiness(one)}", "dim")))
        elif depth:
            screen.print(Text(name))
    # The members' calibrations too: a composite judge should beat each of them.
    identities = {one.identity for _, one in members}
    known = [one for one in list_calibrations(ledger) if one.judge in identities]
    if known:
        screen.print()
        screen.print(_calibrations_table("calibrated here", known))
    if all(one.judge != judge.identity for one in known):
        screen.print("\nNot calibrated yet; see evalstone calibrate.", style="dim")


def _tree(judge: Judge, depth: int = 0) -> Iterator[tuple[int, Judge]]:
    yield depth, judge
    for member in judge.members:
        yield from _tree(member, depth + 1)


def _price(judge: Judge) -> str:
    from evalstone.types import Usage

    if not judge.cacheable:
        return "free"
    # Priced at 1,000 tokens, because some prices rise with the length of a prompt.
    prices = [judge.price(usage) for usage in (Usage(1000, 0), Usage(0, 1000))]
    shown = [f"${1000 * price:g}" for price in prices if price is not None]
    return f"{' and '.join(shown)} per million input and output tokens" if len(shown) == 2 else "price unknown"


def _readiness(judge: Judge) -> str:
    try:
        judge.check()
    except ConfigError as error:
        return f"not ready: {error}"
    return "ready"


def _calibrations_table(title: str, known: Sequence[Calibration]) -> Table:
    """One row per calibration: judge, scorer, data, and agreement with the labels."""
    from evalstone.report.text import safe
    from evalstone.results.calibration import measure

    rows = table(title, "scorer", "dataset", "accuracy [95% CI]", "kappa", "AUROC", fold=True)
    for one in known:
        found = measure(one)
        accuracy, kappa = found.at_default.accuracy, found.at_default.kappa
        rows.add_row(
            short_judge(one.judge),
            one.name,
            safe(f"{one.dataset}, {len(one.pairs)} labeled", 60),
            "-" if accuracy is None else f"{accuracy.mean:.3f} [{accuracy.low:.3f}, {accuracy.high:.3f}]",
            "-" if kappa is None else f"{kappa.mean:.3f}",
            "-" if found.auroc is None else f"{found.auroc.mean:.3f}",
        )
    return rows
