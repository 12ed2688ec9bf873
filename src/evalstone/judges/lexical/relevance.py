"""Relevance of passages to a question, and whether an answer used them, by shared words.

    relevance = P(the passage was retrieved for this question, and not for another one with common words)

The logistic regression `passage` has three inputs: the share of the question's content words in the passage (recall),
BM25 divided by its maximum, and the recall of the passage's best sentence. `LEVELS` has the cutoffs of the levels;
docs/lexical-judge.md describes the fit. The thresholds for use are not fitted: there was no labeled data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.judges.lexical.claim_splitter import list_claims
from evalstone.judges.lexical.classifier import quote
from evalstone.judges.lexical.features import read as read_claim
from evalstone.judges.lexical.model import Model
from evalstone.judges.lexical.passages import Passages, Piece
from evalstone.judges.lexical.tokens import Lexicon
from evalstone.questions.relevance import PassageRating, PassageRatings, PassageVerdict, RelevanceLevel

LEVELS: tuple[tuple[float, RelevanceLevel], ...] = ((0.8, "high"), (0.5, "medium"), (0.2, "low"), (0.0, "none"))
TAKEN, HELPED = 0.5, 0.3
NEAR_BEST = 0.8
FEWEST_SHARED = 2
MOST_SENTENCES = 400
_K1, _B, _USUAL_LENGTH = 1.2, 0.75, 100


@dataclass(frozen=True)
class Reading:
    """One passage compared with a question and an answer."""

    recall: float
    """The weighted share of the question's content words in the passage, in [0, 1]."""
    relevance: float
    """The probability that the passage is relevant, in [0, 1]."""
    taken: float
    """The highest share of an answer sentence that the passage contains, in [0, 1]."""
    used: bool
    """Whether an answer sentence shares most of its words with this passage, and about as many as with any other."""
    best: Piece | None
    """The sentence of the passage that shares most words with question and answer."""

    @property
    def level(self) -> RelevanceLevel:
        """How relevant the passage is to the question."""
        return next(level for least, level in LEVELS if self.relevance >= least)

    @property
    def useful(self) -> bool:
        """Whether the passage was useful: the answer used it, or it is highly relevant and shares words with it."""
        return self.used or (self.level == "high" and self.taken >= HELPED)

    @property
    def reason(self) -> str:
        """The probability, the shares, and the best sentence."""
        text = (
            f"relevance {self.relevance:.2f}: {self.recall:.0%} of the question's words, {self.taken:.0%} of a sentence"
        )
        return f"{text} of the answer" + (f': "{quote(self.best.text)}"' if self.best else "")


def rate(question: str, answer: str, passages: Passages, count: int, model: Model) -> PassageRatings:
    """A rating for each of `count` passages. `missing` is always empty: shared words can't show what is missing."""
    readings = enumerate(read(question, answer, passages, count, model), start=1)
    ratings = (PassageRating(number, reading.level, reading.used, reading.reason) for number, reading in readings)
    return PassageRatings(tuple(ratings))


def find_useful(question: str, answer: str, passages: Passages, count: int, model: Model) -> tuple[PassageVerdict, ...]:
    """For each passage in order, whether it was useful for the answer."""
    readings = enumerate(read(question, answer, passages, count, model), start=1)
    return tuple(PassageVerdict(number, reading.useful, reading.reason) for number, reading in readings)


def read(question: str, answer: str, passages: Passages, count: int, model: Model) -> tuple[Reading, ...]:
    """Compare each passage with the question and the answer."""
    asked = read_claim(question).content
    claims = [read_claim(claim).content for claim in list_claims(answer)[:MOST_SENTENCES]]
    pieces: list[list[Piece]] = [[] for _ in range(count)]
    for piece in passages.pieces:
        pieces[piece.passage - 1].append(piece)
    stems = [frozenset[str]().union(*(piece.content for piece in own)) for own in pieces]
    taken = [[_share(sentence, own, passages.lexicon, FEWEST_SHARED) for sentence in claims] for own in stems]
    highest = [max(column) for column in zip(*taken, strict=True)]
    terms = asked.union(*claims)
    return tuple(
        Reading(
            recall=_share(asked, own, passages.lexicon, 1),
            relevance=model.passage.at(*measures(asked, sentences, passages.lexicon)) if asked & own else 0.0,
            taken=max(shares, default=0.0),
            used=any(share >= TAKEN and share >= NEAR_BEST * most for share, most in zip(shares, highest, strict=True)),
            best=_nearest(terms, sentences, passages.lexicon),
        )
        for own, sentences, shares in zip(stems, pieces, taken, strict=True)
    )


def measures(asked: frozenset[str], pieces: Sequence[Piece], lexicon: Lexicon) -> tuple[float, float, float]:
    """The curve's inputs: recall in the whole passage, BM25 divided by its maximum, recall in the best sentence."""
    whole = lexicon.weight(asked)
    if not whole:
        return 0.0, 0.0, 0.0
    counts = Counter(item for piece in pieces for item in piece.stems)
    length = sum(counts.values())
    get, unseen = lexicon.weights.get, lexicon.unseen
    norm = _K1 * (1 - _B + _B * length / _USUAL_LENGTH)
    scored = math.fsum(get(item, unseen) * counts[item] / (counts[item] + norm) for item in asked if counts[item])
    recall = lexicon.weight(item for item in asked if counts[item])
    best = max((lexicon.weight(piece.content & asked) for piece in pieces), default=0.0)
    return recall / whole, scored / whole, best / whole


def _share(terms: frozenset[str], own: frozenset[str], lexicon: Lexicon, fewest: int) -> float:
    """The weighted share of the terms in a passage; 0 if it has fewer than `fewest` of them and not all."""
    common = terms & own
    if len(common) < min(fewest, len(terms)) or not terms:
        return 0.0
    return lexicon.weight(common) / lexicon.weight(terms)


def _nearest(terms: frozenset[str], pieces: Sequence[Piece], lexicon: Lexicon) -> Piece | None:
    best = max(pieces, key=lambda piece: lexicon.weight(piece.content & terms), default=None)
    return best if best and best.content & terms else None
