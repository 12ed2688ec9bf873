from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import ClassVar, Literal

from evalstone._core.display import count
from evalstone.errors import ConfigError
from evalstone.scorers.definitions import COMMA, OURS, DefinedText, Definition
from evalstone.scorers.text import WHITE, CodeScorer, CompareTo
from evalstone.types import Score, Skipped

NEGATORS = frozenset(
    ("cant", "can't", "dont", "don't", "doesnt", "doesn't", "not", "non", "wont", "won't", "isnt", "isn't")
)

_SIGNS = re.compile(r'[\n.,/#!?$%^&*;:{}=_`"~()]')
_GAP = re.compile(f"[{WHITE}]{{2,}}")
_SENTENCE = re.compile("[^.!?]+[.!?]+")


@functools.cache
def weights() -> Mapping[str, int]:
    """The weights by word or emoji."""
    return json.loads(files("evalstone.scorers.text").joinpath("data/sentiment_labels.json").read_text("utf-8"))


def toned_words(text: str) -> list[str]:
    """The words of a text as they are written in the weights; an empty text has one empty word."""
    return _GAP.sub(" ", _SIGNS.sub(" ", text.lower())).strip(WHITE).split(" ")


def tone(text: str) -> float:
    """The mean weight of a text's words."""
    all_words, known, total, before = toned_words(text), weights(), 0, ""
    for word in all_words:
        if weight := known.get(word):
            total += -weight if before in NEGATORS else weight
        before = word
    return total / len(all_words)


def sentence_tones(text: str) -> list[float]:
    """The tones of a text's sentences; at least one."""
    # After the last terminator, the pattern would scan to the end from every character: quadratic time.
    end = max(map(text.rfind, ".!?")) + 1
    return [tone(sentence) for sentence in _SENTENCE.findall(text[:end]) or [text]]


def evenness(tones: Sequence[float]) -> float:
    """max(0, 1 - variance of the tones), for at least one tone."""
    mean = sum(tones) / len(tones)
    return max(0.0, 1.0 - sum((value - mean) ** 2 for value in tones) / len(tones))


class ToneConsistency(DefinedText, CodeScorer):
    """How consistent the answer's tone is, or how close it is to the tone of another text.

        tone             = sum of the weights of a text's words / its words          (weights from -5 to 5)
        tone consistency = max(0, 1 - variance of the tones of the answer's sentences)
                      or = max(0, 1 - |tone of the answer - tone of a reference|)
        range [0, scale], higher is better

    The weights are those of AFINN-165 and of emojis. After `not`, `don't` and the like, a word's weight changes its
    sign; a word without a weight counts as 0. A text without weighted words is neutral. A sentence ends with . ! or ?,
    and text after the last of them is left out, unless there is none. Only English words are supported. Undefined when
    the answer, or the text that it is compared with, is blank; other definitions treat a blank text as neutral. No
    judge call. Source: Nielsen 2011 (AFINN), Kralj Novak et al. 2015 (emojis); @mastra/evals counts the same way.

    Attributes:
        reference_tone: A text to compare the answer's tone with.
        compare_to: Compare with the tone of the sample's "input" or "reference" instead.
    """

    name = "tone_consistency"
    version = 2
    interpretation = (
        (0.9, "the tone is even"),
        (0.7, "the tone shifts in places"),
        (0.4, "the tone shifts strongly"),
        (0.0, "the tone reverses"),
    )
    advice = "The weights are for single English words: irony, quotations and other languages are not recognized."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("by the sentences of the answer, or by the text that it is compared with"),
        "mastra": Definition("the same, over all messages; a blank answer is neutral", blank=("output",), sides=COMMA),
        "mastra_0_13": Definition(
            "1 - |tone of the answer - tone of the input|; for an empty answer, the evenness of the input",
            blank=("input", "output"),
        ),
    }
    definition: Literal["evalstone", "mastra", "mastra_0_13"] = OURS

    reference_tone: str = ""
    compare_to: CompareTo | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_tone and self.compare_to:
            raise ConfigError(f"{self.name}: give reference_tone or compare_to, not both")
        if self._by_input and (self.reference_tone or self.compare_to):
            raise ConfigError(f"{self.name}: {self.definition} compares with the input, not with another text")
        if self.compare_to or self._by_input:
            object.__setattr__(self, "required_fields", (self.compare_to or "input", "output"))

    @property
    def _by_input(self) -> bool:
        return self.definition == "mastra_0_13"

    def score(self, *, output: str, input: str | None = None, reference: str | None = None) -> Score | Skipped:
        present = self.present({"input": input, "output": output, "reference": reference})
        if not isinstance(present, dict):
            return present
        other = self.reference_tone or None
        if self.compare_to is not None or self._by_input:
            other = present[self.compare_to or "input"]
            if not output:
                output, other = other, None
        if other is None:
            tones = sentence_tones(output)
            reason = f"{count(len(tones), 'sentence')} with tones from {min(tones):.3g} to {max(tones):.3g}."
            return Score(evenness(tones) * self.scale, reason, evidence=tuple(tones))
        own, expected = tone(output), tone(other)
        reason = f"The answer's tone is {own:.3g}, the reference's {expected:.3g}."
        return Score(max(0.0, 1.0 - abs(own - expected)) * self.scale, reason, evidence=(own, expected))
