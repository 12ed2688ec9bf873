"""Runs side by side: what changed, and all samples with the answer of each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.display import digits_for, signed
from evalstone._core.redaction import redacted
from evalstone._core.word_diff import LEAST_SHARED, Piece, word_diff
from evalstone.errors import ConfigError
from evalstone.report.csv import Value, csv_rows
from evalstone.report.view import Tone
from evalstone.results.views.samples import scored_answer
from evalstone.types import Record
from evalstone.view.addresses import CSV, JSON, compare_address, in_comparison, run_address, sample_address, with_query
from evalstone.view.compare_query import ORDERS, SHOWS, CompareQuery
from evalstone.view.indexing.compared import Compared, ComparedSample, ComparedScorer
from evalstone.view.indexing.index import Case, Index, Stored, question_of
from evalstone.view.indexing.tables import FAILED, SCORED, SKIPPED, choice
from evalstone.view.library import Library
from evalstone.view.names import dataset_of, name_of, when
from evalstone.view.pages.common import Link, directed
from evalstone.view.pages.marks import ScoreCell, score_cell
from evalstone.view.query import field_text
from evalstone.view.responses import BadAddress, csv_file, json_data, page, query_in, suffix_of
from evalstone.view.shelf import Card

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_RUNS = 16
LONGEST_ANSWER = 900
"""About the most characters of an answer in the list. The page of the sample has all of it."""
LONGEST_REASON = 1500
MOST_BYTES = 1 << 20
"""The most bytes of stored samples that are read for a row; of larger ones, the beginning is shown."""
MOST_SLICES = 60


@dataclass(frozen=True)
class ComparedRun:
    """A run in the head of the page."""

    letter: str
    name: str
    href: str
    detail: str
    baseline: str
    """The same page with this run as the first; "" for the first one."""
    without: str
    """The same page without this run; "" if fewer than two would be left."""


@dataclass(frozen=True)
class LineRow:
    """A scorer in a pair of runs, over all samples or those of a slice."""

    title: str
    under: str
    regressed: Link
    fixed: Link
    cells: Mapping[str, Any]


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


def compare_page(library: Library, request: Request) -> Response:
    """Runs compared with the first one."""
    suffix, query = suffix_of(request), query_in(request, CompareQuery)
    cards = cards_in(library, request.query_params.getlist("runs"))
    if request.query_params.get("baseline") == "usual" and len(cards) > 1:
        from starlette.responses import RedirectResponse  # noqa: PLC0415 - an extra

        pins = library.shelf.pins()
        cards.reverse()  # the list has the latest first
        cards.sort(key=lambda card: (pins.get(dataset_of(card)) != card.id, card.started))
        return RedirectResponse(compare_address([card.id for card in cards]), status_code=303)
    if len(cards) == 1 and not suffix:
        return _choice_page(library, cards[0])
    if not 2 <= len(cards) <= MOST_RUNS:
        raise BadAddress(f"A comparison needs 2 to {MOST_RUNS} runs, and the address names {len(cards)}.")
    opened = library.comparison(cards, anyway=bool(query.anyway))
    if not isinstance(opened, Compared):
        return opened
    with opened as compared:
        try:
            if suffix and compared.head["refused"]:
                raise BadAddress(compared.head["refused"])
            if suffix == CSV:
                compared.page(query, 1)  # an address that makes no sense is an error before anything is sent
                return csv_file(_csv(library, cards, query), "comparison")
            if suffix == JSON:
                return json_data(_data(compared, cards, query))
            slices = None
            if query.by and not compared.head["refused"]:
                found = library.comparison(cards, anyway=bool(query.anyway), by=query.by)
                if not isinstance(found, Compared):
                    return found
                with found:
                    slices = found.head
            return page("compare.html", **_context(compared, cards, query, slices))
        except ConfigError as error:
            raise BadAddress(error) from None


def cards_in(library: Library, values: Sequence[str]) -> list[Card]:
    """The runs in an address: one a value, or several with commas between them."""
    names: list[str] = []
    for value in values:
        several = "," in value and library.shelf.card(value) is None
        names += value.split(",") if several else [value]
    return [library.card(name) for name in dict.fromkeys(names) if name]


def _choice_page(library: Library, card: Card) -> Response:
    """The runs that a run can be compared with: those over the same dataset, latest first."""
    pinned = library.shelf.pins().get(dataset_of(card))
    others = [
        Link(name_of(each), compare_address([each.id, card.id]), each.id == pinned, when(each.started))
        for each in library.shelf.cards()
        if each.id != card.id and each.metadata is not None and dataset_of(each) == dataset_of(card)
    ]
    return page(
        "compare_with.html",
        title=f"Compare {name_of(card)}",
        name=name_of(card),
        run_href=run_address(card.id),
        dataset=dataset_of(card),
        others=others,
    )


# ---- The head ----


def letters_of(cards: Sequence[Card]) -> list[str]:
    """The letters that a comparison gives runs."""
    return [chr(ord("A") + number) for number in range(len(cards))]


def _context(
    compared: Compared, cards: Sequence[Card], query: CompareQuery, slices: Mapping[str, Any] | None
) -> dict[str, Any]:
    ids, letters, head = [card.id for card in cards], letters_of(cards), compared.head

    def here(runs: Sequence[str] = ids, suffix: str = "", **changes: Any) -> str:
        return compare_address(runs, query.pairs(**{"after": "", "before": "", **changes}), suffix)

    runs = [
        ComparedRun(
            letter,
            name_of(card),
            run_address(card.id),
            " · ".join(filter(None, (when(card.started) if name_of(card) != when(card.started) else "", _who(card)))),
            here([card.id, *(other for other in ids if other != card.id)], run="") if number else "",
            here([other for other in ids if other != card.id], run="") if len(cards) > 2 else "",
        )
        for number, (letter, card) in enumerate(zip(letters, cards, strict=True))
    ]
    names = [run.name for run in runs]
    context: dict[str, Any] = {
        "title": f"{names[1]} vs. {names[0]}" if len(cards) == 2 else f"{len(cards)} runs compared",
        "dataset": dataset_of(cards[0]),
        "runs": runs,
        "head": head,
        "anyway": here(anyway="1") if head["refused"] and head["mismatch"] else "",
        "query": query,
        "pairs": [],
        "slices": None,
        "table": None,
    }
    if head["refused"]:
        return context
    pairs = [(run.letter, run.name) for run in runs[1:]]
    context["pairs"] = [
        (*pair, [_line_row(line, pair[0], query, here) for line in lines])
        for pair, lines in zip(pairs, head["pairs"], strict=True)
    ]
    context["matrix"] = _matrix(context["pairs"], head["pairs"]) if len(cards) > 2 else None
    fields = dict.fromkeys(facet.name for index in compared.indexes[:1] for facet in index.facets)
    context["fields"] = [
        Link(name, here(by="" if query.by == name else name) + "#slices", query.by == name) for name in fields
    ]
    if slices is not None:
        lines = (
            [
                (*pair, [line for line in of if not query.scorer or line["title"] == query.scorer])
                for pair, of in zip(pairs, slices["pairs"], strict=True)
            ]
            if not slices["refused"]
            else []
        )
        context["slices"] = {
            "refused": slices["refused"],
            "notes": slices["notes"],
            "pairs": [
                (letter, name, [_line_row(line, letter, query, here) for line in of[:MOST_SLICES]], len(of))
                for letter, name, of in lines
            ],
            "most": MOST_SLICES,
        }
    context["table"] = _table(compared, cards, query, here)
    return context


def _matrix(pairs: Sequence[Any], lines: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Runs by scorers: the means of the first run, and the rows of each other run, None where it isn't compared."""
    titles = dict.fromkeys(line["title"] for of in lines for line in of)
    by_title = [
        {line["title"]: row for line, row in zip(of, rows, strict=True)}
        for of, (_, _, rows) in zip(lines, pairs, strict=True)
    ]
    first = {title: next(of[title] for of in by_title if title in of) for title in titles}
    return {
        "headers": [row.title for row in first.values()],
        "means": [row.cells["a"]["text"] for row in first.values()],
        "rows": [
            (letter, name, [of.get(title) for title in titles])
            for (letter, name, _), of in zip(pairs, by_title, strict=True)
        ],
    }


