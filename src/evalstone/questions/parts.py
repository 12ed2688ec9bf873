"""Questions that are too long for a judge, or have too many items, in parts that it takes.

A part is a question of the same kind about some of the items, some of the passages, or a piece of the text. What can't
be divided, such as the user's question, is in every part and leaves less for the rest. The parts are counted before the
first is asked.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone._core.text import estimated_tokens, is_blank, sentence_slices
from evalstone.errors import QuestionTooLong

if TYPE_CHECKING:
    from evalstone.questions.base import Ask, Question
    from evalstone.questions.limits import ContextLimits

A = TypeVar("A")

MOST_PARTS = 200
"""A question in more parts is refused: it would cost more than anyone expects of one sample."""
SMALLEST_ROOM = 64
"""Tokens that must be left for what is divided."""
_DIGITS = 4
"""Tokens that the numbers of later items take beyond those of the first two."""


@dataclass(frozen=True)
class Chunk:
    """Texts that are asked about together, and the number of the item, from 1, that each of them is of."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def numbers_of(self, cited: Iterable[int]) -> tuple[int, ...]:
        """The items that texts are of which a part cites by their places in it, from 1; each once."""
        return tuple(dict.fromkeys(self.numbers[place - 1] for place in cited))


@dataclass(frozen=True)
class Space:
    """What one chunk holds at most, in measure and in sentences or items; `extra` is what each text takes by itself.

    headed: the first line of a text says what it is, and stands above every piece of it.
    """

    longest: float
    texts: float = math.inf
    sentences: float = math.inf
    extra: int = 0
    measure: Callable[[str], int] = estimated_tokens
    headed: bool = False

    def size(self, *texts: str) -> int:
        """What texts take of a chunk."""
        return sum(map(self.measure, texts)) + self.extra * len(texts)

    def holds(self, text: str) -> bool:
        """Whether a chunk holds a text alone."""
        return self.size(text) <= self.longest and within_sentences(text, self.sentences)

    def chunks(self, texts: Iterable[str]) -> list[Chunk]:
        """Texts in as few chunks as hold them, in order; at least one, if an empty one.

        One that no chunk holds is cut between sentences, and a sentence that none holds, at a blank or anywhere.
        """
        found: list[tuple[list[str], list[int]]] = []
        left, free, few = 0.0, 0.0, 0.0
        for number, whole in enumerate(texts, start=1):
            # Each text needs a place: its verdict may be that it is blank.
            for text in (whole,) if self.holds(whole) else tuple(self.pieces(whole)) or ("",):
                size = self.size(text)
                count = 0 if self.sentences == math.inf else sentence_count(text)
                if not found or size > left or free < 1 or count > few:
                    found.append(([], []))
                    left, free, few = self.longest, self.texts, self.sentences
                found[-1][0].append(text)
                found[-1][1].append(number)
                left, free, few = left - size, free - 1, few - count
        return [Chunk(tuple(texts), tuple(numbers)) for texts, numbers in found] or [Chunk()]

    def pieces(self, text: str) -> Iterator[str]:
        """A text in pieces that a chunk holds; joined, they are the text, but for blank ones and repeated headings."""
        room = self.longest - self.extra
        heading = "".join(text.partition("\n")[:2]) if self.headed else ""
        if not heading.endswith("\n") or self.measure(heading) > room / 4:
            heading = ""
        for number, piece in enumerate(self._slices(text, room - self.measure(heading))):
            yield heading + piece if number else piece

    def _slices(self, text: str, room: float) -> Iterator[str]:
        piece: list[str] = []
        left, few = room, self.sentences
        for sentence in sentence_slices(text):
            for part in (sentence,) if self.measure(sentence) <= room else _cut(sentence, room / 4, self.measure):
                size = self.measure(part)
                if piece and (size > left or few < 1):
                    yield from _unless_blank("".join(piece))
                    piece, left, few = [], room, self.sentences
                piece.append(part)
                left -= size
            few -= not is_blank(sentence)
        yield from _unless_blank("".join(piece))


def _unless_blank(piece: str) -> Iterator[str]:
    if not is_blank(piece):
        yield piece


