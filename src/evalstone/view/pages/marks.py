"""What the marks in lists show: means with their intervals, means over time, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone._core.display import digits_for, number
from evalstone.report.view import Tone, tone_of
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.samples import score_text
from evalstone.types import StoredScorer
from evalstone.view.indexing.tables import FAILED, SCORED


@dataclass(frozen=True)
class Change:
    """How a mean differs from that of the baseline."""

    text: str
    tone: Tone
    label: str


@dataclass(frozen=True)
class MeanCell:
    """A scorer's mean in a list of runs; low and high are None without an interval."""

    text: str
    spread: str = ""
    label: str = ""
    mean: float = 0.0
    low: float | None = None
    high: float | None = None
    missing: tuple[tuple[str, Tone, str], ...] = ()
    """The numbers of results without a score, each with its tone and where they are listed."""
    change: Change | None = None
    """The difference from the baseline; None if it isn't known, or this is the baseline."""


@dataclass(frozen=True)
class Trend:
    """The means of a scorer over runs, oldest first, on the whole scale: points from 0 (left, low) to 100."""

    label: str
    means: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float, float], ...]
    """The place of each mean that has an interval, and the ends of the interval."""

    def points(self, wide: float) -> str:
        """The means as the points of a line in a plot that is so wide, and 24 high."""
        return " ".join(f"{x * wide / 100:.1f},{24 - y * 0.24:.1f}" for x, y in self.means)

    def ranges(self, wide: float) -> str:
        """The intervals as a path in the same plot."""
        return "".join(
            f"M{x * wide / 100:.1f} {24 - low * 0.24:.1f}V{24 - high * 0.24:.1f}" for x, low, high in self.intervals
        )


def trend_of(scorers: Sequence[StoredScorer], of: str) -> Trend | None:
    """The means of a scorer over runs, oldest first; None for fewer than two. of: what they are the means of."""
    known = [(scorer, scorer.mean) for scorer in scorers if scorer.mean is not None]
    if len(known) < 2:
        return None
    points = [(100 * at / (len(known) - 1), scorer, mean) for at, (scorer, mean) in enumerate(known)]
    first, last = (number(mean, digits_for(scorer.scale)) for _, scorer, mean in (points[0], points[-1]))
    return Trend(
        f"{of}: first {first}, last {last}",
        tuple((x, 100 * mean / scorer.scale) for x, scorer, mean in points),
        tuple(
            (x, 100 * ends[0] / scorer.scale, 100 * ends[1] / scorer.scale)
            for x, scorer, _ in points
            if (ends := scorer.interval) is not None
        ),
    )


@dataclass(frozen=True)
class ScoreCell:
    """A score in a list of samples. start, width: those of its bar, in percent; the bar grows from the worse end."""

    text: str
    tone: Tone
    start: float | None = None
    width: float = 0.0


def score_cell(value: float | None, outcome: int | None, info: ScorerInfo) -> ScoreCell:
    """The cell of a score; a missing one never looks like a 0."""
    if outcome is None:
        return ScoreCell("", "dim")
    if value is None or outcome != SCORED:
        return ScoreCell("failed", "bad") if outcome == FAILED else ScoreCell("skipped", "dim")
    width = 100 * value / info.scale
    return ScoreCell(
        score_text(value, info.scale),
        tone_of(info.goodness(value)),
        100 - width if info.lower_is_better else 0.0,
        width,
    )
