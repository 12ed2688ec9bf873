"""Texts that would keep a scorer in code, or the lexical judge, busy for minutes have a clear outcome at once."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import Failed, Sample, Score, Skipped, evaluate, score
from evalstone.judges.lexical import answers
from evalstone.scorers.text import similarity, word_coverage

WORDS = " ".join(f"w{number}" for number in range(300))
LONG_WORDS = " ".join(f"{number:045d}" for number in range(300))


def outcome(scorer: str, text: str, **options: Any) -> Any:
    return score(scorer, input=text[::-1], output=text, reference=text[::-1], ledger=None, **options).outcome


@pytest.mark.parametrize(
    ("scorer", "module", "limit", "text", "problem"),
    [
        ("rouge_l", similarity, "MOST_WORDS", WORDS, "texts of 300 and 300 words"),
        ("textual_difference", similarity, "MOST_CHARACTERS", WORDS, "texts of 1,389 and 1,389 characters"),
        (
            "textual_difference(definition=mastra_0_13)",
            similarity,
            "MOST_FOR_BLOCKS",
            WORDS,
            "texts of 1,389 and 1,389",
        ),
        ("levenshtein", similarity, "MOST_CHARACTERS", WORDS, "texts of 1,389 and 1,389"),
        (
            "completeness",
            word_coverage,
            "MOST_PAIRS",
            LONG_WORDS,
            "texts of 300 and 300 elements of 39 letters or more",
        ),
    ],
)
def test_a_quadratic_comparison_of_long_texts_fails_with_the_limit(
    monkeypatch: pytest.MonkeyPatch, scorer: str, module: Any, limit: str, text: str, problem: str
) -> None:
    size = 300 if "characters" not in problem and "1,389" not in problem else 1389
    monkeypatch.setattr(module, limit, size * size)
    assert isinstance(outcome(scorer, text), Score)
    monkeypatch.setattr(module, limit, size * size - 1)
    failed = outcome(scorer, text)
    assert isinstance(failed, Failed)
    assert f"{problem}" in failed.error
    assert f" at most {size * size - 1:,}" in failed.error


def test_elements_with_too_many_parts_fail_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_coverage, "MOST_PARTS", 300)
    failed = outcome("completeness", LONG_WORDS)
    assert isinstance(failed, Failed)
    assert failed.error.startswith("300 elements")
    assert "more than 300 parts" in failed.error


@pytest.mark.parametrize("scorer", ["rouge_l", "textual_difference", "levenshtein"])
@pytest.mark.slow
def test_a_megabyte_is_refused_without_being_compared(scorer: str) -> None:
    assert isinstance(outcome(scorer, "ab " * 400_000), Failed)


@pytest.mark.parametrize(
    ("scorer", "fields"),
    [
        ("faithfulness", "output context"),
        ("hallucination", "output context"),
        ("fact_check", "output context"),
        ("relevancy_check", "input output context"),
        ("context_relevance", "input output context"),
        ("context_precision", "input output context"),
        ("context_recall", "reference context"),
        ("answer_relevancy", "input output"),
        ("answer_correctness", "input output reference"),
    ],
)
def test_the_lexical_judge_declines_texts_that_are_too_long(
    monkeypatch: pytest.MonkeyPatch, scorer: str, fields: str
) -> None:
    text = "Paris is in France."
    monkeypatch.setattr(answers, "MAX_CHARACTERS", 200)
    sample: dict[str, Any] = {"input": "Where is Paris?", "output": text, "reference": text, "context": [text]}
    assert isinstance(score(scorer, sample, ledger=None).outcome, Score)
    for field in fields.split():
        longer = {**sample, field: [text * 20] if field == "context" else f"{text} " * 20}
        found = score(scorer, longer, ledger=None).outcome
        assert isinstance(found, Skipped)
        assert "at most 200 characters" in found.reason


def test_contexts_that_are_kept_have_no_more_text_than_one_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_CHARACTERS", 1000)
    kept: dict[Any, Any] = {}
    monkeypatch.setattr(answers, "_recent", kept)
    samples = [Sample(id=str(n), output="It is.", context=[f"It is {n} here. " * 10]) for n in range(30)]
    assert evaluate(samples, "fact_check", ledger=None)["fact_check"].n_score == 30
    assert 1 < len(kept) < 8
    assert sum(size for size, _ in kept.values()) <= 1000
    many = [Sample(id=str(n), output="It is.", context=[f"It is {n}."]) for n in range(30)]
    evaluate(many, "fact_check", ledger=None)
    assert len(kept) == answers.MOST_CONTEXTS
