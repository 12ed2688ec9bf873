"""Gates: check a run against criteria. Each check passes, fails, or is inconclusive.

Two error rates are at most `alpha`: the probability that any unmet criterion passes, and that any met criterion fails.
They are over all criteria together, and over all looks if the gate is repeated after adding samples. A sample without a
score counts as the worst in a test for a pass and as the best in a test for a fail, unless `missing` says otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from evalstone._core.display import count
from evalstone._core.file_format import GATE_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting
from evalstone._core.json import to_jsonable
from evalstone._core.truth import PASSED
from evalstone.errors import ConfigError, invalid
from evalstone.report.shown import Shown
from evalstone.results.columns import Entry
from evalstone.results.comparable_runs import pair_runs, same_outputs
from evalstone.results.compare import LARGEST_CHANGE, BySetting, check_changes, setting_by_scorer
from evalstone.results.drawn import in_order
from evalstone.results.gate_criteria import CHECKS, OF_BASELINE, GateCriteria
from evalstone.results.human_labels import Labels, LabelsSpec, judged_only, labeled_pairs, labels_of
from evalstone.results.missing_scores import Missing, check_missing, kinds_that_count
from evalstone.results.paired_scores import KnownPairs
from evalstone.results.scores import scores_of
from evalstone.results.summary import ScorerInfo, values_by_scorer
from evalstone.types import Note, about, note, reaches

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.stats.gates import Decision, GateCriterion, GateVerdict

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
            "criteria": [to_jsonable(decision) for decision in self.decisions],
        }


def gate(
    run: Run,
    criteria: GateCriteria,
    *,
    baseline: Run | None = None,
    alpha: float | None = 0.05,
    look: int = 1,
    missing: Missing = "worst",
    max_change: BySetting = None,
    allow_mismatch: bool = False,
    labels: Mapping[str, LabelsSpec] | None = None,
    baseline_labels: Mapping[str, LabelsSpec] | None = None,
) -> Gate:
    """Check a run against criteria.

    Gating a run again after adding samples gives it another chance of a wrong pass. Look 1 therefore tests at 0.8 alpha
    and look k at 0.2 alpha / 2^(k-1), so the probability of a wrong pass is at most alpha over any number of looks. A
    run that was stopped by its own gate is tested by betting on its scores in the order in which they were drawn.

    Args:
        run: the run.
        criteria: at least one criterion.
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
            with it or by scorer, as for `compare`. Declare it before you look at the scores.
        allow_mismatch: accept a baseline whose judge, scorers or cases differ.
        labels: by scorer, human scores of some of the run's samples: a path, or what `load_labels` returns. For these
            scorers, means and pass rates are corrected for the judge's errors before testing (`corrected`).
        baseline_labels: human scores of the baseline's samples. With both, regressions are corrected too.

    Raises:
        ConfigError: there is no criterion, a scorer is unknown or has two thresholds for one check, a threshold doesn't
            fit its scorer, or alpha, look, missing or max_change is out of range.
        DataError: a sample changes by more than `max_change`.
    """
    from evalstone.stats.gates import alpha_at_look, check_alpha, decide  # noqa: PLC0415 - numpy

    if alpha is not None:
        check_alpha(Setting("alpha"), alpha)
    if not isinstance(cast(object, look), int) or isinstance(look, bool) or not 1 <= look <= MOST_LOOKS:
        raise ConfigError(invalid(Setting("look"), f"a whole number from 1 to {MOST_LOOKS}", look, f"{look!r}"))
    check_missing(missing)

    for gated in (run, baseline):
        if gated is not None and gated.kind != "evaluation":
            raise ConfigError(f"run {gated.id} is part of a judge's {gated.kind}; a gate takes evaluations of outputs")
    if not isinstance(cast(object, criteria), GateCriteria):
        raise ConfigError(
            invalid(
                "the criteria",
                'GateCriteria, such as GateCriteria(minimum={"faithfulness": 0.8})',
                criteria,
                f"{type(criteria).__name__}",
            )
        )
    if not criteria.scorers:
        raise ConfigError(
            "a gate needs a check: a minimum, a maximum, a maximum regression or difference, a pass rate or a required "
            "scorer (",
            Setting(CHECKS[0]),
            *(Hint.of(", ", Setting(check)) for check in (*CHECKS[1:], "require")),
            ")",
        )
    for check in CHECKS:
        values_by_scorer(getattr(criteria, check), lambda name: run[name].info, Setting(check))
    largest = _largest_changes(run, criteria, max_change)
    notes = list(_missing_scores(run, criteria, missing))
    if criteria.of_baseline and baseline is not None and baseline.ending.broken_off:
        notes.append(note("baseline_broken_off", "warning", reason=baseline.stop_reason))
    ours = _by_signature(run, labels)
    theirs = _by_signature(run if baseline is None else baseline, baseline_labels)
    notes += _uncorrected(run, criteria, ours, theirs, is_test=alpha is not None)
    tested = {run[name].info.signature for name in criteria.tested}
    if unused := [run.titles[signature] for signature in ours if signature not in tested]:
        notes.append(note("unused_labels", "caution", scorers=tuple(unused)))
    checks = [*_mean_checks(run, criteria, missing, ours), *_pass_rate_checks(run, criteria, missing, ours)]
    if criteria.of_baseline:
        if baseline is None:
            what = "regression" if criteria.max_regression else "difference"
            raise ConfigError(f"a maximum {what} needs a run to measure it against: set ", Setting("baseline", ...))
        checks += _regression_checks(run, baseline, criteria, missing, allow_mismatch, notes, (theirs, ours), largest)
    elif baseline is not None:
        notes.append(note("unused_baseline", "caution"))
    now, later = (None if alpha is None else alpha_at_look(alpha, at) for at in (look, look + 1))
    decisions = [_in_samples(decision, run.trials) for decision in decide(checks, alpha=now, next_alpha=later)]
    decisions += _requirements(run, criteria.require, notes)
    decisions = [_undecided(decision, run, baseline) for decision in decisions]
    return Gate(
        run=run,
        baseline=baseline,
        decisions=tuple(decisions),
        alpha=alpha,
        look=look,
        look_alpha=now,
        missing=missing,
        notes=tuple(dict.fromkeys(notes)),
    )


def _largest_changes(run: Run, criteria: GateCriteria, max_change: BySetting) -> Mapping[str, float]:
    """The declared largest changes by the scorers' signatures.

    Raises:
        ConfigError: one is outside the scale, or of a scorer that isn't compared with a baseline.
    """
    compared = dict.fromkeys(run[name].info.signature for name in criteria.of_baseline)
    if compared and not (max_change is None or isinstance(max_change, Mapping)):
        max_change = dict.fromkeys((run.titles[signature] for signature in compared), max_change)
    largest = setting_by_scorer(run, LARGEST_CHANGE, max_change)
    for signature in largest:
        if signature not in compared:
            raise ConfigError(
                Setting(LARGEST_CHANGE),
                f" of {run.titles[signature]} is for the difference from a baseline: set ",
                Setting("max_regression"),
                " or ",
                Setting("max_difference"),
            )
    return largest


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


def _by_signature(run: Run, labels: Mapping[str, LabelsSpec] | None) -> Mapping[str, Labels]:
    by_signature: dict[str, Labels] = {}
    for name, of_scorer in (labels or {}).items():
        signature = run[name].info.signature
        if signature in by_signature:
            raise ConfigError(f"{name} already has labels under another of its names; put all of them into one table")
        by_signature[signature] = labels_of(run, name, of_scorer)
    return by_signature


def _mean_checks(
    run: Run, criteria: GateCriteria, missing: Missing, labels: Mapping[str, Labels]
) -> Iterator[GateCriterion]:
    from evalstone.stats.gates import AtLeast, AtMost  # noqa: PLC0415 - numpy

    for lower, thresholds, kind in ((False, criteria.minimum, AtLeast), (True, criteria.maximum, AtMost)):
        for name, threshold in thresholds.items():
            info = run[name].info
            if info.lower_is_better != lower:
                better, wrong, right = ("higher", "maximum", "minimum") if lower else ("lower", "minimum", "maximum")
                raise ConfigError(
                    Setting(wrong),
                    f" of {name}: {better} is better for {info.name}; use ",
                    Setting(right, {name: threshold}),
                )
            values, groups, weights, human, strata = _values(run, info, missing, labels.get(info.signature))
            stopped = run.drawn is not None
            yield kind(name, values, threshold, info.scale, groups, weights, stopped, human, strata)


def _pass_rate_checks(
    run: Run, criteria: GateCriteria, missing: Missing, labels: Mapping[str, Labels]
) -> Iterator[GateCriterion]:
    from evalstone.stats.gates import PassRate  # noqa: PLC0415 - numpy

    for name, (threshold, share) in criteria.pass_rate.items():
        info = run[name].info
        if not (math.isfinite(threshold) and 0 <= threshold <= info.scale):
            raise ConfigError(f"pass rate of {name}: the score must lie in [0, {info.scale:g}], not {threshold:g}")
        values, groups, weights, human, strata = _values(run, info, missing, labels.get(info.signature))
        lower = info.lower_is_better
        passed, human_passed = (
            None
            if column is None
            else [
                None if value is None else float(reaches(value, threshold, info.scale, lower_is_better=lower))
                for value in column
            ]
            for column in (values, human)
        )
        title = f"{name} {'<=' if lower else '>='} {threshold:g}"
        stopped = run.drawn is not None
        yield PassRate(title, passed or [], share, 1.0, groups, weights, stopped, human_passed, strata)


def _regression_checks(
    run: Run,
    baseline: Run,
    criteria: GateCriteria,
    missing: Missing,
    allow_mismatch: bool,
    notes: list[Note],
    labels: tuple[Mapping[str, Labels], Mapping[str, Labels]],
    largest: Mapping[str, float],
) -> Iterator[GateCriterion]:
    from evalstone.stats.gates import MaxDifference, MaxRegression  # noqa: PLC0415 - numpy

    if run.trials != baseline.trials:
        raise ConfigError(
            f"the run has {run.trials} trials of each sample and the baseline has {baseline.trials}; a "
            "comparison needs the same number of trials in both"
        )
    pairs, differences = pair_runs(baseline, run, allow_mismatch=allow_mismatch, missing=missing, by_trial=True)
    notes += about(differences, "baseline", "run")
    by_scorer = {pair.info_b: pair for pair in pairs}
    limits = (
        ("regression", MaxRegression, criteria.max_regression),
        ("difference", MaxDifference, criteria.max_difference),
    )
    for what, kind, name, margin in ((what, kind, *item) for what, kind, of in limits for item in of.items()):
        info = run[name].info
        pair = by_scorer.get(info)
        if pair is None:
            raise ConfigError(f"maximum {what} of {name}: no sample has a score in both runs")
        ours, theirs = _rows(run, info), _rows(baseline, pair.info)
        notes += _missing_note(name, baseline, theirs, run.trials, missing, of="baseline")
        paired, _ = pair.pairing.match(baseline.columns.keys(theirs), run.columns.keys(ours))
        if unpaired := len(ours) + len(theirs) - 2 * len(paired):
            notes.append(note("unpaired_left_out", "caution", name, check=what, samples=unpaired))
        if (change := largest.get(info.signature)) is not None:
            check_changes(name, pair.known.rows, change)
            notes.append(note("largest_change", "fact", name, change=change))
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
            max_change=change,
        )
        both = labels[0].get(pair.info.signature, {}), labels[1].get(info.signature, {})
        if all(both):
            first, second = ([0.0 if value is None else value for value in values] for values in (pair.a, pair.b))
            known = KnownPairs(pair.samples, first, second, pair.groups, pair.weights)
            columns = labeled_pairs(known, pair.pairing, both, same_outputs(baseline, run, pair.pairing))
            criterion = replace(criterion, human=columns["human"], same=columns["same"], strata=columns["strata"])
        yield criterion


def _requirements(run: Run, names: Sequence[str], notes: list[Note]) -> Iterator[Decision]:
    """A decision for each of these scorers: whether every sample has its best score."""
    from evalstone.stats.gates import Decision, Miss  # noqa: PLC0415 - numpy

    required = values_by_scorer(dict.fromkeys(names, True), lambda name: run[name].info, "require")
    for name, info in zip(dict.fromkeys(names), required, strict=True):
        met = missed = skipped = 0
        misses: list[Miss] = []
        for entry in run.columns.entries(info.signature):
            if entry.undefined:
                skipped += 1
            elif _is_best(entry, info):
                met += 1
            else:
                missed += 1
                if len(misses) < MOST_MISSES:
                    reason = run.records[entry.place].outcome.reason
                    misses.append(Miss(sample_id=entry.sample_id, trial=entry.trial, value=entry.value, reason=reason))
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


def _is_best(entry: Entry, info: ScorerInfo) -> bool:
    best = 0.0 if info.lower_is_better else info.scale
    value = entry.value
    return value is not None and reaches(value, best, info.scale, lower_is_better=info.lower_is_better)


def _rows(run: Run, info: ScorerInfo) -> Sequence[int]:
    """The rows of a scorer's entries, in the order of the run; in drawing order if its gate stopped the run."""
    columns = run.columns
    return columns.rows(info.signature) if run.drawn is None else in_order(columns, info.signature, run.drawn)