def _who(card: Card) -> str:
    return card.metadata.target.identity if card.metadata is not None and card.metadata.target is not None else ""


def _line_row(line: Mapping[str, Any], letter: str, query: CompareQuery, here: Any) -> LineRow:
    title = line["title"]
    changes: dict[str, Any] = {"scorer": title, "run": letter}
    if line["key"]:
        changes["field"] = ((query.by, line["key"]),)

    def link(show: str, number: int) -> Link:
        return Link(f"{number:,}", here(show=show, **changes) + "#samples" if number else "", number=show)

    named = directed(title, lower_is_better=line["lower_is_better"])
    return LineRow(
        line["key"] or named,
        f"{named} · n = {line['n']}" if line["key"] else f"n = {line['n']}",
        link("regressed", line["regressed"]),
        link("fixed", line["fixed"]),
        line["cells"],
    )


# ---- The samples ----


def _table(compared: Compared, cards: Sequence[Card], query: CompareQuery, here: Any) -> dict[str, Any]:
    listed, number_found = compared.page(query), compared.count(query)
    total = compared.total("all", query)
    facets = {facet.name: facet for index in reversed(compared.indexes) for facet in index.facets}
    chosen = [(choice(name), choice(value)) for name, value in query.field]
    found = f"{number_found:,} of {total:,} samples" if query.is_filtered else f"{total:,} samples"
    return {
        "rows": compared_rows(compared, cards, query, listed.samples),
        "status": f"{found}, {ORDERS[query.sort]}",
        "chips": [
            Link(text, here(show=show) + "#samples", query.show == show, f"{compared.total(show, query):,}")
            for show, text in SHOWS.items()
        ],
        "titles": [scorer.title for scorer in compared.scorers],
        "orders": list(ORDERS.items()),
        "shows": list(SHOWS.items()),
        "fields": [
            (
                facet.name,
                [
                    (field_text(facet.name, value), f"{value} ({times:,})", (facet.name, value) in chosen)
                    for value, times in facet.values
                ],
            )
            for facet in facets.values()
        ],
        "ids": [card.id for card in cards],
        "unfiltered": here(show="all", q="", field=(), scorer="", run="") + "#samples"
        if query.is_filtered or query.scorer or query.run
        else "",
        "previous": here(before=listed.previous) + "#samples" if listed.previous else "",
        "following": here(after=listed.following) + "#samples" if listed.following else "",
        "exports": [
            Link("CSV of all that match", here(suffix=CSV)),
            Link("JSON of this page", here(suffix=JSON, after=query.after, before=query.before)),
        ],
    }


