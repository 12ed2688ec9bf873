"""How good a judge is, as reports: its calibration against human labels, and its audit under perturbations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, limits, listed, money, number, p_value, percent, percents, signed
from evalstone.report.view import FOOTER, Cell, Column, Fact, ReliabilityChart, Section, Table, Tone, View, table, words
from evalstone.results.summary import scorer_titles
from evalstone.stats.intervals import Interval, proportion_interval

if TYPE_CHECKING:
    from evalstone.results.audit import Audit, AuditedScorer, Effect
    from evalstone.results.calibration import Annotators, Calibration, CalibrationMeasures, Verdicts
    from evalstone.stats.calibration import Bin

FEW_LABELS = 20
MOST_WORDS = 8
DIAGRAM_WIDTH = 41


# ---- Calibration ----

_MEASURES = {
    "sensitivity": "sensitivity (TPR)",
    "specificity": "specificity (TNR)",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "f1": "F1",
    "kappa": "Cohen's kappa",
}


def calibration_view(calibration: Calibration) -> View:
    """A judge beside human labels: agreement, confusion tables, ranking, reliability diagram."""
    from evalstone.results.calibration import measure  # noqa: PLC0415 - only a calibration needs its statistics

    measures = measure(calibration)
    tables = (_agreement(calibration, measures), _scores_and_labels(calibration, measures))
    sections = [Section("Agreement", tables=tables, notes=tuple(_ranking(measures)))]
    sections += [_confusion(verdicts, title) for title, verdicts in _by_threshold(calibration, measures).items()]
    if measures.annotators is not None:
        sections.append(_annotators(calibration, measures.annotators))
    if measures.raw is not None:
        sections.append(_probabilities(calibration, measures))
        chart = reliability_chart(calibration, measures)
        legend = "o: share of people who say yes, -: its 95% CI, |: mean score of the bin, *: both"
        sections.append(
            Section(
                "Reliability diagram",
                lead=("Of the samples with similar scores, how many do people say yes to?",),
                chart=chart,
                plain=(*reliability_lines(measures.raw.bins), legend),
            )
        )
    return View(
        name=f"Calibration on {calibration.dataset}",
        lead=f"{count(len(calibration.pairs), 'labeled sample')} · {calibration.name} · judge {calibration.judge}",
        notice=_labels(calibration),
        warnings=tuple(calibration_warnings(calibration)),
        sections=tuple(sections),
        facts=(
            Fact("Created", calibration.created.replace("T", " ").removesuffix("+00:00") + " UTC"),
            Fact("Dataset version", calibration.version),
            Fact("Scorer", calibration.scorer),
        ),
        footer=FOOTER,
    )


def calibration_notes(calibrations: Sequence[Calibration], judges: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """What a run says of each calibration of its judge, and whether that makes the scores doubtful.

    calibrations: those of the judge and one scorer. judges: the identities of the judges that the scorer asked.
    """
    names = Counter(one.labels for one in calibrations)
    for one in calibrations:
        labels = one.labels if names[one.labels] == 1 else f"{one.labels} ({listed(one.columns)})"
        yield f"judge calibrated on {labels}: {_result(one)}", bool(one.flaw)
    if not calibrations:
        lexical = all(judge.startswith("lexical@") for judge in judges)
        published = "; its accuracy on public data: evalstone judges" if lexical else ""
        yield f"not calibrated (evalstone calibrate --labels FILE){published}", False


def _result(calibration: Calibration) -> str:
    """How well the judge told bad answers from good ones, in a line."""
    area, threshold = calibration.auroc, calibration.default_threshold
    if area is None or area.low is None or area.high is None:
        return calibration.unusable
    counts = calibration.confusion(threshold)
    bad, caught, good, flagged = counts.negatives, counts.tn, counts.positives, counts.fn
    if calibration.lower_is_better:
        bad, caught, good, flagged = counts.positives, counts.tp, counts.negatives, counts.fp
    chance = ", not shown to be better than chance" if calibration.unusable else ""
    same = f"; all its verdicts were {calibration.only_verdict}" if calibration.only_verdict else ""
    return (
        f"AUROC {area.mean:.2f} ({area.low:.2f} to {area.high:.2f}){chance}; caught {caught} of "
        f"{count(bad, 'bad answer')} and flagged {flagged} of {good} good ones at the threshold {threshold:.4g}{same}"
    )


def reliability_chart(calibration: Calibration, measures: CalibrationMeasures | None = None) -> ReliabilityChart:
    """The reliability diagram of a calibration's scores."""
    from evalstone.results.calibration import measure  # noqa: PLC0415 - as above

    raw = (measures or measure(calibration)).raw
    return ReliabilityChart(f"{calibration.name}, {calibration.judge}", () if raw is None else raw.bins)


