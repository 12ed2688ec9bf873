"""Reports on the quality of a judge: its calibration against human labels, and its audit under perturbations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, ended, limits, listed, money, number, p_value, percent, percents, signed
from evalstone.report.view import FOOTER, Cell, Column, Fact, ReliabilityChart, Section, Table, Tone, View, table, words
from evalstone.results.quality_text import MEASURE_TITLES, affected, members_text, slice_findings
from evalstone.results.run import reasoning_note
from evalstone.results.summary import scorer_titles
from evalstone.stats.intervals import Interval, proportion_interval

if TYPE_CHECKING:
    from evalstone.results.agreement_slices import SliceAgreement
    from evalstone.results.audit import Audit, AuditedScorer, Effect
    from evalstone.results.calibration import Annotators, Calibration, CalibrationMeasures, Verdicts
    from evalstone.results.members import MemberComparison
    from evalstone.stats.calibration import Bin

FEW_LABELS = 20
MOST_WORDS = 8
DIAGRAM_WIDTH = 41


# ---- Calibration ----


def calibration_view(calibration: Calibration, members: MemberComparison | None = None) -> View:
    """A judge compared with human labels: agreement, confusion matrices, ranking, reliability diagram.

    members: a composite judge compared with its members.
    """
    from evalstone.results.calibration import measure  # noqa: PLC0415 - only a calibration needs its statistics

    measures = measure(calibration)
    tables = (_agreement(calibration, measures), _scores_and_labels(calibration, measures))
    sections = [Section("Agreement", tables=tables, notes=tuple(_ranking(measures)))]
    if members is not None:
        sections.append(_members(members))
    sections += [_confusion(verdicts, title) for title, verdicts in _by_threshold(calibration, measures).items()]
    if measures.slices:
        sections.append(_slices(measures.slices))
    if measures.annotators is not None:
        sections.append(_annotators(calibration, measures.annotators))
    if measures.raw is not None:
        sections.append(_probabilities(calibration, measures))
        chart = reliability_chart(calibration, measures)
        legend = "o: share of people who say yes, -: its 95% CI, |: mean score of the bin, *: both"
        sections.append(
            Section(
                "Reliability diagram",
                lead=("How often people say yes to samples with similar scores.",),
                chart=chart,
                plain=(*reliability_lines(measures.raw.bins), legend),
            )
        )
    return View(
        name=f"Calibration on {calibration.dataset}",
        lead=f"{count(len(calibration.pairs), 'labeled sample')} · {calibration.name} · judge {calibration.judge}",
        notice=_labels(calibration),
        warnings=(*calibration_warnings(calibration), *_reasoning_notes(calibration.keeps_reasoning)),
        sections=tuple(sections),
        facts=(
            Fact("Created", calibration.created.replace("T", " ").removesuffix("+00:00") + " UTC"),
            Fact("Dataset version", calibration.version),
            Fact("Scorer", calibration.scorer),
        ),
        footer=FOOTER,
    )


def _reasoning_notes(kept: bool | None) -> list[str]:
    """Whether the reasoning in front of outputs was scored. kept: None if there was none."""
    return [] if kept is None else [reasoning_note("Outputs begin", scored=kept)]


def calibration_notes(calibrations: Sequence[Calibration], judges: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """A note on each calibration of a run's judge, and whether it makes the scores doubtful.

    calibrations: those of the judge for one scorer. judges: the identities of the judges that the scorer asked.
    """
    names = Counter(calibration.labels for calibration in calibrations)
    for calibration in calibrations:
        labels = calibration.labels
        if names[labels] > 1:
            labels = f"{labels} ({listed(calibration.columns)})"
        yield f"judge calibrated on {labels}: {_result(calibration)}", bool(calibration.flaw)
    if not calibrations:
        lexical = all(judge.startswith("lexical@") for judge in judges)
        published = "; its accuracy on public data: evalstone judges" if lexical else ""
        yield f"not calibrated (evalstone calibrate --labels FILE){published}", False


def _result(calibration: Calibration) -> str:
    """How well the judge distinguished bad answers from good ones, on one line."""
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
    """What to know before relying on a calibration."""
    scores, truths = calibration.scores_and_truths
    yes, no = sum(truths), len(truths) - sum(truths)
    if not truths:
        yield "Annotators are evenly split on every sample: no verdict can be checked and no threshold was learned."
    elif not yes or not no:
        only = "yes" if yes else "no"
        yield f"Every label says {only}: the other verdict can't be checked and no threshold was learned."
    elif min(yes, no) < FEW_LABELS:
        yield f"Few labels ({yes} yes, {no} no): rely on the intervals, not the estimates."
    if len(scores) > 1 and len(set(scores)) == 1:
        yield "The judge scored every sample the same: no discrimination."
    elif calibration.only_verdict:
        yield f"All verdicts at {calibration.default_threshold:.4g} (default) are {calibration.only_verdict}."
    area = calibration.auroc
    if area is not None and calibration.unusable:
        yield f"Audits and reports don't use this calibration: {calibration.unusable}."
    if yes and no:
        yield from _uninformative(calibration)
    if area is not None and area.high is not None and area.high < 0.5:
        better = "lower" if calibration.lower_is_better else "higher"
        yield (
            f"Scores rank opposite to the labels. Yes is what a full score of {calibration.name} means, where {better} "
            "is better: were labels that mean the opposite read as yes?"
        )
    if truths and calibration.undecided:
        yield f"{count(calibration.undecided, 'sample')} with evenly split annotators left out of the verdicts."
    if calibration.skipped or calibration.failed:
        missing = count(calibration.skipped + calibration.failed, "labeled sample")
        yield f"{missing} without a score: {calibration.skipped} skipped, {calibration.failed} failed."
    if calibration.stop_reason:
        yield f"The run ended early ({calibration.stop_reason}); the calibration was not saved."


def _uninformative(calibration: Calibration) -> Iterator[str]:
    """A warning if the accuracy at the default threshold is not, or not provably, above the no-information rate."""
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
    meanings = f"; {listed([*words[:MOST_WORDS], *more])}" if words else ""
    return f"Labels: {listed(calibration.columns)}{meanings}; yes from {calibration.label_threshold:g}"


def _by_threshold(calibration: Calibration, measures: CalibrationMeasures) -> dict[str, Verdicts]:
    """The verdicts at the default threshold and at the fitted one, by their titles in reports."""
    learned, fitted = calibration.threshold, measures.at_fitted
    verdicts = {f"at {measures.at_default.threshold:.4g} (default)": measures.at_default}
    if learned is not None and fitted is not None:
        verdicts[f"at {fitted.threshold:.4g} (best {learned.objective.replace('_', ' ')})"] = fitted
    return verdicts


def _agreement(calibration: Calibration, measures: CalibrationMeasures) -> Table:
    by_threshold = _by_threshold(calibration, measures)
    columns = [words("measure")]
    for title in by_threshold:
        columns += [Column(title), Column("95% CI")]
    rows = [
        [Cell(title), *(cell for verdicts in by_threshold.values() for cell in _estimate(verdicts.measures[name]))]
        for name, title in MEASURE_TITLES.items()
    ]
    return table("The judge's verdicts compared with people's", columns, rows)


def _ranking(measures: CalibrationMeasures) -> Iterator[str]:
    if measures.at_fitted is not None:
        yield "At the learned threshold: what to expect on new samples, corrected for learning it on these."
    yield f"AUROC {_with_limits(measures.auroc)}."
    if (rate := measures.no_information_rate) is not None:
        yield f"No-information rate {_with_limits(rate)}: the accuracy of always giving the more frequent label."


def _scores_and_labels(calibration: Calibration, measures: CalibrationMeasures) -> Table:
    estimates = {
        f"score - label, mean (scale {calibration.scale:g})": measures.mean_error,
        "absolute difference, mean": measures.mean_absolute_error,
    }
    estimates |= {f"Krippendorff's alpha, {level}": value for level, value in measures.alpha.items()}
    estimates |= {f"weighted kappa, {weights}": value for weights, value in measures.weighted_kappa.items()}
    columns = (words("scores and labels"), Column("estimate"), Column("95% CI"))
    rows = [(name, *_estimate(value)) for name, value in estimates.items()]
    return table("The judge's scores compared with people's", columns, rows)


def _with_limits(interval: Interval | None) -> str:
    if interval is None or interval.low is None:
        return number(interval and interval.mean)
    return f"{interval.mean:.3f} (95% CI {limits(interval.low, interval.high)})"


def _confusion(verdicts: Verdicts, threshold: str) -> Section:
    title = f"Confusion matrix {threshold}"
    columns = (words("verdict"), Column("people: yes"), Column("people: no"))
    counts = verdicts.confusion
    rows = [("judge: yes", str(counts.tp), str(counts.fp)), ("judge: no", str(counts.fn), str(counts.tn))]
    return Section(title, tables=(table(title, columns, rows),))


def _members(comparison: MemberComparison) -> Section:
    """A composite judge and its members."""
    rows = [("together", *_estimate(comparison.accuracy), Cell(""), Cell(""))]
    for member in comparison.members:
        ours = member.difference
        together = Cell(signed(ours.mean)), Cell(limits(ours.low, ours.high, sign=True))
        rows.append((member.judge, *_estimate(member.accuracy), *together))
    limit = Column("95% CI")
    columns = (words("judge"), Column("accuracy"), limit, Column("together - alone"), limit)
    section = table("Members of the judge", columns, rows)
    notes = (
        ("The intervals of the differences are corrected for the number of members.",)
        if len(comparison.members) > 1
        else ()
    )
    return Section("Members", tuple(members_text(comparison)), (section,), notes=notes)


def _slices(slices: Sequence[SliceAgreement]) -> Section:
    """The agreement with people by slice."""
    lead = tuple(slice_findings(slices)) or ("No slice is significantly less accurate than the other samples.",)
    columns = (
        words("slice"),
        Column("n", informative=False),
        Column("accuracy"),
        Column("95% CI"),
        Column("false yes"),
        Column("false no"),
        Column("vs. other samples"),
        Column("p", informative=False),
        words("verdict"),
    )
    rows: list[Sequence[Cell | str]] = []
    for one in slices:
        compared = (Cell("-"), Cell("-"))
        if one.finding is not None:
            compared = Cell(signed(one.finding.difference.mean)), Cell(p_value(one.finding.adjusted_p))
        name, n = Cell(f"{one.field}={one.key}", quoted=True), f"{one.accuracy.n:,}"
        wrong = str(one.false_yes), str(one.false_no)
        verdict = Cell("▼ worse", "bad") if one.worse else Cell("")
        rows.append((name, n, *_estimate(one.accuracy), *wrong, *compared, verdict))
    note = (
        "The intervals are corrected for the number of slices. p: one-sided permutation test of whether the slice is "
        "less accurate than the other samples, Holm-adjusted over all slices; slices with fewer than five samples "
        "inside or outside are not tested."
    )
    title = "Agreement by slice"
    return Section(title, lead, (table(title, columns, rows),), notes=(note,))


def _annotators(calibration: Calibration, annotators: Annotators) -> Section:
    names = calibration.columns if len(calibration.columns) == annotators.columns else ()
    rows: list[Sequence[Cell | str]] = [
        (f"between annotators: Krippendorff's alpha, {level}", *_estimate(value))
        for level, value in annotators.alpha.items()
    ]
    for index, kappa in enumerate(annotators.judge_kappa):
        name = names[index] if names else f"annotator {index + 1}"
        rows.append((f"judge and {name}: Cohen's kappa", *_estimate(kappa)))
    columns = (words("agreement"), Column("estimate"), Column("95% CI"))
    return Section(f"{annotators.columns} annotators", tables=(table("Agreement of annotators", columns, rows),))


def _probabilities(calibration: Calibration, measures: CalibrationMeasures) -> Section:
    saved = None if calibration.recalibration is None else calibration.recalibration.kind
    errors = {"uncalibrated scores": measures.raw}
    errors |= {f"{method}, on held-out samples": error for method, error in measures.recalibrated.items()}
    rows = [
        (name, *_estimate(error.ece), *_estimate(error.brier), Cell("✓" if saved and name.startswith(saved) else ""))
        for name, error in errors.items()
        if error is not None
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
    """The reliability diagram as lines of ASCII, one per bin.

    `o` is the share of yes and `-` its interval. `|` is the mean score of the bin, where `o` would be for calibrated
    scores. `*` is both.
    """
    quarter = DIAGRAM_WIDTH // 4
    scale = "".join(tick.ljust(quarter) for tick in ("0", "0.25", "0.5", "0.75")) + "1"
    width = max([4, *(len(str(row.n)) for row in bins)])
    lines = [f"{'score':<12} {'n':>{width}}   {scale}"]
    for row in bins:
        marks = [" "] * DIAGRAM_WIDTH
        if row.interval is not None and row.interval.low is not None and row.interval.high is not None:
            for place in range(_position(row.interval.low), _position(row.interval.high) + 1):
                marks[place] = "-"
        marks[_position(row.probability)] = "|"
        marks[_position(row.share)] = "*" if _position(row.share) == _position(row.probability) else "o"
        lines.append(f"{row.low:.2f} to {row.high:.2f} {row.n:>{width}}   {''.join(marks).rstrip()}")
    return lines


def _position(share: float) -> int:
    """The column of a share in the diagram."""
    return round(share * (DIAGRAM_WIDTH - 1))


# ---- Audit ----

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


def audit_view(audit: Audit) -> View:
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
        warnings=(*warnings, *_reasoning_notes(audit.keeps_reasoning)),
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
            yield f"All verdicts are {verdict}: the judge is indistinguishable from one that always says {verdict}."
