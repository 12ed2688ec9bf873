"""A sample in several runs, side by side: all texts, scores with what is behind them, and judge calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.word_diff import LEAST_SHARED, word_diff
from evalstone.errors import ConfigError
from evalstone.report.view import LONGEST_TEXT, Block, OutcomeView, Tone
from evalstone.results.views.calls import Prompts
from evalstone.results.views.samples import SampleParts, sample_parts
from evalstone.scorers.base import Scorer
from evalstone.view.addresses import CSV, JSON, compare_address, compared_address, in_comparison
from evalstone.view.compare_query import ORDERS, SHOWS, CompareQuery
from evalstone.view.indexing.comparison import ComparedSample, StoredComparison
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import Link, directed
from evalstone.view.pages.compare import MOST_RUNS, cards_in
from evalstone.view.pages.compare_samples import (
    NOT_THERE,
    InRun,
    cells_of,
    compared_scores,
    in_run_address,
    labels_of,
    letters_of,
    marks_of,
    sample_data,
    shown_answers,
    shown_name,
    trial_links,
)
from evalstone.view.pages.marks import ScoreCell
from evalstone.view.pages.sample import KEYS, prompts_in
from evalstone.view.responses import BadAddress, NotThere, json_data, named, page, query_in, suffixed
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


@dataclass(frozen=True)
class Side:
    """What a run has in a row."""

    label: str
    score: ScoreCell | None = None
    change: str = ""
    """How the score differs from the first run's."""
    tone: Tone = ""
    blocks: tuple[Block, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A part of a sample in each run."""

    title: str
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Head:
    """A run in the head of the table."""

    label: str
    href: str
    """The sample in this run alone; "" if it doesn't have it."""
    trials: tuple[Link, ...]


def compared_sample_page(library: Library, request: Request) -> Response:
    """A sample in the runs of a comparison."""
    text, suffix = suffixed(request.path_params["key"])
    name, query = named(text), replace(query_in(request, CompareQuery), after="", before="", by="")
    if suffix == CSV:
        raise NotThere("There is no CSV of one sample; the comparison has one.")
    cards = cards_in(library, request.query_params.getlist("runs"))
    if not 2 <= len(cards) <= MOST_RUNS:
        raise BadAddress(f"A comparison needs 2 to {MOST_RUNS} runs, and the address names {len(cards)}.")
    opened = library.comparison(cards, anyway=bool(query.anyway))
    if not isinstance(opened, StoredComparison):
        return opened
    with opened as compared:
        if compared.head["refused"]:
            raise BadAddress(compared.head["refused"])
        sample = compared.named(name)
        if sample is None:
            raise NotThere(f"The runs {', '.join(map(name_of, cards))} have no results of sample {name}.")
        [cells] = cells_of(compared, [sample], whole=True)
        prompts = [_prompts(cell, library.own) for cell in cells]
        if suffix == JSON:
            return json_data(_data(compared, cards, sample, cells, prompts))
        try:
            return page("compared_sample.html", **_context(compared, cards, query, sample, cells, prompts))
        except ConfigError as error:
            raise BadAddress(error) from None


def _prompts(cell: InRun, own: Mapping[str, Scorer]) -> Mapping[str, Prompts]:
    return {} if cell.stored is None else prompts_in(cell.index, cell.stored, own)


def _data(
    compared: StoredComparison,
    cards: Sequence[Card],
    sample: ComparedSample,
    cells: list[InRun],
    prompts: Sequence[Mapping[str, Prompts]],
) -> dict[str, Any]:
    data = sample_data(compared, sample, cells)
    for (letter, of), card, cell, asked in zip([*data["runs"].items()], cards, cells, prompts, strict=True):
        if of is not None and cell.stored is not None:
            whole = {signature: each.to_dict() for signature, each in asked.items()}
            trials = [case.key for case in cell.cases] if len(cell.cases) > 1 else []
            data["runs"][letter] = {"run": card.id, **of, "trials": trials, **cell.stored.data, "asked": whole}
    return data


def _context(
    compared: StoredComparison,
    cards: Sequence[Card],
    query: CompareQuery,
    sample: ComparedSample,
    cells: list[InRun],
    prompts: Sequence[Mapping[str, Prompts]],
) -> dict[str, Any]:
    ids = [card.id for card in cards]
    labels = labels_of(cards)
    titles = _titles(compared)
    parts = [
        None
        if cell.stored is None
        else sample_parts(
            cell.stored.sample,
            cell.stored.records,
            {info.signature: info for info in cell.index.scorers},
            titles[number],
            keeps_reasoning=cell.index.keeps_reasoning,
            prompts=prompts[number],
        )
        for number, cell in enumerate(cells)
    ]
    shared, rows = _texts(parts, labels)
    rows = [_answers(cells, parts, labels), *rows, *_scored(compared, sample, cells, parts, labels, titles)]
    # What is of interest is what changed, unless the list has something else.
    walked = replace(query, show="changed") if query.show == "all" else query
    before, after = compared.neighbors(walked, sample)

    def address(other: ComparedSample | None) -> str:
        return "" if other is None else compared_address(other.name, ids, query.pairs())

    within = in_comparison(compare_address(ids, query.pairs()))
    return {
        "title": f"{shown_name(sample)} in {len(cards)} runs",
        "name": shown_name(sample),
        "dataset": dataset_of(cards[0]),
        "heads": [
            Head(label, in_run_address(card, cell, within), trial_links(card, cell, within))
            for label, card, cell in zip(labels, cards, cells, strict=True)
        ],
        "marks_of": marks_of(sample),
        "shared": shared,
        "rows": rows,
        "list_href": compare_address(ids, query.pairs()) + "#samples",
        "previous": address(before),
        "following": address(after),
        "order": f"{'score changed' if walked is not query else SHOWS[query.show]}, {ORDERS[query.sort]}",
        "permalink": compared_address(sample.name, ids, CompareQuery(anyway=query.anyway).pairs()),
        "json_href": compared_address(sample.name, ids, CompareQuery(anyway=query.anyway).pairs(), JSON),
        "keys": KEYS,
    }


def _titles(compared: StoredComparison) -> list[dict[str, str]]:
    """By run, the titles of its scorers by signature: those of the comparison, or else its own."""
    return [
        {
            **dict(zip((info.signature for info in index.scorers), index.titles, strict=True)),
            **{
                index.scorers[place].signature: scorer.title
                for scorer in compared.scorers
                if (place := scorer.places[number]) is not None
            },
        }
        for number, index in enumerate(compared.indexes)
    ]


def _answers(cells: list[InRun], parts: Sequence[SampleParts | None], labels: Sequence[str]) -> Row:
    sides: list[Side] = []
    shown = shown_answers(cells, LONGEST_TEXT)
    for cell, label, of, (pieces, note) in zip(cells, labels, parts, shown, strict=True):
        own = next((block for block in of.texts if block.kind == "answer"), None) if of is not None else None
        took = () if own is None else own.labels
        blocks = (Block("part", labels=took, pieces=pieces),) if pieces else ()
        missing = "" if pieces or note else "There is no answer." if cell.shown is not None else NOT_THERE
        sides.append(Side(label, blocks=blocks, note=note or missing))
    return Row("Answer", tuple(sides))


def _texts(parts: Sequence[SampleParts | None], labels: Sequence[str]) -> tuple[Block | None, list[Row]]:
    """What else the sample has: what is the same in all runs that have it, and rows of what isn't."""
    own = [
        {}
        if of is None
        else {
            block.title: block
            for block in (*of.texts, of.passages, of.messages)
            if block is not None and block.kind != "answer"
        }
        for of in parts
    ]
    have = [blocks for blocks, of in zip(own, parts, strict=True) if of is not None]
    shared: list[Block] = []
    rows: list[Row] = []
    for title in dict.fromkeys(title for blocks in own for title in blocks):
        first = have[0].get(title)
        if first is not None and all(_unlabeled(blocks.get(title)) == _unlabeled(first) for blocks in have):
            shared.append(_labeled([blocks.get(title) for blocks in own], first))
            continue
        sides = [
            Side(label, blocks=() if (block := blocks.get(title)) is None else (_marked(first, block),))
            for label, blocks in zip(labels, own, strict=True)
        ]
        rows.append(Row(title, tuple(sides)))
    groups = [tuple(block for block in shared if (block.kind == "group") == right) for right in (False, True)]
    columns = Block("columns", items=tuple(Block("group", items=of) for of in groups if of))
    return columns if shared else None, rows


def _unlabeled(block: Block | None) -> Block | None:
    """A block without what judges say of its parts."""
    return block and replace(block, items=tuple(replace(item, labels=()) for item in block.items))


def _labeled(own: Sequence[Block | None], first: Block) -> Block:
    """A block that is the same in all runs, with what the judges of each run say of its parts: with the letter of the
    run, unless all say the same. own: the block in each run."""
    have = [(letter, block) for letter, block in zip(letters_of(own), own, strict=True) if block is not None]
    if all(block == first for _, block in have):
        return first
    items = tuple(
        replace(
            item,
            labels=tuple(
                (f"{letter}: {text}", tone) for letter, block in have for text, tone in block.items[at].labels
            ),
        )
        for at, item in enumerate(first.items)
    )
    return replace(first, items=items)


def _marked(first: Block | None, block: Block) -> Block:
    """A text without its title, with what the first one doesn't have marked."""
    untitled = replace(block, title="", folded=False)
    if first is None or first is block or not (first.text and block.text) or first.items or block.items:
        return untitled
    difference = word_diff(first.text, block.text)
    return untitled if difference.shared < LEAST_SHARED else replace(untitled, text="", pieces=difference.after)


def _untitled(claims: tuple[Block, ...]) -> tuple[Block, ...]:
    """Claims without their title, which the row has, unless there are those of several scorers."""
    return claims if len(claims) > 1 else tuple(replace(block, title="") for block in claims)


def _alone(outcome: OutcomeView) -> tuple[ScoreCell, str, Tone]:
    """The outcome of a scorer that isn't compared."""
    return ScoreCell(outcome.text, outcome.tone), "", ""


def _scored(
    compared: StoredComparison,
    sample: ComparedSample,
    cells: list[InRun],
    parts: Sequence[SampleParts | None],
    labels: Sequence[str],
    titles: Sequence[Mapping[str, str]],
) -> list[Row]:
    """What judges found, and a row for each scorer."""
    numbers = range(len(cells))
    rows: list[Row] = []
    for title, blocks_of in (
        ("Loss", [() if of is None or of.loss is None else (replace(of.loss, title=""),) for of in parts]),
        ("Claims", [() if of is None else _untitled(of.claims) for of in parts]),
    ):
        if any(blocks_of):
            rows.append(Row(title, tuple(Side(labels[n], blocks=blocks_of[n]) for n in numbers)))
    scores: list[dict[str, tuple[ScoreCell, str, Tone]]] = [
        {title: (cell, change, tone) for title, cell, change, tone in compared_scores(compared, cells, n, sample)}
        for n in numbers
    ]
    explained = [
        {}
        if of is None
        else {
            titles[n][record.signature]: (block, outcome)
            for record, block, outcome in zip(cells[n].records, of.explained, of.outcomes, strict=True)
        }
        for n, of in enumerate(parts)
    ]
    lower = {titles[n][info.signature]: info.lower_is_better for n in numbers for info in compared.indexes[n].scorers}
    names = dict.fromkeys([scorer.title for scorer in compared.scorers])
    for title in [*names, *dict.fromkeys(title for of in explained for title in of if title not in names)]:
        sides: list[Side] = []
        for n in numbers:
            found, reason = scores[n].get(title), explained[n].get(title)
            if reason is None:
                sides.append(Side(labels[n]))
                continue
            block, outcome = reason
            score, change, tone = found or _alone(outcome)
            trials = len(cells[n].cases)
            note = f"The mean of {trials} trials. Below is the one that is shown: {outcome.text}." if trials > 1 else ""
            sides.append(Side(labels[n], score, change, tone, (replace(block, title="", labels=()),), note))
        rows.append(Row(directed(title, lower_is_better=lower[title]), tuple(sides)))
    return rows
