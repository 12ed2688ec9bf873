"""Labeling a run: which sample is next and why, and what the labels say so far.

Labels are in the ledger, whether they were given on a page or in the terminal. The samples of an annotator are chosen
at random within strata of the judge's scores (`next_for_labeling`), so a corrected mean is valid at any time. With the
same seed, annotators get the same samples in the same order, so their agreement can be measured.
"""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from evalstone._core.json import storable
from evalstone.errors import ConfigError, absent, invalid
from evalstone.ledger import labels as stored
from evalstone.ledger.labels import Chosen, Label
from evalstone.report.csv import csv_rows, inert
from evalstone.results.human_labels import CORRECTION
from evalstone.results.labels import CHOSEN, RUN_SIZE, STRATUM, STRATUM_SIZE
from evalstone.results.scores import refuse_weights, scores_of
from evalstone.results.summary import ScorerInfo
from evalstone.stats.agreement import cohen_kappa
from evalstone.stats.labeling import LabelingOrder, LabelingStrata, next_for_labeling, score_strata
from evalstone.stats.ppi import JudgedScores, PPIEstimate

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger
    from evalstone.results.run import Run
    from evalstone.stats.intervals import Interval

MOST_KEYS = 9
"""The highest scale whose whole numbers have a key each."""
LONGEST_NAME = 100
AT_RANDOM: Collection[Chosen] = ("stratified", "uncertain", "random")
"""The ways of choosing a sample that are random within the strata of this run's scores."""
WHY: Mapping[Chosen, str] = {
    "stratified": "Chosen at random in the stratum of scores where a label narrows the corrected mean most.",
    "uncertain": "Chosen at random in the stratum of scores where the judge is least certain.",
    "random": "Chosen at random among all samples that you have not labeled.",
    "shared": "Labeled in the other run too.",
    "hand": "Chosen by hand, so its label is not part of the corrected mean.",
}


@dataclass(frozen=True)
class Sheet:
    """The scores of a scorer in a run, as labeling needs them. They are the same for all labels."""

    run: str
    title: str
    info: ScorerInfo
    names: Sequence[str]
    """The keys of the samples that have a score."""
    cases: Mapping[str, tuple[str, int | None]]
    """By key, the ID of each sample and its trial, also of those without a score."""
    values: Sequence[float]
    strata: Sequence[int]
    groups: Sequence[str] | None

    @classmethod
    def of(cls, run: Run, scorer: str) -> Sheet:
        """The scores of a scorer.

        Raises:
            ConfigError: It is unknown or has no score, or the samples have unequal weights.
        """
        info = run[scorer].info
        title = run.titles[info.signature]
        if not run[info.signature].n_score:
            raise ConfigError(f"no sample of run {run.id} has a score of {title} to compare labels with")
        scores = scores_of(run, info.signature)
        if scores.weights is not None:
            refuse_weights(zip(scores.names, scores.weights, strict=True), CORRECTION)
        cases = {entry.key: (entry.sample_id, entry.trial) for entry in run.columns.entries()}
        values = scores.known_values
        return cls(run.id, title, info, scores.names, cases, values, score_strata(values), scores.labels)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The positions of the samples that have a score, by key as the ledger has it."""
        return {storable(name): place for place, name in enumerate(self.names)}

    @cached_property
    def labeling_strata(self) -> LabelingStrata:
        """The strata of the scores, for choosing samples."""
        return LabelingStrata.of(self.values, self.info.scale)

    @cached_property
    def judged(self) -> JudgedScores:
        """The scores, for correcting their mean."""
        judged = JudgedScores.of(self.values, scale=self.info.scale, strata=self.strata, groups=self.groups)
        if judged is None:
            raise ConfigError(f"no sample of run {self.run} has a score of {self.title}")
        return judged

    def placed(self, values: Mapping[str, float]) -> dict[int, float]:
        """The values of samples that have a score, by position. values: by key as the ledger has it."""
        return {self.places[key]: value for key, value in values.items() if key in self.places}

    @property
    def keys(self) -> tuple[str, ...]:
        """The values that have a key each: all whole numbers of a short scale; () if there are too many."""
        scale = self.info.scale
        return tuple(map(str, range(int(scale), -1, -1))) if scale == int(scale) <= MOST_KEYS else ()

    def value(self, text: str) -> float:
        """A label that was typed. Raises ConfigError if it isn't on the scale."""
        try:
            value = float(text.strip().replace(",", "."))
        except ValueError:
            value = -1.0
        if not 0 <= value <= self.info.scale:
            raise ConfigError(invalid("a label", f"a number from 0 to {self.info.scale:g}", text))
        return value


