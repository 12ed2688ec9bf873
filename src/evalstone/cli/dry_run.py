"""What `--dry-run` shows: the estimated calls, tokens and cost, in every format of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstone._core.display import count
from evalstone._core.file_format import AUDIT_ESTIMATE_FORMAT, EXPERIMENT_ESTIMATE_FORMAT
from evalstone._core.json import to_jsonable
from evalstone.cli.output import formats, present
from evalstone.report.view import Section, View, bare_judge
from evalstone.results.views.estimate import Terms, estimate_sections, estimate_view, expense, judges_table, planned

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.cli.options import Outputs
    from evalstone.results.estimate import Estimate
    from evalstone.run.plan import Plan


def show_estimate(plan: Plan, config: RunConfig) -> None:
    """Show the estimated calls and cost of a run."""
    work = _estimate(plan, config)
    view = estimate_view(work, _terms(config, plan))
    present(view, formats(view, config, work.to_dict()))


def show_estimates(cells: Mapping[str, tuple[Plan, RunConfig]], outputs: Outputs) -> None:
    """Show the estimated calls and cost of each run of an experiment."""
    estimates = {name: _estimate(*cell) for name, cell in cells.items()}
    sections: list[Section] = []
    for name, work in estimates.items():
        plan, config = cells[name]
        lead = f"{work.dataset_name}: {planned(work)}"
        sections += [Section(name, (lead,)), *estimate_sections(work, _terms(config, plan), f"{name}: ")]
    view = View("Experiment", f"{count(len(cells), 'run')} · dry run", tuple(sections))
    runs = {name: estimate.to_dict() for name, estimate in estimates.items()}
    present(view, formats(view, outputs, {"format": EXPERIMENT_ESTIMATE_FORMAT, "runs": runs}))


def show_audit_estimate(estimates: Sequence[Estimate], outputs: Outputs) -> None:
    """Show the estimated calls and cost of an audit: those for the versions of the samples, and for the samples."""
    from evalstone.results.estimate import by_judge
    from evalstone.types import NO_USAGE, total_cost

    versions, plain = (estimate.samples for estimate in estimates[:2])
    judge, judges = bare_judge(estimates[0].judge), by_judge(estimates)
    usage = sum((estimate.usage for estimate in estimates), NO_USAGE)
    calls, cost = sum(estimate.calls for estimate in estimates), total_cost(estimate.cost for estimate in estimates)
    view = View(
        "Judge audit",
        f"{count(versions, 'version')} of {count(plain, 'sample')} · judge {judge} · dry run",
        (Section("", (expense(calls, usage, cost),), (judges_table(judges, "Calls by judge"),)),),
    )
    data = {
        "format": AUDIT_ESTIMATE_FORMAT,
        "judge": judge,
        "versions": versions,
        "samples": plain,
        "judges": to_jsonable(judges),
        "calls": calls,
        "usage": to_jsonable(usage),
        "cost": cost,
    }
    present(view, formats(view, outputs, data))


def _estimate(plan: Plan, config: RunConfig) -> Estimate:
    from evalstone._core import sync
    from evalstone.run.dry_run import estimate

    return sync.run(estimate(plan, ledger=config.ledger if config.cache else None))


def _terms(config: RunConfig, plan: Plan) -> Terms:
    from evalstone.models.batch import batch_api
    from evalstone.run.batch.runner import batch_judge

    terms = Terms(batch=config.batching, concurrency=config.concurrency, budget=config.budget)
    if not config.batching:
        return terms
    api = batch_api(batch_judge(plan.judge), config.batch_files)
    return replace(terms, files=config.batch_files is not None, discount=api.price(1.0) != 1.0)
