"""BLEU, chrF and TER of single sentences, against sacrebleu and by hand."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.errors import ConfigError, MissingDependency
from evalstone.scorers import Bleu, Chrf, Scorer, Ter
from evalstone.scorers.text import translation
from evalstone.types import Sample, Score
from tests.fakes import score_of

REFERENCE = "The cat sat on the mat."
WORDS = ("the", "a", "cat", "Cat", "sat", "on", "mat", ".", ",", "!", "東京", "é")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


def score(scorer: Scorer, reference: str, output: str) -> Score:
    return score_of(scorer, Sample(reference=reference, output=output), [])


def test_bleu_by_hand():
    # Words 5/5, pairs 3/4, triples 2/3, fours 1/2; the answer is two words shorter, periods counted.
    result = score(Bleu(), "the cat sat on the mat .", "cat sat on the .")
    geometric = (5 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert result.value == pytest.approx(math.exp(1 - 7 / 5) * geometric)


def test_ter_by_hand():
    assert score(Ter(), "a b c d", "a b d").value == pytest.approx(1 / 4)
    assert score(Ter(), "a b c d", "c d a b").value == pytest.approx(1 / 4)  # one shift of a phrase
    assert score(Ter(), "a b c d", "A B C D").value == 0
    assert score(Ter(case_sensitive=True), "a b c d", "A b c d").value == pytest.approx(1 / 4)


def test_chrf_by_hand():
    # One letter of two, no pair: over both orders precision and recall are 1/4, and so is their weighted mean.
    assert score(Chrf(), "ab", "ac").value == pytest.approx((1 / 2 + 0) / 2)


@given(SENTENCES, SENTENCES)
@settings(max_examples=50, deadline=None)
def test_each_is_sacrebleus_number_by_a_hundred(reference: str, output: str):
    bleu = sacrebleu.sentence_bleu(output, [reference]).score
    assert score(Bleu(), reference, output).value == pytest.approx(bleu / 100)
    chrf = sacrebleu.sentence_chrf(output, [reference], word_order=2).score
    assert score(Chrf(word_order=2), reference, output).value == pytest.approx(chrf / 100)
    ter = sacrebleu.sentence_ter(output, [reference]).score
    made = score(Ter(), reference, output)
    assert made.value == pytest.approx(min(1, ter / 100))
    assert made.evidence.score == pytest.approx(ter)


@pytest.mark.parametrize("scorer", [Bleu(), Chrf(), Ter()], ids=lambda scorer: scorer.name)
def test_equal_texts_are_best_and_blank_answers_worst(scorer: Scorer):
    best, worst = (0, 1) if scorer.lower_is_better else (1, 0)
    assert score(scorer, REFERENCE, REFERENCE).value == pytest.approx(best)
    for blank in ("", " ", "\n"):
        assert score(scorer, REFERENCE, blank).value == worst
    assert score(scorer, "x", "x").value == pytest.approx(best)


def test_the_evidence_has_sacrebleus_number_and_signature():
    evidence = score(Bleu(tokenize="char", smooth="floor"), REFERENCE, "A cat.").evidence
    version = sacrebleu.__version__
    parts = {"nrefs:1", "case:mixed", "eff:yes", "tok:char", "smooth:floor[0.10]", f"version:{version}"}
    assert set(evidence.signature.split("|")) == parts
    assert 0 < evidence.score < 100
    assert {"nw:2", "space:no"} < set(score(Chrf(word_order=2), "a", "b").evidence.signature.split("|"))
    assert {"case:lc", "punct:no"} < set(score(Ter(no_punct=True), "a", "b").evidence.signature.split("|"))


def test_a_rate_above_one_is_one_and_the_evidence_says_how_much():
    made = score(Ter(), "a", "b c d e")
    assert (made.value, made.evidence.score) == (1, 400)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Bleu(tokenize=cast(Any, "flores200")), "bleu: tokenize must be '13a', 'intl'"),
        (lambda: Bleu(smooth=cast(Any, "add")), "bleu: smooth must be 'exp'"),
        (lambda: Chrf(word_order=-1), "chrf: word_order must be a whole number from 0 to 10"),
        (lambda: Chrf(beta=0), "chrf: beta must be a whole number from 1 to 100"),
    ],
)
def test_a_wrong_parameter_is_refused(make: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        make()


def test_without_sacrebleu_the_error_is_the_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    translation._sacrebleu.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(MissingDependency, match=r"sacrebleu is not installed.*\[metrics\]"):
        Bleu()
