"""Retrieval against relevance judgments (qrels): how many of the relevant documents were found, and how early.

The sample's metadata has `retrieved`, the ids in rank order, and `relevant`, the ids that are relevant or a grade for
each. If a target answers, `retrieved` is in its metadata or state. No judge is asked; `context_precision` and
`context_recall` ask one where there are no such judgments.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from evalstone._core.declarations import Range
from evalstone._core.guards import is_mapping, is_number, is_sequence
from evalstone._core.literals import written_list
from evalstone.errors import DataError, OutcomeError, invalid
from evalstone.scorers.reasons import shortened
from evalstone.scorers.text import CodeScorer
from evalstone.types import Sample, Score, Skipped

Gain: TypeAlias = Literal["linear", "exponential"]

RERANK_OR_RETRIEVE = "If recall_at_k is high, rerank. If it is low too, retrieve more of the relevant documents first."
"""The advice on measures of ranks."""

MOST_IDS = 20
"""The most ids of missing documents in the evidence."""


@dataclass(frozen=True)
class Ranking:
    """The retrieved documents against the relevant ones.

    gains: the grade at each rank; 0 for a document that is not relevant, or is a duplicate of a higher rank. grades:
    the grades of all relevant documents, highest first. missing: the ids of relevant documents that were not retrieved,
    at most 20.
    """

    gains: tuple[float, ...]
    grades: tuple[float, ...]
    missing: tuple[str, ...]

    @property
    def hits(self) -> tuple[bool, ...]:
        """Whether the document at each rank is relevant."""
        return tuple(gain > 0 for gain in self.gains)


def ranking(retrieved: object, relevant: object, min_grade: float) -> Ranking:
    """The ranking of retrieved documents by their judgments. Raises OutcomeError for malformed data."""
    ids = _ranked(_read("retrieved", retrieved))
    judged = _grades(_read("relevant", relevant))
    grades = {key: grade for key, grade in judged.items() if grade > 0 and grade >= min_grade}
    missing, gains = dict(grades), list[float]()
    for key in ids:
        gains.append(missing.pop(key, 0.0))
    return Ranking(tuple(gains), tuple(sorted(grades.values(), reverse=True)), tuple(missing)[:MOST_IDS])


def _read(name: str, value: object) -> object:
    """The list or object that a text writes out, as in a cell of a CSV file; any other value unchanged."""
    try:
        return written_list(value) if isinstance(value, str) else value
    except DataError as error:
        raise OutcomeError(f"{name} ", error) from None


def _ranked(retrieved: object) -> list[str]:
    """The ids by rank. With scores, the highest score comes first; among equal scores, the greatest id."""
    if is_mapping(retrieved):
        scores = {_id("retrieved", key): value for key, value in _entries(retrieved)}
        for key, score in scores.items():
            if not is_number(score):
                raise OutcomeError("retrieved: ", invalid(f"the score of {key!r}", "a number", score, _shown(score)))
        return sorted(scores, key=lambda key: (scores[key], key), reverse=True)
    return [_id("retrieved", key) for key in _listed("retrieved", retrieved)]


def _grades(relevant: object) -> dict[str, float]:
    if not is_mapping(relevant):
        return {_id("relevant", key): 1.0 for key in _listed("relevant", relevant)}
    grades: dict[str, float] = {}
    for key, grade in _entries(relevant):
        if not is_number(grade):
            raise OutcomeError("relevant: ", invalid(f"the grade of {_shown(key)}", "a number", grade, _shown(grade)))
        grades[_id("relevant", key)] = float(grade)
    return grades


def _entries(numbers: Mapping[object, object]) -> list[tuple[object, object]]:
    """The numbers by id. A null is no number: tables give all objects in a column the same keys, and fill them up."""
    return [(key, value) for key, value in numbers.items() if value is not None]


def _listed(name: str, value: object) -> Sequence[object]:
    if not is_sequence(value):
        raise OutcomeError(invalid(name, "a list of ids, or numbers by id", value, _shown(value)))
    return value


def _id(name: str, value: object) -> str:
    """An id as text, like the keys of JSON objects: 7 and "7" are the same document."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise OutcomeError(f"{name}: ", invalid("an id", "text or a whole number", value, _shown(value)))
    return str(value)


def _shown(value: object) -> str:
    return shortened(repr(value), 40)


