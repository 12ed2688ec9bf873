"""Blank text is absent: nothing is asked about it, and it has no score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from evalstone import GEval, LLMClassifier, Pipeline, checks, evaluate
from evalstone._core.text import is_blank
from evalstone.judges import ScriptedJudge
from evalstone.scorers import SCORERS, Faithfulness, GoalReached, PlanAdherence, PlanQuality, Scorer, TopicAdherence
from evalstone.scorers.checks import TextCheck
from evalstone.scorers.custom.pipeline import PromptStep
from evalstone.types import Failed, Message, Sample, Score, Skipped
from tests.fakes import outcome_of, record_of
from tests.scorers.variants import FULL

BLANKS = ["", " ", "\n\t\u00a0", "\u200b\ufeff", "\u2060\u00ad\u3164", "\x00\x1b", "\u2800\ufe0f\U000e0041"]
TEXTS = ("input", "output", "reference", "context", "instructions")

blank = pytest.mark.parametrize("blank", BLANKS, ids=ascii)
PLAIN = [
    kind()
    for name, kind in SCORERS.items()
    if not SCORERS.paths[name].startswith(("checks.", "wrappers.")) and name != "embedding_similarity"
]


@blank
def test_what_shows_nothing_is_blank(blank: str):
    assert is_blank(blank)
    for seen in (".", "0", "\u200bא", "🙂", "\ue000", " é"):
        assert not is_blank(seen + blank)


@blank
@pytest.mark.parametrize("scorer", PLAIN, ids=lambda scorer: scorer.name)
def test_a_blank_field_that_is_needed_is_skipped_before_anything_is_asked(scorer: Scorer, blank: str):
    for name in {need.field for need in scorer.needs if not need.alternatives} & set(TEXTS) - set(scorer.reads_blank):
        record, judge = record_of(scorer, Sample(**cast(Any, {**FULL, name: blank})), lambda _: pytest.fail("asked"))
        assert record.outcome == Skipped(f"the {name} is blank")
        assert judge.asked == []


def test_passages_are_blank_when_all_of_them_are_and_none_is_not_blank():
    for context, asked in ((["", " "], 0), ([], 1), (["", "b"], 1)):
        record, judge = record_of(Faithfulness(), Sample(output="a", context=context), [{"claims": []}])
        assert isinstance(record.outcome, Skipped)
        assert len(judge.asked) == asked


class Own(Scorer):
    """What it was given."""

    name = "own"

    def score(self, *, output: str, reference: str = "none", messages: Sequence[Any] = ()) -> Score:
        return Score(1, reason=reference)


class Tolerant(Scorer):
    """How many characters an answer has, a blank one included."""

    name = "tolerant"
    reads_blank = ("output",)

    def score(self, *, output: str) -> Score:
        return Score(0, reason=f"{len(output)}")


@blank
def test_scorers_of_your_own_are_not_called_with_blank_text(blank: str):
    step = PromptStep("{{output}}")
    for scorer in (Own(), LLMClassifier("Polite?"), GEval("Polite", steps=[]), Pipeline(score=step, name="p")):
        assert isinstance(outcome_of(scorer, Sample(input="q", output=blank), []), Skipped)
    assert outcome_of(Own(), Sample(output="a", reference=blank), []) == Score(1, "none", scale=1, evidence=[])
    assert outcome_of(Tolerant(), Sample(output=blank), []) == Score(0, f"{len(blank)}", scale=1, evidence=[])


@blank
def test_a_check_of_text_takes_a_blank_answer_as_it_is_and_no_blank_reference(blank: str):
    made = (checks.contains(), checks.exact_match(), checks.regex(), checks.similarity())
    for check in (*made, checks.not_contains("a")):
        assert isinstance(check, TextCheck)
        checked = check.scaled(check.check(blank, "a"))
        assert isinstance(checked, Score)
        expected = replace(checked, evidence=[])
        assert outcome_of(check, Sample(output=blank, reference="a"), []) == expected
        assert expected.value == (check not in made)
        if check in made:
            assert isinstance(outcome_of(check, Sample(output="a", reference=blank), []), Skipped)


def test_a_column_is_read_like_samples():
    scorer: Any = SCORERS["rouge_l"]()
    pairs = [(" ", "a"), ("a", "\u200b"), (None, "a")]
    outcomes: list[Any] = scorer.score_columns(output=[one for one, _ in pairs], reference=[two for _, two in pairs])
    assert outcomes == [outcome_of(scorer, Sample(output=one, reference=two), []) for one, two in pairs]
    assert all(isinstance(outcome, Skipped) for outcome in outcomes)


def test_a_run_goes_on_where_all_samples_are_blank():
    run = evaluate([{"output": " ", "context": ["a"]}], "faithfulness", judge=ScriptedJudge([]), ledger=None)
    assert isinstance(run.records[0].outcome, Skipped)


@blank
def test_by_mastra_a_blank_answer_is_judged(blank: str):
    sample = replace(Sample(**FULL), id="", output=blank)
    for name in ("faithfulness", "hallucination", "bias", "toxicity", "answer_relevancy", "rubric", "summarization"):
        _, judge = record_of(SCORERS[name](definition="mastra"), sample, lambda question: None)  # type: ignore[call-arg]
        assert judge.asked, name


@blank
@pytest.mark.parametrize("name", ["context_precision", "context_position", "context_relevance", "context_usage"])
def test_by_mastra_passages_are_judged_for_a_blank_question_and_a_blank_answer(name: str, blank: str):
    for field in ("input", "output"):
        sample = Sample(**cast(Any, {**FULL, field: blank}))
        _, judge = record_of(SCORERS[name](definition="mastra"), sample, lambda question: None)  # type: ignore[call-arg]
        assert judge.asked, field


AGENTS = [GoalReached(), PlanAdherence(), PlanQuality(), TopicAdherence(topics=["baking"])]


@blank
@pytest.mark.parametrize("scorer", AGENTS, ids=lambda scorer: scorer.name)
def test_blank_messages_are_no_side_of_a_conversation(scorer: Scorer, blank: str):
    hello, nothing = Message(role="assistant", content="Hello."), Message(role="assistant", content=blank)
    unasked = Failed(f"{scorer.name}: the conversation has no user message, and the sample no input")
    for messages, outcome in (
        ([Message(role="user", content=blank), hello], unasked),
        ([Message(role="user", content="Bake."), nothing], Skipped("the output is blank")),
    ):
        record, judge = record_of(scorer, Sample(messages=messages), lambda _: pytest.fail("asked"))
        assert record.outcome == outcome
        assert judge.asked == []
