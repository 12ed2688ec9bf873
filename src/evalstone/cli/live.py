"""`evalstone live ...`: the coverage and drift of live scoring."""

from __future__ import annotations

from typing import Annotated

from evalstone._core.times import duration, moment
from evalstone.cli import completion, options
from evalstone.cli.options import Outputs, Value, Values, argument, front_end, option
from evalstone.cli.output import console, formats, present
from evalstone.cli.values import needed_duration
from evalstone.results.endings import ExitCode


def drift(
    baseline: Annotated[
        str,
        argument(
            "BASELINE",
            "A results folder, the ID or name of a run, last, or an earlier period of the live scores: START..END.",
            complete=completion.runs,
        ),
    ],
    ledger: options.Ledger = None,
    stream: Annotated[Value, option("--stream NAME", "Data", "The stream, if the ledger has several.")] = None,
    scorer: Annotated[
        Values,
        option(
            "--scorer SCORER",
            "Data",
            "Watch only this scorer.",
            default="all that both have",
            complete=completion.scorers,
        ),
    ] = None,
    since: Annotated[Value, option("--since TIME", "Data", options.SINCE)] = None,
    alpha: Annotated[
        float,
        option("--alpha RATE", "Statistics", "Error rate: the chance of any false alarm, however often you look."),
    ] = 0.05,
    tolerance: Annotated[
        float | None,
        option(
            "--tolerance SHARE",
            "Statistics",
            "Ignore drops of the mean up to this share of the scale.",
            default="0.02",
        ),
    ] = None,
    two_sided: Annotated[bool, option("--two-sided", "Statistics", "Also detect improvements.")] = False,
    settle: Annotated[
        str,
        option("--settle TIME", "Data", "How long after its first score a trace or conversation counts as complete."),
    ] = "10m",
    cycle: Annotated[
        Value,
        option(
            "--cycle TIME",
            "Statistics",
            "Test whole cycles, such as 1d or 7d, if scores vary with the hour or weekday.",
        ),
    ] = None,
    allow_mismatch: options.AllowMismatch = False,
    *,
    outputs: Outputs,
) -> int:
    """Check whether live scores have become worse than a baseline.

    The error rate covers all looks together. Keep the baseline, the options and --since the same.
    """
    from evalstone.live import score_drift

    start, dots, end = baseline.partition("..")
    is_period = bool(dots and start and end)
    before = (moment(start, "BASELINE"), moment(end, "BASELINE")) if is_period else baseline
    waited = needed_duration(settle, "--settle", "30s or 10m")
    period = None if cycle is None else needed_duration(cycle, "--cycle", "1d or 7d")
    result = score_drift.drift(
        before,
        stream=stream,
        scorers=scorer or (),
        since=None if since is None else moment(since, "--since"),
        alpha=alpha,
        tolerance=tolerance,
        two_sided=two_sided,
        settle=waited,
        cycle=period,
        allow_mismatch=allow_mismatch,
        ledger=ledger,
    )
    view = result.view(front_end(drift))
    if present(view, formats(view, outputs, result.to_dict())):
        times = (since, *(baseline.split("..") if dots else ()))
        if moving := [text for text in times if text and duration(text) is not None]:
            console().print(
                f"An age is relative to now ({', '.join(moving)}), so the error rate holds only for this look. To look "
                "again, use a fixed time."
            )
    return ExitCode.CHECK_FAILED if result.passed is False else ExitCode.OK


def coverage(
    stream: Annotated[Value, argument("STREAM", "The stream, if the ledger has several.")] = None,
    ledger: options.Ledger = None,
    since: options.Since = None,
    until: options.Until = None,
    *,
    outputs: Outputs,
) -> int:
    """Show how much of the traffic was scored, skipped or dropped.

    Counts whole hours. Exit code 1 if the numbers don't add up.
    """
    from evalstone.live.accounting import coverage as covered

    result = covered(stream, ledger=ledger, since=since, until=until)
    view = result.view(front_end(coverage))
    present(view, formats(view, outputs, result.to_dict()))
    return ExitCode.CHECK_FAILED if result.total.unaccounted else ExitCode.OK
