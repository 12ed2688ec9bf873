"""Passages against a question and an answer, by the words they share.

The limits are set by judgement: no data set at hand says which passage an answer used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.judges.embedded.claims import list_claims
from evalstone.judges.embedded.index import Index, Piece, all_stems, content, index
from evalstone.judges.embedded.verdict import quote
from evalstone.questions.relevance import Level, PassageRating, PassageRatings, PassageVerdict
from evalstone.text import words

LEVELS: tuple[tuple[float, Level], ...] = ((0.7, "high"), (0.4, "medium"), (0.15, "low"), (0.0, "none"))
TAKEN, HELPED = 0.5, 0.3
NEAR_BEST = 0.8
FEWEST_SHARED = 2
MOST_SENTENCES = 400


@dataclass(frozen=True)
class Reading:
    """One passage beside a question and an answer.

    recall: the share of the question's content words, by weight, that the passage has. taken: the share of the content
    words of one sentence of the answer that the passage has, for the sentence where it is highest. used: some sentence
    has most of its words from this passage, and about as many as from any other. best: the sentence of the passage that
    has most of the words of question and answer.
    """

    recall: float
    taken: float
    used: bool
    best: Piece | None

    @property
    def level(self) -> Level:
        """How relevant the passage is to the question."""
        return next(level for least, level in LEVELS if self.recall >= least)

    @property
    def useful(self) -> bool:
        """Whether it helped towards the answer: the answer took from it, or it has the question and some of both."""
        return self.used or (self.level == "high" and self.taken >= HELPED)

    @property
    def reason(self) -> str:
        """The two shares, and the sentence behind them."""
        said = f': "{quote(self.best.text)}"' if self.best else ""
        return f"{self.recall:.0%} of the question's words, {self.taken:.0%} of a sentence of the answer{said}"


def rate(question: str, answer: str, context: tuple[str, ...]) -> PassageRatings:
    """A rating for each passage. `missing` is always empty: what no passage says cannot be seen in shared words."""
    found = read(question, answer, context)
    return PassageRatings(
        tuple(PassageRating(number, one.level, one.used, one.reason) for number, one in enumerate(found, start=1))
    )


def find_useful(question: str, answer: str, context: tuple[str, ...]) -> tuple[PassageVerdict, ...]:
    """For each passage in order, whether it helped towards the answer."""
    found = read(question, answer, context)
    return tuple(PassageVerdict(number, one.useful, one.reason) for number, one in enumerate(found, start=1))


def read(question: str, answer: str, context: tuple[str, ...]) -> tuple[Reading, ...]:
    """Each passage in order, beside the question and the answer."""
    together = index(context)
    asked = content(all_stems(words(question)))
    told = [content(all_stems(words(claim))) for claim in list_claims(answer)[:MOST_SENTENCES]]
    pieces: list[list[Piece]] = [[] for _ in context]
    for piece in together.pieces:
        pieces[piece.passage - 1].append(piece)
    stems = [frozenset[str]().union(*(piece.stems for piece in own)) for own in pieces]
    taken = [[_share(sentence, own, together, FEWEST_SHARED) for sentence in told] for own in stems]
    highest = [max(column) for column in zip(*taken, strict=True)]
    wanted = asked.union(*told)
    return tuple(
        Reading(
            recall=_share(asked, own, together, 1),
            taken=max(shares, default=0.0),
            used=any(share >= TAKEN and share >= NEAR_BEST * most for share, most in zip(shares, highest, strict=True)),
            best=_nearest(wanted, sentences, together),
        )
        for own, sentences, shares in zip(stems, pieces, taken, strict=True)
    )


def _share(wanted: frozenset[str], own: frozenset[str], together: Index, fewest: int) -> float:
    """The share of the wanted stems that a passage has; 0 when it has fewer than `fewest`, or than all there are."""
    common = wanted & own
    if len(common) < min(fewest, len(wanted)) or not wanted:
        return 0.0
    return together.weight(common) / together.weight(wanted)


def _nearest(wanted: frozenset[str], pieces: Sequence[Piece], together: Index) -> Piece | None:
    best = max(pieces, key=lambda piece: together.weight(piece.stems & wanted), default=None)
    return best if best and best.stems & wanted else None
