"""What a run would cost: its calls, tokens and price, as a dry run estimates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from evalstone._core.file_format import ESTIMATE_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone.report.shown import Shown
from evalstone.report.view import bare_judge
from evalstone.types import Usage, total_cost

if TYPE_CHECKING:
    from evalstone.report.view import View


def _repeated(usage: Usage, times: int) -> Usage:
    return Usage(usage.input * times, usage.output * times, usage.cached * times, usage.requests * times)


@dataclass(kw_only=True)
class ScorerEstimate:
    """The judge calls of one scorer."""

    name: str
    asked: int = 0
    """Judge calls that would be made."""
    shared: int = 0
    """Questions that another scorer or sample asks, too."""
    cached: int = 0
    """Questions with an answer in the ledger."""
    n_skipped: int = 0
    """Samples that it would skip. With a target, those that lack a field that no answer fills."""
    open: int = 0
    """Samples whose calls depend on the target's answer, so they can't be estimated. Not multiplied by trials."""
    open_reason: str = ""
    """The reason for the first of them, such as a missing field."""
    n_failed: int = 0
    error: str = ""
    """The first failure, such as a question that is too long for the judge."""
    usage: Usage = field(default_factory=Usage)
    """The tokens of the calls."""
    kinds: set[str] = field(default_factory=set[str])
    """The kinds of questions of the calls."""

    def repeat(self, times: int) -> None:
        """Multiply all counts."""
        for name in ("asked", "shared", "cached", "n_skipped", "n_failed"):
            setattr(self, name, getattr(self, name) * times)
        self.usage = _repeated(self.usage, times)


@dataclass(kw_only=True)
class JudgeEstimate:
    """The calls of one single judge, which may be a member of a composite judge."""

    judge: str
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    """US dollars; None if the price is unknown."""

    def repeat(self, times: int) -> None:
        """Multiply all counts."""
        self.calls *= times
        self.usage = _repeated(self.usage, times)
        self.cost = None if self.cost is None else self.cost * times


@dataclass(frozen=True, kw_only=True)
class Estimate(Shown):
    """The estimated calls and cost of a run, as `dry_run` returns and `--dry-run` shows them."""

    seconds_per_call: ClassVar[float] = 2.0
    """How long a judge call is assumed to take."""

    dataset_name: str
    trials: int
    target: str | None
    """The identity of the target; None if there is none."""
    judge: str
    """The judges of the scorers, comma-separated; "none" if there are none."""
    samples: int
    scorers: tuple[ScorerEstimate, ...]
    judges: tuple[JudgeEstimate, ...]
    """The single judges that would be called, in the order of their first call."""
    kinds: Mapping[str, int]
    """Kind of question to number of calls; without those that `calls` leaves out."""
    target_calls: int = 0
    """The number of target calls."""
    open_ended: bool = False
    """Whether conversations may end early, so that there are at most `target_calls`."""
    user_judge: str | None = None
    """The judge that plays the user in conversations, whose calls are not counted; None if there is none."""
    target_answers: int = 0
    """The number of target answers that are in the ledger."""
    without_stand_in: int = 0
    """The number of samples that have neither an output nor a reference as a stand-in for the target's answer. Their
    judge calls are not counted."""

    def seconds(self, concurrency: int) -> float:
        """The duration at `seconds_per_call`. The kinds of questions of a scorer are asked one after another."""
        rounds = max((len(scorer.kinds) for scorer in self.scorers), default=0)
        return self.seconds_per_call * max(self.calls / concurrency, rounds)

    @property
    def cost(self) -> float | None:
        """US dollars; None if a price is unknown, 0 if no judge has a model."""
        return total_cost(judge.cost for judge in self.judges)

    @property
    def calls(self) -> int:
        """The number of judge calls. Those of judges without a model count only if there is no other judge."""
        return sum(self.kinds.values())

    @property
    def usage(self) -> Usage:
        """Tokens of the calls."""
        return sum((scorer.usage for scorer in self.scorers), Usage())

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The tables of calls."""
        from evalstone.results.views.estimate import estimate_view  # noqa: PLC0415 - only who shows it needs it

        return estimate_view(self)

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain data, as `evalstone run --dry-run --json` prints it."""
        totals = {"calls": self.calls, "usage": to_jsonable(self.usage), "cost": self.cost}
        return {"format": ESTIMATE_FORMAT, **to_jsonable(self), **totals}


def by_judge(estimates: Iterable[Estimate]) -> list[JudgeEstimate]:
    """The calls of each judge, summed over several estimates."""
    sums: dict[str, JudgeEstimate] = {}
    for line in (judge for estimate in estimates for judge in estimate.judges):
        before = sums.get(line.judge, JudgeEstimate(judge=line.judge))
        cost = total_cost((before.cost, line.cost))
        sums[line.judge] = JudgeEstimate(
            judge=line.judge, calls=before.calls + line.calls, usage=before.usage + line.usage, cost=cost
        )
    return list(sums.values())


def combined(estimates: Sequence[Estimate]) -> Estimate:
    """The estimates of runs with the same samples as one, with a line for each scorer of each run."""
    first, *others = estimates
    if not others:
        return first
    lines = tuple(
        replace(line, name=f"{line.name}, {bare_judge(each.judge)}") for each in estimates for line in each.scorers
    )
    kinds = sum((Counter(each.kinds) for each in estimates), Counter[str]())
    named = ", ".join(each.judge for each in estimates)
    return replace(first, judge=named, scorers=lines, judges=tuple(by_judge(estimates)), kinds=kinds)
