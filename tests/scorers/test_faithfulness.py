from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalstone.questions import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.scorers import ContextScorer, Faithfulness, Hallucination
from evalstone.scorers.rag.claims import supported_share
from evalstone.types import Failed, Message, Sample, Score, Skipped, ToolCall
from tests.fakes import claims, outcome_of, record_of, score_of, verdicts

SAMPLE = Sample(output="Ada was born in 1815 in London, in May.", context=["Ada, born 1815.", "Ada came from Paris."])
SAID = claims("Ada was born in 1815.", "Ada was born in London.", "Ada was born in May.")
NONE: list[int] = []
MIXED = verdicts(("supported", [1]), ("contradicted", [2]), "not_mentioned")


def verdict(word: Any) -> ClaimVerdict:
    return ClaimVerdict("c", word)


@pytest.mark.parametrize(
    ("words", "share"),
    [
        (["supported"], 1),
        (["contradicted"], 0),
        (["supported", "contradicted", "not_mentioned", "supported"], 0.5),
        (["supported", "supported", "not_mentioned"], 2 / 3),
    ],
)
def test_the_share_counts_supported_claims_only(words: list[str], share: float):
    assert supported_share([verdict(word) for word in words]) == share


@pytest.mark.parametrize(
    ("words", "share", "reason"),
    [
        (
            [("supported", [1]), ("contradicted", [2]), ("not_mentioned", NONE)],
            1 / 3,
            "1 of 3 claims are supported; contradicted: “Ada was born in London.” (by passage 2); "
            "in no passage: “Ada was born in May.”.",
        ),
        (
            [("contradicted", [1]), ("contradicted", [2, 1]), ("contradicted", [2])],
            0,
            "0 of 3 claims are supported; contradicted: “Ada was born in 1815.” (by passage 1); "
            "“Ada was born in London.” (by passage 2, 1); “Ada was born in May.” (by passage 2).",
        ),
        ([("supported", [1])], 1, "1 of 1 claim is supported."),
    ],
)
def test_the_reason_names_the_claims_that_fell_and_on_which_passage(
    words: list[tuple[str, list[int]]], share: float, reason: str
):
    said = SAID["claims"][: len(words)]
    score = score_of(Faithfulness(), SAMPLE, [claims(*said), verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(share), reason)
    assert [(v.claim, v.verdict, v.passages) for v in score.evidence] == [
        (claim, word, tuple(cited)) for claim, (word, cited) in zip(said, words, strict=True)
    ]


def test_many_fallen_claims_are_counted_and_the_first_three_named():
    said = [f"claim {number} " + "x" * 300 for number in range(20)]
    sample = Sample(output="\n".join(said), context=["Ada."])
    reason = score_of(Faithfulness(), sample, [claims(*said), verdicts(*["not_mentioned"] * 20)]).reason
    assert reason.startswith("0 of 20 claims")
    assert re.findall(r"“claim (\d+) x", reason) == ["0", "1", "2"]
    assert reason.endswith("; and 17 more.")
    assert len(reason) < 600


def test_the_claims_of_the_answer_are_checked_against_the_passages():
    _, judge = record_of(Faithfulness(), SAMPLE, [SAID, MIXED])
    assert judge.asked == [
        ListClaims(text=SAMPLE.output or ""),
        VerifyClaims(claims=tuple(SAID["claims"]), context=tuple(SAMPLE.context or ())),
    ]


def test_a_miscount_that_is_mended_in_a_retry_counts_as_if_it_had_never_been():
    record, _ = record_of(Faithfulness(), SAMPLE, [SAID, verdicts("supported"), MIXED], retries=1)
    assert isinstance(record.outcome, Score)
    assert record.outcome.value == pytest.approx(1 / 3)
    assert record.calls[1].usage.requests == 2


def test_a_citation_of_a_passage_that_does_not_exist_fails_with_the_reply():
    outcome = outcome_of(Faithfulness(), SAMPLE, [claims("a"), verdicts(("supported", [3]))])
    assert isinstance(outcome, Failed)
    assert json.loads(outcome.reply or "") == verdicts(("supported", [3]))


def test_with_an_empty_list_of_passages_nothing_is_supported():
    sample = Sample(output="a", context=[])
    assert score_of(Faithfulness(), sample, [claims("a"), verdicts("not_mentioned")]).value == 0


@pytest.mark.parametrize("kind", [Faithfulness, Hallucination])
def test_without_passages_the_results_of_tools_are_the_context(kind: type[ContextScorer]):
    calls = [
        ToolCall(name="search", result="Ada, 1815."),
        ToolCall(name="lookup", result={"born": 1815, "ort": "Köln"}),
        ToolCall(name="silent", result=None),
        ToolCall(name="pending", result="not there yet", state="call"),
        ToolCall(name="broken", result="no", state="error", error="no"),
    ]
    messages = [Message(role="assistant", tool_calls=calls[:2]), Message(role="assistant", tool_calls=calls[2:])]
    sample = Sample(output="a", messages=messages)
    assert kind().passages_for(sample) == ("Ada, 1815.", '{"born": 1815, "ort": "Köln"}')
    _, judge = record_of(kind(), sample, [claims("a"), verdicts(("supported", [2]))])
    assert judge.asked[1] == VerifyClaims(claims=("a",), context=("Ada, 1815.", '{"born": 1815, "ort": "Köln"}'))


def test_the_samples_own_passages_come_before_the_results_of_tools_even_when_there_are_none():
    messages = [Message(role="assistant", tool_calls=[ToolCall(name="search", result="x")])]
    assert Faithfulness().passages_for(Sample(messages=messages, context=[])) == ()
    assert Faithfulness(context=[]).passages_for(Sample(messages=messages, context=["p"])) == ()


def test_a_function_that_finds_no_passages_makes_it_skipped_and_one_that_breaks_failed():
    def none(sample: Sample) -> Any:
        return None

    def broken(sample: Sample) -> Any:
        raise KeyError(sample.metadata["document"])

    assert isinstance(outcome_of(Faithfulness(context_from=none), SAMPLE, []), Skipped)
    failed = outcome_of(Faithfulness(context_from=broken), SAMPLE, [])
    assert isinstance(failed, Failed)
    place = f"{Path(__file__).name}, line {broken.__code__.co_firstlineno + 1}"
    assert failed.error == f"KeyError: 'document' ({place})"
