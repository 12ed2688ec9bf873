"""The notes of the readers of samples, counted by reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from evalstone._core.display import excerpt
from evalstone.types import Message, Sample


@dataclass
class Notes:
    """Notes of readers, such as on records that are in no sample: how many for each reason, and the first example.

    of: what the notes are on; it is in the examples.
    """

    of: Literal["trace", "sample"] = "trace"
    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, reason: str, id: str, example: str = "") -> None:
        """Count one more. id: that of the trace or the sample; "" if it has none."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        parts = (f"in {self.of} {excerpt(id)}" if id else "", example)
        self.examples.setdefault(reason, ", ".join(filter(None, parts)))

    def add_messages(self, messages: Iterable[Message], id: str) -> None:
        """Count the notes on messages (`Message.notes`), each under its reason."""
        for message in messages:
            for note in message.notes:
                reason, _, example = note.partition(": ")
                self.add(reason, id, example)

    def add_samples(self, samples: Iterable[Sample]) -> None:
        """Count the notes on the messages of samples."""
        for sample in samples:
            self.add_messages(sample.messages, sample.id)

    def merge(self, later: Notes) -> None:
        """Add the notes on later samples."""
        for reason, times in later.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + times
            self.examples.setdefault(reason, later.examples[reason])

    def lines(self) -> tuple[str, ...]:
        """One line for each reason."""
        examples = {reason: f"; first {example}" if example else "" for reason, example in self.examples.items()}
        return tuple(f"{count} × {reason}{examples[reason]}" for reason, count in self.counts.items())
