"""Claims: what a text asserts, and whether passages support it.

Shared by faithfulness, hallucination and context recall: the claims of one text are listed once in a run.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from evalstone._core.prompts import Prompt
from evalstone.questions.base import Ask, ListOf, VerdictPerItem
from evalstone.questions.limits import ContextLimits
from evalstone.questions.parts import SMALLEST_ROOM, Chunk, Space, check_count, overhead, room_of, too_long
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
    cut = "text"
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

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[ClaimVerdict, ...]:
        """The verdicts on batches of claims, each by one chunk of passages after another.

        A claim is supported when a chunk supports it, else contradicted when one contradicts it. A later chunk is asked
        only about the claims that none before it supports. Beside long passages, claims have a third of the room.
        """
        example = replace(self, claims=("x",), context=("x",))
        both, claim = overhead(example, "claims")
        _, passage = overhead(example, "context")
        fixed = both - passage
        room = room_of(fixed, limits)
        evidence, asked = Space(room, extra=passage), Space(room, limits.items, extra=claim)
        passages, longest = evidence.size(*self.context), max(map(asked.size, self.claims), default=0)
        batches = replace(asked, longest=max(room - passages, room // 3, longest)).chunks(self.claims)
        left = room - max(asked.size(*batch.texts) for batch in batches)
        if left < min(passages, SMALLEST_ROOM + passage):
            raise too_long(self, limits, f"the question has about {fixed + room - left:,} tokens without its context")
        chunks = replace(evidence, longest=left).chunks(self.context)
        check_count(self, len(batches) * len(chunks))
        verdicts = await asyncio.gather(*(self._by_chunks(ask, batch.texts, chunks) for batch in batches))
        return tuple(itertools.chain.from_iterable(verdicts))

    async def _by_chunks(self, ask: Ask, claims: tuple[str, ...], chunks: Sequence[Chunk]) -> list[ClaimVerdict]:
        best: dict[int, ClaimVerdict] = {}
        for chunk in chunks:
            unsupported = [n for n in range(len(claims)) if n not in best or best[n].verdict != "supported"]
            if not unsupported:
                break
            question = replace(self, claims=tuple(claims[n] for n in unsupported), context=chunk.texts)
            for n, verdict in zip(unsupported, await ask(question), strict=True):
                if n not in best or _WEIGHT[verdict.verdict] > _WEIGHT[best[n].verdict]:
                    cited = dict.fromkeys(chunk.numbers[number - 1] for number in verdict.passages)
                    best[n] = replace(verdict, passages=tuple(cited))
        return [best[n] for n in range(len(claims))]


_WEIGHT: Mapping[Support, int] = {"not_mentioned": 0, "contradicted": 1, "supported": 2}
