"""Claims: what a text asserts, and whether passages support it, also where passages are too long for one question.

Shared by faithfulness, hallucination and context recall: the claims of one text are listed once in a run.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from evalstone._core.prompts import Prompt
from evalstone._core.text import sentences
from evalstone.questions.base import Ask, ListOf, VerdictPerItem, context_limits_of
from evalstone.questions.reply import Cites, NotInReply, Subject, WorstFirst

LIST_CLAIMS = Prompt(
    instructions="""\
You take a text apart into the claims that it makes, so that each can be checked by itself.

A claim is one assertion about the world that could be true or false. Rules:
- Write each claim as a full sentence that is understood alone: put names in the place of pronouns.
- One claim holds one fact. "Ada, born in 1815, wrote the first program" holds two.
- Keep the text's own certainty: "may cost 5 euros" stays "may cost 5 euros". Speculation is a claim too.
- Add nothing, correct nothing, and leave no assertion out, whether it is right or wrong.
- Questions, commands, greetings, offers of help, and remarks about the text itself are no claims.
- A statement that the answer is unknown or not in the passages makes no claim about the world.
- Use the language of the text.
An empty text, or one that asserts nothing, has no claims: give an empty list.

Reply with a JSON object: {"claims": ["…", "…"]}""",
    template="{{text}}\n\nList the claims of this text.",
)


@dataclass(frozen=True)
class ListClaims(ListOf[str]):
    """The assertions that a text makes, each as a sentence of its own; empty when it makes none."""

    kind = "list_claims"
    key = "claims"
    text: str
    prompt: Prompt = LIST_CLAIMS


Support: TypeAlias = Literal["supported", "contradicted", "not_mentioned"]


@dataclass(frozen=True)
class ClaimVerdict:
    """What the passages say of one claim. `passages` are the numbers, from 1, of those that decide it.

    confidence: the probability in [0, 1] that the verdict is right, where the judge gives one for each claim.
    """

    claim: Annotated[str, Subject()]
    verdict: Annotated[Support, WorstFirst("contradicted", "not_mentioned", "supported")]
    passages: Annotated[tuple[int, ...], Cites("context")] = ()
    reason: str = ""
    confidence: Annotated[float | None, NotInReply()] = None


VERIFY_CLAIMS = Prompt(
    instructions="""\
You check claims against numbered passages. The passages are the only evidence: what you know from elsewhere does not
count, even where it is right.

For each claim give, in this order:
- reason: what the passages say about it, in one short sentence, naming the decisive words.
- passages: the numbers of the passages that decide it; empty when none does.
- verdict:
  - "supported": the passages state it, or it follows from them without further knowledge. Other words, a rounded
    number ("about 50" for 49.8) and a less precise date are still supported.
  - "contradicted": the passages say something that cannot be true together with it.
  - "not_mentioned": neither. Part of the claim being supported is not enough: if the passages give the founder and
    the claim gives the founder and the year, and no passage has the year, it is not_mentioned.

Reply with a JSON object that has one member for each claim, under its number:
{"verdicts": {"1": {"reason": "…", "passages": [2], "verdict": "supported"}, "2": …}}""",
    template="{{context}}\n\n{{claims}}\n\nCheck each claim against the passages.",
)


@dataclass(frozen=True)
class VerifyClaims(VerdictPerItem[ClaimVerdict]):
    """For each claim, in order: do the passages support it, contradict it, or not mention it?"""

    kind = "verify_claims"
    items = "claims"
    claims: tuple[str, ...]
    context: tuple[str, ...]
    prompt: Prompt = VERIFY_CLAIMS


async def verified(ask: Ask, claims: Sequence[str], context: Sequence[str]) -> tuple[ClaimVerdict, ...]:
    """The verdict on each claim, in order.

    Many claims are verified in batches, each in a question of its own: a model that is asked about fifty at once grows
    careless, and one bad reply would lose them all. Passages too long for one question are read in chunks, cut between
    sentences: a claim is supported when a chunk supports it, else contradicted when one contradicts it. A later chunk
    is asked only about the claims that none before it supports. How much a question holds is the judge's to say.
    """
    limits = context_limits_of(ask)
    batches = [tuple(claims[start : start + limits.items]) for start in range(0, len(claims), limits.items)]
    parts = chunked(context, limits.characters(context))
    verdicts = await asyncio.gather(*(_verified_in_chunks(ask, batch, parts) for batch in batches))
    return tuple(itertools.chain.from_iterable(verdicts))


async def _verified_in_chunks(ask: Ask, claims: tuple[str, ...], parts: Sequence[Chunk]) -> tuple[ClaimVerdict, ...]:
    """The verdicts on a batch of claims by one chunk after another."""
    if len(parts) == 1:
        return await ask(VerifyClaims(claims=claims, context=parts[0].texts))
    best: dict[int, ClaimVerdict] = {}
    for part in parts:
        unsupported = [place for place in range(len(claims)) if place not in best or best[place].verdict != "supported"]
        if not unsupported:
            break
        question = VerifyClaims(claims=tuple(claims[place] for place in unsupported), context=part.texts)
        for place, verdict in zip(unsupported, await ask(question), strict=True):
            if place not in best or _WEIGHT[verdict.verdict] > _WEIGHT[best[place].verdict]:
                cited = dict.fromkeys(part.numbers[number - 1] for number in verdict.passages)
                best[place] = replace(verdict, passages=tuple(cited))
    return tuple(best[place] for place in range(len(claims)))


_WEIGHT: Mapping[Support, int] = {"not_mentioned": 0, "contradicted": 1, "supported": 2}


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
    space = 0
    for number, passage in enumerate(passages, start=1):
        for piece in _pieces(passage, longest):
            if len(piece) > space or not groups:
                groups.append([])
                space = longest
            groups[-1].append((piece, number))
            space -= len(piece)
    chunks = (Chunk(tuple(text for text, _ in group), tuple(number for _, number in group)) for group in groups)
    return tuple(chunks) or (Chunk(),)


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
