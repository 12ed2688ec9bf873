"""What aligning a judge chose: a wording, worked examples, and a mapping of probabilities."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from evalstone._core.guards import is_texts
from evalstone._core.json import content_hash
from evalstone._core.text import estimated_tokens
from evalstone.errors import DataError, invalid
from evalstone.types.samples import Sample


def material_hash(inputs: Mapping[str, object]) -> str:
    """A hash of what a question is about: its inputs by name, whatever their white space and case."""
    texts = {
        name: [" ".join(str(text).split()).casefold() for text in ((value,) if isinstance(value, str) else value)]
        for name, value in inputs.items()
        if isinstance(value, str) or is_texts(value)
    }
    return content_hash(texts)


def sample_hash(sample: Sample) -> str:
    """A hash of what a sample says, by which a label that was used is recognized: 16 hexadecimal digits."""
    return content_hash([sample.input, sample.output, sample.context, sample.reference])[:16]


@dataclass(frozen=True, kw_only=True)
class WorkedExample:
    """A labeled sample that is shown to the judge.

    Raises:
        DataError: An input is neither a text nor a list of texts.
    """

    inputs: Mapping[str, str | Sequence[str]]
    """The inputs of its question: texts, or lists of texts."""
    label: str
    """The right label, as it is in the reply."""

    def __post_init__(self) -> None:
        for name, value in cast("Mapping[str, object]", self.inputs).items():
            if not isinstance(value, str) and not is_texts(value):
                raise DataError(invalid(f"inputs.{name}", "a text or a list of texts", value))
        inputs = {name: value if isinstance(value, str) else tuple(value) for name, value in self.inputs.items()}
        object.__setattr__(self, "inputs", inputs)

    @functools.cached_property
    def hash(self) -> str:
        """The hash of its material, by which a sample is recognized."""
        return material_hash(self.inputs)


@dataclass(frozen=True, kw_only=True)
class AlignedQuestion:
    """How one kind of question is asked, and how its answers are read.

        f(p) = 1 / (1 + exp(-(logit(p) - logit(threshold)) / temperature))

    p is the probability of the `positive` labels. The label is one of these if f(p) is at least 0.5, so if p is at
    least the threshold. With `corners`, f is the piecewise linear function through them instead.

    Raises:
        DataError: A threshold or temperature is out of range, or the corners are no rising function.
    """

    kind: str
    """The kind of question."""
    prompt: str
    """The hash of the prompt that it is asked with otherwise."""
    wording: str | None = None
    """The instructions that replace those of the prompt; None for its own."""
    examples: tuple[WorkedExample, ...] = ()
    """What the judge is shown, in this order."""
    positive: tuple[str, ...] = ()
    """The labels whose probability is mapped; empty for no mapping."""
    threshold: float = 0.5
    """The probability from which the label is positive, above 0 and below 1."""
    temperature: float = 1.0
    """How much too certain the probabilities are; below 1 if they are too uncertain."""
    corners: tuple[tuple[float, float], ...] = ()
    """Pairs of probability and mapped probability; empty for a mapping by threshold and temperature."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise DataError(invalid("threshold", "above 0 and below 1", self.threshold))
        if not 0 < self.temperature < math.inf:
            raise DataError(invalid("temperature", "above 0", self.temperature))
        rising = all(a < c and b <= d for (a, b), (c, d) in zip(self.corners, self.corners[1:], strict=False))
        if not rising or not all(0 <= x <= 1 for corner in self.corners for x in corner):
            raise DataError(invalid("corners", "rising pairs of numbers from 0 to 1", list(self.corners)))

    @property
    def example_tokens(self) -> int:
        """The estimated tokens of the examples."""
        return sum(
            estimated_tokens(text)
            for example in self.examples
            for value in example.inputs.values()
            for text in ((value,) if isinstance(value, str) else value)
        )

    @property
    def maps(self) -> bool:
        """Whether it changes probabilities."""
        return bool(self.positive) and (self.threshold != 0.5 or self.temperature != 1 or bool(self.corners))
