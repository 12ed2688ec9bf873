"""What is said of the parts of traces that are in no sample."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalstone._core.display import excerpt


@dataclass
class Notes:
    """What is to be said of traces, such as parts that are in no sample: how many for each reason, and the first
    example."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, reason: str, trace: str, example: str = "") -> None:
        """Count one more."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        parts = (f"in trace {excerpt(trace)}" if trace else "", example)
        self.examples.setdefault(reason, ", ".join(filter(None, parts)))

    def lines(self) -> tuple[str, ...]:
        """One line for each reason."""
        examples = {reason: f"; first {example}" if example else "" for reason, example in self.examples.items()}
        return tuple(f"{count} × {reason}{examples[reason]}" for reason, count in self.counts.items())