def _values(
    run: Run, info: ScorerInfo, missing: Missing, labels: Labels | None
) -> tuple[
    Sequence[float | None],
    Sequence[str] | None,
    Sequence[float] | None,
    Sequence[float | None] | None,
    Sequence[int] | None,
]:
    """A scorer's values (None for missing ones that count), and the samples' groups, weights, labels and strata."""
    scores = scores_of(run, info.signature, missing, drawn=True)
    values, groups, weights = scores.values, scores.labels, scores.unequal_weights
    if labels is None:
        return values, groups, weights, None, None
    from evalstone.stats.labeling import score_strata  # noqa: PLC0415 - numpy

    strata = iter(score_strata(scores.known_values))
    human = [None if value is None else labels.get(key) for key, value in zip(scores.names, values, strict=True)]
    return values, groups, weights, human, [-1 if value is None else next(strata) for value in values]


def _uncorrected(
    run: Run, criteria: GateCriteria, ours: Mapping[str, Labels], theirs: Mapping[str, Labels], *, is_test: bool
) -> Iterator[Note]:
    """Notes on checks of the judge's scores that labels could correct."""
    judged = {name: info for name in criteria.tested if judged_only(run, info := run[name].info)}
    weighted = any(scores_of(run, info.signature).unequal_weights is not None for info in judged.values())
    of_scores = {*criteria.minimum, *criteria.maximum, *criteria.pass_rate}
    for name, info in judged.items():
        if name in of_scores and info.signature not in ours:
            settings = () if weighted else ("labels",)
            yield note("judged_mean", "caution", name, tested=is_test, settings=settings)
    for name in criteria.of_baseline:
        if name in judged and not {judged[name].signature} <= ours.keys() & theirs.keys():
            settings = () if weighted else ("labels", "baseline_labels")
            yield note("judged_difference", "caution", name, settings=settings)


