"""Verdicts on items by evidence: either may be longer than one question, so items go in batches, evidence in chunks."""

from __future__ import annotations

import asyncio
import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

from evalstone._core.text import is_blank
from evalstone.questions.base import Ask
from evalstone.questions.items import VerdictPerItem
from evalstone.questions.markers import Cites
from evalstone.questions.parts import (
    FEWEST_TOKENS,
    Chunk,
    Space,
    check_count,
    overhead,
    tokens_left,
    too_long,
    with_input,
)
from evalstone.questions.reply import reply_fields
from evalstone.types.context_limits import ContextLimits

V = TypeVar("V")

SETTLED = 2
"""The weight of a verdict that no other chunk of evidence can change."""


def cite_first(verdicts: Mapping[str, dict[str, Any]], texts: Sequence[str], undecided: str) -> None:
    """Make the verdicts of an example cite the first text that isn't blank. If there is none, make them undecided."""
    first = next((number for number, text in enumerate(texts, start=1) if not is_blank(text)), None)
    for verdict in verdicts.values():
        verdict.update({"passages": [first]} if first else {"passages": [], "verdict": undecided})


class VerdictByEvidence(VerdictPerItem[V]):
    """One verdict for each item of one input, based on the texts of another input.

    If the evidence is long, each item is judged on one chunk after another until its verdict is settled. The verdict
    with the highest `weight` counts, and the first one in a tie.
    """

    evidence: ClassVar[str]
    """The input with the evidence."""
    last_first: ClassVar[bool] = False
    """Whether later texts overrule earlier ones, so that the last chunk comes first."""

    @abstractmethod
    def weight(self, verdict: V) -> int:
        """The weight of a verdict, from 0 (the chunk decides nothing) to SETTLED."""

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[V, ...]:
        """The verdicts on batches of items. If the evidence is long, items get a third of the space."""
        texts: tuple[str, ...] = getattr(self, self.evidence)
        items: tuple[str, ...] = getattr(self, self.items)
        example = with_input(with_input(self, self.items, ("x",)), self.evidence, ("x",))
        both, item = overhead(example, self.items)
        _, text = overhead(example, self.evidence)
        fixed = both - text
        available = tokens_left(fixed, limits)
        evidence = Space(available, extra=text, headed=self.headed == self.evidence)
        batch_space = Space(available, limits.items, extra=item)
        whole, longest = evidence.size(*texts), max(map(batch_space.size, items), default=0)
        batches = replace(batch_space, longest=max(available - whole, available // 3, longest)).chunks(items)
        left = available - max(batch_space.size(*batch.texts) for batch in batches)
        if left < min(whole, FEWEST_TOKENS + text):
            why = f"the question has about {fixed + available - left:,} tokens without its {self.evidence}"
            raise too_long(self, limits, why)
        chunks = replace(evidence, longest=left).chunks(texts)
        check_count(self, len(batches) * len(chunks))
        chunks = chunks[::-1] if self.last_first else chunks
        verdicts = await asyncio.gather(*(self._by_chunks(ask, batch.texts, chunks) for batch in batches))
        return tuple(itertools.chain.from_iterable(verdicts))

    async def _by_chunks(self, ask: Ask, items: tuple[str, ...], chunks: Sequence[Chunk]) -> Iterator[V]:
        best: dict[int, V] = {}
        for chunk in chunks:
            unsettled = [n for n in range(len(items)) if n not in best or self.weight(best[n]) < SETTLED]
            if not unsettled:
                break
            part = with_input(self, self.items, tuple(items[n] for n in unsettled))
            for n, verdict in zip(unsettled, await ask(with_input(part, self.evidence, chunk.texts)), strict=True):
                if n not in best or self.weight(verdict) > self.weight(best[n]):
                    best[n] = self._of_whole(verdict, chunk)
        return (best[n] for n in range(len(items)))

    def _of_whole(self, verdict: V, chunk: Chunk) -> V:
        """A verdict on a chunk, with its citations renumbered for the whole evidence."""
        cited: dict[str, tuple[int, ...]] = {}
        for field in reply_fields(type(verdict)):
            if (cites := field.marker(Cites)) and cites.input == self.evidence:
                cited[field.name] = chunk.numbers_of(getattr(verdict, field.name))
        return replace(cast(Any, verdict), **cited) if cited else verdict
