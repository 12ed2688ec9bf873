"""Outcomes of one sample as a view: each score, its reason, and the judge calls behind it."""

from __future__ import annotations

from collections.abc import Sequence

from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentence_of
from evalstone.report.view import FOOTER, Section, Table, View, table
from evalstone.results.views.calls import CALL_COLUMNS, call_rows
from evalstone.types import Note, Record, Score, Skipped, without_fingerprints


def record_view(record: Record, front_end: FrontEnd = PYTHON, notes: Sequence[Note] = ()) -> View:
    """A record. notes: what else to say about its sample."""
    lead, reason, warnings = _said(record)
    return View(
        name=without_fingerprints(record.signature),
        lead=lead,
        warnings=warnings,
        sections=(Section("", reason, _calls(record), notes=_sentences(notes, front_end)),),
        footer=FOOTER,
    )


def records_view(records: Sequence[Record], front_end: FrontEnd = PYTHON, notes: Sequence[Note] = ()) -> View:
    """The records of one sample: a section for each, if there are several."""
    if len(records) == 1:
        return record_view(records[0], front_end, notes)
    sections: list[Section] = []
    for record in records:
        lead, reason, warnings = _said(record)
        title = without_fingerprints(record.signature)
        sections.append(Section(title, (*filter(None, [lead]), *reason), _calls(record), warnings=warnings))
    if notes:
        sections.append(Section("", notes=_sentences(notes, front_end)))
    return View(name="Scores", lead="", sections=tuple(sections), footer=FOOTER)


def _said(record: Record) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The score in words, the reason for it, and why there is none."""
    match record.outcome:
        case Score(value, text, scale=scale):
            return f"{value:.4g} of {scale:g}", (text,) if text else (), ()
        case Skipped(text):
            return "", (), (f"skipped: {text}",)
        case failed:
            return "", (), (f"failed: {failed.error}",)


def _calls(record: Record) -> tuple[Table, ...]:
    rows = [row for call in record.calls for row in call_rows(call)]
    return (table("Judge calls", CALL_COLUMNS, rows),) if rows else ()


def _sentences(notes: Sequence[Note], front_end: FrontEnd) -> tuple[str, ...]:
    return tuple(sentence_of(note, front_end) for note in notes)
