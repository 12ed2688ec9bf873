"""Auditing a judge: what it says of samples, and of the same samples after small edits that it should not mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalstone._core import sync
from evalstone.api import DEFAULT_LEDGER
from evalstone.datasets import Dataset, load
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError, DataError, RunAborted
from evalstone.judge_quality.calibrating import usual_threshold
from evalstone.judge_quality.effects import Effect, Scale, adjusted, effect
from evalstone.judge_quality.evaluating import evaluated
from evalstone.judge_quality.perturbations import AGAIN, Edit, chosen_edits, given
from evalstone.judge_quality.settings import ASKING, AUDITING, Asking, Auditing
from evalstone.judge_quality.versions import PLAIN, Found, drawn, edited, rescorers
from evalstone.judges import Judge, parse_judge
from evalstone.results.calibration import calibration_for
from evalstone.results.run import Run
from evalstone.run.dry_run import Estimate, estimate
from evalstone.run.plan import Plan
from evalstone.scorers import Scorer, parse_scorers
from evalstone.types import total_cost


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One scorer in an audit. threshold: from which score on the verdict is yes; source: "given", "calibrated" or
    "usual". mean, passed: of the samples as they are, the mean score and the share of yes."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool
    threshold: float
    source: str
    scored: int
    mean: float
    passed: float


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What a judge is swayed by.

    samples: how many of the data set's `size` were taken. effects: one for each scorer and edit that was applicable.
    inapplicable: names of the edits that no sample, or no scorer, allowed. failed: outcomes that failed. ended: why it
    ended early.
    """

    judge: str
    note: str
    dataset: str
    version: str
    samples: int
    size: int
    scorers: tuple[Audited, ...]
    effects: tuple[Effect, ...]
    inapplicable: tuple[str, ...]
    failed: int = 0
    ended: str = ""
    cost: float | None = 0.0

    def __getitem__(self, edit: str) -> Effect:
        """The effect of an edit on the first scorer. Raises ConfigError for one that was not applied."""
        for one in self.effects:
            if one.edit.name == edit:
                return one
        raise ConfigError(f"the edit {edit!r} was not applied; applied: {', '.join(e.edit.name for e in self.effects)}")

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data."""
        return {
            "format": 1,
            "judge": {"identity": self.judge, "note": self.note},
            "dataset": {"name": self.dataset, "version": self.version, "samples": self.size, "taken": self.samples},
            "scorers": [dict(vars(one)) for one in self.scorers],
            "effects": [one.to_dict() for one in self.effects],
            "inapplicable": list(self.inapplicable),
            "failed": self.failed,
            "ended": self.ended,
            "cost": self.cost,
        }


async def aaudit(
    data: Any = DEMO_DATA,
    scorers: Any = "faithfulness",
    *,
    judge: Any = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    auditing: Auditing = AUDITING,
    asking: Asking = ASKING,
) -> Audit:
    """Measure what a judge is swayed by, on your own samples.

    Each sample is judged as it is, once more as it is, and after each edit that it allows. data, scorers, judge,
    ledger: as for `evaluate`; without data, the bundled answers. The repetition is never taken from the ledger and not
    kept there. The threshold of a verdict is the given one, else that of a calibration beside the ledger, else the
    scorer's own. Raises ConfigError for what the caller can mend, DataError when no sample as it is has a score.
    """
    order = _Order.of(data, scorers, judge, auditing, asking)
    thresholds = [_threshold(scorer, order.judge, ledger, auditing.threshold) for scorer in order.scorers]
    runs, found = await order.execute(ledger, asking)
    audited = tuple(_audited(scorer, at, found, runs[0]) for scorer, at in zip(order.scorers, thresholds, strict=True))
    effects = [one for scorer in audited for one in _effects(scorer, found, order.edits)]
    applied = {one.edit.name for one in effects}
    ended = next((run.stop_reason for run in runs if run.stop_reason), "")
    return Audit(
        judge=runs[0].judge,
        note=runs[0].judge_note,
        dataset=order.whole.name,
        version=order.whole.version,
        samples=len(order.plain),
        size=len(order.whole),
        scorers=audited,
        effects=adjusted(effects),
        inapplicable=() if ended else tuple(edit.name for edit in order.edits if edit.name not in applied),
        failed=sum(run.failed for run in runs),
        ended=ended,
        cost=total_cost(run.cost for run in runs),
    )


async def estimated(
    data: Any,
    scorers: Any,
    *,
    judge: Any = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    auditing: Auditing = AUDITING,
    asking: Asking = ASKING,
) -> tuple[Estimate, ...]:
    """What an audit would ask, without asking: with edits of samples, again, and with edits of scorers.

    Arguments as for `aaudit`.
    """
    order = _Order.of(data, scorers, judge, auditing, asking)
    plans = [
        (Plan(order.versions, order.scorers, order.judge), ledger),
        (Plan(order.plain, order.scorers, order.judge), None),
    ]
    for edit in order.edits:
        if others := rescorers(order.scorers, edit):
            plans.append((Plan(order.plain, tuple(others.values()), order.judge), ledger))
    return tuple([await estimate(plan, ledger=place) for plan, place in plans])


@dataclass(frozen=True)
class _Order:
    """What is put to the judge: the samples drawn from the whole, plain and in their versions."""

    whole: Dataset
    plain: Dataset
    versions: Dataset
    scorers: tuple[Scorer, ...]
    judge: Judge
    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, data: Any, scorers: Any, judge: Any, auditing: Auditing, asking: Asking) -> _Order:
        """Read and checked. Raises ConfigError."""
        asked, chosen, edits = parse_judge(judge), parse_scorers(scorers), _edits(auditing)
        whole = data if isinstance(data, Dataset) else load(data, mapping=asking.mapping)
        plain = drawn(whole, auditing.samples)
        return cls(whole, plain, edited(plain, edits), chosen, asked, edits)

    async def execute(self, ledger: str | Path | None, asking: Asking) -> tuple[list[Run], Found]:
        """Ask all of it, run by run, until one ends early. Asking again is done without the ledger."""
        runs = [await evaluated(self.versions, self.scorers, self.judge, ledger, asking)]
        found = Found(runs[0])
        for edit in self.edits:
            others = rescorers(self.scorers, edit)
            if runs[-1].stop_reason or not (others or edit is AGAIN):
                continue
            how = _for_the_rest(asking, runs)
            if edit is AGAIN:
                runs.append(await evaluated(self.plain, self.scorers, self.judge, None, replace(how, fresh=True)))
            else:
                runs.append(await evaluated(self.plain, tuple(others.values()), self.judge, ledger, how))
            found.add(edit, runs[-1], others)
        return runs, found


def _for_the_rest(asking: Asking, runs: Sequence[Run]) -> Asking:
    """The same, with what is left of the budget."""
    if asking.budget is None:
        return asking
    return replace(asking, budget=max(0.0, asking.budget - sum(run.cost or 0.0 for run in runs)))


def _effects(scorer: Audited, found: Found, edits: Sequence[Edit]) -> list[Effect]:
    """The effects of all edits that were applicable on one scorer."""
    how = Scale(scorer.signature, scorer.scale, scorer.threshold)
    plain, again = found.scores(PLAIN, scorer.signature), found.scores(AGAIN.name, scorer.signature)
    scores = {edit.name: found.scores(edit.name, scorer.signature) for edit in edits}
    return [effect(edit, plain, scores[edit.name], again, how) for edit in edits if scores[edit.name]]


def _edits(auditing: Auditing) -> tuple[Edit, ...]:
    return (*chosen_edits(auditing.edits), *map(given, dict.fromkeys(auditing.paraphrases)))


def _threshold(scorer: Scorer, judge: Judge, ledger: str | Path | None, own: float | None) -> tuple[float, str]:
    """From which score on the verdict is yes, and who says so. Raises ConfigError for one outside the scale."""
    if own is not None:
        if isinstance(own, bool) or not 0 < own <= scorer.scale:
            raise ConfigError(f"the threshold must be above 0 and at most {scorer.scale:g}, not {own}")
        return own, "given"
    who = judge.identity if scorer.questions else "none"  # as a run names the judge of a scorer that asks nothing
    known = None if ledger is None else calibration_for(who, scorer.signature, ledger)
    if known is not None and known.threshold is not None:
        return known.threshold.value, "calibrated"
    return usual_threshold(scorer), "usual"


def _audited(scorer: Scorer, at: tuple[float, str], found: Found, run: Run) -> Audited:
    values = [value for value in found.scores(PLAIN, scorer.signature).values() if value is not None]
    if not values and run.stop_reason:
        raise RunAborted(f"{scorer.name} scored no sample before the run ended: {run.stop_reason}")
    if not values:
        reasons = run[scorer.signature].reasons
        raise DataError(f"{scorer.name} scored no sample" + (f": {reasons[0][0]}" if reasons else ""))
    return Audited(
        name=scorer.name,
        signature=scorer.signature,
        scale=scorer.scale,
        lower_is_better=scorer.lower_is_better,
        threshold=at[0],
        source=at[1],
        scored=len(values),
        mean=sum(values) / len(values),
        passed=sum(value >= at[0] for value in values) / len(values),
    )


audit = sync.blocking(aaudit)
