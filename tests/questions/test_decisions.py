"""Closed questions as decisions, and answers read from probabilities."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast, get_args

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from evalstone import Prompt, questions
from evalstone._core.json import to_jsonable
from evalstone.errors import ReplyError
from evalstone.questions import (
    CheckCriteria,
    ClaimSupported,
    ComparePair,
    GradeRelevance,
    JudgeAlignment,
    JudgeInstructions,
    JudgePlan,
    JudgeRequests,
    ListClaims,
    MiniCheck,
    Question,
    VerifyClaims,
)
from evalstone.questions.answers import JudgeAnswer, item_probabilities
from evalstone.questions.custom import AnswerAs, AnswerForm, Choose, GiveNumber
from evalstone.questions.decisions import (
    DATA_RULE,
    answers_kind,
    as_decisions,
    read_decisions,
    stored_decisions,
    stored_text,
)
from evalstone.questions.markers import Explains, WorstFirst
from evalstone.questions.rating import RateByCriterion, rating_prompt
from evalstone.questions.verdict import YesNoVerdict

CLOSED = {
    "agrees_with_context",
    "check_conversation",
    "check_criteria",
    "check_goal",
    "claim_supported",
    "compare_pair",
    "correct_against_reference",
    "find_answers",
    "find_useful_passages",
    "grade_against_reference",
    "grade_grounding",
    "grade_relevance",
    "judge_alignment",
    "judge_instructions",
    "judge_opinions",
    "judge_plan",
    "judge_requests",
    "judge_statements",
    "verify_claims",
}
OPEN = {
    "compare_statements",
    "explain",
    "find_toxicity",
    "judge_execution",
    "judge_passage_statements",
    "judge_robustness",
    "judge_steps",
    "judge_tool_calls",
    "list_claims",
    "list_opinions",
    "list_plan",
    "list_questions",
    "list_requests",
    "list_statements",
    "minicheck",
    "rate_passages",
    "write_criteria",
}
KINDS: list[type[Question[Any]]] = [
    kind
    for _, kind in cast("list[tuple[str, Any]]", inspect.getmembers(questions, inspect.isclass))
    if issubclass(kind, Question) and "kind" in dir(cast("object", kind))
]


def stored(question: Question[Any], answers: Any) -> str:
    closed = as_decisions(question)
    assert closed is not None
    return stored_text(question, closed, answers)


def filled(kind: type[Question[Any]]) -> Question[Any]:
    """A question of a kind with two items in each list."""
    needed = [f for f in dataclasses.fields(kind) if f.name != "prompt" and f.name not in kind.settings]
    values = {field.name: ("one", "two") if "tuple" in str(field.type) else "text" for field in needed}
    return kind(**values)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_every_question_is_closed_or_open_and_a_closed_one_reads_any_answer(kind: type[Question[Any]]) -> None:
    question = filled(kind)
    closed = as_decisions(question)
    assert (closed is not None) == (kind.kind in CLOSED)
    assert kind.kind in CLOSED | OPEN
    assert answers_kind(kind) == (closed is not None) or kind is MiniCheck
    if closed is None:
        return
    names = [decision.name for decision in closed.decisions]
    assert len(set(names)) == len(names)
    for decision in closed.decisions:
        assert decision.instructions.endswith(DATA_RULE)
        assert len(decision.options) >= 2
        said = f"{decision.instructions} {decision.options}".lower()
        assert not any(word in said for word in ("in this order:", "reason", "lacking", "passages:", "{{", "<<"))
        # The others say it of the key, which is in the instructions.
        assert all(decision.options.values()) or kind in (JudgeAlignment, JudgePlan, JudgeRequests)
    for place in range(2):  # the first and the second option of each
        answers = [certain(decision.options, place) for decision in closed.decisions]
        found = read_decisions(question, answers)
        again = stored_decisions(question, stored(question, answers))
        assert found == again
        assert found.probability == pytest.approx(0.9)
        assert question.from_jsonable(to_jsonable(found.value)) == found.value


def certain(options: Any, place: int) -> dict[str, float]:
    """Probabilities of .9 for one option."""
    rest = 0.1 / (len(options) - 1)
    return {option: 0.9 if number == place else rest for number, option in enumerate(options)}


def test_a_verdict_of_yes_and_no_is_a_predicate_with_the_definitions_of_the_prompt() -> None:
    closed = as_decisions(ClaimSupported(claim="It is\x00 so.", context=("a", "b")))
    assert closed is not None
    (decision,) = closed.decisions
    assert (decision.name, decision.kind, [*decision.options]) == ("verdict", "predicate", ["yes", "no"])
    assert decision.options["no"].startswith("the passages contradict a part of the claim, or a part of it is in none")
    assert decision.options["no"].endswith("by passages that only say that it may be.")
    assert decision.instructions.startswith("You decide whether some passages support a claim.")
    assert "If passages disagree about the claim and one supports all of it" in decision.instructions
    assert "Do the passages support the claim?" in decision.instructions
    assert "Example" not in decision.instructions
    assert closed.state == {"claim": "It is� so.", "passages": {"1": "a", "2": "b"}}


def test_a_verdict_on_each_item_is_one_decision_each() -> None:
    question = JudgeInstructions(instructions=("Be brief.", "Greet."), request="r", answer="a")
    closed = as_decisions(question)
    assert closed is not None
    assert closed.state["instructions"] == {"1": "Be brief.", "2": "Greet."}
    assert [decision.name for decision in closed.decisions] == ["verdict_1", "verdict_2"]
    assert [decision.kind for decision in closed.decisions] == ["choice"] * 2
    assert [*closed.decisions[0].options] == ["yes", "no", "not_applicable"]
    assert "Decide about number 2 of the instructions only." in closed.decisions[1].instructions
    found = read_decisions(
        question,
        [
            {"yes": 0.2, "no": 0.5, "not_applicable": 0.3},
            {"yes": 0.7, "no": 0.2, "not_applicable": 0.1},
        ],
    )
    assert [verdict.followed for verdict in found.value] == ["no", "yes"]
    assert found.probability == 0.5
    assert found.alternatives is not None
    assert found.alternatives["2.verdict=yes"] == 0.7
    assert found.detail == {
        "verdicts": [{"at": "1.verdict", "probability": 0.5}, {"at": "2.verdict", "probability": 0.7}]
    }


def test_the_verdicts_on_claims_have_their_probabilities_and_no_citations() -> None:
    question = VerifyClaims(claims=("a", "b"), context=("c",))
    verdicts = read_decisions(
        question,
        [
            {"supported": 0.6, "contradicted": 0.3, "not_mentioned": 0.1},
            {"supported": 0.1, "contradicted": 0.8, "not_mentioned": 0.1},
        ],
    ).value
    assert [(v.claim, v.verdict, v.probability, v.passages) for v in verdicts] == [
        ("a", "supported", 0.6, ()),
        ("b", "contradicted", 0.8, ()),
    ]
    with pytest.raises(ReplyError, match="cites the passages that decide it"):  # a judge that writes must cite
        question.parse('{"verdicts": {"1": {"reason": "", "passages": [], "verdict": "supported"}, "2": {}}}')


def test_a_grade_is_the_mean_over_its_levels() -> None:
    question = GradeRelevance(question="q", answer="a")
    closed = as_decisions(question)
    assert closed is not None
    assert [decision.kind for decision in closed.decisions] == ["score"]
    assert [*closed.decisions[0].options] == ["0", "0.25", "0.5", "0.75", "1"]
    found = read_decisions(question, [{"0": 0.1, "0.25": 0.0, "0.5": 0.2, "0.75": 0.0, "1": 0.7}])
    assert (found.value.score, found.probability) == (pytest.approx(0.8), 0.7)


def test_a_reply_of_several_parts_is_one_decision_for_each() -> None:
    closed = as_decisions(JudgeAlignment(system_prompt="", request="r", answer="a", earlier_turns=""))
    assert closed is not None
    assert "system_prompt" not in closed.state
    names = ["intent_score", "requirements_score", "completeness_score", "appropriateness_score"]
    assert [decision.name for decision in closed.decisions] == names
    assert 'Decide about "intent", "score" only.' in closed.decisions[0].instructions
    assert "does the answer respond to what was mainly wanted?" in closed.decisions[0].instructions


def test_two_labels_of_an_item_have_names_of_their_own() -> None:
    closed = as_decisions(JudgeRequests(requests=("a", "b"), topics=("t",), conversation=("c",)))
    assert closed is not None
    assert [decision.name for decision in closed.decisions] == ["on_topic_1", "answered_1", "on_topic_2", "answered_2"]
    assert "true if the assistant takes the request up" in closed.decisions[1].instructions
    assert "true if the request is about" not in closed.decisions[1].instructions


OWN = Prompt("", "Is {{output}} polite?\n\n{{input}}")


def own(kind: type[Any], **settings: Any) -> Any:
    return kind(values=(("output", "o"), ("input", "i")), prompt=OWN, **settings)


def test_questions_of_ones_own() -> None:
    choose = own(Choose, choices=("good", "bad", "so so"), by_probability=True)
    closed = as_decisions(choose)
    assert closed is not None
    assert "Is [output] polite?" in closed.decisions[0].instructions
    assert closed.state == {"output": "o", "input": "i"}
    chosen = read_decisions(choose, [{"good": 0.5, "bad": 0.2, "so so": 0.3}]).value
    assert (chosen.choice, chosen.probabilities) == ("good", {"good": 0.5, "bad": 0.2, "so so": 0.3})
    assert as_decisions(own(GiveNumber, high=3)) is None

    prompt = rating_prompt("Polite.", ["Look."], 3, OWN.template)
    rate = RateByCriterion(values=(("output", "o"), ("input", "i")), prompt=prompt, levels=3)
    closed = as_decisions(rate)
    assert closed is not None
    assert (closed.decisions[0].kind, [*closed.decisions[0].options]) == ("score", ["1", "2", "3"])
    assert "1. Look." in closed.decisions[0].instructions
    assert read_decisions(rate, [{"1": 0.2, "2": 0.3, "3": 0.5}]).value.score == 3


@pytest.mark.parametrize(("levels", "kind"), [(10, "score"), (11, "choice"), (100, "choice")])
def test_a_scale_of_more_than_ten_levels_is_a_choice(levels: int, kind: str) -> None:
    closed = as_decisions(own(RateByCriterion, levels=levels))
    assert closed is not None
    assert (closed.decisions[0].kind, len(closed.decisions[0].options)) == (kind, levels)


@dataclass(frozen=True)
class Tone:
    """A reply type of one's own."""

    polite: bool
    level: Annotated[Literal["low", "high"], WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class Noted(Tone):
    """One with a text that changes the answer."""

    quote: str = ""


@dataclass(frozen=True)
class Explained(Tone):
    """One with texts that only explain."""

    problems: Annotated[tuple[str, ...], Explains()] = ()


class JudgeTone(Question[Tone]):
    kind = "judge_tone"
    text: str
    prompt: Prompt = Prompt("- polite: whether it is polite.\n- low: hardly.", "{{text}}\n\nJudge the tone.")


class JudgeNoted(Question[Noted]):
    kind = "judge_noted"
    text: str
    prompt: Prompt = JudgeTone.prompt


class JudgeExplained(Question[Explained]):
    kind = "judge_explained"
    text: str
    prompt: Prompt = JudgeTone.prompt


def test_a_reply_type_of_ones_own() -> None:
    closed = as_decisions(JudgeTone(text="t"))
    assert closed is not None
    assert [(each.name, each.kind, dict(each.options)) for each in closed.decisions] == [
        ("polite", "predicate", {"yes": "", "no": ""}),
        ("level", "choice", {"low": "", "high": ""}),
    ]
    # A prompt of one's own is kept whole.
    for decision in closed.decisions:
        assert decision.instructions.startswith("- polite: whether it is polite.\n- low: hardly.")
        assert f'Decide about "{decision.name}" only.' in decision.instructions
    answers = [{"yes": 0.6, "no": 0.4}, {"low": 0.1, "high": 0.9}]
    assert read_decisions(JudgeTone(text="t"), answers).value == Tone(polite=True, level="high")
    assert as_decisions(JudgeNoted(text="t")) is None
    assert not answers_kind(JudgeNoted)
    assert read_decisions(JudgeExplained(text="t"), answers).value == Explained(polite=True, level="high")


def test_a_type_with_words_and_numbers_only() -> None:
    closed = as_decisions(own(AnswerAs, answer=AnswerForm(Literal["a", "b"])))
    assert closed is not None
    assert read_decisions(own(AnswerAs, answer=AnswerForm(bool)), [{"yes": 0.1, "no": 0.9}]).value is False
    assert as_decisions(own(AnswerAs, answer=AnswerForm(str))) is None
    assert as_decisions(own(AnswerAs, answer=AnswerForm(list[str]))) is None
    assert as_decisions(own(AnswerAs, answer=AnswerForm(float))) is None


def test_no_items_are_no_decisions() -> None:
    question = CheckCriteria(criteria=(), task="t", answer="a")
    closed = as_decisions(question)
    assert closed is not None
    assert closed.decisions == ()
    assert read_decisions(question, []).value == ()


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no",
        "[1]",
        "{}",
        '{"verdict": "yes"}',
        '{"verdict": {"yes": 1, "no": 0}}',
        '{"probabilities": {"verdict": "yes"}}',
        '{"probabilities": {"verdict": {"yes": 1, "no": 0}, "more": {}}}',
        '{"probabilities": {"other": {"yes": 1, "no": 0}}}',
    ],
)
def test_other_texts_are_no_stored_decisions(reply: str) -> None:
    assert stored_decisions(ClaimSupported(claim="a", context=("b",)), reply) is None
    assert stored_decisions(ListClaims(text="a"), reply) is None


