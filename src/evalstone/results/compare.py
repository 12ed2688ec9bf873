"""Comparison of runs over the same samples: paired differences, tests, and the samples that changed most.

Runs are comparable if the same judge scored the same cases with the same scorers. Samples are paired by ID or by what
was asked (`evalstone.results.pairing`). Cases are the same if paired samples have equal inputs, references,
instructions, and whatever else answers are held against. Outputs, contexts and conversations are under test and may
differ. Differences are taken sample by sample: the second run minus the first.
"""

from __future__ import annotations

import dataclasses
import itertools
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from evalstone._core.display import count, excerpt
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.terms import term
from evalstone.errors import ConfigError, DataError, unknown
from evalstone.results.entries import comparable
from evalstone.results.human_labels import CorrectedDifference, Labels, labeled_pairs
from evalstone.results.missing_scores import Missing, check_missing
from evalstone.results.pairing import Pairing, id_hint, pair_samples, question_of
from evalstone.results.run import KEPT_REASONING, LEFT_OUT_REASONING, OfScorer, Run, result_for
from evalstone.results.scores import Ends, check_same_weights, group_labels, scores_by_sample, weight_column
from evalstone.results.slices import ABSENT, SliceBy, field_name, slice_fields, slice_keys, slice_order
from evalstone.results.summary import ScorerInfo, values_by_scorer
from evalstone.results.unpaired import UnpairedScores, unpaired_scores
from evalstone.stats.intervals import MIN_SAMPLES, check_number
from evalstone.stats.multiple_testing import CORRECTIONS, Correction, adjust_p_values
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.stats import comparison as stats
    from evalstone.stats.unpaired import UnpairedComparison

CORRECTION_NAMES: Mapping[str, str] = {"holm": "Holm", "fdr_bh": "Benjamini-Hochberg"}
COMPARISON_FORMAT = 1
MAX_CHANGES = 10
CASE_FIELDS = ("input", "reference", "instructions")
CASE_METADATA = ("criterion", "goal", "noisy_query", "relevant", "rubric", "topics")
"""Entries of the metadata that scorers hold answers against."""
TESTED_FIELDS = ("output", "context", "messages", "trajectory")


ComparisonVerdict: TypeAlias = Literal["better", "worse", "equivalent", "inconclusive"]
BySetting: TypeAlias = float | Mapping[str, float] | None
"""A number for all scorers, or one by scorer (title, signature or name)."""
LARGEST_CHANGE = "max_change"
MARGIN = "margin"


@dataclass(frozen=True)
class Change:
    """A sample whose score differs between two runs."""

    sample: str
    """The sample's ID in the baseline."""
    a: float
    """Its score in the baseline."""
    b: float
    """Its score in the other run."""
    sample_b: str
    """The sample's ID in the other run. Only default IDs, which are hashes of the content, differ."""


@dataclass(frozen=True)
class ScorerComparison(OfScorer):
    """One scorer in one pair of runs, over all samples or one slice."""

    a: str
    """The letter of the baseline."""
    b: str
    """The letter of the run compared with it."""
    info_b: ScorerInfo
    """The scorer in run b. It differs from `info` only if mismatches are allowed."""
    result: stats.Comparison | UnpairedComparison
    """The differences and their tests, p-values uncorrected."""
    adjusted_p_value: float
    """The p-value of the difference, corrected for multiple comparisons."""
    confidence: float
    """The confidence level. A difference is significant if the adjusted p-value is at most 1 - confidence."""
    unpaired: int = 0
    """The number of samples with a score in only one of the runs that are left out."""
    field: str = ""
    """The field of the slice; "" for all samples."""
    key: str = ""
    """The value of the field in the slice."""
    changes: tuple[Change, ...] = ()
    """The samples with the largest changes, largest first."""
    adjusted_equivalence: float | None = None
    """The p-value of the test of equivalence, corrected for multiple comparisons; None without a margin."""
    detectable: float | None = None
    """The smallest true difference that this many pairs would have detected with a power of 80%. None if not even the
    largest possible one, if the difference is significant, and for slices, weighted samples and unpaired runs."""

    @property
    def improvement(self) -> float:
        """The mean difference, with the sign that makes positive values better."""
        difference = self.result.difference.mean
        return -difference if self.info.lower_is_better else difference

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

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            **dataclasses.asdict(self.info),
            "a": self.a,
            "b": self.b,
            "slice": {"field": self.field, "key": self.key} if self.field else None,
            "verdict": self.verdict,
            "adjusted_p_value": self.adjusted_p_value,
            "adjusted_equivalence": self.adjusted_equivalence,
            "detectable": self.detectable,
            "unpaired": self.unpaired,
            **to_jsonable(self.result),
            "improvement": self.improvement,
            "changes": to_jsonable(self.changes),
        }