@dataclass(frozen=True)
class Next:
    """The sample to label."""

    key: str
    chosen: Chosen
    stratum: int | None = None
    probability: float | None = None

    @property
    def why(self) -> str:
        """How it was chosen. The stratum isn't named: it would tell the judge's score."""
        return WHY[self.chosen]


@dataclass(frozen=True)
class Agreement:
    """How far two annotators agree on the samples that both have labeled."""

    first: str
    second: str
    samples: int
    kappa: Interval | None
    """Cohen's kappa, with quadratic weights unless all labels are one of two values; None if it is undefined."""


class Labeling:
    """The labels of a scorer in a run, and the next sample of an annotator.

    Args:
        sheet: The scores.
        labels: All labels of the scorer in the run.
        annotator: Whose labels are added.
    """

    def __init__(self, sheet: Sheet, labels: Iterable[Label], annotator: str) -> None:
        self.sheet, self.annotator = sheet, storable(annotator)
        self.labels = sorted(labels, key=lambda label: label.written)

    @classmethod
    def open(cls, ledger: Ledger, sheet: Sheet, annotator: str) -> Labeling:
        """With the labels in a ledger."""
        return cls(sheet, stored.labels(ledger, sheet.run, sheet.info.signature), annotator)

    @property
    def own(self) -> list[Label]:
        """The annotator's labels, the oldest first, and skipped samples."""
        return [label for label in self.labels if label.annotator == self.annotator]

    @property
    def n_labeled(self) -> int:
        """The number of samples that the annotator has labeled."""
        return sum(label.value is not None for label in self.own)

    @property
    def n_skipped(self) -> int:
        """The number of samples that the annotator has skipped."""
        return sum(label.value is None for label in self.own)

    def next(self, order: LabelingOrder = "stratified", seed: int = 0, *, leaving: Iterable[str] = ()) -> Next | None:
        """The next sample of the annotator; None if all samples that have a score are labeled or skipped.

        leaving: Keys of samples that are not to be chosen.
        """
        sheet = self.sheet
        known = {sheet.places[key] for key in (*(label.key for label in self.own), *leaving) if key in sheet.places}
        found = next_for_labeling(sheet.labeling_strata, labeled=known, order=order, seed=seed)
        if found is None:
            return None
        return Next(sheet.names[found.place], order, found.stratum, found.probability)

    def label(self, key: str, value: float | None, note: str, choice: Next | None, *, blind: bool = True) -> Label:
        """A label of the annotator, to be written. How the sample was chosen stays as it was if it has a label.

        Args:
            key: The sample.
            value: Its score; None to skip it.
            note: A note.
            choice: What was chosen, if this sample was; otherwise it was chosen by hand.
            blind: Whether neither the judge's score nor labels of others were shown.

        Raises:
            ConfigError: The run has no such sample.
        """
        if key not in self.sheet.cases:
            raise ConfigError(absent(key, f"the run has no sample {key!r:.200}"))
        sample, trial = self.sheet.cases[key]
        before = next((label for label in self.own if label.key == storable(key)), None)
        choice = choice if choice is not None and choice.key == key else Next(key, "hand")
        label = Label(
            run=self.sheet.run,
            sample=storable(sample),
            trial=trial,
            signature=self.sheet.info.signature,
            annotator=self.annotator,
            value=value,
            note=note,
            blind=blind,
            chosen=choice.chosen,
            stratum=choice.stratum,
            probability=choice.probability,
        )
        if before is None:
            return label
        kept = {"chosen": before.chosen, "stratum": before.stratum, "probability": before.probability}
        return replace(label, blind=blind and before.blind, **kept)

    def means(self, *, by_hand: bool = False) -> dict[str, float]:
        """The label of each labeled sample: the mean over its annotators. by_hand: also of samples chosen by hand,
        which corrections must leave out."""
        found: dict[str, list[float]] = {}
        for label in self.labels:
            if label.value is not None and (by_hand or label.chosen != "hand"):
                found.setdefault(label.key, []).append(label.value)
        return {key: sum(values) / len(values) for key, values in found.items()}

    def corrected(self) -> PPIEstimate | None:
        """The scorer's mean, corrected with the labels; None without any."""
        sheet = self.sheet
        labels = sheet.placed(self.means())
        return sheet.judged.corrected(labels) if labels else None

    def agreements(self) -> list[Agreement]:
        """The agreement of each two annotators with common samples."""
        by_annotator: dict[str, dict[str, float]] = {}
        for label in self.labels:
            if label.value is not None:
                by_annotator.setdefault(label.annotator, {})[label.key] = label.value
        found: list[Agreement] = []
        for (a, first), (b, second) in combinations(by_annotator.items(), 2):
            pairs = [(value, second[key]) for key, value in first.items() if key in second]
            if pairs:
                rated = [*zip(*pairs, strict=True)]
                two = {value for pair in pairs for value in pair} <= {0.0, self.sheet.info.scale}
                kappa = cohen_kappa(rated[0], rated[1], weights=None if two else "quadratic")
                found.append(Agreement(a, b, len(pairs), kappa))
        return found


