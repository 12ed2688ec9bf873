"""Position: the same passages, and the same options of a question, in another order."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from evalstone.judge_quality.perturbations.base import Edit, as_it_is, on_context
from evalstone.scorers import LLMClassifier, Scorer
from evalstone.types import Sample

_OPTION = re.compile(r"^\s*(?:\(?[A-Ja-j1-9][).:]|[-*•])\s+\S")


def backwards(passages: Sequence[str], _: random.Random) -> Sequence[str]:
    """The last passage first."""
    return passages[::-1]


def shuffled(passages: Sequence[str], chance: random.Random) -> Sequence[str]:
    """In an order of chance, another one than they have where there is one."""
    if len(set(passages)) < 2:
        return passages
    mixed = list(passages)
    while mixed == list(passages):
        chance.shuffle(mixed)
    return mixed


def first_last(passages: Sequence[str], _: random.Random) -> Sequence[str]:
    """The first passage behind all others."""
    return [*passages[1:], passages[0]]


def options_backwards(sample: Sample) -> Sample | None:
    """The options of a question in reverse order, each with its letter; None without two lines in a row that are some.

    An option is a line that begins with A), (b), 1. or a bullet.
    """
    if sample.input is None:
        return None
    lines = sample.input.split("\n")
    runs = [(begin, end) for begin, end in _options(lines) if end - begin > 1]
    if not runs:
        return None
    begin, end = runs[0]
    turned = [*lines[:begin], *lines[begin:end][::-1], *lines[end:]]
    return None if turned == lines else replace(sample, input="\n".join(turned))


def _options(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where lines in a row that are options begin and end."""
    at = 0
    for is_option, run in groupby(lines, key=lambda line: _OPTION.match(line) is not None):
        end = at + len(list(run))
        if is_option:
            yield at, end
        at = end


def choices_backwards(scorer: Scorer) -> Scorer | None:
    """The same scorer, whose judge is given its choices in reverse order; None for one without choices of its own."""
    if not isinstance(scorer, LLMClassifier):
        return None
    return replace(scorer, choices=dict(list(scorer.choices.items())[::-1]))


POSITION = (
    Edit("passages_reversed", "position", "where a passage stands, not what it says", on_context(backwards)),
    Edit("passages_shuffled", "position", "where a passage stands, not what it says", on_context(shuffled)),
    Edit(
        "first_passage_last",
        "position",
        "what stands first, where search puts the best passage",
        on_context(first_last),
    ),
    Edit("options_reversed", "options", "the order of the options in the question", options_backwards),
    Edit(
        "choices_reversed", "options", "the order of the choices that it is given", as_it_is, rescore=choices_backwards
    ),
)
