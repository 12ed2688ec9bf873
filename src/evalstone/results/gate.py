"""Gates: check a run against criteria. Each check passes, fails, or is inconclusive.

Two error rates are at most `alpha`: the probability that any unmet criterion passes, and that any met criterion fails.
They are over all criteria together, and over all looks if the gate is repeated after adding samples. A sample without a
score counts as the worst in a test for a pass and as the best in a test for a fail, unless `missing` says otherwise.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from evalstone._core.declarations import check_argument, check_flags
from evalstone._core.display import count
from evalstone._core.file_format import GATE_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting
from evalstone._core.json import to_jsonable
from evalstone._core.truth import PASSED
from evalstone.errors import ConfigError, invalid
from evalstone.report.shown import Shown
from evalstone.results.comparable_runs import pair_runs, same_outputs
from evalstone.results.corrections import judged_only
from evalstone.results.drawn import in_order
from evalstone.results.gate_criteria import CRITERIA, OF_BASELINE, GateCriteria, Inconclusive
from evalstone.results.human_labels import Labels, LabelsSpec, labeled_pairs, labels_of
from evalstone.results.largest_change import BySetting, larger_change, larger_note
from evalstone.results.missing_scores import Missing, check_missing, kinds_that_count
from evalstone.results.paired_scores import KnownPairs, PairedScores
from evalstone.results.run import check_runs
from evalstone.results.scores import scores_of
from evalstone.results.summary import ScorerInfo
from evalstone.stats.packed_scores import PackedScores
from evalstone.types import Note, about, note, reaches

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.stats.gates import Decision, GateCriterion, GateVerdict, MaxRegression

MOST_LOOKS = 100
"""Later looks would be tested at an error rate below 1e-30 · alpha."""
MOST_MISSES = 5
"""The number of samples that are named per unmet requirement."""


@dataclass(frozen=True, kw_only=True)
class Gate(Shown):
    """A run checked against criteria."""

    run: Run
    """The run."""
    baseline: Run | None
    """The run that regressions are measured against."""
    criteria: GateCriteria
    """The criteria, by the scorers' titles."""
    decisions: tuple[Decision, ...]
    """One decision per criterion."""
    alpha: float | None
    """The probability of a wrong pass, and of a wrong fail, over all criteria and all looks together; None without a
    test."""
    look: int
    """The number of this look at a growing run, from 1."""
    look_alpha: float | None
    """The alpha used by this look; None without a test."""
    missing: Missing
    """How samples without a score count."""
    notes: tuple[Note, ...]
    """Notes on samples without a score and on differences from the baseline."""

    @property
    def verdict(self) -> GateVerdict:
        """ "fail" if any criterion fails, else "inconclusive" if any is, else "pass"."""
        from evalstone.stats.gates import overall  # noqa: PLC0415 - numpy

        return overall(self.decisions)

    @property
    def passed(self) -> bool | None:
        """Whether every criterion passes; None if the gate is inconclusive."""
        return PASSED[self.verdict]

    @property
    def next_look(self) -> int | None:
        """The number of the next look, after adding samples. None if it is unknown how many are needed, because the run
        or its baseline was stopped by its own gate."""
        drawn = self.run.drawn is not None or (self.baseline is not None and self.baseline.drawn is not None)
        return None if drawn else self.look + 1

    def __repr__(self) -> str:
        return f"<Gate of {self.run.id}: {self.verdict}, {count(len(self.decisions), 'check')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table of checks that `evalstone gate` shows."""
        from evalstone.results.views.gate import gate_view  # noqa: PLC0415 - only showing a gate needs it

        return gate_view(self, front_end)

    def to_junit(self, *, inconclusive: Inconclusive = "report") -> str:
        """JUnit XML for CI servers, with a case per check.

        inconclusive: With "fail", inconclusive checks are failures. Otherwise, they are skipped.
        """
        from evalstone.results.views.junit import gate_junit  # noqa: PLC0415 - only who writes it needs it

        check_argument("inconclusive", inconclusive, Inconclusive)
        return "".join(gate_junit(self, inconclusive_fails=inconclusive == "fail"))

    def to_dict(self) -> dict[str, Any]:
        """The gate as plain data, as `evalstone gate --json` prints it."""
        return {
            "format": GATE_FORMAT,
            "verdict": self.verdict,
            "alpha": self.alpha,
            "look": self.look,
            "look_alpha": self.look_alpha,
            "missing": self.missing,
            "run": self.run.id,
            "baseline": None if self.baseline is None else self.baseline.id,
            "notes": [note.to_dict() for note in self.notes],
            "decisions": [to_jsonable(decision) for decision in self.decisions],
        }


