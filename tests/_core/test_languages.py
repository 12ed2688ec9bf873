from __future__ import annotations

import time

import pytest

from evalstone import Sample
from evalstone._core.languages import LANGUAGE_NAMES, language_of
from evalstone.types.sample_language import sample_language

GERMAN = "Bern liegt in der Schweiz und ist die Hauptstadt des Landes."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bern is in Switzerland, and it is the capital of the country.", "en"),
        (GERMAN, "de"),
        ("Berne est la capitale de la Suisse et une ville du pays.", "fr"),
        ("Berna es la capital de Suiza y está en el centro del país.", "es"),
        ("Berna è la capitale della Svizzera e non è la città più grande.", "it"),
        ("Berna é a capital da Suíça e não é a maior cidade do país.", "pt"),
        ("Bern is de hoofdstad van Zwitserland en niet de grootste stad.", "nl"),
        ("Stockholm är huvudstad i Sverige och landets största stad med många invånare.", "latin"),
        ("Берн — столица Швейцарии.", "cyrillic"),
        ("伯尔尼在瑞士。", "han"),
        ("ベルンはスイスの首都です。", "kana"),
        ("베른은 스위스의 수도입니다.", "hangul"),
        ("برن عاصمة سويسرا.", "arabic"),
        ("La réponse est la ville de Paris, qui est en France.", "latin"),
        ("Charles de Gaulle and the mayor of La Paz met in a hotel de luxe.", ""),
        ("Paris.", ""),
        ("Ada Lovelace, Charles Babbage, Alan Turing, Grace Hopper, John von Neumann, Claude Shannon", ""),
        ("", ""),
        ("The word for it is 伯尔尼 in Chinese, and that is all there is to it.", "en"),
    ],
)
def test_languages_are_told_apart_by_words_and_scripts(text: str, language: str) -> None:
    assert language_of(text) == language
    assert language in LANGUAGE_NAMES


def test_a_sample_has_the_language_of_its_first_clear_text() -> None:
    assert sample_language(Sample(output="Bern.", context=[GERMAN], input="Where is it, and what is it?")) == "de"
    assert sample_language(Sample(output="Bern.")) == ""
    assert sample_language(Sample(reference="Bern is the capital of the country.")) == "en"


@pytest.mark.no_cover
def test_the_language_of_a_sample_takes_microseconds() -> None:
    sample = Sample(output=GERMAN * 1000)
    started = time.process_time()
    for _ in range(1000):
        sample_language(sample)
    assert time.process_time() - started < 0.1  # some 10 µs each
