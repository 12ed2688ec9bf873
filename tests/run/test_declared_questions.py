"""Scorers declare what they ask: anything else is refused before it costs something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from evalstone import Message, Prompt, Sample, Score, Scorer, ScriptedJudge, Skipped, evaluate, score, scorer
from evalstone.errors import ConfigError
from evalstone.judges import Judge, ModelJudge, parse_judge
from evalstone.questions import ListClaims, ListOpinions
from evalstone.questions.base import Ask, Question
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import Repeated
from tests.serving import serving

ROWS = [{"id": str(n), "output": f"Ada was born. {n}"} for n in range(4)]
KINDS: dict[str, Callable[..., Question[Any]]] = {"claims": ListClaims, "opinions": ListOpinions}


class Narrower(ListClaims):
    """The same question."""


class Counts(Scorer):
    """Counts claims; what it asks can't be read from its code."""

    name = "counts"
    questions = (ListClaims,)

    kind: str = "claims"
    judge_of_its_own: Any = None

    async def score(self, ask: Ask, *, output: str) -> Score:
        question = KINDS[self.kind](text=output)
        others = () if self.judge_of_its_own is None else (self.judge_of_its_own,)
        try:
            return Score(min(1.0, len(await ask(question, *others)) / 10))  # type: ignore[call-arg]
        except Exception as error:
            raise ValueError("caught") from error


@scorer(questions=(ListClaims,))
async def undeclared(*, output: str, ask: Any) -> float:
    """Asks what it doesn't declare."""
    return min(1.0, len(await ask(ListOpinions(text=output))) / 10)


@scorer
async def silent(*, output: str, ask: Any) -> float:
    """Declares nothing."""
    return min(1.0, len(await ask(ListClaims(text=output))) / 10)


UNDECLARED: list[tuple[Any, str]] = [
    (
        Counts(kind="opinions"),
        "counts asks ListOpinions, which it doesn't declare; add to the class Counts: "
        "questions = (ListClaims, ListOpinions)",
    ),
    (
        Repeated(Counts(kind="opinions"), repeats=2),
        "counts asks ListOpinions, which it doesn't declare; add to the class",
    ),
    (
        undeclared,
        "undeclared asks ListOpinions, which it doesn't declare; add to its decorator: "
        "@scorer(questions=(ListClaims, ListOpinions))",
    ),
    (
        silent,
        "silent asks ListClaims, which it doesn't declare; add to its decorator: @scorer(questions=(ListClaims,))",
    ),
]


@pytest.mark.parametrize(("asking", "told"), UNDECLARED)
def test_an_undeclared_question_ends_the_run_before_a_judge_is_asked(asking: Any, told: str) -> None:
    with serving() as server:
        judge = ModelJudge("vllm/m", base_url=server.url, temperature=0.5)
        with pytest.raises(ConfigError) as caught:
            evaluate(ROWS, asking, judge=judge, ledger=None)
        assert not server.requests
    assert told in str(caught.value)


def test_a_dry_run_refuses_it_too() -> None:
    with pytest.raises(ConfigError, match="silent asks ListClaims"):
        asyncio.run(estimate(plan_for(ROWS, silent)))


def test_a_declared_kind_includes_its_subclasses_and_an_explanation_needs_no_declaration() -> None:
    @scorer(questions=(ListClaims,), explain=True)
    async def narrow(*, output: str, ask: Any) -> float:
        return min(1.0, len(await ask(Narrower(text=output))) / 10)

    record = score(narrow, output="x", judge=ScriptedJudge([{"claims": ["x"]}, {"explanation": "because"}]))
    assert [call.question for call in record.calls] == ["list_claims", "explain"]


@pytest.mark.parametrize("questions", [[ListClaims, 3], ListClaims, (ListClaims(text="x"),), ("ListClaims",)])
def test_questions_that_are_no_kinds_are_refused(questions: Any) -> None:
    with pytest.raises(ConfigError, match=r"Wrong: questions .*\(ListClaims"):
        type("Wrong", (Counts,), {"questions": questions})


def test_a_list_of_kinds_becomes_a_tuple() -> None:
    assert vars(type("Listed", (Counts,), {"questions": [ListClaims]}))["questions"] == (ListClaims,)


def test_a_missing_key_is_noticed_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(ROWS, Counts(), judge="openai/gpt-5.1", ledger=None)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(ROWS, "contains(expected=Ada, explain=True)", judge="openai/gpt-5.1", ledger=None)


def test_a_missing_key_of_a_judge_that_no_plan_names_is_noticed_at_its_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hidden = parse_judge("openai/gpt-5.1")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(ROWS, Counts(judge_of_its_own=hidden), judge=ScriptedJudge([]), ledger=None)


@pytest.mark.parametrize("hidden", [False, True])
def test_an_unknown_price_under_a_budget_is_refused_before_a_call(hidden: bool) -> None:
    with serving() as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        asking = Counts(judge_of_its_own=judge) if hidden else Counts()
        run_judge: Judge = ScriptedJudge([]) if hidden else judge
        with pytest.raises(ConfigError, match="price of vllm/m"):
            evaluate(ROWS, asking, judge=run_judge, ledger=None, budget=0.5)
        assert not server.requests


def test_an_explanation_under_a_budget_needs_a_price_too() -> None:
    judge = ModelJudge("vllm/m", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="a budget needs a price"):
        evaluate(ROWS, "contains(expected=Ada, explain=True)", judge=judge, ledger=None, budget=0.5)


def test_a_picture_is_not_shown_to_a_text_judge_wherever_the_question_is_made() -> None:
    turns = [Message(role="user", content="q"), Message(role="assistant", content="Ada.", attachments=("image",))]
    record = score(Counts(), Sample(input="q", output="Ada.", messages=turns), judge=ScriptedJudge([]))
    assert isinstance(record.outcome, Skipped)
    assert "contains an image" in record.outcome.reason


READ = Prompt(instructions="You read.", template="{{text}}")


class NoKind(Question[str]):
    text: str
    prompt: Prompt = READ


class NoPrompt(Question[str]):
    kind = "no_prompt"
    text: str


class TextPrompt(Question[str]):
    kind = "text_prompt"
    text: str
    prompt: str = "Read {{text}}"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NoKind, "the question NoKind has no kind; add a name to the class: kind = …"),
        (NoPrompt, "the question NoPrompt has no prompt; add a field: prompt: Prompt = Prompt(…)"),
        (TextPrompt, "the question TextPrompt: prompt must be a Prompt(instructions=…, template=…), not text"),
    ],
)
def test_a_question_that_can_not_be_asked_is_refused_where_it_is_declared(
    kind: type[Question[Any]], message: str
) -> None:
    async def asks(*, output: str, ask: Any) -> float:
        return 1.0

    with pytest.raises(ConfigError) as refused:
        scorer(questions=(kind,))(asks)
    assert str(refused.value) == message