def gate(
    run: Run,
    *,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    pass_rate: Mapping[str, tuple[float, float]] | None = None,
    max_regression: Mapping[str, float] | None = None,
    max_difference: Mapping[str, float] | None = None,
    require: Sequence[str] = (),
    baseline: Run | None = None,
    alpha: float | None = 0.05,
    look: int = 1,
    missing: Missing = "worst",
    max_change: BySetting = None,
    allow_mismatch: bool = False,
    labels: Mapping[str, LabelsSpec] | None = None,
    baseline_labels: Mapping[str, LabelsSpec] | None = None,
) -> Gate:
    """Check a run against criteria: `gate(run, min={"faithfulness": 0.8}, max={"hallucination": 0.1})`.

    Gating a run again after adding samples gives it another chance of a wrong pass. Look 1 therefore tests at 0.8 alpha
    and look k at 0.2 alpha / 2^(k-1), so the probability of a wrong pass is at most alpha over any number of looks. A
    run that was stopped by its own gate is tested by betting on its scores in the order in which they were drawn.

    Args:
        run: the run.
        min: scorer to lowest acceptable mean, for scorers where higher is better.
        max: scorer to highest acceptable mean, for scorers where lower is better.
        pass_rate: scorer to (score, share): at least this share of the samples must reach the score. If lower is
            better, they must not exceed it.
        max_regression: scorer to the largest acceptable regression: how much worse than the baseline the mean may be,
            over the same samples (non-inferiority).
        max_difference: scorer to the largest acceptable difference from the baseline's mean in either direction, over
            the same samples (equivalence).
        require: scorers for which every sample must have the best score: `scale`, or 0 if lower is better. This is no
            test: it describes these samples. A failed score, or one without an answer from the judge, doesn't pass.
            Samples with an undefined score are left out.
        baseline: the run that `max_regression` and `max_difference` are measured against.
        alpha: the probability of a wrong pass, and of a wrong fail, over all criteria and looks together. None compares
            the estimates with the thresholds, without a test. A check is then inconclusive only if missing scores could
            decide it, or all scores are missing. The result describes these samples only: a mean just above a threshold
            may be chance.
        look: 1 for the first gate on the run's samples, 2 for the first gate after adding samples, and so on.
        missing: how to count samples without a score. "worst" counts them as the worst score in tests for a pass and as
            the best in tests for a fail. "failed" does so for failures and missing answers of the judge, and leaves out
            samples with an undefined score. "ignore" leaves out all of them. For regressions, samples with an undefined
            score in both runs are always left out.
        max_change: the largest possible change of a sample's score from the baseline, for all scorers that are compared
            with it or by scorer, as for `compare`. Declare it before you look at the scores. A check fails if a sample
            changes by more.
        allow_mismatch: accept a baseline whose judge, scorers or cases differ.
        labels: by scorer, human scores of some of the run's samples: a path, or what `load_labels` returns. For these
            scorers, means and pass rates are corrected for the judge's errors before testing (`corrected`).
        baseline_labels: human scores of the baseline's samples. With both, regressions are corrected too.

    Raises:
        ConfigError: there is no criterion, a scorer is unknown or has two thresholds for one check, a threshold doesn't
            fit its scorer, or alpha, look, missing or max_change is out of range.
    """
    check_flags(allow_mismatch=allow_mismatch)
    check_runs(run=run, **({} if baseline is None else {"baseline": baseline}))

    def find(name: str) -> ScorerInfo:
        return run[name].info

    criteria = GateCriteria.of(
        min=min,
        max=max,
        pass_rate=pass_rate,
        max_regression=max_regression,
        max_difference=max_difference,
        require=require,
    ).titled(find, run.titles)
    return gate_on(
        run,
        criteria,
        baseline=baseline,
        alpha=alpha,
        look=look,
        missing=missing,
        largest_changes=criteria.largest_changes(max_change, find, run.titles),
        allow_mismatch=allow_mismatch,
        labels=labels,
        baseline_labels=baseline_labels,
    )


