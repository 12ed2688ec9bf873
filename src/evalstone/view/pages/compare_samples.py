"""Samples in several runs: rows of the list with the answer of each run, and the same as data."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone._core.display import digits_for, signed
from evalstone._core.redaction import redacted
from evalstone._core.word_diff import LEAST_SHARED, Piece, WordDiff, word_diff
from evalstone.report.csv import Value, csv_rows
from evalstone.report.view import Tone
from evalstone.results.views.samples import scored_answer
from evalstone.types import Record
from evalstone.view.addresses import (
    JSON,
    compare_address,
    compared_address,
    in_comparison,
    sample_address,
    with_query,
)
from evalstone.view.compare_query import CompareQuery
from evalstone.view.indexing.comparison import ComparedSample, StoredComparison
from evalstone.view.indexing.index import Case, Index, Stored, question_of
from evalstone.view.indexing.paging import MOST_AT_ONCE
from evalstone.view.indexing.tables import FAILED, SCORED, SKIPPED
from evalstone.view.library import Library
from evalstone.view.names import names_of
from evalstone.view.pages.common import Link
from evalstone.view.pages.marks import ScoreCell, score_cell
from evalstone.view.shelf import Card

LONGEST_ANSWER = 900
"""About the most characters of an answer in the list. The page of the sample has all of it."""
LONGEST_REASON = 1500
NOT_THERE = "The run doesn't have this sample."
MOST_BYTES = 1 << 20
"""The most bytes of stored samples that are read for a row; of larger ones, the beginning is shown."""


@dataclass(frozen=True)
class Answer:
    """A run's answer in a list of samples."""

    href: str
    label: str
    scores: tuple[tuple[str, ScoreCell, str, Tone], ...]
    """Titles, scores, and how they differ from the first run's."""
    pieces: tuple[Piece, ...]
    note: str
    reasons: tuple[tuple[str, str], ...]
    trials: tuple[Link, ...]


@dataclass(frozen=True)
class ComparedRow:
    """A sample in several runs."""

    name: str
    href: str
    question: str
    marks: tuple[tuple[str, Tone], ...]
    answers: tuple[Answer, ...]


def letters_of(runs: Sequence[object]) -> list[str]:
    """The letters that a comparison gives runs."""
    return [chr(ord("A") + number) for number in range(len(runs))]


def labels_of(cards: Sequence[Card]) -> list[str]:
    """The letters and names of the runs of a comparison."""
    return [f"{letter} · {name}" for letter, name in zip(letters_of(cards), names_of(cards), strict=True)]


class InRun:
    """A sample in one run: its trials, and the one that is shown.

    Args:
        index: The index of the run.
        case: The first trial; None if the run doesn't have the sample.
        worse: Whether the worst trial is shown rather than the best.
        whole: Whether a very large sample is read too.
    """

    def __init__(self, index: Index, case: Case | None, *, worse: bool, whole: bool = False) -> None:
        self.index, self._whole = index, whole
        self.cases = [case] if case is not None else []
        if case is not None and case.trial is not None:
            self.cases = index.trials(case.sample)
        pick = min if worse else max
        known = [each for each in self.cases if each.goodness is not None]
        self.shown = pick(known, key=lambda each: each.goodness or 0.0) if known else next(iter(self.cases), None)
        if self.shown is not None and self.shown is not case:
            self.shown = index.at([self.shown.place])[self.shown.place]

    @functools.cached_property
    def stored(self) -> Stored | None:
        """The sample with its records, of the trial that is shown; None if the sample is very large."""
        if self.shown is None:
            return None
        place = self.shown.place
        return self.index.stored(place) if self._whole else self.index.stored_within(place, MOST_BYTES)

    @property
    def answer(self) -> str:
        """The answer, or the beginning of a very long one."""
        sample = self.stored.sample if self.stored is not None else None
        if sample is not None:
            return scored_answer(sample, keeps_reasoning=self.index.keeps_reasoning).answer
        return "" if self.shown is None else self.shown.answer

    @property
    def question(self) -> str:
        """What was asked."""
        sample = self.stored.sample if self.stored is not None else None
        return question_of(sample) if sample is not None else "" if self.shown is None else self.shown.input

    def score(self, place: int | None) -> tuple[float | None, int | None]:
        """The mean score over trials, and the outcome. place: the scorer's."""
        if place is None or not self.cases:
            return None, None
        values = [value for case in self.cases if (value := case.values[place]) is not None]
        if values:
            return sum(values) / len(values), SCORED
        outcomes = [outcome for case in self.cases if (outcome := case.outcomes[place]) is not None]
        return None, FAILED if FAILED in outcomes else SKIPPED if outcomes else None

    @property
    def records(self) -> Sequence[Record]:
        """The records of the trial that is shown."""
        return self.stored.records if self.stored is not None else ()


