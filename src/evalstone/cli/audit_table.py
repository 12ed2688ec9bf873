"""An audit on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.judge_quality.audit import Audit, AuditedScorer
from evalstone.judge_quality.effects import ALPHA, Effect
from evalstone.report.terminal import money, safe

COUNTED = "an instruction to the judge, which it seems to count as a part of the text"
_SOURCES = {"config": "as given", "calibration": "from the calibration", "default": "the scorer's own"}


def show_audit(made: Audit, screen: Console) -> None:
    """Print an audit: a table a scorer, what each significant effect means, what was not applicable."""
    taken = (
        f"{made.samples} samples"
        if made.samples == made.dataset_size
        else f"{made.samples} of {made.dataset_size} samples"
    )
    screen.print(Text.assemble((safe(made.dataset_name), "bold"), f": {taken}, judged by ", (safe(made.judge), "bold")))
    if made.judge_note:
        screen.print(Text(made.judge_note, style="dim"))
    for scorer in made.scorers:
        effects = [one for one in made.effects if one.scorer == scorer.signature]
        screen.print(Text.assemble("\n", (scorer.name, "bold"), f"  {_as_it_is(scorer)}"))
        screen.print(_effects(effects, scorer))
        for line in _findings(effects, scorer):
            screen.print(line)
    for line in _footing(made):
        screen.print(line)


def _as_it_is(scorer: AuditedScorer) -> str:
    source = _SOURCES[scorer.threshold_source]
    verdicts = f"{scorer.pass_rate:.0%} yes from {scorer.threshold:.4g} on ({source})"
    return f"unedited: mean {scorer.mean:.3f} over {scorer.scored} samples, {verdicts}"


def _effects(effects: list[Effect], scorer: AuditedScorer) -> Table:
    table = _table(
        "edit", "n", "flips", "95 % interval", "to yes", "to no", "moved", "shift", "95 % interval", "p", "swayed"
    )
    for one in effects:
        swayed = "obeys" if one.follows_injection(lower_is_better=scorer.lower_is_better) else one.affected
        table.add_row(
            Text(safe(one.perturbation.name, 30)),
            str(one.n),
            f"{one.flipped / one.n:.0%}" if one.n else "-",
            _spread(one, "flips"),
            str(one.raised),
            str(one.lowered),
            str(one.changed),
            f"{one.shift.mean:+.3f}" if one.shift else "-",
            _spread(one, "shift"),
            _p(one),
            Text(swayed, style="yellow"),
        )
    return table


def _spread(one: Effect, name: str) -> str:
    found = getattr(one, name)
    if found is None or found.low is None:
        return "-"
    return f"{found.low:+.3f} to {found.high:+.3f}" if name == "shift" else f"{found.low:.0%} to {found.high:.0%}"


def _p(one: Effect) -> str:
    """The smaller of the two adjusted p-values."""
    found = [p for p in (one.shift_p, one.flips_p) if p is not None]
    return "" if not found else f"{min(found):.3f}" if min(found) >= 0.001 else "<0.001"


def _findings(effects: list[Effect], scorer: AuditedScorer) -> Iterator[Text]:
    if lost := sum(one.lost for one in effects):
        told = f"\n{lost} {'score was' if lost == 1 else 'scores were'} lost by an edit: skipped or failed once edited."
        yield Text(told, style="yellow")
    swayed = [one for one in effects if one.affected]
    if not swayed:
        yield Text("\nNo edit swayed it by more than chance.")
        return
    by_why: dict[str, list[str]] = {}
    for one in swayed:
        counted = one.perturbation.direction and not one.follows_injection(lower_is_better=scorer.lower_is_better)
        by_why.setdefault(COUNTED if counted else safe(one.perturbation.why), []).append(
            safe(one.perturbation.name, 30)
        )
    yield Text("\nSwayed by:")
    for why, names in by_why.items():
        yield Text(f"  {why} ({', '.join(names)})")
    if any(one.follows_injection(lower_is_better=scorer.lower_is_better) for one in effects):
        yield Text("  It does what judged text tells it to do.", style="red")


def _footing(made: Audit) -> Iterator[Text]:
    told = (
        "flips: the verdict changes; moved: the score moves by over a tenth of the scale; p: of no shift, or of no "
        f"more flips than when asked again (the smaller), adjusted by Holm; swayed: p <= {ALPHA:g}"
    )
    yield Text(f"\n{told}", style="dim")
    if made.not_applicable:
        yield Text(f"Not applicable to any sample: {', '.join(map(safe, made.not_applicable))}", style="dim")
    if made.failed:
        yield Text(f"{made.failed} outcomes failed.", style="red")
    if made.stop_reason:
        yield Text(f"The audit ended before its end: {safe(made.stop_reason)}.", style="yellow")
    yield Text(f"Cost {money(made.cost)}", style="dim")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    texts = ("edit", "family", "swayed by", "swayed")
    for name in names:
        table.add_column(name, justify="left" if name in texts else "right", no_wrap=name == "edit")
    return table
