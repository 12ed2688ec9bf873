"""Two accounts of one tool call: what is present is kept from either, and contradictions are named."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from evalstone.types import ToolCall
from evalstone.types.accounts import first_shown, is_hidden, merged_call, merged_calls, merged_value, paired, same_value

WHOLE = ToolCall(name="f", arguments={"city": "Bern"}, result="12", id="c1")
BARE = ToolCall(name="f", state="call")
HIDDEN: list[Any] = [None, "", " ", {}, [], "[REDACTED]", "<redacted>", "***", "__REDACTED__", {"a": "[Filtered]"}]


@pytest.mark.parametrize("value", HIDDEN, ids=repr)
def test_what_is_absent_empty_or_redacted_is_hidden(value: Any) -> None:
    assert is_hidden(value)
    for present in (0, False, "x", {"a": 1}, [0], "redacted", "the [redacted] city"):
        assert not is_hidden(present)
        assert merged_value(value, present) == (present, False)
        assert merged_value(present, value) == (present, False)


SHOWN: list[tuple[tuple[Any, ...], Any]] = [
    (("[REDACTED]", "12"), "12"),
    (("", {}, 0, "12"), 0),
    ((None, "[REDACTED]", ""), "[REDACTED]"),
    ((None, None), None),
]


@pytest.mark.parametrize(("values", "shown"), SHOWN)
def test_of_several_accounts_the_first_that_says_something_is_shown(values: tuple[Any, ...], shown: Any) -> None:
    assert first_shown(*values) == shown


@pytest.mark.parametrize("fields", list(product((True, False), repeat=4)))
def test_a_field_that_one_account_lacks_is_the_other_ones(fields: tuple[bool, ...]) -> None:
    names = ("arguments", "id", "result", "state")
    one = WHOLE
    for name, present in zip(names, fields, strict=True):
        if not present:
            one = replace(one, **{name: getattr(BARE, name)})
    for first, second in ((one, WHOLE), (WHOLE, one)):
        assert merged_call(first, second) == (WHOLE, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ({"a": 1, "b": 2.0}, {"b": 2, "a": 1}),
        ([{"type": "text", "text": "12"}], "12"),
        ([{"text": "a"}, {"text": "b"}], "a\nb"),
        ([{"json": {"a": 1}}], {"a": 1}),
        ({"value": "12"}, "12"),
        ("12", 12),
        ("12\n", "12"),
        ('"12"', "12"),
        ("False", "false"),
        ("None", None),
    ],
)
def test_results_in_different_notation_are_the_same(one: Any, other: Any) -> None:
    assert same_value(one, other)
    assert same_value(other, one)
    calls = [replace(WHOLE, result=result) for result in (one, other)]
    assert merged_call(*calls)[1] == merged_call(*reversed(calls))[1] == ()


@pytest.mark.parametrize(("one", "other"), [("12", "13"), (0, False), ({"a": 1}, {"a": 2}), ("yes", "no"), ([1], [2])])
def test_results_that_differ_are_a_note_and_the_first_account_wins_unless_the_second_is_the_run(
    one: Any, other: Any
) -> None:
    first, second = (replace(WHOLE, result=result) for result in (one, other))
    for ran, kept in ((False, one), (True, other)):
        call, (note,) = merged_call(first, second, ran=ran)
        assert call.result == kept
        assert "result of 'f c1': " in note


def test_arguments_that_differ_are_those_of_the_first_account() -> None:
    other = replace(WHOLE, arguments={"city": "Basel", "unit": "C"})
    call, (note,) = merged_call(WHOLE, other, ran=True)
    assert call.arguments == {"city": "Bern"}
    kept, left = (repr(json.dumps(each.arguments)) for each in (WHOLE, other))
    assert f"'f c1': {kept}, and not {left}" in note


def test_a_result_beside_an_open_call_is_kept_if_the_other_account_has_none() -> None:
    one, other = replace(WHOLE, state="call"), replace(WHOLE, result=None)
    assert merged_call(one, other) == merged_call(other, one) == (WHOLE, ())


def test_an_entry_that_only_the_second_account_has_is_a_contradiction_if_it_says_something() -> None:
    assert merged_value({"a": 1}, {"a": 1, "b": 2}) == ({"a": 1}, True)
    assert merged_value({"a": 1}, {"a": 1, "b": None}) == ({"a": 1}, False)


@pytest.mark.parametrize("text", ['{"a": 1}', "{'a': 1}"])
def test_a_value_is_kept_rather_than_its_notation_as_text(text: str) -> None:
    assert merged_value(text, {"a": 1}) == merged_value({"a": 1}, text) == ({"a": 1}, False)


def test_a_redacted_argument_is_filled_in() -> None:
    shown, hidden = ({"user": "u1", "key": key} for key in ("k", "[REDACTED]"))
    for one, other in ((shown, hidden), (hidden, shown)):
        assert merged_call(replace(WHOLE, arguments=one), replace(WHOLE, arguments=other))[0].arguments == shown


def test_the_arguments_of_a_partial_call_are_incomplete() -> None:
    partial = ToolCall(name="f", arguments={"ci": "Be"}, id="c1", state="partial")
    assert merged_call(partial, WHOLE) == merged_call(WHOLE, partial) == (WHOLE, ())


def test_a_failure_stays_one_and_is_a_contradiction_only_where_the_result_does_not_say_so() -> None:
    failed = replace(WHOLE, result=None, state="error", error="boom")
    for said, notes in (("Error: it went boom", 0), (None, 0), ("12 degrees", 1)):
        returned = replace(WHOLE, result=said)
        for one, other in ((failed, returned), (returned, failed)):
            call, found = merged_call(one, other)
            assert (call.state, call.result, len(found)) == ("error", said, notes)
            assert call.error == (said if other is failed and said else "boom")
    for one, other in ((failed, BARE), (BARE, failed)):
        assert merged_call(one, other) == (failed, ())
    assert merged_call(replace(failed, result="a"), replace(failed, result="b")) == (replace(failed, result="a"), ())


def test_a_cut_text_is_less_than_the_whole_one() -> None:
    whole = "It is sunny in Bern."
    for cut in ("It is sunny in…", "It is sunny in...", "It is sunny in [truncated]"):
        for one, other in ((cut, whole), (whole, cut)):
            assert merged_value(one, other) == (whole, False)
    assert merged_value("It rains in…", whole)[1]


def test_of_two_lists_of_calls_each_call_is_kept_once_in_its_place() -> None:
    a, b, c = (ToolCall(name=name, id=name, state="call") for name in "abc")
    ran = [replace(call, result=1, state="result") for call in (a, b, c)]
    assert merged_calls([a, c], ran)[0] == tuple(ran)
    assert merged_calls([], [a, b]) == ((a, b), ())
    assert merged_calls([a, b], []) == ((a, b), ())
    assert merged_calls([a], [b])[0] == (a, b)


def test_calls_without_ids_are_paired_by_their_arguments_and_else_only_where_nothing_speaks_against_it() -> None:
    one, two, empty = (ToolCall(name="f", arguments=arguments) for arguments in ({"x": 1}, {"x": 2}, {}))
    assert paired([two, one], [one, two]) == {0: 1, 1: 0}
    assert paired([empty], [one, two]) == {0: 0}
    assert paired([replace(one, arguments={"x": 3})], [one, two]) == {}
    assert paired([replace(one, arguments={"x": 1, "state": {}})], [one]) == {0: 0}
    assert paired([replace(one, name="g")], [one]) == {}
    text = ToolCall(name="f", arguments={"city": "Bern"})
    assert paired([replace(text, arguments={"query": "Bern"})], [text, one]) == {0: 0}
    assert paired([replace(text, name="g", arguments={"query": "Bern"})], [text, one]) == {}


def test_equal_calls_are_paired_by_their_results_first() -> None:
    first, second = (ToolCall(name="f", arguments={"x": 1}, result=result) for result in ("a", "b"))
    assert paired([second, first], [first, second]) == {0: 1, 1: 0}


@pytest.mark.slow
def test_the_time_to_pair_calls_grows_with_their_number_not_with_its_square() -> None:
    numbers = range(10_000)
    calls = [ToolCall(name=f"tool {number % 7}", arguments={"asked": number}) for number in numbers]
    runs = [ToolCall(name=f"tool {number % 7}", arguments={"ran": number}) for number in numbers]
    started = time.process_time()
    assert paired(runs, calls) == {number: number for number in numbers}
    assert paired([*runs, runs[0]], calls).keys() == {number for number in numbers if number % 7}
    assert time.process_time() - started < 10


def test_equal_calls_without_results_are_paired_by_their_outcomes_first() -> None:
    open_call, failed = (ToolCall(name="f", arguments={"x": 1}, state=state) for state in ("call", "error"))
    assert paired([failed, open_call], [open_call, failed]) == {0: 1, 1: 0}


def test_a_run_whose_id_no_call_has_is_of_a_call_without_one() -> None:
    run = replace(WHOLE, id="r1")
    assert paired([run], [WHOLE]) == {}
    assert paired([run], [WHOLE, replace(WHOLE, id="")]) == {0: 1}


def test_runs_of_an_id_that_several_calls_have_are_paired_by_arguments_and_else_with_the_last_calls() -> None:
    calls = [ToolCall(name="f", arguments={"x": x}, id="c1") for x in (1, 2)]
    assert paired(calls[:1], calls) == {0: 0}
    assert paired([replace(calls[0], arguments={})], calls) == {0: 1}
    assert paired([replace(calls[0], arguments={}), calls[1]], calls) == {0: 0, 1: 1}


def test_a_failure_in_another_notation_is_no_contradiction() -> None:
    missing = {"type": "missing", "loc": ["city"], "msg": "Field required"}
    told = ToolCall(name="f", id="c1", result=[missing])
    failed = ToolCall(name="f", id="c1", state="error", error=str([missing]))
    call, notes = merged_call(told, failed)
    assert (call.state, notes) == ("error", ())
