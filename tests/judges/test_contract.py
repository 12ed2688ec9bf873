"""What every judge promises, whatever it is made of."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import Cascade, LexicalJudge, Limits, LoggingJudge, ModelJudge, Panel, ReplayJudge, SelfConsistency
from evalstone._core.json import to_jsonable
from evalstone.api import evaluate
from evalstone.errors import ConfigError, JudgeDeclined
from evalstone.judges import Aligned, AlignmentFile, DecisionOrText, OnnxJudge, ScriptedJudge
from evalstone.judges.base import Judge, MemberCalls, leaves
from evalstone.questions import Explain, ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.run.budget import Budget
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import parse_scorers
from evalstone.types import AlignedQuestion, Usage, WorkedExample
from tests.fakes import claims, verdicts
from tests.serving import obliging, serving
from tests.verifier_models import save_verifier

QUESTION = VerifyClaims(claims=("Paris is in France.",), context=("Paris is in France.",))
OTHER = Explain(measure="m", evidence="e")
SAMPLE = {"id": "one", "input": "q", "output": "Paris is in France.", "context": ["Paris is in France."]}


def replies(question: Question[Any]) -> Any:
    if isinstance(question, VerifyClaims):
        return verdicts(*[("supported", [1])] * len(question.claims))
    return claims("Paris is in France.") if isinstance(question, ListClaims) else None


def model(url: str, **settings: Any) -> ModelJudge:
    return ModelJudge("vllm/x", base_url=url, prices=(1.0, 2.0), total_timeout=5.0, **settings)


def scripted(name: str = "scripted") -> ScriptedJudge:
    return ScriptedJudge(replies, name=name)


def replay() -> ReplayJudge:
    return ReplayJudge({QUESTION.fingerprint: {"reply": json.dumps(verdicts(("supported", [1])))}}, source="a")


def verifier(folder: Path, window: int | None = None) -> OnnxJudge:
    weights = {"Paris": (1, 0, 0)}
    return OnnxJudge(str(save_verifier(folder / "m", weights, words=("Paris", "France."))), window=window)


def aligned(judge: Judge, threshold: float = 0.3) -> Aligned:
    """A judge that is aligned for the question."""
    example = WorkedExample(
        inputs={"claims": ["Rome is in Peru."], "context": ["Rome is in Italy."]}, label="contradicted"
    )
    chosen = AlignedQuestion(
        kind="verify_claims",
        prompt=QUESTION.prompt.digest,
        examples=(example,),
        positive=("supported",),
        threshold=threshold,
    )
    (scorer,) = parse_scorers("faithfulness")
    file = AlignmentFile(judge=judge.identity, scorer=scorer.name, signature=scorer.signature, chosen=chosen)
    return Aligned(judge, file)


Make = Callable[[str, Path], Judge]
JUDGES: dict[str, Make] = {
    "lexical": lambda _, __: LexicalJudge(),
    "model": lambda url, _: model(url),
    "scripted": lambda _, __: scripted(),
    "replay": lambda _, __: replay(),
    "verifier": lambda _, folder: DecisionOrText(verifier(folder)),
    "panel": lambda url, _: Panel(LexicalJudge(), model(url), scripted(), vote="mean"),
    "cascade": lambda url, _: Cascade(LexicalJudge(), model(url), threshold=0.99),
    "self_consistency": lambda url, _: SelfConsistency(model(url, seed=1), repeats=3),
    "logged": lambda url, folder: LoggingJudge(model(url), folder / "log.jsonl"),
    "limited": lambda url, _: model(url, limits=Limits(max_concurrency=2, requests_per_minute=6000, max_requests=100)),
    "logged panel": lambda url, folder: LoggingJudge(Panel(LexicalJudge(), model(url)), str(folder / "log.jsonl")),
    "limited panel": lambda url, _: Panel(scripted("a"), scripted("b"), limits=Limits(max_concurrency=1)),
    "aligned": lambda url, _: aligned(model(url)),
    "aligned panel": lambda url, _: Panel(aligned(scripted()), model(url)),
    "cascade of panels": lambda url, _: Cascade(
        Panel(scripted("a"), scripted("b")),
        SelfConsistency(model(url, limits=Limits(max_concurrency=1)), repeats=2),
        threshold=1.0,
    ),
}
OTHERS: dict[str, Make] = {
    "model": lambda url, _: model(url, temperature=0.5),
    "scripted": lambda _, __: scripted("another"),
    "replay": lambda _, __: ReplayJudge({}, source="b"),
    "verifier": lambda _, folder: DecisionOrText(verifier(folder, window=32)),
    "panel": lambda url, _: Panel(LexicalJudge(), model(url), scripted(), vote="majority"),
    "cascade": lambda url, _: Cascade(LexicalJudge(), model(url), threshold=0.98),
    "self_consistency": lambda url, _: SelfConsistency(model(url, seed=1), repeats=4),
    "aligned": lambda url, _: aligned(model(url), 0.4),
}
every_judge = pytest.mark.parametrize("kind", list(JUDGES))
# The recording has one answer and no more.
asking_judges = pytest.mark.parametrize("kind", [kind for kind in JUDGES if kind != "replay"])


@pytest.fixture(scope="module")
def url() -> Any:
    with serving(obliging) as server:
        yield server.url


@pytest.fixture
def judge(kind: str, url: str, tmp_path: Path) -> Judge:
    return JUDGES[kind](url, tmp_path)


def answered(judge: Judge, question: Question[Any] = QUESTION) -> JudgeAnswer[Any]:
    async def work() -> JudgeAnswer[Any]:
        async with judge.opened():
            return await judge.answer(question)

    return asyncio.run(work())


@every_judge
def test_a_judge_cannot_be_changed(judge: Judge) -> None:
    name = next(iter(vars(judge)), "anything")
    with pytest.raises(AttributeError):
        setattr(judge, name, None)


@every_judge
def test_a_judge_pickles_and_copies_as_the_same_judge(judge: Judge) -> None:
    for twin in (pickle.loads(pickle.dumps(judge)), copy.deepcopy(judge)):
        assert type(twin) is type(judge)
        assert (twin.identity, repr(twin), twin.cacheable, twin.note) == (
            judge.identity,
            repr(judge),
            judge.cacheable,
            judge.note,
        )
        assert answered(twin).judge == judge.identity


@every_judge
def test_a_judge_prints_as_what_it_is(judge: Judge) -> None:
    assert repr(judge).startswith(type(judge).__name__ + "(")
    assert "object at" not in repr(judge)


@pytest.mark.parametrize(
    "kind", ["lexical", "model", "cascade", "self_consistency", "logged", "limited", "logged panel"]
)
def test_what_a_judge_prints_reads_back(judge: Judge) -> None:
    names: dict[str, Any] = {"PosixPath": Path}
    for known in (Cascade, SelfConsistency, LexicalJudge, Limits, LoggingJudge, ModelJudge, Panel):
        names[known.__name__] = known
    read = eval(repr(judge), names)
    assert (repr(read), read.identity) == (repr(judge), judge.identity)


@every_judge
def test_equal_settings_give_one_identity(kind: str, judge: Judge, url: str, tmp_path: Path) -> None:
    assert JUDGES[kind](url, tmp_path).identity == judge.identity
    assert judge.identity


@pytest.mark.parametrize("kind", list(OTHERS))
def test_other_settings_give_another_identity(kind: str, judge: Judge, url: str, tmp_path: Path) -> None:
    assert OTHERS[kind](url, tmp_path).identity != judge.identity


@every_judge
def test_an_answer_has_the_questions_type_and_names_its_judge(judge: Judge) -> None:
    answer = answered(judge)
    (verdict,) = answer.value
    assert verdict.verdict == "supported"
    assert verdict.claim == SAMPLE["output"]
    assert answer.judge == judge.identity
    assert answer.probability is None or 0 <= answer.probability <= 1


@every_judge
def test_an_answers_members_are_steps_whose_usage_and_cost_add_up(judge: Judge) -> None:
    answer = answered(judge)
    assert bool(answer.members) == bool(judge.members)
    if answer.members:
        assert answer.usage == sum((call.usage for call in answer.members), Usage())
        assert answer.cost == pytest.approx(sum(call.cost or 0.0 for call in answer.members))
        known = {leaf.identity for leaf in leaves(judge)}
        assert {leaf.judge for call in answer.members for leaf in call.leaves()} <= known


@pytest.mark.parametrize(
    "kind", [kind for kind in JUDGES if "panel" in kind or kind in ("cascade", "self_consistency")]
)
def test_a_composite_gives_the_same_answer_through_any_way_to_its_members(judge: Judge) -> None:
    async def through(question: Question[Any], member: Judge, repeat: int) -> JudgeAnswer[Any]:
        return await member.answer(question, repeat)

    async def work() -> JudgeAnswer[Any]:
        async with judge.opened():
            ask = MemberCalls(through)
            answer = await judge.combine(QUESTION, ask)
            assert ask.calls
            return answer

    assert asyncio.run(work()).value == answered(judge).value


@pytest.mark.parametrize("kind", ["lexical", "scripted", "replay", "limited panel"])
def test_what_a_judge_cannot_answer_it_says(kind: str, judge: Judge) -> None:
    # A script without a reply is broken, not unable; the others decline.
    error = JudgeDeclined if kind in ("lexical", "replay") else Exception
    with pytest.raises(error):
        answered(judge, OTHER)


def test_judges_of_judges_cannot_answer_what_no_member_can() -> None:
    other = ReplayJudge({}, source="empty")
    for judge in (Panel(LexicalJudge(), other), Cascade(LexicalJudge(), other), SelfConsistency(LexicalJudge())):
        with pytest.raises(JudgeDeclined) as error:
            answered(judge, OTHER)
        assert error.value.members


@every_judge
def test_opening_nests_and_closes(judge: Judge) -> None:
    async def work() -> JudgeAnswer[Any]:
        async with judge.opened(), judge.opened():
            await judge.answer(QUESTION)
        return await judge.answer(QUESTION)

    assert asyncio.run(work()).value


@every_judge
def test_a_judge_says_how_much_it_takes_and_is_ready(judge: Judge) -> None:
    assert min(judge.context_limits.tokens, judge.context_limits.items) >= 1
    judge.check()


@asking_judges
def test_a_run_scores_with_and_without_a_ledger_and_asks_nothing_again(judge: Judge, tmp_path: Path) -> None:
    without, first, again = (
        evaluate([SAMPLE], ["faithfulness"], judge=judge, ledger=ledger)
        for ledger in (None, tmp_path / "l.db", tmp_path / "l.db")
    )
    outcomes = [run.records[0].outcome for run in (without, first, again)]
    assert to_jsonable(outcomes[0]) == to_jsonable(outcomes[1]) == to_jsonable(outcomes[2])
    assert first.judge == again.judge == judge.identity
    assert again.cost == 0
    if judge.price(Usage(1000)) != 0:
        assert first.cost is not None
        assert first.cost > 0


@asking_judges
def test_a_dry_run_counts_the_calls_of_the_run_and_knows_their_price(judge: Judge) -> None:
    plan = plan_for([SAMPLE], ["faithfulness"], judge=judge)
    guess = asyncio.run(estimate(plan))
    assert guess.judge == judge.identity
    if judge.price(Usage(1000)) != 0:
        assert guess.cost is not None
        assert guess.cost > 0
    else:
        assert guess.cost == 0
    run = evaluate([SAMPLE], ["faithfulness"], judge=judge, ledger=None, budget=1.0)
    costly = {leaf.identity for leaf in leaves(judge) if leaf.cacheable == judge.cacheable}
    asked = sum(leaf.judge in costly for r in run.records for call in r.calls for leaf in call.leaves())
    assert guess.calls == asked


@every_judge
def test_a_budget_needs_every_price(judge: Judge) -> None:
    assert Budget(1.0, judge).spent == 0
    unpriced = Panel(judge, ModelJudge("vllm/unpriced")) if judge.identity != "vllm/unpriced" else judge
    with pytest.raises(ConfigError, match="vllm/unpriced"):
        Budget(1.0, unpriced)