@dataclass(frozen=True)
class Comparison:
    """Runs compared with a baseline, sample by sample."""

    runs: Mapping[str, Run]
    """The runs by letter ("A", "B" …); A is the baseline."""
    scorers: tuple[ScorerComparison, ...]
    """One comparison for each run and scorer, over all samples."""
    slices: tuple[ScorerComparison, ...]
    """The same for each slice with at least five samples (groups)."""
    notes: tuple[str, ...]
    """Other differences between the runs, and how many slices are left out."""
    correction: Correction
    """The correction for multiple comparisons, over all scorers and runs together (slices: over all slices)."""
    confidence: float
    """The confidence level of intervals and verdicts."""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """The names of runs in reports, by letter, for runs with a name."""
    corrected: tuple[CorrectedDifference, ...] = ()
    """The differences corrected by human labels, for the runs and scorers with labels."""
    all_runs: Mapping[str, stats.ManyComparison] = dataclasses.field(default_factory=dict[str, "stats.ManyComparison"])
    """With three runs or more: all pairs and the possible ranks, by scorer, over the samples that every run scored."""

    def __getitem__(self, scorer: str) -> ScorerComparison:
        """The first comparison of a scorer, by title, signature or name.

        Raises:
            ConfigError: the scorer is unknown, ambiguous, or was not compared.
        """
        return result_for(self.scorers, self.runs["A"], scorer)

    @property
    def correction_text(self) -> str:
        """How the p-values are corrected, such as "corrected for 5 comparisons (Holm)"."""
        if self.correction == "none":
            return "not corrected for multiple comparisons"
        return f"corrected for {count(len(self.scorers), 'comparison')} ({CORRECTION_NAMES[self.correction]})"

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.runs)}: {count(len(self.scorers), 'comparison')}>"

    def __str__(self) -> str:
        """The table that `evalstone compare` shows."""
        from evalstone.results.comparison_text import comparison_text  # noqa: PLC0415 - numpy

        return comparison_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, as `evalstone compare --json` prints it."""
        return {
            "format": COMPARISON_FORMAT,
            "runs": {letter: {**run.metadata(), "scorers": None} for letter, run in self.runs.items()},
            "notes": list(self.notes),
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
    labels: Mapping[str, Mapping[str, Labels]] | None = None,
) -> Comparison:
    """Compare runs over the same samples.

    Args:
        a: the baseline.
        b: the run to compare with the baseline.
        others: more runs to compare with the baseline.
        slice_by: metadata fields, or functions of a sample. Their slices are compared as well.
        unpaired: compare the means of runs over different samples, assuming that the samples are independent.
        allow_mismatch: compare runs whose judges, scorer signatures or cases differ. The differences become notes.
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
        labels: human scores of the outputs, by run ("A", "B" …), scorer and sample ID. They add differences corrected
            for the judge's errors. Only samples with a label for the outputs of both runs are used.

    Raises:
        ConfigError: the runs are not comparable, or an argument is invalid.
        DataError: a sample changes by more than `max_change`.
    """
    check_missing(missing)
    if correction not in CORRECTIONS:
        raise ConfigError(f"{term('correction')} must be one of {', '.join(CORRECTIONS)}, not {correction!r}")
    if labels and any(run.trials > 1 for run in (a, b, *others)):
        raise ConfigError("labels are for single answers: they can't correct differences of runs with trials")
    if unpaired and labels:
        raise ConfigError(
            f"labels correct differences by sample: leave out {term('labels', ...)} or {term('unpaired', True)}"
        )
    if unpaired and not (max_change is None and margin is None):
        name = MARGIN if max_change is None else LARGEST_CHANGE
        raise ConfigError(f"{term(name, ...)} is for paired samples: leave it out, or {term('unpaired', True)}")
    runs = letters_of((a, b, *others))
    settings = _Settings(a, missing, confidence, max_change, margin)
    human = _by_signature(runs, labels or {})
    fields = [(field, slice_keys(a, field)) for field in slice_fields(slice_by)]
    lines: list[ScorerComparison] = []
    sliced: list[ScorerComparison] = []
    corrected: list[CorrectedDifference] = []
    pairings: dict[str, Pairing] = {"A": Pairing()}
    by_run: dict[tuple[str, str], PairedScores] = {}
    small: dict[str, set[str]] = {}
    notes: dict[str, None] = {}
    for letter, run in itertools.islice(runs.items(), 1, None):
        if unpaired:
            pairs, differences = unpaired_runs(a, run, allow_mismatch=allow_mismatch, missing=missing)
        else:
            pairs, differences = pair_runs(a, run, allow_mismatch=allow_mismatch, missing=missing)
        notes.update(dict.fromkeys(f"A and {letter}: {text}" for text in differences))
        for pair in pairs:
            if isinstance(pair, PairedScores):
                pairings[letter] = pair.pairing
                by_run[letter, pair.info.signature] = pair
            lines += _compare_scorer(pair, letter, settings)
            both = human.get(("A", pair.info.signature), {}), human.get((letter, pair.info_b.signature), {})
            if any(both) and isinstance(pair, PairedScores):
                corrected.append(
                    _corrected_difference(pair, letter, both, same_outputs(a, run, pair.pairing), confidence)
                )
            for by, keys in fields:
                field = field_name(by)
                paired = isinstance(pair, PairedScores)
                for key, part in _slices(pair, keys) if paired else pair.slices(keys, slice_keys(run, by)):
                    if part.units < MIN_SAMPLES:
                        small.setdefault(field, set()).add(key)
                        continue
                    of_slice = _compare_scorer(part, letter, settings)
                    sliced += (dataclasses.replace(line, field=field, key=key) for line in of_slice)
    for field, left_out in small.items():
        fewer = f"{count(len(left_out), 'slice')} of {field} with fewer than {MIN_SAMPLES} samples or groups"
        notes[f"{fewer} {'is' if len(left_out) == 1 else 'are'} left out, being too small to be tested"] = None
    return Comparison(
        runs=runs,
        scorers=tuple(_with_detectable(line, by_run) for line in _corrected(lines, correction)),
        slices=_corrected(sliced, correction),
        notes=tuple(notes),
        correction=correction,
        confidence=confidence,
        corrected=_adjusted(corrected, correction),
        all_runs=_compare_all(runs, pairings, lines, confidence, missing) if others and not unpaired else {},
    )


class _Settings:
    """How scores are compared."""

    def __init__(self, run: Run, missing: Missing, confidence: float, max_change: BySetting, margin: BySetting) -> None:
        self.missing, self.confidence = missing, confidence
        self._by_setting = {
            name: _by_scorer(run, name, value) for name, value in ((LARGEST_CHANGE, max_change), (MARGIN, margin))
        }

    def of(self, info: ScorerInfo) -> dict[str, float | None]:
        """The largest change and the margin of a scorer."""
        return {name: of_scorers.get(info.signature) for name, of_scorers in self._by_setting.items()}


def _by_scorer(run: Run, setting: str, value: BySetting) -> Mapping[str, float]:
    """A setting by the scorers' signatures. Raises ConfigError for values outside the scale."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        values = values_by_scorer(value, lambda name: run[name].info, term(setting))
    else:
        values = dict.fromkeys(run.scorers, value)
    for info, number in values.items():
        check_number(f"{term(setting)} of {info.name}", number)
        if not 0 < number <= info.scale:
            limits = f"above 0 and at most {info.scale:g}"
            raise ConfigError(f"{term(setting)} of {info.name} must be {limits}, not {number:g}")
    return {info.signature: float(number) for info, number in values.items()}


