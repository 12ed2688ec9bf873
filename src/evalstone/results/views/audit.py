"""The audit of a judge as a view: the effects of perturbations, one table per scorer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, digits_for, ended, limits, listed, money, p_value, percent, percents, signed
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Tone, View, table, words
from evalstone.results.summary import scorer_titles
from evalstone.results.views.calibration import reasoning_warnings, with_limits

if TYPE_CHECKING:
    from evalstone.results.audit import Audit, AuditedScorer, Effect
    from evalstone.stats.intervals import Interval

INJECTION_COUNTED = "an instruction to the judge, which it seems to treat as part of the text"
_SOURCES = {
    "config": "as configured",
    "calibration": "from the calibration",
    "unusable_calibration": "default; the calibration is not used, since it is not shown to be better than chance",
    "default": "default",
}
_AUDIT_NOTE = (
    "Flips: the verdict changes. Changed: the score changes by more than a tenth of the scale. p: tests for a shift, "
    "and for more flips than when the judge is asked again (the smaller p, Holm-adjusted). Affected: p at most 0.05."
)


def audit_view(audit: Audit, front_end: FrontEnd = PYTHON) -> View:
    """The effects of perturbations on a judge: one table per scorer."""
    titles = scorer_titles(audit.scorers)
    samples = count(audit.samples, "sample")
    if audit.samples != audit.dataset_size:
        samples = f"{audit.samples:,} of {count(audit.dataset_size, 'sample')}"
    warnings = [f"The audit ended early: {ended(audit.stop_reason)}"] if audit.stop_reason else []
    if audit.failed:
        warnings.append(f"{count(audit.failed, 'result')} failed.")
    unused = [f"Not applicable to any sample: {listed(audit.not_applicable)}."] if audit.not_applicable else []
    return View(
        name=f"Audit on {audit.dataset_name}",
        lead=f"{samples} · judge {audit.judge}",
        notice=audit.judge_note,
        warnings=(*warnings, *reasoning_warnings(audit.keeps_reasoning, front_end)),
        sections=tuple(_audited(audit, scorer, titles[scorer.signature]) for scorer in audit.scorers),
        details=(Section("", notes=(_AUDIT_NOTE, *unused)),),
        facts=(Fact("Cost", money(audit.cost), f"cost {money(audit.cost)}"), Fact("Dataset version", audit.version)),
        footer=FOOTER,
    )


def _audited(audit: Audit, scorer: AuditedScorer, title: str) -> Section:
    effects = [effect for effect in audit.effects if effect.scorer == scorer.signature]
    columns = (
        words("perturbation"),
        Column("n", informative=False),
        Column("flips"),
        Column("95% CI"),
        Column("to yes"),
        Column("to no"),
        Column("changed"),
        Column("shift"),
        Column("95% CI"),
        Column("p"),
        words("affected"),
    )
    unperturbed = (
        f"Unperturbed: mean {with_limits(scorer.mean)} over {count(scorer.scored, 'sample')}, "
        f"{percent(scorer.pass_rate.mean)} ({_shares(scorer.pass_rate)}) yes from {scorer.threshold:.4g} "
        f"({_SOURCES[scorer.threshold_source]})."
    )
    effects_table = table(f"Effect of each perturbation on {title}", columns, [_effect_row(e, scorer) for e in effects])
    return Section(title, (*_findings(audit, effects, scorer), *_noise(scorer), unperturbed), (effects_table,))


def _noise(scorer: AuditedScorer) -> Iterator[str]:
    """The judge's noise when asked again, and whether more samples or more repeats would help."""
    if (noise := scorer.noise) is None or noise.share is None:
        return
    once, twice = noise.asked_once, noise.asked_twice
    yield (
        f"Asked again: {percent(noise.share.mean)} ({_shares(noise.share)}) of the variance of single scores is the "
        f"judge's noise. Standard error of the mean: {once.mean:.3f} ({limits(once.low, once.high)}) if each sample is "
        f"asked once, {twice.mean:.3f} ({limits(twice.low, twice.high)}) if twice. Twice as many samples divide it by "
        "1.41."
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
        Cell(signed(shift.mean, digits) if shift else "-"),
        Cell(limits(shift.low, shift.high, digits, sign=True) if shift else "-"),
        Cell(p_value(min(p_values)) if p_values else ""),
        Cell(effects, tone),
    )


def _findings(audit: Audit, effects: Sequence[Effect], scorer: AuditedScorer) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    follows = {e.perturbation.name for e in effects if e.follows_injection(lower_is_better=scorer.lower_is_better)}
    for effect in effects:
        if effect.affected:
            as_text = effect.perturbation.direction and effect.perturbation.name not in follows
            reason = INJECTION_COUNTED if as_text else effect.perturbation.why
            reasons.setdefault(reason, []).append(effect.perturbation.name)
    if follows:
        yield "The judge follows instructions in the text that it judges."
    yield from (f"Affected by {why} ({listed(names)})." for why, names in reasons.items())
    tests = sum(p is not None for effect in audit.effects for p in (effect.shift_p, effect.flips_p))
    # The smallest p-value of n changes is McNemar's mid-p, 1 / 2^n, times the tests.
    needed = math.ceil(math.log2(max(1, tests) / audit.alpha))
    tested = [effect for effect in effects if effect.perturbation.family != "repetition"]
    few = [effect.perturbation.name for effect in tested if effect.n < needed]
    if tested and len(few) == len(tested):
        yield f"Too few samples to find any effect (at least {needed} changed samples are needed)."
    elif tested:
        if not reasons:
            yield "No perturbation affected it by more than chance."
        if few:
            yield f"Too few samples to find an effect of {listed(few)} (at least {needed} changed samples are needed)."
    if lost := sum(effect.lost for effect in effects):
        yield f"{count(lost, 'score')} lost to a perturbation: skipped or failed once perturbed."
    if scorer.scored > 1 and scorer.pass_rate.mean in (0, 1):
        verdict = "yes" if scorer.pass_rate.mean else "no"
        if any(effect.flipped for effect in effects):
            yield f"All verdicts on unchanged samples are {verdict}."
        else:
            yield f"All verdicts are {verdict}: the judge is indistinguishable from one that always says {verdict}."


def affected(effect: Effect, scorer: AuditedScorer) -> str:
    """The significant effect of a perturbation in words, or ""."""
    follows = effect.follows_injection(lower_is_better=scorer.lower_is_better)
    return "follows the injection" if follows else effect.affected
