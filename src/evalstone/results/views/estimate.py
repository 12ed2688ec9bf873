"""What an estimate shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstone._core.display import count, money, safe
from evalstone.models.prices import at_batch_price
from evalstone.report.view import Cell, Column, Section, Table, View, words

if TYPE_CHECKING:
    from evalstone.results.estimate import Estimate, JudgeEstimate, ScorerEstimate
    from evalstone.types import Usage


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a run would be done, as far as its cost and its duration depend on it."""

    batch: bool = False
    """Whether judges are asked in batches."""
    files: bool = False
    """Whether the batches are files, which take as long as it takes to answer them."""
    discount: bool = False
    """Whether judges are asked at the price of batches."""
    concurrency: int | None = None
    """How many samples are scored at a time; None if that is open."""
    budget: float | None = None
    """US dollars; None for no limit."""


def estimate_view(work: Estimate, terms: Terms = Terms()) -> View:
    """The calls of each scorer, and those of each judge with their cost."""
    return View(work.dataset_name, f"{planned(work)} · dry run", tuple(estimate_sections(work, terms)))


def estimate_sections(work: Estimate, terms: Terms, of: str = "") -> Iterator[Section]:
    """The calls of each scorer, and those of each judge with their cost, if they can be estimated. of: the run, for
    titles."""
    lead = () if work.target is None else tuple(_of_target(work))
    if work.target is not None and _asks(work) and work.without_stand_in == work.samples:
        yield Section(f"{of}Calls", lead)
        return
    calls = scorers_table(work.scorers, f"{of}Calls by scorer")
    yield Section(f"{of}Calls by scorer", lead, (calls,), notes=open_calls(work), warnings=failures(work))
    tables = (judges_table(work.judges, f"{of}Calls by judge"),) if len(work.judges) > 1 else ()
    cost, budget = tuple(_cost(work, terms)), tuple(_budget(work, terms))
    yield Section(f"{of}Judge calls and cost", cost, tables, warnings=budget)


def _asks(work: Estimate) -> bool:
    return work.judge != "none"


def _of_target(work: Estimate) -> Iterator[str]:
    """The number of target calls, and what judge calls are estimated from."""
    stored = f" ({work.target_answers:,} answers are in the ledger)" if work.target_answers else ""
    at_most = "at most " if work.open_ended else ""
    yield f"Target calls: {at_most}{work.target_calls:,}{stored}; their cost is unknown"
    if work.user_judge is not None:
        calls = f"{work.user_judge}, which plays the user, is called before each and once at the end"
        yield f"{calls}; these calls are not counted below"
    if not _asks(work):
        return
    if not (known := work.samples - work.without_stand_in):
        no_stand_in = "no sample has an output or a reference to stand in for an answer"
        yield f"Judge calls can't be estimated: {no_stand_in}."
        return
    others = f" of {known:,} of the {work.samples:,} samples; the others have neither" if work.without_stand_in else ""
    yield f"Judge calls are estimated from the outputs, or else the references{others}:"


def _cost(work: Estimate, terms: Terms) -> Iterator[str]:
    """The judge calls by kind of question, their tokens and cost, and how long they take."""
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in work.kinds.items()) or "none"
    yield f"Judge calls: {kinds}"
    least = "At least " if any(line.open for line in work.scorers) else ""
    yield least + expense(work.calls, work.usage, _price(work, terms), " at the batch price" if terms.discount else "")
    if terms.batch:
        within = "" if terms.files else "Batches finish within a day. "
        yield f"{within}Calls that depend on earlier answers go into later batches."
    elif work.cost != 0 and work.target is None and terms.concurrency is not None:
        seconds = work.seconds(terms.concurrency)
        yield f"About {seconds:.0f} s at {work.seconds_per_call:g} s per call and a concurrency of {terms.concurrency}."


def _budget(work: Estimate, terms: Terms) -> Iterator[str]:
    price = _price(work, terms)
    if terms.budget is not None and price is not None and price > terms.budget:
        yield f"This is above the budget of ${terms.budget:g}: the run would stop early."


def _price(work: Estimate, terms: Terms) -> float | None:
    return at_batch_price(work.cost) if terms.discount else work.cost


def planned(work: Estimate) -> str:
    """Samples and trials, target and judge."""
    target = "" if work.target is None else f" · target {work.target}"
    samples = count(work.samples, "sample") + (f" × {work.trials:,} trials" if work.trials > 1 else "")
    return f"{samples}{target} · judge {work.judge}"


def open_calls(work: Estimate) -> tuple[str, ...]:
    """The scorers whose calls depend on the target's answers."""
    return tuple(
        f"{line.name}: the calls for {count(line.open, 'sample')} depend on the answer: {line.open_reason}"
        for line in work.scorers
        if line.open
    )


def failures(work: Estimate) -> tuple[str, ...]:
    """The scorers that would fail, with their first error."""
    return tuple(
        f"{line.name}: {count(line.n_failed, 'sample')} would fail: {line.error}"
        for line in work.scorers
        if line.n_failed
    )


def scorers_table(scorers: Sequence[ScorerEstimate], caption: str) -> Table:
    """The calls of each scorer."""
    titles = ("asked", "shared", "cached", "input tokens", "output tokens", "skipped")
    rows = tuple(
        _row(line.name, line.asked, line.shared, line.cached, line.usage.input, line.usage.output, line.n_skipped)
        for line in scorers
    )
    return Table(caption, (words("scorer"), *map(Column, titles)), rows)


def judges_table(judges: Sequence[JudgeEstimate], caption: str) -> Table:
    """The calls and cost of each judge."""
    rows = tuple(
        (
            *_row(judge.judge, judge.calls, judge.usage.input, judge.usage.output),
            Cell("unknown" if judge.cost is None else money(judge.cost)),
        )
        for judge in judges
    )
    titles = ("calls", "input tokens", "output tokens", "cost")
    return Table(caption, (words("judge"), *map(Column, titles)), rows)


def _row(name: str, *numbers: int) -> tuple[Cell, ...]:
    return Cell(safe(name, 200)), *(Cell(f"{number:,}") for number in numbers)


def expense(calls: int, usage: Usage, price: float | None, note: str = "") -> str:
    """The estimated tokens and cost of judge calls, on one line."""
    cost = "cost unknown" if price is None else f"about {money(price)}{note}"
    tokens = f"about {usage.input:,} input and {usage.output:,} output tokens"
    return f"{count(calls, 'call')}, {tokens}, {cost}; retries and reasoning tokens not included"