def gate_on(
    run: Run,
    criteria: GateCriteria,
    *,
    baseline: Run | None = None,
    alpha: float | None = 0.05,
    look: int = 1,
    missing: Missing = "worst",
    largest_changes: Mapping[str, float] | None = None,
    allow_mismatch: bool = False,
    labels: Mapping[str, LabelsSpec] | None = None,
    baseline_labels: Mapping[str, LabelsSpec] | None = None,
    absent: str | None = None,
) -> Gate:
    """`gate` with criteria, and largest changes, by the titles of the run's scorers.

    absent: the name of a baseline that isn't there. The checks of a difference from it are inconclusive.
    """
    from evalstone.stats.gates import alpha_at_look, decide  # noqa: PLC0415 - numpy

    _check_settings(run, baseline, criteria, alpha, look, missing)
    criteria.check_baseline(is_set=baseline is not None or absent is not None)
    checks = _Checks(run, criteria, baseline, missing, allow_mismatch, largest_changes or {}, labels, baseline_labels)
    notes = list(checks.notes(is_test=alpha is not None))
    tests = [*checks.means(), *checks.pass_rates(), *checks.differences(notes)]
    now, later = (None if alpha is None else alpha_at_look(alpha, at) for at in (look, look + 1))
    decisions = [_in_samples(decision, run.trials) for decision in decide(tests, alpha=now, next_alpha=later)]
    decisions = [checks.failed_by_change(decision) for decision in decisions]
    if absent is not None:
        notes.append(note("no_baseline", "caution", name=absent))
        decisions = [replace(one, notes=(notes[-1],)) if one.kind in OF_BASELINE else one for one in decisions]
    decisions += _requirements(run, criteria.require, notes)
    decisions = [_undecided(decision, run, baseline) for decision in decisions]
    return Gate(
        run=run,
        baseline=baseline,
        criteria=criteria,
        decisions=tuple(decisions),
        alpha=alpha,
        look=look,
        look_alpha=now,
        missing=missing,
        notes=tuple(dict.fromkeys(notes)),
    )


def _check_settings(
    run: Run, baseline: Run | None, criteria: GateCriteria, alpha: float | None, look: int, missing: Missing
) -> None:
    from evalstone.stats.gates import check_alpha  # noqa: PLC0415 - numpy

    if alpha is not None:
        check_alpha(Setting("alpha"), alpha)
    if not isinstance(cast(object, look), int) or isinstance(look, bool) or not 1 <= look <= MOST_LOOKS:
        raise ConfigError(invalid(Setting("look"), f"a whole number from 1 to {MOST_LOOKS}", look, f"{look!r}"))
    check_missing(missing)
    for gated in (run, baseline):
        if gated is not None and gated.kind != "evaluation":
            raise ConfigError(f"run {gated.id} is part of a judge's {gated.kind}; a gate takes evaluations of outputs")
    if not criteria.scorers:
        first, *others = CRITERIA
        listed = Setting(first), *(Hint.of(", ", Setting(name)) for name in others)
        raise ConfigError("a gate needs a criterion (", *listed, ")")


def _in_samples(decision: Decision, trials: int) -> Decision:
    """The decision with `more_samples` converted from trials to samples."""
    more = decision.more_samples
    return decision if more is None else replace(decision, more_samples=math.ceil(more / trials))


def _undecided(decision: Decision, run: Run, baseline: Run | None) -> Decision:
    """The decision, inconclusive if its run or its baseline was broken off: which samples are scored then depends on
    what happened."""
    runs: dict[Literal["run", "baseline"], Run | None] = {
        "run": run,
        "baseline": baseline if decision.kind in OF_BASELINE else None,
    }
    broken = next((name for name, one in runs.items() if one is not None and one.ending.broken_off), None)
    if broken is None:
        return decision
    return replace(decision, verdict="inconclusive", more_samples=None, more_labels=None, broken_off=broken)


