"""Reasoning in front of an application's outputs: scored as a run scores it, by the same choice."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from evalstone import Live, evaluate, guard
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.targets import Answer
from tests.live.conftest import Start
from tests.live.test_asgi import app, asked, read
from tests.live.test_live import found

THOUGHT = "<think>The answer is A? Not Berlin.</think>\nB"
CHECKS = ("contains(expected=Berlin)", "exact_match(expected=B)", "not_contains(expected=Berlin)")
NOTE = "An output begins with a model's reasoning, such as <think>…</think>; it"
NOTES = {
    False: f"{NOTE} is not scored (keep_reasoning=True scores it).",
    True: f"{NOTE} is scored as a part of the answer.",
}
keeping = pytest.mark.parametrize("keep", [False, True])


def of_run(*, keep: bool) -> list[float | None]:
    """What a run scores."""
    return [record.value for record in evaluate([THOUGHT_ROW], CHECKS, keep_reasoning=keep, ledger=None).records]


THOUGHT_ROW = {"input": "A or B?", "output": THOUGHT}


@keeping
def test_a_guard_decides_by_the_scores_of_a_run_and_says_once_whether_reasoning_is_scored(
    keep: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check = guard(min=dict.fromkeys(CHECKS, 0.5), mode="flag", keep_reasoning=keep)
    for _ in range(2):
        assert [record.value for record in check(THOUGHT_ROW).records] == of_run(keep=keep)
    assert [entry.getMessage() for entry in caplog.records] == [f"guard: {NOTES[keep]}"]


@keeping
@pytest.mark.parametrize("returned", [THOUGHT, Answer(output=THOUGHT), {"output": THOUGHT}])
def test_a_protected_function_is_checked_by_the_scores_of_a_run(keep: bool, returned: object) -> None:
    @guard(min=dict.fromkeys(CHECKS, 0.5), keep_reasoning=keep).protect(fallback=lambda verdict: verdict)
    def answer(input: str) -> Any:
        return returned

    verdict = answer("A or B?")
    assert [record.value for record in verdict.records] == of_run(keep=keep)


def test_a_guard_says_nothing_of_reasoning_where_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    guard(min=dict.fromkeys(CHECKS, 0.5))(output="B <think>")
    assert not caplog.records


def submitted(live: Live) -> None:
    live.submit(THOUGHT_ROW)


def watched(live: Live) -> None:
    @live.watch
    def answer(input: str) -> str:
        return THOUGHT

    answer("A or B?")


def served(live: Live) -> None:
    asked(live.asgi(app, read), THOUGHT.replace("\n", "\\n"))  # it answers in JSON


@keeping
@pytest.mark.parametrize("door", [submitted, watched, served])
def test_live_scores_are_those_of_a_run_and_say_whether_reasoning_was_scored(
    start: Start, caplog: pytest.LogCaptureFixture, keep: bool, door: Callable[[Live], None]
) -> None:
    caplog.set_level(logging.WARNING, "evalstone.live")
    live = start(list(CHECKS), keep_reasoning=keep)
    for _ in range(2):
        door(live)
    rows = found(live)
    values = [[row.value for row in rows if row.signature.startswith(check.partition("(")[0])] for check in CHECKS]
    assert values == [[value] * 2 for value in of_run(keep=keep)]
    assert {row.kept_reasoning for row in rows} == {keep}
    assert [entry.getMessage() for entry in caplog.records] == [f"live: {NOTES[keep]}"]


def test_a_worker_process_has_the_same_choice_and_the_words_of_the_command_line(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    live = start(CHECKS[0], process=True, front_end=COMMAND_LINE)
    submitted(live)
    assert [(row.value, row.kept_reasoning) for row in found(live)] == [(0.0, False)]
    live.close(5)
    assert "(--keep-reasoning scores" in capfd.readouterr().err


def test_outputs_without_reasoning_are_in_neither_kind(start: Start) -> None:
    live = start(CHECKS[0], keep_reasoning=True)
    live.submit(output="Berlin")
    assert [(row.value, row.kept_reasoning) for row in found(live)] == [(1.0, None)]
