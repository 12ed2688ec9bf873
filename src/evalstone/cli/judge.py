"""`evalstone calibrate`, `align` and `audit`: the quality of a judge."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import evalstone
from evalstone._core.display import count, quoted
from evalstone._core.sizes import MOST_EXAMPLES
from evalstone.cli import completion, options
from evalstone.cli.execution import RESUME, WITHOUT_NO_CACHE, interruptible
from evalstone.cli.options import FILE, Outputs, Value, Values, front_end, option
from evalstone.cli.output import (
    check_outputs,
    console,
    deliver,
    formats,
    json_lines,
    present,
    say,
    table,
    to_stderr,
    written,
)
from evalstone.cli.values import judge_spec, scorer_specs
from evalstone.errors import ConfigError, absent, repeated
from evalstone.report.view import bare_judge
from evalstone.results.endings import INTERRUPTED, ExitCode, code_of_judging, first_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstone.judge_quality.calibrate import JudgeOptions
    from evalstone.results.calibration import Calibration
    from evalstone.scorers import Scorer
    from evalstone.stats.classification import MeasureName


def calibrate(
    labels: options.Labels,
    data: options.LabeledData = None,
    label: options.LabelColumns = None,
    positive: options.Positive = None,
    label_range: options.LabelRange = None,
    label_threshold: options.LabelThreshold = None,
    map: options.Map = None,
    keep_reasoning: options.KeepReasoning = False,
    scorer: Annotated[
        str, option("--scorer -s SCORER", "Options", "The scorer to calibrate.", complete=completion.scorers)
    ] = "faithfulness",
    slice_by: options.SliceBy = None,
    judge: options.Judges = None,
    base_url: options.BaseUrl = None,
    budget: options.Budget = None,
    cache: options.Cache = True,
    per_judge: Annotated[
        bool, option("--per-judge", "Judge", "Calibrate each member of a composite judge as well.")
    ] = False,
    risk: Annotated[
        float | None,
        option(
            "--risk SHARE",
            "Judge",
            "Choose a cascade's threshold: at most this share of the samples that its first judge decides alone is "
            "judged wrongly.",
            min=0,
            max=1,
        ),
    ] = None,
    ledger: options.Ledger = None,
    concurrency: options.Concurrency = 32,
    dry_run: options.DryRun = False,
    objective: Annotated[
        str,
        option(
            "--objective MEASURE",
            "Statistics",
            "The measure that the threshold maximizes: balanced_accuracy, accuracy, f1, kappa, ...",
            complete=completion.objectives,
        ),
    ] = "balanced_accuracy",
    calibrator: Annotated[
        Literal["platt", "isotonic", "auto"],
        option("--calibrator", "Statistics", "How scores become probabilities."),
    ] = "auto",
    out: Annotated[
        Value, option("--out -o FILE", "Output", "Write a copy of the calibration (JSON).", complete=FILE)
    ] = None,
    svg: Annotated[Value, option("--svg FILE", "Output", "Write the reliability diagram.", complete=FILE)] = None,
    *,
    outputs: Outputs,
    quiet: options.Quiet = False,
) -> int:
    """Compare a judge with human labels, or several judges with each other.

    Shows how accurate the judge is and which threshold to use. The calibration is saved next to the ledger.
    """
    from evalstone.datasets.writing import write_jsonl, write_text
    from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig, check_judges
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.report.html import reliability_svg
    from evalstone.report.notes import clause_of
    from evalstone.report.terminal import show
    from evalstone.results.judge_comparison import compare_judges
    from evalstone.results.saved_calibrations import calibration_file, kept_calibration
    from evalstone.results.views.calibration import calibration_view
    from evalstone.results.views.calibration_figures import reliability_chart
    from evalstone.scorers import parse_scorers

    check_outputs({"out": out, "svg": svg} | outputs.files)
    location = DEFAULT_LEDGER if ledger is None else ledger
    (chosen,) = parse_scorers(scorer_specs([scorer]))
    judges = [evalstone.parse_judge(judge_spec(name, base_url)) for name in judge or ["lexical"]]
    if len(judges) > 1 and (
        refused := [
            name
            for name, value in (("--svg", svg), ("--per-judge", per_judge), ("--risk", risk), ("--budget", budget))
            if value
        ]
    ):
        raise ConfigError(f"{refused[0]} takes one judge; calibrate the judges one by one")
    identities = [each.identity for each in judges]
    if twice := [name for name in identities if identities.count(name) > 1]:
        raise ConfigError(repeated("--judge", twice[0], f"the judge {twice[0]} is named twice"))
    measure = cast("MeasureName", objective.replace("-", "_"))
    if dry_run:
        return _show_calls(
            labels,
            chosen,
            data=data,
            judges=judges,
            config=LabelConfig(
                label=tuple(label or ()),
                positive=tuple(positive or ()),
                label_range=label_range,
                label_threshold=label_threshold,
                objective=measure,
                calibrator=calibrator,
            ),
            options=JudgeOptions(
                concurrency=concurrency, cache=cache, budget=budget, map=map, keep_reasoning=keep_reasoning
            ),
            slice_by=slice_by,
            per_judge=per_judge,
            risk=risk,
            ledger=location,
            outputs=outputs,
        )
    for each in judges:
        each.check()
    check_judges(chosen, *judges)
    resume = RESUME if cache else WITHOUT_NO_CACHE
    made: list[Calibration] = []
    with interruptible(resume=resume) as stop:
        for one in judges:
            made.append(
                evalstone.calibrate(
                    labels,
                    chosen,
                    data=data,
                    judge=one,
                    label=label or (),
                    positive=positive or (),
                    label_range=label_range,
                    label_threshold=label_threshold,
                    objective=measure,
                    calibrator=calibrator,
                    slice_by=slice_by,
                    map=map,
                    keep_reasoning=keep_reasoning,
                    budget=budget,
                    cache=cache,
                    concurrency=concurrency,
                    ledger=location,
                    progress=not quiet and sys.stderr.isatty(),
                    stop=stop,
                    per_judge=per_judge,
                    risk=risk,
                )
            )
            lacks_members = (per_judge or risk is not None) and len(made[-1].per_judge) < len(one.members)
            if stop.ending is INTERRUPTED and (made[-1].stop_reason or lacks_members or len(made) < len(judges)):
                to_stderr(f"Interrupted after {count(len(made[-1].pairs), 'labeled sample')}; {resume}.")
                return ExitCode.INTERRUPTED
    first = made[0]
    calibrations = [each for one in made for each in (one, *one.per_judge)]
    saved: dict[str, str] = {}
    for calibration in calibrations:
        file = calibration_file(calibration, location)
        if calibration.stop_reason:
            continue
        better = kept_calibration(calibration, location)
        if better is not None and calibration.flaw is not None:
            why = clause_of(calibration.flaw, front_end(calibrate))
            to_stderr(
                f"Not saved, because {why}: {file} has a better calibration of "
                f"{bare_judge(calibration.judge)} with the same labels ({better.created[:10]}). To replace it, delete "
                "that file and calibrate again."
            )
        elif calibration in made:
            saved[f"Saved:{' ' * len(saved)}"] = str(file)
    if out is not None:
        write_jsonl(out, [each.to_dict() for each in made])
        saved["Copy: "] = out
    if svg is not None:
        write_text(svg, [reliability_svg(reliability_chart(first))])
        saved["Plot: "] = svg
    if len(made) > 1:
        comparison = compare_judges(made)
        view, written_data = comparison.view(front_end(calibrate)), [comparison.to_dict()]
    else:
        view, written_data = calibration_view(first, front_end(calibrate)), [one.to_dict() for one in calibrations]
    written_to = formats(view, outputs, *written_data)
    if not deliver(written_to):
        screen = console()
        show(view, screen)
        if len(made) == 1 and _answer_alone(judges[0].members, chosen) and not (per_judge or first.risk):
            screen.print("To calibrate its members as well, add --per-judge.", style="dim")
        if files := written(written_to):
            saved["Page: "] = files
        screen.print()
        for title, path in saved.items():
            say(f"{title.strip()} {path}")
        if first.risk is not None and judge:
            from evalstone.judges.parse import table_of, with_setting

            threshold = repr(first.risk.threshold)
            is_line = "cascade" in table_of(judge[0])  # not a cascade of the user's code, which has its settings there
            named = with_setting(judge[0], "threshold", threshold) if is_line else ""
            how = f"--judge {shlex.quote(named)}" if named else f"threshold={threshold}"
            say(f"Use the cascade with {how}.")
    return first_code(code_of_judging(one.n_failed, one.stop_reason) for one in calibrations)


def _answer_alone(members: Sequence[evalstone.Judge], scorer: Scorer) -> bool:
    """Whether each of these judges can answer all questions of a scorer; False if there are none."""
    from evalstone.judge_quality.calibrate import check_judges

    try:
        check_judges(scorer, *members)
    except ConfigError:
        return False
    return bool(members)


def _show_calls(labels: str, scorer: Scorer, *, options: JudgeOptions, outputs: Outputs, **settings: Any) -> int:
    """Show the calls and the cost of a calibration, without a call."""
    from evalstone._core import sync
    from evalstone.judge_quality.calibrate import estimate_calibration
    from evalstone.results.views.estimate import Terms, estimate_view

    work = sync.run(estimate_calibration(labels, scorer, options=options, **settings))
    view = estimate_view(work, Terms(concurrency=options.concurrency, budget=options.budget))
    present(view, formats(view, outputs, work.to_dict()))
    return ExitCode.OK


def align(
    labels: options.Labels,
    data: options.LabeledData = None,
    label: options.LabelColumns = None,
    positive: options.Positive = None,
    label_range: options.LabelRange = None,
    label_threshold: options.LabelThreshold = None,
    map: options.Map = None,
    keep_reasoning: options.KeepReasoning = False,
    scorer: Annotated[
        str, option("--scorer -s SCORER", "Options", "The scorer to align the judge for.", complete=completion.scorers)
    ] = "faithfulness",
    slice_by: Annotated[
        Values, option("--slice-by FIELD", "Data", "Choose examples with different values of this metadata field.")
    ] = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    wording: Annotated[
        Values,
        option(
            "--wording FILE",
            "Judge",
            "Also try the instructions in this text file; strict or lenient adds a sentence on doubtful cases.",
            complete=FILE,
        ),
    ] = None,
    examples: Annotated[
        int,
        option("--examples N", "Judge", "Maximum number of worked examples; 0 for none.", min=0, max=MOST_EXAMPLES),
    ] = 4,
    budget: options.Budget = None,
    cache: options.Cache = True,
    ledger: options.Ledger = None,
    concurrency: options.Concurrency = 32,
    dry_run: options.DryRun = False,
    objective: Annotated[
        Literal["accuracy", "brier"],
        option("--objective", "Statistics", "What is improved: the accuracy, or the Brier score of probabilities."),
    ] = "accuracy",
    out: Annotated[
        Value,
        option(
            "--out -o FILE", "Output", "Write the alignment here (JSON), if it is shown to be better.", complete=FILE
        ),
    ] = None,
    *,
    outputs: Outputs,
    quiet: options.Quiet = False,
) -> int:
    """Choose from labels how a judge is asked.

    Tries other wordings, worked examples, thresholds and mappings of probabilities. Use the file that it writes with
    --judge 'MODEL(align=FILE)'.
    """
    from evalstone._core import sync
    from evalstone.judge_quality.align import AlignmentTask
    from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.results.views.alignment import estimate_text

    wordings, files = _wordings(wording or [])
    check_outputs({"out": out} | outputs.files, (labels, data, *files))
    (spec,) = scorer_specs([scorer])
    parsed = evalstone.parse_judge(judge_spec(judge or "lexical", base_url))
    if not dry_run:
        parsed.check()
    resume = RESUME if cache else WITHOUT_NO_CACHE
    with interruptible(resume=resume) as stop:
        task = AlignmentTask.of(
            labels,
            spec,
            data=data,
            judge=parsed,
            wording=wordings,
            examples=examples,
            objective=objective,
            slice_by=tuple(slice_by or ()),
            config=LabelConfig(
                label=tuple(label or ()),
                positive=tuple(positive or ()),
                label_range=label_range,
                label_threshold=label_threshold,
            ),
            options=JudgeOptions(
                concurrency=concurrency,
                cache=cache,
                budget=budget,
                map=map,
                keep_reasoning=keep_reasoning,
                progress=not quiet and sys.stderr.isatty(),
                stop=stop,
            ),
        )
        location = DEFAULT_LEDGER if ledger is None else ledger
        work = sync.run(task.estimated(location))
        result = None
        if not dry_run:
            if not quiet:
                to_stderr(estimate_text(work))
            result = sync.run(task.aligned(location))
    if result is None:
        present(work.view(front_end(align)), formats(work.view(front_end(align)), outputs, work.to_dict()))
        return ExitCode.OK
    if result.stop_reason and stop.ending is INTERRUPTED:
        to_stderr(f"Interrupted; {resume}.")
        return ExitCode.INTERRUPTED
    if out is not None and result.passed:
        result.save(out)
    view = result.view(front_end(align))
    if present(view, formats(view, outputs, result.to_dict())) and out is not None and result.passed:
        from evalstone.judges.parse import as_value, with_setting

        path = as_value(out)
        aligned = "" if path is None else with_setting(judge or "lexical", "align", path)
        how = f" Use it with --judge {shlex.quote(aligned)}." if aligned else ""
        say(f"Saved: {out}.{how}")
    if out is not None and result.passed is False:
        to_stderr(f"{out} is not written: the aligned judge is not shown to be better.")
    code = code_of_judging(result.n_failed, result.stop_reason)
    return first_code((code, ExitCode.OK if result.passed in (True, None) else ExitCode.INCONCLUSIVE))


def _wordings(named: list[str]) -> tuple[list[str], list[str]]:
    """The wordings that `--wording` names, and their files. Raises ConfigError for a file that can't be read."""
    from evalstone._core.files import file_text
    from evalstone.judge_quality.align import WORDINGS

    texts: list[str] = []
    files = [each for each in named if each not in WORDINGS]
    for each in named:
        try:
            texts.append(each if each in WORDINGS else file_text(Path(each)))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"--wording takes a text file, strict or lenient; {quoted(each)} can't be read: {reason}"
            ) from None
    return texts, files


