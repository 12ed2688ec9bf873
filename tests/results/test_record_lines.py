"""Records as lines: the same texts as of records that are written one by one."""

from __future__ import annotations

import copy
import math

import pytest

from evalstone._core.redaction import Redactor, redacted
from evalstone.datasets.stored import record_line
from evalstone.datasets.writing import plain_line
from evalstone.results.columns import KINDS, Columns, kind_of
from evalstone.results.record_lines import RecordLines, line_end, line_form, redacted_lines
from evalstone.results.summary import ScorerCounts, ScorerInfo, SummaryBuilder
from evalstone.types import Failed, JudgeCall, Outcome, Record, Score, Skipped, Usage

HOSTILE = '100 %s "q" \\ \x00 \n \x85 \u2028 \ud800 é {0}'
OUTCOMES: list[Outcome] = [
    Score(0.25, HOSTILE, scale=2.0, evidence=[{"a": None, HOSTILE: [1.5, True]}]),
    Score(2.0, scale=2.0),
    Skipped(HOSTILE),
    Failed(HOSTILE, HOSTILE, "JudgeFailed"),
    Failed("the target failed: away"),
]
CALLS = [
    (),
    (
        JudgeCall(
            question="q", fingerprint="f", judge="j", answer={"verdict": HOSTILE}, usage=Usage(1, 2, 3, 4), cost=0.5
        ),
    ),
    (JudgeCall(question="q", fingerprint="g", judge=HOSTILE, answer=None, cost=None, seconds=1.25),),
]


def filled(record: Record) -> str:
    """The line of a record by its form."""
    data, score = record.to_dict(), record.outcome if isinstance(record.outcome, Score) else None
    like = Record(
        sample_id="x",
        scorer=record.scorer,
        signature=record.signature,
        outcome=Skipped("x")
        if isinstance(record.outcome, Skipped)
        else Failed("x")
        if score is None
        else Score(0.0, scale=2.0),
        calls=tuple(JudgeCall(question="q", fingerprint="x", judge="x", answer="x") for _ in record.calls),
    )
    texts = [plain_line(data[name]) for name in ("sample_id", "value", "reason", "evidence")]
    for call in data["calls"]:
        texts += (plain_line(call[name]) for name in ("fingerprint", "judge", "answer", "usage", "cost", "seconds"))
    texts += (plain_line(data[name]) for name in ("seconds", "cost", "error"))
    return redacted_lines([line_form(like) % (*texts, line_end(record.trial, record.group, record.weight))])[0]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("calls", CALLS, ids=["none", "answered", "silent"])
@pytest.mark.parametrize("more", [{}, {"trial": 2, "group": HOSTILE}, {"group": "g", "weight": 0.5}], ids=str)
def test_a_filled_form_is_the_line_of_the_record(
    outcome: Outcome, calls: tuple[JudgeCall, ...], more: dict[str, object]
) -> None:
    fields: dict[str, object] = {"sample_id": HOSTILE, "scorer": HOSTILE, "signature": HOSTILE + "@1", "seconds": 1e-7}
    record = Record(**fields, outcome=outcome, calls=calls, **more)  # pyright: ignore[reportArgumentType]
    assert filled(record) == record_line(record)


def test_secrets_are_replaced_in_filled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Redactor()
    secret.register("sk-very-secret-1234")
    monkeypatch.setattr("evalstone.results.record_lines.redacted", secret.redacted)
    record = Record(sample_id="a", scorer="s", signature="s@1", outcome=Skipped("key sk-very-secret-1234"))
    assert '"reason": "key ***"' in filled(record)
    lines = ['{"a": "x"}', r'{"b": "sk-very\u002dsecret-1234"}', '{"c": "sk-very-secret-1234"}']
    assert redacted_lines(lines) == ['{"a": "x"}', '{"b": "***"}', '{"c": "***"}']
    assert redacted_lines([lines[0]] * 2) == [lines[0]] * 2
    assert redacted("x") == "x"


def test_records_are_read_from_their_lines_with_their_columns() -> None:
    info = ScorerInfo(name="s", signature="s@1", scale=2.0, lower_is_better=False)
    records = [
        Record(sample_id=f"c{n}", scorer="s", signature="s@1", outcome=outcome, trial=1 + n % 2, group="g", weight=0.5)
        for n, outcome in enumerate(OUTCOMES)
    ]
    columns, other = Columns(["s@1"], len(records)), Columns(["s@1"], len(records))
    lines = RecordLines(columns)
    for number, record in enumerate(records):
        other.put(number, record)
        value = math.nan if record.value is None else record.value
        kind = bytes([KINDS.index(kind_of(record))])
        columns.put_case(number, record.sample_id, record.trial, "g", 0.5, [value], kind, [record.seconds])
        lines.extend([record_line(record)])
    assert list(lines.columns.entries()) == list(other.entries())
    assert [record.to_dict() for record in lines] == [record.to_dict() for record in records]
    assert list(lines)[1:] == records[1:]  # the evidence of the first isn't plain data
    assert (lines[1], lines[1:3], len(lines)) == (list(lines)[1], tuple(lines)[1:3], len(records))
    assert lines.text_at(2) == record_line(records[2]) == list(lines.texts())[2]
    assert lines == copy.copy(lines)
    assert info.scale == 2


@pytest.mark.parametrize("calls", CALLS[1:], ids=["answered", "silent"])
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_counts_in_parts_are_those_of_the_records(outcome: Outcome, calls: tuple[JudgeCall]) -> None:
    info = ScorerInfo(name="s", signature="s@1", scale=2.0, lower_is_better=False)
    whole, counts = SummaryBuilder(info), ScorerCounts()
    (call,) = calls
    unanswered = isinstance(outcome, Skipped) and call.answer is None
    for _ in range(2):
        counts.add_call(call.judge, call.answer, call.usage, call.cost, unanswered=unanswered)
    parts = SummaryBuilder(info, counts)
    for group, weight in ((None, None), ("g", 0.5)):
        record = Record(
            sample_id="a", scorer="s", signature="s@1", outcome=outcome, calls=calls, group=group, weight=weight
        )
        whole.add(record)
        if isinstance(outcome, Score):
            parts.add_score(outcome.value, group, weight)
        elif isinstance(outcome, Skipped):
            parts.add_missing(outcome.reason, weight, failed=False)
        else:
            parts.add_missing(outcome.error, weight, failed=True)
    assert parts.summary() == whole.summary()