def _compare_scorer(
    pair: PairedScores | UnpairedScores, letter: str, settings: _Settings
) -> Iterator[ScorerComparison]:
    from evalstone.stats.comparison import biggest_changes, compare_pairs  # noqa: PLC0415 - numpy
    from evalstone.stats.unpaired import compare_unpaired  # noqa: PLC0415 - numpy

    info, confidence = pair.info, settings.confidence
    if isinstance(pair, UnpairedScores):
        unpaired = compare_unpaired(
            **pair.columns, scale=info.scale, confidence=confidence, lower_is_better=info.lower_is_better
        )
        if unpaired is not None:
            yield ScorerComparison(pair.title, info, "A", letter, pair.info_b, unpaired, unpaired.p_value, confidence)
        return
    used = settings.of(info)
    _check_changes(pair, used[LARGEST_CHANGE])
    open_pairs = pair.open
    result = compare_pairs(
        [*pair.a, *open_pairs.a],
        [*pair.b, *open_pairs.b],
        scale=info.scale,
        confidence=confidence,
        groups=pair.groups and (*pair.groups, *(open_pairs.groups or ())),
        weights=pair.weights and (*pair.weights, *(open_pairs.weights or ())),
        lower_is_better=info.lower_is_better,
        ends=(
            [*((x, x) for x in pair.a), *open_pairs.ends_a],
            [*((x, x) for x in pair.b), *open_pairs.ends_b],
        ),
        max_change=used[LARGEST_CHANGE],
        margin=used[MARGIN],
    )
    if result is not None:
        names, before, after = zip(*pair.known, strict=True)
        changes = tuple(
            Change(names[index], before[index], after[index], pair.pairing.in_second(names[index]))
            for index in biggest_changes(before, after, MAX_CHANGES)
        )
        yield ScorerComparison(
            pair.title,
            info,
            "A",
            letter,
            pair.info_b,
            result,
            result.p_value,
            confidence,
            pair.unpaired,
            changes=changes,
            adjusted_equivalence=None if result.equivalence is None else result.equivalence.p_value,
        )


