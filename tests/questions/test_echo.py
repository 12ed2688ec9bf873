"""A judge that repeats what it was shown, in place of judging, gets no score from any question."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from evalstone import Score, ScriptedJudge, evaluate
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.custom import AnswerAs, AnswerForm, Choose, GiveNumber
from evalstone.questions.rating import RateByCriterion
from evalstone.questions.schemas import words_of
from evalstone.questions.verdict import GiveVerdict
from evalstone.scorers.registry import SCORERS
from tests.fakes import QUESTION_KINDS, question_of

SHOWN = Prompt("", "{{output}}\n\nWhat about it?")
OWN: tuple[Question[Any], ...] = (
    Choose(values=(("output", "Ada lived."),), prompt=SHOWN, choices=("right", "wrong")),
    GiveNumber(values=(("output", "Ada lived."),), prompt=SHOWN, high=10),
    RateByCriterion(values=(("output", "Ada lived."),), prompt=SHOWN, levels=5),
    AnswerAs(values=(("output", "Ada lived."),), prompt=SHOWN, answer=AnswerForm(int)),
    AnswerAs(values=(("output", "Ada lived."),), prompt=SHOWN, answer=AnswerForm(list[str])),
)
QUESTIONS = tuple(question_of(kind, "Ada lived in London.") for kind in QUESTION_KINDS) + OWN
every = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.kind)


def form_of(question: Question[Any]) -> str:
    """The JSON part of the form that the instructions give."""
    return question.form.partition(": ")[2]


def filled(question: Question[Any], place: int, text: str) -> str:
    """The form with the verdict at `place` of its words, a number, and a placeholder wherever it asks for text."""
    form = form_of(question)

    def value(match: re.Match[str]) -> str:
        inside = match[1]
        if '"' in inside:
            return json.dumps(re.findall(r'"([^"]*)"', inside)[place])
        if "number" in inside or inside[0].isdigit():
            return "1"
        return "true" if "true" in inside else json.dumps(text)

    full = re.sub(r"<([^<>]*)>", value, form)
    if first := re.search(r'": (\{"reason"[^{}]*\})', full):
        full = re.sub(r'": …', lambda _: f'": {first[1]}', full)
    return full.replace(", …", "")


def examples(question: Question[Any]) -> list[str]:
    """The replies in the worked examples of the instructions."""
    return [
        reply.strip() for reply in re.findall(r"Reply: (\{.*?\})(?:\n[A-Z]|\Z)", question.prompt.example, re.DOTALL)
    ]


def echoes(question: Question[Any]) -> Iterator[str]:
    """What a model says that repeats its instructions."""
    system, user = question.render()
    yield form_of(question)
    yield system
    yield user
    yield f"```json\n{form_of(question)}\n```"
    if question.json_schema is not None:
        yield json.dumps(question.json_schema)
    for text in (
        "…",
        "...",
        "<string>",
        "<text>",
        "text",
        "string",
        "reason",
        "your explanation here",
        "[Insert reason]",
    ):
        for place in (0, -1):
            yield filled(question, place, text)
    yield from examples(question)


@every
def test_an_echo_is_no_answer(question: Question[Any]) -> None:
    for echo in filter(None, echoes(question)):
        try:
            answer = question.parse(echo)
        except ReplyError:
            continue
        assert isinstance(question, GiveVerdict), (echo, answer)
        assert answer.verdict == "undecided", (echo, answer)


def test_a_form_of_ones_own_takes_the_names_of_fields_for_words() -> None:
    question = AnswerAs(values=(("output", "Ada lived."),), prompt=SHOWN, answer=AnswerForm(list[str]))
    assert question.parse('{"answer": ["reason", "text", "-"]}') == ["reason", "text", "-"]
    with pytest.raises(ReplyError, match="is a placeholder"):
        question.parse('{"answer": ["<text>"]}')


def test_the_echoes_are_what_a_model_could_send() -> None:
    # A reply that differs from these only in its words is an answer: it's not their shape that keeps them out.
    for question in QUESTIONS:
        if question.json_schema is None or question.kind in ("answer_as", "compare_statements", "judge_execution"):
            continue
        text = "Ada lived in London."
        value = question.parse(filled(question, 0, text))
        assert value is not None


def test_worked_examples_are_replies_of_their_question() -> None:
    with_example = [question for question in QUESTIONS if question.prompt.example]
    assert {question.kind for question in with_example} == {
        "list_claims", "verify_claims", "claim_supported",
        "judge_statements", "rate_passages", "find_toxicity", "check_goal", "write_criteria",
    }  # fmt: skip
    for question in with_example:
        assert examples(question)
        for reply in examples(question):
            data = json.loads(reply)
            words = words_of(question.json_schema or {})
            given = re.findall(r'"verdict": "(\w+)"', reply)
            assert isinstance(data, dict)
            assert set(given) <= set(words)
    verified = next(question for question in with_example if question.kind == "verify_claims")
    assert len(set(re.findall(r'"verdict": "(\w+)"', examples(verified)[0]))) == 3


SAMPLE = {
    "id": "1",
    "input": "When was the harbor built?",
    "output": "The harbor was built in 1902. It has two docks.",
    "reference": "The harbor was built in 1902.",
    "context": ["The harbor was built in 1902.", "It has two docks."],
    "instructions": "Be brief.",
    "messages": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "In 1902."}],
    "metadata": {
        "criterion": "The assistant is brief.",
        "noisy_query": "When was the harbour bilt?",
        "rubric": ["It says the year."],
        "topics": ["harbors"],
    },
}


def judged() -> list[str]:
    return [name for name, kind in SCORERS.items() if kind.questions]


@pytest.mark.parametrize("echo", range(4))
@pytest.mark.parametrize("scorer", judged())
def test_no_scorer_scores_an_echo(scorer: str, echo: int) -> None:
    def parrot(question: Question[Any]) -> str:
        said = [form_of(question), question.render()[0], filled(question, 0, "…")]
        return [*said, (examples(question) or said)[0]][echo]

    run = evaluate([SAMPLE], scorer, judge=ScriptedJudge(parrot, retries=0), ledger=None)
    for record in run.records:
        assert not isinstance(record.outcome, Score) or not record.calls, record.outcome
