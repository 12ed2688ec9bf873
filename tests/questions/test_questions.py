from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone._core.prompts import Prompt
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.questions import (
    Explain,
    FindToxicity,
    FindUsefulPassages,
    JudgePassageStatements,
    JudgeStatements,
    JudgeSteps,
    JudgeToolCalls,
    ListClaims,
    ListStatements,
    RatePassages,
    VerifyClaims,
)
from evalstone.questions.base import Question
from evalstone.questions.custom import AnswerAs, AnswerForm, Choose, GiveNumber
from evalstone.questions.schemas import words_of
from evalstone.questions.verdict import MiniCheck
from tests.fakes import (
    QUESTION_KINDS,
    claims,
    fits,
    material_fields,
    python,
    question_of,
    ratings,
    statements,
    verdicts,
)
from tests.serving import resolved

every = pytest.mark.parametrize("kind", QUESTION_KINDS, ids=lambda kind: kind.kind)
Kind = type[Question[Any]]


def objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every object schema inside a schema."""
    schema = resolved(schema)
    if schema["type"] == "object":
        yield schema
        for member in schema["properties"].values():
            yield from objects(member)
    elif schema["type"] == "array":
        yield from objects(schema["items"])


def reply_of(question: Question[Any]) -> str:
    """The question's example as a judge would send it."""
    example = question.example()
    return example if question.json_schema is None else json.dumps(example)


def test_every_kind_has_a_name_of_its_own():
    assert len({kind.kind for kind in QUESTION_KINDS}) == len(QUESTION_KINDS) >= 14


@every
def test_a_question_is_a_frozen_hashable_value(kind: Kind):
    question = question_of(kind, "Ada.")
    assert question == question_of(kind, "Ada.")
    assert hash(question) == hash(question_of(kind, "Ada."))
    assert question != question_of(kind, "Bob.")
    for field in dataclasses.fields(question):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(question, field.name, getattr(question, field.name))


