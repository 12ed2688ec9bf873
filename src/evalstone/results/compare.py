"""Comparison of runs over the same samples: paired differences, tests, and the samples that changed most.

Differences are taken sample by sample: the second run minus the first. Which runs are comparable, `comparable_runs`
decides.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evalstone._core.declarations import check_flags
from evalstone._core.display import count
from evalstone._core.file_format import COMPARISON_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone._core.truth import PASSED, all_passed
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.report.frames import Framed, SampleRows
from evalstone.report.shown import Shown
from evalstone.results.comparable_runs import (
    BuiltPairs,
    PairedScorers,
    pair_runs,
    same_outputs,
    unpaired_runs,
)
from evalstone.results.corrections import CorrectedDifference
from evalstone.results.human_labels import Labels, LabelsSpec, labeled_pairs, labels_of
from evalstone.results.largest_change import LARGEST_CHANGE, MARGIN, BySetting, check_changes, reaches_by_scorer
from evalstone.results.missing_scores import Missing, check_missing
from evalstone.results.of_scorer import OfScorer, result_for
from evalstone.results.paired_scores import PairedScores
from evalstone.results.pairing import Pairing
from evalstone.results.run import check_runs
from evalstone.results.scores import Scores, group_labels, scores_of
from evalstone.results.slices import SliceBy, field_name, slice_fields, slice_keys
from evalstone.results.summary import ScorerInfo
from evalstone.results.unpaired import UnpairedScores
from evalstone.stats.intervals import MIN_SAMPLES, Ends, Interval
from evalstone.stats.multiple_testing import CORRECTIONS, Correction, adjust_p_values
from evalstone.stats.packed_scores import open_ends
from evalstone.types import Note, about, note

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.stats.comparison import ComparisonVerdict, PairedComparison
    from evalstone.stats.comparison_of_many import ManyComparison
    from evalstone.stats.pilot import Pilot
    from evalstone.stats.unpaired import UnpairedComparison

CORRECTION_NAMES: Mapping[str, str] = {"holm": "Holm", "fdr_bh": "Benjamini-Hochberg"}
MAX_CHANGES = 10


@dataclass(frozen=True, kw_only=True)
class Change:
    """A sample whose score differs between two runs."""

    sample_id: str
    """The sample's ID in the baseline."""
    a: float
    """Its score in the baseline."""
    b: float
    """Its score in the other run."""
    sample_id_b: str
    """The sample's ID in the other run. Only default IDs, which are hashes of the content, differ."""


@dataclass(frozen=True, kw_only=True)
class ScorerComparison(OfScorer):
    """One scorer in one pair of runs, over all samples or one slice."""

    a: str
    """The letter of the baseline."""
    b: str
    """The letter of the run compared with it."""
    info_b: ScorerInfo
    """The scorer in run b. It differs from `info` only if mismatches are allowed."""
    result: PairedComparison | UnpairedComparison
    """What the comparison is based on: the means, the test, the counts."""
    adjusted_p_value: float
    """`p_value`, corrected for multiple comparisons."""
    confidence: float
    """The confidence level. A difference is significant if the adjusted p-value is at most 1 - confidence."""
    unpaired: int = 0
    """The number of samples with a score in only one of the runs that are left out."""
    unscored: int = 0
    """The number of samples of both runs without a score in either that are left out, such as those for which the score
    is undefined in both."""
    of_both: int = 0
    """The number of samples that both runs have; of a slice, of those that count; 0 for unpaired runs."""
    without: tuple[int, int] = (0, 0)
    """The number of samples that count although a score, or that of a trial, is missing in a, and in b."""
    field: str = ""
    """The field of the slice; "" for all samples."""
    key: str = ""
    """The value of the field in the slice."""
    changes: tuple[Change, ...] = ()
    """The samples with the largest changes, largest first."""
    adjusted_equivalence: float | None = None
    """The p-value of the test of equivalence, corrected for multiple comparisons; None without a margin."""
    detectable: float | None = None
    """The smallest true difference that this many pairs would have detected with a power of 80%, allowing for the
    number of comparisons that p-values are corrected for. None if not even the largest possible one, such as where
    missing scores could hide any; for weighted samples, unpaired runs and runs that their gate stopped (a note of the
    comparison says which); and for slices and differences that are not inconclusive."""

    @property
    def difference(self) -> Interval:
        """The mean difference, b - a, with its confidence interval."""
        return self.result.difference

    @property
    def p_value(self) -> float:
        """The p-value of the difference. `adjusted_p_value` is the one that decides."""
        return self.result.p_value

    @property
    def improvement(self) -> float:
        """The mean difference, with the sign that makes positive values better."""
        return -self.difference.estimate if self.info.lower_is_better else self.difference.estimate

    @property
    def verdict(self) -> ComparisonVerdict:
        """Whether b is significantly better or worse than a, or equivalent within the margin, after correction.

        A significant difference within the margin is "equivalent".
        """
        if self.adjusted_equivalence is not None and self.adjusted_equivalence <= 1 - self.confidence:
            return "equivalent"
        if self.adjusted_p_value > 1 - self.confidence or self.improvement == 0:
            return "inconclusive"
        return "better" if self.improvement > 0 else "worse"

    @property
    def passed(self) -> bool | None:
        """True if b is better or equivalent, False if it is worse; None if that is inconclusive."""
        return PASSED[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            **self.info.to_dict(),
            "a": self.a,
            "b": self.b,
            "slice": {"field": self.field, "key": self.key} if self.field else None,
            "verdict": self.verdict,
            "adjusted_p_value": self.adjusted_p_value,
            "adjusted_equivalence": self.adjusted_equivalence,
            "detectable": self.detectable,
            "unpaired": self.unpaired,
            "unscored": self.unscored,
            "of_both": self.of_both,
            "without": list(self.without),
            **to_jsonable(self.result),
            "improvement": self.improvement,
            "changes": to_jsonable(self.changes),
        }


