"""A judge compared with human labels as a view: agreement, confusion matrices, ranking, reliability diagram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, limits, listed, number, p_value, safe, signed
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import clause_of, sentences_of
from evalstone.report.view import (
    FOOTER,
    Cell,
    Column,
    Fact,
    Section,
    Table,
    Tone,
    View,
    bare_judge,
    bare_judges,
    table,
    words,
)
from evalstone.results.views.calibration_figures import DIAGRAM_TITLE, calibration_figures, disagreements_text
from evalstone.types import without_fingerprints

if TYPE_CHECKING:
    from evalstone.results.agreement_slices import SliceAgreement
    from evalstone.results.calibration import Calibration
    from evalstone.results.disagreements import DisagreementKind
    from evalstone.results.judge_verdict import JudgeUse, JudgeVerdict
    from evalstone.results.measures import Annotators, CalibrationMeasures, Verdicts
    from evalstone.results.members import MemberComparison
    from evalstone.stats.calibration import Bin
    from evalstone.stats.intervals import Interval
    from evalstone.stats.selective_risk import SelectiveRisk

MOST_WORDS = 8
DIAGRAM_WIDTH = 41
MOST_DISAGREEMENTS = 10
ERRORS: Mapping[DisagreementKind, str] = {"missed": "missed bad answer", "flagged": "flagged good answer"}
USES: Mapping[JudgeUse, tuple[str, Tone]] = {
    "samples": ("usable for single samples", "good"),
    "systems": ("usable to rank systems", "unsure"),
    "none": ("not usable", "bad"),
    "undecided": ("labels don't tell yet", "dim"),
}
"""What a judge is usable for, in a few words, if the labels tell no more."""
MEASURE_TITLES: Mapping[str, str] = {
    "sensitivity": "sensitivity (TPR)",
    "specificity": "specificity (TNR)",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "f1": "F1",
    "kappa": "Cohen's kappa",
}


def use_text(verdict: JudgeVerdict) -> tuple[str, Tone]:
    """What a judge is usable for, in a few words. Labels that don't tell whether it ranks systems may still show that
    it is not usable for single samples."""
    if verdict.use == "undecided" and any(each["single"] == "no" for each in verdict.notes):
        return "not usable for single samples", "unsure"
    return USES[verdict.use]


def chosen_with(calibration: Calibration) -> str:
    """What was chosen with the labels of a calibration, which makes its figures optimistic, as a phrase; "" if nothing
    was."""
    used = calibration.n_aligned_with
    chosen = [f"aligned with {used} of these labels"] * bool(used)
    chosen += ["threshold chosen on these labels"] * (calibration.risk is not None)
    return f"optimistic: {' and '.join(chosen)}" if chosen else ""


def calibration_view(calibration: Calibration, front_end: FrontEnd = PYTHON) -> View:
    """A judge compared with human labels: agreement, confusion matrices, ranking, reliability diagram."""
    from evalstone.results.measures import measure  # noqa: PLC0415 - only a calibration needs its statistics

    measures = measure(calibration)
    tables = (_agreement(calibration, measures), _scores_and_labels(calibration, measures))
    sections = [Section("Verdict", tuple(sentences_of(calibration.verdict.notes, front_end)))]
    if measures.raw is not None:
        legend = "o: share of people who say yes, -: its 95% CI, |: mean score of the bin, *: both"
        plain = (f"{DIAGRAM_TITLE}:", *reliability_lines(measures.raw.bins), legend)
        sections.append(Section("Diagrams", figures=calibration_figures(calibration, measures), plain=plain))
    sections.append(Section("Agreement", tables=tables, notes=tuple(_ranking(measures))))
    if calibration.risk is not None:
        sections.append(Section("Cascade", tuple(_cascade(calibration, calibration.risk, measures.mean_error))))
    if calibration.members is not None:
        judges = (calibration, *calibration.per_judge)
        alone = [calibrations_table("each judge", judges)] if calibration.per_judge else []
        sections.append(_members(calibration.members, alone))
    sections += [_confusion(verdicts, title) for title, verdicts in _by_threshold(calibration, measures).items()]
    if measures.slices:
        sections.append(agreement_by_slice(measures.slices))
    if measures.annotators is not None:
        sections.append(_annotators(calibration, measures.annotators))
    if measures.raw is not None:
        sections.append(_probabilities(calibration, measures))
    return View(
        name=f"Calibration on {calibration.dataset_name}",
        lead=f"{count(len(calibration.pairs), 'labeled sample')} · {calibration.scorer} · judge {calibration.judge}",
        notice=_labels(calibration),
        warnings=tuple(sentences_of(calibration.notes, front_end)),
        sections=tuple(sections),
        details=(_disagreements(calibration),),
        facts=(
            Fact("Judge", calibration.judge),
            Fact("Created", calibration.created.replace("T", " ").removesuffix("+00:00") + " UTC"),
            Fact("Dataset version", calibration.dataset_version),
            Fact("Scorer", calibration.signature),
        ),
        footer=FOOTER,
    )


def calibration_notes(
    calibrations: Sequence[Calibration], judges: Sequence[str], *, imported: bool = False
) -> Iterator[tuple[str, bool]]:
    """A note on each calibration of a run's judge, and whether it makes the scores doubtful.

    calibrations: those of the judge for one scorer. judges: the identities of the judges that the scorer asked.
    imported: Whether another tool asked them, so that they can't be asked about labeled samples.
    """
    names = Counter(calibration.labels for calibration in calibrations)
    for calibration in calibrations:
        labels = calibration.labels
        if names[labels] > 1:
            labels = f"{labels} ({listed(calibration.columns)})"
        yield f"judge calibrated on {labels}: {_result(calibration)}", calibration.flaw is not None
    if not calibrations and imported:
        yield "the judge isn't compared with labels (evalstone annotate, then report --labels SCORER=ledger)", False
    elif not calibrations:
        lexical = all(judge.startswith("lexical@") for judge in judges)
        published = "; its accuracy on public data: evalstone judges" if lexical else ""
        yield f"not calibrated (evalstone calibrate --labels FILE){published}", False


def _result(calibration: Calibration) -> str:
    """How well the judge distinguished bad answers from good ones, on one line."""
    area, threshold = calibration.auroc, calibration.default_threshold
    if area is None or area.low is None or area.high is None:
        return "" if calibration.unusable is None else clause_of(calibration.unusable)
    counts = calibration.confusion(threshold)
    bad, caught, good, flagged = counts.negatives, counts.tn, counts.positives, counts.fn
    if calibration.lower_is_better:
        bad, caught, good, flagged = counts.positives, counts.tp, counts.negatives, counts.fp
    verdict = calibration.verdict
    if calibration.weights is not None and verdict.missed is not None and verdict.flagged is not None:
        said = (
            f"catches {1 - verdict.missed.estimate:.0%} of bad answers and flags "
            f"{verdict.flagged.estimate:.0%} of good ones"
        )
    else:
        said = f"caught {caught} of {count(bad, 'bad answer')} and flagged {flagged} of {good} good ones"
    chance = ", not shown to be better than chance" if calibration.unusable else ""
    same = f"; all its verdicts were {calibration.only_verdict}" if calibration.only_verdict else ""
    optimistic = f"; {chosen}" if (chosen := chosen_with(calibration)) else ""
    return (
        f"AUROC {area.estimate:.2f} ({area.low:.2f} to {area.high:.2f}){chance}; {said} at the threshold "
        f"{threshold:.4g}{same}{optimistic}{_panel(calibration.members)}"
    )


def _panel(members: MemberComparison | None) -> str:
    """What the votes of a panel are worth, and its best member, after a semicolon; "" for other judges."""
    if members is None or members.votes is None:
        return ""
    best, votes = members.members[0], members.votes.votes
    worth = f"{number(votes.estimate, 1)} ({limits(votes.low, votes.high, 1)})"
    return (
        f"; its {len(members.members)} votes are worth about {worth}; accuracy {number(members.accuracy.estimate)}, "
        f"of the best single member, {bare_judge(best.judge)}, {number(best.accuracy.estimate)}"
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
    for title, in_csv in zip(by_threshold, ("at default", "at fitted"), strict=False):
        columns += [Column(title, csv=in_csv), Column("95% CI", interval=True)]
    rows = [
        [Cell(title), *(cell for verdicts in by_threshold.values() for cell in _estimate(verdicts.measures[name]))]
        for name, title in MEASURE_TITLES.items()
    ]
    return table("The judge's verdicts compared with people's", columns, rows)


def _ranking(measures: CalibrationMeasures) -> Iterator[str]:
    if measures.at_fitted is not None:
        yield "At the learned threshold: what to expect on new samples, corrected for learning it on these."
    yield f"AUROC {with_limits(measures.auroc)}."
    if (rate := measures.no_information_rate) is not None:
        yield f"No-information rate {with_limits(rate)}: the accuracy of always giving the more frequent label."


def _scores_and_labels(calibration: Calibration, measures: CalibrationMeasures) -> Table:
    estimates = {
        f"score - label, mean (scale {calibration.scale:g})": measures.mean_error,
        "absolute difference, mean": measures.mean_absolute_error,
    }
    estimates |= {f"Krippendorff's alpha, {level}": value for level, value in measures.alpha.items()}
    estimates |= {f"weighted kappa, {weights}": value for weights, value in measures.weighted_kappa.items()}
    columns = (words("scores and labels"), Column("estimate"), Column("95% CI", interval=True))
    rows = [(name, *_estimate(value)) for name, value in estimates.items()]
    return table("The judge's scores compared with people's", columns, rows)


def with_limits(interval: Interval | None) -> str:
    if interval is None or interval.low is None:
        return number(None if interval is None else interval.estimate)
    return f"{interval.estimate:.3f} (95% CI {limits(interval.low, interval.high)})"


def _confusion(verdicts: Verdicts, threshold: str) -> Section:
    title = f"Confusion matrix {threshold}"
    columns = (words("verdict"), Column("people: yes"), Column("people: no"))
    counts = verdicts.confusion
    rows = [("judge: yes", str(counts.tp), str(counts.fp)), ("judge: no", str(counts.fn), str(counts.tn))]
    return Section(title, tables=(table(title, columns, rows),))


def _cascade(calibration: Calibration, risk: SelectiveRisk, error: Interval | None) -> Iterator[str]:
    """What the labels show of a cascade's threshold, and what the cascade costs, as sentences."""
    yield (
        f"Threshold {risk.threshold!r}: of the samples that its first judge decides alone, at most {risk.limit:.1%} "
        f"are judged wrongly, with {risk.confidence:.0%} confidence ({risk.wrong} of "
        f"{count(risk.kept, 'labeled sample')}; it decides {risk.share_kept:.1%} of all alone)."
    )
    yield "The bound is for new samples like these. All other figures are of the labels that chose the threshold."
    if calibration.cost is not None:
        yield _cascade_cost(calibration, calibration.cost)
    if error is not None:
        labels = sum(pair.label for pair in calibration.pairs) / len(calibration.pairs)
        yield (
            f"Its mean score of these samples is {number(labels + error.estimate)}, corrected by the labels "
            f"{number(labels)} (difference {signed(error.estimate)}, 95% CI "
            f"{limits(error.low, error.high, sign=True)}). The corrected mean of all your samples: evalstone run, then "
            "evalstone report --labels."
        )


