"""Failure modes: how often people found each, with intervals, and a mode as a scorer and a dataset.

A mode is counted over the reviewed samples, which are those that have a label, a note or a mode. Its share of all
samples is estimated from those that were chosen at random, weighted by strata like a corrected mean.
"""

from __future__ import annotations

import functools
import json
import keyword
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstone._core.json import storable
from evalstone.datasets.stored import sample_row
from evalstone.scorers.custom import PLACEHOLDERS
from evalstone.stats.intervals import proportion_interval

if TYPE_CHECKING:
    from evalstone.judge_quality.labeling import Sheet
    from evalstone.ledger.labels import Label, Mode, ModeLabel
    from evalstone.stats.intervals import Interval
    from evalstone.types import Sample

LONGEST_IDENTIFIER = 50
_BRACES = re.compile(r"\{(?=\{)")
_FIELD = re.compile(rf"\{{\s*({'|'.join(PLACEHOLDERS)})\s*\}}")


@dataclass(frozen=True)
class ModeCount:
    """How often a mode was found."""

    mode: Mode
    keys: Collection[str]
    """The samples that have it."""
    reviewed: int
    share: Interval | None
    """Its share of all samples that have a score; None with fewer than three random choices."""
    slices: Mapping[str, tuple[int, int, Interval | None]]
    """By value of an entry of the metadata: samples with the mode, reviewed samples, and the share among those."""


def reviewed_keys(labels: Iterable[Label], assigned: Iterable[ModeLabel]) -> list[str]:
    """The samples that somebody has looked at, in the order in which that was."""
    return [*dict.fromkeys(each.key for each in sorted((*labels, *assigned), key=lambda each: each.written))]


def count_modes(
    modes: Sequence[Mode],
    labels: Sequence[Label],
    assigned: Sequence[ModeLabel],
    sheet: Sheet | None,
    values: Mapping[str, str],
) -> list[ModeCount]:
    """The modes, those that were found most often first.

    Args:
        modes: The modes.
        labels: The labels of the run, of all scorers.
        assigned: The samples that have a mode.
        sheet: The scores by whose strata samples were chosen; None for no shares.
        values: By key of a reviewed sample, its value of an entry of the metadata.
    """
    reviewed = reviewed_keys(labels, assigned)
    signature = "" if sheet is None else sheet.info.signature
    at_random = {label.key for label in labels if label.signature == signature and label.chosen != "hand"}
    counts: list[ModeCount] = []
    for mode in modes:
        keys = {each.key for each in assigned if each.mode == mode.id}
        slices: dict[str, tuple[int, int, Interval | None]] = {}
        for value in sorted(set(values.values())):
            inside = [key for key in reviewed if values.get(key) == value]
            has = sum(key in keys for key in inside)
            slices[value] = has, len(inside), proportion_interval(has, len(inside))
        share = None if sheet is None else _share(sheet, keys, at_random)
        counts.append(ModeCount(mode, keys, len(reviewed), share, slices))
    return sorted(counts, key=lambda each: -len(each.keys))


def _share(sheet: Sheet, keys: Collection[str], at_random: Collection[str]) -> Interval | None:
    """The share of the samples with these keys, from those that were chosen at random."""
    has = sheet.placed({key: float(key in keys) for key in at_random})
    return sheet.judged.mean_of_labels(has, scale=1.0)


def identifier(name: str) -> str:
    """The name of a mode as one of Python, of a scorer, and of a file, which hides no module that evalstone needs."""
    text = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST_IDENTIFIER].strip("_")
    if not text or not text[0].isalpha() or keyword.iskeyword(text) or text in _modules():
        text = f"mode_{text}".rstrip("_")
    return text


@functools.cache
def _modules() -> frozenset[str]:
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - rarely needed

    try:
        needed = requires("evalstone") or []
    except PackageNotFoundError:
        needed = []
    names = (re.sub(r"[^\w.-].*", "", each).replace("-", "_").lower() for each in needed)
    return frozenset((*sys.stdlib_module_names, "evalstone", *names))


def scorer_source(mode: Mode, samples: Sequence[Sample]) -> str:
    """A Python file with a scorer that asks a judge whether a sample has the mode. samples: those that have it."""
    name = identifier(mode.name)
    plain = [_without_fields(" ".join(text.split())) for text in (mode.name, mode.definition)]
    question = f"Does the answer have this failure: {plain[0]}?" + f" {plain[1]}" * bool(plain[1])
    fields = ["input", *(["context"] if samples and all(sample.context for sample in samples) else []), "output"]
    return f'''"""A failure mode as a scorer: 1 for an answer that has it.

evalstone run DATA --scorer {name}.py:{name} --judge JUDGE
evalstone calibrate --labels {name}.jsonl --label has_{name} --scorer {name}.py:{name} --judge JUDGE
"""

from evalstone import LLMClassifier

{name} = LLMClassifier(
    {question!r},
    name={name!r},
    fields={fields!r},
    choices={{"yes": 1.0, "no": 0.0}},
    lower_is_better=True,
)
'''


def _without_fields(text: str) -> str:
    """A text that nothing is filled into: a question to a judge has the fields of samples in braces."""
    return _FIELD.sub(r"{'\1'}", _BRACES.sub("{ ", text))


def dataset_lines(mode: Mode, keys: Collection[str], samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of a dataset of reviewed samples, each with whether it has the mode. keys: the samples that have it."""
    column = f"has_{identifier(mode.name)}"
    for sample in samples:
        row = sample_row(replace(sample, id=sample.key, trial=None))
        yield json.dumps({**row, column: "yes" if storable(sample.key) in keys else "no"}) + "\n"