@dataclass(frozen=True, kw_only=True)
class Comparison(Framed, Shown):
    """Runs compared with a baseline, sample by sample."""

    runs: Mapping[str, Run]
    """The runs by letter ("A", "B" …); A is the baseline."""
    scorers: tuple[ScorerComparison, ...]
    """One comparison for each run and scorer, over all samples."""
    slices: tuple[ScorerComparison, ...]
    """The same for each slice with at least five samples (groups)."""
    notes: tuple[Note, ...]
    """How the runs differ apart from their scores, and how many slices are left out. Those that make the comparison
    doubtful, such as mismatches that are allowed, are warnings."""
    correction: Correction
    """The correction for multiple comparisons, over all scorers and runs together (slices: over all slices)."""
    confidence: float
    """The confidence level of intervals and verdicts."""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """The names of runs in reports, by letter, for runs with a name."""
    corrected: tuple[CorrectedDifference, ...] = ()
    """The differences corrected by human labels, for the runs and scorers with labels."""
    all_runs: Mapping[str, ManyComparison] = dataclasses.field(default_factory=dict[str, "ManyComparison"])
    """With three runs or more: all pairs and the possible ranks, by scorer, over the samples that every run scored.
    Empty if a gate stopped one of them."""
    _paired: BuiltPairs = dataclasses.field(default_factory=BuiltPairs, repr=False, compare=False)

    def __getitem__(self, scorer: str) -> ScorerComparison:
        """The first comparison of a scorer, by title, signature or name.

        Raises:
            UnknownName: the scorer is unknown, ambiguous, or was not compared.
        """
        return result_for(self.scorers, self.runs["A"], scorer)

    @property
    def passed(self) -> bool | None:
        """True if every scorer is better or equivalent, False if any is worse; None if neither can be said."""
        return all_passed(one.passed for one in self.scorers)

    @property
    def correction_text(self) -> str:
        """How the p-values are corrected, such as "corrected for 5 comparisons (Holm)"."""
        return corrected_for(self.scorers, self.correction)

    @property
    def slice_correction_text(self) -> str:
        """How the p-values of slices are corrected."""
        return corrected_for(self.slices, self.correction)

    def sample_rows(self) -> SampleRows:
        """One row per sample, scorer and run that is compared with the baseline. Raises ConfigError for runs that were
        compared without pairing their samples."""
        from evalstone.results.views.sample_rows import comparison_rows  # noqa: PLC0415 - only who exports needs it

        return comparison_rows(self)

    def csv_lines(self) -> Iterable[str]:
        """One row per scorer, pair of runs and slice."""
        from evalstone.results.views.exports import comparison_csv  # noqa: PLC0415 - only who writes it needs it

        return comparison_csv(self)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.runs)}: {count(len(self.scorers), 'comparison')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The tables that `evalstone compare` shows."""
        from evalstone.results.views.comparison import comparison_view  # noqa: PLC0415 - numpy

        return comparison_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, as `evalstone compare --json` prints it."""
        return {
            "format": COMPARISON_FORMAT,
            "runs": {letter: {**run.metadata(), "scorers": None} for letter, run in self.runs.items()},
            "notes": [note.to_dict() for note in self.notes],
            "correction": self.correction,
            "confidence": self.confidence,
            "scorers": [line.to_dict() for line in self.scorers],
            "slices": [line.to_dict() for line in self.slices],
            "corrected": [line.to_dict() for line in self.corrected],
            "all_runs": to_jsonable(dict(self.all_runs)),
        }


def compare(
    a: Run,
    b: Run,
    *others: Run,
    slice_by: SliceBy | Iterable[SliceBy] | None = None,
    unpaired: bool = False,
    allow_mismatch: bool = False,
    correction: Correction = "holm",
    confidence: float = 0.95,
    missing: Missing = "worst",
    max_change: BySetting = None,
    margin: BySetting = None,
    labels: Mapping[str, Mapping[str, LabelsSpec]] | None = None,
) -> Comparison:
    """Compare runs over the same samples.

    Args:
        a: the baseline.
        b: the run to compare with the baseline.
        others: more runs to compare with the baseline.
        slice_by: metadata fields, or functions of a sample. Their slices are compared as well.
        unpaired: compare the means of runs over different samples, assuming that the samples are independent.
        allow_mismatch: compare runs whose judges, scorer signatures or cases differ. The differences become warnings.
        correction: the correction for multiple comparisons. "holm" controls the family-wise error rate, "fdr_bh" the
            false discovery rate, and "none" doesn't correct.
        confidence: the confidence level of intervals and verdicts.
        missing: how samples count that have no score in one of the runs. "worst": p-values and intervals hold whatever
            these scores are. "failed" does so for failures and missing answers of the judge, and leaves out samples
            whose score is undefined. "ignore" leaves them all out, which is valid only if scores are missing at random.
        max_change: the largest possible change of a sample's score, for all scorers or by scorer. Without it, the tests
            allow for rare changes by the whole scale that no sample shows; with it, they find much smaller differences.
            Declare it before you look at the scores.
        margin: means that differ by less are equivalent, for all scorers or by scorer.
        labels: by run ("A", "B" …) and scorer, human scores of the outputs: a path, or what `load_labels` returns. They
            add differences corrected for the judge's errors. Only samples with a label for the outputs of both runs are
            used.

    Raises:
        ConfigError: the runs are not comparable, or an argument is invalid.
        DataError: a sample changes by more than `max_change`.
    """
    check_flags(unpaired=unpaired, allow_mismatch=allow_mismatch)
    check_runs(a=a, b=b, **{f"others[{place}]": other for place, other in enumerate(others)})
    runs = letters_of((a, b, *others))
    stopped = any(run.drawn is not None for run in runs.values())
    check_missing(missing)
    if correction not in CORRECTIONS:
        raise ConfigError(invalid(Setting("correction"), f"one of {', '.join(CORRECTIONS)}", correction))
    if labels:
        _check_labels(runs.values(), stopped=stopped, unpaired=unpaired)
    if unpaired and not (max_change is None and margin is None):
        name = MARGIN if max_change is None else LARGEST_CHANGE
        raise ConfigError(Setting(name, ...), " is for paired samples: leave it out, or ", Setting("unpaired", True))
    by_setting = {
        name: reaches_by_scorer(name, value, a.scorers, lambda scorer: a[scorer].info, a.titles)
        for name, value in ((LARGEST_CHANGE, max_change), (MARGIN, margin))
    }
    settings = _Settings(missing, confidence, by_setting)
    human = _by_signature(runs, labels or {})
    fields = [(field, slice_keys(a, field)) for field in slice_fields(slice_by)]
    lines: list[ScorerComparison] = []
    pilots: list[Pilot | None] = []
    sliced = _Slices(settings)
    corrected: list[CorrectedDifference] = []
    by_run = BuiltPairs()
    notes: list[Note] = []
    for letter, run in itertools.islice(runs.items(), 1, None):
        if unpaired:
            pairs, differences = unpaired_runs(a, run, allow_mismatch=allow_mismatch, missing=missing)
        else:
            pairs, differences = pair_runs(a, run, allow_mismatch=allow_mismatch, missing=missing)
            by_run.pairings[letter] = pairs.pairing
        notes += about(differences, "A", letter)
        compared = len(lines)
        for pair in pairs:
            if isinstance(pairs, PairedScorers):
                by_run.add((letter, pair.info.signature), partial(pairs.build, pair.info, pair.info_b))
            of_scorer = [*_compare_scorer(pair, letter, settings)]
            lines += of_scorer
            both = human.get(("A", pair.info.signature), {}), human.get((letter, pair.info_b.signature), {})
            if any(both) and isinstance(pair, PairedScores):
                corrected.append(
                    _corrected_difference(pair, letter, both, same_outputs(a, run, pair.pairing), confidence)
                )
            for by, keys in fields:
                if isinstance(pair, PairedScores):
                    sliced.add(letter, field_name(by), pair.slices(keys))
                else:
                    sliced.add(letter, field_name(by), pair.slices(keys, slice_keys(run, by)))
            of_pilots = [_of_pilot(line, pair) for line in of_scorer]
            del pair  # what is made of the scores, and those of the next one, may be large, too
            pilots += map(_pilot, of_pilots)
            del of_pilots
        if isinstance(pairs, PairedScorers):
            notes += about(_not_compared(a, pairs, lines[compared:]), "A", letter)
    tests = 1 if correction == "none" else len(lines)
    whole = tuple(
        _with_detectable(line, pilot, by_run, tests)
        for line, pilot in zip(_corrected(lines, correction), pilots, strict=True)
    )
    for letter in [*runs][1:]:
        of_pair = [line for line in whole if line.b == letter]
        notes += about(_limits_of_findings(of_pair, tests, stopped=stopped), "A", letter)
    ranked = bool(others) and not unpaired and not stopped
    if others and stopped and not unpaired:
        notes.append(note("not_ranked"))
    return Comparison(
        runs=runs,
        scorers=whole,
        slices=_corrected(sliced.lines, correction),
        notes=(*notes, *sliced.notes),
        correction=correction,
        confidence=confidence,
        corrected=_adjusted(corrected, correction),
        all_runs=_compare_all(runs, {"A": Pairing(), **by_run.pairings}, lines, settings) if ranked else {},
        _paired=by_run,
    )


def _not_compared(a: Run, pairs: PairedScorers, lines: Sequence[ScorerComparison]) -> Iterator[Note]:
    """The scorers of both runs that have no pair of scores."""
    there = {line.info.signature for line in lines}
    for info, _ in pairs.scorers:
        if info.signature not in there:
            yield note("not_compared", "caution", scorers=(a.titles[info.signature],))


def paired_in(comparison: Comparison) -> BuiltPairs:
    """The scores behind the comparisons of all samples, by the letter of the run and the scorer's signature in A. Empty
    for unpaired runs. They are built whenever they are taken from it."""
    return comparison._paired  # pyright: ignore[reportPrivateUsage]


def compare_slices(
    pairs: Mapping[tuple[str, str], PairedScores], field: str, keys: Mapping[str, str]
) -> tuple[tuple[ScorerComparison, ...], tuple[Note, ...]]:
    """The slices that `compare` finds with its other arguments as they are by default, and the notes on them.

    Args:
        pairs: The scores, as by `paired_in`.
        field: The name of the field.
        keys: The slice key of each sample, by its ID in A.
    """
    sliced = _Slices(_Settings())
    for (letter, _), pair in pairs.items():
        sliced.add(letter, field, pair.slices(keys))
    return _corrected(sliced.lines, "holm"), (*sliced.notes,)


def corrected_for(lines: Sequence[ScorerComparison], correction: Correction = "holm") -> str:
    """How the p-values of these comparisons are corrected."""
    if correction == "none":
        return "not corrected for multiple comparisons"
    return f"corrected for {count(len(lines), 'comparison')} ({CORRECTION_NAMES[correction]})"


def _check_labels(runs: Iterable[Run], *, stopped: bool, unpaired: bool) -> None:
    """Raise ConfigError unless human labels can correct the differences of these runs."""
    if stopped:
        raise ConfigError("human labels can't correct the difference of a run that its own gate stopped")
    if any(run.trials > 1 for run in runs):
        raise ConfigError("labels are for single answers: they can't correct differences of runs with trials")
    if unpaired:
        raise ConfigError(
            "labels correct differences by sample: leave out ",
            Setting("labels", ...),
            " or ",
            Setting("unpaired", True),
        )


@dataclass(frozen=True)
class _Settings:
    """How scores are compared."""

    missing: Missing = "worst"
    confidence: float = 0.95
    by_setting: Mapping[str, Mapping[ScorerInfo, float]] = dataclasses.field(
        default_factory=dict[str, Mapping[ScorerInfo, float]]
    )
    """The largest change, and the margin, of the scorers that have one."""

    def of(self, info: ScorerInfo) -> dict[str, float | None]:
        """The largest change and the margin of a scorer."""
        return {name: self.by_setting.get(name, {}).get(info) for name in (LARGEST_CHANGE, MARGIN)}


@dataclass
class _Slices:
    """The comparisons of slices, and those that are left out."""

    settings: _Settings
    lines: list[ScorerComparison] = dataclasses.field(default_factory=list["ScorerComparison"])
    _small: dict[str, set[str]] = dataclasses.field(default_factory=dict[str, set[str]])
    """By field, the keys of slices with too few samples."""

    def add(self, letter: str, field: str, parts: Iterable[tuple[str, PairedScores | UnpairedScores]]) -> None:
        """Compare a scorer's slices by a field. letter: that of the run; parts: the scores by key."""
        for key, part in parts:
            if part.units < MIN_SAMPLES:
                self._small.setdefault(field, set()).add(key)
                continue
            of_slice = _compare_scorer(part, letter, self.settings)
            self.lines += (dataclasses.replace(line, field=field, key=key) for line in of_slice)

    @property
    def notes(self) -> Iterator[Note]:
        """How many slices are left out, by field."""
        for field, left_out in self._small.items():
            yield note("slices_too_small", slices=len(left_out), field=field, least=MIN_SAMPLES)


def _compare_scorer(
    pair: PairedScores | UnpairedScores, letter: str, settings: _Settings
) -> Iterator[ScorerComparison]:
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy
    from evalstone.stats.unpaired import compare_unpaired  # noqa: PLC0415 - numpy

    info, confidence, columns = pair.info, settings.confidence, pair.columns
    options: dict[str, Any] = {
        "scale": info.scale,
        "confidence": confidence,
        "lower_is_better": info.lower_is_better,
    }
    equivalence, unpaired, unscored, of_both = None, 0, 0, 0
    if isinstance(pair, UnpairedScores):
        result = compare_unpaired(**columns, **options)
    else:
        used, unpaired, unscored, of_both = settings.of(info), pair.unpaired, pair.unscored, pair.of_both
        if used[LARGEST_CHANGE] is not None:
            check_changes(pair.title, pair.known.rows, used[LARGEST_CHANGE])
        result = compare_pairs(**columns, **options, max_change=used[LARGEST_CHANGE], margin=used[MARGIN])
        equivalence = None if result is None else result.equivalence
    without = _without(columns["ends"])
    del columns  # the largest changes take much memory, too
    if result is not None:
        yield ScorerComparison(
            title=pair.title,
            info=info,
            a="A",
            b=letter,
            info_b=pair.info_b,
            result=result,
            adjusted_p_value=result.p_value,
            confidence=confidence,
            unpaired=unpaired,
            unscored=unscored,
            of_both=of_both,
            without=without,
            changes=() if isinstance(pair, UnpairedScores) else tuple(_changes(pair)),
            adjusted_equivalence=None if equivalence is None else equivalence.p_value,
        )


def _changes(pair: PairedScores) -> Iterator[Change]:
    """The samples that changed most, the largest change first."""
    from evalstone.stats.comparison import biggest_changes  # noqa: PLC0415 - numpy

    for row in biggest_changes(pair.a, pair.b, MAX_CHANGES):
        name, a, b = pair.samples[row], pair.a[row], pair.b[row]
        if a is not None and b is not None:
            yield Change(sample_id=name, a=a, b=b, sample_id_b=pair.pairing.in_second(name))


def _without(ends: tuple[Sequence[Ends], Sequence[Ends]] | None) -> tuple[int, int]:
    """The number of open scores in each of two runs. ends: the possible values; None if every score is there."""
    in_a, in_b = map(open_ends, ends or ((), ()))
    return in_a, in_b


def _of_pilot(line: ScorerComparison, pair: PairedScores | UnpairedScores | None) -> dict[str, Any] | None:
    """The arguments of `Pilot.of`, which the minimum detectable difference is computed from, if the comparison of these
    scores is inconclusive."""
    from evalstone.stats.comparison import PairedComparison  # noqa: PLC0415 - numpy

    result = line.result
    if line.verdict != "inconclusive" or not (isinstance(pair, PairedScores) and isinstance(result, PairedComparison)):
        return None
    if pair.weights is not None or pair.stopped:
        return None
    return pair.of_pilot(result.max_change or line.info.scale)


def _pilot(arguments: dict[str, Any] | None) -> Pilot | None:
    from evalstone.stats.pilot import Pilot  # noqa: PLC0415 - numpy

    return None if arguments is None else Pilot.of(**arguments)


def _with_detectable(
    line: ScorerComparison, pilot: Pilot | None, pairs: Mapping[tuple[str, str], PairedScores], tests: int
) -> ScorerComparison:
    """The comparison with its minimum detectable difference, if it is inconclusive.

    Args:
        line: The comparison, with corrected p-values.
        pilot: Its pilot, if it was inconclusive without the correction, too.
        pairs: The scores to make the pilot of, if it was not.
        tests: The number of comparisons that p-values are corrected for; without a correction, 1.
    """
    if line.verdict != "inconclusive":
        return line
    pilot = pilot or _pilot(_of_pilot(line, pairs.get((line.b, line.info.signature))))
    confidence = 1 - (1 - line.confidence) / tests
    return dataclasses.replace(line, detectable=pilot and pilot.detectable(confidence=confidence))


def _limits_of_findings(lines: Sequence[ScorerComparison], tests: int, *, stopped: bool) -> Iterator[Note]:
    """Why an inconclusive difference has an interval without 0, or no minimum detectable difference.

    tests: The number of comparisons that p-values are corrected for; without a correction, 1.
    """
    undecided = [line for line in lines if line.verdict == "inconclusive"]
    if outside := [line.title for line in undecided if _is_outside(line.difference)]:
        yield note("interval_uncorrected", scorers=tuple(outside), comparisons=tests)
    by_reason: dict[str, list[str]] = {}
    for line in undecided:
        if line.detectable is None:
            by_reason.setdefault(_why_undetectable(line, stopped=stopped), []).append(line.title)
    for why, titles in by_reason.items():
        yield note("nothing_detectable", scorers=tuple(titles), why=why)


def _is_outside(interval: Interval) -> bool:
    """Whether an interval excludes 0."""
    return interval.low is not None and interval.high is not None and (interval.low > 0 or interval.high < 0)


def _why_undetectable(line: ScorerComparison, *, stopped: bool) -> str:
    """Why an inconclusive comparison has no minimum detectable difference."""
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    if isinstance(line.result, UnpairedComparison):
        return "unpaired"
    if stopped:
        return "stopped"
    if line.difference.effective is not None:
        return "weighted"
    if line.result.missing:
        return "missing"
    return "single" if 1 in (line.difference.n, line.difference.groups) else "scale"


def letters_of(runs: Sequence[Run]) -> Mapping[str, Run]:
    """The runs by the letters that a comparison gives them."""
    letters = (chr(ord("A") + n) if n < 26 else f"R{n + 1}" for n in itertools.count())
    return dict(zip(letters, runs, strict=False))


def _by_signature(
    runs: Mapping[str, Run], labels: Mapping[str, Mapping[str, LabelsSpec]]
) -> Mapping[tuple[str, str], Labels]:
    """The labels by run and scorer signature."""
    for letter in labels:
        if letter not in runs:
            raise ConfigError(unknown("run with labels", letter, runs))
    return {
        (letter, runs[letter][name].info.signature): labels_of(runs[letter], name, of_scorer)
        for letter, of_run in labels.items()
        for name, of_scorer in of_run.items()
    }


def _corrected_difference(
    pair: PairedScores, letter: str, labels: tuple[Labels, Labels], same: frozenset[str], confidence: float
) -> CorrectedDifference:
    from evalstone.stats.ppi import ppi_difference  # noqa: PLC0415 - numpy

    arguments = labeled_pairs(pair.known, pair.pairing, labels, same)
    result = ppi_difference(**arguments, scale=pair.info.scale, confidence=confidence)
    if result is None:
        raise ConfigError(f"{pair.title}: no sample was scored in both runs")
    return CorrectedDifference(
        title=pair.title,
        info=pair.info,
        a="A",
        b=letter,
        result=result,
        adjusted_p_value=result.p_value,
        confidence=confidence,
    )


def _adjusted(lines: Sequence[CorrectedDifference], correction: Correction) -> tuple[CorrectedDifference, ...]:
    p_values = [1.0 if line.p_value is None else line.p_value for line in lines]
    return tuple(
        dataclasses.replace(line, adjusted_p_value=None if line.p_value is None else p)
        for line, p in zip(lines, adjust_p_values(p_values, correction), strict=True)
    )


def _corrected(lines: Sequence[ScorerComparison], correction: Correction) -> tuple[ScorerComparison, ...]:
    p_values = adjust_p_values([line.p_value for line in lines], correction)
    with_margin = [line.adjusted_equivalence for line in lines if line.adjusted_equivalence is not None]
    equivalence = iter(adjust_p_values(with_margin, correction))
    return tuple(
        dataclasses.replace(
            line,
            adjusted_p_value=p,
            adjusted_equivalence=None if line.adjusted_equivalence is None else next(equivalence),
        )
        for line, p in zip(lines, p_values, strict=True)
    )


def _compare_all(
    runs: Mapping[str, Run],
    pairings: Mapping[str, Pairing],
    lines: Sequence[ScorerComparison],
    settings: _Settings,
) -> dict[str, ManyComparison]:
    """The comparison of all runs at once, for the scorers that every run has."""
    from evalstone.stats.comparison_of_many import compare_many  # noqa: PLC0415 - numpy

    results: dict[str, ManyComparison] = {}
    for title in dict.fromkeys(line.title for line in lines):
        of_scorer = [line for line in lines if line.title == title]
        if len(of_scorer) != len(runs) - 1:
            continue
        info = of_scorer[0].info
        signatures = {"A": info.signature, **{line.b: line.info_b.signature for line in of_scorer}}
        scores = {
            letter: scores_of(runs[letter], signature, settings.missing) for letter, signature in signatures.items()
        }
        if max(runs[letter].trials for letter in scores) > 1:
            scores = {letter: of.by_sample for letter, of in scores.items()}
        clustered = any(of.groups is not None for of in scores.values())
        scores = _in_all(scores, pairings)
        columns = {letter: of.values for letter, of in scores.items()}
        names = scores["A"].names
        largest_change = settings.of(info)[LARGEST_CHANGE]
        for one, other in itertools.combinations([*columns][1:], 2):
            both = zip(names, columns[one], columns[other], strict=True)
            known = [(name, x, y) for name, x, y in both if x is not None and y is not None]
            check_changes(title, known, largest_change, times=2)
        groups: Iterable[str | None] = [None] * len(names)
        for of in scores.values():
            groups = [x if x is not None else y for x, y in zip(groups, of.groups or groups, strict=True)]
        result = compare_many(
            columns,
            scale=info.scale,
            confidence=settings.confidence,
            groups=group_labels(names, groups) if clustered else None,
            weights=scores["A"].unequal_weights,
            lower_is_better=info.lower_is_better,
            ends={letter: of.all_ends for letter, of in scores.items()},
            undefined={letter: [row in of.undefined for row in range(len(of))] for letter, of in scores.items()},
            max_change=largest_change,
        )
        if result is not None:
            results[title] = result
    return results


def _in_all(scores: Mapping[str, Scores], pairings: Mapping[str, Pairing]) -> Mapping[str, Scores]:
    """The scores of the samples that every run has, in the order of the first. Those whose score is undefined in all of
    them are left out."""
    common = scores["A"]
    for letter, of in scores.items():
        common = common.at(pairings[letter].match(common.names, of.names)[0])
    aligned = {letter: of.at(pairings[letter].match(common.names, of.names)[1]) for letter, of in scores.items()}
    rows = [row for row in range(len(common)) if not all(row in of.undefined for of in aligned.values())]
    return {letter: of.at(rows) for letter, of in aligned.items()}
