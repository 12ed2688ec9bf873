"""One question of one's own, from its reply type to panels and cascades; and what every reply type must keep."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest

from evalstone import Cascade, ModelJudge, Panel, Sample, Score, ScriptedJudge, SelfConsistency, evaluate
from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError, ReplyError
from evalstone.questions.base import Ask, Question, answer_type, is_votable
from evalstone.questions.items import VerdictPerItem
from evalstone.questions.markers import Cites, NotInReply, Subject, WorstFirst
from evalstone.questions.reply import LabelOrder, label_orders, reply_fields, subject_of
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import Scorer
from tests.fakes import QUESTION_KINDS, question_of


@dataclass(frozen=True)
class PromiseVerdict:
    """Whether the policy allows one promise."""

    promise: Annotated[str, Subject()]
    verdict: Annotated[Literal["allowed", "unclear", "forbidden"], WorstFirst("forbidden", "unclear", "allowed")]
    rules: Annotated[tuple[int, ...], Cites("policy")] = ()
    reason: str = ""
    confidence: Annotated[float | None, NotInReply()] = None


CHECK_PROMISES = Prompt(
    instructions="""\
You decide for each of some numbered promises whether a policy allows it.

Reply with a JSON object that has one member for each promise, under its number:
{"verdicts": {"1": {"reason": "…", "rules": [2], "verdict": "allowed"}, "2": …}}""",
    template="{{policy}}\n\n{{promises}}\n\nDecide for each promise whether the policy allows it.",
    passages=("policy",),
)


class CheckPromises(VerdictPerItem[PromiseVerdict]):
    """For each promise, in order: does the policy allow it?"""

    kind = "check_promises"
    items = "promises"
    promises: tuple[str, ...]
    policy: tuple[str, ...]
    prompt: Prompt = CHECK_PROMISES


class AllowedPromises(Scorer):
    """The share of the answer's lines that the policy allows."""

    name = "allowed_promises"
    questions = (CheckPromises,)
    asks = (CheckPromises,)

    async def score(self, ask: Ask, *, output: str, context: tuple[str, ...]) -> Score:
        verdicts = await ask(CheckPromises(promises=tuple(output.splitlines()), policy=tuple(context)))
        return Score(sum(one.verdict == "allowed" for one in verdicts) / len(verdicts), evidence=verdicts)


VAGUE = Prompt("", "{{text}}")
QUESTION = CheckPromises(promises=("refund in 30 days", "free shipping"), policy=("rule one", "rule two"))
SAMPLE = Sample(output="refund in 30 days\nfree shipping", context=["rule one", "rule two"])


def reply(*words: str) -> dict[str, Any]:
    members = enumerate(words, start=1)
    return {"verdicts": {str(n): {"reason": f"because {n}", "rules": [n], "verdict": word} for n, word in members}}


def test_the_schema_has_the_reason_first_and_the_label_last_and_leaves_out_what_the_question_says():
    schema: Any = QUESTION.json_schema
    item = schema["$defs"]["verdict"]
    assert item == {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "maxLength": 500},
            "rules": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": 2},
                "maxItems": 2,
            },
            "verdict": {"type": "string", "enum": ["allowed", "unclear", "forbidden"]},
        },
        "required": ["reason", "rules", "verdict"],
        "additionalProperties": False,
    }
    assert list(item["properties"]) == ["reason", "rules", "verdict"]
    without_rules: Any = CheckPromises(promises=("a",), policy=()).json_schema
    assert without_rules["$defs"]["verdict"]["properties"]["rules"]["maxItems"] == 0


def test_the_example_is_a_reply_and_differs_from_question_to_question():
    assert len(QUESTION.parse(json.dumps(QUESTION.example()))) == 2
    assert QUESTION.example() != CheckPromises(promises=("other", "promises"), policy=()).example()


def test_a_reply_becomes_verdicts_on_the_items_in_their_order():
    assert QUESTION.parse(json.dumps(reply("allowed", "forbidden"))) == (
        PromiseVerdict("refund in 30 days", "allowed", (1,), "because 1"),
        PromiseVerdict("free shipping", "forbidden", (2,), "because 2"),
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (reply("allowed"), "2 promises, 1 verdict; missing: 2"),
        ({"verdicts": {}}, "2 promises, 0 verdicts; missing: 1, 2"),
        (reply("allowed", "perhaps"), "verdict 2.verdict: Input should be 'allowed', 'unclear' or 'forbidden'"),
        ({"verdicts": {"1": {}, "2": {}}}, "verdict 1.verdict: Field required"),
        ({"verdicts": ["a", "b"]}, "verdict 1: Input should be a valid dictionary"),
        (
            {"verdicts": [{"reason": "", "rules": [3], "verdict": "allowed"}] * 2},
            "verdict 1 cites item 3; there are 2 items",
        ),
    ],
)
def test_a_reply_that_does_not_fit_is_an_error_that_names_the_place(data: Any, problem: str):
    with pytest.raises(ReplyError) as raised:
        QUESTION.parse(json.dumps(data))
    assert problem in str(raised.value)