def label_rows(sheet: Sheet, labels: Iterable[Label], *, by_hand: bool = False) -> list[dict[str, str | float | None]]:
    """The labels of a scorer as the rows of a label file: a column of labels for each annotator, their notes, how the
    sample was chosen, and its stratum.

    A sample has no stratum if chance had no part in the choice, or if it has no score. Every order of choosing is
    random within a stratum (`next_for_labeling`), so all of them have the same strata.

    Args:
        sheet: The scores of the scorer.
        labels: Its labels.
        by_hand: Also samples chosen by hand. Corrections need samples that were chosen at random.
    """
    sizes = Counter(sheet.strata)
    kept = [label for label in labels if label.value is not None and (by_hand or label.chosen != "hand")]
    annotators = [*dict.fromkeys(label.annotator for label in kept)]
    columns = {name: "label" if len(annotators) == 1 else f"annotator_{name}" for name in annotators}
    rows: dict[str, dict[str, str | float | None]] = {}
    for label in kept:
        row = rows.get(label.key)
        if row is None:
            place = sheet.places.get(label.key) if label.chosen in AT_RANDOM else None
            stratum = None if place is None else sheet.strata[place]
            row = rows[label.key] = {
                "id": label.key,
                **dict.fromkeys(columns.values()),
                "note": "",
                CHOSEN: label.chosen,
                STRATUM: stratum,
                STRATUM_SIZE: None if stratum is None else sizes[stratum],
                RUN_SIZE: None if stratum is None else len(sheet.names),
            }
        row[columns[label.annotator]] = label.value
        if label.note:
            said = f"{label.annotator}: {label.note}" if len(annotators) > 1 else label.note
            row["note"] = "\n".join(filter(None, (str(row["note"]), said)))
    return [*rows.values()]


def label_csv(rows: Sequence[Mapping[str, str | float | None]]) -> list[str]:
    """Rows of labels as lines of CSV.

    Raises:
        ConfigError: An ID would be a formula in a spreadsheet.
    """
    for row in rows:
        if inert(name := str(row["id"])) != name:
            raise ConfigError(f"the ID {name!r:.100} can't be in a CSV file; take the labels as JSON")
    header = [*rows[0]] if rows else ["id", "label"]
    return [*csv_rows(header, ([row[name] for name in header] for row in rows))]


def annotator_name(text: str | None = None) -> str:
    """The name of an annotator: the one that is given, or that of the user of this machine.

    Raises:
        ConfigError: It is too long, or has characters that can't be shown.
    """
    if text is None or not text.strip():
        try:
            return getpass.getuser()
        except (OSError, KeyError):
            return "me"
    name = text.strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ConfigError(invalid("annotator", f"a name of at most {LONGEST_NAME} printable characters", text))
    return name
