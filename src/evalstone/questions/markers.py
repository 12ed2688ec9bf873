"""Markers of the fields of a reply type, which say what Python's types can't (reply.py).

verdict: Annotated[Literal["yes", "no", "unclear"], WorstFirst("no", "unclear", "yes")]
passages: Annotated[tuple[int, ...], Cites("context")] = ()
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from evalstone._core.grounding import all_not_grounded, is_quoted
from evalstone._core.prompts import clean
from evalstone._core.text import sentences, stem


class WorstFirst:
    """The labels of a field are ordered, least favorable first. Without `labels`, the order of the type counts."""

    def __init__(self, *labels: Any) -> None:
        self.labels = labels


class Unordered:
    """The field is a label without an order."""


class Subject:
    """The subject of a verdict: an item of the question, or its number if the field is an int.

    It isn't a part of the reply if the question determines it, by numbered items or by an input of the same name. In a
    list written by the judge, the judge names it.
    """


class Explains:
    """The field only explains the label beside it: it changes no score, and may be empty."""


class NotInReply:
    """The field is not a part of the reply; it is set later."""


class YesNo:
    """The bool is "yes" or "no" in the reply, under `key`."""

    def __init__(self, key: str = "verdict") -> None:
        self.key = key


class Key:
    """The field has a different name in the reply."""

    def __init__(self, key: str) -> None:
        self.key = key


class MayOmit:
    """The key is optional in a reply. If it is missing, the value is `default`."""

    def __init__(self, default: Any) -> None:
        self.default = default


QUARTERS = (1, 0.75, 0.5, 0.25, 0)
"""The grades that a judge is asked to choose from."""


class Between:
    """The number must be from `low` to `high`, unless the question is not `bounded`. It is never clamped.

    anchors: the numbers that the judge is asked to choose from, each of which the prompt describes. Any other number in
    the range is read as it is.
    """

    def __init__(self, low: float, high: float, anchors: Sequence[float] = ()) -> None:
        self.low, self.high, self.anchors = low, high, tuple(anchors)


class Cites:
    """Citations: numbers of items in the question's `input`, from 1. Any other number is an error.

    needed_for: the labels that need at least one citation.
    """

    def __init__(self, input: str, needed_for: Collection[str] = ()) -> None:
        self.input, self.needed_for = input, needed_for


class Quotes:
    """A quotation from the question's `input`. Text that isn't in the input is an error.

    needed_for: the labels that need a quotation. With any other label, the quotation is dropped.
    """

    advice: ClassVar[str] = "quote its words"

    def __init__(self, input: str, needed_for: Collection[str] = ()) -> None:
        self.input, self.needed_for = input, needed_for

    def source(self, question: Any) -> str:
        """The text to quote from."""
        return "\n".join(_texts_of(question, (self.input,)))

    def problem(self, text: str, question: Any) -> str:
        """Why a text isn't a quotation from the input; empty if it is one."""
        source, text = self.source(question), NUMBERING.sub("", text)
        quoted = is_quoted(text, source) or (
            len(parts := sentences(text)) > 1 and all(is_quoted(part, source) for part in parts)
        )
        return "" if quoted else f"{_excerpt(text)} is not in the {_noun(self.input)}"

    def problems(self, texts: Sequence[str], question: Any) -> list[str]:
        """Why each of the texts of a list isn't a quotation from the input; empty for those that are."""
        return [self.problem(text, question) for text in texts]


class Restates:
    """A paraphrase of the question's `inputs`. Its numbers, names and most other words must come from them.

    besides: words that it may add, in any form, such as `think` in "the author thinks that …".
    """

    advice: ClassVar[str] = "take only what it says"

    def __init__(self, *inputs: str, besides: Iterable[str] = ()) -> None:
        self.inputs, self.besides = inputs, frozenset(map(stem, besides))

    def problem(self, text: str, question: Any) -> str:
        """Why a text isn't a paraphrase of the inputs; empty if it is one."""
        return self.problems([text], question)[0]

    def problems(self, texts: Sequence[str], question: Any) -> list[str]:
        """Why each of the texts of a list isn't a paraphrase of the inputs; empty for those that are."""
        source, *others = ("\n".join(_texts_of(question, (name,))) for name in self.inputs)
        noun = _noun(self.inputs[0])
        found = all_not_grounded(texts, source, others, self.besides)
        return [
            f"{_excerpt(text)} is not from the {noun}, which doesn't have: {_listed(foreign)}" if foreign else ""
            for text, foreign in zip(texts, found, strict=True)
        ]


class NumberedBy:
    """An object with one member per item of the question's `input`, keyed by the item's number.

    noun, what: the names of an item and of a member in errors, as in "3 claims, 2 verdicts".
    """

    def __init__(self, input: str, noun: str = "", what: str = "verdict") -> None:
        self.input, self.noun, self.what = input, noun, what


NUMBERING = re.compile(r"\A\s*[(\[]?(?:(?:claim|fact|statement)\s*)?\d{1,3}\s*[.:)\]]+\s+", re.IGNORECASE)
"""The number in front of a text that was shown in a numbered list."""


def _texts_of(question: Any, inputs: Sequence[str]) -> Iterator[str]:
    for name in inputs:
        value = getattr(question, name)
        yield from (value,) if isinstance(value, str) else value


def _noun(input: str) -> str:
    return "passages" if input == "context" else input


def _excerpt(text: str) -> str:
    shown = " ".join(clean(text[:200]).split())
    return repr(shown if len(shown) <= 80 else shown[:79] + "…")


def _listed(foreign: Sequence[str]) -> str:
    return ", ".join(word[:40] for word in foreign[:5])
