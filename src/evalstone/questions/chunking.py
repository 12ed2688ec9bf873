"""Passages in portions that one question can hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalstone._core.text import sentences


@dataclass(frozen=True)
class Chunk:
    """Texts that are asked about together, and the number of the passage, from 1, that each of them is of."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


def chunked(passages: Sequence[str], longest: int) -> tuple[Chunk, ...]:
    """Passages in as few chunks as hold at most `longest` characters each, in order; at least one, if an empty one.

    A passage that is longer by itself is cut between sentences, and a sentence that is longer still, anywhere. What has
    no letter and no digit is left out of such a passage.
    """
    if sum(map(len, passages)) <= longest:
        return (Chunk(tuple(passages), tuple(range(1, len(passages) + 1))),)
    groups: list[list[tuple[str, int]]] = []
    room = 0
    for number, passage in enumerate(passages, start=1):
        for piece in _pieces(passage, longest):
            if len(piece) > room or not groups:
                groups.append([])
                room = longest
            groups[-1].append((piece, number))
            room -= len(piece)
    made = (Chunk(tuple(text for text, _ in group), tuple(number for _, number in group)) for group in groups)
    return tuple(made) or (Chunk(),)


def _pieces(passage: str, longest: int) -> Iterator[str]:
    if len(passage) <= longest:
        yield passage
        return
    piece = ""
    for sentence in sentences(passage):
        if piece and len(piece) + 1 + len(sentence) > longest:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}" if piece else sentence
        while len(piece) > longest:
            yield piece[:longest]
            piece = piece[longest:]
    if piece:
        yield piece
