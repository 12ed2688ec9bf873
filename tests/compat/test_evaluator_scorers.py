from __future__ import annotations

import pickle
from typing import Any

import pytest

from evalstone._core.sync import run
from evalstone.compat.spring import (
    AnswerCorrectnessEvaluator,
    AnswerRelevancyEvaluator,
    FactCheckingEvaluator,
    JudgeEvaluator,
    RelevancyEvaluator,
)
from evalstone.errors import ConfigError, ReplyError
from evalstone.judges import ScriptedJudge
from evalstone.questions.base import Question
from evalstone.scorers.base import Scorer
from evalstone.types import Message, Outcome, Sample, Score, Skipped, ToolCall

SAMPLE = Sample(input="When?", output="In 1815.", context=["Ada, 1815."], reference="1815")
GOOD = {"reason": "so", "score": 0.75, "verdict": "yes"}
NEEDS = {
    "answer_correctness": ("input", "output", "reference"),
    "answer_faithfulness": ("output", "context"),
    "answer_relevance_grade": ("input", "output"),
    "fact_check": ("output", "context"),
    "relevancy_check": ("input", "output", "context"),
}
every = pytest.mark.parametrize("kind", JudgeEvaluator.__subclasses__(), ids=lambda kind: kind.name)


def scored(scorer: Scorer, sample: Sample, *replies: Any) -> Outcome:
    judge = ScriptedJudge(list(replies))

    async def ask(question: Question[Any]) -> Any:
        return (await judge.answer(question)).value

    return run(scorer.run(ask, sample))


@every
def test_a_scorer_has_the_name_and_the_needs_of_its_evaluator(kind: type[JudgeEvaluator]) -> None:
    scorer = kind().as_scorer()
    assert scorer.name == kind.name
    assert scorer.required_fields == NEEDS[kind.name]
    assert scorer.questions


@every
def test_a_scorer_scores_as_its_evaluator_on_its_own_scale(kind: type[JudgeEvaluator]) -> None:
    outcome = scored(kind().as_scorer(scale=10), SAMPLE, GOOD)
    assert isinstance(outcome, Score)
    assert (outcome.scale, outcome.reason) == (10, "so")
    assert outcome.value == (7.5 if kind.name in ("answer_faithfulness", "answer_relevance_grade") else 10)


@every
def test_a_sample_without_a_needed_field_is_skipped_before_anything_is_asked(kind: type[JudgeEvaluator]) -> None:
    in_words = {need.field: need.text for need in kind().as_scorer().needs}
    for name in NEEDS[kind.name]:
        fields = {
            field: getattr(SAMPLE, field) for field in ("input", "output", "context", "reference") if field != name
        }
        assert scored(kind().as_scorer(), Sample(**fields)) == Skipped(f"{kind.name} needs {in_words[name]}")


@pytest.mark.parametrize("kind", [RelevancyEvaluator, FactCheckingEvaluator, AnswerCorrectnessEvaluator])
def test_what_is_undecided_is_skipped_with_its_reason(kind: type[JudgeEvaluator]) -> None:
    undecided = {"reason": "torn", "verdict": "undecided"}
    assert scored(kind().as_scorer(), SAMPLE, undecided) == Skipped("torn")
    counted = scored(kind(on_undecided="fail").as_scorer(), SAMPLE, undecided)
    assert isinstance(counted, Score)
    assert counted.value == 0
    with pytest.raises(ReplyError, match="torn"):
        scored(kind(on_undecided="raise").as_scorer(), SAMPLE, undecided)


def test_an_empty_context_follows_the_rule_of_the_evaluator() -> None:
    empty = Sample(input="When?", output="In 1815.", context=[])
    skipped = scored(RelevancyEvaluator().as_scorer(), empty)
    assert isinstance(skipped, Skipped)
    assert "no passages" in skipped.reason
    failed = scored(RelevancyEvaluator(when_empty="fail").as_scorer(), empty)
    assert isinstance(failed, Score)
    assert failed.value == 0


def test_passages_come_from_tool_results_as_for_every_scorer() -> None:
    call = ToolCall(name="look_up", result="Ada, 1815.")
    sample = Sample(output="In 1815.", messages=[Message(role="assistant", tool_calls=[call])])
    assert isinstance(scored(FactCheckingEvaluator().as_scorer(), sample, GOOD), Score)


@every
def test_the_signature_changes_with_threshold_and_prompt_and_not_with_the_judge(kind: type[JudgeEvaluator]) -> None:
    plain = kind().as_scorer()
    assert kind(ScriptedJudge([])).as_scorer().signature == plain.signature
    assert plain.signature == type(plain)().signature
    assert plain.signature.startswith(f"{kind.name}(")
    assert "threshold=0.9;" in kind(threshold=0.9).as_scorer().signature
    assert "scale=10, threshold=0.9;" in kind(threshold=0.9).as_scorer(scale=10).signature
    template = {"fact_check": "{document} {claim}", "answer_faithfulness": "{context} {student_answer}"}
    own = kind(prompt=template.get(kind.name, "{question} {student_answer} {context}"))
    assert own.prompts[0].fingerprint in own.as_scorer().signature
    assert own.as_scorer().signature != plain.signature
    assert own.as_scorer() == pickle.loads(pickle.dumps(own.as_scorer()))


def test_the_signature_tells_layout_and_explanation() -> None:
    assert "layout=minicheck" in FactCheckingEvaluator.for_bespoke_minicheck().as_scorer().signature
    plain, explained = (AnswerCorrectnessEvaluator().as_scorer(explain=e).signature for e in (False, True))
    assert plain.count(",") == 0
    assert explained.count(",") == 1


def test_a_score_can_be_explained() -> None:
    outcome = scored(AnswerRelevancyEvaluator().as_scorer(explain=True), SAMPLE, GOOD, {"explanation": "Because."})
    assert isinstance(outcome, Score)
    assert outcome.reason == "Because."


@every
def test_a_scale_of_nothing_is_refused(kind: type[JudgeEvaluator]) -> None:
    with pytest.raises(ConfigError, match="scale"):
        kind().as_scorer(scale=0)
