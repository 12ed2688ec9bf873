"""Panels and repeated asking, with members that say what they were told to."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from dataclasses import field
from typing import Any

import pytest

from evalstone import JudgeCall, LexicalJudge, LoggingJudge, ModelJudge, Panel, SelfConsistency, load
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, JudgeUnavailable, ProviderError, ReplyError
from evalstone.judges import Cascade, ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.judges.parse import parse_judge
from evalstone.models.provider import Completion
from evalstone.questions import ClaimSupported, Grade, GradeGrounding, ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question, QuestionSpec
from evalstone.run.plan import Plan
from evalstone.scorers import parse_scorers
from evalstone.types import Usage
from tests.fakes import claims, verdicts
from tests.judge_names import bare
from tests.serving import completion, serving

VERIFY = VerifyClaims(claims=("x", "y"), context=("p",))
LIST = ListClaims(text="One. Two.")
YES_NO = ClaimSupported(claim="c", context=("p",))


def judge(name: str, *replies: Any) -> ScriptedJudge:
    return ScriptedJudge(list(replies), name=name, retries=0)


def yes(name: str, word: str) -> ScriptedJudge:
    return ScriptedJudge(lambda _: {"reason": name, "verdict": word}, name=name)


class Broken(Judge, kw_only=False):
    """Raises an error for every question."""

    error: Exception
    name: str = "broken"

    @property
    def identity(self) -> str:
        return self.name

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        raise self.error


def asked(one: Judge, question: Question[Any]) -> JudgeAnswer[Any]:
    return asyncio.run(one.answer(question))


def test_a_panel_votes_on_each_claim_and_keeps_the_votes() -> None:
    panel = Panel(
        judge("a", verdicts("supported", "contradicted")),
        judge("b", verdicts("supported", "supported")),
        judge("c", verdicts("not_mentioned", "supported")),
    )
    answer = asked(panel, VERIFY)
    assert [verdict.verdict for verdict in answer.value] == ["supported", "supported"]
    assert answer.probability == pytest.approx(2 / 3)
    detail: Any = answer.detail
    assert (detail["kind"], detail["vote"], detail["answered"]) == ("panel", "majority", 3)
    assert detail["agreement"] == pytest.approx(2 / 3)
    assert detail["entropy"] == pytest.approx(-(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3))
    assert detail["verdicts"][0]["votes"] == {"not_mentioned": 1, "supported": 2}
    assert [call.judge for call in answer.members] == ["a", "b", "c"]


def test_lists_are_asked_of_the_first_member_alone_and_of_the_next_when_it_is_silent() -> None:
    first, second = judge("a", claims("one")), judge("b", claims("two"))
    answer = asked(Panel(first, second), LIST)
    assert answer.value == ("one",)
    assert second.asked == []
    answer = asked(Panel(Broken(ProviderError("out of reach")), second), LIST)
    detail: Any = answer.detail
    assert answer.value == ("two",)
    assert (detail["answered_by"], bare(detail["no_answer"])) == ("b", {"broken": "out of reach"})


def test_a_panel_goes_on_without_a_minority_and_says_who_was_silent() -> None:
    panel = Panel(yes("a", "yes"), Broken(ReplyError("nonsense", usage=Usage(5, 1, 0, 1), cost=0.25)), yes("c", "yes"))
    answer = asked(panel, YES_NO)
    assert answer.value.verdict == "yes"
    detail: Any = answer.detail
    assert (detail["answered"], bare(detail["no_answer"])) == (2, {"broken": "nonsense"})
    assert answer.cost == 0.25
    assert answer.members[1].detail == {"error": "nonsense"}


def test_a_panel_below_its_quorum_fails_with_what_it_took() -> None:
    broken = Broken(ReplyError("nonsense", reply="raw", usage=Usage(5, 1, 0, 1), cost=0.25))
    panel = Panel(yes("a", "yes"), broken)
    with pytest.raises(ReplyError, match=r"1 of 2 judges .* 2 .*: nonsense\)") as error:
        asked(panel, YES_NO)
    assert (error.value.cost, error.value.usage, error.value.reply) == (0.25, Usage(5, 1, 0, 2), "raw")
    assert bare([call.judge for call in error.value.members]) == ["a", "broken"]
    assert asked(Panel(yes("a", "yes"), broken, quorum=1), YES_NO).value.verdict == "yes"


def test_a_panel_whose_members_declined_cannot_answer() -> None:
    declining = Broken(JudgeDeclined("declined"))
    with pytest.raises(JudgeDeclined, match="2 are required"):
        asked(Panel(yes("a", "yes"), declining), YES_NO)
    with pytest.raises(JudgeError) as error:
        asked(Panel(declining, Broken(ProviderError("gone"), "other")), YES_NO)
    assert not isinstance(error.value, JudgeDeclined)


def test_a_favourable_verdict_needs_all_members_where_the_vote_is_unanimous() -> None:
    for words, result in ((("yes", "yes"), "yes"), (("yes", "undecided"), "undecided"), (("yes", "no"), "no")):
        panel = Panel(yes("a", words[0]), yes("b", words[1]), vote="unanimous")
        assert asked(panel, YES_NO).value.verdict == result
    assert Panel(yes("a", "yes"), yes("b", "yes"), yes("c", "yes"), vote="unanimous").needed == 3


def test_a_mean_takes_the_members_probabilities() -> None:
    def sure(name: str, word: str, probability: float) -> ScriptedJudge:
        return judge(name, Completion(f'{{"reason": "", "verdict": "{word}"}}', probability=probability))

    panel = Panel(sure("a", "yes", 0.4), sure("b", "yes", 0.4), sure("c", "no", 0.96), vote="mean")
    assert asked(panel, YES_NO).value.verdict == "no"


def test_grades_are_averaged() -> None:
    grades = [judge(name, {"reason": name, "score": score}) for name, score in (("a", 0.5), ("b", 0.75))]
    answer = asked(Panel(*grades, vote="mean"), GradeGrounding(answer="a", context=("p",)))
    assert answer.value == Grade(0.625, "a")
    assert answer.probability is None


def test_what_ends_a_run_ends_a_panel_but_a_member_that_is_down_is_only_silent() -> None:
    with pytest.raises(ConfigError, match="wrong key"):
        asked(Panel(yes("a", "yes"), Broken(ConfigError("wrong key")), yes("c", "yes")), YES_NO)
    down = Broken(JudgeUnavailable("down"))
    assert asked(Panel(yes("a", "yes"), down, yes("c", "yes")), YES_NO).value.verdict == "yes"
    with pytest.raises(JudgeUnavailable):
        asked(Panel(yes("a", "yes"), down), YES_NO)


def test_what_ends_a_run_ends_the_questions_to_the_other_members() -> None:
    class Slow(Broken):
        ended: asyncio.Event = field(default_factory=asyncio.Event)

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            try:
                await asyncio.sleep(60)
            finally:
                self.ended.set()
            raise self.error

    async def ended() -> bool:
        slow = Slow(ProviderError("late"), "slow")
        with pytest.raises(ConfigError, match="no key"):
            await Panel(slow, Broken(ConfigError("no key"))).answer(YES_NO)
        await asyncio.sleep(0)
        return slow.ended.is_set()

    assert asyncio.run(ended())


def test_one_failed_question_beside_a_member_that_is_down_does_not_end_the_run() -> None:
    down, gone = Broken(JudgeUnavailable("down")), Broken(ProviderError("gone", cost=0.5), "gone")
    for question in (YES_NO, LIST):
        with pytest.raises(JudgeError, match=r"broken\S*: down; gone") as error:
            asked(Panel(down, gone, Broken(ProviderError("busy", cost=0.25), "busy")), question)
        assert error.value.cost == 0.75
    with pytest.raises(JudgeUnavailable):
        asked(Panel(down, gone, Broken(JudgeUnavailable("down too"), "other")), YES_NO)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Panel(LexicalJudge()), "at least two judges"),
        (lambda: Panel(), "at least two judges"),
        (lambda: Panel(LexicalJudge(), LexicalJudge()), "twice in the panel"),
        (lambda: Panel(LexicalJudge(), judge("a"), vote="most"), "vote must be"),  # pyright: ignore[reportArgumentType]
        (lambda: Panel(LexicalJudge(), judge("a"), quorum=3), "from 1 to 2"),
        (lambda: Panel(LexicalJudge(), judge("a"), quorum=0), "quorum must be a whole number of 1 or more"),
        (lambda: Panel(LexicalJudge(), judge("a"), quorum=True), "whole number"),
        (lambda: Panel(LexicalJudge(), 1), "judge 2 .* not 1"),  # pyright: ignore[reportArgumentType]
        (lambda: SelfConsistency(LexicalJudge(), repeats=1), "from 2 to 1000"),
        (lambda: SelfConsistency(SelfConsistency(LexicalJudge())), "already repeats its questions"),
        (lambda: SelfConsistency(Panel(LexicalJudge(), SelfConsistency(judge("a")))), "repeats"),
        (lambda: SelfConsistency(None), "judge must be .* not None"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_judge_asked_repeatedly_outvotes_itself_and_tells_how_often_it_flips() -> None:
    words = ["yes", "no", "yes", "yes", "no"]
    answer = asked(SelfConsistency(judge("a", *[{"reason": "r", "verdict": word} for word in words])), YES_NO)
    assert answer.value.verdict == "yes"
    detail: Any = answer.detail
    assert detail["flip_rate"] == pytest.approx(0.4)
    assert (detail["samples"], answer.probability) == (5, 0.6)
    assert [call.repeat_index for call in answer.members] == [0, 1, 2, 3, 4]


def test_repetitions_that_fail_leave_the_others_unless_half_are_gone() -> None:
    good = {"reason": "r", "verdict": "yes"}
    answer = asked(SelfConsistency(judge("a", good, "?{", good), repeats=3), YES_NO)
    detail: Any = answer.detail
    assert detail["samples"] == 2
    assert list(detail["no_answer"]) == ["a #1"]
    with pytest.raises(JudgeError, match="1 of 2 repetitions"):
        asked(SelfConsistency(judge("a", good), repeats=2), YES_NO)


def test_lists_are_asked_once_of_a_judge_that_is_asked_repeatedly() -> None:
    one = judge("a", claims("c"), claims("d"))
    assert asked(SelfConsistency(one), LIST).value == ("c",)
    assert len(one.asked) == 1


def test_repetitions_of_a_model_with_a_seed_take_other_seeds_under_one_name() -> None:
    with serving(lambda _, __: completion('{"reason": "", "verdict": "yes"}')) as server:
        model = ModelJudge("vllm/x", base_url=server.url, seed=7)
        answer = asked(SelfConsistency(model, repeats=3), YES_NO)
    assert sorted(request["seed"] for request in server.requests) == [7, 8, 9]
    assert {call.judge for call in answer.members} == {model.identity}


def test_a_judge_that_cannot_give_another_answer_is_noted() -> None:
    told = "the same answer each time"
    assert told in SelfConsistency(LexicalJudge()).note
    assert told in SelfConsistency(LoggingJudge(ModelJudge("vllm/x"))).note
    assert told not in SelfConsistency(ModelJudge("vllm/x", temperature=0.7)).note
    assert told not in SelfConsistency(ModelJudge("vllm/x", seed=1)).note
    assert told not in SelfConsistency(Panel(LexicalJudge(), ModelJudge("vllm/x", temperature=None))).note


def test_a_panel_that_is_asked_repeatedly_numbers_its_members_questions() -> None:
    answer = asked(SelfConsistency(Panel(yes("a", "yes"), yes("b", "no")), repeats=2), YES_NO)
    (first, second) = answer.members
    assert isinstance(first, JudgeCall)
    assert [(step.judge, step.repeat_index) for step in (*first.members, *second.members)] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
        ("b", 1),
    ]


def test_a_judge_of_judges_is_deterministic_only_if_all_of_them_are() -> None:
    lexical = LexicalJudge()
    assert SelfConsistency(lexical, repeats=3).deterministic
    assert not Panel(lexical, ModelJudge("openai/m")).deterministic


class Refuses(Judge, kw_only=False):
    """Can't answer questions of these kinds, and says so before the run."""

    name: str
    kinds: tuple[type[Question[Any]], ...]

    @property
    def identity(self) -> str:
        return self.name

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        if any(each.kind in {kind.kind for kind in self.kinds} for each in asked):
            raise ConfigError(f"{scorer}: not {self.name}")

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        raise JudgeDeclined("no")


