"""Word diffs: what is the same, removed and added, in bounded time, whatever the texts are."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.redaction import Redactor
from evalstone._core.word_diff import GAP, MOST_WORDS, Piece, WordDiff, marked, word_diff

BEFORE = "The library opens at nine on weekdays. Entry is free for students."
AFTER = "The library opens at ten on weekdays. Entry is free for all members."


def bare(pieces: Sequence[Piece]) -> str:
    """The texts of pieces without white space."""
    return "".join("".join(piece.text.split()) for piece in pieces)


def written(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def single_spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of a longest common subsequence, by the textbook."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_changed_words_stand_between_those_that_are_the_same() -> None:
    difference = word_diff(BEFORE, AFTER)
    assert difference.pieces == (
        ("same", "The library opens at "),
        ("removed", "nine"),
        ("added", "ten"),
        ("same", " on weekdays. Entry is free for "),
        ("removed", "students"),
        ("added", "all members"),
        ("same", "."),
    )
    assert "".join(piece.text for piece in difference.before) == BEFORE
    assert "".join(piece.text for piece in difference.after) == AFTER
    assert not difference.is_same
    assert difference.shared == pytest.approx(54 / 68)


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("", "", ()),
        ("a b", "a b", (("same", "a b"),)),
        ("a  b", "a\nb", (("same", "a\nb"),)),
        ("a b", "a", (("same", "a"), ("removed", " b"))),
        ("a , b", "a, b", (("same", "a"), ("removed", " "), ("same", ", b"))),
        ("a ", "a", (("same", "a"), ("removed", " "))),
        ("", "new", (("added", "new"),)),
        ("old", "", (("removed", "old"),)),
        ("at 3.5 kg", "at 3.6 kg", (("same", "at "), ("removed", "3.5"), ("added", "3.6"), ("same", " kg"))),
        ("今天开门", "明天开门", (("removed", "今"), ("added", "明"), ("same", "天开门"))),
    ],
)  # fmt: skip
def test_white_space_numbers_and_scripts_without_spaces(before: str, after: str, pieces: tuple[Piece, ...]) -> None:
    assert word_diff(before, after).pieces == pieces


def test_a_secret_is_replaced_before_it_falls_to_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Redactor()
    secrets.register("sk-one-1234-two")
    monkeypatch.setattr("evalstone._core.word_diff.redacted", secrets.redacted)
    pieces = word_diff("the key sk-one-1234-two", "the key sk-one-5678-two").pieces
    assert pieces == (("same", "the key "), ("removed", "***"), ("added", "sk-one-5678-two"))


def test_a_word_that_is_the_same_by_chance_belongs_to_the_change() -> None:
    pieces = word_diff("Bring your own a to it", "Take one of several a home today").pieces
    assert [piece.kind for piece in pieces] == ["removed", "added"]


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_both_texts_are_whole_and_no_more_words_than_needed_are_marked(a: list[str], b: list[str]) -> None:
    difference = word_diff(" ".join(a), " ".join(b))
    assert bare(difference.before) == "".join(a)
    assert bare(difference.after) == "".join(b)
    # Letters that stand alone between longer changes are marked too, so at most as many are the same.
    assert len(bare([piece for piece in difference.pieces if piece.kind == "same"])) <= longest_common(a, b)


@given(st.text(), st.text())
def test_any_text_is_shown_whole(a: str, b: str) -> None:
    difference = word_diff(a, b)
    assert written(difference.after) == b
    assert re.sub(r"\s+", " ", written(difference.before)) == re.sub(r"\s+", " ", a)


SENTENCES = st.lists(st.sampled_from(["days", "30", "14", "and", " ", ".", ", ", " of a card"]), max_size=14).map(
    "".join
)


@given(SENTENCES.map(single_spaced), SENTENCES.map(single_spaced))
def test_a_text_is_what_is_kept_and_what_only_it_has_in_every_rendering(a: str, b: str) -> None:
    difference = word_diff(a, b)
    for pieces in (difference.pieces, difference.shortened(len(a + b)).pieces):
        assert written(piece for piece in pieces if piece.kind != "added") == a
        assert written(piece for piece in pieces if piece.kind != "removed") == b
    assert (written(difference.before), written(difference.after)) == (a, b)
    line = written(marked(difference.pieces))
    assert re.sub(r"\{\+.*?\+\}", "", line).replace("[-", "").replace("-]", "") == a
    assert re.sub(r"\[-.*?-\]", "", line).replace("{+", "").replace("+}", "") == b


def test_a_line_of_changes_has_the_spaces_of_both_texts() -> None:
    pieces = word_diff("It lasts 30 days and needs a credit card.", "It lasts 14 days.").pieces
    assert written(marked(pieces)) == "It lasts [-30-]{+14+} days[- and needs a credit card-]."


@pytest.mark.parametrize(("a", "b"), [("a  b", "a\nb"), ("a b ", "a b"), ("a , b", "a, b")])
def test_texts_that_differ_in_white_space_alone_have_the_same_words(a: str, b: str) -> None:
    assert word_diff(a, b).is_same


def test_the_rest_of_texts_that_differ_in_too_many_words_is_not_compared() -> None:
    a, b = (" ".join(f"{name}{number}" for number in range(3 * MOST_WORDS)) for name in "ab")
    difference = word_diff(a, b)
    assert [piece.kind for piece in difference.pieces if piece.text.strip()] == ["removed", "added"]
    assert [rest.split()[0] for rest in difference.rest] == [f"a{MOST_WORDS}", f"b{MOST_WORDS}"]
    assert bare(difference.before) == "".join(a.split())
    assert difference.shared < 0.001


def test_a_shortened_difference_has_the_changes_and_some_words_around_them() -> None:
    filler = "word " * 200
    short = word_diff(f"{filler}one {filler}", f"{filler}two {filler}").shortened(300, around=20)
    assert short.pieces == (
        GAP,
        ("same", "word word word "),
        ("removed", "one"),
        ("added", "two"),
        ("same", " word word word "),
        GAP,
    )
    same = WordDiff((Piece("same", "word " * 100),)).shortened(52)
    assert same.pieces == (("same", "word " * 10), GAP)
    long = WordDiff((Piece("removed", "x" * 500), Piece("added", "y" * 500), Piece("same", "z" * 500))).shortened(100)
    assert [(kind, len(text)) for kind, text in long.pieces] == [("removed", 101), ("added", 101), ("gap", 0)]


@pytest.mark.parametrize("kind", ["one word", "every word", "no spaces", "one word, often"])
def test_texts_of_megabytes_take_less_than_two_seconds(kind: str) -> None:
    draw = random.Random(1)
    words = [f"w{draw.randrange(3000)}" for _ in range(1_000_000)]
    before = " ".join(words)
    words[500_000] = "changed"
    pairs = {
        "one word": (before, " ".join(words)),
        "every word": (before, before[::-1]),
        "no spaces": ("a" * 5_000_000, "b" * 5_000_000),
        "one word, often": ("a " * 1_000_000, "b " * 1_000_000),
    }
    began = time.process_time()
    short = word_diff(*pairs[kind]).shortened(900)
    assert time.process_time() - began < 2
    assert sum(len(piece.text) for piece in short.pieces) < 3000