def calibration_warnings(calibration: Calibration) -> Iterator[str]:
    """What a reader must know before relying on a calibration."""
    scores, truths = calibration.scores_and_truths
    yes, no = sum(truths), len(truths) - sum(truths)
    if not truths:
        yield "Annotators are evenly split on every sample: no verdict can be checked and no threshold was learned."
    elif not yes or not no:
        only = "yes" if yes else "no"
        yield f"Every label says {only}: the other verdict can't be checked and no threshold was learned."
    elif min(yes, no) < FEW_LABELS:
        yield f"Few labels ({yes} yes, {no} no): read the intervals, not the estimates."
    if len(scores) > 1 and len(set(scores)) == 1:
        yield "The judge scored every sample the same: no discrimination."
    elif calibration.only_verdict:
        yield f"All verdicts at {calibration.default_threshold:.4g} (default) are {calibration.only_verdict}."
    area = calibration.auroc
    if area is not None and calibration.unusable:
        yield f"No audit and no report uses this calibration: {calibration.unusable}."
    if yes and no:
        yield from _uninformative(calibration)
    if area is not None and area.high is not None and area.high < 0.5:
        better = "lower" if calibration.lower_is_better else "higher"
        yield (
            f"Scores rank against the labels. Yes is what a full score of {calibration.name} means, where {better} is "
            "better: were labels that mean the opposite read as yes?"
        )
    if truths and calibration.undecided:
        yield f"{count(calibration.undecided, 'sample')} with evenly split annotators left out of the verdicts."
    if calibration.skipped or calibration.failed:
        missing = count(calibration.skipped + calibration.failed, "labeled sample")
        yield f"{missing} without a score: {calibration.skipped} skipped, {calibration.failed} failed."
    if calibration.stop_reason:
        yield f"The run ended early ({calibration.stop_reason}); the calibration was not saved."


def _uninformative(calibration: Calibration) -> Iterator[str]:
    """That the accuracy at the default threshold does not exceed the no-information rate, or is not shown to."""
    counts = calibration.confusion(calibration.default_threshold)
    rate = max(counts.positives, counts.negatives) / counts.n
    accuracy = proportion_interval(counts.tp + counts.tn, counts.n)
    if accuracy is not None and accuracy.low is not None and accuracy.low <= rate:
        shown = "" if accuracy.mean <= rate else " shown to be"
        yield (
            f"The accuracy at {calibration.default_threshold:.4g} (default), {accuracy.mean:.3f} (95% CI "
            f"{limits(accuracy.low, accuracy.high)}), is not{shown} above the no-information rate, {rate:.3f}."
        )


def _labels(calibration: Calibration) -> str:
    words = [f"{word} = {'yes' if share else 'no'}" for word, share in calibration.words.items()]
    more = [f"and {len(words) - MOST_WORDS} more"] * (len(words) > MOST_WORDS)
    read = f"; {listed([*words[:MOST_WORDS], *more])}" if words else ""
    return f"Labels: {listed(calibration.columns)}{read}; yes from {calibration.label_threshold:g}"


def _by_threshold(calibration: Calibration, measures: CalibrationMeasures) -> dict[str, Verdicts]:
    """The verdicts at the default threshold and at the fitted one, by what reports call these."""
    learned, fitted = calibration.threshold, measures.at_fitted
    found = {f"at {measures.at_default.threshold:.4g} (default)": measures.at_default}
    if learned is not None and fitted is not None:
        found[f"at {fitted.threshold:.4g} (best {learned.objective.replace('_', ' ')})"] = fitted
    return found


def _agreement(calibration: Calibration, measures: CalibrationMeasures) -> Table:
    found = _by_threshold(calibration, measures)
    columns = [words("measure")]
    for title in found:
        columns += [Column(title), Column("95% CI")]
    rows = [
        [Cell(title), *(cell for verdicts in found.values() for cell in _estimate(verdicts.measures[name]))]
        for name, title in _MEASURES.items()
    ]
    return table("The judge's verdicts against people's", columns, rows)


def _ranking(measures: CalibrationMeasures) -> Iterator[str]:
    if measures.at_fitted is not None:
        yield "At the learned threshold: what to expect on new samples, less the optimism of learning it here."
    yield f"AUROC {_with_limits(measures.auroc)}."
    if (rate := measures.no_information_rate) is not None:
        yield f"No-information rate {_with_limits(rate)}: the accuracy of always giving the more frequent label."


