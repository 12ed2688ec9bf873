"""The recorded judge's answers, step by step.

A step is one question of the recorded package. An answer that has not the shape of its step goes to our scorer as it
came, so that our own reading refuses it and the judge is asked again: the next recorded answer is what it says then.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from evalstone._core.parsing import parse_json
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


def in_words_of(source: str, texts: Sequence[str]) -> list[str]:
    """As many texts as were recorded, in words of the source that ours must be from.

    Those recorded are random words, which our reading refuses as invented; what they say is no part of a judgment.
    Where the source has no words they stay: there, listing anything is inventing it.
    """
    words = source.split()
    spans = itertools.islice(itertools.combinations(range(len(words) + 1), 2), len(texts))
    excerpts = [" ".join(words[start:end]) for start, end in spans]
    return [excerpts[number % len(excerpts)] for number in range(len(texts))] if excerpts else all_shown(texts)


def shown(text: str) -> str:
    """A text to be counted: our reading drops blank ones, the recorded package counts them."""
    return text if text.strip() else "(blank)"


def all_shown(texts: Sequence[str] | None) -> list[str]:
    """Texts to be counted, each."""
    return [shown(text) for text in texts or ()]