class _Cell:
    """A sample in one run: its trials, and the one that is shown.

    Args:
        index: The index of the run.
        case: The first trial; None if the run doesn't have the sample.
        worse: Whether the worst trial is shown rather than the best.
    """

    def __init__(self, index: Index, case: Case | None, *, worse: bool) -> None:
        self.index = index
        self.cases = [case] if case is not None else []
        if case is not None and case.trial is not None:
            self.cases = index.trials(case.sample)
        pick = min if worse else max
        known = [each for each in self.cases if each.goodness is not None]
        self.shown = pick(known, key=lambda each: each.goodness or 0.0) if known else next(iter(self.cases), None)
        self.stored: Stored | None = None
        if self.shown is not None:
            self.stored = index.stored_within(self.shown.place, MOST_BYTES)
            if self.stored is None or len(self.cases) > 1:
                self.shown = index.at([self.shown.place])[self.shown.place]

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


def _cells(compared: Compared, samples: Sequence[ComparedSample]) -> list[list[_Cell]]:
    """By sample, its cell in each run."""
    found = [
        index.at([place for sample in samples if (place := sample.places[number]) is not None])
        for number, index in enumerate(compared.indexes)
    ]
    rows: list[list[_Cell]] = []
    for sample in samples:
        gain = sum(value for value in sample.differences.values() if value is not None)
        rows.append(
            [
                _Cell(index, None if place is None else found[number][place], worse=(gain < 0) == bool(number))
                for number, (index, place) in enumerate(zip(compared.indexes, sample.places, strict=True))
            ]
        )
    return rows


def compared_rows(
    compared: Compared, cards: Sequence[Card], query: CompareQuery, samples: Sequence[ComparedSample]
) -> list[ComparedRow]:
    """Samples as rows of the list."""
    rows: list[ComparedRow] = []
    within = in_comparison(compare_address([card.id for card in cards], query.pairs(after="", before="")))
    for sample, cells in zip(samples, _cells(compared, samples), strict=True):
        first = cells[0]
        answers: list[Answer] = []
        for number, (card, cell) in enumerate(zip(cards, cells, strict=True)):
            pieces, note = _pieces(cells, number, sample)
            answers.append(
                Answer(
                    with_query(sample_address(card.id, cell.shown.key), within) if cell.shown is not None else "",
                    f"{letters_of(cards)[number]} · {name_of(card)}",
                    _scores(compared.scorers, first, cell, number, sample),
                    pieces,
                    note,
                    _reasons(compared, cell, number),
                    tuple(
                        Link(
                            f"{case.trial}",
                            with_query(sample_address(card.id, case.key), within),
                            case.key == getattr(cell.shown, "key", ""),
                            "no score" if case.goodness is None else f"{case.goodness:.2f}",
                        )
                        for case in (cell.cases if len(cell.cases) > 1 else ())
                    ),
                )
            )
        known = [value for value in sample.differences.values() if value is not None]
        every: tuple[tuple[str, Tone, bool], ...] = (
            ("regressed", "bad", any(value < 0 for value in known)),
            ("fixed", "good", any(value > 0 for value in known)),
        )
        rows.append(
            ComparedRow(
                sample.name if sample.name.strip() else repr(sample.name),
                next(answer.href for answer in reversed(answers) if answer.href),
                redacted(next((cell.question for cell in cells if cell.question), ""))[:LONGEST_ANSWER],
                tuple((text, tone) for text, tone, holds in every if holds),
                tuple(answers),
            )
        )
    return rows