def _scores_and_labels(calibration: Calibration, measures: CalibrationMeasures) -> Table:
    found = {
        f"score - label, mean (scale {calibration.scale:g})": measures.mean_error,
        "absolute difference, mean": measures.mean_absolute_error,
    }
    found |= {f"Krippendorff's alpha, {level}": value for level, value in measures.alpha.items()}
    found |= {f"weighted kappa, {how}": value for how, value in measures.weighted_kappa.items()}
    columns = (words("scores and labels"), Column("estimate"), Column("95% CI"))
    return table(
        "The judge's scores beside people's", columns, [(name, *_estimate(one)) for name, one in found.items()]
    )


def _with_limits(found: Interval | None) -> str:
    if found is None or found.low is None:
        return number(found and found.mean)
    return f"{found.mean:.3f} (95% CI {limits(found.low, found.high)})"


def _confusion(verdicts: Verdicts, threshold: str) -> Section:
    title = f"Confusion matrix {threshold}"
    columns = (words("verdict"), Column("people: yes"), Column("people: no"))
    counts = verdicts.confusion
    rows = [("judge: yes", str(counts.tp), str(counts.fp)), ("judge: no", str(counts.fn), str(counts.tn))]
    return Section(title, tables=(table(title, columns, rows),))


def _annotators(calibration: Calibration, annotators: Annotators) -> Section:
    names = calibration.columns if len(calibration.columns) == annotators.columns else ()
    between = {"Fleiss' kappa": annotators.fleiss_kappa, "Gwet's AC1": annotators.gwet_ac1}
    between |= {f"Krippendorff's alpha, {level}": value for level, value in annotators.alpha.items()}
    rows: list[Sequence[Cell | str]] = [
        (f"between annotators: {name}", *_estimate(value)) for name, value in between.items()
    ]
    for place, kappa in enumerate(annotators.judge_kappa):
        name = names[place] if names else f"annotator {place + 1}"
        rows.append((f"judge and {name}: Cohen's kappa", *_estimate(kappa)))
    columns = (words("agreement"), Column("estimate"), Column("95% CI"))
    return Section(f"{annotators.columns} annotators", tables=(table("Agreement of annotators", columns, rows),))


def _probabilities(calibration: Calibration, measures: CalibrationMeasures) -> Section:
    saved = None if calibration.recalibration is None else calibration.recalibration.kind
    errors = {"uncalibrated scores": measures.raw}
    errors |= {f"{method}, on held-out samples": one for method, one in measures.recalibrated.items()}
    rows = [
        (name, *_estimate(one.ece), *_estimate(one.brier), Cell("✓" if saved and name.startswith(saved) else ""))
        for name, one in errors.items()
        if one is not None
    ]
    limit = Column("95% CI")
    columns = (words("probability of yes"), Column("ECE"), limit, Column("Brier score"), limit, words(""))
    section = table("Calibration error", columns, rows)
    return Section("Calibration error", tables=(section,), notes=("ECE, Brier score: 0 is best.",))


def _estimate(value: Interval | None) -> tuple[Cell, Cell]:
    if value is None:
        return Cell("-", "strong"), Cell("")
    return Cell(number(value.mean), "strong"), Cell(limits(value.low, value.high))


def reliability_lines(bins: Sequence[Bin]) -> list[str]:
    """The reliability diagram as lines of ASCII, one a bin.

    `o` is the share of yes, `-` its interval, `|` the mean score of the bin, where `o` would be if the scores were
    calibrated; `*` is both.
    """
    quarter = DIAGRAM_WIDTH // 4
    scale = "".join(tick.ljust(quarter) for tick in ("0", "0.25", "0.5", "0.75")) + "1"
    width = max([4, *(len(str(one.n)) for one in bins)])
    lines = [f"{'score':<12} {'n':>{width}}   {scale}"]
    for one in bins:
        marks = [" "] * DIAGRAM_WIDTH
        if one.interval is not None and one.interval.low is not None and one.interval.high is not None:
            for place in range(_place(one.interval.low), _place(one.interval.high) + 1):
                marks[place] = "-"
        marks[_place(one.probability)] = "|"
        marks[_place(one.share)] = "*" if _place(one.share) == _place(one.probability) else "o"
        lines.append(f"{one.low:.2f} to {one.high:.2f} {one.n:>{width}}   {''.join(marks).rstrip()}")
    return lines


def _place(share: float) -> int:
    return round(share * (DIAGRAM_WIDTH - 1))


# ---- Audit ----

