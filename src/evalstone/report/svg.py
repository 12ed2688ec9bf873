"""Small pictures as SVG text: an interval on its scale, a histogram, a difference beside zero.

They hold numbers only, take their colours from the page's style sheet by class, and say in words what they show.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalstone.report.page import escaped

WIDTH, HEIGHT, EDGE = 240, 34, 8
HISTOGRAM_HEIGHT = 56
BINS = 20


def interval_plot(
    mean: float,
    low: float | None,
    high: float | None,
    *,
    scale: float,
    title: str,
    bounds: tuple[float, float] | None = None,
) -> str:
    """A mean and its interval on the scale from 0 to `scale`; bounds: between which it lies whatever is missing."""

    def x(value: float) -> str:
        return f"{EDGE + (WIDTH - 2 * EDGE) * value / scale:.1f}"

    parts = [_axis(0.0, scale, HEIGHT - 14), _ticks([(x(scale * n / 4), "") for n in range(5)], HEIGHT - 14)]
    if bounds is not None:
        ends = "".join(f"M{x(end)} 7V15" for end in bounds)
        parts.append(f'<path class="bounds" d="M{x(bounds[0])} 11H{x(bounds[1])}{ends}"/>')
    if low is not None and high is not None:
        parts.append(f'<line class="spread" x1="{x(low)}" x2="{x(high)}" y1="11" y2="11"/>')
    parts.append(f'<circle class="mean" cx="{x(mean)}" cy="11" r="4.5"/>')
    return _svg(parts, WIDTH, HEIGHT, title, "interval")


def histogram(values: Sequence[float], *, scale: float, title: str) -> str:
    """How many values fall into each of twenty equal parts of [0, scale]; the number stands beside the tallest bar."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(BINS * value / scale))] += 1
    top, base = max(counts, default=0), HISTOGRAM_HEIGHT - 14
    width = (WIDTH - 2 * EDGE) / BINS
    parts: list[str] = []
    for number, count in enumerate(counts):
        if count:
            tall = max(1.5, (base - 4) * count / top)
            left = EDGE + number * width
            parts.append(
                f'<rect class="bin" x="{left + 0.7:.1f}" y="{base - tall:.1f}" width="{width - 1.4:.1f}" '
                f'height="{tall:.1f}" rx="1"><title>{_bin(number, scale)}: {count}</title></rect>'
            )
    if top:
        place = counts.index(top)
        middle = EDGE + (place + 0.5) * width
        end = ' class="tick most"' if place >= BINS // 2 else ' class="tick"'
        parts.append(f'<text{end} x="{middle + (width if place < BINS // 2 else -width):.1f}" y="10">{top:,}</text>')
    return _svg([*parts, _axis(0.0, scale, base)], WIDTH, HISTOGRAM_HEIGHT, title, "histogram")


def _bin(number: int, scale: float) -> str:
    closing = "]" if number == BINS - 1 else ")"
    return f"[{scale * number / BINS:.3g}, {scale * (number + 1) / BINS:.3g}{closing}"


def difference_plot(
    difference: float, low: float | None, high: float | None, *, reach: float, title: str, sign: str = "unclear"
) -> str:
    """A difference and its interval on an axis from -reach to reach, with zero in the middle.

    sign: "better", "worse" or "unclear"; the colour, and the shape of the mark, follow it.
    """
    middle = WIDTH / 2

    def x(value: float) -> str:
        return f"{middle + (middle - EDGE) * max(-1.0, min(1.0, value / reach)):.1f}"

    parts = [_axis(-reach, reach, HEIGHT - 14), f'<line class="zero" x1="{middle}" x2="{middle}" y1="0" y2="22"/>']
    if low is not None and high is not None:
        parts.append(f'<line class="spread {sign}" x1="{x(low)}" x2="{x(high)}" y1="11" y2="11"/>')
    parts.append(_mark(float(x(difference)), sign))
    return _svg(parts, WIDTH, HEIGHT, title, "difference")


def _mark(x: float, sign: str) -> str:
    """A triangle up for better, down for worse, a circle for neither: not by colour alone."""
    if sign == "better":
        return f'<path class="mean better" d="M{x - 5:.1f} 16 L{x + 5:.1f} 16 L{x:.1f} 6 Z"/>'
    if sign == "worse":
        return f'<path class="mean worse" d="M{x - 5:.1f} 6 L{x + 5:.1f} 6 L{x:.1f} 16 Z"/>'
    return f'<circle class="mean unclear" cx="{x:.1f}" cy="11" r="4.5"/>'


def _axis(low: float, high: float, y: int) -> str:
    line = f'<line class="axis" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{y}" y2="{y}"/>'
    left = f'<text class="tick" x="{EDGE}" y="{y + 12}">{low:.3g}</text>'
    right = f'<text class="tick" x="{WIDTH - EDGE}" y="{y + 12}" text-anchor="end">{high:.3g}</text>'
    return line + left + right


def _ticks(marks: Sequence[tuple[str, str]], y: int) -> str:
    return "".join(f'<line class="axis" x1="{x}" x2="{x}" y1="{y - 2}" y2="{y + 2}"/>' for x, _ in marks)


def _svg(parts: Sequence[str], width: int, height: int, title: str, kind: str) -> str:
    told = escaped(title)
    opening = f'<svg class="{kind}" role="img" aria-label="{told}" viewBox="0 0 {width} {height}" '
    return f'{opening}width="{width}" height="{height}"><title>{told}</title>{"".join(parts)}</svg>'