class RetrievalScorer(CodeScorer, ABC):
    """A measure of a ranked list against relevance judgments.

    The sample's metadata has `retrieved`, a list of ids from rank 1 on, or a score for each id; and `relevant`, a list
    of ids, or a grade for each. Either may be text in JSON or Python, as in a CSV file. If a target answered,
    `retrieved` is read from its metadata or its state, since the dataset's comes from another system. Among equal
    scores, the greater id comes first, as in trec_eval. A document that is retrieved twice keeps both ranks but counts
    only at the first. Ids are compared as text.

    Attributes:
        min_grade: The lowest grade that counts as relevant; grades of 0 or less never do.
    """

    required_fields = ("metadata.retrieved", "metadata.relevant")
    case_metadata = ("relevant",)

    min_grade: Annotated[float, Range(0)] = 0.0

    @abstractmethod
    def measure(self, ranking: Ranking) -> float:
        """Return the measure in [0, 1], for at least one relevant document."""

    def _required(self, values: Mapping[str, Any], sample: Sample | None) -> Iterable[str]:
        names = super()._required(values, sample)
        answered = is_mapping(values["metadata"].get("target"))  # `score` reads what the target retrieved
        return [name for name in names if name != "metadata.retrieved"] if answered else names

    def score(self, *, metadata: Mapping[str, Any], state: Any = None) -> Score | Skipped:
        target, relevant = metadata.get("target"), metadata.get("relevant")
        answered = is_mapping(target)
        own = not answered or "retrieved" in target.get("metadata", ())
        source: Mapping[str, Any] = metadata if own else state if is_mapping(state) else {}
        retrieved = source.get("retrieved")
        if answered and retrieved is None:
            return Skipped(f"{self.name} needs retrieved in the metadata or the state of the target's answer")
        if absent := [f"metadata.{n}" for n, v in (("retrieved", retrieved), ("relevant", relevant)) if v is None]:
            return Skipped(self.needs_text(absent))
        try:
            result = ranking(retrieved, relevant, self.min_grade)
        except OutcomeError as error:
            raise OutcomeError(f"{self.name}: ", error) from None
        if not result.grades:
            return Skipped("no document is relevant")
        ranks = [rank for rank, hit in enumerate(result.hits, start=1) if hit]
        where = f" at rank {', '.join(map(str, ranks[:8]))}{', …' * (len(ranks) > 8)}" if ranks else ""
        reason = f"{len(ranks)} of {len(result.grades)} relevant documents among {len(result.gains)} retrieved{where}."
        return Score(min(1.0, self.measure(result)) * self.scale, reason, evidence=result)


class CutRetrievalScorer(RetrievalScorer, ABC):
    """A measure of the first k ranks.

    Attributes:
        k: How many ranks count; None counts all.
    """

    k: Annotated[int | None, Range(1)] = 10

    def __post_init__(self) -> None:
        super().__post_init__()


class PrecisionAtK(CutRetrievalScorer):
    """The share of the first k documents that are relevant.

        precision at k = relevant documents among the first k / k          range [0, scale], higher is better

    If fewer than k documents are retrieved, the missing ones count as not relevant; k=None divides by the number of
    retrieved documents. 0 when nothing is retrieved. Undefined without `retrieved` and `relevant` in the metadata, and
    when no document is relevant. No judge call. Source: trec_eval (P), ir_measures (P@k).
    """

    name = "precision_at_k"
    interpretation = (
        (0.8, "most of the retrieved documents are relevant"),
        (0.5, "about half of them are relevant"),
        (0.2, "many of them are not relevant"),
        (0.0, "hardly any of them is relevant"),
    )
    advice = "It can't exceed relevant documents / k. Lower k, rerank, or combine retrieval methods."

    def measure(self, ranking: Ranking) -> float:
        hits = ranking.hits[: self.k]
        return sum(hits) / (self.k or len(hits)) if hits else 0.0


class RecallAtK(CutRetrievalScorer):
    """The share of the relevant documents that are among the first k.

        recall at k = relevant documents among the first k / relevant documents          range [0, scale]

    Higher is better. 0 when nothing is retrieved. Undefined without `retrieved` and `relevant` in the metadata, and
    when no document is relevant. No judge call. Source: trec_eval (recall), ir_measures (R@k).
    """

    name = "recall_at_k"
    interpretation = (
        (0.9, "nearly all relevant documents are found"),
        (0.6, "some of them are missing"),
        (0.3, "most of them are missing"),
        (0.0, "hardly any of them is found"),
    )
    advice = "Read the missing ids: smaller chunks, another embedding model or adding keyword search may find them."

    def measure(self, ranking: Ranking) -> float:
        return sum(ranking.hits[: self.k]) / len(ranking.grades)


class HitRateAtK(CutRetrievalScorer):
    """Whether a relevant document is among the first k.

        hit rate at k = 1 if one of the first k documents is relevant, else 0          range [0, scale]

    Higher is better; the mean over samples is the hit rate. Undefined without `retrieved` and `relevant` in the
    metadata, and when no document is relevant. No judge call. Source: trec_eval (success), ir_measures (Success@k).
    """

    name = "hit_rate_at_k"
    interpretation = ((1.0, "a relevant document is found"), (0.0, "no relevant document is found"))
    advice = "Read the samples without a hit: the question may use different words from the documents."

    def measure(self, ranking: Ranking) -> float:
        return float(any(ranking.hits[: self.k]))


