"""Split questions that are too long for a judge, or have too many items.

A part is a question of the same kind about some of the items, some of the passages, or a piece of the text. Inputs that
can't be split, such as the user's question, are in every part, and leave less space for the rest. The number of parts
is checked before the first call.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone._core.text import STOPS, estimated_tokens, is_blank, sentence_slices
from evalstone.errors import QuestionTooLong

if TYPE_CHECKING:
    from evalstone.questions.base import Ask, Question
    from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")

MOST_PARTS = 200
"""The maximum number of parts. More would cost more than anyone expects for one sample."""
FEWEST_TOKENS = 64
"""The minimum number of tokens that must be left for the input that is split."""
_DIGITS = 4
"""Extra tokens for the longer numbers of later items."""


@dataclass(frozen=True)
class Chunk:
    """Texts that go into one part. numbers: for each text, the number of its item, from 1."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def numbers_of(self, cited: Iterable[int]) -> tuple[int, ...]:
        """The distinct item numbers for the text positions, from 1, that an answer cites."""
        return tuple(dict.fromkeys(self.numbers[position - 1] for position in cited))


@dataclass(frozen=True)
class Space:
    """The maximum size of one chunk."""

    longest: float
    """The maximum size, in the unit of `measure`."""
    texts: float = math.inf
    """The maximum number of texts."""
    sentences: float = math.inf
    """The maximum number of sentences."""
    extra: int = 0
    """The overhead of each text, in the unit of `measure`."""
    measure: Callable[[str], int] = estimated_tokens
    """The size of a text; tokens by default."""
    headed: bool = False
    """Whether the first line of a text is a heading, to be repeated in front of each of its pieces."""

    def size(self, *texts: str) -> int:
        """The size of texts in a chunk, including their overhead."""
        return sum(map(self.measure, texts)) + self.extra * len(texts)

    def holds(self, text: str) -> bool:
        """Whether a text fits into a chunk of its own."""
        return self.size(text) <= self.longest and within_sentences(text, self.sentences)

    def chunks(self, texts: Iterable[str]) -> list[Chunk]:
        """Distribute texts over chunks, in order. Returns at least one chunk, which may be empty.

        A text that is too long for a chunk is split between sentences; a sentence that is too long, at a space or
        anywhere.
        """
        filled: list[tuple[list[str], list[int]]] = []
        size_left, texts_left, sentences_left = 0.0, 0.0, 0.0
        for number, whole in enumerate(texts, start=1):
            # Blank texts stay, because every item needs a verdict.
            for text in (whole,) if self.holds(whole) else tuple(self.pieces(whole)) or ("",):
                size = self.size(text)
                count = 0 if self.sentences == math.inf else sentence_count(text)
                if not filled or size > size_left or texts_left < 1 or count > sentences_left:
                    filled.append(([], []))
                    size_left, texts_left, sentences_left = self.longest, self.texts, self.sentences
                filled[-1][0].append(text)
                filled[-1][1].append(number)
                size_left -= size
                texts_left -= 1
                sentences_left -= count
        return [Chunk(tuple(texts), tuple(numbers)) for texts, numbers in filled] or [Chunk()]

    def pieces(self, text: str) -> Iterator[str]:
        """Split a text into pieces that fit. Joined, they are the text, without blank pieces and repeated headings."""
        available = self.longest - self.extra
        heading = "".join(text.partition("\n")[:2]) if self.headed else ""
        if not heading.endswith("\n") or self.measure(heading) > available / 4:
            heading = ""
        for number, piece in enumerate(self._slices(text, available - self.measure(heading))):
            yield heading + piece if number else piece

    def _slices(self, text: str, available: float) -> Iterator[str]:
        piece: list[str] = []
        size_left, sentences_left = available, self.sentences
        for sentence in sentence_slices(text):
            for part in (
                (sentence,) if self.measure(sentence) <= available else _cut(sentence, available / 4, self.measure)
            ):
                size = self.measure(part)
                if piece and (size > size_left or sentences_left < 1):
                    yield from _unless_blank("".join(piece))
                    piece, size_left, sentences_left = [], available, self.sentences
                piece.append(part)
                size_left -= size
            sentences_left -= not is_blank(sentence)
        yield from _unless_blank("".join(piece))


def _unless_blank(piece: str) -> Iterator[str]:
    if not is_blank(piece):
        yield piece


