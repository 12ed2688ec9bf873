from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.text import is_blank
from evalstone.scorers import KeywordCoverage
from evalstone.scorers.text import pieces
from evalstone.scorers.text.word_coverage import Keywords, keywords
from evalstone.types import Sample, Score
from tests.fakes import ROOT, score_of


@pytest.mark.parametrize(
    ("definition", "text", "output", "expected"),
    [
        (
            "evalstone",
            "The Eiffel Tower, in Paris: built 1889?",
            "It is a tower in Paris.",
            Score(
                0.5,
                "2 of 4 keywords are in the answer; missing: “eiffel”; “built”.",
                scale=1,
                evidence=Keywords(("eiffel", "tower", "paris", "built"), ("eiffel", "built")),
            ),
        ),
        (
            "evalstone",
            "Paris",
            "paris!",
            Score(1, "1 of 1 keyword is in the answer.", scale=1, evidence=Keywords(("paris",), ())),
        ),
        ("mastra", "Is it?", "Yes.", Score(1, "The input has no keyword: 1 by mastra.", scale=1, evidence=())),
        (
            "mastra_0_13",
            "Is it?",
            "Yes.",
            Score(0, "The input has no keyword: 0 by mastra_0_13.", scale=1, evidence=()),
        ),
    ],
)
def test_the_reason_counts_the_keywords_and_names_those_that_are_missing(
    definition: Any, text: str, output: str, expected: Score
):
    assert score_of(KeywordCoverage(definition=definition), Sample(input=text, output=output), []) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Cats, cats and CATS", ("cats",)),
        ("the and of to a in is", ()),
        ("<p>Hello <b>world</b></p>", ("world",)),
        ("x<y and y>z 3 < 4", ("xz", "<")),
        ("1,000 3.14 2024 B12", ("b12",)),
        ("see http://Foo.bar/Baz.", ("http://Foo.bar/Baz.",)),
        ("'quoted' 'tis rock'n'roll", ("quoted", "tis", "rock'n'roll")),
        ("“smart” ‘quotes’", ("smart", "quotes")),
        ("& _ @ # -", ("-",)),
        ("a\u00a0river\u3000bank\ufeffside", ("river", "bank", "side")),
        ("cafe\u0085au\u001clait", ("cafe\u0085au\u001clait",)),
        ("", ()),
    ],
)
def test_keywords_are_distinct_words_without_signs_numbers_and_stop_words(text: str, found: tuple[str, ...]):
    assert keywords(text) == found


@pytest.mark.parametrize("text", ["<" * 200_000, "<a" * 100_000 + ">", "x " * 200_000, "'" * 200_000])
def test_a_text_made_to_be_slow_is_not(text: str):
    started = time.perf_counter()
    keywords(text)
    assert time.perf_counter() - started < 20


SIGNS = re.compile(r"""^'|'\Z|[.,;!?():"“”‘’]""")
STOPWORDS = frozenset(json.loads((ROOT / "src/evalstone/scorers/text/data/keyword_stopwords.json").read_text("utf-8")))


def word_by_word(text: str) -> tuple[str, ...]:
    """Keywords as they are defined, one piece between white space after the other; for texts without tags."""
    found: list[str] = []
    for piece in pieces(text):
        is_address = re.search("https?://", piece) is not None
        word = piece if is_address else SIGNS.sub("", piece)
        if word not in ("", "_", "@", "&", "#") and not re.fullmatch("[0-9]+", word) and word.lower() not in STOPWORDS:
            found.append(word if is_address else word.lower())
    return tuple(dict.fromkeys(found))


PARTS = (
    "the",
    "It's",
    "ΟΔΟΣ",
    "Σ",
    "12",
    "٣",
    "http://A.b",
    "https:",
    "x",
    "É",
    "İ",
    *"'.,;!?():“”’_@&# \t\u00a0\ufeff\x85\x1c",
)


@given(text=st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
def test_a_whole_text_at_once_gives_what_its_words_give_one_by_one(text: str):
    assert keywords(text) == word_by_word(text)
    if keywords(text) and not is_blank(text):
        assert score_of(KeywordCoverage(), Sample(input=text, output=text), []).value == 1
