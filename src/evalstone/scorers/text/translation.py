"""BLEU, chrF and TER: the machine translation metrics, computed by sacrebleu."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from evalstone._core.declarations import Range
from evalstone.errors import MissingDependency
from evalstone.scorers.text import ReferenceScorer, check_lengths
from evalstone.types import Score

Tokenize: TypeAlias = Literal["13a", "intl", "zh", "char", "none"]
Smooth: TypeAlias = Literal["exp", "floor", "add-k", "none"]

MOST_WORDS = 40_000
"""The highest product of the lengths of two texts for TER."""


@dataclass(frozen=True)
class SacrebleuScore:
    """sacrebleu's score, on its own scale of 100, and its signature, which says how it was computed."""

    score: float
    signature: str


class SacrebleuScorer(ReferenceScorer, ABC):
    """A sacrebleu metric for one sentence and one reference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _sacrebleu()

    @abstractmethod
    def metric(self) -> tuple[str, dict[str, Any]]:
        """The class in sacrebleu's metrics, and its parameters."""

    def compare(self, reference: str, output: str) -> Score:
        name, parameters = self.metric()
        metric = _metric(name, tuple(parameters.items()))
        result = SacrebleuScore(metric.sentence_score(output, [reference]).score, str(metric.get_signature()))
        # A perfect BLEU exceeds 100 by a rounding error, and TER may exceed it by far.
        share = min(max(result.score / 100, 0.0), 1.0)
        reason = f"{name} {result.score:.4g}, as sacrebleu counts ({result.signature})."
        return Score(share * self.scale, reason, evidence=result)


@functools.cache
def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency("sacrebleu", "metrics") from None
    return metrics


@functools.lru_cache(maxsize=64)
def _metric(name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    return getattr(_sacrebleu(), name)(**dict(parameters))


class Bleu(SacrebleuScorer):
    """Sentence BLEU: the n-gram precision of the answer against the reference.

        bleu = brevity penalty · geometric mean of the precisions of 1 to 4 words          range [0, scale]

    Higher is better. The brevity penalty is exp(1 - reference words / answer words) if the answer is shorter, else 1.
    n-gram orders longer than the answer are left out (effective order). The score is sacrebleu's number / 100; the
    evidence has that number and sacrebleu's signature. BLEU is a weak measure of single sentences, and its mean over
    sentences is not corpus BLEU, which sums counts. 0 for a blank answer. Undefined when the reference is blank.
    Requires the extra `metrics`. No judge call. Source: Papineni et al. 2002; Post 2018 (sacrebleu).

    Attributes:
        lowercase: Compare in lower case.
        tokenize: sacrebleu's tokenizer: "13a", "intl" (Unicode punctuation), "zh" (Chinese), "char" or "none".
            Tokenizers that need a download or another library are not supported.
        smooth: How to smooth a precision of 0: "exp", "floor", "add-k" or "none", which makes the score 0.
    """

    name = "bleu"
    interpretation = (
        (0.6, "nearly the wording of the reference"),
        (0.3, "many phrases in common"),
        (0.1, "some words in common"),
        (0.0, "different words; the meaning may be the same"),
    )
    advice = "It compares words and phrases, not meaning. Use f1_tokens for short answers, chrf for other languages."

    lowercase: bool = False
    tokenize: Tokenize = "13a"
    smooth: Smooth = "exp"

    def metric(self) -> tuple[str, dict[str, Any]]:
        options = {"lowercase": self.lowercase, "tokenize": self.tokenize, "smooth_method": self.smooth}
        return "BLEU", {**options, "effective_order": True}


class Chrf(SacrebleuScorer):
    """Sentence chrF: how many character n-grams the answer and the reference have in common.

        chrf = (1 + beta²) · precision · recall / (beta² · precision + recall)
        range [0, scale], higher is better

    Precision and recall are means over sequences of 1 to 6 characters, without white space, and with `word_order` also
    over words. It needs no tokenizer, so it works for any language. The score is sacrebleu's number / 100; the evidence
    has both the number and sacrebleu's signature. 0 for a blank answer. Undefined when the reference is blank. Requires
    the extra `metrics`. No judge call. Source: Popović 2015, 2017; Post 2018 (sacrebleu).

    Attributes:
        lowercase: Compare in lower case.
        word_order: The longest sequence of words; 2 is chrF++, 0 leaves words out.
        beta: The weight of recall against precision.
    """

    name = "chrf"
    interpretation = (
        (0.8, "nearly the wording of the reference"),
        (0.5, "mostly the same words"),
        (0.3, "typical of unrelated texts in the same language"),
        (0.0, "different texts"),
    )
    advice = "It compares letters, not meaning: a good paraphrase scores low."

    lowercase: bool = False
    word_order: Annotated[int, Range(0, 10)] = 0
    beta: Annotated[int, Range(1, 100)] = 2

    def metric(self) -> tuple[str, dict[str, Any]]:
        return "CHRF", {"lowercase": self.lowercase, "word_order": self.word_order, "beta": self.beta}


class Ter(SacrebleuScorer):
    """Sentence TER (translation edit rate): how many edits turn the answer into the reference.

        ter = min(1, (insertions + deletions + replacements + shifts of phrases) / words of the reference)

    Range [0, scale], lower is better. Words are separated by spaces and include punctuation. The rate of a long wrong
    answer is above 1; the score is then 1, and the evidence has sacrebleu's number, on a scale of 100, with its
    signature. 1 for a blank answer. Failed if the product of both numbers of words exceeds 40,000 (two texts of 200
    words), because searching the shifts takes seconds. Undefined when the reference is blank. Requires the extra
    `metrics`. No judge call. Source: Snover et al. 2006; Post 2018 (sacrebleu).

    Attributes:
        case_sensitive: Distinguish upper from lower case.
        normalized: Split punctuation from the words first.
        no_punct: Leave punctuation out.
    """

    name = "ter"
    lower_is_better = True
    interpretation = (
        (0.7, "almost nothing can be kept"),
        (0.4, "about half must be changed"),
        (0.1, "some words must be changed"),
        (0.0, "hardly anything must be changed"),
    )
    advice = "It compares words, not meaning: a good paraphrase scores high."

    case_sensitive: bool = False
    normalized: bool = False
    no_punct: bool = False

    def compare(self, reference: str, output: str) -> Score:
        check_lengths(reference.split(), output.split(), MOST_WORDS, "words")
        return super().compare(reference, output)

    def metric(self) -> tuple[str, dict[str, Any]]:
        names = ("case_sensitive", "normalized", "no_punct")
        return "TER", {name: getattr(self, name) for name in names}