def audit(
    data: Annotated[
        Value,
        options.argument("DATA", f"{options.SAMPLES}; not needed with --list.", complete=FILE),
    ] = None,
    perturbation: Annotated[
        Values,
        option(
            "--perturbation NAME",
            "Options",
            "A perturbation, or a family of them.",
            default="all",
            complete=completion.perturbations,
        ),
    ] = None,
    list_perturbations: Annotated[bool, option("--list", "Options", "List the perturbations and exit.")] = False,
    paraphrase: Annotated[
        Values, option("--paraphrase COLUMN", "Data", "A column with paraphrases of the output.")
    ] = None,
    draw: Annotated[int, option("--draw N", "Data", "Maximum number of samples, drawn at random.", min=1)] = 100,
    threshold: Annotated[
        float | None,
        option(
            "--threshold SCORE",
            "Statistics",
            "The lowest score that means yes.",
            default="the calibrated threshold, else half the scale",
        ),
    ] = None,
    map: options.Map = None,
    keep_reasoning: options.KeepReasoning = False,
    scorer: Annotated[
        Values,
        option(
            "--scorer -s SCORER",
            "Options",
            "A scorer.",
            default="faithfulness",
            complete=completion.scorers,
        ),
    ] = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    budget: options.Budget = None,
    cache: options.Cache = True,
    ledger: options.Ledger = None,
    concurrency: options.Concurrency = 32,
    dry_run: options.DryRun = False,
    *,
    outputs: Outputs,
    quiet: options.Quiet = False,
) -> int:
    """Test a judge's robustness to irrelevant changes.

    Each sample is judged unchanged and with small perturbations, such as reordered passages or an injected instruction.
    """
    from evalstone._core import sync
    from evalstone.judge_quality.audit import AuditOptions, estimate_audit
    from evalstone.ledger.base import DEFAULT_LEDGER

    if list_perturbations:
        _list_perturbations(outputs)
        return ExitCode.OK
    if data is None:
        raise ConfigError(
            absent(
                "DATA", "audit needs DATA, samples to judge; evalstone demo --out demo writes demo/samples.jsonl to try"
            )
        )
    specs = scorer_specs(scorer or ["faithfulness"])
    check_outputs(outputs.files)
    resume = RESUME if cache else WITHOUT_NO_CACHE
    with interruptible(resume=resume) as stop:
        judged: dict[str, Any] = {
            "judge": judge_spec(judge or "lexical", base_url),
            "ledger": DEFAULT_LEDGER if ledger is None else ledger,
        }
        settings: dict[str, Any] = {
            "perturbations": tuple(perturbation or ()),
            "paraphrase": tuple(paraphrase or ()),
            "threshold": threshold,
            "draw": draw,
            "map": map,
            "keep_reasoning": keep_reasoning,
            "budget": budget,
            "cache": cache,
            "concurrency": concurrency,
            "progress": not quiet and sys.stderr.isatty(),
            "stop": stop,
        }
        result, estimates = None, ()
        if dry_run:
            estimates = sync.run(estimate_audit(data, specs, **judged, options=AuditOptions(**settings)))
        else:
            result = evalstone.audit(data, specs, **judged, **settings)
    if result is None:
        from evalstone.cli.dry_run import show_audit_estimate

        show_audit_estimate(estimates, outputs)
        return ExitCode.OK
    if result.stop_reason and stop.ending is INTERRUPTED:
        to_stderr(f"Interrupted; {resume}.")
        return ExitCode.INTERRUPTED
    view = result.view(front_end(audit))
    present(view, formats(view, outputs, result.to_dict()))
    return code_of_judging(result.n_failed, result.stop_reason)


def _list_perturbations(outputs: Outputs) -> None:
    from evalstone.judge_quality.perturbations import PERTURBATIONS

    found = PERTURBATIONS.values()
    plain = [{"name": one.name, "family": one.family, "why": one.why} for one in found]
    if deliver(json_lines(outputs.as_json, *plain)):
        return
    rows = table("perturbation", "family", "an affected judge reacts to")
    for perturbation in found:
        rows.add_row(perturbation.name, perturbation.family, perturbation.why)
    console().print(rows)
