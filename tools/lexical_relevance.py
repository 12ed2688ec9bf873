"""Curves for relevance: texts of a question against texts of the other question that they share most words with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lexical_data import Numbers
from lexical_fit import Flags, balanced, fold_of, logistic_fit

from evalstone._core.text import words
from evalstone.judges.lexical import answers, relevance
from evalstone.judges.lexical.features import read
from evalstone.judges.lexical.normalization import parts
from evalstone.judges.lexical.passages import prepared
from evalstone.judges.lexical.tokens import Lexicon, content, stems_of

# The questions of mtRAG lean on turns before them: passages cannot be found by their words.
ASKED = ("ragtruth_qa",)
ANSWERED = ("ragtruth_qa", "mtrag_human")


class Pair(NamedTuple):
    """A question beside a text of its own or of another question, measured."""

    data_set: str
    group: str
    own: bool
    measures: tuple[float, ...]


def stems(text: str) -> frozenset[str]:
    """The content stems of a text, as statements are read: numbers as they are written."""
    return content(stems_of(words(text)))


def passage_pairs(data: Mapping[str, Sequence[Mapping[str, Any]]], lexicon: Lexicon) -> Iterator[Pair]:
    """Each passage beside its question, and beside the question of another source that it has most of."""

    def measure(asked: frozenset[str], passage: str) -> tuple[float, ...]:
        return relevance.measures(asked, prepared((passage,), lexicon).pieces, lexicon)

    for name in ASKED:
        texts = {(row["group"], row["query"], part): None for row in data[name] for part in parts(row["context"])}
        yield from _pairs(name, list(texts), lexicon, measure)


def statement_pairs(data: Mapping[str, Sequence[Mapping[str, Any]]], lexicon: Lexicon) -> Iterator[Pair]:
    """Each statement of an answer beside its question, and beside another source's that the answer has most of."""
    for name in ANSWERED:
        for row in data[name]:
            together = stems(row["response"])
            other = _nearest(row["group"], together, _questions(data[name]), lexicon)
            for own, asked in ((True, stems(row["query"])), (False, other)):
                for statement in answers.list_statements(row["response"]):
                    found = answers.measures(asked, stems(statement), together, lexicon)
                    yield Pair(name, str(row["group"]), own, found)


def _pairs(
    name: str,
    texts: Sequence[tuple[Any, str, str]],
    lexicon: Lexicon,
    measure: Callable[[frozenset[str], str], tuple[float, ...]],
) -> Iterator[Pair]:
    questions = [
        (group, read(query).content) for group, query in dict.fromkeys((group, query) for group, query, _ in texts)
    ]
    for group, query, text in texts:
        other = _nearest(group, read(text).content, questions, lexicon)
        yield Pair(name, str(group), True, measure(read(query).content, text))
        yield Pair(name, str(group), False, measure(other, text))


def _questions(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, frozenset[str]]]:
    return [(group, stems(query)) for group, query in dict.fromkeys((row["group"], row["query"]) for row in rows)]


def _nearest(
    group: Any, have: frozenset[str], questions: Sequence[tuple[Any, frozenset[str]]], lexicon: Lexicon
) -> frozenset[str]:
    """The question of another source that some words have most of, by weight."""
    others = [asked for source, asked in questions if source != group and asked]
    return max(others, key=lambda asked: (lexicon.weight(asked & have), sorted(asked)))


def curve(pairs: Sequence[Pair]) -> tuple[Numbers, float, Numbers]:
    """The curve on all pairs, and the probability of each by a curve on other sources."""
    measures = np.array([pair.measures for pair in pairs], dtype=float)
    own = np.array([pair.own for pair in pairs])
    sets = np.array([pair.data_set for pair in pairs])
    folds = np.array([fold_of(pair.group) for pair in pairs])

    def fitted(within: Flags) -> tuple[Numbers, float]:
        signs = [True] * measures.shape[1]
        return logistic_fit(measures, own, balanced(sets, own, within), ridge=0.001, signs=signs)

    found = np.zeros(len(pairs))
    for fold in sorted(set(folds.tolist())):
        slopes, offset = fitted(folds != fold)
        there = folds == fold
        found[there] = 1 / (1 + np.exp(-(measures[there] @ slopes + offset)))
    return *fitted(np.ones(len(pairs), dtype=bool)), found
