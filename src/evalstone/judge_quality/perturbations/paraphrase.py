"""Paraphrase by rules that change no fact: contractions, and sentences put into a subordinate clause."""

from __future__ import annotations

import re
from dataclasses import replace

from evalstone._core.text import sentences
from evalstone.judge_quality.perturbations.base import Edit, on_output
from evalstone.types import Sample

_VERBS = "is|are|was|were|do|does|did|has|have|had|would|should|could"
_APART = re.compile(rf"\b({_VERBS}) not\b", re.IGNORECASE)
_TOGETHER = re.compile(rf"\b({_VERBS})n['’]t\b", re.IGNORECASE)
_ODD = (("will not", "won't"), ("cannot", "can't"))
# Words that are written small in the middle of a sentence.
_SMALL = re.compile(
    r"(?:the|an?|this|that|these|those|there|it|they|he|she|we|you|its|their|his|her|in|on|at|for|to|from|by|with|some|"
    r"many|most|all|both|each|if|when|while|after|before|because|as)\b",
    re.IGNORECASE,
)
LEAD = "It is the case that "


def contracted(text: str) -> str:
    """`do not` as `don't`, and the like."""
    for apart, together in _ODD:
        text = _swapped(text, apart, together)
    return _APART.sub(lambda found: f"{found[1]}n't", text)


def expanded(text: str) -> str:
    """`don't` as `do not`, and the like."""
    for apart, together in _ODD:
        text = _swapped(text.replace(together.replace("'", "’"), together), together, apart)
    return _TOGETHER.sub(lambda found: f"{found[1]} not", text)


def _swapped(text: str, old: str, new: str) -> str:
    """One form for another, also where it begins a sentence."""
    text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return re.sub(rf"\b{re.escape(old.capitalize())}\b", new.capitalize(), text)


def restructured(text: str) -> str:
    """Each sentence that ends in a full stop as a subordinate clause: `It is the case that …`."""
    changed: list[str] = []
    rest = text
    for sentence in sentences(text):
        before, found, behind = rest.partition(sentence)
        if found:
            changed += [before, _as_clause(sentence)]
            rest = behind
    return "".join([*changed, rest])


def _as_clause(sentence: str) -> str:
    if not sentence.endswith(".") or sentence.startswith(LEAD) or not sentence[0].isalpha():
        return sentence
    return LEAD + (sentence[0].lower() + sentence[1:] if _SMALL.match(sentence) else sentence)


def given(column: str) -> Edit:
    """The edit that puts a paraphrase of yours, from a column of the data, in the place of the output."""

    def apply(sample: Sample) -> Sample | None:
        text = sample.metadata.get(column)
        if not isinstance(text, str) or not text.strip() or text == sample.output:
            return None
        return replace(sample, output=text)

    return Edit(f"given_{column}", "paraphrase", "other words for the same, as you gave them", apply)


_WHY = "the wording: it says the same"
PARAPHRASE = (
    Edit("contracted", "paraphrase", _WHY, on_output(contracted)),
    Edit("expanded", "paraphrase", _WHY, on_output(expanded)),
    Edit("restructured", "paraphrase", _WHY, on_output(restructured)),
)