def _check_changes(pair: PairedScores, most: float | None) -> None:
    """Raise DataError, naming the sample, if one changes by more than the declared largest change."""
    if most is None:
        return
    for name, before, after in pair.known:
        if (change := abs(after - before)) > most * (1 + 1e-9):
            raise DataError(
                f"{term(LARGEST_CHANGE, most)}, but {pair.title} of sample {name!r:.80} changes by {change:.4g}, from "
                f"{before:.4g} to {after:.4g}: declare a larger one, or leave it out"
            )


def _with_detectable(line: ScorerComparison, pairs: Mapping[tuple[str, str], PairedScores]) -> ScorerComparison:
    """The comparison with its minimum detectable difference, if it is inconclusive."""
    pair = pairs.get((line.b, line.info.signature))
    if pair is None or pair.weights is not None or line.verdict != "inconclusive":
        return line
    from evalstone.stats.comparison import Comparison as Paired  # noqa: PLC0415 - numpy
    from evalstone.stats.power import Pilot  # noqa: PLC0415 - numpy

    result = line.result
    if not isinstance(result, Paired) or result.missing:
        return line
    pilot = Pilot.of(
        [after - before for before, after in zip(pair.a, pair.b, strict=True)],
        scale=result.max_change or line.info.scale,
        pass_fail=result.mcnemar is not None,
        groups=pair.groups,
    )
    return dataclasses.replace(line, detectable=pilot and pilot.detectable(confidence=line.confidence))


def letters_of(runs: Sequence[Run]) -> Mapping[str, Run]:
    """The runs by the letters that a comparison gives them."""
    letters = (chr(ord("A") + n) if n < 26 else f"R{n + 1}" for n in itertools.count())
    return dict(zip(letters, runs, strict=False))


def _by_signature(
    runs: Mapping[str, Run], labels: Mapping[str, Mapping[str, Labels]]
) -> Mapping[tuple[str, str], Labels]:
    """The labels by run and scorer signature."""
    for letter in labels:
        if letter not in runs:
            raise ConfigError(unknown("run with labels", letter, runs))
    return {
        (letter, runs[letter][name].info.signature): of_scorer
        for letter, of_run in labels.items()
        for name, of_scorer in of_run.items()
    }


def same_outputs(a: Run, b: Run, pairing: Pairing) -> frozenset[str]:
    """The ids in the first run of the samples whose outputs, contexts and conversations are the same in both runs."""
    if a.dataset is None or b.dataset is None:
        return frozenset()
    by_trial = a.trials == b.trials
    ours = _hashes(a.dataset, by_trial=by_trial)
    theirs = pairing.renamed(_hashes(b.dataset, by_trial=by_trial))
    return frozenset(name for name in ours.keys() & theirs.keys() if ours[name] == theirs[name])


