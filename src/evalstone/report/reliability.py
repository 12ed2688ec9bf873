"""The reliability diagram: what share of people say yes where the judge gives so much, as text and as a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence

from evalstone.stats.calibration import Bin

COLUMNS = 41
SIZE, EDGE = 380, 58

_STYLE = (
    "text{font:12px sans-serif;fill:#222}.axis{stroke:#888}.even{stroke:#888;stroke-dasharray:4 4}"
    ".spread{stroke:#2457a8;stroke-width:2;opacity:.5}.share{fill:#2457a8}"
)


def reliability_lines(bins: Sequence[Bin]) -> list[str]:
    """The diagram as lines of ASCII, one a bin: `o` the share of yes, `-` its interval, `|` the mean of the bin, where
    `o` would be if the scores were calibrated; `*` is both."""
    scale = (
        "0".ljust(COLUMNS // 4) + "0.25".ljust(COLUMNS // 4) + "0.5".ljust(COLUMNS // 4) + "0.75".ljust(COLUMNS // 4)
    )
    width = max([4, *(len(str(one.n)) for one in bins)])
    lines = [f"{'score':<12} {'n':>{width}}   {scale}1"]
    for one in bins:
        marks = [" "] * COLUMNS
        if one.interval is not None and one.interval.low is not None and one.interval.high is not None:
            for place in range(_column(one.interval.low), _column(one.interval.high) + 1):
                marks[place] = "-"
        marks[_column(one.probability)] = "|"
        marks[_column(one.share)] = "*" if _column(one.share) == _column(one.probability) else "o"
        lines.append(f"{one.low:.2f} to {one.high:.2f} {one.n:>{width}}   {''.join(marks).rstrip()}")
    return lines


def _column(share: float) -> int:
    return round(share * (COLUMNS - 1))


def reliability_svg(bins: Sequence[Bin], title: str) -> str:
    """The diagram as an SVG document: a point a bin, its area by the number of samples, with its interval.

    The diagonal is where calibrated scores lie. title: any text; it is escaped. Nothing in it is a script or a link.
    """
    most = max((one.n for one in bins), default=1)
    parts = [_line("even", 0, 0, 1, 1), _line("axis", 0, 0, 1, 0), _line("axis", 0, 0, 0, 1)]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<text x="{_x(tick):.1f}" y="{SIZE - EDGE + 16}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{EDGE - 6}" y="{_y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for one in bins:
        x, told = one.probability, f"{one.n} samples: mean score {one.probability:.3f}, share of yes {one.share:.3f}"
        if one.interval is not None and one.interval.low is not None and one.interval.high is not None:
            parts.append(_line("spread", x, one.interval.low, x, one.interval.high))
        radius = 2.5 + 5.5 * (one.n / most) ** 0.5
        circle = f'<circle class="share" cx="{_x(x):.1f}" cy="{_y(one.share):.1f}" r="{radius:.1f}">'
        parts.append(f"{circle}<title>{told}</title></circle>")
    parts.append(f'<text x="{SIZE / 2}" y="{SIZE - 8}" text-anchor="middle">score of the judge</text>')
    turned = f'transform="rotate(-90 12 {SIZE / 2})"'
    parts.append(f'<text x="12" y="{SIZE / 2}" text-anchor="middle" {turned}>share of yes among people</text>')
    told = html.escape("".join(character if character.isprintable() else "?" for character in title))
    parts.append(f'<text x="{SIZE / 2}" y="20" text-anchor="middle">{told}</text>')
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{told}" viewBox="0 0 {SIZE} {SIZE}" '
    ground = f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>'
    return f'{opening}width="{SIZE}" height="{SIZE}"><style>{_STYLE}</style>{ground}{"".join(parts)}</svg>\n'


def _line(kind: str, x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<line class="{kind}" x1="{_x(x0):.1f}" y1="{_y(y0):.1f}" x2="{_x(x1):.1f}" y2="{_y(y1):.1f}"/>'


def _x(share: float) -> float:
    return EDGE + (SIZE - 2 * EDGE) * share


def _y(share: float) -> float:
    return SIZE - EDGE - (SIZE - 2 * EDGE) * share
