"""The baseline of a gate that watches a run: which scores of an earlier run the new ones are compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from evalstone._core.display import count
from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError
from evalstone.results.columns import Entry
from evalstone.results.comparable_runs import check_written, pairing_with_baseline
from evalstone.results.missing_scores import Missing, pair_counts
from evalstone.results.run import Run
from evalstone.results.run_notes import KEPT_REASONING, LEFT_OUT_REASONING
from evalstone.results.scores import refuse_weights
from evalstone.results.summary import WITHOUT, ScorerInfo, summarize
from evalstone.run.plan import Plan, scorer_info
from evalstone.scorers import Scorer
from evalstone.stats.betting import Value
from evalstone.stats.intervals import check_reach
from evalstone.stats.paired_differences import possible_difference
from evalstone.types import Note, Record, StoredTarget


class Baseline:
    """A finished run over the same samples, whose scores are the baseline of a run that hasn't begun.

    Args:
        run: The finished run.
        plan: The plan of the new run.
        scorers: The scorers that are compared.
        missing: How samples without a score count, as in `results.gate.gate`.
        allow_mismatch: Accept a run whose judge, scorers or cases differ.

    Raises:
        ConfigError: The runs are not comparable, the baseline was stopped by its own gate, broken off or has several
            trials of each sample, or its samples are clustered or weighted.
    """

    def __init__(
        self,
        run: Run,
        plan: Plan,
        scorers: Mapping[str, ScorerInfo],
        missing: Missing,
        *,
        allow_mismatch: bool = False,
    ) -> None:
        instead = "run it again without its gate"
        _check_kind(run)
        if run.drawn is not None:
            raise ConfigError(f"the baseline was stopped by its own gate; {instead}")
        if run.ending.broken_off:
            raise ConfigError(f"the baseline was broken off ({run.stop_reason}); resume it first")
        _check_trials(run, 1)
        self._missing: Missing = missing
        self._run, self._allow_mismatch = run, allow_mismatch
        paired = pairing_with_baseline(run, _planned(run, plan, scorers), allow_mismatch=allow_mismatch, whole=False)
        self._pairing, self._signatures = paired.pairing, paired.signatures
        self.notes = paired.notes
        """Mismatches that are allowed, and what the samples are paired by, if not by ID."""
        self._entries: dict[str, dict[str, Entry]] = {signature: {} for signature in scorers}
        for entry in run.columns.entries():
            if (ours := paired.signatures.get(entry.signature)) is not None:
                if entry.group is not None:
                    raise ConfigError(
                        f"sample {entry.sample_id!r} of the baseline is in group {entry.group!r}: clustered samples "
                        "cannot be gated one by one; gate the finished run instead"
                    )
                self._entries[ours][entry.key] = entry
        weights = ((entry.key, entry.weight) for of in self._entries.values() for entry in of.values())
        refuse_weights(weights, "a gate that stops the run", "gate the finished run instead (evalstone gate)")
        self.unpaired = 0
        """The number of scores so far whose sample was not scored in the baseline. They are left out."""

    def pair(self, record: Record) -> tuple[float | None, float | None] | None:
        """The scores of a sample in the baseline and in the run; None if the sample doesn't count."""
        before = self._entries[record.signature].get(self._pairing.in_first(record.key))
        if before is None:
            self.unpaired += 1
            return None
        return (before.value, record.value) if pair_counts(Entry.of(record), before, self._missing) else None

    def check_written(self, run: Run) -> tuple[Note, ...]:
        """Check what judges wrote during the run, which nothing knew before; returns the mismatches that are allowed.

        Raises:
            ConfigError: a sample was scored against something else than in the baseline.
        """
        found = check_written(self._run, run, self._signatures, allow_mismatch=self._allow_mismatch)
        return tuple(note for note in found if note not in self.notes)


def check_comparable(baseline: Run, plan: Plan, titles: Collection[str], *, allow_mismatch: bool) -> None:
    """Check that a run that hasn't begun can be compared with a baseline, for the scorers with these titles.

    Raises:
        ConfigError: it can't, whatever its scores are.
    """
    _check_kind(baseline)
    _check_trials(baseline, plan.trials)
    infos = {info.signature: info for info in map(scorer_info, plan.scorers) if plan.titles[info.signature] in titles}
    pairing_with_baseline(baseline, _planned(baseline, plan, infos), allow_mismatch=allow_mismatch, whole=True)


def _check_kind(baseline: Run) -> None:
    if baseline.kind != "evaluation":
        raise ConfigError(
            f"the baseline {baseline.id} is part of a judge's {baseline.kind}, not an evaluation of outputs"
        )


def _check_trials(baseline: Run, trials: int) -> None:
    """Raise ConfigError for a baseline with another number of trials than the run will have."""
    if baseline.trials != trials:
        raise ConfigError(
            f"the baseline has {count(baseline.trials, 'trial')} of each sample and the run has {trials:,}; a "
            "comparison needs the same number in both"
        )


class Difference:
    """The difference of each sample from the baseline, as a value of a sequential test.

    Args:
        info: The scorer.
        title: Its title.
        margin: The largest acceptable regression.
        max_change: The largest change, as declared; None for the scale.

    Raises:
        ConfigError: The largest change is outside (0, scale], or the margin is not in [0, largest change).
    """

    def __init__(self, info: ScorerInfo, title: str, margin: float, max_change: float | None) -> None:
        self._scale = info.scale
        check_reach((Setting("max_change"), f" of {title}"), max_change, info.scale)
        self.reach = info.scale if max_change is None else max_change
        if not 0 <= margin < self.reach:
            largest = "" if max_change is None else ", the largest change"
            raise ConfigError(
                Setting("max_regression"),
                f" of {title} must be 0 or more and below {self.reach:g}{largest}, not {margin:g}",
            )

    def of(self, before: float | None, after: float | None) -> Value:
        """The lowest and the highest possible difference of a sample that changes by at most the largest change."""
        return possible_difference(before, after, scale=self._scale, reach=self.reach)


def _planned(baseline: Run, plan: Plan, scorers: Mapping[str, ScorerInfo]) -> Run:
    """The run of a plan as far as it is known before it begins."""
    before = {line.info.signature: line.judges for line in baseline.summary}
    judges = {
        signature: _judges(scorer, plan, before.get(signature, ()))
        for scorer in plan.scorers
        if (signature := scorer.signature) in scorers
    }
    infos = tuple(scorer_info(scorer) for scorer in plan.scorers if scorer.signature in scorers)
    user, target = "" if plan.user is None else plan.user.identity, plan.target
    return Run(
        id="",
        dataset_name=plan.dataset.name,
        dataset_version=plan.dataset.version,
        n_samples=len(plan.dataset),
        judge="",
        judge_note="",
        scorers=infos,
        records=(),
        summary=tuple(replace(line, judges=judges[line.info.signature]) for line in summarize(infos, ())),
        started="",
        seconds=0.0,
        warnings={KEPT_REASONING if plan.keep_reasoning else LEFT_OUT_REASONING: 1},
        samples=plan.dataset.samples,
        target=None if target is None else StoredTarget(identity=target.identity, trials=plan.trials, user=user),
    )


def _judges(scorer: Scorer, plan: Plan, before: tuple[str, ...]) -> tuple[str, ...]:
    """The judges that a scorer will ask: the baseline's if they are among those of the plan."""
    own = (*scorer.judges, *([plan.judge] if scorer.asks_shared_judge else ()))
    identities = {judge.identity for judge in own}
    same = all(name.partition(WITHOUT)[0] in identities for name in before)
    return before if same else tuple(sorted(identities))
