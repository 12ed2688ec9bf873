"""A comparison of runs as text: a table with one row per scorer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import (
    aligned,
    by_text,
    count,
    digits_for,
    limits,
    listed,
    number,
    p_value,
    sentence,
    signed,
    tests_used,
    visible,
)
from evalstone._core.terms import term
from evalstone.results.human_labels import judged_only
from evalstone.results.run import sample_notes

if TYPE_CHECKING:
    from evalstone.results.compare import Comparison, ComparisonVerdict, ScorerComparison
    from evalstone.results.human_labels import CorrectedDifference
    from evalstone.results.of_scorer import OfScorer
    from evalstone.stats.comparison import Comparison as PairedComparison
    from evalstone.stats.ppi import PPIEstimate
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
    lines += map(sentence, comparison.warnings)
    for name in [*comparison.runs][1:]:
        lines += ["", *aligned(list(_rows(comparison, name)), words=("scorer", "slice", "verdict"), drop_empty=True)]
        if people := [line for line in comparison.corrected if line.b == name]:
            header = people_header(people)
            words = "scorer", "labeled", "verdict"
            lines += ["", *aligned([header, *map(people_cells, people)], words=words)]
    notes = [*comparison_notes(comparison), *([slices_text(comparison)] if comparison.slices else [])]
    return visible("\n".join([*lines, "", *notes]))


def _rows(comparison: Comparison, name: str) -> Iterator[Sequence[str]]:
    level = f"{100 * comparison.confidence:g}% CI"
    yield "scorer", "slice", "n", "A", name, "difference", level, "p", "win/tie/loss", "verdict"
    for line in (*comparison.scorers, *comparison.slices):
        if line.b == name:
            where = f"{line.field}={line.key}" if line.field else ""
            p, verdict = p_value(line.adjusted_p_value), VERDICTS[line.verdict]
            yield line.title, where, sizes(line.result), *difference(line, line.result), p, wins(line), verdict


def people_header(lines: Sequence[CorrectedDifference]) -> tuple[str, ...]:
    """The columns of `people_cells`."""
    return "scorer", "judge only", "corrected", f"{100 * lines[0].confidence:g}% CI", "p", "labeled", "verdict"


def people_cells(line: CorrectedDifference) -> tuple[str, ...]:
    """The difference according to human labels, next to that of the judge's scores."""
    result, digits = line.result, digits_for(line.info.scale)
    raw, estimate = result.raw, result.estimate
    return (
        line.title,
        "-" if raw is None else signed(raw.mean, digits),
        "-" if estimate is None else signed(estimate.mean, digits),
        "-" if estimate is None else limits(estimate.low, estimate.high, digits, sign=True),
        "-" if line.adjusted_p_value is None else p_value(line.adjusted_p_value),
        f"{result.labeled:,} of {result.n:,}",
        VERDICTS[line.verdict] if estimate is not None else "too few labels",
    )


def comparison_notes(comparison: Comparison) -> Iterator[str]:
    """How p-values are computed, what else differs between the runs, and what is missing or small."""
    paired = [(line, result) for line in comparison.scorers if (result := _paired(line.result)) is not None]
    changed = [line for line, result in paired if result.ties < result.n]
    tests: dict[str, dict[str, None]] = {}
    for line in changed or comparison.scorers:
        tests.setdefault(line.result.test.name, {})[line.title] = None
    p = f"{tests_used(tests)}; {comparison.correction_text}"
    if paired or not comparison.scorers:
        yield f"Differences are paired by sample: each run minus A. p: {p}."
    else:
        yield f"Runs are compared as independent, not by sample: each run's mean minus A's. p: {p}."
    yield from map(sentence, comparison.notes)
    if comparison.corrected:
        yield (
            "Corrected: the difference of people's scores (prediction-powered inference). Labeled: samples whose "
            "outputs differ and have a label in both runs. They must be a random selection; equal outputs need none."
        )
        yield from (
            f"{_titled(comparison, line)}, corrected: {text}."
            for line in comparison.corrected
            for text in _about_labels(line.result, line.info.scale)
        )
    judged = [line for line in comparison.scorers if judged_only(comparison.runs["A"], line.info)]
    labeled = {(line.title, line.b) for line in comparison.corrected}
    if judged and not all((line.title, line.b) in labeled for line in judged):
        weighted = any(line.result.difference.effective is not None for line in judged)
        correct = f"; {term('labels', ...)} corrects them" if paired and not weighted else ""
        yield f"This compares the judge's means, not what people would say{correct}."
    yield from ranks_text(comparison)
    if any(result.difference.effective is not None for _, result in paired):
        yield "Means are weighted; wins, ties and losses are counts."
    about = ((_titled(comparison, line), text) for line in comparison.scorers for text in about_samples(line))
    yield from by_text(about, len(comparison.scorers), "All comparisons", "; ")


def slices_text(comparison: Comparison) -> str:
    """How the p-values and intervals of slices are to be read."""
    return (
        f"Slices: p is {comparison.slice_correction_text}. Each interval is that of its slice alone: of many slices, "
        "some intervals miss the true difference."
    )


def _titled(comparison: Comparison, line: ScorerComparison | CorrectedDifference) -> str:
    """The scorer, and the runs if there are more than two."""
    return line.title if len(comparison.runs) == 2 else f"{line.title}, {line.a} and {line.b}"


def _about_labels(result: PPIEstimate, scale: float) -> Iterator[str]:
    """Whether labels are missing, and how much more labels would help."""
    if result.estimate is None:
        yield f"{count(result.labeled, 'sample')} with different outputs labeled in both runs, too few for an estimate"
    else:
        yield from filter(None, (result.caution, more_labels(result, scale)))


def more_labels(result: PPIEstimate, scale: float) -> str:
    """How much twice as many labels would narrow the interval; "" if it is unknown, or all samples are labeled."""
    if result.doubled is None or result.estimate is None:
        return ""
    low, high, digits = result.estimate.low or 0.0, result.estimate.high or 0.0, digits_for(scale)
    now, then = number((high - low) / 2, digits), number(result.doubled, digits)
    return f"about {count(result.labeled, 'more label')} would narrow ± {now} to ± {then}"


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
        where = listed(f"{number:,} in {name}" for name, number in zip((line.a, line.b), line.without, strict=True))
        open_changes = f"the missing scores of {count(line.result.missing, 'sample')} are ({where})"
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
        equivalent = line.verdict == "equivalent"
        within = f"the means {'differ by less than' if equivalent else 'may differ by'} {result.margin:g}"
        shown = f"equivalent: {within}" if equivalent else f"not shown to be equivalent: {within} or more"
        p = p_value(line.adjusted_equivalence)
        tests = f"p {p if p.startswith('<') else f'= {p}'}, two one-sided tests"
        yield f"{shown} ({tests})."


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