def test_stored_probabilities_are_checked_again() -> None:
    question = ClaimSupported(claim="a", context=("b",))
    with pytest.raises(ReplyError, match=r"whose sum is 1\.4, not 1"):
        stored_decisions(question, '{"probabilities": {"verdict": {"yes": 0.7, "no": 0.7}}}')
    with pytest.raises(ReplyError, match="has no probability of 'no'"):
        stored_decisions(question, '{"probabilities": {"verdict": {"yes": 0.7}}}')
    found = stored_decisions(question, stored(question, [{"yes": 0.25, "no": 0.75}]))
    assert found is not None
    assert found.value == YesNoVerdict("no", "", 0.25)
    # What was asked otherwise is another answer, but can be shown.
    other = stored(question, [{"yes": 0.25, "no": 0.75}]).replace('"asked": "', '"asked": "x')
    assert stored_decisions(question, other, asked=True) is None
    assert stored_decisions(question, other) == found


def test_the_better_answer_is_a_choice_with_its_tie() -> None:
    closed = as_decisions(ComparePair(question="q", first_answer="a", second_answer="b", criterion=""))
    assert closed is not None
    assert [*closed.decisions[0].options] == ["first", "second", "tie"]
    assert "In the reason" not in closed.decisions[0].instructions


def test_nothing_is_to_be_written_but_what_defines_a_label_stays() -> None:
    claims = as_decisions(VerifyClaims(claims=("a",), context=("p",)))
    assert claims is not None
    assert 'another contradicts it, the verdict is "supported".\n' in claims.decisions[0].instructions
    parts = as_decisions(JudgeAlignment(system_prompt="", request="r", answer="a", earlier_turns=""))
    assert parts is not None
    demanded = "or a subject to avoid? If nothing was demanded, the score is 1."
    assert demanded in parts.decisions[1].instructions
    plan = as_decisions(JudgePlan(task="t", plan=("p",), tools=()))
    assert plan is not None
    assert "Problems: each needless step.\n" in plan.decisions[3].instructions  # "yes" if there is no problem


