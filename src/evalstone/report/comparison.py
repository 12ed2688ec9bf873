"""A comparison of runs on a terminal, in Markdown and in CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.csv import csv_rows
from evalstone.report.markdown import literal, literal_cell, prose, table
from evalstone.report.terminal import safe
from evalstone.results.compare import CORRECTION_NAMES, Comparison, ScorerComparison

SIGNS = {"better": "▲ better", "worse": "▼ worse", "inconclusive": "unclear"}
STYLES = {"better": "green", "worse": "red", "inconclusive": "dim"}
HEADER = ("A", "B", "difference", "95 % interval", "p", "win/tie/loss", "effect")


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign; no sign for what rounds to zero."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def p_told(p_value: float) -> str:
    """A p-value for people."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def digits_of(line: ScorerComparison) -> int:
    """How many digits a scorer's values are shown with."""
    return 3 if line.info.scale <= 1 else 2


def spread(line: ScorerComparison) -> str:
    """The interval of the difference."""
    found, digits = line.result.difference, digits_of(line)
    return (
        "-"
        if found.low is None or found.high is None
        else f"{signed(found.low, digits)} to {signed(found.high, digits)}"
    )


def cells(line: ScorerComparison) -> tuple[str, ...]:
    """The numbers of a line, in the order of the header."""
    result, digits = line.result, digits_of(line)
    return (
        f"{result.mean_a:.{digits}f}",
        f"{result.mean_b:.{digits}f}",
        signed(result.difference.mean, digits),
        spread(line),
        p_told(line.adjusted_p_value),
        f"{result.wins}/{result.ties}/{result.losses}",
        "-" if result.dz is None else signed(result.dz, 2),
    )


def notes(compared: Comparison) -> Iterator[str]:
    """What a reader must know: how the runs differ, how p-values are adjusted, what is missing or few."""
    yield from (f"{text}." for text in compared.notes)
    way = CORRECTION_NAMES[compared.correction]
    moved = [line for line in compared.scorers if line.result.ties < line.result.n]
    tests = dict.fromkeys(line.result.test.name for line in moved or compared.scorers)
    yield (
        f"Differences are those of each run from A, paired by sample; p by {' or '.join(tests)}, adjusted by {way}; "
        f"comparisons: {len(compared.scorers)}. Effect: mean difference in standard deviations of the differences."
    )
    yield from (f"{line.title}, {line.a} and {line.b}: {other_tests(line)}, not adjusted." for line in moved)
    for title, found in compared.all_runs.items():
        if found.friedman is not None:
            told = f"{found.friedman.name} p {p_told(found.friedman.p_value)}"
            yield f"{title}: over all {len(compared.runs)} runs and {found.n} samples, {told}."
    for line in compared.scorers:
        if line.unpaired:
            left = f"samples with a score in one run only are left out: {line.unpaired}"
            yield f"{line.title}, {line.a} and {line.b}: {left}."
        if line.result.caution:
            yield f"{line.title}, {line.a} and {line.b}: {line.result.caution}."


def other_tests(line: ScorerComparison) -> str:
    """What Wilcoxon's test says of the same differences, and McNemar's where samples pass or fail."""
    ranks, changed = line.result.wilcoxon, line.result.mcnemar
    told = f"{ranks.name} p {p_told(ranks.p_value)}"
    if changed is None:
        return told
    return f"{told}, McNemar p {p_told(changed.p_value)} ({changed.gained} gained, {changed.lost} lost)"


def run_lines(compared: Comparison) -> Iterator[tuple[str, str]]:
    """The name of each run and what it is."""
    for letter, run in compared.runs.items():
        called = compared.names.get(letter, "")
        told = f"{run.dataset_name}, {run.samples} samples, judged by {run.judge}, run {run.id}"
        yield letter, f"{called}: {told}" if called and called != run.id else told


def pairs(compared: Comparison) -> Iterator[tuple[str, Sequence[ScorerComparison]]]:
    """The lines of each pair of runs, under the name of the second."""
    for name in list(compared.runs)[1:]:
        yield name, [line for line in compared.scorers if line.b == name]


