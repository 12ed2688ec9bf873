"""Calibrations, audits and power analyses as text: one table each."""

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
    percent,
    percents,
    sentence,
    signed,
    visible,
)
from evalstone._core.terms import term
from evalstone.results.agreement_slices import agreement_by_slice
from evalstone.results.summary import scorer_titles

if TYPE_CHECKING:
    from evalstone.results.agreement_slices import SliceAgreement
    from evalstone.results.audit import Audit, AuditedScorer, Effect
    from evalstone.results.calibration import Calibration, Verdicts
    from evalstone.results.members import MemberComparison
    from evalstone.results.power_analysis import PowerAnalysis
    from evalstone.stats.intervals import Interval
    from evalstone.stats.power import SampleSizePlan

MEASURE_TITLES: Mapping[str, str] = {
    "sensitivity": "sensitivity (TPR)",
    "specificity": "specificity (TNR)",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "f1": "F1",
    "kappa": "Cohen's kappa",
}


def calibration_text(calibration: Calibration, verdicts: Verdicts) -> str:
    """How well the judge agrees with people. verdicts: those at its default threshold."""
    error = f"; {calibration.unusable}" if calibration.unusable else ""
    lines = [
        f"{calibration.name} · judge {calibration.judge} · {count(len(calibration.pairs), 'labeled sample')} of "
        f"{calibration.dataset}",
        "",
        *aligned(list(_measures(calibration, verdicts)), words=("measure",)),
        "",
        f"Verdicts are yes from {calibration.default_threshold:.4g}{error}.",
    ]
    if calibration.threshold is not None:
        threshold = calibration.threshold
        objective = MEASURE_TITLES[threshold.objective]
        lines.append(f"The threshold with the best {objective} on these samples is {threshold.value:.4g}.")
    missing = {"skipped": calibration.skipped, "failed": calibration.failed, "with tied labels": calibration.undecided}
    lines += [f"{count(n, 'labeled sample')} {why}." for why, n in missing.items() if n]
    lines += slice_findings(agreement_by_slice(calibration))
    if calibration.stop_reason:
        lines.append(sentence(f"it ended early: {calibration.stop_reason}"))
    return visible("\n".join(lines))


def _measures(calibration: Calibration, verdicts: Verdicts) -> Iterator[tuple[str, str, str]]:
    yield "measure", "estimate", "95% CI"
    for name, title in MEASURE_TITLES.items():
        yield title, *_estimate(verdicts.measures[name])
    yield "AUROC", *_estimate(calibration.auroc)


def _estimate(interval: Interval | None, digits: int = 3) -> tuple[str, str]:
    return ("-", "-") if interval is None else (number(interval.mean, digits), limits(interval.low, interval.high))


def slice_findings(slices: Sequence[SliceAgreement]) -> Iterator[str]:
    """The slices on which the judge is significantly less accurate, as sentences."""
    for one in slices:
        if one.worse and one.finding is not None:
            yield (
                f"{one.field}={one.key}: the judge is less accurate than on the other samples, "
                f"{number(one.accuracy.mean)} instead of {number(one.finding.rest)} (n = {one.accuracy.n}, "
                f"p {p_value(one.finding.adjusted_p)})."
            )


def members_text(comparison: MemberComparison) -> Iterator[str]:
    """What a composite judge's members are worth together, as sentences."""
    votes, best = comparison.votes, comparison.members[0]
    samples = count(comparison.n, "labeled sample")
    if votes is not None:
        yield (
            f"The {len(comparison.members)} votes are worth about {number(votes.votes.mean, 1)} independent ones "
            f"(95% CI {limits(votes.votes.low, votes.votes.high, 1)}): the correlation of the members' errors is "
            f"{number(votes.correlation.mean, 2)} (95% CI {limits(votes.correlation.low, votes.correlation.high, 2)}; "
            f"{samples})."
        )
    match comparison.verdict:
        case "better":
            yield "Together, they are more accurate than each member alone."
        case "worse":
            worse = [one.judge for one in comparison.members if (one.difference.high or 0.0) < 0]
            yield f"Together, they are less accurate than {listed(worse)} alone: use a single judge."
        case "inconclusive":
            yield (
                f"Together, they are not shown to be more accurate than the best member alone, {best.judge} "
                f"({signed(best.difference.mean)}; {samples})."
            )