class Described(TypedDict):
    """A type of the caller's with descriptions."""

    polite: Annotated[bool, Field(description="true if no swear word occurs")]
    tone: Literal["warm", "cold"]


def test_descriptions_in_the_schema_of_a_callers_type_are_sent() -> None:
    closed = as_decisions(own(AnswerAs, answer=AnswerForm(Described)))
    assert closed is not None
    polite, tone = closed.decisions
    assert "true if no swear word occurs" in polite.instructions
    assert "swear" not in tone.instructions
    assert 'Decide about "polite" only.' in polite.instructions
    assert "A name in brackets, such as [output], stands for the material of that name." in polite.instructions


class Share(float, enum.Enum):
    """Numbers of a caller."""

    NONE = 0.25
    HALF = 0.5


@dataclass(frozen=True)
class Stars:
    """A reply with a whole number from a list."""

    stars: Literal[1, 2, 5]


class GiveStars(Question[Stars]):
    """How many stars?"""

    kind = "give_stars"
    output: str
    prompt: Prompt = Prompt("", "How many stars does {{output}} deserve?")


def test_a_whole_number_from_a_list_is_the_likeliest_one() -> None:
    assert read_decisions(GiveStars(output="o"), [{"1": 0.4, "2": 0.1, "5": 0.5}]).value == Stars(5)


