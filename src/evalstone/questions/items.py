"""Questions whose answers have several items: a verdict for each item of an input, or a list that the judge writes."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

from evalstone._core.parsing import member, numbered_schema, object_schema, texts
from evalstone._core.prompts import Material
from evalstone.errors import ReplyError
from evalstone.questions.base import TEXT_SCHEMA, Ask, Question, answer_type
from evalstone.questions.markers import NUMBERING, Quotes, Restates
from evalstone.questions.parts import ask_parts, by_number, chunks_of, space_for, too_long, within_sentences
from evalstone.questions.reply import (
    LONGEST_TEXT,
    MOST_ITEMS,
    Counts,
    check_list,
    check_quoted,
    list_schema,
    read_list,
    read_numbered,
    reply_fields,
    subject_of,
)
from evalstone.questions.schemas import example_of
from evalstone.questions.ungrounded import UngroundedItems
from evalstone.types.context_limits import ContextLimits

V = TypeVar("V")
CHARACTERS_PER_ITEM = 90


class VerdictPerItem(Question[tuple[V, ...]], Generic[V]):
    """One verdict for each item of one input, in order.

    items: the input. noun: the name of an item in errors, by default the subject of `V`. The reply is
    `{"verdicts": {"1": …, "2": …}}`. A missing or additional verdict is a ReplyError.
    """

    items: ClassVar[str]
    noun: ClassVar[str] = ""
    numbered: ClassVar[bool] = True
    cuts_items: ClassVar[bool] = False
    """Whether an item that is too long for one question is split. `of_pieces` then merges the verdicts."""

    @classmethod
    def _reply_type(cls) -> Any:
        return _item_type(cls)

    @classmethod
    def _schema_around(cls, schema: Mapping[str, Any], question: Any) -> Mapping[str, Any]:
        numbers = numbered_schema("verdict", len(getattr(question, cls.items)))
        return {**object_schema({"verdicts": numbers}), "$defs": {"verdict": schema}}

    def _counts(self) -> Counts:
        return *super()._counts(), (self.items, len(getattr(self, self.items)))

    def from_json(self, data: Any) -> tuple[V, ...]:
        return read_numbered(_item_type(type(self)), member(data, "verdicts"), self, self.items, self.noun)

    @property
    def divisible_by(self) -> str | None:
        # A cascade can't merge verdicts on numbers: each part would count from 1.
        return None if self._is_numbered else self.items

    @property
    def _is_numbered(self) -> bool:
        subject = subject_of(_item_type(type(self)))
        return subject is not None and subject.type is int

    def fits(self, limits: ContextLimits) -> bool:
        return len(getattr(self, self.items)) <= limits.items and self.within(limits.tokens)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[V, ...]:
        """The verdicts on groups of items, in order."""
        space = space_for(self, self.items, limits, texts=limits.items)
        chunks = chunks_of(self, self.items, space, limits, cut=self.cuts_items)
        by_item = by_number(chunks, await ask_parts(self, self.items, chunks, ask))
        verdicts = (pieces[0] if len(pieces) == 1 else self.of_pieces(pieces) for pieces in by_item)
        subject = subject_of(_item_type(type(self)))
        if subject is None or not self._is_numbered:
            return tuple(verdicts)
        renumbered = (replace(cast(Any, it), **{subject.name: n}) for n, it in enumerate(verdicts, start=1))
        return cast("tuple[V, ...]", tuple(renumbered))

    def of_pieces(self, verdicts: Sequence[V]) -> V:
        """The verdict on an item, from the verdicts on its pieces. Required if the class `cuts_items`."""
        raise NotImplementedError(f"{type(self).__name__} doesn't define how to merge verdicts on pieces")


class ListOf(Question[tuple[V, ...]], Generic[V]):
    """A list that the judge writes, of texts or of a reply type. Blank texts are dropped.

    key: its name in the reply. source: the input that the texts quote or restate. Dry runs estimate the number of items
    from the length of the inputs.
    """

    key: ClassVar[str]
    source: ClassVar[Quotes | Restates | None] = None
    cut: ClassVar[str] = ""
    """The input that is split if it is long, a text or passages; empty if the question can't be split."""

    @classmethod
    def _reply_type(cls) -> Any:
        return _item_type(cls)

    @classmethod
    def _inner_schema(cls, question: Any, *, subject: bool = True) -> Mapping[str, Any]:
        return TEXT_SCHEMA if cls._reply_type() is str else super()._inner_schema(question, subject=subject)

    @classmethod
    def _schema_around(cls, schema: Mapping[str, Any], question: Any) -> Mapping[str, Any]:
        return object_schema({cls.key: list_schema(schema)})

    def from_json(self, data: Any) -> tuple[V, ...]:
        kind, listed = _item_type(type(self)), member(data, self.key)
        if kind is not str:
            try:
                values = read_list(kind, listed, self, self.key)
            except UngroundedItems as error:
                self._check_quotes(error.kept or ())
                raise
            self._check_quotes(values)
            return values
        items = self._unnumbered(texts(listed, self.key))
        check_list(items, self.key, repeats=isinstance(self.source, Quotes))
        if self.source is None:
            return cast("tuple[V, ...]", items)
        if isinstance(self.source, Quotes):
            check_quoted(items, self.source.source(self), self.key)
        elif too_long := [(n, len(item)) for n, item in enumerate(items, start=1) if len(item) >= LONGEST_TEXT]:
            lengths = "; ".join(f"{self.key}.{n}: it has {length:,} characters" for n, length in too_long)
            raise ReplyError(f"{lengths}; each must stay under {LONGEST_TEXT:,}")
        problems = self.source.problems(items, self)
        if any(problems):
            named = [f"{self.key}.{n}: {problem}" for n, problem in enumerate(problems, start=1) if problem]
            kept = [item for item, problem in zip(items, problems, strict=True) if not problem]
            raise UngroundedItems.of_list(named, self.source.advice, kept, len(items))
        return cast("tuple[V, ...]", items)

    def _check_quotes(self, values: Sequence[V]) -> None:
        """Raise ReplyError if values of a reply type quote the same words over and over."""
        if (quoting := _quoting(_item_type(type(self)))) is not None:
            name, quotes = quoting
            check_quoted([getattr(value, name) for value in values], quotes.source(self), self.key)

    def _unnumbered(self, items: Sequence[str]) -> tuple[str, ...]:
        """The items without list markers, without quotes and markup around them, and without numbers if all of them
        count up, or if an item is only from the source without its number."""
        if all(item[0].isalpha() and not _NAMED.match(item) for item in items):
            return tuple(items)
        items = [_unwrapped(_BULLET.sub("", item)) for item in items]
        bare = [_unwrapped(NUMBERING.sub("", item)) for item in items]
        if len(items) > 1 and [_number_of(item) for item in items] == list(range(1, len(items) + 1)):
            return tuple(bare)
        return tuple(
            other if other != item and self.source and self.source.problem(item, self) else item
            for item, other in zip(items, bare, strict=True)
        )

    def typical_count(self, characters: int) -> int:
        """The typical number of items for inputs with this many characters."""
        return characters // CHARACTERS_PER_ITEM

    def most_sentences(self, limits: ContextLimits) -> float:
        """The maximum number of sentences in one question, so that their items fit into a reply. Texts take less space
        than verdicts."""
        return limits.items if _item_type(type(self)) is not str else limits.items * 8 // 5

    def fits(self, limits: ContextLimits) -> bool:
        if not self.cut:
            return super().fits(limits)
        value: str | tuple[str, ...] = getattr(self, self.cut)
        text = value if isinstance(value, str) else "\n\n".join(value)
        return self.within(limits.tokens) and within_sentences(text, self.most_sentences(limits))

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[V, ...]:
        """The concatenated lists of all pieces of the text, or of all groups of passages."""
        if not self.cut:
            raise too_long(self, limits)
        space = space_for(self, self.cut, limits, sentences=self.most_sentences(limits))
        chunks = chunks_of(self, self.cut, space, limits)
        return tuple(itertools.chain.from_iterable(await ask_parts(self, self.cut, chunks, ask)))

    def example(self) -> Any:
        text = "\n".join(value if isinstance(value, str) else "\n".join(value) for value in self._sources())
        count = min(max(1, self.typical_count(len(text))), MOST_ITEMS - 1)
        step = max(1, len(text) // count)
        excerpts = [text[i * step :][:CHARACTERS_PER_ITEM].strip() for i in range(count)]
        excerpts = list(filter(None, excerpts))
        item: Any = example_of(self._inner_schema(self), self.fingerprint[:8])
        if isinstance(item, str):
            return {self.key: excerpts}
        quoting = _quoting(_item_type(type(self)))
        return {self.key: [{**item, **({quoting[0]: excerpt} if quoting else {})} for excerpt in excerpts]}

    def _sources(self) -> Iterable[Material]:
        """The inputs that the items come from."""
        quoting = _quoting(_item_type(type(self)))
        if source := self.source or (quoting and quoting[1]):
            return [self.inputs()[source.input if isinstance(source, Quotes) else source.inputs[0]]]
        return self.inputs().values()


_WRAPPED = re.compile(r"\A(?:(\*\*|__|[*`\"])((?:(?!\1).)+)\1|“([^“”]+)”)\Z", re.DOTALL)
_BULLET = re.compile(r"\A\s*[-*•–]\s+")
_NAMED = re.compile("claim|fact|statement", re.IGNORECASE)
"""A word that may stand in front of the number of an item."""


def _unwrapped(item: str) -> str:
    """The item without one pair of quotes or marks around it."""
    match = _WRAPPED.match(item.strip())
    return (match[2] or match[3]).strip() if match else item


def _number_of(item: str) -> int | None:
    """The number in front of an item."""
    numbering = NUMBERING.match(item)
    return int("".join(filter(str.isdecimal, numbering[0]))) if numbering else None


@functools.cache
def _quoting(kind: type[Any]) -> tuple[str, Quotes] | None:
    """The field of a reply type that quotes an input; None if there is none."""
    quoting = ((field.name, field.marker(Quotes)) for field in reply_fields(kind))
    return next(((name, quotes) for name, quotes in quoting if quotes), None)


@functools.cache
def _item_type(kind: type[Question[Any]]) -> Any:
    return get_args(answer_type(kind))[0]