def _corrected_difference(
    pair: PairedScores, letter: str, labels: tuple[Labels, Labels], same: frozenset[str], confidence: float
) -> CorrectedDifference:
    from evalstone.stats.ppi import ppi_difference  # noqa: PLC0415 - numpy

    arguments = labeled_pairs(pair, labels, same)
    result = ppi_difference(**arguments, scale=pair.info.scale, confidence=confidence)
    if result is None:
        raise ConfigError(f"{pair.title}: no sample was scored in both runs")
    return CorrectedDifference(pair.title, pair.info, "A", letter, result, result.p_value, confidence)


def _adjusted(lines: Sequence[CorrectedDifference], correction: Correction) -> tuple[CorrectedDifference, ...]:
    p_values = [1.0 if line.result.p_value is None else line.result.p_value for line in lines]
    return tuple(
        dataclasses.replace(line, adjusted_p_value=None if line.result.p_value is None else p)
        for line, p in zip(lines, adjust_p_values(p_values, correction), strict=True)
    )


def _slices(pair: PairedScores, keys: Mapping[str, str]) -> Iterator[tuple[str, PairedScores]]:
    """The pairs of each slice, by key."""
    both = pair, pair.open
    members: dict[str, tuple[list[int], list[int]]] = {}
    for part, of in enumerate(both):
        for index, sample in enumerate(of.samples):
            members.setdefault(keys.get(sample, ABSENT), ([], []))[part].append(index)
    for key, indexes in sorted(members.items(), key=lambda item: slice_order(item[0])):
        columns, open_columns = (
            {
                column: values and [values[index] for index in chosen]
                for column in ("samples", "a", "b", "ends_a", "ends_b", "groups", "weights")
                if (values := getattr(of, column, ())) != ()
            }
            for of, chosen in zip(both, indexes, strict=True)
        )
        yield key, dataclasses.replace(pair, **columns, open=dataclasses.replace(pair.open, **open_columns), unpaired=0)


def _corrected(lines: Sequence[ScorerComparison], correction: Correction) -> tuple[ScorerComparison, ...]:
    p_values = adjust_p_values([line.result.p_value for line in lines], correction)
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
    confidence: float,
    missing: Missing,
) -> dict[str, stats.ManyComparison]:
    """The comparison of all runs at once, for the scorers that every run has."""
    from evalstone.stats.comparison import compare_many  # noqa: PLC0415 - numpy

    results: dict[str, stats.ManyComparison] = {}
    for title in dict.fromkeys(line.title for line in lines):
        of_scorer = [line for line in lines if line.title == title]
        if len(of_scorer) != len(runs) - 1:
            continue
        info = of_scorer[0].info
        signatures = {"A": info.signature, **{line.b: line.info_b.signature for line in of_scorer}}
        scores = {
            letter: scores_by_sample(runs[letter], signature, missing) for letter, signature in signatures.items()
        }
        if max(runs[letter].trials for letter in scores) > 1:
            scores = {letter: of.by_sample for letter, of in scores.items()}
        scores = {letter: pairings[letter].scores(of) for letter, of in scores.items()}
        common = [sample for sample in scores["A"].sample_of if all(sample in of.sample_of for of in scores.values())]
        columns = {letter: [of.values.get(sample) for sample in common] for letter, of in scores.items()}
        groups = {sample: group for of in reversed(scores.values()) for sample, group in of.group_of.items()}
        result = compare_many(
            columns,
            scale=info.scale,
            confidence=confidence,
            groups=group_labels(common, groups),
            weights=weight_column(common, scores["A"].weight_of),
            lower_is_better=info.lower_is_better,
            ends={letter: [of.ends_of(sample) for sample in common] for letter, of in scores.items()},
        )
        if result is not None:
            results[title] = result
    return results


@dataclass(frozen=True)
class OpenPairs:
    """The samples of two runs whose change is open, because a score is missing: in one run, in both, or in a trial."""

    samples: Sequence[str] = ()
    a: Sequence[float | None] = ()
    """The values in the first run; None without a score in any trial."""
    b: Sequence[float | None] = ()
    ends_a: Sequence[Ends] = ()
    """The lowest and the highest possible values in the first run."""
    ends_b: Sequence[Ends] = ()
    groups: Sequence[str] | None = None
    weights: Sequence[float] | None = None