def _cut(text: str, longest: float, measure: Callable[[str], int]) -> Iterator[str]:
    """Halve a text, at a space if possible, until its parts are short enough or a single character."""
    if len(text) <= 1 or measure(text) <= longest:
        yield text
        return
    middle = len(text) // 2
    blank = text.rfind(" ", middle // 2, middle)
    middle = middle if blank < 0 else blank + 1
    yield from _cut(text[:middle], longest, measure)
    yield from _cut(text[middle:], longest, measure)


def sentence_count(text: str) -> int:
    """The number of sentences in a text, except blank ones."""
    return sum(not is_blank(sentence) for sentence in sentence_slices(text))


_STOP = re.compile(rf"[{STOPS}\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")


def within_sentences(text: str, most: float) -> bool:
    """Whether a text has at most this many sentences. Counting punctuation settles most cases quickly."""
    if most == math.inf or len(text) < most:
        return True
    return len(_STOP.findall(text)) < most or sentence_count(text) <= most


def tokens_left(fixed: int, limits: ContextLimits) -> float:
    """The tokens that are left for the input that is split. fixed: the tokens of everything else.

    The whole question gets the usual length. If the fixed part is long, the split input still gets half of that, as far
    as the judge's context window allows.
    """
    most = math.inf if limits.longest is None else limits.longest
    return min(max(limits.tokens - fixed, limits.tokens // 2), most - fixed)


def overhead(question: Question[Any], name: str) -> tuple[int, int]:
    """The tokens of a question without one input, and the overhead of each text of that input."""
    if isinstance(getattr(question, name), str):
        return with_input(question, name, "x").size(), 0
    one, two = (with_input(question, name, ("x",) * count).size() for count in (1, 2))
    return one - (two - one), two - one + _DIGITS


def space_for(
    question: Question[Any], name: str, limits: ContextLimits, *, texts: float = math.inf, sentences: float = math.inf
) -> Space:
    """The space for one input in a part of a question. Raises QuestionTooLong if there is too little.

    texts, sentences: the maximum number of each in one part.
    """
    fixed, extra = overhead(question, name)
    available = tokens_left(fixed, limits)
    if available - extra < FEWEST_TOKENS:
        raise too_long(question, limits, f"the question has about {fixed:,} tokens without its {name}")
    return Space(available, texts, sentences, extra, headed=question.headed == name)


def chunks_of(
    question: Question[Any], name: str, space: Space, limits: ContextLimits, *, cut: bool = True
) -> list[Chunk]:
    """Split one input of a question into chunks. cut: whether to split texts that are too long.

    Raises QuestionTooLong for more than `MOST_PARTS` chunks, or if cut=False and a text is too long.
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
            f"{question.kind}: the question needs {parts:,} parts, and at most {MOST_PARTS} are allowed; "
            f"shorten the {_longest_input(question)}"
        )


def with_input(question: A, name: str, value: str | tuple[str, ...]) -> A:
    """The question with a different value for one of its inputs."""
    return replace(question, **{name: value})  # type: ignore[type-var]


async def ask_parts(question: Question[A], name: str, chunks: Sequence[Chunk], ask: Ask) -> list[A]:
    """Ask a question about each chunk of one of its inputs, concurrently, and return the answers."""
    single = isinstance(getattr(question, name), str)
    values = ("".join(chunk.texts) if single else chunk.texts for chunk in chunks)
    return await asyncio.gather(*(ask(with_input(question, name, value)) for value in values))


def by_number(chunks: Sequence[Chunk], answers: Sequence[Sequence[A]]) -> list[list[A]]:
    """Group the values in several answers by item, in order. An item that was split has several values."""
    by_item: dict[int, list[A]] = {}
    for chunk, values in zip(chunks, answers, strict=True):
        for number, value in zip(chunk.numbers, values, strict=True):
            by_item.setdefault(number, []).append(value)
    return list(by_item.values())


def too_long(question: Question[Any], limits: ContextLimits, why: str = "") -> QuestionTooLong:
    """The error for a question that can't be split, or whose smallest part is still too long."""
    size = f"the question has about {question.size():,} tokens"
    limit = f"{limits.tokens if limits.longest is None else limits.longest:,}"
    window = f" (context_window {limits.window:,}, less the reply)" if limits.window else ""
    instead = f", or use {question.instead}" if question.instead else ""
    setting = f"{'raise' if limits.window else 'set'} context_window if the model takes more"
    return QuestionTooLong(
        f"{question.kind}: {why or size}, and the judge takes {limit}{window}; "
        f"{setting}, shorten the {_longest_input(question)}{instead}"
    )


def _longest_input(question: Question[Any]) -> str:
    inputs = question.inputs().items()
    sizes = {name: len(value) if isinstance(value, str) else sum(map(len, value)) for name, value in inputs}
    return max(sizes, key=lambda name: sizes[name], default="question")
