from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.questions import ClaimVerdict
from evalstone.scorers import Faithfulness, Hallucination
from evalstone.scorers.rag.claims import supported_share, unsupported_share
from evalstone.types import Sample
from tests.fakes import claims, record_of, score_of, verdicts

SAMPLE = Sample(output="Ada was born in 1815 in London, in May.", context=["Ada, born 1815.", "Ada came from Paris."])
SAID = claims("Ada was born in 1815.", "Ada was born in London.", "Ada was born in May.")
MIXED = verdicts(("supported", [1]), ("contradicted", [2]), "not_mentioned")


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (
            ["supported", ("contradicted", [2]), "not_mentioned"],
            2 / 3,
            "2 of 3 claims are not supported; contradicted: “Ada was born in London.” (by passage 2); "
            "in no passage: “Ada was born in May.”.",
        ),
        (["supported"], 0, "0 of 1 claim is not supported."),
    ],
)
def test_the_reason_names_what_is_made_up_and_the_passage_that_contradicts(words: list[Any], value: float, reason: str):
    score = score_of(Hallucination(), SAMPLE, [claims(*SAID["claims"][: len(words)]), verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


@given(st.lists(st.sampled_from(["supported", "contradicted", "not_mentioned"]), min_size=1, max_size=40))
def test_faithfulness_and_hallucination_add_up_to_one(words: list[str]):
    found = [ClaimVerdict("c", word) for word in words]  # pyright: ignore[reportArgumentType]
    assert supported_share(found) + unsupported_share(found) == pytest.approx(1)


def test_it_asks_exactly_what_faithfulness_asks():
    _, one = record_of(Hallucination(), SAMPLE, [SAID, MIXED])
    _, other = record_of(Faithfulness(), SAMPLE, [SAID, MIXED])
    assert one.asked == other.asked


def test_lower_is_better():
    assert Hallucination.lower_is_better


def test_with_an_empty_list_of_passages_everything_is_made_up():
    sample = Sample(output="a", context=[])
    assert score_of(Hallucination(), sample, [claims("a"), verdicts("not_mentioned")]).value == 1
