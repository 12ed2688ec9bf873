"""What `--dry-run` shows: the estimated calls, tokens and cost, in every format of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count
from evalstone._core.file_format import AUDIT_ESTIMATE_FORMAT, EXPERIMENT_ESTIMATE_FORMAT
from evalstone._core.json import to_jsonable
from evalstone.cli.output import formats, present
from evalstone.report.view import Section, View, bare_judge
from evalstone.results.views.estimate import expense, failures, judges_table, open_calls, planned, scorers_table

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.cli.options import Outputs
    from evalstone.results.estimate import Estimate
    from evalstone.run.plan import Plan


def show_estimate(plan: Plan, config: RunConfig) -> None:
    """Show the estimated calls and cost of a run."""
    work = _estimate(plan, config)
    view = View(plan.dataset.name, f"{planned(work)} · dry run", tuple(_sections(work, plan, config)))
    present(view, formats(view, config, work.to_dict()))


def show_estimates(cells: Mapping[str, tuple[Plan, RunConfig]], outputs: Outputs) -> None:
    """Show the estimated calls and cost of each run of an experiment."""
    estimates = {name: _estimate(*cell) for name, cell in cells.items()}
    sections: list[Section] = []
    for name, (plan, config) in cells.items():
        of_cell = _sections(estimates[name], plan, config, f"{name}: ")
        lead = f"{plan.dataset.name}: {planned(estimates[name])}"
        sections += [Section(name, (lead,)), *of_cell]
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


def _sections(work: Estimate, plan: Plan, config: RunConfig, of: str = "") -> Iterator[Section]:
    """The calls of each scorer, and those of each judge with their cost, if they can be estimated."""
    if plan.target is not None:
        lead, known = _of_target(work, plan)
        if not known:
            yield Section(f"{of}Calls", lead)
            return
    else:
        lead = ()
    scorers = scorers_table(work.scorers, f"{of}Calls by scorer")
    yield Section(f"{of}Calls by scorer", lead, (scorers,), notes=open_calls(work), warnings=failures(work))
    tables = (judges_table(work.judges, f"{of}Calls by judge"),) if len(work.judges) > 1 else ()
    yield Section(
        f"{of}Judge calls and cost", tuple(_cost(work, plan, config)), tables, warnings=tuple(_budget(work, config))
    )


def _of_target(work: Estimate, plan: Plan) -> tuple[tuple[str, ...], bool]:
    """The number of target calls, and what judge calls are estimated from; and whether they can be."""
    stored = f" ({work.target_answers:,} answers are in the ledger)" if work.target_answers else ""
    turns = plan.user is not None or any(len(sample.turns) > 1 for sample in plan.dataset)
    at_most = "at most " if turns else ""
    lead = [f"Target calls: {at_most}{work.target_calls:,}{stored}; their cost is unknown"]
    if plan.user is not None and plan.user.judges:
        calls = f"{plan.user.judges[0].identity}, which plays the user, is called before each and once at the end"
        lead.append(f"{calls}; these calls are not counted below")
    if not plan.asked_judges:
        return (*lead,), True
    known = work.samples - work.without_stand_in
    if not known:
        no_stand_in = "no sample has an output or a reference to stand in for an answer"
        return (*lead, f"Judge calls can't be estimated: {no_stand_in}."), False
    coverage = (
        f" of {known:,} of the {work.samples:,} samples; the others have neither" if work.without_stand_in else ""
    )
    return (*lead, f"Judge calls are estimated from the outputs, or else the references{coverage}:"), True


def _cost(work: Estimate, plan: Plan, config: RunConfig) -> Iterator[str]:
    """The judge calls by kind of question, their tokens and cost, and how long they take."""
    from evalstone.results.estimate import SECONDS_PER_CALL

    kinds = ", ".join(f"{number:,} {kind}" for kind, number in work.kinds.items()) or "none"
    yield f"Judge calls: {kinds}"
    least = "At least " if any(line.open for line in work.scorers) else ""
    yield least + expense(work.calls, work.usage, _price(work, config), " at the batch price" if config.batch else "")
    if config.batch:
        yield "Batches finish within a day. Calls that depend on earlier answers go into later batches."
    elif work.cost != 0 and plan.target is None:
        seconds = work.seconds(config.concurrency)
        yield f"About {seconds:.0f} s at {SECONDS_PER_CALL:g} s per call and a concurrency of {config.concurrency}."


def _budget(work: Estimate, config: RunConfig) -> Iterator[str]:
    price = _price(work, config)
    if config.budget is not None and price is not None and price > config.budget:
        yield f"This is above the budget of ${config.budget:g}: the run would stop early."


def _price(work: Estimate, config: RunConfig) -> float | None:
    from evalstone.models.prices import at_batch_price

    return at_batch_price(work.cost) if config.batch else work.cost