def _cascade_cost(calibration: Calibration, cost: float) -> str:
    fallback = next(
        (each for each in calibration.per_judge if f", {each.judge}, threshold=" in calibration.judge), None
    )
    text = f"It costs ${1000 * cost:.4g} per 1,000 samples"
    if fallback is not None and fallback.cost:
        text += f", {cost / fallback.cost:.1%} of the price of {fallback.judge} alone (${1000 * fallback.cost:.4g})"
    return f"{text}."


def _members(comparison: MemberComparison, alone: Sequence[Table]) -> Section:
    """A composite judge and its members."""
    rows = [("together", *_estimate(comparison.accuracy), Cell(""), Cell(""))]
    for member in comparison.members:
        ours = member.difference
        together = Cell(signed(ours.estimate)), Cell(limits(ours.low, ours.high, sign=True))
        rows.append((member.judge, *_estimate(member.accuracy), *together))
    limit = Column("95% CI", interval=True)
    columns = (words("judge"), Column("accuracy"), limit, Column("together - alone"), limit)
    section = table("Members of the judge", columns, rows)
    notes = ["The intervals of the differences are corrected for the number of members."] * (
        len(comparison.members) > 1
    )
    if comparison.by_votes:
        notes.append("A member's verdicts are those of its votes on the panel's questions.")
    return Section("Members", tuple(members_text(comparison)), (section, *alone), notes=tuple(notes))


