"""What `evalstone audit` does, and the table that it prints."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from evalstone._core import sync
from evalstone.api import DEFAULT_LEDGER
from evalstone.cli.commands import FAILED, GO_ON, INTERRUPTED, INTERRUPTION, OK
from evalstone.cli.screen import console
from evalstone.datasets.demo import DEMO_DATA
from evalstone.datasets.writing import json_line
from evalstone.judge_quality import audit as auditor
from evalstone.judge_quality.audit import AuditConfig
from evalstone.judge_quality.calibrate import JudgeOptions
from evalstone.judge_quality.perturbations import PERTURBATIONS
from evalstone.report.quality_view import audit_view
from evalstone.report.terminal import show
from evalstone.report.text import money, safe
from evalstone.types import NO_USAGE, total_cost


@dataclass(frozen=True)
class Subject:
    """What is audited, and on what."""

    data: str | None
    scorers: list[str]
    judge: Any
    ledger: str | None


def auditing(edits: list[str], paraphrases: list[str], samples: int, threshold: float | None) -> AuditConfig:
    """What is tried."""
    return AuditConfig(perturbations=tuple(edits), paraphrases=tuple(paraphrases), samples=samples, threshold=threshold)


def audit(subject: Subject, how: AuditConfig, ask: JudgeOptions, *, as_json: bool) -> int:
    """Audit and show; the exit code."""
    made = auditor.audit(
        subject.data or DEMO_DATA,
        subject.scorers,
        judge=subject.judge,
        ledger=subject.ledger or DEFAULT_LEDGER,
        config=how,
        options=ask,
    )
    if made.stop_reason == INTERRUPTION:
        sys.stderr.write(f"The audit was interrupted; what was judged is in the ledger: {GO_ON}\n")
        return INTERRUPTED
    if as_json:
        sys.stdout.write(json_line(made.to_dict()) + "\n")
    else:
        show(audit_view(made), console())
    return FAILED if made.failed or made.stop_reason else OK


def dry_run(subject: Subject, how: AuditConfig, ask: JudgeOptions) -> None:
    """Print what an audit would ask and cost."""
    ledger = None if not ask.use_cache else subject.ledger or DEFAULT_LEDGER
    work = auditor.estimate_audit(
        subject.data or DEMO_DATA, subject.scorers, judge=subject.judge, ledger=ledger, config=how, options=ask
    )
    found = sync.run(work)
    first, again = found[:2]
    price = total_cost(one.cost for one in found)
    usage = sum((one.usage for one in found), NO_USAGE)
    tokens = f"about {usage.input:,} input and {usage.output:,} output tokens"
    cost = "cost unknown" if price is None else f"about {money(price)}"
    screen = console()
    screen.print(Text(f"{first.samples} versions of {again.samples} samples, judged by {safe(first.judge)}."))
    told = f"Nothing was asked. It would take {sum(one.calls for one in found):,} calls, {tokens}, {cost}"
    screen.print(Text(f"{told}; estimated, retries and reasoning tokens come on top."))


def list_edits() -> None:
    """Print the edits with what a judge that minds them is swayed by."""
    table = _table("edit", "family", "swayed by")
    for edit in PERTURBATIONS.values():
        table.add_row(edit.name, edit.family, edit.why)
    console().print(table)


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    texts = ("edit", "family", "swayed by", "swayed")
    for name in names:
        table.add_column(name, justify="left" if name in texts else "right", no_wrap=name == "edit")
    return table
