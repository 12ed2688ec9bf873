"""A calibration on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.reliability import reliability_lines
from evalstone.report.terminal import safe
from evalstone.results.calibration import Calibration
from evalstone.results.calibration_measures import Annotators, CalibrationMeasures, Verdicts, measure
from evalstone.stats.intervals import Interval
from evalstone.stats.roc import auroc

FEW = 20
MOST_WORDS = 8
_ROWS: Mapping[str, Callable[[Verdicts], Interval | float | None]] = {
    "sensitivity": lambda v: v.sensitivity,
    "specificity": lambda v: v.specificity,
    "accuracy": lambda v: v.accuracy,
    "balanced accuracy": lambda v: v.measures["balanced_accuracy"],
    "precision": lambda v: v.measures["precision"],
    "F1": lambda v: v.measures["f1"],
    "Cohen's kappa": lambda v: v.kappa,
}


def show_calibration(calibration: Calibration, console: Console) -> None:
    """Print a calibration: what was compared, the confusion tables, the measures, the reliability diagram."""
    found = measure(calibration)
    for line in _heading(calibration):
        console.print(line)
    for one in (found.at_default, found.at_fitted):
        if one is not None:
            console.print(_confusion(one))
    console.print(_verdicts(calibration, found))
    for line in _ranking(calibration, found):
        console.print(line)
    if found.annotators is not None:
        console.print(_annotators(calibration, found.annotators))
    if found.raw is not None:
        console.print(_probabilities(calibration, found))
        console.print(Text("\nReliability diagram of the scores as they stand", style="bold"))
        console.print(Text("\n".join(reliability_lines(found.raw.bins))))
        told = "o share of yes among people, - its 95 % interval, | mean score of the bin, * both"
        console.print(Text(told, style="dim"))
    for caution in cautions(calibration):
        console.print(Text(f"Note: {caution}", style="yellow"))


def cautions(calibration: Calibration) -> list[str]:
    """What a reader must know before relying on a calibration, a sentence each."""
    truths = [truth for _, truth in calibration.decided]
    yes, no = sum(truths), len(truths) - sum(truths)
    told: list[str] = []
    if not truths:
        told.append("annotators are evenly split on every sample: no verdict can be checked, no threshold was learned.")
    elif not yes or not no:
        only = "yes" if yes else "no"
        told.append(f"every label says {only}: nothing can be said of the others, and no threshold was learned.")
    elif min(yes, no) < FEW:
        told.append(f"{yes} yes and {no} no are few labels: read the intervals, not the estimates.")
    if len(truths) > 1 and len({value for value, _ in calibration.decided}) == 1:
        told.append("the judge gave all of them one score: it tells none from another, whatever the threshold.")
    area = auroc([value for value, _ in calibration.decided], truths)
    if area is not None and area.high is not None and area.high < 0.5:
        better = "lower" if calibration.lower_is_better else "higher"
        told.append(
            f"scores rank against the labels. Yes is what a full score of {safe(calibration.name)} says, where "
            f"{better} is better: have labels that mean the opposite been read as yes?"
        )
    if truths and calibration.undecided:
        told.append(
            f"{calibration.undecided} samples on which annotators are evenly split are left out of the verdicts."
        )
    if calibration.skipped or calibration.failed:
        told.append(f"{calibration.skipped} labelled samples were skipped and {calibration.failed} failed.")
    if calibration.stop_reason:
        told.append(f"the run ended before its end ({safe(calibration.stop_reason)}); the calibration was not kept.")
    return told


def _heading(calibration: Calibration) -> Iterable[Text]:
    what = f"{len(calibration.pairs)} labelled samples, {safe(calibration.name)} judged by "
    yield Text.assemble((safe(calibration.dataset), "bold"), f": {what}", (safe(calibration.judge), "bold"))
    columns = ", ".join(safe(column, 40) for column in calibration.columns)
    words = [f"{safe(word, 40)} = {'yes' if share else 'no'}" for word, share in calibration.words.items()]
    more = [f"and {len(words) - MOST_WORDS} more"] * (len(words) > MOST_WORDS)
    read = "".join(f"; {', '.join([*words[:MOST_WORDS], *more])}" for _ in words[:1])
    yield Text(f"Labels: {columns}{read}; yes from {calibration.label_threshold:g} on", style="dim")


def _confusion(one: Verdicts) -> Table:
    table = _table(f"\nthreshold {one.threshold:.4g}", "people: yes", "people: no")
    counts = one.confusion
    table.add_row("judge: yes", str(counts.tp), str(counts.fp))
    table.add_row("judge: no", str(counts.fn), str(counts.tn))
    return table


def _verdicts(calibration: Calibration, found: CalibrationMeasures) -> Table:
    chosen, learned = found.at_fitted, calibration.threshold
    headers = [f"\nat {found.at_default.threshold:.4g}, as it stands", "\n95 % interval"]
    if chosen is not None and learned is not None:
        best = learned.objective.replace("_", " ")
        headers += [f"at {chosen.threshold:.4g}, best\n{best}", "\n95 % interval", "cross-\nvalidated"]
    table = _table("", *headers)
    for name, value in _ROWS.items():
        cells = _cells(value(found.at_default))
        if chosen is not None and learned is not None:
            same = learned.objective.replace("_", " ") in (name.lower(), name.lower().removeprefix("cohen's "))
            cells += [*_cells(value(chosen)), _number(learned.cross_validated) if same else ""]
        table.add_row(name, *cells)
    return table


def _ranking(calibration: Calibration, found: CalibrationMeasures) -> Iterable[Text]:
    area, spread = _cells(found.auroc)
    yield Text(f"\nAUROC {area}" + (f" ({spread})" if spread else ""))
    direction = "above" if found.mean_error >= 0 else "below"
    yield Text(
        f"Scores lie {abs(found.mean_error):.3f} {direction} the labels on average, "
        f"{found.mean_absolute_error:.3f} from them; Krippendorff's alpha of the two: {_number(found.alpha['ordinal'])} ordinal, "
        f"{_number(found.alpha['interval'])} interval (scale {calibration.scale:g})"
    )


def _annotators(calibration: Calibration, found: Annotators) -> Text:
    alpha = ", ".join(f"{_number(value)} {level}" for level, value in found.alpha.items())
    lines = [
        f"\n{found.columns} annotators among themselves: Fleiss' kappa {_number(found.fleiss_kappa)}, "
        f"Gwet's AC1 {_number(found.gwet_ac1)}",
        f"  Krippendorff's alpha {alpha}",
    ]
    names = calibration.columns if len(calibration.columns) == found.columns else ()
    for number, kappa in enumerate(found.judge_kappa):
        name = safe(names[number], 40) if names else f"annotator {number + 1}"
        lines.append(f"  the judge with {name}: Cohen's kappa {' '.join(_cells(kappa))}")
    return Text("\n".join(lines))


def _probabilities(calibration: Calibration, found: CalibrationMeasures) -> Table:
    table = _table("\nas a probability of yes", "\nECE", "\nBrier", "")
    if found.raw is not None:
        table.add_row("scores as they stand", _number(found.raw.ece), _number(found.raw.brier), "")
    kept = None if calibration.recalibration is None else calibration.recalibration.to_dict()["kind"]
    for method, one in found.recalibrated.items():
        note = "kept" if method == kept else ""
        table.add_row(f"{method}, on samples held out", _number(one.ece), _number(one.brier), note)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right")
    return table


def _cells(value: Interval | float | None) -> list[str]:
    """An estimate and its interval."""
    if not isinstance(value, Interval):
        return [_number(value), ""]
    if value.low is None or value.high is None:
        return [_number(value.mean), "-"]
    return [_number(value.mean), f"{value.low:.3f} to {value.high:.3f}"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
