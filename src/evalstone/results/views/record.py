"""The outcome of one scorer for one sample as a view: the score, its reason, and the judge calls behind it."""

from __future__ import annotations

from collections.abc import Sequence

from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentence_of
from evalstone.report.view import FOOTER, Section, View, table
from evalstone.results.views.calls import CALL_COLUMNS, call_rows
from evalstone.types import Note, Record, Score, Skipped, without_fingerprints


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
    rows = [row for call in record.calls for row in call_rows(call)]
    calls = (table("Judge calls", CALL_COLUMNS, rows),) if rows else ()
    sentences = tuple(sentence_of(note, front_end) for note in notes)
    return View(
        name=without_fingerprints(record.signature),
        lead=lead,
        warnings=warnings,
        sections=(Section("", reason, calls, notes=sentences),),
        footer=FOOTER,
    )
