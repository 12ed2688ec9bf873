"""The audit of a judge as a view: the effects of perturbations, one table per scorer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, digits_for, limits, money, p_value, percent, percents, sentence, signed
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import clause_of, sentences_of
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Tone, View, table, words
from evalstone.results.summary import scorer_titles
from evalstone.results.views.calibration import with_limits

if TYPE_CHECKING:
    from evalstone.results.audit import Audit, AuditedScorer, Effect
    from evalstone.stats.intervals import Interval

_SOURCES = {
    "config": "as configured",
    "calibration": "from the calibration",
    "unusable_calibration": "default; the calibration is not used, since it is not shown to be better than chance",
    "default": "default",
}
_AUDIT_NOTE = (
    "Flips: the verdict changes. Changed: the score changes by more than a tenth of the scale. p: tests for a shift, "
    "and for more flips than when calls are repeated (the smaller p, Holm-adjusted). Affected: p at most 0.05."
)


def audit_view(audit: Audit, front_end: FrontEnd = PYTHON) -> View:
    """The effects of perturbations on a judge: one table per scorer."""
    titles = scorer_titles(audit.scorers)
    samples = count(audit.samples, "sample")
    if audit.samples != audit.dataset_size:
        samples = f"{audit.samples:,} of {count(audit.dataset_size, 'sample')}"
    whole = [note for note in audit.notes if not note.scorer]
    warnings = [note for note in whole if note.severity == "warning"]
    unused = [note for note in whole if note.severity != "warning"]
    return View(
        name=f"Audit on {audit.dataset_name}",
        lead=f"{samples} · judge {audit.judge}",
        notice=audit.judge_note,
        warnings=tuple(sentences_of(warnings, front_end)),
        sections=tuple(_audited(audit, scorer, titles[scorer.signature]) for scorer in audit.scorers),
        details=(Section("", notes=(_AUDIT_NOTE, *sentences_of(unused, front_end))),),
        facts=(
            Fact("Cost", money(audit.cost), f"cost {money(audit.cost)}"),
            Fact("Dataset version", audit.dataset_version),
        ),
        footer=FOOTER,
    )


def _audited(audit: Audit, scorer: AuditedScorer, title: str) -> Section:
    effects = [effect for effect in audit.effects if effect.signature == scorer.signature]
    columns = (
        words("perturbation"),
        Column("n", informative=False),
        Column("flips"),
        Column("95% CI", interval=True),
        Column("to yes"),
        Column("to no"),
        Column("changed"),
        Column("shift"),
        Column("95% CI", interval=True),
        Column("p"),
        words("affected"),
    )
    unperturbed = (
        f"Unperturbed: mean {with_limits(scorer.mean)} over {count(scorer.n_score, 'sample')}, "
        f"{percent(scorer.pass_rate.estimate)} ({_shares(scorer.pass_rate)}) yes from {scorer.threshold:.4g} "
        f"({_SOURCES[scorer.threshold_source]})."
    )
    findings = [sentence(clause_of(note)) for note in audit.notes if note.scorer == title]
    effects_table = table(f"Effect of each perturbation on {title}", columns, [_effect_row(e, scorer) for e in effects])
    return Section(title, (*findings, *_noise(scorer), unperturbed), (effects_table,))


def _noise(scorer: AuditedScorer) -> Iterator[str]:
    """The judge's noise over repeated calls, and whether more samples or more repeats would help."""
    if (noise := scorer.noise) is None or noise.share is None:
        return
    once, twice = noise.asked_once, noise.asked_twice
    yield (
        f"Repeated calls: {percent(noise.share.estimate)} ({_shares(noise.share)}) of the variance of single scores is "
        f"the judge's noise. Standard error of the mean: {once.estimate:.3f} ({limits(once.low, once.high)}) if each "
        f"sample is asked once, {twice.estimate:.3f} ({limits(twice.low, twice.high)}) if twice. Twice as many samples "
        "divide it by 1.41."
    )


def _shares(interval: Interval | None) -> str:
    return "-" if interval is None else percents(interval.low, interval.high)


def _effect_row(effect: Effect, scorer: AuditedScorer) -> Sequence[Cell]:
    effects = affected(effect, scorer)
    tone: Tone = "bad" if effects and effects != effect.affected else "unsure" if effects else ""
    flips, shift, digits = effect.flips, effect.shift, digits_for(scorer.scale)
    p_values = [p for p in (effect.shift_p, effect.flips_p) if p is not None]
    return (
        Cell(effect.perturbation.name),
        Cell(f"{effect.n:,}"),
        Cell(percent(effect.flipped / effect.n) if effect.n else "-"),
        Cell(_shares(flips)),
        Cell(str(effect.raised)),
        Cell(str(effect.lowered)),
        Cell(str(effect.changed)),
        Cell(signed(shift.estimate, digits) if shift else "-"),
        Cell(limits(shift.low, shift.high, digits, sign=True) if shift else "-"),
        Cell(p_value(min(p_values)) if p_values else ""),
        Cell(effects, tone),
    )


def affected(effect: Effect, scorer: AuditedScorer) -> str:
    """The significant effect of a perturbation in words, or ""."""
    follows = effect.follows_injection(lower_is_better=scorer.lower_is_better)
    return "follows the injection" if follows else effect.affected
