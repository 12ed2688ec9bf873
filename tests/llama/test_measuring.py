"""What tells a measurement from a reply that is none, on replies as the real model gave them; no model is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.llama import proxy
from bench.real_model import SAMPLES, conversations, flaws, report, share_ended, unmeasured
from evalstone import Failed, JudgeCall, ModelJudge, Record, Score, Skipped, evaluate
from tests.serving import completion, serving

FERRY = SAMPLES[1]
RULES = (
    'One claim holds one fact. "Ada, born in 1815, wrote the first program" holds two. Naming the decisive words helps.'
)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"claims": ["1. Ada, born in 1815, wrote the first program"]}, "claims copied"),
        ({"claims": ["Ada, who was born in London, wrote the first program."]}, "invented"),
        ({"claims": ["The ferry takes 70 minutes."]}, "invented"),
        ({"claims": ["…"]}, "placeholder"),
        ({"reason": "<text>", "verdict": "yes"}, "placeholder"),
        ({"intent": {"reason": "reason", "score": 1}}, "placeholder"),
        ({"reason": "naming the decisive words", "verdict": "yes"}, "reason copied"),
        ({"verdicts": [{"reason": "Rude.", "part": "You are an idiot.", "verdict": "yes"}]}, "not in the text"),
        ({"verdicts": {"1": {"reason": "It says so.", "passages": [], "verdict": "supported"}}}, "cites []"),
        ({"verdicts": {"1": {"reason": "It does not.", "passages": [4], "verdict": "contradicted"}}}, "cites [4]"),
    ],
)
def test_a_reply_that_measures_nothing_is_told(reply: Any, why: str) -> None:
    found = flaws(json.dumps(reply), RULES, FERRY)
    assert len(found) == 1
    assert why in found[0]


@pytest.mark.parametrize(
    "reply",
    [
        {"claims": ["The ferry takes 90 minutes.", "2. The ferry runs every hour.", "Bicycles travel free of charge."]},
        {"claims": []},
        {"verdicts": [{"reason": "It harms no one.", "part": "Bicycles travel free of charge", "verdict": "no"}]},
        {"verdicts": {"1": {"reason": "Passage 1 says 45.", "passages": [1], "verdict": "contradicted"}}},
        {"verdicts": {"1": {"reason": "", "passages": [], "verdict": "not_mentioned"}}},
        {"reason": "The answer gives another time than the reference.", "verdict": "no"},
    ],
)
def test_a_reply_about_the_sample_is_a_measurement(reply: Any) -> None:
    assert flaws(json.dumps(reply), RULES, FERRY) == []


def test_what_passes_is_counted_by_question() -> None:
    def behaviour(request: dict[str, Any], number: int) -> dict[str, Any]:
        if number == 1:
            return completion('{"reason": "It go', finish="length")
        return completion('{"reason": "The times differ.", "verdict": "no"}')

    with serving(behaviour) as server, proxy(server.url) as between:
        judge = ModelJudge("llamacpp/m", base_url=between.url, retries=1)
        run = evaluate(SAMPLES[:2], "answer_correctness", judge=judge, ledger=None, concurrency=1)
        records = list(run.records)
    assert [len(replies) for replies in conversations(between.exchanges)] == [2, 1]
    assert share_ended(between.exchanges) == 0.5
    table = report(records, between.exchanges, 1.0)
    assert "1 of 1 questions, helped 1" in table
    assert "3 in 1 s, for 2 questions" in table
    assert unmeasured(records, between.exchanges) == []


def test_only_scores_are_held_to_be_measurements() -> None:
    call = JudgeCall(question="q", fingerprint="f", judge="j", answer={}, reply='{"reason": "…", "verdict": "yes"}')
    outcomes = (Score(1.0), Failed("no"), Skipped("no"))
    records = [
        Record(sample_id="right", scorer="s", signature="s", outcome=outcome, calls=(call,)) for outcome in outcomes
    ]
    assert [(record.outcome, len(why)) for record, why in unmeasured(records, [])] == [(Score(1.0, scale=1.0), 1)]