def test_the_order_of_labels_the_subject_and_the_items_follow_from_the_types():
    assert label_orders(PromiseVerdict) == {"verdict": LabelOrder(("forbidden", "unclear", "allowed"))}
    subject = subject_of(PromiseVerdict)
    assert subject is not None
    assert subject.name == "promise"
    assert QUESTION.divisible_by == "promises"
    assert is_votable(QUESTION)
    assert answer_type(CheckPromises) == tuple[PromiseVerdict, ...]


def test_the_scorer_runs_with_one_judge():
    run = evaluate([SAMPLE], [AllowedPromises()], judge=ScriptedJudge([reply("allowed", "forbidden")]), ledger=None)
    assert run["allowed_promises"].mean == 0.5


@pytest.mark.parametrize(
    ("vote", "mean", "words"),
    [("majority", 0.5, ["allowed", "unclear"]), ("unanimous", 0.0, ["unclear", "forbidden"])],
)
def test_a_panel_votes_on_each_item(vote: Any, mean: float, words: list[str]):
    said = (("allowed", "unclear"), ("allowed", "forbidden"), ("unclear", "unclear"))
    panel = Panel(*(ScriptedJudge([reply(*one)], name=f"j{i}") for i, one in enumerate(said)), vote=vote)
    run = evaluate([SAMPLE], [AllowedPromises()], judge=panel, ledger=None)
    assert run["allowed_promises"].mean == mean
    (record,) = run
    assert isinstance(record.outcome, Score)
    assert [one["verdict"] for one in record.outcome.evidence] == words


def test_self_consistency_votes_on_each_item():
    judge = ScriptedJudge([reply("allowed", word) for word in ("allowed", "forbidden", "forbidden")])
    run = evaluate([SAMPLE], [AllowedPromises()], judge=SelfConsistency(judge, 3), ledger=None)
    assert run["allowed_promises"].mean == 0.5


def test_a_cascade_asks_the_second_judge_about_the_unsure_items_only():
    votes = [ScriptedJudge([reply("allowed", word)], name=word) for word in ("allowed", "forbidden", "unclear")]
    second = ScriptedJudge([reply("forbidden")], name="second")
    judge = Cascade(Panel(*votes), second, 0.9)
    run = evaluate([SAMPLE], [AllowedPromises()], judge=judge, ledger=None)
    assert run["allowed_promises"].mean == 0.5
    (asked,) = second.asked
    assert isinstance(asked, CheckPromises)
    assert asked.promises == ("free shipping",)


def test_a_dry_run_reckons_with_an_example_of_the_reply():
    plan = plan_for([SAMPLE], [AllowedPromises()], judge=ModelJudge("openai/gpt-4o", api_key="k"))
    estimated = asyncio.run(estimate(plan))
    assert (estimated.calls, estimated.kinds) == (1, {"check_promises": 1})
    assert estimated.usage.output == len(json.dumps(QUESTION.example())) // 4
    assert [line.n_failed for line in estimated.scorers] == [0]


def test_every_question_of_ours_has_labels_that_its_types_have():
    for kind in QUESTION_KINDS:
        for reply_type in reply_types(answer_type(kind)):
            for field in reply_fields(reply_type):
                values = get_args(field.type) if get_origin(field.type) is Literal else (False, True)
                order = field.label
                if order and order.worst_first:
                    assert sorted(map(str, order.worst_first)) == sorted(map(str, values)), (kind, field.name)


def reply_types(kind: Any) -> list[type[Any]]:
    """The dataclasses in a type of answers."""
    inner = [found for one in get_args(kind) for found in reply_types(one)]
    if not isinstance(kind, type) or not hasattr(kind, "__dataclass_fields__"):
        return inner
    return [kind, *(found for field in reply_fields(kind) for found in reply_types(field.type))]


def test_questions_judged_item_by_item_are_those_whose_answer_is_a_verdict_an_item():
    assert {kind.kind for kind in QUESTION_KINDS if question_of(kind, "a").divisible_by} == {
        "check_criteria",
        "check_goal",
        "find_answers",
        "judge_instructions",
        "judge_opinions",
        "judge_requests",
        "judge_statements",
        "verify_claims",
    }


class Vague(Question[str]):
    """A question whose answers are of no reply type."""

    kind = "vague"
    text: str
    prompt: Prompt = VAGUE


def test_a_question_without_a_reply_type_says_what_to_do():
    with pytest.raises(ConfigError, match="use a dataclass, or"):
        _ = Vague(text="a").json_schema
