from __future__ import annotations

import importlib
import pkgutil
import random
import re
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evalstone
from evalstone._core.text import (
    STOPWORDS,
    estimated_tokens,
    fewest_tokens,
    most_words,
    normalized,
    sentence_slices,
    sentences,
    stem,
    tokens,
    unmarked,
    words,
)

MEGABYTE = 1_000_000


def test_words_are_in_lower_case_and_keep_contractions_and_separated_numbers_whole():
    assert words("Don’t pay $1,250.50, Ada!") == ("don't", "pay", "1,250.50", "ada")


def test_words_of_scripts_without_spaces_are_pairs_of_characters():
    assert words("東京タワー is tall") == ("東京", "京タ", "タワ", "ワー", "is", "tall")
    assert words("私") == ("私",)
    assert len(words("ภาษาไทย")) == 6


def test_words_keep_accents_and_vowel_signs():
    assert words("Café naïve हिन्दी") == ("café", "naïve", "हिन्दी")


def test_a_letter_and_its_accent_are_the_same_word_as_the_accented_letter():
    assert words("cafe\u0301") == words("café")


@pytest.mark.parametrize("text", ["การทำงาน", "ภาษาລາວທຳ", "２０２３年の夏、", "ﾃﾞｰﾀ"])
def test_a_word_is_the_same_in_a_short_and_in_a_long_text(text: str):
    assert set(words(text)) <= set(words(20 * text))


@given(st.text(alphabet="ae\u0301\u0323\u0f71\u0344ạﬁ４タﾞ한ำ", max_size=40))
@example("a" + "\u0301\u0323" * 15)
def test_texts_are_normalized_as_unicode_defines(text: str):
    text = re.sub(r"([^\w\x00-\x7f]{31})[^\w\x00-\x7f]+", r"\1", text)
    for form in ("NFC", "NFD", "NFKC"):
        assert normalized(form, text) == unicodedata.normalize(form, text)


def test_what_follows_and_precedes_a_long_run_of_accents_is_normalized():
    run = "\u0301\u0323" * 50
    assert normalized("NFKC", f"４{run}e\u0301{run}ﬁ") == f"4{run}é{run}fi".replace(f"é{run}", f"e\u0301{run}")


def test_a_line_without_its_markers_is_what_is_left_of_it():
    assert [unmarked(line) for line in ("- 2. Ada", "## Ada", "Ada", "3.5 m")] == ["Ada", "Ada", "Ada", "3.5 m"]


def test_a_text_has_at_least_a_token_for_each_word_and_for_four_characters_of_scripts_without_spaces():
    assert [fewest_tokens(text) for text in ("", "Ada wrote it.", "東京タワー", "東京タワーの 高さ!")] == [0, 3, 2, 4]


def test_the_fewest_tokens_of_ascii_text_are_its_words_between_any_white_space():
    for text in ("\x1cAda\x1f\x0bwrote\r\n it. ", "".join(f"a{chr(code)}" for code in range(128)), " ", "\x00\x7f"):
        assert fewest_tokens(text) == len(text.split())


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from(" \t\x1f\x85\u3000東京é")))
def test_the_most_words_are_no_fewer_than_the_fewest_tokens(text: str):
    assert most_words(text) >= fewest_tokens(text)