@dataclass(frozen=True)
class PairedScores(OfScorer):
    """One scorer's values in two runs, sample by sample, in the order of the first run."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    samples: Sequence[str]
    """The ids of the samples with a score in both runs."""
    a: Sequence[float]
    """The values in the first run."""
    b: Sequence[float]
    """The values in the second run."""
    groups: Sequence[str] | None
    """The samples' groups. The first run's if both runs have one; None if neither has any."""
    weights: Sequence[float] | None
    """The samples' weights, which are the same in both runs; None if all are equal."""
    unpaired: int
    """The number of samples with a score in only one of the runs that are left out."""
    pairing: Pairing
    """Which sample of the second run is which sample of the first."""
    open: OpenPairs
    """The samples whose change is open but counts in tests."""

    @property
    def known(self) -> Sequence[tuple[str, float, float]]:
        """The samples with a score in both runs and their values; with trials, with one in at least one trial."""
        open_pairs = zip(self.open.samples, self.open.a, self.open.b, strict=True)
        partly = [(name, a, b) for name, a, b in open_pairs if a is not None and b is not None]
        return [*zip(self.samples, self.a, self.b, strict=True), *partly]

    @property
    def units(self) -> int:
        """The number of independent units: samples with a score in both runs, or their groups."""
        if self.groups is None:
            return len(self.known)
        names = {name for name, _, _ in self.known}
        group_of = zip((*self.samples, *self.open.samples), (*self.groups, *(self.open.groups or ())), strict=True)
        return len({group for name, group in group_of if name in names})


def pair_runs(
    a: Run, b: Run, *, allow_mismatch: bool = False, missing: Missing = "ignore"
) -> tuple[list[PairedScores], tuple[str, ...]]:
    """The paired scores of each scorer that both runs have, and notes on other differences between the runs.

    missing: which samples without a score in one of the runs are kept (`PairedScores.open`).

    Raises:
        ConfigError: the runs have no scorer or no scored sample in common, it is not clear which samples belong
            together (`pair_samples`), or a sample has different weights in the two. Unless `allow_mismatch`: their
            judges, scorer signatures or cases differ.
    """
    scorers = _common_scorers(a, b)
    pairing = pair_samples(a, b)
    pairs = [pair for ours, theirs in scorers if (pair := _pair(a, b, ours, theirs, pairing, missing)).known]
    if not pairs:
        by = "IDs" if pairing.partners is None else "what was asked, because they have no IDs"
        raise ConfigError(
            f"no sample was scored in both runs. Samples are paired by {by}. {id_hint(a, b)}. To compare the means of "
            f"different samples, use compare with {term('unpaired', True)}"
        )
    mismatches, notes = _differences(a, b, scorers)
    notes += pairing.notes
    if a.version != b.version:
        _case_differences(a, b, pairing, mismatches, notes)
    hint = "" if pairing.partners is None or allow_mismatch else id_hint(a, b)
    return pairs, _allowed(mismatches, notes, allow_mismatch, hint)


def unpaired_runs(
    a: Run, b: Run, *, allow_mismatch: bool = False, missing: Missing = "ignore"
) -> tuple[list[UnpairedScores], tuple[str, ...]]:
    """The scores of each scorer that both runs have, and notes on other differences between the runs.

    missing: which samples without a score are kept.

    Raises:
        ConfigError: the runs have no scorer in common, or one of them has no score. Unless `allow_mismatch`: their
            judges or scorer signatures differ.
    """
    scorers = _common_scorers(a, b)
    pairs = [pair for ours, theirs in scorers if (pair := unpaired_scores(a, b, ours, theirs, missing)).units]
    if not pairs:
        raise ConfigError("one of the runs has no score, so there is nothing to compare")
    mismatches, notes = _differences(a, b, scorers)
    if common := len(_in_both(a, b, pairs)):
        paired = f"a paired comparison, without {term('unpaired', True)}, usually has more power"
        notes.append(f"{count(common, 'sample')} in both runs: {paired}")
    return pairs, _allowed(mismatches, notes, allow_mismatch)


def _in_both(a: Run, b: Run, pairs: Sequence[UnpairedScores]) -> set[str]:
    """The samples with a score in both runs; empty if it is not clear which ones these are."""
    try:
        pairing = pair_samples(a, b)
    except ConfigError:  # an unpaired comparison needs no pairs
        return set()
    return {name for of in pairs for name in of.scores[0].values.keys() & pairing.scores(of.scores[1]).values.keys()}


