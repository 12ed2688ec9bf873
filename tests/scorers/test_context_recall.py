from __future__ import annotations

import pytest

from evalstone.errors import ConfigError
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.scorers import ContextRecall
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import claims, outcome_of, record_of, score_of, verdicts

SAMPLE = Sample(reference="Born 1815 in London to Byron.", context=["Born 1815.", "Byron had a daughter."])
SAID = claims("She was born in 1815.", "She was born in London.", "Byron was her father.")


def test_two_of_three_claims_of_the_reference_are_two_thirds_and_the_reason_names_what_was_not_retrieved():
    score = score_of(ContextRecall(), SAMPLE, [SAID, verdicts(("supported", [1]), "not_mentioned", ("supported", [2]))])
    assert score.value == pytest.approx(0.67, abs=0.005)
    assert score.reason == (
        "the passages support 2 of 3 claims of the reference; not retrieved: “She was born in London.”."
    )
    assert [v.passages for v in score.evidence] == [(1,), (), (2,)]


def test_a_contradicted_claim_was_not_retrieved_either():
    assert score_of(ContextRecall(), SAMPLE, [claims("a"), verdicts(("contradicted", [1]))]).value == 0


def test_when_everything_was_retrieved_the_reason_is_short():
    score = score_of(ContextRecall(), SAMPLE, [claims("a"), verdicts("supported")])
    assert (score.value, score.reason) == (1, "the passages support 1 of 1 claim of the reference.")


def test_it_looks_at_the_reference_and_never_at_the_answer():
    sample = Sample(input="q", output="wrong", reference="right", context=["p"])
    _, judge = record_of(ContextRecall(), sample, [claims("right"), verdicts("supported")])
    assert judge.asked == [ListClaims("right", "q"), VerifyClaims(claims=("right",), context=("p",))]
    assert ContextRecall().required_fields == ("reference", "context")


def test_a_reference_without_claims_is_skipped():
    assert outcome_of(ContextRecall(), SAMPLE, [claims()]) == Skipped("the reference makes no claim")


def test_a_missing_verdict_fails_instead_of_lowering_the_score():
    outcome = outcome_of(ContextRecall(), SAMPLE, [SAID, verdicts("supported", "supported")])
    assert isinstance(outcome, Failed)
    assert "3 claims, 2 verdicts" in outcome.error


def test_a_sample_for_which_nothing_was_retrieved_has_a_recall_of_zero():
    sample = Sample(reference="a", context=[])
    assert score_of(ContextRecall(), sample, [claims("a"), verdicts("not_mentioned")]).value == 0


def test_an_empty_list_of_passages_on_the_scorer_is_refused():
    with pytest.raises(ConfigError, match="context_recall: context is an empty list"):
        ContextRecall(context=[])
