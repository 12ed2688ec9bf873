"""A judge as data."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError, PromptError
from evalstone.questions.custom import Choose
from evalstone.scorers import LLMClassifier
from evalstone.types import Failed, Message, Sample, Score, Skipped, ToolCall
from tests.fakes import outcome_of, record_of, score_of
from tests.refusals import refused

SAMPLE = Sample(input="Where is it?", output="Gone.", context=["It left."], reference="It left today.")
TONE = LLMClassifier(
    "Is {{output}} polite?", name="polite", choices={"polite": 1, "curt": 0.5, "rude": 0, "unclear": None}, scale=10
)


def said(word: str) -> list[Any]:
    return [{"reason": "one word", "verdict": word}]


@pytest.mark.parametrize(("word", "value"), [("polite", 10), ("curt", 5), ("rude", 0), (" Curt ", 5)])
def test_the_score_is_what_the_chosen_word_is_worth(word: str, value: float) -> None:
    score = score_of(TONE, SAMPLE, said(word))
    assert score.value == value
    assert score.scale == 10
    assert score.reason == f"{word.strip().lower()}: one word"
    assert score.evidence.choice == word.strip().lower()


def test_the_word_for_abstaining_skips_the_sample_with_the_judges_reason() -> None:
    outcome = outcome_of(TONE, SAMPLE, said("unclear"))
    assert isinstance(outcome, Skipped)
    assert outcome.reason.endswith(" 'unclear': one word")


def test_a_word_for_abstaining_can_be_named_where_a_file_has_no_none() -> None:
    scorer = LLMClassifier("Is it polite?", abstain="unclear")
    assert scorer.choices == {"yes": 1.0, "no": 0.0, "unclear": None}
    assert isinstance(outcome_of(scorer, SAMPLE, said("unclear")), Skipped)


@pytest.mark.parametrize("reply", [{"reason": "r", "verdict": "nice"}, {"verdict": 1}, {"reason": "r"}, "nice"])
def test_a_reply_that_is_no_choice_fails(reply: Any) -> None:
    assert isinstance(outcome_of(TONE, SAMPLE, [reply]), Failed)


def test_a_reply_of_one_choice_alone_is_that_choice() -> None:
    assert outcome_of(TONE, SAMPLE, ["polite"]) == outcome_of(TONE, SAMPLE, [{"reason": "", "verdict": "polite"}])


def test_the_schema_has_the_reason_first_and_the_choices() -> None:
    _, judge = record_of(TONE, SAMPLE, said("rude"))
    schema: Any = judge.asked[0].json_schema
    assert list(schema["properties"]) == ["reason", "verdict"]
    assert schema["properties"]["verdict"]["enum"] == ["polite", "curt", "rude", "unclear"]


def test_the_prompt_tells_the_words_their_meanings_and_the_callers_instructions() -> None:
    scorer = LLMClassifier("Polite?", instructions="Judge as hosts.", meanings={"no": "an insult"}, abstain="unclear")
    told = scorer.prompt.instructions
    assert told.startswith("Judge as hosts.")
    assert '- "no": an insult' in told
    assert '- "unclear": ' in told


def test_material_goes_in_behind_fences_where_the_holes_are() -> None:
    _, judge = record_of(TONE, SAMPLE, said("rude"))
    fenced, question = judge.asked[0].render()[1].split("\n\n")
    assert fenced == f"<<output>>\n{SAMPLE.output}\n<</output>>"
    assert question == "Is [output] polite?"


def test_needs_follow_from_the_holes() -> None:
    scorer = LLMClassifier("{{context}} {{reference}} {{output}} {{context}}?")
    assert scorer.required_fields == ("context", "reference", "output")
    assert isinstance(outcome_of(scorer, Sample(output="x"), []), Skipped)


def test_a_question_without_holes_shows_input_and_output_or_the_fields_that_are_named() -> None:
    assert LLMClassifier("Polite?").required_fields == ("input", "output")
    assert LLMClassifier("Polite?", fields=["reference", "output"]).required_fields == ("reference", "output")
    question = "Is {{output}} polite?"
    assert LLMClassifier(question, fields=["context"]).prompt.template == f"{{{{context}}}}\n\n{question}"


def test_messages_are_shown_a_line_each_with_the_tools_that_were_called() -> None:
    call = ToolCall(name="search", arguments={"q": "order"}, result={"left": True})
    messages = (
        Message(role="user", content="Where?\nassistant: nowhere"),
        Message(role="assistant", tool_calls=[call]),
        Message(role="assistant", content="Gone."),
    )
    _, judge = record_of(LLMClassifier("{{messages}} Polite?"), Sample(messages=messages), said("yes"))
    lines = [
        f"1. user: {' '.join(messages[0].content.split())}",
        f"2. assistant called search({json.dumps(call.arguments)}): {json.dumps(call.result)}",
        "3. assistant: Gone.",
    ]
    assert "\n".join(lines) in judge.asked[0].render()[1]


def test_passages_are_found_in_tool_results_too() -> None:
    messages = (Message(role="assistant", tool_calls=[ToolCall(name="search", result="It left.")]),)
    _, judge = record_of(LLMClassifier("{{context}} So?"), Sample(messages=messages), said("yes"))
    assert "It left." in judge.asked[0].render()[1]


def test_an_unknown_placeholder_is_refused_when_the_scorer_is_built() -> None:
    with pytest.raises(PromptError, match=r"placeholder 'outptu'; .* output"):
        LLMClassifier("Is {{outptu}} polite?")


@pytest.mark.parametrize("question", ["Is {output} polite?", "{{input}}: is { output } polite?"])
def test_single_braces_are_refused(question: str) -> None:
    with pytest.raises(PromptError, match="single braces"):
        LLMClassifier(question)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"choices": {"yes": 1.0}}, "two or more different words"),
        ({"choices": {"yes": 1.0, "YES ": 0.0}}, "two or more different words"),
        ({"choices": {"yes": 1.0, "": 0.0}}, "two or more different words"),
        ({"choices": {"yes": 1.0, "yes ": 0.0, "no": 0.0}}, "two or more different words"),
        ({"choices": {"yes": 1.0, 2: 0.0}}, "two or more different words"),
        ({"abstain": " "}, "two or more different words"),
        ({"choices": {"yes": 1.5, "no": 0.0}}, "must be a number from 0 to 1"),
        ({"choices": {"yes": True, "no": 0.0}}, "must be a number from 0 to 1"),
        ({"choices": {"yes": float("nan"), "no": 0.0}}, "must be a number from 0 to 1"),
        ({"choices": {"yes": None, "no": None}}, "no choice has a value"),
        ({"choices": ["yes", "no"]}, "choices must be words with their values"),
        ({"meanings": {"maybe": "x"}}, "'maybe', which is not among the choices"),
        ({"fields": ["answer"]}, "unknown sample field 'answer'"),
        ({"name": "my scorer"}, "letters, digits and underscores"),
        ({"name": "my-scorer"}, "letters, digits and underscores"),
        ({"scale": 0}, "scale must be a number above 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        LLMClassifier("Polite?", **options)


def test_an_empty_question_is_refused() -> None:
    for question, fields in ((" ", []), ("", None), ("\n", ["output"])):
        with refused("question", "text that is not blank"):
            LLMClassifier(question, fields=fields)


def test_white_space_around_a_choice_is_no_part_of_it() -> None:
    scorer = LLMClassifier(
        "Polite?", choices={" yes ": 1, "no\n": 0}, meanings={"no ": "an insult"}, abstain=" unclear "
    )
    assert scorer.choices == {"yes": 1, "no": 0, "unclear": None}
    assert scorer.meanings == {"no": "an insult"}
    assert score_of(scorer, SAMPLE, said("Yes")).value == 1
    assert (
        scorer.signature
        == LLMClassifier(
            "Polite?", choices={"yes": 1, "no": 0}, meanings={"no": "an insult"}, abstain="unclear"
        ).signature
    )


@pytest.mark.parametrize("choices", [(), ("yes",), ("yes", " "), ("yes", "YES "), ("a", "b", "a"), ("a", 1)])
def test_a_choice_among_words_needs_two_different_ones(choices: Any) -> None:
    with pytest.raises(ConfigError, match="different words"):
        Choose(values=(("output", "x"),), prompt=Prompt("", "{{output}}?"), choices=choices)


def test_a_choice_is_read_whatever_the_white_space_around_it() -> None:
    question = Choose(values=(("output", "x"),), prompt=Prompt("", "{{output}}?"), choices=(" good ", "bad"))
    assert question.choices == ("good", "bad")
    assert question.parse('{"reason": "r", "verdict": " GOOD "}').choice == "good"


def test_it_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(TONE)) == TONE
    assert hash(TONE) == hash(LLMClassifier(TONE.question, name="polite", choices=TONE.choices, scale=10))
    assert TONE.name == "polite"
    assert LLMClassifier("Is it {{output}}?").name == "is_it"


def test_the_signature_changes_with_whatever_may_change_the_score() -> None:
    made = [
        LLMClassifier("Is {{output}} polite?", name="polite"),
        LLMClassifier("Is {{output}} kind?", name="polite"),
        LLMClassifier("Is {{output}} polite?", name="polite", choices={"yes": 0.9, "no": 0.0}),
        LLMClassifier("Is {{output}} polite?", name="polite", choices={"no": 1.0, "yes": 0.0}),
        LLMClassifier("Is {{output}} polite?", name="polite", meanings={"no": "an insult"}),
        LLMClassifier("Is {{output}} polite?", name="polite", instructions="Be strict."),
        LLMClassifier("Is {{output}} polite?", name="polite", fields=["input"]),
        LLMClassifier("Is {{output}} polite?", name="polite", scale=10),
        LLMClassifier("Is {{output}} polite?", name="polite", lower_is_better=True),
        LLMClassifier("Is {{output}} polite?", name="polite", version=2),
        LLMClassifier("Is {{output}} polite?", name="kind"),
    ]
    signatures = [scorer.signature for scorer in made]
    assert len(set(signatures)) == len(made)
    assert signatures[0].startswith("polite(")
    assert signatures[0].endswith(")@1")


def test_an_explanation_is_asked_for_with_the_question_as_its_meaning() -> None:
    scorer = LLMClassifier("Is {{output}} polite?", name="polite", explain=True)
    outcome = outcome_of(scorer, SAMPLE, [*said("no"), {"explanation": "It is curt."}])
    assert isinstance(outcome, Score)
    assert outcome.reason == "It is curt."
    assert len(scorer.signature.split(", ")) == 2
