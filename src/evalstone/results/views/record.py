"""The outcome of one scorer for one sample as a view: the score, its reason, and the judge calls behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalstone._core.display import money
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentence_of
from evalstone.report.view import FOOTER, Cell, Column, Section, View, table, words
from evalstone.types import JudgeCall, Note, Record, Score, Skipped, without_fingerprints

CALLS = ("question", "judge", "answer", "source")


def record_view(record: Record, front_end: FrontEnd = PYTHON, notes: Sequence[Note] = ()) -> View:
    """A record. notes: what else to say about its sample."""
    lead, reason, warnings = "", (), ()
    match record.outcome:
        case Score(value, text, scale=scale):
            lead, reason = f"{value:.4g} of {scale:g}", (text,) if text else ()
        case Skipped(text):
            warnings = (f"skipped: {text}",)
        case failed:
            warnings = (f"failed: {failed.error}",)
    columns = (*map(words, CALLS), Column("time"), Column("cost"))
    rows = [_row(call, depth) for asked in record.calls for call, depth in _nested(asked)]
    calls = (table("Judge calls", columns, rows),) if rows else ()
    sentences = tuple(sentence_of(note, front_end) for note in notes)
    return View(
        name=without_fingerprints(record.signature),
        lead=lead,
        warnings=warnings,
        sections=(Section("", reason, calls, notes=sentences),),
        footer=FOOTER,
    )


def _row(call: JudgeCall, depth: int) -> Sequence[Cell | str]:
    answer = "none" if call.answer is None else "given"
    source = "" if call.members else next(call.sources(), "")
    return Cell(call.question, level=depth), call.judge, answer, source, f"{call.seconds:.2f} s", money(call.cost)


def _nested(call: JudgeCall, depth: int = 0) -> Iterator[tuple[JudgeCall, int]]:
    """A judge call and the calls of a composite judge's members, each with its depth."""
    yield call, depth
    for member in call.members:
        yield from _nested(member, depth + 1)
