"""`evalstone annotate`: label samples in the terminal, one by one.

The judge's score is not shown, since it would bias the annotator. Each label is saved before the next sample.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from evalstone._core.display import count, safe
from evalstone.cli import completion, options
from evalstone.cli.options import FILE, option
from evalstone.cli.output import console
from evalstone.cli.results import find_run
from evalstone.cli.values import finite, ledger_option, scorer_named
from evalstone.errors import ConfigError, DataError
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from evalstone.datasets.labels import LabelFile
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.types import Sample

MAX_TEXT = 4000
WORDS: Mapping[str, str] = {"y": "yes", "n": "no", "s": "skip", "q": "quit"}
Reply: TypeAlias = str | Literal["skip", "quit"]


def annotate(
    labels: Annotated[str, option("--labels FILE", "Data", "The .csv or .jsonl file to add labels to.", complete=FILE)],
    run: options.Run = "last",
    scorer: Annotated[
        str | None,
        option(
            "--scorer -s SCORER",
            "Options",
            "The scorer whose scores you label.",
            default="the run's first",
            complete=completion.scorers,
        ),
    ] = None,
    same_as: Annotated[
        str | None,
        option(
            "--same-as FILE",
            "Data",
            "Label the samples that are labeled in this file, such as those of a baseline.",
            complete=FILE,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        option(
            "--baseline RUN",
            "Data",
            "The run whose labels --same-as names. Only needed for samples without IDs.",
            complete=completion.runs,
        ),
    ] = None,
    number: Annotated[int, option("--count N", "Options", "How many samples to label.", min=1)] = 20,
    seed: Annotated[int, option("--seed N", "Statistics", "Seed of the random choice of samples.", min=0)] = 0,
    data: options.Data = None,
    ledger: options.Ledger = None,
) -> int:
    """Label samples of a run in the terminal.

    Starts with the samples that are most informative about the judge's errors. Run the same command again to continue,
    then correct the run's mean with evalstone report --labels. To correct the difference of two runs, label the same
    samples of both (--same-as).
    """
    from evalstone.agents.reasoning import answered
    from evalstone.datasets.labels import LabelFile
    from evalstone.datasets.writing import check_writable
    from evalstone.results.human_labels import load_labels, select_for_labeling

    found = find_run(run, ledger, data)
    info = found.scorers[0] if scorer is None else scorer_named(scorer, found.scorers, "--scorer")
    title = found.titles[info.signature]
    if found.samples is None:
        raise ConfigError(f"run {found.id} was saved without its samples; name their file with --data")
    if not found[info.signature].n_score:
        raise ConfigError(f"no sample of run {found.id} has a score of {title} to compare labels with")
    if baseline is not None and same_as is None:
        raise ConfigError("--baseline is the run of the labels in --same-as FILE, which is missing")
    file = LabelFile(labels)
    if not file.exists:
        check_writable(labels)
    known: Mapping[str, float] = load_labels(found, title, labels) if file.exists else {}
    if same_as is None:
        chosen = select_for_labeling(found, title, known, count=number, seed=seed)
    else:
        names = (
            _same(found, title, same_as)
            if baseline is None
            else _partners(find_run(baseline, ledger), found, title, same_as)
        )
        chosen = [name for name in names if name not in known][:number]
    selected = set(chosen)
    # People see what was scored.
    samples = {s.key: s if found.keeps_reasoning else answered(s) for s in found.samples if s.key in selected}
    ready = [samples[id] for id in chosen if id in samples]
    screen = console()
    if not ready:
        screen.print(f"Every sample {'that has a score' if same_as is None else f'of {safe(same_as)}'} is labeled.")
        return ExitCode.OK
    _introduce(screen, title, info, len(ready))
    added = _add_labels(screen, ready, info, file)
    total = len(known) + added
    if not total:
        screen.print(f"\nNo labels added; {safe(labels, 400)} was not written.")
        return ExitCode.OK
    screen.print(f"\n{count(added, 'label')} added, {total:,} in {file.path}.")
    if hint := _more_labels(found, title, file):
        screen.print(hint)
    of = f"{shlex.quote(run)}{ledger_option(ledger)}"
    command = f"evalstone report {of} --labels {shlex.quote(f'{title}={file.path}')}"
    screen.print(command, style="dim", soft_wrap=True)
    return ExitCode.OK


def _add_labels(screen: Console, samples: Sequence[Sample], info: ScorerInfo, file: LabelFile) -> int:
    """Show samples one by one, and add their labels to the file; returns how many were added."""
    added = 0
    for place, sample in enumerate(samples, start=1):
        _show(screen, sample, f"{place} of {len(samples)}")
        reply = _reply(screen, info)
        if reply == "quit":
            break
        if reply != "skip":
            file.add(sample.key, reply)
            added += 1
    return added


def _same(run: Run, title: str, labels: str) -> Mapping[str, float]:
    """The samples of a run that are labeled in this file."""
    from evalstone.results.human_labels import load_labels
    from evalstone.types.samples import is_own_id

    try:
        return load_labels(run, title, labels)
    except DataError as error:
        if all(is_own_id(record.key) for record in run.records):
            raise
        raise DataError(error, f"; if {labels} has the labels of another run, name that run with --baseline") from None


def _partners(baseline: Run, run: Run, title: str, labels: str) -> list[str]:
    """The samples of a run whose partners in the baseline are labeled in this file."""
    from evalstone.results.human_labels import load_labels
    from evalstone.results.pairing import pair_samples

    pairing, keys = pair_samples(baseline, run), {record.key for record in run.records}
    partners = map(pairing.in_second, load_labels(baseline, title, labels))
    return [name for name in partners if name in keys]


def _more_labels(run: Run, title: str, file: LabelFile) -> str:
    """How much twice as many labels would narrow the interval; "" if there are too few to tell."""
    from evalstone.results.human_labels import corrected, load_labels
    from evalstone.results.views.corrected import more_labels

    labels = load_labels(run, title, file.path)
    if not any(record.key in labels and record.value is not None for record in run.records):
        return ""
    text = more_labels(corrected(run, title, labels).result, run[title].info.scale)
    return f"For the corrected mean, {text}." if text else ""


def _introduce(screen: Console, title: str, info: ScorerInfo, number: int) -> None:
    from rich.text import Text

    from evalstone.scorers import SCORERS
    from evalstone.scorers.base import summary

    about = summary(SCORERS[info.name]) if info.name in SCORERS else ""
    better = "lower is better" if info.lower_is_better else "higher is better"
    screen.print(Text.assemble((title, "bold"), f"  {about}"))
    keys = f"y for {info.scale:g}, n for 0, or a number from 0 to {info.scale:g} ({better}); s skips, q quits."
    screen.print(f"{count(number, 'sample')}. Enter {keys}", style="dim")


def _show(screen: Console, sample: Sample, progress: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    screen.print(Text.assemble(f"\n{progress}  ", (safe(sample.key, 80), "cyan")))
    blocks = [("instructions", sample.instructions), ("question", sample.input)]
    blocks += [(message.role, message.content) for message in sample.messages if not sample.input]
    blocks += [(f"passage {place}", passage) for place, passage in enumerate(sample.context or (), start=1)]
    blocks += [("reference", sample.reference), ("answer", sample.output)]
    for name, text in blocks:
        if text:
            screen.print(name, style="dim")
            lines = (safe(line, MAX_TEXT) for line in text[:MAX_TEXT].split("\n"))
            screen.print(Padding("\n".join(lines), (0, 0, 0, 2), expand=False))


def _reply(screen: Console, info: ScorerInfo) -> Reply:
    """The label as written to the file, "skip" or "quit". The end of the input counts as "quit"."""
    while True:
        screen.print("label> ", style="bold", end="")
        line = sys.stdin.readline()
        if not line:
            return "quit"
        word = line.strip().lower()
        if word in (*WORDS, *WORDS.values()):
            return WORDS.get(word, word)
        try:
            if 0 <= (value := finite(word, "a label")) <= info.scale:
                return f"{value:g}"
        except ConfigError:
            pass
        screen.print(f"expected y, n, s, q or a number from 0 to {info.scale:g}, not {safe(word, 40)}")
