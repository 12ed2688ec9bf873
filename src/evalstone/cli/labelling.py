"""What `evalstone label` does: shows one sample after the other, and asks for a person's score.

The judge's own score is not shown, for it would sway the person. Each label is in the file before the next is asked
for.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from evalstone.cli.reporting import found_run
from evalstone.cli.screen import console
from evalstone.datasets.labels import LabelFile
from evalstone.errors import ConfigError
from evalstone.report.terminal import safe
from evalstone.results.human_labels import load_labels, select_for_labeling
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo
from evalstone.scorers import SCORERS
from evalstone.types import Sample

OK = 0
LONGEST_TEXT = 4000
YES, NO, SKIP, QUIT = ("y", "yes"), ("n", "no"), ("s", "skip"), ("q", "quit")
Reply: TypeAlias = str | Literal["skip", "quit"] | None


@dataclass(frozen=True)
class Task:
    """What is labelled: the samples of a run, for one scorer, into a file.

    name: what the run was called by. given: the labels that are there.
    """

    name: str
    run: Run
    title: str
    info: ScorerInfo
    file: LabelFile
    given: Mapping[str, float]


def task(name: str, scorer: str | None, to: str, *, ledger: str | None, data: str | None) -> Task:
    """What is to be labelled, checked. Raises ConfigError when the texts of the run are not at hand."""
    run = found_run(name, ledger, data)
    title = run.titles[run.scorers[0].signature] if scorer is None else scorer
    if run.dataset is None:
        raise ConfigError(
            f"the texts of run {run.id} are not at hand, and there is nothing to read: name them with --data"
        )
    if not run[title].scored:
        raise ConfigError(f"no sample of run {run.id} has a score of {title}, which labels could be held against")
    file = LabelFile(to)
    given: Mapping[str, float] = load_labels(run, title, to) if file.exists else {}
    return Task(name, run, title, run[title].info, file, given)


def label(work: Task, *, count: int, seed: int) -> int:
    """Ask for labels until all are given or the person quits; the exit code."""
    screen = console()
    chosen = select_for_labeling(work.run, work.title, work.given, count=count, seed=seed)
    samples = {sample.id: sample for sample in work.run.dataset or () if sample.id in set(chosen)}
    ready = [samples[name] for name in chosen if name in samples]
    if not ready:
        screen.print("Every sample that has a score is labelled.")
        return OK
    _introduce(screen, work, len(ready))
    labelled = _loop(screen, work, ready)
    total = len(work.given) + labelled
    screen.print(Text(f"\n{labelled} labelled now, {total} labels in {work.file.path}."))
    if total:
        screen.print(Text(f"  evalstone report {work.name} --labels {work.title}={work.file.path}", style="dim"))
    return OK


def _introduce(screen: Console, work: Task, count: int) -> None:
    kind = SCORERS.get(work.info.name)
    about = (kind.__doc__ or "").strip().split("\n")[0] if kind is not None else ""
    screen.print(Text.assemble((work.title, "bold"), f"  {about}"))
    full = f"{work.info.scale:g}"
    better = "lower is better" if work.info.lower_is_better else "higher is better"
    screen.print(
        Text(
            f"{count} samples. y is the full score of {full}, n is 0, or type a number from 0 to {full} ({better}); "
            "s skips, q quits.",
            style="dim",
        )
    )


def _loop(screen: Console, work: Task, samples: Sequence[Sample]) -> int:
    labelled = 0
    for number, sample in enumerate(samples, start=1):
        _show(screen, sample, f"{number} of {len(samples)}")
        reply = _reply(screen, work.info)
        if reply in (None, "quit"):
            break
        if reply != "skip":
            work.file.add(sample.id, str(reply))
            labelled += 1
    return labelled


def _show(screen: Console, sample: Sample, place: str) -> None:
    screen.print(Text.assemble(f"\n{place}  ", (safe(sample.id, 80), "cyan")))
    for name, text in (("instructions", sample.instructions), ("question", sample.input)):
        if text:
            _block(screen, name, text)
    for message in sample.messages if not sample.input else ():
        _block(screen, message.role, message.content)
    for number, passage in enumerate(sample.context or (), start=1):
        _block(screen, f"passage {number}", passage)
    if sample.reference:
        _block(screen, "reference", sample.reference)
    if sample.output is not None:
        _block(screen, "answer", sample.output)


def _block(screen: Console, name: str, text: str) -> None:
    screen.print(Text(name, style="dim"))
    lines = (safe(line, LONGEST_TEXT) for line in text[:LONGEST_TEXT].split("\n"))
    screen.print(Padding(Text("\n".join(lines)), (0, 0, 0, 2)))


def _reply(screen: Console, info: ScorerInfo) -> Reply:
    """The label as it goes into the file, "skip" or "quit"; None when the input has ended."""
    while True:
        screen.print(Text("label> ", style="bold"), end="")
        line = sys.stdin.readline()
        if not line:
            return None
        word = line.strip().lower()
        if word in YES:
            return "yes"
        if word in NO:
            return "no"
        if word in SKIP:
            return "skip"
        if word in QUIT:
            return "quit"
        if (number := _number(word)) is not None and 0 <= number <= info.scale:
            return f"{number:g}"
        screen.print(Text(f"y, n, a number from 0 to {info.scale:g}, s or q is wanted, not {safe(word, 40)}"))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
