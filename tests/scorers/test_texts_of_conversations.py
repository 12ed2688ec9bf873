"""Which messages of a conversation the scorers of texts score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from evalstone import ScriptedJudge, checks, evaluate, load
from evalstone.agents.sides import TEXTS, Text
from evalstone.errors import ConfigError
from evalstone.questions.statements import JudgeStatements
from evalstone.scorers import SCORERS, Completeness, Summarization
from evalstone.scorers.base import Scorer
from evalstone.scorers.registry import parse_scorer
from evalstone.scorers.sources import TextSource
from evalstone.scorers.text import dice
from evalstone.types import Message, Sample, Score, Skipped
from tests.refusals import refused

CITIES = [
    {"role": "user", "content": "Where do you live?"},
    {"role": "assistant", "content": "In London."},
    {"role": "user", "content": "And where do you work?"},
    {"role": "assistant", "content": "In Paris."},
]
ROW = {"messages": CITIES}
RUN = {"input": {"inputMessages": CITIES[:1]}, "output": [CITIES[1], CITIES[3]]}


def outcome(spec: str, row: Any, judge: Any = "lexical") -> Any:
    return evaluate([row], spec, judge=judge, ledger=None).records[0].outcome


def value(spec: str, row: Any = ROW) -> float:
    scored = outcome(spec, row)
    assert isinstance(scored, Score), scored
    return scored.value


def test_each_choice_is_one_of_the_type() -> None:
    assert get_args(Text) == TEXTS


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("contains(expected=London)", 0),
        ("contains(expected=London, text=last)", 0),
        ("contains(expected=London, text=first)", 1),
        ("contains(expected=Paris, text=first)", 0),
        ("contains(expected=London, text=all)", 1),
        ("contains(expected=Paris, text=all)", 1),
        ("not_contains(expected=London)", 0),
        ("not_contains(expected=London, text=last)", 1),
        ("not_contains(expected=Rome)", 1),
        ("contains(expected='London. In Paris', text=all)", 0),
        ("exact_match(expected='In London.\\n\\nIn Paris.', text=all)", 1),
        ("exact_match(expected='In London.', text=first)", 1),
        ("regex(pattern='London.*Paris', text=all)", 0),
        ("regex(pattern='(?s)London.*Paris', text=all)", 1),
        ("numeric_match(expected=1, text=all)", 0),
        ("json_valid(text=all)", 0),
        ("keyword_coverage(text=all)", 0),
    ],
)
def test_a_scorer_reads_the_last_the_first_or_all_messages(spec: str, expected: float) -> None:
    assert value(spec) == expected


UNANSWERED = {"messages": CITIES[:3]}
ANSWERED = {"messages": CITIES[:3], "output": "In Rome."}
TURNS = {"turns": [{"input": "Where?", "output": "In London."}, {"input": "And?", "output": "In Paris."}]}


@pytest.mark.parametrize(
    ("row", "spec", "expected"),
    [
        ({"messages": CITIES[2:]}, "not_contains(expected=London)", 1),
        ({"output": "In London."}, "not_contains(expected=London)", 0),
        (ANSWERED, "exact_match(expected='In Rome.')", 1),
        (ANSWERED, "exact_match(expected='In London.\\n\\nIn Rome.', text=all)", 1),
        (ANSWERED, "exact_match(expected='In London.', text=first)", 1),
        (UNANSWERED, "contains(expected=London, text=all)", 1),
        (TURNS, "contains(expected=London, text=all)", 1),
        (TURNS, "contains(expected=London, text=first)", 1),
        (TURNS, "contains(expected=Paris, text=first)", 0),
        *[({"input": "q", "output": ""}, f"contains(expected=Oslo, text={text})", 0) for text in TEXTS],
    ],
)
def test_turns_and_an_output_beside_messages_are_texts_of_the_assistant(row: Any, spec: str, expected: float) -> None:
    assert value(spec, row) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_a_sample_without_messages_has_one_text(text: Text) -> None:
    sample = Sample(input="Where?", output="In Paris.")
    assert evaluate([sample], checks.contains("Paris", text=text), ledger=None).records[0].value == 1


def test_a_conversation_that_nobody_has_answered_yet_has_no_last_answer() -> None:
    run = evaluate([UNANSWERED, ROW], "contains(expected=London)", ledger=None)
    assert run.records[0].outcome == Skipped("contains needs output")


def test_a_turn_has_the_texts_of_its_own_messages() -> None:
    per_turn = {"name": "per_turn", "scorer": "contains(expected=London, text=all)"}
    run = evaluate([ROW], [per_turn], ledger=None)
    assert run.records[0].value == 0.5


def test_the_turns_of_a_target_are_read_as_a_whole() -> None:
    def agent(*, input: str, messages: Sequence[Message]) -> str:
        return f"In {input}."

    run = evaluate(
        [{"turns": ["London", "Paris"]}],
        [
            "not_contains(expected=London)",
            "not_contains(expected=London, text=last)",
            "contains(expected=Rome, text=all)",
        ],
        target=agent,
        ledger=None,
    )
    assert [record.value for record in run.records] == [0, 1, 0]


def test_a_recorded_answer_is_no_message_of_the_target_that_answers_anew() -> None:
    scorers = ["not_contains(expected=Paris)", "not_contains(expected=London)", "tool_not_called(tool=search)"]
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    recorded = [*CITIES[:3], {"role": "assistant", "content": "", "tool_calls": [call]}, CITIES[3]]

    def agent(*, input: str) -> str:
        return "In Rome."

    run = evaluate([{"messages": recorded}], scorers, target=agent, ledger=None)
    assert [record.value for record in run.records] == [1, 0, 1]
    (sample,) = list(run.samples or ())
    assert [message.content for message in sample.messages][2:] == [CITIES[2]["content"]]


def test_a_judge_is_shown_the_text_that_is_scored() -> None:
    asked: dict[str, list[str]] = {}
    for text in TEXTS:
        judge = ScriptedJudge({"list_statements": {"statements": []}})
        outcome(f"answer_relevancy(text={text})", ROW, judge)
        asked[text] = [getattr(question, "answer", "") for question in judge.asked]
    first, last = CITIES[1]["content"], CITIES[3]["content"]
    assert asked == {"last": [last], "all": [f"{first}\n\n{last}"], "first": [first]}


def test_a_picture_in_a_message_that_is_read_can_not_be_judged() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}
    row = {"messages": [picture, *CITIES]}
    for text in ("all", "first"):
        skipped = outcome(f"answer_relevancy(text={text})", row, ScriptedJudge([]))
        assert isinstance(skipped, Skipped)
        assert re.search("input .* image", skipped.reason)
    judge = ScriptedJudge({"list_statements": {"statements": []}})
    assert "image" not in str(outcome("answer_relevancy", row, judge))


def test_the_function_of_a_scorer_decides_before_the_conversation() -> None:
    scorer = Summarization(source_from=lambda _: "The source.", text="all")
    judge = ScriptedJudge({"list_questions": {"questions": []}, "list_claims": {"claims": []}})
    evaluate([ROW], scorer, judge=judge, ledger=None)
    assert "The source." in {getattr(question, "text", "") for question in judge.asked}


@pytest.mark.parametrize("kind", SCORERS.values(), ids=lambda kind: kind.name)
def test_every_scorer_of_an_answer_has_the_choice(kind: type[Scorer]) -> None:
    if "output" in kind.required_fields:
        assert issubclass(kind, TextSource)


def test_a_scorer_that_reads_no_text_has_no_such_parameter() -> None:
    for spec in ("tool_called(tool=x, text=all)", "multi_turn_judge(text=all)", "trajectory_quality(text=all)"):
        with pytest.raises(ConfigError, match="unknown parameter 'text'"):
            parse_scorer(spec)


def test_another_choice_is_refused() -> None:
    with refused("text", "'last', 'all' or 'first'"):
        parse_scorer("contains(expected=x, text=both)")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("exact_match(expected='In London.In Paris.', definition=mastra)", 1),
        ("contains(expected='London. In', definition=mastra)", 1),
        ("not_contains(expected=London, definition=mastra)", 0),
        ("regex(pattern='London[.]In', definition=mastra)", 1),
        ("similarity(expected='In London.In Paris.', definition=mastra)", 1),
        ("content_similarity(definition=mastra)", dice("where do you live?", "in london., in paris.")),
        ("tone_consistency(definition=mastra)", 1),
    ],
)
def test_mastra_joins_the_messages_of_a_side_in_its_own_ways(spec: str, expected: float) -> None:
    assert value(spec, RUN) == expected
    if spec.startswith("content"):
        return  # the user says more in the conversation than in the request
    assert value(spec, ROW) == expected  # without a known request


def test_the_original_joins_both_sides_of_a_comparison_by_commas() -> None:
    row = {"input": {"inputMessages": [CITIES[0], CITIES[2]]}, "output": [CITIES[1], CITIES[3]]}
    texts: list[str] = []

    def elements(text: str) -> list[str]:
        texts.append(text)
        return ["x"]

    evaluate([row], Completeness(definition="mastra", elements=elements), ledger=None)
    assert texts == [", ".join(CITIES[n]["content"] for n in side) for side in ((0, 2), (1, 3))]


def test_the_original_judges_the_last_answer_by_the_first_request() -> None:
    row = {"input": {"inputMessages": CITIES[:3]}, "output": [CITIES[3]]}
    script = {
        "list_statements": {"statements": ["In Paris."]},
        "judge_statements": {"verdicts": [{"reason": "r", "verdict": "yes"}]},
    }
    questions: dict[str, str] = {}
    for definition in ("evalstone", "mastra"):
        judge = ScriptedJudge(script)
        outcome(f"answer_relevancy(definition={definition})", row, judge)
        questions[definition] = next(q.question for q in judge.asked if isinstance(q, JudgeStatements))
    assert questions == {"evalstone": CITIES[2]["content"], "mastra": CITIES[0]["content"]}


def test_a_definition_that_chooses_its_messages_takes_no_other_choice() -> None:
    for spec in (
        "contains(expected=x, definition=mastra, text=all)",
        "tone_consistency(definition=mastra, text=first)",
    ):
        with pytest.raises(ConfigError, match=r"mastra chooses .* text$"):
            parse_scorer(spec)
    for spec in ("faithfulness(definition=ragas, text=all)", "tone_consistency(definition=mastra_0_13, text=all)"):
        assert parse_scorer(spec)


def test_a_sample_is_read_the_same_from_messages_and_from_a_run() -> None:
    (run,), (messages,) = load([{"input": {"inputMessages": CITIES[:3]}, "output": CITIES[3:]}]), load([ROW])
    assert [m.content for m in run.messages] == [m.content for m in messages.messages]