class _Checks:
    """The checks of a run by tests, and the notes on what they are made from.

    Raises:
        ConfigError: labels are given twice.
    """

    def __init__(
        self,
        run: Run,
        criteria: GateCriteria,
        baseline: Run | None,
        missing: Missing,
        allow_mismatch: bool,
        largest_changes: Mapping[str, float],
        labels: Mapping[str, LabelsSpec] | None,
        baseline_labels: Mapping[str, LabelsSpec] | None,
    ) -> None:
        self.run, self.baseline, self.criteria = run, baseline, criteria
        self.missing: Missing = missing
        self.allow_mismatch = allow_mismatch
        self.largest_changes = largest_changes
        self._larger: dict[str, Note] = {}
        """By scorer, the note on a sample that changes by more than declared."""
        self.labels = _by_signature(run, labels)
        self.baseline_labels = _by_signature(run if baseline is None else baseline, baseline_labels)

    def notes(self, *, is_test: bool) -> Iterator[Note]:
        """Notes on samples without a score, runs that ended early, and labels."""
        run, baseline = self.run, self.baseline
        if run.ending.broken_off:
            yield note("run_broken_off", "warning", reason=run.stop_reason)
        elif run.drawn is not None:
            yield note("run_stopped_by_gate")
        elif run.stop_reason:
            yield note("run_stopped", "warning", reason=run.stop_reason)
        for name in self.criteria.tested:
            if baseline is None or name in self.criteria.of_scores:  # others: with the samples of the baseline
                yield from _missing_note(name, run, _rows(run, run[name].info), run.trials, self.missing)
        if baseline is not None and not self.criteria.of_baseline:
            yield note("unused_baseline", "caution")
        elif baseline is not None and baseline.ending.broken_off:
            yield note("baseline_broken_off", "warning", reason=baseline.stop_reason)
        yield from self._uncorrected(is_test=is_test)
        tested = {run[name].info.signature for name in self.criteria.tested}
        if unused := [run.titles[signature] for signature in self.labels if signature not in tested]:
            yield note("unused_labels", "caution", scorers=tuple(unused))

    def _uncorrected(self, *, is_test: bool) -> Iterator[Note]:
        """Notes on checks of the judge's scores that labels could correct."""
        run, criteria = self.run, self.criteria
        judged = {name: info for name in criteria.tested if judged_only(run, info := run[name].info)}
        weighted = any(scores_of(run, info.signature).unequal_weights is not None for info in judged.values())
        for name, info in judged.items():
            if name in criteria.of_scores and info.signature not in self.labels:
                settings = () if weighted else ("labels",)
                yield note("judged_mean", "caution", name, tested=is_test, settings=settings)
        for name in criteria.of_baseline:
            corrected = self.labels.keys() & self.baseline_labels.keys()
            if name in judged and judged[name].signature not in corrected:
                settings = () if weighted else ("labels", "baseline_labels")
                yield note("judged_difference", "caution", name, settings=settings)

    def means(self) -> Iterator[GateCriterion]:
        """The tests of `min` and `max`."""
        from evalstone.stats.gates import AtLeast, AtMost  # noqa: PLC0415 - numpy

        stopped = self.run.drawn is not None
        for thresholds, kind in ((self.criteria.min, AtLeast), (self.criteria.max, AtMost)):
            for name, threshold in thresholds.items():
                info = self.run[name].info
                values, groups, weights, human, strata = self._values(info)
                yield kind(name, values, threshold, info.scale, groups, weights, stopped, human, strata)

    def pass_rates(self) -> Iterator[GateCriterion]:
        """The tests of `pass_rate`."""
        from evalstone.stats.gates import PassRate  # noqa: PLC0415 - numpy

        stopped = self.run.drawn is not None
        for name, (threshold, share) in self.criteria.pass_rate.items():
            info = self.run[name].info
            values, groups, weights, human, strata = self._values(info)
            lower = info.lower_is_better
            reached = functools.partial(reaches, threshold=threshold, scale=info.scale, lower_is_better=lower)
            passed, human_passed = (None if column is None else _each(column, reached) for column in (values, human))
            title = f"{name} {'<=' if lower else '>='} {threshold:g}"
            yield PassRate(title, passed or [], share, 1.0, groups, weights, stopped, human_passed, strata)

    def differences(self, notes: list[Note]) -> Iterator[GateCriterion]:
        """The tests of `max_regression` and `max_difference`, without values if there is no baseline. notes: gets those
        on the baseline."""
        from evalstone.stats.gates import MaxDifference, MaxRegression  # noqa: PLC0415 - numpy

        run, baseline = self.run, self.baseline
        margins = [
            *((MaxRegression, *each) for each in self.criteria.max_regression.items()),
            *((MaxDifference, *each) for each in self.criteria.max_difference.items()),
        ]
        if baseline is None or not margins:
            for kind, name, margin in margins:
                info = run[name].info
                yield kind(name, (), (), margin, info.scale, info.lower_is_better)
            return
        if run.trials != baseline.trials:
            raise ConfigError(
                f"the run has {run.trials} trials of each sample and the baseline has {baseline.trials}; a "
                "comparison needs the same number of trials in both"
            )
        pairs, mismatches = pair_runs(
            baseline, run, allow_mismatch=self.allow_mismatch, missing=self.missing, by_trial=True, unscored=True
        )
        notes += about(mismatches, "baseline", "run")
        baselines = {theirs: ours for ours, theirs in pairs.scorers}
        for kind, name, margin in margins:
            info = run[name].info
            if info not in baselines:
                raise ConfigError(f"the baseline has no scores of {name}")
            pair = pairs.build(baselines[info], info)
            check = "difference" if kind is MaxDifference else "regression"
            notes += self._of_pair(check, name, pair, baseline)
            yield self._difference(kind, name, margin, pair, baseline)

    def _of_pair(self, check: str, name: str, pair: PairedScores, baseline: Run) -> Iterator[Note]:
        """Notes on the samples of a comparison with the baseline, and on its largest change."""
        run, info = self.run, pair.info_b
        ours, theirs = _rows(run, info), _rows(baseline, pair.info)
        in_both = pair.unscored if self.missing == "worst" else 0  # otherwise, no undefined score counts
        if name not in self.criteria.of_scores:
            yield from _missing_note(name, run, ours, run.trials, self.missing, in_both=in_both)
        yield from _missing_note(name, baseline, theirs, run.trials, self.missing, of="baseline", in_both=in_both)
        if in_both:
            yield note("undefined_in_both", "caution", name, check=check, samples=in_both, of_both=pair.of_both)
        paired, _ = pair.pairing.match(baseline.columns.keys(theirs), run.columns.keys(ours))
        if unpaired := len(ours) + len(theirs) - 2 * len(paired):
            yield note("unpaired_left_out", "caution", name, check=check, samples=unpaired)
        if (change := self.largest_changes.get(name)) is not None:
            if (larger := larger_change(pair.known.rows, change)) is None:
                yield note("largest_change", "fact", name, change=change)
            else:
                self._larger[name] = larger_note(change, *larger)

    def failed_by_change(self, decision: Decision) -> Decision:
        """The decision, a fail if a sample changes by more than declared: the scores aren't as the test assumes."""
        larger = self._larger.get(decision.name) if decision.kind in OF_BASELINE else None
        if larger is None:
            return decision
        return replace(decision, verdict="fail", more_samples=None, notes=(*decision.notes, larger))

    def _difference(
        self, kind: type[MaxRegression], name: str, margin: float, pair: PairedScores, baseline: Run
    ) -> GateCriterion:
        info = pair.info_b
        criterion = kind(
            name,
            pair.b,
            pair.a,
            margin,
            info.scale,
            info.lower_is_better,
            pair.groups,
            pair.weights,
            stopped=pair.stopped,
            max_change=None if name in self._larger else self.largest_changes.get(name),
        )
        both = self.baseline_labels.get(pair.info.signature, {}), self.labels.get(info.signature, {})
        if not all(both):
            return criterion
        first, second = ([0.0 if value is None else value for value in values] for values in (pair.a, pair.b))
        known = KnownPairs(pair.samples, first, second, pair.groups, pair.weights)
        columns = labeled_pairs(known, pair.pairing, both, same_outputs(baseline, self.run, pair.pairing))
        labeled = replace(criterion, max_change=self.largest_changes.get(name))  # which labels don't go with
        return replace(labeled, human=columns["human"], same=columns["same"], strata=columns["strata"])

    def _values(self, info: ScorerInfo) -> _Values:
        """A scorer's values, and their groups, weights, labels and strata."""
        scores = scores_of(self.run, info.signature, self.missing, drawn=True)
        values, groups, weights = scores.values, scores.labels, scores.unequal_weights
        labels = self.labels.get(info.signature)
        if labels is None:
            return _Values(values, groups, weights, None, None)
        from evalstone.stats.labeling import score_strata  # noqa: PLC0415 - numpy

        strata = iter(score_strata(scores.known_values))
        human = [None if value is None else labels.get(key) for key, value in zip(scores.names, values, strict=True)]
        return _Values(values, groups, weights, human, [-1 if value is None else next(strata) for value in values])