INJECTION_COUNTED = "an instruction to the judge, which it seems to count as part of the text"
_SOURCES = {
    "config": "as given",
    "calibration": "from the calibration",
    "unusable_calibration": "default; the calibration is not used, it is not shown to be better than chance",
    "default": "default",
}
_AUDIT_NOTE = (
    "Flips: the verdict changes. Changed: the score changes by more than a tenth of the scale. p: of no shift, or of "
    "no more flips than when the judge is asked again (the smaller one), Holm-adjusted. Affected: p at most 0.05."
)


def audit_view(audit: Audit) -> View:
    """What affects a judge: one table a scorer, with the effect of each perturbation."""
    titles = scorer_titles(audit.scorers)
    taken = count(audit.samples, "sample")
    if audit.samples != audit.dataset_size:
        taken = f"{audit.samples:,} of {count(audit.dataset_size, 'sample')}"
    warnings = [f"The audit ended early: {audit.stop_reason}."] if audit.stop_reason else []
    if audit.failed:
        warnings.append(f"{count(audit.failed, 'result')} failed.")
    unused = [f"Not applicable to any sample: {listed(audit.not_applicable)}."] if audit.not_applicable else []
    return View(
        name=f"Audit on {audit.dataset_name}",
        lead=f"{taken} · judge {audit.judge}",
        notice=audit.judge_note,
        warnings=tuple(warnings),
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
        f"Unperturbed: mean {_with_limits(scorer.mean)} over {count(scorer.scored, 'sample')}, "
        f"{percent(scorer.pass_rate.mean)} ({_shares(scorer.pass_rate)}) yes from {scorer.threshold:.4g} "
        f"({_SOURCES[scorer.threshold_source]})."
    )
    effects_table = table(f"Effect of each perturbation on {title}", columns, [_effect_row(e, scorer) for e in effects])
    return Section(title, (*_findings(audit, effects, scorer), *_noise(scorer), unperturbed), (effects_table,))


def _noise(scorer: AuditedScorer) -> Iterator[str]:
    """What asking again shows, and whether more samples or more repeats would help."""
    if (noise := scorer.noise) is None or noise.share is None:
        return
    once, twice = (one.mean for one in (noise.asked_once, noise.asked_twice))
    yield (
        f"Asked again: {percent(noise.share.mean)} ({_shares(noise.share)}) of the variance of single scores is the "
        f"judge's noise. Standard error of the mean: {once:.3f} ({_range(noise.asked_once)}) if each sample is asked "
        f"once, {twice:.3f} ({_range(noise.asked_twice)}) if twice. Twice as many samples divide it by 1.41."
    )


def _range(found: Interval) -> str:
    return limits(found.low, found.high)


def _shares(found: Interval | None) -> str:
    return "-" if found is None else percents(found.low, found.high)


def _effect_row(effect: Effect, scorer: AuditedScorer) -> Sequence[Cell]:
    follows = effect.follows_injection(lower_is_better=scorer.lower_is_better)
    affected = "follows the injection" if follows else effect.affected
    tone: Tone = "bad" if follows else "unsure" if affected else ""
    flips, shift = effect.flips, effect.shift
    p_values = [p for p in (effect.shift_p, effect.flips_p) if p is not None]
    return (
        Cell(effect.perturbation.name),
        Cell(f"{effect.n:,}"),
        Cell(percent(effect.flipped / effect.n) if effect.n else "-"),
        Cell(_shares(flips)),
        Cell(str(effect.raised)),
        Cell(str(effect.lowered)),
        Cell(str(effect.changed)),
        Cell(signed(shift.mean) if shift else "-"),
        Cell(limits(shift.low, shift.high, sign=True) if shift else "-"),
        Cell(p_value(min(p_values)) if p_values else ""),
        Cell(affected, tone),
    )


def _findings(audit: Audit, effects: Sequence[Effect], scorer: AuditedScorer) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    follows = {e.perturbation.name for e in effects if e.follows_injection(lower_is_better=scorer.lower_is_better)}
    for effect in effects:
        if effect.affected:
            counted = effect.perturbation.direction and effect.perturbation.name not in follows
            reason = INJECTION_COUNTED if counted else effect.perturbation.why
            reasons.setdefault(reason, []).append(effect.perturbation.name)
    if follows:
        yield "The judge follows instructions in the text that it judges."
    yield from (f"Affected by {why} ({listed(names)})." for why, names in reasons.items())
    tests = sum(p is not None for effect in audit.effects for p in (effect.shift_p, effect.flips_p))
    from evalstone.results.audit import ALPHA  # noqa: PLC0415 - only an audit needs its results

    # The smallest p-value of n changes is McNemar's mid-p, 1 / 2^n, times the tests.
    needed = math.ceil(math.log2(max(1, tests) / ALPHA))
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
            yield f"All verdicts are {verdict}: the judge can't be told from one that always says {verdict}."