def calibrations_table(title: str, calibrations: Sequence[Calibration]) -> Table:
    """A row for each calibration: judge, scorer, data, and agreement with the labels."""
    from evalstone.results.measures import verdicts_at  # noqa: PLC0415 - only a calibration needs its statistics

    names = (title, "scorer", "labels", "verdict", "accuracy [95% CI]", "kappa [95% CI]", "AUROC [95% CI]")
    columns = map(words, names)
    judges = bare_judges(one.judge for one in calibrations)
    rows: list[Sequence[str]] = []
    for one in calibrations:
        measures = verdicts_at(one, one.default_threshold).measures
        labels = f"{one.labels} ({listed(one.columns)}), {len(one.pairs)} labeled"
        rows.append(
            (
                judges[one.judge],
                safe(without_fingerprints(one.signature), 60),
                safe(labels, 60),
                "; ".join(filter(None, (use_text(one.verdict)[0], chosen_with(one)))),
                _in_brackets(measures["accuracy"]),
                _in_brackets(measures["kappa"]),
                _in_brackets(one.auroc) + ("" if one.unusable is None else " (not shown to be better than chance)"),
            )
        )
    return table(f"Calibrations: {title}", [*columns], rows)


def _in_brackets(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return number(interval.estimate) + (
        "" if interval.low is None else f" [{number(interval.low)}, {number(interval.high)}]"
    )


def agreement_by_slice(slices: Sequence[SliceAgreement], judge: str = "") -> Section:
    """The agreement with people by slice. judge: the name of the judge, if there are several."""
    lead = tuple(slice_findings(slices)) or ("No slice is significantly less accurate than the other samples.",)
    columns = (
        words("slice"),
        Column("n", informative=False),
        Column("accuracy"),
        Column("95% CI", interval=True),
        Column("kappa"),
        Column("95% CI", interval=True),
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
            compared = Cell(signed(one.finding.difference.estimate)), Cell(p_value(one.finding.adjusted_p_value))
        name, n = Cell(f"{one.field}={one.key}", quoted=True), f"{one.accuracy.n:,}"
        wrong = str(one.false_yes), str(one.false_no)
        verdict = Cell("▼ worse", "bad") if one.worse else Cell("")
        rows.append((name, n, *_estimate(one.accuracy), *_estimate(one.kappa), *wrong, *compared, verdict))
    note = (
        "The intervals are corrected for the number of slices. p: one-sided permutation test of whether the slice is "
        "less accurate than the other samples, Holm-adjusted over all slices; slices with fewer than five samples "
        "inside or outside are not tested."
    )
    title = f"Agreement by slice, {judge}" if judge else "Agreement by slice"
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
    columns = (words("agreement"), Column("estimate"), Column("95% CI", interval=True))
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
    limit = Column("95% CI", interval=True)
    columns = (words("probability of yes"), Column("ECE"), limit, Column("Brier score"), limit, words("saved"))
    section = table("Calibration error", columns, rows)
    return Section("Calibration error", tables=(section,), notes=("ECE, Brier score: 0 is best.",))


def _estimate(value: Interval | None) -> tuple[Cell, Cell]:
    if value is None:
        return Cell("-", "strong"), Cell("")
    return Cell(number(value.estimate), "strong"), Cell(limits(value.low, value.high))


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


def _disagreements(calibration: Calibration) -> Section:
    """The samples on which judge and people differ, as far as a report has room for them."""
    found = calibration.disagreements
    columns = (words("sample"), words("error"), Column("score"), words("labels"))
    rows = [
        (
            Cell(one.pair.sample_id, quoted=True),
            ERRORS[one.error],
            f"{one.pair.value:.4g}",
            labels_text(one.pair.labels),
        )
        for one in found[:MOST_DISAGREEMENTS]
    ]
    title = "Disagreements"
    more = len(found) - len(rows)
    notes = (f"The most confident errors. {more:,} more: evalstone view, or to_pandas().",) if more else ()
    tables = (table(title, columns, rows),) if rows else ()
    return Section(title, (disagreements_text(calibration),), tables, notes=notes)


def labels_text(labels: Sequence[float | None]) -> str:
    """The labels of a sample, one per annotator."""
    return ", ".join("-" if label is None else f"{label:.4g}" for label in labels)


def slice_findings(slices: Sequence[SliceAgreement]) -> Iterator[str]:
    """The slices on which the judge is significantly less accurate, as sentences."""
    for one in slices:
        if one.worse and one.finding is not None:
            yield (
                f"{one.field}={one.key}: the judge is less accurate than on the other samples, "
                f"{number(one.accuracy.estimate)} instead of {number(one.finding.rest)} (n = {one.accuracy.n}, "
                f"p {p_value(one.finding.adjusted_p_value)})."
            )


def members_text(comparison: MemberComparison) -> Iterator[str]:
    """What a composite judge's members are worth together, as sentences."""
    votes, best = comparison.votes, comparison.members[0]
    samples = count(comparison.n, "labeled sample")
    if votes is not None:
        yield (
            f"The {len(comparison.members)} votes are worth about {number(votes.votes.estimate, 1)} independent ones "
            f"(95% CI {limits(votes.votes.low, votes.votes.high, 1)}): the correlation of the members' errors is "
            f"{number(votes.correlation.estimate, 2)} "
            f"(95% CI {limits(votes.correlation.low, votes.correlation.high, 2)}; {samples})."
        )
    yield (
        f"The best single member is {best.judge}: accuracy {with_limits(best.accuracy)}, together "
        f"{with_limits(comparison.accuracy)}."
    )
    match comparison.verdict:
        case "better":
            yield "Together, they are more accurate than each member alone."
        case "worse":
            worse = [one.judge for one in comparison.members if (one.difference.high or 0.0) < 0]
            yield f"Together, they are less accurate than {listed(worse)} alone: use a single judge."
        case "inconclusive":
            yield (
                f"Together, they are not shown to be more accurate than it ({signed(best.difference.estimate)}; "
                f"{samples})."
            )