class _Values(NamedTuple):
    """A scorer's values (None for missing ones that count), and the samples' groups, weights, labels and strata."""

    values: Sequence[float | None]
    groups: Sequence[str] | None
    weights: Sequence[float] | None
    human: Sequence[float | None] | None
    strata: Sequence[int] | None


def _by_signature(run: Run, labels: Mapping[str, LabelsSpec] | None) -> Mapping[str, Labels]:
    by_signature: dict[str, Labels] = {}
    for name, of_scorer in (labels or {}).items():
        signature = run[name].info.signature
        if signature in by_signature:
            raise ConfigError(f"{name} already has labels under another of its names; put all of them into one table")
        by_signature[signature] = labels_of(run, name, of_scorer)
    return by_signature


def _requirements(run: Run, names: Sequence[str], notes: list[Note]) -> Iterator[Decision]:
    """A decision for each of these scorers: whether every sample has its best score."""
    from evalstone.stats.gates import Decision, Miss  # noqa: PLC0415 - numpy

    for name in names:
        info = run[name].info
        columns, best = run.columns, 0.0 if info.lower_is_better else info.scale
        rows = columns.rows(info.signature)
        undefined = {*columns.rows_of(rows, "undefined")}
        reached = functools.partial(reaches, threshold=best, scale=info.scale, lower_is_better=info.lower_is_better)
        passed = _each(columns.values(rows), reached)
        skipped, met = len(undefined), sum(1 for value in passed if value == 1)
        missed = len(rows) - skipped - met
        below = (place for place, value in enumerate(passed) if value != 1 and place not in undefined)
        places = columns.places(info.signature)
        misses: list[Miss] = []
        for place in itertools.islice(below, min(missed, MOST_MISSES)):
            record = run.records[places[place]]
            reason = record.outcome.reason
            misses.append(Miss(sample_id=record.sample_id, trial=record.trial, value=record.value, reason=reason))
        if skipped:
            notes.append(note("undefined_left_out", "caution", name, samples=skipped))
        yield Decision(
            name=name,
            kind="require",
            verdict="fail" if missed else "pass" if met else "inconclusive",
            estimate=met / (met + missed) if met or missed else None,
            threshold=1.0,
            low=None,
            high=None,
            p_pass=None,
            p_fail=None,
            n=met + missed,
            more_samples=None,
            notes=() if met or missed else (note("no_values", "caution"),),
            misses=tuple(misses),
        )