@every
def test_a_question_survives_pickling_before_and_after_its_fingerprint_was_taken(kind: Kind):
    question = question_of(kind, "Ada \ud800.")
    before = pickle.loads(pickle.dumps(question))
    fingerprint = question.fingerprint
    after = pickle.loads(pickle.dumps(question))
    assert before == after == question
    assert before.fingerprint == after.fingerprint == fingerprint


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process():
    code = (
        "from tests.fakes import *\n"
        "print(*(question_of(kind, 'Ad\\u00e4 \\ud800', items=3).fingerprint for kind in QUESTION_KINDS))"
    )
    here = " ".join(question_of(kind, "Ad\u00e4 \ud800", items=3).fingerprint for kind in QUESTION_KINDS)
    assert {python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")} == {here}


@every
def test_the_fingerprint_changes_with_every_field(kind: Kind):
    question = question_of(kind, "Ada.")
    seen = {question.fingerprint}
    for name, is_list in material_fields(kind).items():
        others: list[Any] = (
            [("Bob.", "Ada."), ("Ada.",), ("Ada.", "Ada.", ""), ()] if is_list else ["Bob.", "", "Ada. "]
        )
        for other in others:
            seen.add(dataclasses.replace(question, **{name: other}).fingerprint)
    prompt = question.prompt
    for changed in (
        dataclasses.replace(prompt, instructions=prompt.instructions + " "),
        dataclasses.replace(prompt, template=prompt.template + " "),
        dataclasses.replace(prompt, fenced=not prompt.fenced),
    ):
        seen.add(dataclasses.replace(question, prompt=changed).fingerprint)
    assert len(seen) == 1 + sum(4 if is_list else 3 for is_list in material_fields(kind).values()) + 3


def test_no_two_kinds_share_a_fingerprint():
    fingerprints = {question_of(kind, "Ada.").fingerprint for kind in QUESTION_KINDS}
    assert len(fingerprints) == len(QUESTION_KINDS)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
@settings(max_examples=50)
def test_texts_cannot_move_from_one_field_to_another_unseen(one: list[str], other: list[str]):
    a, b = VerifyClaims(claims=tuple(one), context=tuple(other)), VerifyClaims(claims=tuple(other), context=tuple(one))
    assert (a.fingerprint == b.fingerprint) == (one == other)


def test_two_prompts_whose_short_fingerprints_are_equal_make_two_questions():
    one, other = (Prompt("", f"Is it {number} or so? {{{{text}}}}") for number in (8681, 9716))
    assert one.fingerprint == other.fingerprint  # 32 bits: a pair is found in a second
    assert len(one.digest) == 32
    assert one.digest != other.digest
    assert ListClaims(text="x", prompt=one).fingerprint != ListClaims(text="x", prompt=other).fingerprint


@dataclass(frozen=True)
class Tone:
    tone: Literal["warm", "cold"]


@dataclass(frozen=True)
class FinerTone:
    tone: Literal["warm", "neutral", "cold"]


TONE = Prompt("", "{{text}}")


class AskTone(Question[Tone]):
    kind = "tone"
    text: str
    prompt: Prompt = TONE


class AskFinerTone(Question[FinerTone]):
    kind = "tone"
    text: str
    prompt: Prompt = TONE


def test_the_form_of_the_reply_is_in_the_fingerprint():
    assert AskTone(text="x").fingerprint != AskFinerTone(text="x").fingerprint
    prompt, values = Prompt("", "{{output}}"), (("output", "x"),)
    forms = [
        AnswerAs(values=values, prompt=prompt, answer=AnswerForm(kind))
        for kind in (Tone, FinerTone, Literal["a", "b"], list[str])
    ]
    assert len({question.fingerprint for question in forms}) == 4


def test_equal_numbers_make_one_question():
    prompt, values = Prompt("", "{{output}}"), (("output", "x"),)
    assert GiveNumber(values=values, prompt=prompt, high=1) == GiveNumber(values=values, prompt=prompt, high=1.0)
    assert (
        GiveNumber(values=values, prompt=prompt, high=1).fingerprint
        == GiveNumber(values=values, prompt=prompt, high=1.0).fingerprint
    )
    assert (
        GiveNumber(values=values, prompt=prompt, high=1).fingerprint
        != GiveNumber(values=values, prompt=prompt, high=1.5).fingerprint
    )


def respelled(data: Any, node: Mapping[str, Any], spell: Callable[[str], str], defined: Mapping[str, Any]) -> Any:
    """A reply with each word out of a list spelled otherwise."""
    if "$ref" in node:
        return respelled(data, defined[node["$ref"].rpartition("/")[2]], spell, defined)
    if "enum" in node:
        return spell(data) if isinstance(data, str) else data
    if isinstance(data, dict):
        members = cast("dict[str, Any]", data)
        return {name: respelled(value, node["properties"][name], spell, defined) for name, value in members.items()}
    if isinstance(data, list):
        return [respelled(value, node["items"], spell, defined) for value in cast("list[Any]", data)]
    return data


OWN = Prompt("", "{{output}}"), (("output", "x"),)
WORDED = [
    question
    for question in (
        *(question_of(kind, "Ada.") for kind in QUESTION_KINDS if kind is not MiniCheck),
        Choose(values=OWN[1], prompt=OWN[0], choices=("Not a match", "match")),
        AnswerAs(values=OWN[1], prompt=OWN[0], answer=AnswerForm(Literal["warm", "cold"])),
        AnswerAs(values=OWN[1], prompt=OWN[0], answer=AnswerForm(list[FinerTone])),
    )
    if words_of(question.json_schema or {})
]


@pytest.mark.parametrize(
    "spell",
    [str.upper, str.title, " {} ".format, "\u201c{}\u201d".format, "'{}.'".format, "{}.\n".format],
    ids=["upper", "title", "blanks", "quotes", "quotes and period", "period"],
)
@pytest.mark.parametrize("question", WORDED, ids=lambda question: question.kind)
def test_a_word_out_of_a_list_is_read_in_any_spelling(question: Question[Any], spell: Callable[[str], str]):
    assert question.json_schema is not None
    example = question.example()
    spelled = respelled(example, question.json_schema, spell, question.json_schema.get("$defs", {}))
    assert spelled != example
    assert question.parse(json.dumps(spelled)) == question.parse(json.dumps(example))


def test_every_family_of_questions_with_words_is_tried():
    assert len(WORDED) >= 12


class Weather(enum.Enum):
    WARM = "warm"
    COLD = "cold"


@pytest.mark.parametrize("kind", [Literal["warm", "cold"] | None, Weather, Weather | None, Weather | Literal["mild"]])
def test_a_word_of_one_of_several_types_is_read_in_any_spelling(kind: Any):
    question = AnswerAs(values=OWN[1], prompt=OWN[0], answer=AnswerForm(kind))
    reply = json.dumps({"reason": "", "answer": "Warm."})
    assert question.parse(reply) == question.parse(reply.replace("Warm.", "warm"))


def test_a_word_that_could_be_two_is_not_guessed():
    question = AnswerAs(values=OWN[1], prompt=OWN[0], answer=AnswerForm(Literal["US", "us", "other"]))
    assert question.parse('{"reason": "", "answer": "us"}') == "us"
    with pytest.raises(ReplyError):
        question.parse('{"reason": "", "answer": "Us"}')
    assert question.parse('{"reason": "", "answer": "Other"}') == "other"


@every
@pytest.mark.parametrize("items", [0, 1, 3])
def test_the_schema_is_strict_all_the_way_down(kind: Kind, items: int):
    schema = question_of(kind, "Ada.", items=items).json_schema
    if schema is None:
        return
    assert schema["type"] == "object"
    json.dumps(schema)
    for inner in objects(schema):
        assert inner["additionalProperties"] is False
        assert inner["required"] == list(inner["properties"])


@every
@pytest.mark.parametrize("items", [0, 1, 3])
@pytest.mark.parametrize("text", ["", "Ada.", "Ada wrote the first program. " * 40])
def test_the_example_fits_the_schema_and_reads_back(kind: Kind, items: int, text: str):
    question = question_of(kind, text, items=items)
    schema = question.json_schema
    assert schema is None or fits(question.example(), schema)
    question.parse(reply_of(question))


@every
def test_the_example_reads_to_a_value_that_can_be_pickled_and_hashed(kind: Kind):
    question = question_of(kind, "Ada.")
    answer = question.parse(reply_of(question))
    assert pickle.loads(pickle.dumps(answer)) == answer
    hash(answer)


@every
def test_the_prompt_has_a_placeholder_for_each_material_and_no_other(kind: Kind):
    question = question_of(kind, "Ada.")
    assert set(question.prompt.placeholders) == set(question.inputs()) == set(material_fields(kind))


@every
def test_the_prompt_is_that_of_the_question_unless_another_is_given(kind: Kind):
    question = question_of(kind, "Ada.")
    other = dataclasses.replace(question.prompt, instructions="Other.")
    assert dataclasses.replace(question, prompt=other).render()[0].startswith("Other.")


@every
def test_the_reason_stands_before_what_it_is_a_reason_for(kind: Kind):
    question = question_of(kind, "Ada.")
    schema = question.json_schema
    if schema is None:
        return
    shown = re.search(r"\{\"(?:.|\n)*", question.form)
    assert shown
    for inner in objects(schema):
        if "reason" in inner["properties"]:
            subject, *rest = inner["properties"]
            if kind in (FindToxicity, JudgePassageStatements):
                assert subject in ("part", "statement")
                subject, *rest = rest
            assert subject == "reason"
            assert all(0 <= shown[0].find('"reason"') < shown[0].find(f'"{key}"') for key in rest)


@every
def test_the_form_has_no_word_that_stands_for_the_material(kind: Kind):
    question = question_of(kind, "Ada.")
    assert not re.findall(rf"<(?:{'|'.join(question.inputs())})>", question.form)


@every
def test_the_form_and_the_instructions_name_every_key_and_every_choice_of_the_reply(kind: Kind):
    question = question_of(kind, "Ada.")
    system = question.render()[0]
    schema = question.json_schema
    if schema is None:
        return
    for inner in objects(schema):
        for key, member in inner["properties"].items():
            assert f'"{key}"' in question.form
            said = re.search(rf"\b{key}\b", system.replace(question.form, ""))
            assert said or key.isdigit() or key in schema["properties"]
            for choice in map(json.dumps, member.get("enum", [])):
                assert choice in question.form
                assert choice in system.replace(question.form, "")


@every
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["claims", "statements", "verdicts", "passages", "missing", "1", "2", "reason", "verdict"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=25)
def test_any_reply_gives_an_answer_or_an_error_of_the_judge(kind: Kind, data: Any):
    with contextlib.suppress(ReplyError, JudgeDeclined):
        question_of(kind, "Ada.").parse(json.dumps(data))


def test_listed_claims_and_statements_come_in_order_without_blank_ones():
    assert ListClaims(text="a b").parse(json.dumps(claims("b", " ", "a "))) == ("b", "a")
    assert ListStatements(answer="a b").parse(json.dumps(statements("b", "", "a"))) == ("b", "a")
    assert ListClaims(text="t").parse('{"claims": []}') == ()


def test_each_claim_gets_its_own_verdict_whatever_the_order_of_the_reply():
    reply = verdicts(("supported", [1]), ("contradicted", [2]), "not_mentioned")["verdicts"]
    turned = {"verdicts": dict(reversed(reply.items()))}
    found = VerifyClaims(claims=("a", "b", "c"), context=("p", "q")).parse(json.dumps(turned))
    assert [(v.claim, v.verdict, v.passages, v.reason) for v in found] == [
        ("a", "supported", (1,), "because 1"),
        ("b", "contradicted", (2,), "because 2"),
        ("c", "not_mentioned", (), "because 3"),
    ]


def test_each_passage_gets_its_own_rating_and_what_is_missing_is_listed():
    question = RatePassages(question="q", answer="a", context=("p", "q"))
    found = question.parse(json.dumps(ratings(("low", False), ("high", True), missing=["the year", " "])))
    assert [(r.passage, r.level, r.used) for r in found.passages] == [(1, "low", False), (2, "high", True)]
    assert found.missing == ("the year",)


def test_a_reply_that_does_not_speak_of_missing_information_misses_none():
    assert (
        RatePassages(question="q", answer="a", context=("p",))
        .parse(json.dumps({"passages": ratings(("low", True))["passages"]}))
        .missing
        == ()
    )


def test_a_passage_is_useful_exactly_for_a_yes():
    found = FindUsefulPassages(question="q", answer="a", context=("p", "q")).parse(json.dumps(verdicts("yes", "no")))
    assert [(v.passage, v.useful) for v in found] == [(1, True), (2, False)]
    with pytest.raises(ReplyError, match=r"verdict 1\.verdict"):
        FindUsefulPassages(question="q", answer="a", context=("p",)).parse(json.dumps(verdicts("partly")))


def test_a_statement_can_address_the_question_partly():
    found = JudgeStatements(question="q", statements=("s", "t")).parse(json.dumps(verdicts("partly", "no")))
    assert [(v.statement, v.addresses) for v in found] == [("s", "partly"), ("t", "no")]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_explanation_is_none(text: str):
    with pytest.raises(ReplyError, match="empty"):
        Explain(measure="m", evidence="e").parse(json.dumps({"explanation": text}))


def test_a_users_own_prompt_changes_the_fingerprint_and_not_the_reading():
    mine = ListClaims(text="t", prompt=Prompt.parse("Claims of {text}?", placeholders=["text"]))
    assert mine.fingerprint != ListClaims(text="t").fingerprint
    assert mine.parse('{"claims": ["a"]}') == ("a",)


def test_lists_of_what_an_agent_left_out_or_did_too_much_may_be_left_out():
    calls = JudgeToolCalls(request="request", answer="answer", calls=("search()",), tools=("search",))
    assert calls.from_json({"calls": {"1": {"reason": "r", "appropriate": True}}}).missing == ()
    steps = JudgeSteps(task="task", steps=("search",), expected=())
    found = steps.from_json({"steps": {"1": {"reason": "r", "necessary": True, "in_order": True}}})
    assert (found.missing, found.extra) == ((), ())
    with pytest.raises(ReplyError, match="extra"):
        steps.from_json({"steps": {"1": {"reason": "r", "necessary": True, "in_order": True}}, "extra": "none"})
