"""What `evalstone judges` prints. Nothing is asked, and no key is printed: only whether there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.api import DEFAULT_LEDGER
from evalstone.cli.screen import console
from evalstone.errors import ConfigError
from evalstone.judges.base import Judge
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.parse import parse_judge
from evalstone.judges.providers.base import PROVIDERS, ProviderInfo
from evalstone.report.terminal import safe
from evalstone.results.calibration import Calibration, list_calibrations
from evalstone.types import Usage

THOUSAND = 1000
MADE_OF_JUDGES = (
    ("panel(openai/gpt-5.1, google/gemini-2.5-pro, lexical)", "several vote: majority, mean or unanimous"),
    ("cascade(lexical, openai/gpt-5.1, threshold=0.9)", "the second is asked where the first is unsure"),
    ("self_consistency(openai/gpt-5.1(temperature=0.7), n=5)", "one is asked several times, and outvotes itself"),
)


def judges(name: str | None, ledger: str | None) -> None:
    """List all judges, or explain one. Raises ConfigError for a name that is no judge's."""
    screen = console()
    if name is None:
        _list(screen, ledger or DEFAULT_LEDGER)
    else:
        _explain(parse_judge(name), screen, ledger or DEFAULT_LEDGER)


def _list(screen: Console, ledger: str) -> None:
    lexical = LexicalJudge()
    screen.print(Text.assemble(("lexical", "bold"), f"  {lexical.identity}, no key, no network, no cost"))
    screen.print(Text(f"  {lexical.note}", style="dim"))
    _measured(screen, lexical)
    table = _table("language models", "key", "reached at")
    for provider, how in PROVIDERS.items():
        table.add_row(f"{provider}/MODEL", _key(how), Text(_place(how), style="dim"))
    screen.print(table)
    screen.print(Text("What a model is worth on your data: evalstone calibrate --judge … --labels …\n", style="dim"))
    made = _table("made of judges", "how")
    for example, how in MADE_OF_JUDGES:
        made.add_row(example, Text(how, style="dim"))
    screen.print(made)
    _calibrations(screen, list_calibrations(ledger))
    screen.print(Text("\nevalstone judges 'NAME' explains one, and says whether it can be asked.", style="dim"))


def _measured(screen: Console, judge: LexicalJudge) -> None:
    """What was measured of the lexical judge: can it tell supported responses from others?"""
    table = _table("  measured on", "responses", "unsupported", "AUROC [95 %]", "left out of training", "word overlap")
    for one in judge.card.data_sets:
        low, high = one.auroc_interval
        auroc = f"{one.by_source.auroc:.3f} [{low:.3f}, {high:.3f}]"
        counts = f"{one.rows:,}", f"{one.positive:,}"
        table.add_row(f"  {one.name}", *counts, auroc, f"{one.left_out.auroc:.3f}", f"{one.word_overlap_auroc:.3f}")
    screen.print(table)
    screen.print(Text("  0.5 is a coin's, 1 is perfect. docs/lexical-judge.md has the rest.\n", style="dim"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _key(provider: ProviderInfo) -> Text:
    if not provider.key:
        return Text("none" if provider.base_url else "its own", style="dim")
    there = bool(os.environ.get(provider.key))
    return Text.assemble(provider.key, ("  set" if there else "  not set", "green" if there else "dim"))


def _place(provider: ProviderInfo) -> str:
    own = next((name for name in provider.base_url_from if os.environ.get(name)), None)
    if own is not None:
        return f"the URL in {own}"
    return provider.base_url or 'pydantic-ai (pip install "evalstone[providers]")'


def _explain(judge: Judge, screen: Console, ledger: str) -> None:
    screen.print(Text(safe(judge.identity, 500), style="bold"))
    if judge.note:
        screen.print(Text(safe(judge.note, 1000), style="dim"))
    screen.print(Text(""))
    for depth, one in _tree(judge):
        if not one.members:
            name = f"{safe(one.identity, 200)}: " if depth else ""
            screen.print(Text.assemble("  " * depth, name, (f"{_price(one)}; {_ready(one)}", "dim")))
        elif depth:
            screen.print(Text(f"{'  ' * depth}{safe(one.identity, 200)}"))
    # Its members as well, for what they are worth alone is what a judge of judges is held against.
    names = {one.identity for _, one in _tree(judge)}
    known = [one for one in list_calibrations(ledger) if one.judge in names]
    _calibrations(screen, known)
    if all(one.judge != judge.identity for one in known):
        screen.print(Text("\nNot calibrated here: evalstone calibrate --judge … --labels …", style="dim"))


def _tree(judge: Judge, depth: int = 0) -> Iterator[tuple[int, Judge]]:
    yield depth, judge
    for member in judge.members:
        yield from _tree(member, depth + 1)


def _price(judge: Judge) -> str:
    if not judge.cacheable:
        return "free"
    # Of a thousand tokens, for some prices rise with the length of a question.
    prices = [judge.price(usage) for usage in (Usage(THOUSAND, 0), Usage(0, THOUSAND))]
    told = [f"${THOUSAND * price:g}" for price in prices if price is not None]
    return f"{' and '.join(told)} for a million input and output tokens" if len(told) == 2 else "price unknown"


def _ready(judge: Judge) -> str:
    try:
        judge.check()
    except ConfigError as error:
        return f"cannot be asked: {error}"
    return "can be asked"


def _calibrations(screen: Console, known: Sequence[Calibration]) -> None:
    """What was measured with labels of the user's own."""
    if known:
        screen.print(Text(""))
        screen.print(calibrations_table("calibrated here", known))


def calibrations_table(title: str, known: Sequence[Calibration]) -> Table:
    """A line for each calibration: whose it is, on what, and how far the judge was right."""
    from evalstone.results.calibration.measures import measured  # noqa: PLC0415 - scipy, which only a calibration needs

    table = _table(title, "scorer", "on", "accuracy [95 %]", "kappa", "AUROC")
    for one in known:
        found = measured(one)
        accuracy, kappa = found.usual.accuracy, found.usual.kappa
        shown = "-" if accuracy is None else f"{accuracy.mean:.3f} [{accuracy.low:.3f}, {accuracy.high:.3f}]"
        table.add_row(
            safe(one.judge, 100),
            one.name,
            safe(f"{one.dataset}, {len(one.pairs)} labelled", 60),
            shown,
            "-" if kappa is None else f"{kappa.mean:.3f}",
            "-" if found.auroc is None else f"{found.auroc.mean:.3f}",
        )
    return table