def _each(values: Sequence[float | None], reached: Callable[..., Any]) -> Sequence[float | None]:
    """1 for each value that reaches a threshold, 0 for others, None for missing ones."""
    if isinstance(values, PackedScores):
        return values.replaced(reached)
    return [None if value is None else float(reached(value)) for value in values]


def _rows(run: Run, info: ScorerInfo) -> Sequence[int]:
    """The rows of a scorer's entries, in the order of the run; in drawing order if its gate stopped the run."""
    columns = run.columns
    return columns.rows(info.signature) if run.drawn is None else in_order(columns, info.signature, run.drawn)


def _missing_note(
    name: str, run: Run, rows: Sequence[int], trials: int, missing: Missing, *, of: str = "run", in_both: int = 0
) -> Iterator[Note]:
    """A note on a scorer's records without a score, if there are some.

    of: whose they are, "run" or "baseline". in_both: how many of them are undefined in the other run as well, and so
    left out of the comparison.
    """
    without = run.columns.kinds(rows)
    del without["score"]
    without["undefined"] -= in_both
    if not without.total():
        return
    undefined_ones = without["undefined"]
    if missing == "ignore":
        kind = "missing_left_out"
    else:
        kind = "missing_partly_counted" if missing == "failed" and undefined_ones else "missing_counted"
    counted = sum(without[kind] for kind in kinds_that_count(missing))
    numbers = {"without_score": without.total(), "counted": counted, "undefined": undefined_ones}
    yield note(kind, "caution", name, of=of, noun="sample" if trials == 1 else "answer", **numbers)