def cells_of(
    compared: StoredComparison, samples: Sequence[ComparedSample], *, whole: bool = False
) -> list[list[InRun]]:
    """By sample, what it is in each run. whole: as for `InRun`."""
    found = [
        index.at([place for sample in samples if (place := sample.places[number]) is not None])
        for number, index in enumerate(compared.indexes)
    ]
    rows: list[list[InRun]] = []
    for sample in samples:
        gain = sum(value for value in sample.differences.values() if value is not None)
        rows.append(
            [
                InRun(
                    index,
                    None if place is None else found[number][place],
                    worse=(gain < 0) == bool(number),
                    whole=whole,
                )
                for number, (index, place) in enumerate(zip(compared.indexes, sample.places, strict=True))
            ]
        )
    return rows


def compared_rows(
    compared: StoredComparison, cards: Sequence[Card], query: CompareQuery, samples: Sequence[ComparedSample]
) -> list[ComparedRow]:
    """Samples as rows of the list."""
    rows: list[ComparedRow] = []
    within = in_comparison(compare_address([card.id for card in cards], query.pairs(after="", before="")))
    labels = labels_of(cards)
    for sample, cells in zip(samples, cells_of(compared, samples), strict=True):
        answers: list[Answer] = []
        shown = shown_answers(cells, LONGEST_ANSWER)
        for number, (card, cell, (pieces, note)) in enumerate(zip(cards, cells, shown, strict=True)):
            answers.append(
                Answer(
                    in_run_address(card, cell, within),
                    labels[number],
                    compared_scores(compared, cells, number, sample),
                    pieces,
                    note,
                    _reasons(compared, cell, number),
                    trial_links(card, cell, within),
                )
            )
        rows.append(
            ComparedRow(
                shown_name(sample),
                compared_address(sample.name, [card.id for card in cards], query.pairs(after="", before="")),
                redacted(next((cell.question for cell in cells if cell.question), ""))[:LONGEST_ANSWER],
                marks_of(sample),
                tuple(answers),
            )
        )
    return rows


def shown_name(sample: ComparedSample) -> str:
    """What a sample is called."""
    return sample.name if sample.name.strip() else repr(sample.name)


def marks_of(sample: ComparedSample) -> tuple[tuple[str, Tone], ...]:
    """Whether any score is worse or better than in the first run."""
    known = [value for value in sample.differences.values() if value is not None]
    every: tuple[tuple[str, Tone, bool], ...] = (
        ("regressed", "bad", any(value < 0 for value in known)),
        ("fixed", "good", any(value > 0 for value in known)),
    )
    return tuple((text, tone) for text, tone, holds in every if holds)


def in_run_address(card: Card, cell: InRun, within: Sequence[tuple[str, str]]) -> str:
    """The address of a sample in a run; "" if it isn't there. within: the parameters that keep to the comparison."""
    return "" if cell.shown is None else with_query(sample_address(card.id, cell.shown.key), within)


def trial_links(card: Card, cell: InRun, within: Sequence[tuple[str, str]]) -> tuple[Link, ...]:
    """The way to each trial of a sample in a run; none if it has no trials."""
    return tuple(
        Link(
            f"{case.trial}",
            with_query(sample_address(card.id, case.key), within),
            case.key == getattr(cell.shown, "key", ""),
            "no score" if case.goodness is None else f"{case.goodness:.2f}",
        )
        for case in (cell.cases if len(cell.cases) > 1 else ())
    )


def shown_answers(cells: Sequence[InRun], longest: int) -> list[tuple[tuple[Piece, ...], str]]:
    """The answer of each run, and a note on it. Of two runs, each shows what is not in the other one; of more, the
    others show both what is new and what is gone. longest: about the most characters."""
    first, *others = cells
    differences = [
        None if first.shown is None or cell.shown is None else word_diff(first.answer, cell.answer) for cell in others
    ]
    of_first = None if others[1:] else differences[0]
    return [
        _shown_answer(cells, number, difference, longest) for number, difference in enumerate([of_first, *differences])
    ]


def _shown_answer(
    cells: Sequence[InRun], number: int, difference: WordDiff | None, longest: int
) -> tuple[tuple[Piece, ...], str]:
    first, cell = cells[0], cells[number]
    if cell.shown is None:
        return (), NOT_THERE
    note = "" if cell.stored is not None else "The beginning of a very long sample."
    if difference is None or difference.shared < LEAST_SHARED:
        if number and difference is not None and cell.answer and first.answer:
            note = note or "Few words are the same."
        return word_diff(cell.answer, cell.answer).shortened(longest).pieces, note
    if number and difference.is_same and cell.answer:
        note = note or "The same answer."
    short = difference.shortened(longest)
    return short.before if not number else short.pieces if len(cells) > 2 else short.after, note