def audit_text(audit: Audit) -> str:
    """What each perturbation changes, for each scorer."""
    titles = scorer_titles(audit.scorers)
    samples = count(audit.samples, "sample")
    lines = [f"judge {audit.judge} · {samples} of {audit.dataset_name}"]
    for scorer in audit.scorers:
        header = (titles[scorer.signature], "n", "flips", "95% CI", "shift", "p", "affected")
        rows = [_effect(effect, scorer) for effect in audit.effects if effect.scorer == scorer.signature]
        lines += ["", *aligned([header, *rows], words=(titles[scorer.signature], "affected"))]
    notes = [f"{count(audit.failed, 'result')} failed"] if audit.failed else []
    if audit.not_applicable:
        notes.append(f"not applicable to any sample: {', '.join(audit.not_applicable)}")
    if audit.stop_reason:
        notes.append(f"the audit ended early: {audit.stop_reason}")
    return visible("\n".join([*lines, *([""] if notes else []), *map(sentence, notes)]))


def _effect(effect: Effect, scorer: AuditedScorer) -> tuple[str, ...]:
    p_values = [p for p in (effect.shift_p, effect.flips_p) if p is not None]
    return (
        effect.perturbation.name,
        f"{effect.n:,}",
        percent(effect.flipped / effect.n) if effect.n else "-",
        "-" if effect.flips is None else percents(effect.flips.low, effect.flips.high),
        "-" if effect.shift is None else signed(effect.shift.mean, digits_for(scorer.scale)),
        p_value(min(p_values)) if p_values else "-",
        affected(effect, scorer),
    )


def affected(effect: Effect, scorer: AuditedScorer) -> str:
    """The significant effect of a perturbation in words, or ""."""
    follows = effect.follows_injection(lower_is_better=scorer.lower_is_better)
    return "follows the injection" if follows else effect.affected


def power_text(analysis: PowerAnalysis) -> str:
    """How many samples each scorer needs."""
    header, *rows = power_table(analysis)
    lead = f"To detect a true difference of {analysis.difference:g} with a power of {percent(analysis.power)}"
    return visible("\n".join([lead, "", *aligned([header, *rows], words=("scorer",)), "", *power_notes(analysis)]))


def power_table(analysis: PowerAnalysis) -> list[tuple[str, ...]]:
    """The header, and the plan of each scorer."""
    return [
        ("scorer", "samples needed", "80% range", "pilot samples", "std. deviation", "minimum detectable difference"),
        *(
            (
                one.title,
                *_samples_needed(one.plan),
                f"{one.plan.n:,}",
                number(one.plan.deviation),
                number(one.plan.detectable),
            )
            for one in analysis
        ),
    ]


def _samples_needed(plan: SampleSizePlan) -> tuple[str, str]:
    low, needed, high = (
        "-" if number is None else f"{number:,}" for number in (plan.needed_low, plan.needed, plan.needed_high)
    )
    if plan.needed is None:
        needed = "no number is enough"
    return needed, low if low == high else f"{low} to {high}"


def power_notes(analysis: PowerAnalysis) -> Iterator[str]:
    """What the plan assumes, what it is for, and why to doubt it."""
    if analysis.baseline is not None:
        yield "Both runs score the same samples; the deviation is that of the differences between the two pilot runs."
    else:
        yield (
            "Both runs score the same samples. Their scores are assumed to be uncorrelated, which usually gives far "
            f"too many samples; add {term('baseline', ...)} with a second pilot run."
        )
    yield "80% range: contains the number that is actually needed in at least 80% of pilots."
    tests: dict[str, list[str]] = {}
    for one in analysis:
        tests.setdefault(one.plan.test, []).append(one.title)
    for test, titles in tests.items():
        yield f"Planned for the {test}: {', '.join(titles)}."
    for one in analysis:
        if one.plan.groups is not None:
            yield f"{one.title}: clustered samples; the plan is for {one.plan.groups:,} clusters like the pilot's."
        if one.plan.caution:
            yield f"{one.title}: {one.plan.caution}."