def test_tokens_are_the_words_with_their_capitals():
    assert tokens("Ada wrote it") == ("Ada", "wrote", "it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Smith left. Dr. Lee stayed.", ["Mr. Smith left.", "Dr. Lee stayed."]),
        ("It works, e.g. here. See Fig. 2 for more.", ["It works, e.g. here.", "See Fig. 2 for more."]),
        ("He moved to the U.S. The trip was long.", ["He moved to the U.S.", "The trip was long."]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("Niu et al. wrote it. J. K. Rowling did not.", ["Niu et al. wrote it.", "J. K. Rowling did not."]),
        ("It costs 3.50 euros. Fine.", ["It costs 3.50 euros.", "Fine."]),
        (
            'He said "Stop!" and left. (It rained.) Then sun.',
            ['He said "Stop!" and left.', "(It rained.)", "Then sun."],
        ),
        ("Wait... what? Go!", ["Wait... what?", "Go!"]),
        ("我爱你。你好！谢谢", ["我爱你。", "你好！", "谢谢"]),
        ("I said no. He left in Jan. 2020.", ["I said no.", "He left in Jan. 2020."]),
        ("It is good. it is cheap.", ["It is good.", "it is cheap."]),
        ("A fast car.Another one.", ["A fast car.", "Another one."]),
        ("भारत की राजधानी दिल्ली है। चंद्रमा पनीर से बना है॥", ["भारत की राजधानी दिल्ली है।", "चंद्रमा पनीर से बना है॥"]),
        ("یہ لاہور ہے۔ وہ کراچی ہے۔", ["یہ لاہور ہے۔", "وہ کراچی ہے۔"]),
        ("ما هي العاصمة؟ إنها القاهرة.", ["ما هي العاصمة؟", "إنها القاهرة."]),
        ("Երևանը մայրաքաղաք է։ Այն մեծ է։", ["Երևանը մայրաքաղաք է։", "Այն մեծ է։"]),
        ("ከተማው አዲስ ነው። ትልቅ ነው።", ["ከተማው አዲስ ነው።", "ትልቅ ነው።"]),
        ("ភ្នំពេញជារាជធានី។ វាធំ។", ["ភ្នំពេញជារាជធានី។", "វាធំ។"]),
        ("ﾄｳｷｮｳﾃﾞｽ｡ｵｵｷｲ｡", ["ﾄｳｷｮｳﾃﾞｽ｡", "ｵｵｷｲ｡"]),
        ("これは東京です!月はチーズです!本当?はい", ["これは東京です!", "月はチーズです!", "本当?", "はい"]),
        ("北京是首都.它很大．人很多", ["北京是首都.", "它很大．", "人很多"]),
        ("他说…好的。圆周率是3.14，也写作３．１４。", ["他说…好的。", "圆周率是3.14，也写作３．１４。"]),
        ("Really‽ Yes.", ["Really‽", "Yes."]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]):
    assert list(sentences(text)) == expected


def test_list_items_and_paragraphs_are_sentences_without_their_markers():
    items = ("Steps:", "Lay it down", "Fold it", "press", "Done")
    assert sentences("{}\n1. {}\n2) {}\n- {}\n\n* {}".format(*items)) == items


def test_a_wrapped_line_goes_on_in_the_next():
    wrapped, last = "The tower was built for the fair\nof that year.", "It stayed."
    assert sentences(f"{wrapped} {last}") == (wrapped.replace("\n", " "), last)


@pytest.mark.parametrize("text", ["", "   ", "...", "\n\n", "!?!", "***", "\x00\x07"])
def test_a_text_without_a_letter_or_digit_has_no_sentences_and_no_words(text: str):
    assert sentences(text) == ()
    assert words(text) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [("makes", "making"), ("policies", "policy"), ("running", "runs"), ("created", "creation"), ("boxes", "box")],
)
def test_inflections_of_a_word_share_a_stem(one: str, other: str):
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["bus", "is", "1,250", "東京", "x" * 50])
def test_a_word_without_an_english_inflection_is_its_own_stem(word: str):
    assert stem(word) == word


def test_stop_words_are_words():
    assert all(words(word) == (word,) for word in STOPWORDS)


@given(st.text())
def test_any_text_has_words_and_sentences(text: str):
    assert all(words(text)) or not words(text)
    assert all(sentence.strip() for sentence in sentences(text))