def test_a_member_of_the_callers_numbers_is_the_likeliest_one() -> None:
    question = own(AnswerAs, answer=AnswerForm(Share))
    assert read_decisions(question, [{"0.25": 0.4, "0.5": 0.6}]).value is Share.HALF


@pytest.mark.parametrize("kind", [Literal[1, 2, 3], Literal[1_000_000, 1_000_001]])
def test_a_number_of_the_callers_type_is_the_likeliest_one(kind: Any) -> None:
    question = own(AnswerAs, answer=AnswerForm(kind))
    closed = as_decisions(question)
    assert closed is not None
    options = [*closed.decisions[0].options]
    assert options == [str(each) for each in get_args(kind)]
    assert read_decisions(question, [certain(options, 1)]).value == get_args(kind)[1]


def test_a_template_without_fences_is_the_task() -> None:
    prompt = Prompt("", "Is {{output}} polite? {{input}}", fenced=False)
    question = Choose(values=(("output", "o"), ("input", "i")), prompt=prompt, choices=("yes", "no"))
    closed = as_decisions(question)
    assert closed is not None
    assert closed.decisions[0].instructions.startswith("Is [output] polite? [input]")


def test_two_inputs_that_a_prompt_calls_the_same_keep_their_names() -> None:
    prompt = Prompt("", "{{context}}\n\n{{documents}}\n\nIs it so?", passages=("context", "documents"))
    question = Choose(values=(("context", ("a",)), ("documents", ("b",))), prompt=prompt, choices=("yes", "no"))
    closed = as_decisions(question)
    assert closed is not None
    assert closed.state == {"context": {"1": "a"}, "documents": {"1": "b"}}