def _allowed(mismatches: Sequence[str], notes: Sequence[str], allow_mismatch: bool, hint: str = "") -> tuple[str, ...]:
    """All differences, as notes. Raises ConfigError for mismatches that are not allowed, with a hint at what to do."""
    if mismatches and not allow_mismatch:
        anyway = f"To compare them anyway, use {option}" if (option := term("allow_mismatch", True)) else ""
        raise ConfigError(
            ". ".join(filter(None, (f"these runs are not comparable: {'; '.join(mismatches)}", hint, anyway)))
        )
    return (*mismatches, *notes)


def _common_scorers(a: Run, b: Run) -> list[tuple[ScorerInfo, ScorerInfo]]:
    """The scorers that both runs have, matched by signature, else by parameters, else by name, where unambiguous."""
    matches: dict[ScorerInfo, ScorerInfo] = {}
    for attribute in ("signature", "parameters", "name"):
        ours, theirs = (
            _unique(attribute, [info for info in run.scorers if info not in matched])
            for run, matched in ((a, matches), (b, set(matches.values())))
        )
        matches |= {info: theirs[key] for key, info in ours.items() if key in theirs}
    if not matches:
        first, second = (", ".join(run.titles.values()) for run in (a, b))
        raise ConfigError(f"the runs have no scorer in common: {first} in the first, {second} in the second")
    return [(info, matches[info]) for info in a.scorers if info in matches]


def _unique(attribute: str, scorers: Sequence[ScorerInfo]) -> dict[str, ScorerInfo]:
    """The scorers by an attribute, without those whose value isn't unique."""
    values = [getattr(info, attribute) for info in scorers]
    return {value: info for value, info in zip(values, scorers, strict=True) if values.count(value) == 1}


def _differences(a: Run, b: Run, scorers: Sequence[tuple[ScorerInfo, ScorerInfo]]) -> tuple[list[str], list[str]]:
    """The mismatches that make the runs incomparable, and notes on harmless differences."""
    mismatches: list[str] = []
    notes: list[str] = []
    pairs = [(a.judge_of(ours.signature), b.judge_of(theirs.signature)) for ours, theirs in scorers]
    different = {pair for pair in pairs if len(set(pair) - {"none"}) > 1}
    mismatches += [f"the judges differ ({ours}, {theirs})" for ours, theirs in sorted(different)]
    for ours, theirs in scorers:
        if ours.signature != theirs.signature:
            mismatches.append(f"{ours.name} differs ({ours.signature}, {theirs.signature})")
        if ours.scale != theirs.scale or ours.lower_is_better != theirs.lower_is_better:
            raise ConfigError(f"{ours.name} has a different scale or direction in the two runs")
    for kept, left_out in ((a, b), (b, a)):
        if KEPT_REASONING in kept.warnings and LEFT_OUT_REASONING in left_out.warnings:
            mismatches.append("only one of them scores the reasoning in front of outputs (keep_reasoning)")
    if a.id == b.id:
        notes.append("they are the same run")
    if max(a.trials, b.trials) > 1:
        trials = f"{a.trials}" if a.trials == b.trials else f"{a.trials} and {b.trials}"
        notes.append(f"they have {trials} trials of each sample; a sample's score is the mean of its trials")
    for run, name in ((a, "first"), (b, "second")):
        if run.drawn is not None:
            biased = "its mean is biased away from the threshold, and intervals under-cover"
            notes.append(f"its gate stopped the {name} run: {biased}")
        elif run.stop_reason:
            notes.append(f"the {name} run stopped early ({run.stop_reason})")
    in_both = {info.signature for pair in scorers for info in pair}
    single = {title for run in (a, b) for signature, title in run.titles.items() if signature not in in_both}
    if single:
        notes.append(f"only in one of the runs: {', '.join(sorted(single))}")
    return mismatches, notes


