"""A comparison of runs as text: a table with one row per scorer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import (
    aligned,
    count,
    digits_for,
    limits,
    listed,
    number,
    p_value,
    sentence,
    signed,
    visible,
)
from evalstone._core.terms import term
from evalstone.results.run import sample_notes

if TYPE_CHECKING:
    from evalstone.results.compare import Comparison, ComparisonVerdict, ScorerComparison
    from evalstone.results.run import OfScorer
    from evalstone.stats.comparison import Comparison as PairedComparison
    from evalstone.stats.unpaired import UnpairedComparison

VERDICTS: Mapping[ComparisonVerdict, str] = {
    "better": "▲ better",
    "worse": "▼ worse",
    "equivalent": "= equivalent",
    "inconclusive": "no significant difference",
}


def comparison_text(comparison: Comparison) -> str:
    """The runs, a table for each run compared with the baseline, and the notes."""
    lines = [
        f"{letter}: {comparison.names.get(letter) or run.id}: {run.title}" for letter, run in comparison.runs.items()
    ]
    for name in [*comparison.runs][1:]:
        lines += ["", *aligned(list(_rows(comparison, name)), words=("scorer", "slice", "verdict"), drop_empty=True)]
    corrected = f"p is {comparison.correction_text}"
    paired = any(_paired(line.result) is not None for line in comparison.scorers)
    how = "Differences are paired by sample" if paired or not comparison.scorers else "Runs are compared as independent"
    notes = [sentence(note) for note in comparison.notes]
    for line in comparison.scorers:
        title = line.title if len(comparison.runs) == 2 else f"{line.title}, {line.a} and {line.b}"
        notes += [f"{title}: {text}" for text in about_samples(line)]
    notes += ranks_text(comparison)
    return visible("\n".join([*lines, "", f"{how}: each run minus A; {corrected}.", *notes]))


def _rows(comparison: Comparison, name: str) -> Iterator[Sequence[str]]:
    level = f"{100 * comparison.confidence:g}% CI"
    yield "scorer", "slice", "n", "A", name, "difference", level, "p", "win/tie/loss", "verdict"
    for line in (*comparison.scorers, *comparison.slices):
        if line.b == name:
            where = f"{line.field}={line.key}" if line.field else ""
            p, verdict = p_value(line.adjusted_p_value), VERDICTS[line.verdict]
            yield line.title, where, sizes(line.result), *difference(line, line.result), p, wins(line), verdict


def sizes(result: PairedComparison | UnpairedComparison) -> str:
    """The number of pairs; for unpaired runs, the number of samples of each."""
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    return f"{result.n:,}, {result.n_b:,}" if isinstance(result, UnpairedComparison) else f"{result.n:,}"


def difference(line: OfScorer, result: PairedComparison | UnpairedComparison) -> tuple[str, str, str, str]:
    """Both means, their difference and its interval."""
    digits, interval = digits_for(line.info.scale), result.difference
    means = number(result.mean_a, digits), number(result.mean_b, digits)
    return *means, signed(interval.mean, digits), limits(interval.low, interval.high, digits, sign=True)


def about_samples(line: ScorerComparison) -> Iterator[str]:
    """Sentences on the samples of a comparison: those that are left out, clusters, weights, and cautions."""
    yield from (f"{text}." for text in sample_notes(line.result.difference))
    if line.unpaired:
        yield left_out(line.unpaired, "sample")
    if line.result.missing:
        open_changes = f"the missing scores of {count(line.result.missing, 'sample')} are"
        leaving = f"{term('missing', 'ignore')} leaves them out, as if they were missing at random"
        yield f"p and the interval hold whatever {open_changes}; {leaving}."
    paired = _paired(line.result)
    if paired is not None:
        yield from _about_declared(line, paired)
    if line.result.caution and line.verdict != "equivalent":
        yield f"{line.result.caution}."
    elif line.detectable is not None:
        found = f"{line.detectable:.2g} or more"
        yield f"a true difference of {found} would have been found with a probability of 80%."


def _about_declared(line: ScorerComparison, result: PairedComparison) -> Iterator[str]:
    """The declared largest change, and the test of equivalence within the margin."""
    if result.max_change is not None:
        yield f"p and the interval hold if no sample's score can change by more than {result.max_change:g}."
    if line.adjusted_equivalence is not None and result.margin is not None:
        shown = "equivalent: the means" if line.verdict == "equivalent" else "not shown to"
        p = p_value(line.adjusted_equivalence)
        tests = f"p {p if p.startswith('<') else f'= {p}'}, two one-sided tests"
        yield f"{shown} differ by less than {result.margin:g} ({tests})."


def ranks_text(comparison: Comparison) -> Iterator[str]:
    """With three runs or more, the ranks of each that the differences between all of them leave possible."""
    for title, result in comparison.all_runs.items():
        ranks = (
            f"{name} {best}" if best == worst else f"{name} {best} to {worst}"
            for name, (best, worst) in result.ranks.items()
        )
        yield f"{title}, possible ranks by all pairs of runs ({count(result.n, 'sample')}): {listed(ranks)}."


def left_out(unpaired: int, noun: str) -> str:
    """How many samples were scored in one run only."""
    return f"{count(unpaired, noun)} with a score in only one run {'is' if unpaired == 1 else 'are'} left out."


def wins(line: ScorerComparison) -> str:
    """Wins/ties/losses: the number of samples in which the other run is better, equal and worse."""
    result = _paired(line.result)
    return "-" if result is None else f"{result.wins}/{result.ties}/{result.losses}"


def _paired(result: PairedComparison | UnpairedComparison) -> PairedComparison | None:
    from evalstone.stats.comparison import Comparison  # noqa: PLC0415 - numpy

    return result if isinstance(result, Comparison) else None
