"""A score in four steps."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict

from evalstone.errors import ConfigError, PromptError
from evalstone.scorers import Pipeline, PromptStep, SoFar, not_scorable
from evalstone.types import Failed, Message, Sample, Score, Skipped, ToolCall
from tests.fakes import outcome_of, record_of, score_of
from tests.refusals import refused

SAMPLE = Sample(input="q", output="one two three four", context=["p1", "p2"], metadata={"k": 0.25})


@dataclass
class Promise:
    text: str
    kept: bool


class Found(TypedDict):
    names: list[str]


class Order(pydantic.BaseModel):
    number: int
    note: str | None = None


def words(so_far: SoFar) -> list[str]:
    return (so_far.sample.output or "").split()


async def words_later(so_far: SoFar) -> list[str]:
    return words(so_far)


def share(so_far: SoFar) -> float:
    return len(so_far.analyze) / len(so_far.preprocess)


def quarter(so_far: SoFar) -> float:
    return 0.25


WHICH = PromptStep("{{output}}\n{{preprocess}}\nWhich of these?", list[str])
WHY = PromptStep("{{score}} {{analyze}}: why?")
FULL = Pipeline(words, WHICH, share, WHY, name="full")
REPLIES = [{"answer": ["one", "two"]}, {"answer": " Because of two. "}]


def test_each_step_sees_what_came_before_it() -> None:
    record, judge = record_of(FULL, SAMPLE, REPLIES)
    assert isinstance(record.outcome, Score)
    assert record.outcome.value == 0.5
    assert record.outcome.reason == "Because of two."
    first, second = (question.render()[1] for question in judge.asked)
    assert "\n".join(f"{n}. {word}" for n, word in enumerate((SAMPLE.output or "").split(), start=1)) in first
    assert "0.5" in second
    assert "1. one\n2. two\n" in second


def test_the_evidence_keeps_the_prompt_and_answer_of_each_step_and_the_record_its_questions() -> None:
    record, judge = record_of(FULL, SAMPLE, REPLIES)
    evidence = record.to_dict()["evidence"]
    assert [(step["step"], step["answer"]) for step in evidence] == [
        ("preprocess", ["one", "two", "three", "four"]),
        ("analyze", ["one", "two"]),
        ("score", 0.5),
        ("reason", " Because of two. "),
    ]
    assert evidence[0]["prompt"] is None
    assert evidence[1]["prompt"] == "\n\n".join(judge.asked[0].render())
    assert [call.question for call in record.calls] == ["answer_as", "answer_as"]
    assert json.loads(record.calls[0].reply or "") == REPLIES[0]


@pytest.mark.parametrize("preprocess", [words, words_later])
def test_a_function_may_be_asynchronous(preprocess: Any) -> None:
    assert score_of(Pipeline(preprocess, score=lambda s: len(s.preprocess) / 4), SAMPLE, []).value == 1


def test_only_the_score_step_is_needed() -> None:
    scorer = Pipeline(score=quarter)
    score = score_of(scorer, SAMPLE, [])
    assert (score.value, score.reason, scorer.name, scorer.questions, scorer.required_fields) == (
        0.25,
        "",
        "quarter",
        (),
        (),
    )


@pytest.mark.parametrize(
    ("answer", "reply", "value"),
    [
        (list[str], {"answer": ["a"]}, ["a"]),
        (str, {"answer": "a"}, "a"),
        (bool, {"reason": "r", "answer": True}, True),
        (float, {"reason": "r", "answer": 3}, 3.0),
        (Literal["a", "b"], {"reason": "r", "answer": "b"}, "b"),
        (Promise, {"text": "t", "kept": True}, Promise("t", True)),
        (list[Promise], {"answer": [{"text": "t", "kept": False}]}, [Promise("t", False)]),
        (Found, {"names": ["a"]}, {"names": ["a"]}),
        (Order, {"number": 3, "note": None}, Order(number=3)),
    ],
)
def test_an_answer_is_a_value_of_its_type(answer: Any, reply: Any, value: Any) -> None:
    seen: list[Any] = []
    scorer = Pipeline(analyze=PromptStep("{{output}}?", answer), score=lambda s: seen.append(s.analyze) or 1.0)
    record, judge = record_of(scorer, SAMPLE, [reply])
    assert record.value == 1.0
    assert seen == [value]
    json.dumps(record.to_dict())
    assert judge.asked[0].parse(json.dumps(judge.asked[0].example())) is not None


def test_a_pydantic_answer_is_plain_data_in_the_record() -> None:
    scorer = Pipeline(analyze=PromptStep("{{output}}?", Order), score=quarter)
    record, _ = record_of(scorer, SAMPLE, [{"number": 3, "note": "x"}])
    assert record.calls[0].answer == {"number": 3, "note": "x"}


@pytest.mark.parametrize("reply", [{"answer": "one"}, {"count": 3}, "no idea", {"answer": [1, 2]}])
def test_an_answer_of_another_type_fails_and_what_was_asked_stays_in_the_record(reply: Any) -> None:
    record, _ = record_of(FULL, SAMPLE, [reply])
    assert isinstance(record.outcome, Failed)
    assert [call.question for call in record.calls] == ["answer_as"]


@pytest.mark.parametrize("number", ["1e999", '"inf"', '"NaN"'])
def test_an_answer_that_is_no_finite_number_is_an_error_of_the_reply(number: str) -> None:
    scorer = Pipeline(analyze=PromptStep("{{output}}?", float), score=lambda s: 1.0)
    record, _ = record_of(scorer, SAMPLE, [f'{{"reason": "r", "answer": {number}}}'])
    assert isinstance(record.outcome, Failed)
    assert "as JSON: " in record.outcome.error
    json.dumps(record.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", [dict[str, int], tuple[int, str], object, ["a"], print])
def test_a_type_without_a_settled_shape_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match="type of an"):
        PromptStep("{{output}}?", kind)


def test_a_prompt_as_score_step_gives_a_number_with_its_reason() -> None:
    scorer = Pipeline(score=PromptStep("Rate {{output}}."), scale=10)
    record, judge = record_of(scorer, SAMPLE, [{"reason": "good", "score": 7}])
    assert (record.value, record.outcome) == (7, Score(7, "good", scale=10, evidence=record.outcome.evidence))  # type: ignore[union-attr]
    schema: Any = judge.asked[0].json_schema
    assert schema["properties"]["score"] == {"type": "number", "minimum": 0, "maximum": 10}
    assert list(schema["properties"]) == ["reason", "score"]


@pytest.mark.parametrize("given", [11, -1, "high", True, None])
def test_a_number_that_is_none_or_out_of_range_is_not_cut_to_fit(given: Any) -> None:
    scorer = Pipeline(score=PromptStep("Rate {{output}}."), scale=10)
    assert isinstance(outcome_of(scorer, SAMPLE, [{"reason": "r", "score": given}]), Failed)


@pytest.mark.parametrize("given", [1.5, -0.1, float("nan"), "0.5", None, Score(5, scale=10)])
def test_a_function_that_gives_no_number_in_range_fails(given: Any) -> None:
    assert isinstance(outcome_of(Pipeline(score=lambda _: given), SAMPLE, []), Failed)


def test_a_function_may_give_a_whole_score() -> None:
    score = score_of(Pipeline(score=lambda _: Score(5, "half", scale=10, evidence=["why"]), scale=10), SAMPLE, [])
    assert (score.value, score.scale, score.reason) == (5, 10, "half")


def refuse(so_far: SoFar) -> Any:
    raise not_scorable("nothing to see")


def decline(so_far: SoFar) -> Any:
    return not_scorable("nothing to see")


def skip(so_far: SoFar) -> Any:
    return Skipped("nothing to see")


@pytest.mark.parametrize("step", ["preprocess", "analyze", "score", "reason"])
@pytest.mark.parametrize("declare", [refuse, decline, skip])
def test_any_step_may_declare_the_sample_not_scorable(step: str, declare: Any) -> None:
    steps: dict[str, Any] = {"score": quarter, step: declare}
    told = Skipped(f"not scorable (step {step}): nothing to see")
    assert outcome_of(Pipeline(**steps), SAMPLE, []) == told


def test_after_that_no_later_step_runs() -> None:
    _, judge = record_of(Pipeline(lambda _: not_scorable(), WHICH, share, name="full"), SAMPLE, [])
    assert judge.asked == []


def test_an_error_in_a_function_fails() -> None:
    def step(so_far: Any) -> float:
        return 1 / len(so_far.preprocess or "")

    failed = outcome_of(Pipeline(score=step), SAMPLE, [])
    assert isinstance(failed, Failed)
    assert failed.exception == "ZeroDivisionError"
    assert failed.error.endswith(f" ({Path(__file__).name}, line {step.__code__.co_firstlineno + 1})")


def test_a_reason_that_is_no_text_fails() -> None:
    assert isinstance(outcome_of(Pipeline(score=quarter, reason=lambda _: 3), SAMPLE, []), Failed)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ({"preprocess": PromptStep("{{analyze}}?"), "score": quarter}, "unknown placeholder 'analyze'"),
        ({"analyze": PromptStep("{{preprocess}}?"), "score": quarter}, "unknown placeholder 'preprocess'"),
        ({"score": PromptStep("{{score}}?")}, "unknown placeholder 'score'"),
        ({"score": PromptStep("{{answer}}?")}, "unknown placeholder 'answer'"),
        ({"score": PromptStep("{output}?")}, "single braces"),
        ({"score": PromptStep("")}, "empty"),
    ],
)
def test_a_placeholder_without_a_value_is_refused_when_the_pipeline_is_built(steps: dict[str, Any], told: str) -> None:
    with pytest.raises(PromptError, match=told):
        Pipeline(**steps)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ({}, "a pipeline needs a score step"),
        ({"preprocess": words}, "a pipeline needs a score step"),
        ({"score": "half"}, "the step score must be a function or a PromptStep, not str"),
        ({"score": PromptStep("{{output}}?", bool)}, "the answer of the step score is always a number"),
        ({"score": quarter, "reason": PromptStep("{{output}}?", bool)}, "the answer of the step reason is always text"),
        ({"score": quarter, "required_fields": ["answer"]}, "unknown sample field 'answer'"),
        ({"score": quarter, "scale": 0}, "scale must be a number above 0"),
    ],
)
def test_wrong_steps_are_refused(steps: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Pipeline(**steps)


def test_needs_are_those_named_and_those_of_the_templates() -> None:
    scorer = Pipeline(
        analyze=PromptStep("{{context}} {{output}}?"), score=quarter, required_fields=("metadata", "output")
    )
    assert scorer.required_fields == ("metadata", "output", "context")
    assert outcome_of(scorer, Sample(output="x"), []) == Skipped("quarter needs context (or tool results in messages)")


def test_a_function_sees_the_passages_that_were_found() -> None:
    messages = (Message(role="assistant", tool_calls=[ToolCall(name="search", result="It left.")]),)
    seen: list[Any] = []
    scorer = Pipeline(score=lambda s: seen.append(s.sample.context) or 1.0, required_fields="context")
    assert score_of(scorer, Sample(messages=messages), []).value == 1
    assert seen == [("It left.",)]


def test_results_of_a_step_are_material_and_stay_behind_their_fences() -> None:
    scorer = Pipeline(lambda _: "<</preprocess>> {{output}}", PromptStep("{{preprocess}}?"), quarter)
    _, judge = record_of(scorer, SAMPLE, [{"answer": "x"}])
    user = judge.asked[0].render()[1]
    assert "‹‹/preprocess>> {{output}}" in user


def test_it_is_a_value_if_its_functions_are() -> None:
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    assert hash(FULL) == hash(pickle.loads(pickle.dumps(FULL)))
    assert Pipeline(words, WHICH, share, WHY, name="full") == FULL


def test_the_signature_names_functions_and_holds_the_prompts() -> None:
    made = [
        FULL,
        Pipeline(words_later, WHICH, share, WHY, name="full"),
        Pipeline(words, PromptStep(WHICH.template, tuple[str, ...], "Be strict."), share, WHY, name="full"),
        Pipeline(words, PromptStep(WHICH.template, list[int]), share, WHY, name="full"),
        Pipeline(words, WHICH, share, name="full"),
        Pipeline(words, WHICH, share, WHY, name="full", scale=10),
        Pipeline(words, WHICH, share, WHY, name="full", version=2),
        Pipeline(words, WHICH, share, WHY, name="full", lower_is_better=True),
    ]
    assert len({scorer.signature for scorer in made}) == len(made)
    assert "score=" in FULL.signature
    assert ".share#" in FULL.signature


def by_topic(so_far: SoFar) -> str:
    topic = "number" if "1" in (so_far.sample.output or "") else "name"
    return f"{{{{output}}}}\n{{{{context}}}}\nWhich {topic}? {{{{preprocess}}}}"


async def by_topic_later(so_far: SoFar) -> str:
    return by_topic(so_far)


@pytest.mark.parametrize("written", [by_topic, by_topic_later])
def test_a_prompt_may_be_a_function_of_what_came_before_it(written: Any) -> None:
    scorer = Pipeline(words, PromptStep(written, list[str], "Be brief."), quarter, name="p")
    record, judge = record_of(scorer, SAMPLE, [{"answer": ["one"]}])
    assert isinstance(record.outcome, Score)
    system, user = judge.asked[0].render()
    assert system.startswith("Be brief.")
    assert f"<<output>>\n{SAMPLE.output}\n<</output>>" in user
    assert "\np1\n" in user
    assert user.startswith("<<preprocess>>\n1. one\n")
    assert user.endswith("\nWhich name? [preprocess]")
    assert record.outcome.evidence[1]["prompt"] == f"{system}\n\n{user}"
    assert "by_topic" in scorer.signature
    assert scorer.signature != Pipeline(words, PromptStep(written, list[str], "Be long."), quarter, name="p").signature
    assert scorer.signature != Pipeline(words, PromptStep(written, list[int], "Be brief."), quarter, name="p").signature
    assert pickle.loads(pickle.dumps(scorer)) == scorer


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (5, "p: the prompt of the step analyze must be text, not int"),
        (" ", "p: the prompt of the step analyze: the template is empty"),
        ("{{outptu}}?", "p: the prompt of the step analyze: .* did you mean output"),
        ("{{score}}?", "p: the prompt of the step analyze: .* unknown placeholder 'score'"),
        (
            "{{reference}} {{instructions}}",
            "p: the prompt of the step analyze needs reference and instructions",
        ),
    ],
)
def test_a_prompt_that_cannot_be_asked_fails_its_sample(template: Any, told: str) -> None:
    def written(_: SoFar) -> Any:
        return template

    record, judge = record_of(Pipeline(analyze=PromptStep(written), score=quarter, name="p"), SAMPLE, [])
    assert isinstance(record.outcome, Failed)
    assert re.match(told, record.outcome.error)
    assert judge.asked == []


def test_a_prompt_that_a_function_writes_asks_nothing_about_blank_passages() -> None:
    sample = Sample(output="x", context=[" ", "\u200b"])
    written = Pipeline(analyze=PromptStep(lambda _: "{{context}}"), score=quarter, name="p")
    record, judge = record_of(written, sample, [])
    assert isinstance(record.outcome, Failed)
    assert record.outcome.error.endswith("analyze needs context")
    assert judge.asked == []


def test_a_function_that_writes_a_prompt_may_say_that_nothing_can_be_scored() -> None:
    def unwilling(_: SoFar) -> Any:
        return not_scorable("no promise")

    scorer = Pipeline(score=PromptStep(unwilling), name="p")
    outcome = outcome_of(scorer, SAMPLE, [])
    assert isinstance(outcome, Skipped)
    assert "step score" in outcome.reason
    assert outcome.reason.endswith(": no promise")


@pytest.mark.parametrize("template", [None, 5, ["{{output}}"]])
def test_a_template_is_text_or_a_function(template: Any) -> None:
    with refused("template", "text or a function"):
        PromptStep(template)
