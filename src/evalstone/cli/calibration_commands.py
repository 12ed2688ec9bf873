"""What `evalstone calibrate` does."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from rich.text import Text

from evalstone.api import DEFAULT_LEDGER
from evalstone.cli.commands import FAILED, GO_ON, INTERRUPTED, INTERRUPTION, OK, interruptible
from evalstone.cli.config_file import pairs
from evalstone.cli.judge_list import calibrations_table
from evalstone.cli.planning import judge_spec
from evalstone.cli.screen import console
from evalstone.datasets.writing import json_line, write_jsonl, write_text
from evalstone.errors import ConfigError
from evalstone.judge_quality import calibrate as calibrating
from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig
from evalstone.judges.base import Judge
from evalstone.judges.parse import parse_judge
from evalstone.report.html import reliability_svg
from evalstone.report.quality_view import calibration_view, reliability_chart
from evalstone.report.terminal import show
from evalstone.results.calibration import Calibration, Calibrator, calibration_file, calibrations_folder

__all__ = ["Files", "Subject", "asking", "calibrate", "judge_spec", "labelling"]


@dataclass(frozen=True)
class Subject:
    """What is calibrated, and against which labels. alone: each of the judges that it is made of as well, by itself."""

    labels: str
    data: str | None
    scorer: str
    judge: Any
    ledger: str | None
    alone: bool = False


@dataclass(frozen=True)
class Files:
    """Where the result goes beside the ledger and the terminal."""

    out: str | None = None
    svg: str | None = None
    as_json: bool = False


@contextmanager
def asking(
    mapping: list[str], *, concurrency: int, fresh: bool, budget: float | None, quiet: bool
) -> Generator[JudgeOptions]:
    """How the judge is asked, within a block that Ctrl-C ends in good order. Raises ConfigError for a bad mapping."""
    fields = pairs(mapping, "--map", "FIELD=COLUMN", blank=True)
    with interruptible() as stop:
        yield JudgeOptions(
            concurrency=concurrency,
            use_cache=not fresh,
            budget=budget,
            mapping=fields or None,
            progress=not quiet and sys.stderr.isatty(),
            stop=stop,
        )


def labelling(
    columns: list[str], positive: list[str], label_range: str | None, cut: float | None, maximise: str, fit: str
) -> LabelConfig:
    """How labels are read. Raises ConfigError for a range that is not LOW:HIGH."""
    return LabelConfig(
        columns=tuple(columns),
        positive=tuple(positive),
        label_range=None if label_range is None else _range(label_range),
        label_threshold=cut,
        objective=maximise.replace("-", "_"),
        calibrator=cast("Calibrator", fit),
    )


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise ConfigError(f"--label-range takes LOW:HIGH, such as 1:5, not {text!r}") from None


def calibrate(subject: Subject, how: LabelConfig, ask: JudgeOptions, files: Files) -> int:
    """Calibrate, show, write; the exit code."""
    ledger = subject.ledger or DEFAULT_LEDGER
    judge = parse_judge(subject.judge)
    if subject.alone and ask.budget is not None:
        raise ConfigError("--alone calibrates several judges and --budget is for one; calibrate them one by one")
    found: list[Calibration] = []
    for one in (judge, *(judge.members if subject.alone else ())):
        made = calibrating.calibrate(
            subject.labels, subject.scorer, data=subject.data, judge=one, ledger=ledger, config=how, options=ask
        )
        if made.stop_reason == INTERRUPTION:
            sys.stderr.write(f"{len(made.pairs)} labelled samples were scored: {GO_ON}\n")
            return INTERRUPTED
        found.append(made)
    if files.as_json:
        for made in found:
            sys.stdout.write(json_line(made.to_dict()) + "\n")
    else:
        _show(found, judge)
    _write(found[0], files, ledger)
    return FAILED if any(made.failed or made.stop_reason for made in found) else OK


def _show(found: list[Calibration], judge: Judge) -> None:
    """The calibration that was asked for, and the judges that its judge is made of beside it."""
    screen = console()
    show(calibration_view(found[0]), screen)
    if len(found) > 1:
        screen.print()
        screen.print(calibrations_table("beside its judges alone", found))
    elif judge.members:
        screen.print(Text("Beside each of its judges alone: add --alone", style="dim"))


def _write(made: Calibration, files: Files, ledger: str) -> None:
    screen = console()
    places: list[tuple[str, str]] = []
    if not made.stop_reason:
        places.append(("Kept:   ", str(calibration_file(made.judge, made.scorer, calibrations_folder(ledger)))))
    if files.out is not None:
        write_jsonl(files.out, [made.to_dict()])
        places.append(("Copy:   ", files.out))
    if files.svg is not None:
        write_text(files.svg, [reliability_svg(reliability_chart(made))])
        places.append(("Picture:", files.svg))
    if not files.as_json:
        screen.print()
        for what, place in places:
            screen.print(Text(f"{what} {place}"))