def _cut(text: str, longest: float, measure: Callable[[str], int]) -> Iterator[str]:
    """A text halved at a blank, or anywhere, until its parts are short enough or of one character."""
    if len(text) <= 1 or measure(text) <= longest:
        yield text
        return
    middle = len(text) // 2
    blank = text.rfind(" ", middle // 2, middle)
    middle = middle if blank < 0 else blank + 1
    yield from _cut(text[:middle], longest, measure)
    yield from _cut(text[middle:], longest, measure)


def sentence_count(text: str) -> int:
    """How many sentences a text has, those without a letter or digit too."""
    return sum(not is_blank(sentence) for sentence in sentence_slices(text))


_STOPS = ".!?\n\r…。！？\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def within_sentences(text: str, most: float) -> bool:
    """Whether a text has at most so many sentences. One without so many ends of sentences needs no closer look."""
    return most == math.inf or sum(map(text.count, _STOPS)) < most or sentence_count(text) <= most


def room_of(fixed: int, limits: ContextLimits) -> float:
    """The tokens that are left for what is divided, beside what is not.

    As many as make a question of the usual length; half of that, as far as the judge takes more, where what is not
    divided is long.
    """
    most = math.inf if limits.longest is None else limits.longest
    return min(max(limits.tokens - fixed, limits.tokens // 2), most - fixed)


def overhead(question: Question[Any], name: str) -> tuple[int, int]:
    """The tokens of a question beside those of one input, and what each text of that input takes beside its own."""
    if isinstance(getattr(question, name), str):
        return with_input(question, name, "x").size(), 0
    one, two = (with_input(question, name, ("x",) * count).size() for count in (1, 2))
    return one - (two - one), two - one + _DIGITS


def space_for(
    question: Question[Any], name: str, limits: ContextLimits, *, texts: float = math.inf, sentences: float = math.inf
) -> Space:
    """The space that a part of a question has for one of its inputs. Raises QuestionTooLong when there is next to none.

    texts, sentences: the most of each in one part.
    """
    fixed, extra = overhead(question, name)
    room = room_of(fixed, limits)
    if room - extra < SMALLEST_ROOM:
        raise too_long(question, limits, f"the question has about {fixed:,} tokens without its {name}")
    return Space(room, texts, sentences, extra, headed=question.headed == name)


def chunks_of(
    question: Question[Any], name: str, space: Space, limits: ContextLimits, *, cut: bool = True
) -> list[Chunk]:
    """One input of a question in chunks. cut=False: its texts are not cut.

    Raises QuestionTooLong for more than `MOST_PARTS` chunks, and for a text that is too long and not cut.
    """
    value: str | Sequence[str] = getattr(question, name)
    texts = (value,) if isinstance(value, str) else value
    if len(texts) <= MOST_PARTS * space.texts:
        if not cut:
            for number, text in enumerate(texts, start=1):
                if not space.holds(text):
                    size = estimated_tokens(text)
                    raise too_long(question, limits, f"item {number} of its {name} alone has about {size:,} tokens")
        chunks = space.chunks(texts)
        check_count(question, len(chunks))
        return chunks
    check_count(question, math.ceil(len(texts) / space.texts))
    return []


def check_count(question: Question[Any], parts: int) -> None:
    """Raise QuestionTooLong for more than `MOST_PARTS` parts."""
    if parts > MOST_PARTS:
        raise QuestionTooLong(
            f"{question.kind}: the question would be asked in {parts:,} parts, and {MOST_PARTS} is the most; "
            f"shorten the {_longest_input(question)}"
        )


def with_input(question: A, name: str, value: str | tuple[str, ...]) -> A:
    """The question with another value for one of its inputs."""
    return replace(question, **{name: value})  # type: ignore[type-var]


async def ask_parts(question: Question[A], name: str, chunks: Sequence[Chunk], ask: Ask) -> list[A]:
    """The answers to a question about each chunk of one of its inputs, all asked at once."""
    single = isinstance(getattr(question, name), str)
    values = ("".join(chunk.texts) if single else chunk.texts for chunk in chunks)
    return await asyncio.gather(*(ask(with_input(question, name, value)) for value in values))


def by_number(chunks: Sequence[Chunk], answers: Sequence[Sequence[A]]) -> list[list[A]]:
    """What was said on each item, in order: one thing, or more where an item was cut."""
    said: dict[int, list[A]] = {}
    for chunk, each in zip(chunks, answers, strict=True):
        for number, one in zip(chunk.numbers, each, strict=True):
            said.setdefault(number, []).append(one)
    return list(said.values())


def too_long(question: Question[Any], limits: ContextLimits, why: str = "") -> QuestionTooLong:
    """The error for a question that can't be asked in parts, or whose smallest part is still too long."""
    size = f"the question has about {question.size():,} tokens"
    takes = f"{limits.tokens if limits.longest is None else limits.longest:,}"
    window = f" (context_window {limits.window:,}, less the reply)" if limits.window else ""
    instead = f", or use {question.instead}" if question.instead else ""
    setting = f"{'raise' if limits.window else 'set'} context_window if the model takes more"
    return QuestionTooLong(
        f"{question.kind}: {why or size}, and the judge takes {takes}{window}; "
        f"{setting}, shorten the {_longest_input(question)}{instead}"
    )


def _longest_input(question: Question[Any]) -> str:
    sizes = {name: len(one) if isinstance(one, str) else sum(map(len, one)) for name, one in question.inputs().items()}
    return max(sizes, key=lambda name: sizes[name], default="question")
