"""Texts in one piece of memory."""

from __future__ import annotations

import numpy as np
import pytest

from evalstone._core import packed_texts
from evalstone._core.packed_texts import PackedTexts

TEXTS = ["", "s1", "é 漢", "\ud800", "a" * 300]


def test_texts_come_back() -> None:
    packed = PackedTexts()
    for text in TEXTS:
        packed.append(text)
    assert list(packed) == packed[:] == [packed[place] for place in range(len(packed))] == TEXTS
    assert packed[-1] == TEXTS[-1]
    assert list(packed.at([4, 1, 1])) == [TEXTS[4], TEXTS[1], TEXTS[1]]


def test_texts_are_set_in_any_order() -> None:
    packed = PackedTexts(3)
    for place in (2, 0):
        packed[place] = TEXTS[place + 1]
    assert list(packed) == [TEXTS[1], "", TEXTS[3]]


def test_equal_texts_are_equal_however_they_are_packed() -> None:
    one, other = PackedTexts(2), PackedTexts(2)
    for place in range(2):
        one[place], other[1 - place] = TEXTS[place + 1], TEXTS[2 - place]
    assert one == other
    assert one != one.at([0])
    assert one != one.at([1, 0])


@pytest.mark.parametrize("some", [TEXTS, ["abcdefgh", "abcdefghi", "abcdefg", "abcdefgh\0", "b", "abcdefgha" * 3], []])
def test_texts_are_in_the_order_of_their_utf8(some: list[str]) -> None:
    packed, in_order = PackedTexts(), sorted(some, key=lambda text: text.encode("utf-8", "surrogatepass"))
    packed.extend(some)
    for at, text in enumerate(in_order):
        signs = packed.compared(text).tolist()
        assert [signs[some.index(other)] for other in in_order] == [-1] * at + [0] + [1] * (len(some) - at - 1)
    places = np.arange(len(some))
    for most in range(len(some) + 2):
        assert [packed[place] for place in packed.first(most, places)] == in_order[:most]
        assert [packed[place] for place in packed.first(most, places, last=True)] == in_order[::-1][:most]


def test_texts_at_places_of_others_are_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_texts, "_AT_ONCE", 2)
    packed, expected = PackedTexts(), [TEXTS[place] for place in (1, 4, 1)]
    packed.extend(TEXTS)
    some = packed.at([4, 1, 2]).at([1, 0, 1])
    assert (len(some), [*some], some[:], some[-1]) == (3, expected, expected, expected[-1])
    whole = PackedTexts()
    whole.extend(packed.at([4, 1, 2]).at([1, 0, 1]))
    assert [*whole] == expected
    assert whole == some
    assert [*some] == expected
    assert some.has_repeats()


def test_texts_of_any_length_are_told_apart_wherever_they_are() -> None:
    texts = ["abcdefghijklmnopqrstuvwxyz"[:size] for size in range(27)]
    forward, backward = PackedTexts(), PackedTexts()
    forward.extend(texts)
    backward.extend(texts[::-1])
    hashes = forward.hashes().tolist()
    assert hashes == backward.hashes().tolist()[::-1]
    assert len(set(hashes)) == len(texts)
    for size, text in enumerate(texts):
        for place in range(size):
            changed = PackedTexts()
            changed.extend([*texts[:size], f"{text[:place]}-{text[place + 1 :]}", *texts[size + 1 :]])
            assert not forward.equals(changed)
            assert changed.hashes().tolist()[size] != hashes[size]
