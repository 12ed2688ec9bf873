"""Shared by the checks: scoring the full scale or 0, and comparing an answer with one text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from evalstone.scorers.sources import TextSource
from evalstone.scorers.text import CodeScorer
from evalstone.types import Score, Skipped


class Check(CodeScorer, ABC):
    """A scorer in code that gives the full scale if a condition holds, else 0."""

    interpretation = ((1.0, "the check passes"), (0.0, "the check fails"))
    advice = "Read the answers, or the tool calls, of the samples that fail."

    def passed(self, holds: bool, reason: str) -> Score:
        """Return the score of a condition, with the reason."""
        return Score(self.scale if holds else 0.0, reason)


class TextCheck(Check, TextSource, ABC):
    """A check of the answer against one text: the same for all samples, or each sample's reference.

    A blank answer is checked like any other.

    Attributes:
        expected: The text for all samples; by default each sample's reference.
        ignore_case: Ignore case.
    """

    required_fields = ("output", "reference")
    constant: ClassVar[str] = "expected"
    """The parameter with the text for all samples."""
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"reference": (constant,)}
    reads_blank = ("output",)

    @abstractmethod
    def check(self, output: str, expected: str) -> Score | Skipped:
        """Return the score of an answer against the expected text."""

    def score(self, *, output: str, reference: str | None = None) -> Score | Skipped:
        present = self.present({"output": output, "reference": reference})
        if not isinstance(present, dict):
            return present
        expected: str | None = getattr(self, self.constant)
        return self.check(output, present["reference"] if expected is None else expected)