NO_LISTS, NO_VERDICTS = Refuses("no_lists", (ListClaims,)), Refuses("no_verdicts", (VerifyClaims, ClaimSupported))


@pytest.mark.parametrize(
    ("one", "refused"),
    [
        # Each member votes, and one of them lists the claims.
        (Panel("lexical", NO_LISTS), None),
        (Panel("lexical", NO_VERDICTS), "no_verdicts"),
        (Panel("lexical", ScriptedJudge([]), NO_VERDICTS), "no_verdicts"),
        (Panel(NO_LISTS, Refuses("nor_lists", (ListClaims,))), "no_lists"),
        (Panel("lexical", ScriptedJudge([]), "sentences"), "sentences@1"),
        (SelfConsistency(Panel("lexical", NO_VERDICTS), repeats=2), "no_verdicts"),
        # The fallback gets what the primary can't answer, and what it is unsure about.
        (Cascade(NO_VERDICTS, "lexical"), None),
        (Cascade("lexical", NO_VERDICTS), "no_verdicts"),
        (Cascade("lexical", "sentences"), "sentences@1"),
        ("sentences", "sentences@1"),
    ],
)
def test_a_member_that_cannot_answer_the_questions_is_refused_before_the_run(one: Any, refused: str | None) -> None:
    plan = Plan(load([{"output": "Yes.", "context": ["Yes."]}]), parse_scorers("faithfulness"), parse_judge(one))
    if refused is None:
        plan.check_scorers()
        return
    with pytest.raises(ConfigError, match=rf"^faithfulness.* {refused}"):
        plan.check_scorers()
