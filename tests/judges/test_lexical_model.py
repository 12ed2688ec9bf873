"""The trained part of the lexical judge: its file, its probabilities, its card."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.compat.spring import EvaluationRequest, FactCheckingEvaluator
from evalstone.errors import DataError
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.features import IDEAL, NAMES, evidence, word_overlap
from evalstone.judges.lexical.model import Curve, from_data, lexicon, logistic, pooled, shipped
from evalstone.judges.lexical.normalization import comparable_low
from evalstone.judges.lexical.passages import prepared
from evalstone.questions.verdict import ClaimSupported, YesNoVerdict

TOWER = (
    "The Eiffel Tower is 300 metres tall. It was completed in 1889 by the company of Gustave Eiffel.",
    "Paris is the capital of France. About two million people live in the city.",
)


def packed() -> bytes:
    return resources.files("evalstone.judges.lexical").joinpath("model.json.gz").read_bytes()


def content() -> dict[str, Any]:
    return json.loads(gzip.decompress(packed()))


def choice(response: str, context: tuple[str, ...] = TOWER) -> YesNoVerdict:
    return asyncio.run(LexicalJudge().answer(ClaimSupported(claim=response, context=context))).value


def support(response: str, context: tuple[str, ...] = TOWER) -> float:
    probability = choice(response, context).probability
    assert probability is not None
    return probability


def test_the_shipped_file_is_plain_data_of_some_kilobytes_without_a_time_or_a_name_in_it():
    assert len(packed()) < 3_000_000
    assert packed()[:4] == b"\x1f\x8b\x08\x00"  # no file name
    assert packed()[4:8] == b"\x00\x00\x00\x00"  # no time: trained again it is the same
    assert (
        json.dumps(content(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        == gzip.decompress(packed()).decode()
    )


def test_the_shipped_weights_are_those_of_the_measures_and_none_is_below_zero():
    assert content()["measures"] == list(NAMES)
    assert len(shipped().weights) == len(NAMES) == len(IDEAL)
    assert min(shipped().weights) >= 0
    assert shipped().response.weights[0] > 0


def test_the_figures_are_of_the_shipped_model_and_judge():
    card = LexicalJudge().card
    assert card["judge"] == LexicalJudge().identity
    assert card["model"] == hashlib.sha256(packed()).hexdigest()[:16]


def test_the_card_has_every_data_set_and_never_halueval():
    card = LexicalJudge().card
    assert list(card["data_sets"])[:3] == ["ragtruth_qa", "ragtruth_summary", "ragtruth_data2txt"]
    assert not any("halueval" in name for name in card["data_sets"])
    for one in card["data_sets"].values():
        assert one["auroc_interval"][0] <= one["auroc"] <= one["auroc_interval"][1]
        assert 0 < one["positive"] < one["rows"]
    assert list(card["dialogue"]) == ["dialogue_wow", "dialogue_cmu", "dialogue_topical"]
    assert card["pooled"]["ragtruth"]["calibration_error"] <= 0.05
    assert card["pooled"]["all"]["calibration_error"] <= 0.05


def test_on_no_left_out_data_is_the_judge_worse_than_word_overlap_beyond_doubt():
    card = LexicalJudge().card
    for one in (*card["data_sets"].values(), *card["dialogue"].values()):
        low, high = one["difference_interval"]
        assert high > 0
        assert low <= one["left_out"]["auroc"] - one["word_overlap_auroc"] <= high
    aurocs = [one["left_out"]["auroc"] for one in card["data_sets"].values()]
    assert sum(aurocs) / len(aurocs) >= 0.716


@pytest.mark.parametrize(("member", "value"), [("format", 1), ("measures", ["words"]), ("stemmer", "none")])
def test_a_model_that_was_made_for_other_code_is_refused(member: str, value: Any):
    with pytest.raises(DataError, match=rf"model\.json\.gz: {member} .*`make train-lexical`"):
        from_data({**content(), member: value})


def test_rarer_stems_count_more_and_unseen_ones_most():
    words = lexicon(9, {"often": 9, "once": 1})
    assert words.weights["often"] == math.log(10 / 9.5)
    assert words.weights["once"] == math.log(10 / 1.5)
    assert words.unseen == math.log(10 / 0.5)


def test_over_claims_the_mean_less_the_standard_deviation_counts():
    assert pooled([(1.0, 0.5), (0.0, 0.5)], [1, 1]) == [0.0, 0.5]
    assert pooled([(0.25, -1.0)], [5]) == [0.25, -1.0]
    assert pooled([], []) == list(IDEAL)


def test_a_claim_of_few_words_counts_less():
    assert pooled([(1.0,), (0.0,)], [4, 1]) == [pytest.approx(0.8 - 0.4)]
    passages = prepared(TOWER, shipped().lexicon)
    assert [evidence(claim, passages).size for claim in ("It is.", "That is cool.", TOWER[0])] == [1, 1, 5]
    told, foreign = "Paris is the capital of France.", "Whales sing under water in Honolulu."
    assert support(f"{told} That is cool.") > support(f"{told} {foreign}")


@pytest.mark.parametrize(("response", "share"), [("Paris, Paris is three hundred metres tall? Sure!", 5 / 6), ("", 1)])
def test_word_overlap_is_the_share_of_the_different_words_of_the_whole_response(response: str, share: float):
    assert word_overlap(comparable_low(response), prepared(TOWER, shipped().lexicon)) == share


def test_word_overlap_has_a_fifth_of_the_say_and_all_of_it_where_nothing_is_claimed():
    model = replace(shipped(), response=Curve((1.0, 0.0, 0.0, 0.0), 0.0), overlap=Curve((2.0, 0.0, 0.0), -1.0))
    assert model.response_logit(3.0, 1.0, fields=False, short=True) == pytest.approx(0.8 * 3 + 0.2 * 1)
    assert model.response_logit(None, 1.0, fields=False, short=True) == 0.5
    assert support("Is Paris large?") > 0.5 > support("Do whales sing?")


def test_a_curve_is_logistic_and_does_not_overflow():
    assert Curve((2.0, 0.0), -1.0).at(0.5, 7.0) == 0.5
    assert logistic(1000) == 1
    assert logistic(-1000) == 0


def test_every_measure_of_a_copied_sentence_is_at_its_best():
    sentence = "Gustave Eiffel built the tower in Paris."
    assert evidence(sentence, prepared((sentence,), shipped().lexicon)).values == IDEAL


def test_no_measure_leaves_its_range():
    passages = prepared(TOWER, shipped().lexicon)
    for claim in ("Berlin has 7 towers, not 8, all of them taller than 4711 metres.", "Paris.", "12", "a"):
        assert all(-1 <= value <= 1 for value in evidence(claim, passages).values)


def test_the_more_a_response_adds_the_less_it_is_supported():
    whole = "The Eiffel Tower is 300 metres tall. It was completed in 1889."
    more, other = f"{whole} Gustave Eiffel was born in Dijon.", "Whales sing under water."
    assert support(whole) > support(more) > support(other)


def test_the_probability_is_of_the_verdict_and_the_reason_names_the_weakest_claim():
    weakest = "Whales sing in Honolulu at night."
    found = choice(f"The Eiffel Tower is 300 metres tall. {weakest}")
    assert found.verdict == "no"
    assert found.probability is not None
    assert found.probability < 0.5
    assert f'supported least: "{weakest}"' in found.reason
    assert choice(TOWER[0]).verdict == "yes"


@pytest.mark.parametrize("claim", ["The Eiffel Tower is 320 metres tall.", "Paris is not the capital of France."])
def test_another_figure_or_a_negation_in_the_same_sentence_is_a_no(claim: str):
    assert support(claim) <= 0.2


def test_without_passages_nothing_is_supported_and_without_claims_nothing_is_lacking():
    assert choice("Paris is large.", ()).verdict == "no"
    assert "no text" in choice("Paris is large.", ()).reason
    declined = "I cannot answer this question."
    assert support(declined) == 0.5
    assert choice(declined).verdict == "yes"


def test_passages_joined_by_blank_lines_are_judged_as_those_apart():
    response = "The tower is 300 metres tall. The city has two million people."
    assert support(response, ("\n\n".join(TOWER),)) == support(response)


def test_fact_check_scores_the_whole_response_by_its_probability():
    response = "The Eiffel Tower is 300 metres tall. It was completed in 1889."
    run = evaluate([{"output": response, "context": list(TOWER)}], "fact_check", judge="lexical", ledger=None)
    assert run["fact_check"].mean == support(response)
    (step,) = run.records[0].calls
    assert step.question == "claim_supported"
    assert step.alternatives == {"yes": support(response), "no": 1 - support(response)}
    single = FactCheckingEvaluator("lexical").evaluate(EvaluationRequest("", TOWER, response))
    assert (single.score, single.passed) == (support(response), True)


def test_a_response_without_a_word_is_not_scored():
    run = evaluate([{"output": "…", "context": list(TOWER)}], "fact_check", judge="lexical", ledger=None)
    assert run["fact_check"].n_skipped == 1
