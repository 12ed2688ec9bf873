"""The recorded judge's answers, step by step.

A step is one question of the recorded package. An answer that has not the shape of its step goes to our scorer as it
came, so that our own reading refuses it and the judge is asked again: the next recorded answer is what it says then.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from evalstone._core.parsing import PLACEHOLDER, parse_json
from evalstone.errors import ReplyError
from tests.parity.adapters.common import Case

Shape: TypeAlias = Any
"""`str`, `bool`, `float` (any number), None (null), a list of one shape, a table of shapes (`key?` may be absent or
null), or a tuple of shapes of which one must fit."""


def fits(shape: Shape, data: Any) -> bool:
    """Whether data has a shape. Members that the shape does not name are of no account."""
    if shape is None:
        return data is None
    if isinstance(shape, tuple):
        return any(fits(one, data) for one in cast("tuple[Shape, ...]", shape))
    if isinstance(shape, list):
        (item,) = cast("list[Shape]", shape)
        return isinstance(data, list) and all(fits(item, one) for one in cast("list[Any]", data))
    if isinstance(shape, Mapping):
        return isinstance(data, Mapping) and all(
            _member_fits(key, one, cast("Mapping[str, Any]", data))
            for key, one in cast("Mapping[str, Shape]", shape).items()
        )
    if shape is float:
        return isinstance(data, int | float) and not isinstance(data, bool)
    return isinstance(data, shape)


def _member_fits(key: str, shape: Shape, data: Mapping[str, Any]) -> bool:
    if key.endswith("?"):
        return data.get(key[:-1]) is None or fits(shape, data[key[:-1]])
    return key in data and fits(shape, data[key])


@dataclass(frozen=True)
class Told:
    """The answers at one step in order, each with whether it has the step's shape."""

    answers: Sequence[tuple[bool, Any]]

    @property
    def given(self) -> Mapping[str, Any]:
        """The first answer with the shape of the step; an absent one is empty."""
        fitting = [data for fitting, data in self.answers if fitting]
        return fitting[0] if fitting else {}

    def replies(self, make: Callable[[Any], Any]) -> list[Any]:
        """The answers as replies to one question of ours, in their order."""
        return [make(data) if fitting else data for fitting, data in self.answers]


def told(case: Case, *shapes: Shape) -> list[Told]:
    """The recorded answers at each step: up to the first one that has its shape, and at the last step all the rest."""
    left = [_read(given) for given in case["judge_answers"]]
    steps: list[Told] = []
    for shape in shapes:
        judged = [(fits(shape, data), data if fits(shape, data) else raw) for raw, data in left]
        usable = next((number for number, (fitting, _) in enumerate(judged, start=1) if fitting), len(judged))
        count = len(judged) if len(steps) == len(shapes) - 1 else usable
        steps.append(Told(judged[:count]))
        left = left[count:]
    return steps


def _read(given: Any) -> tuple[str, Any]:
    """An answer as raw text, and as data; text that holds no JSON object is its own data, and fits nothing."""
    if not isinstance(given, str):
        return json.dumps(given), given
    try:
        return given, parse_json(given)
    except ReplyError:
        return given, given


class Invented(str):
    """A recorded text that stays as it is, because the text that it must be from has nothing."""

    __slots__ = ()


class Repeated(str):
    """An excerpt that stands for several recorded texts, because their source has fewer excerpts."""

    __slots__ = ()


def in_words_of(source: str, texts: Sequence[str]) -> list[str]:
    """As many texts as were recorded, each a different excerpt of the source that ours must be from.

    Those recorded are random words, which our reading refuses as invented; what they say is no part of a judgment.
    """
    if not source.strip():
        return [Invented(text) for text in all_shown(texts)]
    found = list(itertools.islice(excerpts(source), len(texts)))
    missing = len(texts) - len(found)
    return found + [Repeated(text) for text in itertools.islice(itertools.cycle(found or [source.strip()]), missing)]


_MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
_UNSPACED = rf"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff][{_MARKS}]*"
_WORD = re.compile(rf"{_UNSPACED}|(?:(?!{_UNSPACED})[^\W_])+(?:[^\w\s]+[^\W_]+|_+[^\W_]+)*")
"""A word, with the signs inside it; in scripts without spaces a character, with its marks."""


def excerpts(source: str) -> Iterator[str]:
    """The parts of a text from one word to another, as they stand there; those of the same words once.

    Parts such as "the text" are left out: a judge that says no more has written a placeholder.
    """
    words = list(_WORD.finditer(source))
    seen = set[tuple[str, ...]]()
    for start, end in itertools.combinations(range(len(words) + 1), 2):
        content = tuple(word[0].casefold() for word in words[start:end])
        excerpt = source[words[start].start() : words[end - 1].end()]
        if content not in seen and not PLACEHOLDER.fullmatch(excerpt):
            seen.add(content)
            yield excerpt


def shown(text: str) -> str:
    """A text to be counted: our reading drops blank ones, the recorded package counts them."""
    return text if text.strip() else "(blank)"


def all_shown(texts: Sequence[str] | None) -> list[str]:
    """Texts to be counted, each."""
    return [shown(text) for text in texts or ()]
