"""`evalstone annotate`: label samples in the terminal, one by one.

The judge's score is not shown, since it would bias the annotator. Each label is in the ledger before the next sample is
shown. It is the same label that a page of `evalstone view` would have stored.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from evalstone._core.display import count, safe
from evalstone.cli import completion, options
from evalstone.cli.options import option
from evalstone.cli.output import console
from evalstone.cli.results import find_run
from evalstone.cli.values import ledger_option, scorer_named
from evalstone.errors import ConfigError
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from evalstone.judge_quality.labeling import Labeling, Next, Sheet
    from evalstone.ledger.store import Ledger
    from evalstone.results.run import Run
    from evalstone.types import Sample

MAX_TEXT = 4000
"""The most characters of a text that a terminal shows."""
WORDS: Mapping[str, str] = {"y": "yes", "n": "no", "s": "skip", "u": "undo", "m": "more", "q": "quit"}
CHROME = 6
"""The lines of a screen that aren't the sample: the criterion, the sample's place and ID, the keys and the prompt."""


@dataclass(frozen=True)
class Reply:
    """What was typed: a label with its note, or what to do."""

    action: Literal["label", "skip", "undo", "more", "quit"]
    value: float = 0.0
    note: str = ""


def annotate(
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
    annotator: Annotated[
        str | None, option("--annotator NAME", "Options", "Whose labels they are.", default="your user name")
    ] = None,
    order: Annotated[
        Literal["stratified", "uncertain", "random"],
        option(
            "--order",
            "Options",
            "Choose samples at random where a label narrows the corrected mean most, where the judge is least certain, "
            "or among all.",
        ),
    ] = "stratified",
    same_as: Annotated[
        str | None,
        option(
            "--same-as RUN",
            "Data",
            "Label the samples that are labeled in this run, such as a baseline.",
            complete=completion.runs,
        ),
    ] = None,
    number: Annotated[int, option("--count N", "Options", "How many samples to label.", min=1)] = 20,
    seed: Annotated[int, option("--seed N", "Statistics", "Seed of the random choice of samples.", min=0)] = 0,
    data: options.Data = None,
    ledger: options.Ledger = None,
) -> int:
    """Label samples of a run in the terminal.

    Shows one sample after the other, and keeps each label in the ledger, like the page of evalstone view. Run the same
    command again to continue, then correct the run's mean with evalstone report --labels ledger. To correct the
    difference of two runs, label the same samples of both (--same-as).
    """
    from evalstone.judge_quality.labeling import Labeling, Sheet, annotator_name
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.ledger.store import Ledger

    name = annotator_name(annotator)
    found = find_run(run, ledger, data)
    info = found.scorers[0] if scorer is None else scorer_named(scorer, found.scorers, "--scorer")
    title = found.titles[info.signature]
    if found.samples is None:
        raise ConfigError(f"run {found.id} was saved without its samples; name their file with --data")
    sheet = Sheet.of(found, title)
    with Ledger(ledger or DEFAULT_LEDGER) as opened:
        labeling = Labeling.open(opened, sheet, name)
        names = None if same_as is None else _partners(opened, find_run(same_as, ledger), found, title)
        screen = console()
        before = labeling.n_labeled
        asked = _Asked(screen, opened, sheet, found, names, order, seed)
        if asked.next(labeling) is None:
            screen.print(f"Every sample {'that has a score' if same_as is None else f'of {safe(same_as)}'} is labeled.")
            return ExitCode.OK
        labeling = asked.label(labeling, number)
    screen.print(f"\n{count(labeling.n_labeled - before, 'label')} added, {labeling.n_labeled:,} in the ledger.")
    if hint := _more_labels(labeling):
        screen.print(hint)
    if labeling.n_labeled:
        of = f"{shlex.quote(run)}{ledger_option(ledger)}"
        command = f"evalstone report {of} --labels {shlex.quote(f'{title}=ledger')}"
        screen.print(command, style="dim", soft_wrap=True)
    return ExitCode.OK


def _partners(ledger: Ledger, other: Run, run: Run, title: str) -> list[str]:
    """The samples of a run whose partners in another run are labeled."""
    from evalstone.ledger.labels import labels
    from evalstone.results.pairing import pair_samples

    signature = other[title].info.signature
    labeled = {label.key for label in labels(ledger, other.id, signature) if label.value is not None}
    if not labeled:
        raise ConfigError(f"no sample of run {other.id} is labeled; label that run first, with evalstone annotate")
    pairing, keys = pair_samples(other, run), {record.key for record in run.records}
    return [name for name in map(pairing.in_second, labeled) if name in keys]


@dataclass(frozen=True)
class _Asked:
    """Asks for labels, and writes them."""

    screen: Console
    ledger: Ledger
    sheet: Sheet
    run: Run
    names: Sequence[str] | None
    """The samples to label; None for those that are most informative."""
    order: Literal["stratified", "uncertain", "random"]
    seed: int

    def next(self, labeling: Labeling) -> Next | None:
        """The next sample."""
        from evalstone._core.json import storable
        from evalstone.judge_quality.labeling import Next

        if self.names is None:
            return labeling.next(self.order, self.seed)
        known = {label.key for label in labeling.own}
        return next((Next(name, "shared") for name in sorted(self.names) if storable(name) not in known), None)

    def label(self, labeling: Labeling, number: int) -> Labeling:
        """Ask for labels, until there are so many more, or all samples are labeled, or it is enough."""
        from evalstone.judge_quality.labeling import Labeling
        from evalstone.ledger import labels as stored

        done: list[str] = []
        while len(done) < number and (choice := self.next(labeling)) is not None:
            sample = self._sample(choice.key)
            self._show(sample, f"{len(done) + 1} of {number}", whole=False)
            while (reply := self._reply()).action == "more":
                self._show(sample, f"{len(done) + 1} of {number}", whole=True)
            if reply.action == "quit":
                break
            if reply.action == "undo":
                if done and labeling.own:
                    stored.delete_label(self.ledger, labeling.own[-1])
                    done.pop()
                else:
                    self.screen.print("there is no label of this session to undo")
            else:
                value = None if reply.action == "skip" else reply.value
                stored.write_label(self.ledger, labeling.label(choice.key, value, reply.note, choice))
                done.append(choice.key)
            labeling = Labeling.open(self.ledger, self.sheet, labeling.annotator)
        return labeling

    def _sample(self, key: str) -> Sample:
        """What people see of a sample: what was scored."""
        from evalstone.agents.reasoning import answered

        for sample in self.run.samples or ():
            if sample.key == key:
                return sample if self.run.keeps_reasoning else answered(sample)
        raise ConfigError(f"the texts of sample {key!r:.200} are not available")

    def _show(self, sample: Sample, progress: str, *, whole: bool) -> None:
        """A sample with what the scorer asks. Unless it is shown as a whole, it is cut to the size of a terminal."""
        from rich.text import Text

        screen, info = self.screen, self.sheet.info
        fits = screen.is_terminal and not whole
        width, height = screen.width - 2 if fits else MAX_TEXT, screen.height - CHROME if fits else MAX_TEXT
        asks = " ".join((info.description or info.parameters).split())
        space = 2 * screen.width - len(self.sheet.title) - 3 if fits else MAX_TEXT
        screen.print(Text.assemble((f"\n{self.sheet.title}", "bold"), f"  {safe(asks, space)}"))
        screen.print(Text.assemble(f"{progress}  ", (safe(sample.key, 60), "cyan")))
        for name, lines in fitted(_blocks(sample), width, height):
            screen.print(name, style="dim")
            for line in lines:
                screen.print(f"  {line}")
        screen.print(self._keys(), style="dim")

    def _keys(self) -> str:
        info = self.sheet.info
        best, worst = (0, info.scale) if info.lower_is_better else (info.scale, 0)
        values = f"y {info.scale:g} · n 0 · or 0 to {info.scale:g} ({best:g} best, {worst:g} worst), and a note"
        return f"{values} · {_OTHERS}"

    def _reply(self) -> Reply:
        """What is typed. The end of the input counts as "quit"."""
        while True:
            self.screen.print("label> ", style="bold", end="")
            line = sys.stdin.readline()
            if not line:
                return Reply("quit")
            word, _, note = line.strip().partition(" ")
            said = WORDS.get(word.lower(), word.lower())
            match said:
                case "yes" | "no":
                    return Reply("label", self.sheet.info.scale if said == "yes" else 0.0, note.strip())
                case "skip" | "undo" | "more" | "quit":
                    return Reply(said, note=note.strip())
                case _:
                    try:
                        return Reply("label", self.sheet.value(word), note.strip())
                    except ConfigError:
                        expected = f"y, n, s, u, m, q or a number from 0 to {self.sheet.info.scale:g}"
                        self.screen.print(f"expected {expected}, not {safe(word, 40)}")


_OTHERS = "s can't tell · u undo · m more · q quit"


def fitted(blocks: Sequence[tuple[str, str]], width: int, height: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The lines of named texts that fit on a screen. The first texts have room first, and one that is cut says so."""
    wrapped = [(name, _wrapped(text, width)) for name, text in blocks]
    left = height
    for place, (name, lines) in enumerate(wrapped):
        after = sum(1 + min(len(rest), 1) for _, rest in wrapped[place + 1 : place + 3])
        space = max(left - 1 - after, 1) if place < 2 else left - 1
        if space < 1:
            return
        shown = lines if len(lines) <= space else [*lines[: space - 1], f"{lines[space - 1][: width - 12]} … (m more)"]
        yield name, shown
        left -= 1 + len(shown)


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    lines = (safe(line, MAX_TEXT) for line in text[:MAX_TEXT].split("\n"))
    return [part for line in lines for part in (textwrap.wrap(line, width) or [""])]


def _blocks(sample: Sample) -> list[tuple[str, str]]:
    """The texts of a sample, those that are needed first in front."""
    blocks = [("question", sample.input)]
    blocks += [(message.role, message.content) for message in sample.messages if not sample.input]
    blocks += [("answer", sample.output), ("reference", sample.reference)]
    blocks += [(f"passage {place}", passage) for place, passage in enumerate(sample.context or (), start=1)]
    blocks += [("instructions", sample.instructions)]
    return [(name, text) for name, text in blocks if text]


def _more_labels(labeling: Labeling) -> str:
    """How much twice as many labels would narrow the interval; "" if there are too few to tell."""
    from evalstone.results.views.corrected import more_labels

    corrected = labeling.corrected()
    text = more_labels(corrected, labeling.sheet.info.scale) if corrected is not None else ""
    return f"For the corrected mean, {text}." if text else ""
