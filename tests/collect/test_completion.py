"""Traces that are complete: when, in which order, and which have to go where too many wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalstone.agents.formats.records import Record, records_in
from evalstone.collect import completion
from evalstone.collect.completion import OpenTraces, Recent
from tests.traced import span, spans

(SPAN,) = records_in(spans(span(2, "chat", {}, parent=1)))
(ROOT,) = records_in(spans(span(1, "invoke_agent", {})))


def part(trace: str, *, kind: str = "span") -> Record:
    return replace(SPAN, trace=trace, kind=kind)  # pyright: ignore[reportArgumentType]


def root(trace: str, *, kind: str = "span") -> Record:
    return replace(ROOT, trace=trace, kind=kind)  # pyright: ignore[reportArgumentType]


def complete(traces: OpenTraces, now: float, *, all: bool = False) -> str:
    """The traces that are complete, a letter for each of their records."""
    return " ".join("".join(record.trace or "-" for record in records) for records in traces.complete(now, all=all))


def test_a_trace_is_complete_when_nothing_came_for_so_long_and_one_without_a_root_much_later() -> None:
    traces = OpenTraces(5.0)
    traces.add([root("a")], 0.0)
    traces.add([part("b")], 0.0)
    traces.add([part("a")], 3.0)
    traces.add([root("c", kind="event")], 3.0)
    assert [complete(traces, now) for now in (7.9, 8.0, 59.9, 60.0, 62.9, 63.0)] == ["", "aa", "", "b", "", "c"]


def test_traces_wait_in_the_order_in_which_they_were_last_added_to() -> None:
    traces = OpenTraces(5.0)
    for trace, now in (("a", 0.0), ("b", 1.0), ("a", 4.0)):
        traces.add([root(trace)], now)
    assert [complete(traces, now) for now in (5.9, 6.0, 9.0)] == ["", "b", "aa"]


def test_records_without_a_trace_are_complete_so_long_after_the_first_of_them_time_and_again() -> None:
    traces = OpenTraces(5.0)
    for _ in range(2):
        traces.add([part("")], 0.0)
        traces.add([part("")], 4.0)
        assert [complete(traces, now) for now in (4.9, 5.0)] == ["", "--"]
    assert traces.late == 0


def test_an_event_of_a_span_is_no_score_whatever_its_name() -> None:
    traces = OpenTraces(5.0)
    late = [replace(part("a", kind=kind), name=completion.SCORE) for kind in ("span", "event", "log")]
    traces.add_late(late)
    assert (traces.late, traces.scores) == (1, 1)


def test_what_comes_late_is_counted_unless_it_is_an_event() -> None:
    traces = OpenTraces(5.0)
    traces.add([root("a")], 0.0)
    assert complete(traces, 5.0) == "a"
    traces.add([part("a"), part("a", kind="event")], 6.0)
    assert traces.late == 1
    assert complete(traces, 100.0, all=True) == ""


def test_scores_of_a_trace_come_after_it_and_are_not_late() -> None:
    traces = OpenTraces(5.0)
    traces.add([root("a")], 0.0)
    assert complete(traces, 5.0) == "a"
    scored = replace(part("a", kind="log"), name="gen_ai.evaluation.result")
    traces.add([scored, scored, part("a", kind="log")], 6.0)
    assert (traces.late, traces.scores) == (1, 2)


def test_at_the_end_all_are_complete() -> None:
    traces = OpenTraces(5.0)
    traces.add([root("a"), part("b"), part("")], 0.0)
    assert complete(traces, 0.0, all=True) == "a b -"


def test_where_too_many_records_wait_those_longest_without_news_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MOST_RECORDS", 3)
    traces = OpenTraces(5.0)
    traces.add([part("a"), part("b"), part("c")], 0.0)
    assert complete(traces, 0.0) == ""
    traces.add([part("a"), part("d")], 1.0)
    assert complete(traces, 1.0) == "b c"
    traces.add([part("d")], 1.0)
    assert complete(traces, 1.0) == "aa"


def test_where_records_that_wait_are_too_long_those_longest_without_news_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion, "MOST_BYTES", 100)
    traces = OpenTraces(5.0)
    traces.add([part("a"), part("b")], 0.0, 100)
    assert complete(traces, 0.0) == ""
    traces.add([part("c")], 1.0, 1)
    assert complete(traces, 1.0) == "a"
    traces.add([part("c")], 1.0, 49)
    assert complete(traces, 1.0) == ""
    traces.add([part("d")], 1.0, 1)
    assert complete(traces, 1.0) == "b"


def test_of_what_was_added_last_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "REMEMBERED", 2)
    recent = Recent()
    for text in "abc":
        recent.add(text)
    assert [text for text in "abc" if text in recent] == ["b", "c"]