def _missing_scores(run: Run, criteria: GateCriteria, missing: Missing) -> Iterator[Note]:
    """Notes on samples without a score: how they count, and the option that changes it."""
    if run.ending.broken_off:
        yield note("run_broken_off", "warning", reason=run.stop_reason)
    elif run.drawn is not None:
        yield note("run_stopped_by_gate")
    elif run.stop_reason:
        yield note("run_stopped", "warning", reason=run.stop_reason)
    for name in criteria.tested:
        yield from _missing_note(name, run, _rows(run, run[name].info), run.trials, missing)


def _missing_note(
    name: str, run: Run, rows: Sequence[int], trials: int, missing: Missing, *, of: str = "run"
) -> Iterator[Note]:
    """A note on a scorer's records without a score, if there are some. of: whose they are, "run" or "baseline"."""
    without = Counter(map(run.columns.kind, rows))
    del without["score"]
    if not without:
        return
    undefined_ones = without["undefined"]
    if missing == "ignore":
        kind = "missing_left_out"
    else:
        kind = "missing_partly_counted" if missing == "failed" and undefined_ones else "missing_counted"
    counted = sum(without[kind] for kind in kinds_that_count(missing))
    numbers = {"without_score": without.total(), "counted": counted, "undefined": undefined_ones}
    yield note(kind, "caution", name, of=of, noun="sample" if trials == 1 else "answer", **numbers)