def _case_differences(a: Run, b: Run, pairing: Pairing, mismatches: list[str], notes: list[str]) -> None:
    """Append how the datasets differ: in their cases (mismatches), or only in what is under test (notes)."""
    if a.dataset is None or b.dataset is None:
        mismatches.append(f"the dataset versions differ ({a.version}, {b.version}) and the texts are not available")
        return
    by_trial = a.trials == b.trials
    ours = _hashes(a.dataset, by_trial=by_trial)
    theirs = pairing.renamed(_hashes(b.dataset, by_trial=by_trial))
    common = ours.keys() & theirs.keys()
    if cases := sum(ours[name].case != theirs[name].case for name in common):
        mismatches.append(
            f"{cases} of {count(len(common), 'sample')} with a different input, reference or instructions"
        )
    if expected := sum(ours[name].expected != theirs[name].expected for name in common):
        mismatches.append(
            f"{expected} of {count(len(common), 'sample')} with a different expected trajectory, reference of a turn, "
            f"or entry of the metadata that scorers read ({', '.join(CASE_METADATA)})"
        )
    if ours.keys() != theirs.keys():
        paired = {pairing.in_second(name) for name in common}
        sides = [
            _only_in_one("the first run", a.dataset, common, by_trial=by_trial),
            _only_in_one("the second", b.dataset, paired, by_trial=by_trial),
        ]
        without_ids = "" if pairing.partners is None else ", by what was asked, because they have no IDs"
        mismatches.append(f"the samples differ: {', '.join(sides)}{without_ids}")
    if tested := sum(ours[name].tested != theirs[name].tested for name in common):
        notes.append(f"{tested} of {count(len(common), 'sample')} with a different output, context or conversation")


def _only_in_one(place: str, samples: Iterable[Sample], paired: Collection[str], *, by_trial: bool) -> str:
    """How many samples of a run are not in the other, with the ID or the question of the first."""
    single = [sample for sample in samples if (sample.key if by_trial else sample.id) not in paired]
    names = {sample.key if by_trial else sample.id for sample in single}
    shown = [sample.id if sample.has_own_id else question_of(sample) for sample in single[:1]]
    example = f" (such as {excerpt(shown[0])})" if any(shown) else ""
    return f"{len(names)} only in {place}{example}"


class _Hashes(NamedTuple):
    """Hashes of what a sample consists of."""

    case: str
    """What was asked, and the reference."""
    expected: str
    """What else answers are held against."""
    tested: str
    """What is under test."""


def _hashes(samples: Iterable[Sample], *, by_trial: bool) -> Mapping[str, _Hashes]:
    """The hashes by sample, or by trial."""
    return {
        sample.key if by_trial else sample.id: _Hashes(
            content_hash([getattr(sample, name) for name in CASE_FIELDS]),
            content_hash(
                [
                    sample.expected_trajectory,
                    [(turn.id, turn.reference) for turn in sample.turns if turn.reference is not None],
                    comparable({name: sample.metadata.get(name) for name in CASE_METADATA}),
                ]
            ),
            content_hash([getattr(sample, name) for name in TESTED_FIELDS]),
        )
        for sample in samples
    }


def _pair(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, pairing: Pairing, missing: Missing) -> PairedScores:
    first, second = scores_by_sample(a, ours.signature, missing), scores_by_sample(b, theirs.signature, missing)
    if max(a.trials, b.trials) > 1:
        first, second = first.by_sample, second.by_sample
    second = pairing.scores(second)
    in_both = [name for name in first.sample_of if name in second.sample_of]
    is_open = {name for name in in_both if name in first.ends or name in second.ends}
    samples = tuple(name for name in in_both if name not in is_open)
    counted = tuple(name for name in in_both if name in is_open - (first.undefined & second.undefined))
    check_same_weights((*samples, *counted), first.weight_of, second.weight_of)
    groups = group_labels((*samples, *counted), {**second.group_of, **first.group_of})
    weights = weight_column((*samples, *counted), first.weight_of)
    n = len(samples)

    return PairedScores(
        title=a.titles[ours.signature],
        info=ours,
        info_b=theirs,
        samples=samples,
        a=array("d", (first.values[name] for name in samples)),
        b=array("d", (second.values[name] for name in samples)),
        groups=groups and groups[:n],
        weights=weights and weights[:n],
        unpaired=len(first.values.keys() ^ second.values.keys())
        - sum((name in first.values) != (name in second.values) for name in counted),
        pairing=pairing,
        open=OpenPairs(
            samples=counted,
            a=[first.values.get(name) for name in counted],
            b=[second.values.get(name) for name in counted],
            ends_a=[first.ends_of(name) for name in counted],
            ends_b=[second.ends_of(name) for name in counted],
            groups=groups and groups[n:],
            weights=weights and weights[n:],
        ),
    )