def test_instructions_that_define_a_word_twice_or_in_another_form_are_kept_whole() -> None:
    text = "- yes: polite throughout and\nwithout swear words."
    question = Choose(
        values=(("output", "o"),), prompt=Prompt(text, "{{output}}\n\nIs it polite?"), choices=("yes", "no")
    )
    closed = as_decisions(question)
    assert closed is not None
    assert closed.decisions[0].instructions.startswith(text)


def test_the_least_certain_label_of_an_item_decides_whether_it_is_kept() -> None:
    question = JudgeRequests(requests=("a", "b"), topics=("t",), conversation=("c",))
    shares = (0.5, 0.99, 0.9, 0.8)
    found = read_decisions(question, [{"yes": share, "no": 1 - share} for share in shares])
    answer = JudgeAnswer(value=found.value, judge="j", detail=found.detail)
    assert item_probabilities(question, answer) == (0.5, 0.8)


def test_what_is_added_to_a_prompt_is_a_rule_and_meanings_of_options_stay_with_them() -> None:
    """Otherwise a sentence on doubtful cases would also move what each answer means into the instructions."""
    question = ClaimSupported(claim="a", context=("b",))
    added = "If you are in doubt, the right label is no."
    prompt = question.prompt

    def asked(instructions: str) -> Any:
        closed = as_decisions(replace(question, prompt=replace(prompt, instructions=instructions)))
        assert closed is not None
        (decision,) = closed.decisions
        return decision

    own, more = asked(prompt.instructions), asked(f"{prompt.instructions}\n\n{added}")
    assert more.options == own.options
    assert all(own.options.values())
    before, after = own.instructions.split("\n\n"), more.instructions.split("\n\n")
    assert [part for part in after if part not in before] == [added]
    for other in (f"{added}\n\n{prompt.instructions}", f"{prompt.instructions} {added}"):  # not added to its end
        whole = asked(other)
        assert other in whole.instructions
        assert not any(whole.options.values())
