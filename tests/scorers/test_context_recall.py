from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import ListClaims, VerifyClaims
from evalstone.scorers import ContextRecall
from evalstone.types import Sample
from tests.fakes import claims, record_of, score_of, verdicts

SAMPLE = Sample(reference="Born 1815 in London to Byron.", context=["Born 1815.", "Byron had a daughter."])
SAID = claims("She was born in 1815.", "She was born in London.", "Byron was her father.")


@pytest.mark.parametrize(
    ("said", "words", "value", "reason"),
    [
        (
            SAID,
            [("supported", [1]), "not_mentioned", ("supported", [2])],
            2 / 3,
            "the passages support 2 of 3 claims of the reference; not retrieved: “She was born in London.”.",
        ),
        (claims("a"), [("supported", [1])], 1, "the passages support 1 of 1 claim of the reference."),
    ],
)
def test_the_reason_counts_the_claims_of_the_reference_and_names_what_was_not_retrieved(
    said: dict[str, Any], words: list[Any], value: float, reason: str
):
    score = score_of(ContextRecall(), SAMPLE, [said, verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert [v.passages for v in score.evidence] == [() if isinstance(word, str) else tuple(word[1]) for word in words]


def test_a_contradicted_claim_was_not_retrieved_either():
    assert score_of(ContextRecall(), SAMPLE, [claims("a"), verdicts(("contradicted", [1]))]).value == 0


def test_it_looks_at_the_reference_and_never_at_the_answer():
    sample = Sample(input="q", output="wrong", reference="right", context=["p"])
    _, judge = record_of(ContextRecall(), sample, [claims("right"), verdicts("supported")])
    assert judge.asked == [ListClaims(text="right", question="q"), VerifyClaims(claims=("right",), context=("p",))]
    assert ContextRecall().required_fields == ("reference", "context")


def test_a_sample_for_which_nothing_was_retrieved_has_a_recall_of_zero():
    sample = Sample(reference="a", context=[])
    assert score_of(ContextRecall(), sample, [claims("a"), verdicts("not_mentioned")]).value == 0