HOSTILE = {
    "full stops": "." * MEGABYTE,
    "marks and a letter": "!" * MEGABYTE + "a",
    "spaces": " " * MEGABYTE,
    "lines": "\n \t" * (MEGABYTE // 3) + "x",
    "one word": "a" * MEGABYTE,
    "apostrophes": "a'" * (MEGABYTE // 2),
    "separators": "1," * (MEGABYTE // 2),
    "digits": "9" * MEGABYTE,
    "accents": "a" + "\u0301\u0323" * (MEGABYTE // 2),
    "Chinese": "東" * MEGABYTE,
    "initials": "U." * (MEGABYTE // 2),
    "list markers": "- " * (MEGABYTE // 2),
    "quotes": '."' * (MEGABYTE // 2),
    "noise": "".join(random.Random(0).choices("aA1 .,!?'\n-*é東\u0301()\"", k=MEGABYTE)),
}


@pytest.mark.parametrize("read", [words, sentences])
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.slow
def test_a_megabyte_of_hostile_text_takes_seconds_at_most(kind: str, read: Callable[[str], tuple[str, ...]]):
    started = time.process_time()
    read(HOSTILE[kind])
    assert time.process_time() - started < 20


def test_no_pattern_repeats_a_group_possessively(capsys: pytest.CaptureFixture[str]) -> None:
    """Python before 3.11.5 matches such a pattern wrongly: words lost their last letter on Debian 12."""
    names = {each.name for each in pkgutil.walk_packages(evalstone.__path__, "evalstone.")} - {"evalstone.__main__"}
    modules = [importlib.import_module(name) for name in names]
    values: list[Any] = [value for module in modules for value in vars(module).values()]
    patterns: set[Any] = {value for value in values if isinstance(value, re.Pattern)}
    assert len(patterns) > 100
    for pattern in patterns:
        re.compile(pattern.pattern, pattern.flags | re.DEBUG)
        assert not re.search(r"^ *\d+[:.] +POSSESSIVE_REPEAT ", capsys.readouterr().out, re.MULTILINE), pattern.pattern


SENTENCES = [
    "One. Two! Three? Four",
    "Dr. No paid $1.50 to J. R. Smith.\nThis line is so long that it goes on in the next one, without\nany end. New.",
    "- first item\n- second item\n\n1. third\n2. fourth",
    "一つ。二つ！三つ？",
    "# Title\r\n\r\nText goes here\r\nand here.\u2029Next.",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_slices_are_the_sentences_as_they_stand_in_the_text(text: str):
    slices = sentence_slices(text)
    worded = [slice_ for slice_ in slices if re.search(r"\w", slice_)]
    assert len(worded) == len(sentences(text))
    for slice_, sentence in zip(worded, sentences(text), strict=True):
        assert "".join(sentence.split()) in "".join(slice_.split())


@given(st.text(alphabet="aA1 .!?。\n\r-#\u2028", max_size=200))
def test_slices_joined_are_the_text(text: str):
    assert "".join(sentence_slices(text)) == text


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_estimate_of_two_texts_is_that_of_both_together_but_for_one(a: str, b: str):
    both = estimated_tokens(a + b)
    assert both <= estimated_tokens(a) + estimated_tokens(b) <= both + 1
    assert max(estimated_tokens(a), estimated_tokens(b)) <= both
    assert len(a) / 3 <= estimated_tokens(a) + 0.5
    assert estimated_tokens(a) <= 4 * len(a)


# The most that a text took in five tokenizers: SmolLM2's, those of Mistral 7B and of Mistral NeMo, cl100k, Claude 2's.
MEASURED = [
    ("Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.", 40),
    ("Все люди рождаются свободными и равными в своем достоинстве и правах.", 54),
    ("人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。", 47),
    ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", 85),
    ("يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.", 45),
    ('{"verdicts": {"1": {"reason": "The passage says so.", "passages": [1], "verdict": "supported"}}}', 32),
    ("| 8271 | 0.134 | $9,217 | 2024-03-14 |", 33),
]


@pytest.mark.parametrize(("text", "measured"), MEASURED)
def test_the_estimate_covers_what_tokenizers_took_and_is_not_twice_of_it(text: str, measured: int):
    assert measured <= estimated_tokens(text) <= 2 * measured


@pytest.mark.slow
def test_a_megabyte_is_estimated_at_once():
    started = time.process_time()
    assert estimated_tokens("Ada, 1815. " * (MEGABYTE // 11)) > 300_000
    assert estimated_tokens("日" * (MEGABYTE // 3)) > 300_000
    assert time.process_time() - started < 0.5
