"""The list of live scores, one of them with the sample behind it, and samples as a dataset."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.times import utc_time
from evalstone.datasets.stored import sample_line, sample_row
from evalstone.errors import ConfigError
from evalstone.ledger.base import chunks
from evalstone.ledger.live import LiveScore
from evalstone.ledger.live_ranking import MOST_READ, Ranking, samples_behind, submission
from evalstone.ledger.scores import BUDGET_SPENT, listed_live
from evalstone.ledger.store import Ledger
from evalstone.ledger.views import scores_csv
from evalstone.results.views.calls import Prompts
from evalstone.results.views.samples import goodness, sample_view, scored_answer
from evalstone.run.rebuilt import prompts_behind
from evalstone.types import Asking, Record, Sample
from evalstone.view.addresses import JSON, live_address, live_score_address, with_query
from evalstone.view.indexing.tables import FAILED, SCORED, SKIPPED
from evalstone.view.library import Library
from evalstone.view.live_query import LiveQuery, Show
from evalstone.view.live_streams import Stream
from evalstone.view.names import utc
from evalstone.view.pages.run import ScoreCell, score_cell
from evalstone.view.pages.sample import KEYS
from evalstone.view.responses import BadAddress, NotThere, attachment, json_data, named, page, query_in, suffixed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PER_PAGE, PER_READ = 50, 500
MOST_IN_DATASET = 10_000
"""The number of samples of a dataset."""
EXCERPT = 300
"""The characters of a question, an answer or a reason in the list."""
SHOWS: tuple[tuple[Show, str, str], ...] = (
    ("worst", "score", "worst first"),
    ("latest", "", "latest first"),
    ("failed", "failed", "failed"),
    ("skipped", "skipped", "skipped"),
    ("dropped", "dropped", "dropped: budget spent"),
    ("pending", "pending", "pending"),
)
"""What the list shows: the name in an address, the state of the scores, and the words for it."""
OUTCOMES = {"score": SCORED, "skipped": SKIPPED, "failed": FAILED}


@dataclass(frozen=True)
class ListRow:
    """A live score in the list."""

    id: str
    href: str
    time: str
    entity: str
    scorer: str
    score: ScoreCell
    question: str
    answer: str
    reason: str


def scores_page(ledger: Ledger, stream: Stream) -> list[tuple[str, LiveScore]]:
    """A page of the list that a query asks for, each score with its place, and the first one of the next page.

    Raises:
        BadAddress: The query's place makes no sense.
    """
    try:
        return stream.ranking().page(ledger, PER_PAGE + 1, stream.query.after)
    except ConfigError as error:
        raise BadAddress(error) from None


def list_rows(ledger: Ledger, stream: Stream, scores: Sequence[tuple[str, LiveScore]]) -> list[ListRow]:
    """The rows of a page, with the beginnings of what was asked and answered."""
    samples = samples_behind(ledger, (row for _, row in scores), MOST_READ)
    pairs = stream.query.pairs(after="")
    rows: list[ListRow] = []
    for place, row in scores:
        listed = listed_live(ledger, row)
        sample = samples.get(row.sample or "") or Sample()
        question = sample.input or next((each.content for each in sample.messages if each.role == "user"), "")
        rows.append(
            ListRow(
                row.id,
                with_query(live_score_address(stream.name, row.id), [*pairs, ("after", place)]),
                utc(row.submitted),
                row.entity or "",
                stream.titles.get(row.signature, row.signature),
                _cell(stream, row),
                question[:EXCERPT],
                scored_answer(sample, keeps_reasoning=bool(row.kept_reasoning)).answer[:EXCERPT],
                listed.reason[:EXCERPT],
            )
        )
    return rows


def _cell(stream: Stream, row: LiveScore) -> ScoreCell:
    info = stream.infos.get(row.signature)
    if row.state not in OUTCOMES or info is None:
        return ScoreCell(row.state, "dim")
    return score_cell(row.value, OUTCOMES[row.state], replace(info, scale=row.scale or info.scale))


def every_score(ledger: Ledger, ranking: Ranking) -> Iterator[LiveScore]:
    """All scores of a list."""
    place = ""
    while rows := ranking.page(ledger, PER_READ, place):
        yield from (row for _, row in rows)
        place = rows[-1][0]


def scores_as_csv(library: Library, ranking: Ranking) -> Iterator[str]:
    """All scores of a list, as `evalstone ledger scores --csv` writes them."""
    with library.live_ledger() as ledger:
        yield from scores_csv(listed_live(ledger, row) for row in every_score(ledger, ranking))


# ---- A score ----


def live_score_page(library: Library, request: Request) -> Response:
    """What was submitted, with its scores by all scorers and what is behind them."""
    part, suffix = suffixed(request.path_params["id"])
    if suffix not in ("", JSON):
        raise NotThere("There is no CSV of one score; the list of scores has one.")
    name, id, query = named(request.path_params["stream"]), named(part), query_in(request, LiveQuery)
    with library.live_ledger() as ledger:
        cards = library.shelf.cards()
        stream = Stream.of(ledger, library.readings, cards, name, query)
        rows, sample = submission(ledger, name, id)
        if not rows:
            raise NotThere(f"The stream {name} has no score {id}.")
        with ledger.reading(f"live score {id}"):
            found = {each: each.record for each in rows}
            of_runs = (card.metadata.asking for card in cards if card.metadata is not None)
            asking = Asking.of_all([*of_runs, *(each.asking for each in rows)])
        row = next(row for row in rows if row.id == id)
        previous, following = _beside(ledger, stream, query.after)
    records = [record for record in found.values() if record is not None]
    infos = {each.signature: stream.infos[each.signature] for each in found}
    keeps = any(each.kept_reasoning for each in found)
    prompts = prompts_behind(
        records,
        sample,
        infos.values(),
        keeps_reasoning=keeps,
        asking=asking,
        own=library.own,
    )
    if suffix == JSON:
        return json_data(_score_data(row, found, sample, prompts))
    values = [value for record in records if (value := goodness(record, infos[record.signature])) is not None]
    shown = sample_view(
        sample.id if sample else row.id,
        sample,
        records,
        infos,
        {signature: stream.titles[signature] for signature in infos},
        sum(values) / len(values) if values else None,
        keeps_reasoning=keeps,
        prompts=prompts,
    )
    address = live_score_address(name, id)
    return page(
        "live_score.html",
        title=shown.id,
        keys=KEYS,
        name=name,
        list_href=f"{with_query(live_address(name), query.pairs(after=''))}#scores",
        sample=shown,
        others=[
            (stream.titles[each.signature], _STATES[each.state]) for each, record in found.items() if record is None
        ],
        facts=[
            (word, text)
            for word, text in (
                ("submitted", f"{utc(row.submitted)} UTC"),
                ("source", row.source),
                ("entity", row.entity),
                ("trace", row.trace),
                ("span", row.span),
            )
            if text
        ],
        previous=previous,
        following=following,
        permalink=address,
        json_href=f"{address}.json",
        collect=with_query("/collect", [("stream", name), ("id", id)]) if sample and library.edit_token else "",
        dataset=with_query(f"{live_address(name)}/dataset.jsonl", [("id", id)]) if sample else "",
    )


_STATES = {"pending": "pending", "dropped": f"dropped: {BUDGET_SPENT}"}


def _beside(ledger: Ledger, stream: Stream, place: str) -> tuple[str, str]:
    """The addresses of the scores before and after a place in the list; "" where there is none."""
    if not place:
        return "", ""
    ranking, pairs = stream.ranking(), stream.query.pairs(after="")
    try:
        pages = [ranking.page(ledger, 1, place, backwards=backwards) for backwards in (True, False)]
    except ConfigError as error:
        raise BadAddress(error) from None
    previous, following = (
        with_query(live_score_address(stream.name, rows[0][1].id), [*pairs, ("after", rows[0][0])]) if rows else ""
        for rows in pages
    )
    return previous, following


def _score_data(
    row: LiveScore, found: Mapping[LiveScore, Record | None], sample: Sample | None, prompts: Mapping[str, Prompts]
) -> dict[str, Any]:
    scores = [
        {
            "id": each.id,
            "signature": each.signature,
            "state": each.state,
            "record": None if record is None else record.to_dict(),
        }
        for each, record in found.items()
    ]
    return {
        "stream": row.stream,
        "id": row.id,
        "submitted": utc_time(row.submitted).isoformat(),
        **{name: getattr(row, name) for name in ("source", "entity", "trace", "span", "response")},
        "sample": None if sample is None else sample_row(sample),
        "scores": scores,
        "asked": {signature: each.to_dict() for signature, each in prompts.items()},
    }


# ---- A dataset ----


def live_dataset(library: Library, request: Request) -> Response:
    """The samples of chosen scores, or of all that a query finds, as a dataset in a file."""
    name, query = named(request.path_params["stream"]), query_in(request, LiveQuery)
    ids = [id for key, id in request.query_params.multi_items() if key == "id"]
    with library.live_ledger() as ledger:
        stream = Stream.of(ledger, library.readings, library.shelf.cards(), name, query)
        if not ids:
            if not request.query_params.get("all"):
                raise BadAddress("No score is chosen: tick some, or take all that match.")
            return attachment(_dataset_of(library, stream.ranking()), f"{name}.jsonl", "text/plain")
        rows = [row for id in dict.fromkeys(ids) for row in submission(ledger, name, id)[0] if row.id == id]
        if len(rows) < len({*ids}):
            raise NotThere(f"The stream {name} doesn't have all of these scores.")
        return attachment([*dataset_lines(ledger, rows)], f"{name}.jsonl", "text/plain")


def _dataset_of(library: Library, ranking: Ranking) -> Iterator[str]:
    with library.live_ledger() as ledger:
        yield from itertools.islice(dataset_lines(ledger, every_score(ledger, ranking)), MOST_IN_DATASET)


def dataset_lines(ledger: Ledger, rows: Iterable[LiveScore]) -> Iterator[str]:
    """The samples behind live scores, each once, as lines of a dataset. Different samples have different IDs there."""
    seen, ids = set[str](), Counter[str]()
    for some in chunks(rows, PER_READ):
        new = [row for row in some if row.sample not in seen]
        samples = samples_behind(ledger, new)
        seen |= samples.keys()
        for sample in samples.values():
            ids[sample.id] += 1
            times = ids[sample.id]
            yield sample_line(sample if times == 1 else replace(sample, id=f"{sample.id} ({times})")) + "\n"