class NdcgAtK(CutRetrievalScorer):
    """Normalized discounted cumulative gain: how early the documents with high grades come.

        dcg       = Σ over ranks 1 to k of gain / log2(rank + 1)
        ndcg at k = dcg / dcg of the best ranking          range [0, scale], higher is better

    The gain is the grade, or with gain="exponential" 2^grade - 1; 1 for the ids of a list. 0 when nothing is retrieved.
    Undefined without `retrieved` and `relevant` in the metadata, and when no document is relevant. No judge call.
    Source: Järvelin and Kekäläinen 2002; Burges et al. 2005 (exponential). trec_eval and ir_measures (nDCG@k) are
    linear.

    Attributes:
        gain: What a grade is worth: "linear" or "exponential".
    """

    name = "ndcg_at_k"
    interpretation = (
        (0.8, "the best documents come first"),
        (0.5, "some of them come late, or are missing"),
        (0.2, "most of them come late, or are missing"),
        (0.0, "hardly any relevant document is found"),
    )
    advice = RERANK_OR_RETRIEVE

    gain: Gain = "linear"

    def measure(self, ranking: Ranking) -> float:
        best = self._dcg(ranking.grades, ranking.grades[0])
        return self._dcg(ranking.gains, ranking.grades[0]) / best

    def _dcg(self, grades: Sequence[float], highest: float) -> float:
        """The DCG up to a constant factor, which keeps powers from overflowing."""
        terms = (self._gain(g, highest) / math.log2(n + 1) for n, g in enumerate(grades[: self.k], start=1) if g > 0)
        return math.fsum(terms)

    def _gain(self, grade: float, highest: float) -> float:
        if self.gain == "linear":
            return grade / highest
        return 2.0 ** (grade - highest) - 2.0**-highest


class ReciprocalRank(CutRetrievalScorer):
    """Reciprocal rank: how early the first relevant document comes. Its mean over samples is the MRR.

        reciprocal rank = 1 / rank of the first relevant document; 0 if none is retrieved          range [0, scale]

    Higher is better. Undefined without `retrieved` and `relevant` in the metadata, and when no document is relevant. No
    judge call. Source: Voorhees 1999; trec_eval (recip_rank), ir_measures (RR).
    """

    name = "reciprocal_rank"
    interpretation = (
        (0.9, "the first relevant document is at rank 1"),
        (0.5, "it is at rank 2"),
        (0.2, "it is at rank 3 to 5"),
        (0.0, "it comes late, or is missing"),
    )
    advice = "It considers only the first relevant document; see recall_at_k for the others."

    k: Annotated[int | None, Range(1)] = None

    def measure(self, ranking: Ranking) -> float:
        hits = ranking.hits[: self.k]
        return 1 / (hits.index(True) + 1) if True in hits else 0.0


class AveragePrecision(CutRetrievalScorer):
    """Average precision: how early all relevant documents come. Its mean over samples is the MAP.

        average precision = Σ over ranks of relevant documents of (relevant up to that rank / rank)
            / relevant documents          range [0, scale], higher is better

    A relevant document that is missing adds 0. `context_precision` knows only the retrieved passages, and divides by
    the number of relevant ones among them. Undefined without `retrieved` and `relevant` in the metadata, and when no
    document is relevant. No judge call. Source: trec_eval (map, map_cut), ir_measures (AP).
    """

    name = "average_precision"
    interpretation = (
        (0.8, "the relevant documents come first"),
        (0.5, "some of them come late, or are missing"),
        (0.2, "most of them come late, or are missing"),
        (0.0, "hardly any relevant document is found"),
    )
    advice = RERANK_OR_RETRIEVE

    k: Annotated[int | None, Range(1)] = None

    def measure(self, ranking: Ranking) -> float:
        ranks = [rank for rank, hit in enumerate(ranking.hits[: self.k], start=1) if hit]
        return math.fsum(n / rank for n, rank in enumerate(ranks, start=1)) / len(ranking.grades)


class RPrecision(RetrievalScorer):
    """The share of relevant documents among the first R, where R is the number of relevant documents.

        r precision = relevant documents among the first R / R          range [0, scale], higher is better

    Undefined without `retrieved` and `relevant` in the metadata, and when no document is relevant. No judge call.
    Source: trec_eval (Rprec), ir_measures (Rprec).
    """

    name = "r_precision"
    interpretation = (
        (0.8, "the relevant documents come first"),
        (0.5, "about half of them come first"),
        (0.2, "most of them come late, or are missing"),
        (0.0, "hardly any relevant document is found"),
    )
    advice = RERANK_OR_RETRIEVE

    def measure(self, ranking: Ranking) -> float:
        count = len(ranking.grades)
        return sum(ranking.hits[:count]) / count
