"""What a run has asked and paid, and how long it took, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, money
from evalstone.results.summary import CORRECTION_COUNTS, TINY

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerSummary


def calls_text(lines: Sequence[ScorerSummary]) -> str:
    """How many judge calls were made, and how many answers were shared and cached."""
    counts = (f"{sum(getattr(line, source) for line in lines):,} {source}" for source in ("asked", "shared", "cached"))
    return f"judge calls: {', '.join(counts)}"


def corrections_text(run: Run) -> str:
    """How many malformed replies were corrected and calls lost; "" if there were none."""
    asked, helped, lost = (sum(getattr(line, name) for line in run.summary) for name in CORRECTION_COUNTS)
    parts = [f"{count(asked, 'correction')} of malformed replies, {helped:,} helped"] if asked else []
    paid = "" if _is_imported(run) else f" {'was' if lost == 1 else 'were'} paid and"
    return "; ".join([*parts, f"{count(lost, 'judge call')}{paid} gave no answer"] if lost else parts)


def cost_text(run: Run) -> str:
    """The cost of the run: the cost in results, the cost outside of them, the cost of a target, and, for an interrupted
    run, the cost of this invocation; "" if nothing with a known price was asked: no judge, no user, no target."""
    if run.judge == "none" and run.cost == 0 and (run.target is None or run.target.cost is None):
        return ""
    if run.cost is None or run.interrupted_cost is None:
        return f"cost {money(run.cost)}{_this_call(run)}"
    parts: dict[str, float | None] = {"results": run.judge_cost}
    if run.target is not None:
        parts = {"target": run.target.cost, "user": run.target.user_cost or None, "judge": run.judge_cost}
    if run.interrupted_cost > TINY:
        parts["interrupted samples"] = run.interrupted_cost
    known = [f"{name} {money(cost)}" for name, cost in parts.items() if cost is not None]
    if list(parts) == ["results"]:
        known.clear()
    elif len(known) == 1:
        return f"judge cost {money(run.judge_cost)}{_this_call(run)}"
    split = f" ({', '.join(known)})" if known else ""
    return f"cost {money(run.cost)}{split}{_this_call(run)}"


def _this_call(run: Run) -> str:
    """The cost of this invocation of an interrupted run; "" if it is the whole cost."""
    if run.paid is None or run.cost is None or run.paid.this_call is None:
        return ""
    return "" if run.cost - run.paid.this_call < TINY else f", {money(run.paid.this_call)} of it in this call"


def _is_imported(run: Run) -> bool:
    """Whether another tool made the calls, which may not say what it paid."""
    return any(line.info.tool for line in run.summary)


def duration_text(run: Run) -> str:
    """The duration; of a resumed run, with the time since which it counts. "" for an imported run whose file doesn't
    say it."""
    if not run.seconds and _is_imported(run):
        return ""
    since = f" since it was resumed ({run.resumed_at[:19].replace('T', ' ')} UTC)" if run.resumed_at else ""
    return f"{run.seconds:.1f} s{since}"
