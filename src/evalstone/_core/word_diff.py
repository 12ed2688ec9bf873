"""What changed between two texts, word by word, in bounded time.

Words are compared by their longest common subsequence, which is computed for all words of one text at once, in the bits
of an integer (Hyyrö 2004). What long texts begin and end with is compared as a whole, so that texts of megabytes that
differ in a sentence cost as little as short ones. Of what is between, `MOST_WORDS` words are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from evalstone._core.display import visible
from evalstone._core.redaction import redacted
from evalstone._core.text import SPACELESS

MOST_WORDS = 2000
LEAST_SHARED = 0.2
"""The least share of what is the same for changes to be marked in texts that stand side by side."""
_LONG = 20_000
"""The characters of a text from which on its ends are compared as a whole."""
_LONGEST_WORD = 1000
_LONGEST_NOISE = 12
_LETTER = rf"[^\s!-/:-@\[-`{{-~\u2010-\u205e\u3000-\u303f\uff00-\uff0f{SPACELESS}]"
_WORD = re.compile(rf"(?:{_LETTER}+(?:[.,'’]{_LETTER}+)*|\S)\s*|\s+")
_SPACE, _SPACES = re.compile(r"\s"), re.compile(r"\s+")
Kind: TypeAlias = Literal["same", "removed", "added", "gap"]
"""Whether a piece is in both texts, in the first or the second alone, or stands for what is left out."""


class Piece(NamedTuple):
    """A piece of two texts."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class WordDiff:
    """Two texts as what they share and what only one of them has, in order."""

    pieces: tuple[Piece, ...]
    rest: tuple[str, str] = ("", "")
    """The ends of both texts that are not compared."""

    @property
    def is_same(self) -> bool:
        """Whether the words of both texts are the same."""
        return not any(self.rest) and all(piece.kind == "same" or piece.text.isspace() for piece in self.pieces)

    @property
    def shared(self) -> float:
        """The share of the longer text that is the same in both; 1 without any text."""
        sizes = {"same": 0, "removed": 0, "added": 0, "gap": 0}
        for kind, text in self.pieces:
            sizes[kind] += len(text)
        longer = sizes["same"] + max(sizes["removed"] + len(self.rest[0]), sizes["added"] + len(self.rest[1]))
        return sizes["same"] / longer if longer else 1.0

    @property
    def before(self) -> tuple[Piece, ...]:
        """The first text. What is the same has the white space of the second."""
        return self._side("added", self.rest[0])

    @property
    def after(self) -> tuple[Piece, ...]:
        """The second text."""
        return self._side("removed", self.rest[1])

    def _side(self, other: Kind, rest: str) -> tuple[Piece, ...]:
        own = [piece for piece in self.pieces if piece.kind != other]
        return (*own, Piece("same", rest)) if rest else tuple(own)

    def shortened(self, longest: int, around: int = 80) -> WordDiff:
        """The changes with some of the text around them, and gaps for what is left out.

        Args:
            longest: About the most characters of each text.
            around: The most characters of what is the same, before and after a change.
        """
        if sum(len(piece.text) for piece in self.pieces) + max(map(len, self.rest)) <= longest:
            return WordDiff((*self.pieces, *self._rests()))
        pieces: list[Piece] = []
        left = {"removed": longest, "added": longest}
        last = len(self.pieces) - 1
        ends_early = any(self.rest)
        for place, (kind, text) in enumerate(self.pieces):
            if kind == "same":
                if min(left.values()) <= 0:
                    ends_early = True
                    break
                head = around if place else longest if not last else 0
                kept = _ends(text, head, around if place < last else 0)
            else:
                cut = left.get(kind, 0)
                kept = [Piece(kind, text if len(text) <= cut else f"{text[:cut]}…")]
            for side in left if kind == "same" else (kind,):
                left[side] -= sum(len(piece.text) for piece in kept)
            pieces += kept
        if ends_early and pieces[-1:] != [GAP]:
            pieces.append(GAP)
        return WordDiff(tuple(pieces))

    def _rests(self) -> Iterator[Piece]:
        kinds: tuple[Kind, Kind] = ("removed", "added")
        return (Piece(kind, text) for kind, text in zip(kinds, self.rest, strict=True) if text)


GAP = Piece("gap", "")
_MARKS: Mapping[Kind, tuple[str, str]] = {
    "same": ("", ""),
    "removed": ("[-", "-]"),
    "added": ("{+", "+}"),
    "gap": (" … ", ""),
}


