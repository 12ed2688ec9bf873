from __future__ import annotations

import time
from typing import Any, cast

import pytest

from evalstone.errors import ConfigError
from evalstone.scorers import ToneConsistency
from evalstone.scorers.text.tone_consistency import sentence_tones, tone, toned_words, weights
from evalstone.types import Sample, Skipped
from tests.fakes import outcome_of, score_of


def test_the_weights_are_those_of_afinn_and_of_emojis():
    known = weights()
    assert (known["good"], known["bad"], known["abandon"], known["😂"]) == (3, -3, -2, 1)
    assert len(known) == 4149
    assert set(known.values()) <= set(range(-5, 6))


def test_the_tone_is_the_mean_weight_of_all_words():
    assert tone("a good day") == pytest.approx(3 / 3)
    assert tone("Good, good; bad!") == pytest.approx(3 / 3)
    assert tone("nothing to see") == 0
    assert tone("") == 0


def test_a_negator_turns_the_next_word_over_and_no_other():
    assert tone("not good") == pytest.approx(-3 / 2)
    assert tone("isn't good") == pytest.approx(-3 / 2)
    assert tone("not so good") == pytest.approx(3 / 3)


def test_words_are_divided_at_single_spaces_and_an_empty_text_has_one():
    assert toned_words("A\tb  c.d\n") == ["a\tb", "c", "d"]
    assert toned_words("…") == ["…"]
    assert toned_words("") == [""]


def test_sentences_end_with_a_stop_and_what_follows_the_last_is_left_out():
    assert sentence_tones("Good. Bad! so") == pytest.approx([3, -3])
    assert sentence_tones("good bad") == pytest.approx([0])
    assert sentence_tones("...") == [0]


def test_the_variance_of_sentence_tones_is_taken_off():
    text = "A good day now again. A day, six words long now."
    half = score_of(ToneConsistency(), Sample(output=text), [])
    assert half.evidence == tuple(sentence_tones(text)) == pytest.approx((0.6, 0))
    assert half.value == pytest.approx(1 - 0.09)


def test_a_variance_over_one_leaves_nothing():
    assert score_of(ToneConsistency(), Sample(output="Good. Bad."), []).value == 0


def test_the_distance_to_a_reference_tone_is_taken_off():
    score = score_of(ToneConsistency(reference_tone="a good day"), Sample(output="a good long day"), [])
    assert score.value == pytest.approx(1 - (1 - 0.75))

    assert score_of(ToneConsistency(reference_tone="good"), Sample(output="bad"), []).value == 0


def test_the_reference_may_be_the_samples_input_or_reference():
    sample = Sample(input="a good day", output="a day", reference="a day")
    assert score_of(ToneConsistency(compare_to="input"), sample, []).value == 0
    assert score_of(ToneConsistency(compare_to="reference"), sample, []).value == 1
    skipped = ToneConsistency(compare_to="input").score(output="a")
    assert isinstance(skipped, Skipped)
    assert skipped == outcome_of(ToneConsistency(compare_to="input"), Sample(output="a"), [])


def test_a_blank_answer_has_no_tone_except_by_mastra():
    blank = Sample(input="Good. Bad.", output=" ")
    for scorer in (ToneConsistency(), ToneConsistency(reference_tone="good"), ToneConsistency(compare_to="input")):
        assert isinstance(outcome_of(scorer, blank, []), Skipped)
    assert score_of(ToneConsistency(definition="mastra", scale=4), blank, []).value == 4
    assert score_of(ToneConsistency(definition="mastra", reference_tone="a good day"), blank, []).value == 0


def test_mastra_0_13_compares_with_the_input_and_takes_it_alone_where_there_is_no_answer():
    older = ToneConsistency(definition="mastra_0_13")
    assert score_of(older, Sample(input="a good day", output="a good long day"), []).value == pytest.approx(0.75)
    assert score_of(older, Sample(input="Good. Bad.", output=""), []).value == 0
    assert score_of(older, Sample(input="Good.", output=" "), []).value == 0
    assert score_of(older, Sample(input="", output=""), []).value == 1
    assert isinstance(outcome_of(older, Sample(output="Good."), []), Skipped)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"compare_to": "context"}, "compare_to must be 'input' or 'reference'"),
        ({"reference_tone": 3}, "reference_tone must be text, not 3"),
        ({"definition": "mastra_0_13", "compare_to": "input"}, "mastra_0_13 compares with the input"),
        ({"definition": "mastra_0_13", "reference_tone": "good"}, "mastra_0_13 compares with the input"),
        ({"reference_tone": "good", "compare_to": "input"}, "give reference_tone or compare_to, not both"),
    ],
)
def test_options_that_say_nothing_or_two_things_are_refused(options: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"tone_consistency: {told}"):
        ToneConsistency(**cast(Any, options))


@pytest.mark.parametrize("text", ["a" * 200_000, "a." * 100_000, "." * 200_000, "a " * 100_000, " " * 200_000 + "a"])
def test_a_text_made_to_be_slow_is_not(text: str):
    started = time.perf_counter()
    sentence_tones(text)
    assert time.perf_counter() - started < 20
