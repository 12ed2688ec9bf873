"""Conversations that are longer than one question are read in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from evalstone.errors import QuestionTooLong
from evalstone.questions import CheckGoal, JudgeExecution, JudgePlan, JudgeRequests, ListPlan, ListRequests
from evalstone.questions.base import Ask, Question
from evalstone.questions.conversation import GoalVerdict, RequestVerdict
from evalstone.questions.parts import Space
from evalstone.questions.plans import PlanExecution, PlannedStepVerdict
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")

FILLER = "Nothing of this is of any use to anyone here or there. " * 5
"""About 100 tokens."""


def read(question: Question[A], answer: Callable[[Any], Any], shorter: Question[Any]) -> tuple[A, list[Any]]:
    """What a question comes to in parts, for a judge that takes hardly more than a shorter one, and the parts."""
    limits = ContextLimits(tokens := shorter.size() + 60, longest=tokens)
    parts: list[Any] = []

    async def ask(part: Question[Any]) -> Any:
        assert part.fits(limits)
        parts.append(part)
        return answer(part)

    assert not question.fits(limits)
    return asyncio.run(question.in_parts(cast(Ask, ask), limits)), parts


def goal_verdict(criterion: str, conversation: tuple[str, ...]) -> GoalVerdict:
    """The last passage that has "criterion: done" or "criterion: undone" decides."""
    for number, text in reversed(list(enumerate(conversation, start=1))):
        if f"{criterion}: undone" in text:
            return GoalVerdict(criterion, "failed", (number,))
        if f"{criterion}: done" in text:
            return GoalVerdict(criterion, "reached", (number,))
    return GoalVerdict(criterion, "not_shown")


def test_the_last_part_that_decides_a_criterion_counts_and_is_cited_as_in_the_whole() -> None:
    talk = (FILLER, f"a: done. b: done. {FILLER}", FILLER, f"b: undone. {FILLER}", FILLER)
    question = CheckGoal(criteria=("a", "b", "c"), conversation=talk, expected_outcome="It is done.")
    answer, parts = read(
        question,
        lambda part: tuple(goal_verdict(criterion, part.conversation) for criterion in part.criteria),
        CheckGoal(criteria=("a", "b", "c"), conversation=(talk[1],), expected_outcome="It is done."),
    )
    assert [(v.criterion, v.verdict, v.passages) for v in answer] == [
        ("a", "reached", (2,)),
        ("b", "failed", (4,)),
        ("c", "not_shown", ()),
    ]
    # From the end, and no more than has to be asked.
    assert [part.criteria for part in parts] == [("a", "b", "c"), ("a", "b", "c"), ("a", "c"), ("a", "c"), ("c",)]
    assert [part.conversation for part in parts] == [(text,) for text in reversed(talk)]
    assert {part.expected_outcome for part in parts} == {"It is done."}


def test_a_request_is_answered_where_any_part_answers_it() -> None:
    talk = (f"a? {FILLER}", f"b? {FILLER}", f"a! {FILLER}")
    answer, parts = read(
        JudgeRequests(requests=("a", "b"), topics=("t",), conversation=talk),
        lambda part: tuple(
            RequestVerdict(request, request == "a", f"{request}!" in part.conversation[0]) for request in part.requests
        ),
        JudgeRequests(requests=("a", "b"), topics=("t",), conversation=(talk[0],)),
    )
    assert [(v.request, v.on_topic, v.answered) for v in answer] == [("a", True, True), ("b", False, False)]
    assert len(parts) == 3


def test_every_piece_of_a_long_message_says_whose_it_is() -> None:
    talk = ("user:\nGo on.", f"tool call: read\narguments: {{}}\nresult: {FILLER * 6}")
    short = (talk[0], FILLER)
    for question, shorter in (
        (ListRequests(conversation=talk), ListRequests(conversation=short)),
        (ListPlan(conversation=talk), ListPlan(conversation=short)),
        (CheckGoal(criteria=("a",), conversation=talk), CheckGoal(criteria=("a",), conversation=short)),
        (JudgeExecution(plan=("a",), conversation=talk), JudgeExecution(plan=("a",), conversation=short)),
    ):
        seen: list[str] = []

        def answer(part: Any, seen: list[str] = seen) -> Any:
            seen.extend(part.conversation)
            if isinstance(part, JudgeExecution):
                return PlanExecution((PlannedStepVerdict("a", "not_done"),))
            return (GoalVerdict("a", "not_shown"),) if isinstance(part, CheckGoal) else ()

        read(cast("Question[Any]", question), answer, shorter)
        assert seen.count(talk[0]) == 1
        pieces = [text for text in seen if text != talk[0]]
        assert len(pieces) > 2
        assert all(piece.startswith("tool call: read\n") for piece in pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ab:\nOne is. Two is. Three is.", ["ab:\nOne is.", "ab:\n Two is.", "ab:\n Three is."]),
        ("One is here. Two is there.", ["One is here.", " Two is there."]),
        ("a long heading:\nTwo is there.", ["a long heading:\n", "Two is there."]),
    ],
)
def test_a_heading_that_would_take_the_room_is_not_repeated(text: str, pieces: list[str]) -> None:
    space = Space(20, measure=len, headed=True)
    assert list(space.pieces(text)) == pieces
    assert all(len(piece) <= 20 for piece in space.pieces("ab:\n" + "x" * 100))


def test_the_steps_of_a_plan_from_all_parts_are_listed_once() -> None:
    talk = (f"a b {FILLER}", f"b c {FILLER}")
    answer, _ = read(
        ListPlan(conversation=talk),
        lambda part: tuple(part.conversation[0][:3].split()),
        ListPlan(conversation=(talk[0],)),
    )
    assert answer == ("a", "b", "c")


def test_a_step_is_done_in_any_part_and_a_call_is_unplanned_in_its_first_piece() -> None:
    def call(name: str) -> str:
        return f"tool call: {name}\nresult: {FILLER}"

    talk = (call("a"), call("x"), call("b"), f"{call('y')}{FILLER * 3}", call("a"), f"user:\n{FILLER}")
    plan = ("a", "b", "c")

    def answer(part: JudgeExecution) -> PlanExecution:
        names = [text.partition("\n")[0][-1] for text in part.conversation]
        numbers = [tuple(n for n, name in enumerate(names, start=1) if name == step) for step in part.plan]
        verdicts = (
            PlannedStepVerdict(step, "done" if cited else "not_done", cited)
            for step, cited in zip(part.plan, numbers, strict=True)
        )
        unplanned = tuple(n for n, name in enumerate(names, start=1) if name not in (*part.plan, ":"))
        return PlanExecution(tuple(verdicts), unplanned)

    found, parts = read(
        JudgeExecution(plan=plan, conversation=talk), answer, JudgeExecution(plan=plan, conversation=(talk[0],))
    )
    assert [(v.step, v.verdict, v.passages) for v in found.plan] == [
        ("a", "done", (1, 5)),
        ("b", "done", (3,)),
        ("c", "not_done", ()),
    ]
    assert found.unplanned == (2, 4)
    assert len(parts) > len(talk)


MESSAGES = ("user:\nb", "assistant:\nc")


@pytest.mark.parametrize(
    "question",
    [
        CheckGoal(criteria=("a",), conversation=MESSAGES),
        ListRequests(conversation=MESSAGES),
        JudgeRequests(requests=("a",), topics=("t",), conversation=MESSAGES),
        ListPlan(conversation=MESSAGES),
        JudgeExecution(plan=("a",), conversation=MESSAGES),
    ],
    ids=lambda question: question.kind,
)
def test_messages_are_fenced_one_by_one(question: Question[Any]) -> None:
    fenced = (f"<<passage {n}>>\n{text}\n<</passage {n}>>" for n, text in enumerate(MESSAGES, start=1))
    assert "\n".join(fenced) in question.render()[1]


def test_a_plan_is_reviewed_as_a_whole() -> None:
    with pytest.raises(QuestionTooLong, match=r"judge_plan: .* task$"):
        read(JudgePlan(task=FILLER * 3, plan=("a",)), lambda part: None, JudgePlan(task=FILLER, plan=("a",)))


def test_criteria_that_leave_no_room_for_the_conversation_are_refused() -> None:
    question = CheckGoal(criteria=(FILLER * 9,), conversation=(FILLER,))
    with pytest.raises(QuestionTooLong, match="without its conversation"):
        read(question, lambda part: (), CheckGoal(criteria=(FILLER,), conversation=(FILLER,)))


def test_an_example_cites_a_passage_with_words() -> None:
    for conversation, passages, verdict in (((" ", "user:\nb"), [2], "reached"), ((" ", "\n"), [], "not_shown")):
        example = CheckGoal(criteria=("a",), conversation=conversation).example()["verdicts"]["1"]
        assert (example["passages"], example["verdict"]) == (passages, verdict)
