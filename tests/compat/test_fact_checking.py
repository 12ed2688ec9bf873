from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from evalstone.compat.spring import EvaluationRequest, FactCheckingEvaluator
from evalstone.errors import ConfigError
from evalstone.judges import ScriptedJudge
from evalstone.questions.base import Question
from evalstone.questions.verdict import ClaimSupported, MiniCheck, YesNoVerdict, best_choice
from evalstone.scorers.rag.graded import ClaimCheck, lowest_support

LONDON = "She was born in London."
TEXT = f"Ada was born in 1815. {LONDON} She wrote notes."
REQUEST = EvaluationRequest(data_list=["Ada Lovelace, born 1815.", "Born in London."], response_content=TEXT)


def judge_of(**verdicts: str) -> ScriptedJudge:
    """Answers by the first of these words that stands in the claim; yes otherwise."""

    def say(question: Question[Any]) -> Any:
        claim = str(question.inputs()["claim"])
        verdict = next((said for word, said in verdicts.items() if word in claim), "yes")
        return verdict if isinstance(question, MiniCheck) else {"reason": f"on {claim}", "verdict": verdict}

    return ScriptedJudge(say)


def test_each_sentence_is_asked_about_against_all_documents() -> None:
    judge = judge_of()
    response = FactCheckingEvaluator(judge).evaluate(REQUEST)
    assert (response.passed, response.score) == (True, 1.0)
    assert response.feedback.startswith("3 of 3 ")
    asked = [question for question in judge.asked if isinstance(question, ClaimSupported)]
    assert [question.claim for question in asked] == TEXT.replace(". ", ".|").split("|")
    assert {question.context for question in asked} == {REQUEST.documents}
    assert len(response.metadata["replies"]) == 3


def test_one_sentence_without_support_fails_the_response_and_is_named() -> None:
    response = FactCheckingEvaluator(judge_of(London="no")).evaluate(REQUEST)
    assert (response.passed, response.score) == (False, 0.0)
    assert response.feedback.startswith("2 of 3 ")
    assert response.feedback.endswith(f"not supported: “{LONDON}”.")
    assert response.metadata["evidence"][1] == dataclasses.asdict(ClaimCheck(LONDON, "no", f"on {LONDON}"))


def test_an_undecided_sentence_leaves_the_response_undecided_unless_another_failed() -> None:
    undecided = FactCheckingEvaluator(judge_of(London="undecided")).evaluate(REQUEST)
    assert (undecided.passed, undecided.score) == (None, None)
    assert f"undecided: “{LONDON}”" in undecided.feedback
    failed = FactCheckingEvaluator(judge_of(London="undecided", notes="no")).evaluate(REQUEST)
    assert (failed.passed, failed.score) == (False, 0.0)


def test_a_sentence_that_stands_twice_is_asked_about_once() -> None:
    judge = judge_of()
    FactCheckingEvaluator(judge).evaluate(EvaluationRequest(data_list=["d"], response_content="So it is. So it is."))
    assert len(judge.asked) == 1


@pytest.mark.parametrize("response", ["…", "?!"])
def test_a_response_without_a_sentence_is_undecided(response: str) -> None:
    judge = judge_of()
    made = FactCheckingEvaluator(judge).evaluate(EvaluationRequest(data_list=["d"], response_content=response))
    assert (made.passed, "no claim" in made.feedback, judge.asked) == (None, True, [])


def test_the_whole_response_can_be_asked_about_at_once() -> None:
    judge = judge_of()
    FactCheckingEvaluator(judge, by_sentence=False).evaluate(REQUEST)
    assert [question.inputs()["claim"] for question in judge.asked] == [TEXT]


def test_long_documents_are_asked_about_in_chunks_and_one_that_supports_is_enough() -> None:
    def say(question: Question[Any]) -> str:
        return "yes" if "London" in str(question.inputs()["context"]) else "no"

    judge = ScriptedJudge(say)
    request = EvaluationRequest(data_list=REQUEST.documents, response_content="She was born in London.")
    response = FactCheckingEvaluator(judge, longest=25).evaluate(request)
    assert response.passed is True
    assert [question.inputs()["context"] for question in judge.asked] == [(text,) for text in REQUEST.documents]


def test_minicheck_is_asked_in_its_own_layout_and_answers_in_plain_text() -> None:
    judge = judge_of(London="No")
    response = FactCheckingEvaluator.for_bespoke_minicheck(judge, threshold=1).evaluate(REQUEST)
    assert (response.passed, response.score) == (False, 0.0)
    documents, claim = "\n".join(REQUEST.documents), TEXT.partition(". ")[0]
    assert judge.asked[0].render() == ("", f"Document: {documents}\nClaim: {claim}.")
    assert response.metadata["replies"] == ("yes", "No", "yes")


def test_an_unclear_minicheck_reply_is_undecided() -> None:
    request = EvaluationRequest(data_list=["d"], response_content="So it is.")
    response = FactCheckingEvaluator.for_bespoke_minicheck(ScriptedJudge(["The"])).evaluate(request)
    assert response.status == "undecided"
    assert "'The'" in response.feedback


def test_the_user_text_is_not_taken_for_a_document() -> None:
    judge = judge_of()
    request = EvaluationRequest(user_text="the document, in the wrong place", response_content="So it is.")
    assert FactCheckingEvaluator.for_bespoke_minicheck(judge).evaluate(request).status == "undecided"
    assert judge.asked == []


@pytest.mark.parametrize("options", [{"layout": "other"}, {"longest": 0}])
def test_an_unknown_layout_or_a_chunk_of_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        FactCheckingEvaluator(**options)


def test_the_best_chunk_and_the_worst_claim_decide() -> None:
    yes, no, undecided = YesNoVerdict("yes"), YesNoVerdict("no"), YesNoVerdict("undecided")
    assert best_choice([no, undecided, yes]) is yes
    assert best_choice([no, undecided]) is undecided
    assert best_choice([no]) is no
    checks = [ClaimCheck("a", "yes"), ClaimCheck("b", "undecided"), ClaimCheck("c", "no")]
    assert lowest_support(checks) == 0
    assert lowest_support(checks[:2]) is None
    assert lowest_support(checks[:1]) == 1
    assert lowest_support([ClaimCheck("a", "yes", probability=0.9), ClaimCheck("b", "no", probability=0.2)]) == 0.2