def marked(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Pieces as on a line of plain text, with marks around what is removed and added, as in `git diff --word-diff`.
    Invisible characters are escaped."""
    for kind, text in pieces:
        start, end = _MARKS[kind]
        yield Piece(kind, start + visible(_SPACES.sub(" ", text)) + end)


def word_diff(before: str, after: str) -> WordDiff:
    """The difference of two texts. Where both have white space, that of the second is kept.

    Secrets are replaced by `***` first, because nobody would recognize one in pieces.
    """
    before, after = redacted(before), redacted(after)
    if before == after:
        return WordDiff((Piece("same", after),) if after else ())
    start = end = 0
    if max(len(before), len(after)) > _LONG:
        start, end = _common_ends(before, after)
    (a, rest_a), (b, rest_b) = (_words(text[start : len(text) - end]) for text in (before, after))
    tail = after[len(after) - end :]
    whole = not rest_a and not rest_b
    pieces = [Piece("same", after[:start]), *_compared(a, b), *([Piece("same", tail)] if whole else [])]
    return WordDiff(tuple(_joined(pieces)), ("", "") if whole else (rest_a + tail, rest_b + tail))


def _words(text: str) -> tuple[list[str], str]:
    """The first words of a text, each with the white space behind it, and the rest of the text."""
    words: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        if len(words) == MOST_WORDS:
            break
        words.append(match[0])
        end = match.end()
    return words, text[end:]


def _common_ends(before: str, after: str) -> tuple[int, int]:
    """How many characters both texts begin and end with, of whole words."""
    shorter = min(len(before), len(after))
    start = _most(shorter, lambda size: before[:size] == after[:size])
    start = next(
        (at for at in range(start, max(0, start - _LONGEST_WORD), -1) if before[at - 1].isspace()),
        max(0, start - _LONGEST_WORD),
    )
    end = _most(shorter - start, lambda size: before[len(before) - size :] == after[len(after) - size :])
    space = _SPACE.search(before, len(before) - end, len(before) - end + _LONGEST_WORD)
    return start, 0 if space is None else len(before) - space.end()


def _most(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to which a condition holds."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _compared(a: Sequence[str], b: Sequence[str]) -> Iterator[Piece]:
    """The words of two texts as pieces, some of them without any."""
    ours, theirs = ([word.rstrip() for word in words] for words in (a, b))
    shorter, start, end = min(len(a), len(b)), 0, 0
    while start < shorter and ours[start] == theirs[start]:
        start += 1
    while end < shorter - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    yield from _kept(a[:start], b[:start])
    x = y = start
    for i, j in _matches(ours[start : len(a) - end], theirs[start : len(b) - end]):
        yield Piece("removed", "".join(a[x : start + i]))
        yield Piece("added", "".join(b[y : start + j]))
        yield from _kept((a[start + i],), (b[start + j],))
        x, y = start + i + 1, start + j + 1
    yield Piece("removed", "".join(a[x : len(a) - end]))
    yield Piece("added", "".join(b[y : len(b) - end]))
    yield from _kept(a[len(a) - end :], b[len(b) - end :])


def _kept(a: Sequence[str], b: Sequence[str]) -> Iterator[Piece]:
    """The same words in two texts. White space behind a word of only one of them is removed or added."""
    for ours, theirs in zip(a, b, strict=True):
        word = theirs.rstrip()
        before, after = ours[len(word) :], theirs[len(word) :]
        yield Piece("same", theirs if before else word)
        if not before or not after:
            yield Piece("removed", before)
            yield Piece("added", after)


def _matches(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence.

    A row says of the words of `a` so far at which words of `b`, from the lowest bit on, the subsequence doesn't grow.
    """
    if not a or not b:
        return []
    places: dict[str, int] = {}
    for place, word in enumerate(b):
        places[word] = places.get(word, 0) | 1 << place
    row = every = (1 << len(b)) - 1
    rows: list[int] = []
    for word in a:
        found = row & places.get(word, 0)
        row = ((row + found) | (row - found)) & every
        rows.append(row)
    matches: list[tuple[int, int]] = []
    x, y = len(a), len(b)
    while x and y:
        if rows[x - 1] >> (y - 1) & 1:
            y -= 1
            continue
        x -= 1
        if x == 0 or rows[x - 1] >> (y - 1) & 1:
            y -= 1
            matches.append((x, y))
    return matches[::-1]


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Pieces with neighbors of a kind as one. A short piece that is the same between longer changes belongs to them:
    nobody reads words that alternate."""
    changes: list[list[str]] = [["", "", ""]]
    for kind, text in pieces:
        if kind == "same":
            if any(changes[-1][1:]):
                changes.append(["", "", ""])
            changes[-1][0] += text
        else:
            changes[-1][1 if kind == "removed" else 2] += text
    merged: list[list[str]] = []
    for same, removed, added in changes:
        if merged and len(same.strip()) < min(_LONGEST_NOISE, max(map(len, merged[-1][1:])), len(removed or added)):
            merged[-1][1] += same + removed
            merged[-1][2] += same + added
        else:
            merged.append([same, removed, added])
    space = ""
    for same, removed, added in merged:
        if space + same:
            yield Piece("same", space + same)
        space = ""
        if removed and added and removed[-1].isspace() and added[-1].isspace():
            words = added.rstrip()
            removed, added, space = removed.rstrip(), words, added[len(words) :]
        if removed:
            yield Piece("removed", removed)
        if added:
            yield Piece("added", added)
    if space:
        yield Piece("same", space)


def _ends(text: str, head: int, tail: int) -> list[Piece]:
    """The beginning and the end of a text, cut between words where there are some."""
    if len(text) <= head + tail:
        return [Piece("same", text)]
    first, last = text[:head], text[len(text) - tail :]
    first, last = first[: first.rfind(" ") + 1] or first, last[last.find(" ") + 1 :]
    return [piece for piece in (Piece("same", first), GAP, Piece("same", last)) if piece.text or piece is GAP]