def _pieces(cells: Sequence[_Cell], number: int, sample: ComparedSample) -> tuple[tuple[Piece, ...], str]:
    """A run's answer, with what is not in the other one, and a note on it. Of more than two runs, the others show both
    what is new and what is gone."""
    cell = cells[number]
    if cell.shown is None:
        return (), "The run doesn't have this sample."
    note = "" if cell.stored is not None else "The beginning of a very long sample."
    plain = word_diff(cell.answer, cell.answer).shortened(LONGEST_ANSWER).pieces
    other = cells[0] if number else cells[1]
    if other.shown is None or (number == 0 and len(cells) > 2):
        return plain, note
    difference = word_diff(other.answer, cell.answer) if number else word_diff(cell.answer, other.answer)
    if difference.shared < LEAST_SHARED:
        return plain, note or "Few words are the same." if number and cell.answer and other.answer else note
    if number and difference.is_same and cell.answer:
        note = note or "The same answer."
    short = difference.shortened(LONGEST_ANSWER)
    return short.before if not number else short.pieces if len(cells) > 2 else short.after, note


def _scores(
    scorers: Sequence[ComparedScorer], first: _Cell, cell: _Cell, number: int, sample: ComparedSample
) -> tuple[tuple[str, ScoreCell, str, Tone], ...]:
    scores: list[tuple[str, ScoreCell, str, Tone]] = []
    for place, scorer in enumerate(scorers):
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


def _reasons(compared: Compared, cell: _Cell, number: int) -> tuple[tuple[str, str], ...]:
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


def _sample_data(
    compared: Compared, cards: Sequence[Card], sample: ComparedSample, cells: list[_Cell]
) -> dict[str, Any]:
    names = {SCORED: "score", SKIPPED: "skipped", FAILED: "failed"}
    runs: dict[str, Any] = {}
    for number, (letter, cell) in enumerate(zip(letters_of(cards), cells, strict=True)):
        if cell.shown is None:
            runs[letter] = None
            continue
        scores: dict[str, Any] = {}
        for place, scorer in enumerate(compared.scorers):
            value, outcome = cell.score(scorer.places[number])
            kind = names.get(outcome) if outcome is not None else None
            scores[scorer.title] = {"outcome": kind, "value": value}
            if number:
                scores[scorer.title]["improvement"] = sample.differences[number, place]
        answer = cell.index.whole(cell.shown).answer
        runs[letter] = {"key": cell.shown.key, "answer": answer, "scores": scores}
    return {"sample_id": sample.name, "runs": runs}


def _data(compared: Compared, cards: Sequence[Card], query: CompareQuery) -> dict[str, Any]:
    listed = compared.page(query)
    ids = [card.id for card in cards]
    following = query.pairs(before="", after=listed.following)
    return {
        "comparison": compared.head["data"],
        "matching": compared.count(query),
        "samples": [
            _sample_data(compared, cards, sample, cells)
            for sample, cells in zip(listed.samples, _cells(compared, listed.samples), strict=True)
        ],
        "next": compare_address(ids, following, JSON) if listed.following else None,
    }


def _csv(library: Library, cards: Sequence[Card], query: CompareQuery) -> Iterable[str]:
    opened = library.comparison(cards, anyway=bool(query.anyway))
    if isinstance(opened, Compared):
        with opened as compared:
            header = ["sample_id"]
            for number, letter in enumerate(letters_of(cards)):
                header.append(f"{letter} answer")
                for scorer in compared.scorers:
                    header += [f"{letter} {scorer.title}", f"{letter} {scorer.title} outcome"]
                    header += [f"{letter} {scorer.title} improvement"] if number else []
            yield from csv_rows(header, (_csv_row(compared, cards, sample) for sample in compared.every(query)))


def _csv_row(compared: Compared, cards: Sequence[Card], sample: ComparedSample) -> list[Value]:
    data = _sample_data(compared, cards, sample, _cells(compared, [sample])[0])
    row: list[Value] = [sample.name]
    for number, letter in enumerate(letters_of(cards)):
        run: Any = data["runs"][letter]
        row.append(None if run is None else run["answer"])
        for scorer in compared.scorers:
            of = {"value": None, "outcome": None, "improvement": None} if run is None else run["scores"][scorer.title]
            row += [of["value"], of["outcome"], *([of["improvement"]] if number else [])]
    return row