def show_comparison(compared: Comparison, console: Console, *, most: int = 3) -> None:
    """Print a comparison. most: how many of the most changed samples are shown for each scorer."""
    for name, told in run_lines(compared):
        console.print(Text.assemble((name, "bold"), f"  {safe(told)}"))
    for name, lines in pairs(compared):
        console.print(Text(f"\n{name} against A", style="bold"))
        console.print(_table(lines, name))
        sliced = [line for line in compared.slices if line.b == name]
        if sliced:
            console.print(Text("\nBy slice", style="bold"))
            console.print(_table(sliced, name))
    console.print()
    for told in notes(compared):
        console.print(Text(safe(told, 600), style="dim"))
    _show_changes(compared, console, most)


def _table(lines: Sequence[ScorerComparison], name: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    made.add_column("scorer")
    if any(line.field for line in lines):
        made.add_column("slice")
        made.add_column("n", justify="right")
    for title in HEADER:
        made.add_column(title.replace("B", name) if title == "B" else title, justify="right", no_wrap=True)
    made.add_column(f"{name} is")
    for line in lines:
        place = (Text(safe(f"{line.field}={line.key}", 60)), str(line.result.n)) if line.field else ()
        made.add_row(Text(line.title), *place, *cells(line), Text(SIGNS[line.verdict], style=STYLES[line.verdict]))
    return made


def _show_changes(compared: Comparison, console: Console, most: int) -> None:
    for line in compared.scorers:
        if line.changes and most:
            console.print(Text(f"\nMost changed: {line.title}, {line.a} to {line.b}", style="bold"))
        for change in line.changes[:most]:
            told = f"  {change.a:.3g} to {change.b:.3g}"
            console.print(Text.assemble((safe(change.sample, 80), "cyan"), told))


def comparison_markdown(compared: Comparison, *, most: int = 3) -> Iterator[str]:
    """A comparison as lines of Markdown. most: how many of the most changed samples are shown for each scorer."""
    yield "### Comparison"
    yield ""
    yield from (f"- **{name}** {prose(told)}" for name, told in run_lines(compared))
    for name, lines in pairs(compared):
        yield ""
        yield from table(("scorer", *(name if h == "B" else h for h in HEADER), f"{name} is"), map(_row, lines))
        sliced = [line for line in compared.slices if line.b == name]
        if sliced:
            yield from ("", "<details><summary>By slice</summary>", "")
            header = ("scorer", "slice", "n", *(name if h == "B" else h for h in HEADER), f"{name} is")
            yield from table(header, map(_row, sliced), left=2)
            yield from ("", "</details>")
    yield ""
    yield from (f"- {prose(told)}" for told in notes(compared))
    changed = [line for line in compared.scorers if line.changes[:most]]
    if changed:
        yield from ("", "<details><summary>Most changed</summary>", "")
    for line in changed:
        yield f"- {prose(line.title)}, {line.a} to {line.b}"
        yield from (f"  - {literal(c.sample, 80)} {c.a:.3g} to {c.b:.3g}" for c in line.changes[:most])
    if changed:
        yield from ("", "</details>")


def _row(line: ScorerComparison) -> Sequence[str]:
    place = (literal_cell(f"{line.field}={line.key}", 60), str(line.result.n)) if line.field else ()
    return (prose(line.title), *place, *cells(line), SIGNS[line.verdict])


CSV_HEADER = (
    "scorer", "a", "b", "field", "slice", "n", "mean a", "mean b", "difference", "low", "high", "p", "adjusted p",
    "dz", "wins", "ties", "losses", "sign", "signature", "wilcoxon p", "mcnemar p",
)  # fmt: skip


def comparison_csv(compared: Comparison) -> Iterator[str]:
    """A comparison as lines of CSV: one row a scorer, pair of runs and slice."""
    return csv_rows(CSV_HEADER, map(_csv_row, (*compared.scorers, *compared.slices)))


def _csv_row(line: ScorerComparison) -> Sequence[str | float | int | None]:
    result = line.result
    difference = result.difference
    return (
        line.title, line.a, line.b, line.field, line.key, result.n, result.mean_a, result.mean_b, difference.mean,
        difference.low, difference.high, result.p_value, line.adjusted_p_value, result.dz, result.wins, result.ties,
        result.losses, line.verdict, line.info.signature, result.wilcoxon.p_value,
        None if result.mcnemar is None else result.mcnemar.p_value,
    )  # fmt: skip