def compared_scores(
    compared: StoredComparison, cells: Sequence[InRun], number: int, sample: ComparedSample
) -> tuple[tuple[str, ScoreCell, str, Tone], ...]:
    """The titles and scores of a run, and how they differ from the first run's."""
    first, cell = cells[0], cells[number]
    scores: list[tuple[str, ScoreCell, str, Tone]] = []
    for place, scorer in enumerate(compared.scorers):
        value, outcome = cell.score(scorer.places[number])
        if outcome is None:
            continue
        change, tone = "", cast("Tone", "dim")
        gain = sample.differences.get((number, place))
        before, _ = first.score(scorer.places[0])
        if gain and value is not None and before is not None:
            tone = "good" if gain > 0 else "bad"
            size = signed(value - before, digits_for(scorer.info.scale)).rstrip("0").rstrip(".")
            change = f"{'▲' if gain > 0 else '▼'} {size}"
        scores.append((scorer.title, score_cell(value, outcome, scorer.info), change, tone))
    return tuple(scores)


def _reasons(compared: StoredComparison, cell: InRun, number: int) -> tuple[tuple[str, str], ...]:
    titles = {
        compared.indexes[number].scorers[place].signature: scorer.title
        for scorer in compared.scorers
        if (place := scorer.places[number]) is not None
    }
    return tuple(
        (titles[record.signature], reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…")
        for record in cell.records
        if record.signature in titles and (reason := redacted(record.outcome.reason))
    )


# ---- The data ----


OUTCOMES = {SCORED: "score", SKIPPED: "skipped", FAILED: "failed"}


def sample_data(compared: StoredComparison, sample: ComparedSample, cells: list[InRun]) -> dict[str, Any]:
    """A sample with its answer and scores in each run, by letter; None in a run that doesn't have it."""
    runs: dict[str, Any] = {}
    for number, (letter, cell) in enumerate(zip(letters_of(cells), cells, strict=True)):
        if cell.shown is None:
            runs[letter] = None
            continue
        scores: dict[str, Any] = {}
        for place, scorer in enumerate(compared.scorers):
            value, outcome = cell.score(scorer.places[number])
            kind = OUTCOMES.get(outcome) if outcome is not None else None
            scores[scorer.title] = {"outcome": kind, "value": value}
            if number:
                scores[scorer.title]["improvement"] = sample.differences[number, place]
        answer = cell.index.whole(cell.shown).answer
        runs[letter] = {"key": cell.shown.key, "answer": answer, "scores": scores}
    return {"sample_id": sample.name, "runs": runs}


def comparison_data(compared: StoredComparison, cards: Sequence[Card], query: CompareQuery) -> dict[str, Any]:
    """The comparison, and a page of its samples."""
    listed = compared.page(query)
    ids = [card.id for card in cards]
    following = query.pairs(before="", after=listed.following)
    return {
        "comparison": compared.head["data"],
        "matching": compared.count(query),
        "samples": [
            sample_data(compared, sample, cells)
            for sample, cells in zip(listed.samples, cells_of(compared, listed.samples), strict=True)
        ],
        "next": compare_address(ids, following, JSON) if listed.following else None,
    }


def comparison_csv(library: Library, cards: Sequence[Card], query: CompareQuery) -> Iterable[str]:
    """All samples that a query finds, as lines of CSV."""
    opened = library.comparison(cards, anyway=bool(query.anyway))
    if isinstance(opened, StoredComparison):
        with opened as compared:
            header = ["sample_id"]
            for number, letter in enumerate(letters_of(cards)):
                header.append(f"{letter} answer")
                for scorer in compared.scorers:
                    header += [f"{letter} {scorer.title}", f"{letter} {scorer.title} outcome"]
                    header += [f"{letter} {scorer.title} improvement"] if number else []
            yield from csv_rows(header, _all_rows(compared, query))


def _all_rows(compared: StoredComparison, query: CompareQuery) -> Iterator[list[Value]]:
    every = compared.every(query)
    while some := [*itertools.islice(every, MOST_AT_ONCE)]:
        for sample, cells in zip(some, cells_of(compared, some), strict=True):
            yield _csv_row(compared, sample, cells)


def _csv_row(compared: StoredComparison, sample: ComparedSample, cells: list[InRun]) -> list[Value]:
    data = sample_data(compared, sample, cells)
    row: list[Value] = [sample.name]
    for number, letter in enumerate(data["runs"]):
        run: Any = data["runs"][letter]
        row.append(None if run is None else run["answer"])
        for scorer in compared.scorers:
            of = {"value": None, "outcome": None, "improvement": None} if run is None else run["scores"][scorer.title]
            row += [of["value"], of["outcome"], *([of["improvement"]] if number else [])]
    return row
