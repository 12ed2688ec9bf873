"""What of a configuration has no counterpart, and where it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evalstone._core.display import count

SHOWN = 20
"""The most places that are listed for one gap."""


@dataclass
class Gaps:
    """What isn't converted, or is converted to something else, with the reason and the places."""

    places: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def add(self, what: str, why: str, place: str) -> None:
        """Note a gap at a place. The same at several places is one gap."""
        at = self.places.setdefault((what, why), [])
        if place not in at[-1:]:
            at.append(place)

    def __len__(self) -> int:
        return len(self.places)

    def lines(self) -> Iterator[str]:
        """A line for each gap."""
        for (what, why), places in self.places.items():
            number = f" ({count(len(places), 'place')})" if len(places) > 1 else ""
            yield f"{what}: {why}{number}"

    def markdown(self, file: str) -> str:
        """A page with all gaps and their places."""
        parts = [f"# What of {file} has no counterpart\n"]
        for (what, why), places in self.places.items():
            shown = [f"- {place}" for place in places[:SHOWN]]
            more = [f"- and {len(places) - SHOWN:,} more"] * (len(places) > SHOWN)
            parts.append("\n".join([f"## {what}\n", f"{why}\n", *shown, *more, ""]))
        return "\n".join(parts)
