"""Which runs are comparable, and the scores that they have in common.

Runs are comparable if the same judge scored the same cases with the same scorers. Samples are paired by ID or by what
was asked (`evalstone.results.pairing`). Cases are the same if paired samples have equal inputs, references,
instructions, and whatever else answers are held against. Outputs, contexts and conversations are under test and may
differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from evalstone._core.display import count, listed
from evalstone._core.front_ends import Hint, Setting, WordingPart
from evalstone._core.garbage import give_back
from evalstone._core.json import content_hash
from evalstone._core.packed_texts import PackedTexts
from evalstone.errors import ConfigError, NotComparable
from evalstone.report.notes import clause_of
from evalstone.results.entries import comparable
from evalstone.results.missing_scores import Missing
from evalstone.results.paired_scores import PairedScores, paired_scores
from evalstone.results.pairing import Pairing, id_hint, pair_samples, question_of
from evalstone.results.scores import at
from evalstone.results.summary import ScorerInfo
from evalstone.results.unpaired import UnpairedScores, unpaired_scores
from evalstone.stats.packed_scores import index_of
from evalstone.types import USER_METADATA, Failed, Note, Sample, metadata_at, note

if TYPE_CHECKING:
    from evalstone.results.run import Run

CASE_FIELDS = ("input", "reference", "instructions")
TESTED_FIELDS = ("output", "context", "messages", "trajectory")


def pair_runs(
    a: Run,
    b: Run,
    *,
    allow_mismatch: bool = False,
    missing: Missing = "ignore",
    by_trial: bool = False,
    unscored: bool = False,
) -> tuple[PairedScorers, list[Note]]:
    """The paired scores of each scorer that both runs have, and how the runs differ apart from their scores.

    missing, by_trial: as for `paired_scores`.
    unscored: accept runs with samples in common, of which none is scored in both.

    Raises:
        ConfigError: the runs have no scorer or no scored sample in common, it is not clear which samples belong
            together (`pair_samples`), or a sample has different weights in the two. Unless `allow_mismatch`: their
            judges, scorer signatures or cases differ.
    """
    pairs = paired_scorers(a, b, missing=missing, by_trial=by_trial, unscored=unscored)
    scorers, pairing = pairs.scorers, pairs.pairing
    written = _written(scorers)
    mismatches, found = _differences(a, b, scorers)
    found += [*_stopped_notes(a, b, paired=True), *pairing.notes]
    same_data = a.dataset_version == b.dataset_version
    if not same_data or (any(written) and a.samples is not None and b.samples is not None):
        cases, tested = _case_differences(a, b, pairing, _case_metadata(a, b, scorers), written)
        mismatches, found = [*mismatches, *cases], [*found, *tested]
    hint = () if pairing.partners is None else id_hint(a, b)
    return pairs, _allowed(mismatches, found, allow_mismatch, hint)


class PairedScorers:
    """The paired scores of each scorer that two runs have and both have scored a sample with. Of millions of samples,
    the scores of all scorers take gigabytes, so they are built when they are needed, again for each iteration."""

    def __init__(self, a: Run, b: Run, pairing: Pairing, missing: Missing, *, by_trial: bool) -> None:
        self._runs, self.pairing, self._by_trial = (a, b), pairing, by_trial
        self._missing: Missing = missing
        self.scorers = _common_scorers(a, b)
        self._first: PairedScores | None = None
        """The scores of the first scorer, until they are used."""

    def of(self, ours: ScorerInfo, theirs: ScorerInfo) -> PairedScores | None:
        """The scores of one scorer in both runs; None if it scored no sample in both."""
        if (first := self._first) is not None and (first.info, first.info_b) == (ours, theirs):
            self._first = None
            return first
        pair = self.build(ours, theirs)
        return pair if pair.units else None

    def build(self, ours: ScorerInfo, theirs: ScorerInfo) -> PairedScores:
        """The scores of one scorer in both runs, which may have scored no sample in both."""
        records = len(self._runs[0].records)
        give_back(records)  # what those of the last one took
        pair = paired_scores(*self._runs, ours, theirs, self.pairing, self._missing, by_trial=self._by_trial)
        give_back(records)  # what it took to build them
        return pair

    def __iter__(self) -> Iterator[PairedScores]:
        for infos in self.scorers:
            if (pair := self.of(*infos)) is not None:
                found = [pair]
                del pair  # who takes the scores can free them
                yield found.pop()

    def __bool__(self) -> bool:
        """Whether there is a scorer."""
        self._first = next(iter(self), None)
        return self._first is not None


class BuiltPairs(Mapping[tuple[str, str], PairedScores]):
    """The scores of scorers in two runs, by the letter of the second run and the scorer's signature in the first. They
    are built whenever they are taken."""

    def __init__(self) -> None:
        self._builders: dict[tuple[str, str], Callable[[], PairedScores]] = {}
        self.pairings: dict[str, Pairing] = {}
        """By the letter of a run, which of its samples is which sample of the first run."""

    def add(self, key: tuple[str, str], build: Callable[[], PairedScores]) -> None:
        """Have the scores that a function builds."""
        self._builders[key] = build

    def __getitem__(self, key: tuple[str, str]) -> PairedScores:
        return self._builders[key]()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)


def paired_scorers(
    a: Run, b: Run, *, missing: Missing = "ignore", by_trial: bool = False, unscored: bool = False
) -> PairedScorers:
    """The scores of `pair_runs`, of runs that are known to be comparable: how they differ takes most of the time.

    Raises:
        ConfigError: as for `pair_runs`, but for mismatches.
    """
    pairing = pair_samples(a, b)
    if pairing.partners is None:
        b.columns.share_samples(a.columns)
    pairs = PairedScorers(a, b, pairing, missing, by_trial=by_trial)
    if not pairs and (error := _none_in_both(a, b, pairing, unscored=unscored)) is not None:
        raise error
    return pairs


def _none_in_both(a: Run, b: Run, pairing: Pairing, *, unscored: bool) -> ConfigError | None:
    """The error for runs that have no scored sample in common. unscored: only if they have no sample in common."""
    import numpy as np  # noqa: PLC0415 - as in `stats`

    ours, theirs = _matched_cases(a, b, pairing)
    numbers, number = a.columns.sample_numbers()
    scored = [np.logical_or.reduce([run.columns.has_score(info.signature) for info in run.scorers]) for run in (a, b)]
    in_both, first, second = (np.zeros(number, np.bool_) for _ in range(3))
    in_both[numbers[ours]] = True
    first[numbers[scored[0]]] = True
    second[numbers[ours][scored[1][theirs]]] = True
    shared = int(in_both.sum())
    if shared and unscored:
        return None
    if not shared:
        by = "IDs" if pairing.partners is None else "what was asked, because they have no IDs"
        problem = (f"no sample was scored in both runs. Samples are paired by {by}. ", *id_hint(a, b))
    else:
        problem = (
            f"no sample was scored in both runs: of {count(shared, 'sample')} in both, "
            f"the first scored {int((first & in_both).sum()):,} and the second {int(second.sum()):,}",
        )
    if shared and not all(of.any() for of in scored):
        return ConfigError(*problem)
    return ConfigError(
        *problem, ". To compare the means of different samples, use compare with ", Setting("unpaired", True)
    )


class PairedBaseline(NamedTuple):
    """How the samples and scorers of a run that hasn't begun are paired with those of its baseline."""

    pairing: Pairing
    signatures: Mapping[str, str]
    """The signature of each scorer in the run, by its signature in the baseline. They differ only if allowed."""
    notes: tuple[Note, ...]
    """Mismatches that are allowed, and what the samples are paired by, if not by ID."""


def pairing_with_baseline(baseline: Run, planned: Run, *, allow_mismatch: bool = False, whole: bool) -> PairedBaseline:
    """The pairing of a run that hasn't begun with its baseline.

    whole: whether the run must have all samples of the baseline, as a comparison of finished runs requires.

    Raises:
        ConfigError: it is not clear which samples belong together (`pair_samples`), or the baseline lacks a scorer of
            the run. Unless `allow_mismatch`: it lacks a sample of the run, or their judges, scorer signatures or cases
            differ.
    """
    scorers = _common_scorers(baseline, planned)
    if lacking := [planned.titles[info.signature] for info in planned.scorers if info not in dict(scorers).values()]:
        raise ConfigError(f"the baseline has no scores of {listed(lacking)}")
    pairing = pair_samples(baseline, planned)
    mismatches, _ = _differences(baseline, planned, scorers)
    written = _written(scorers)
    if not whole:
        later = [
            now.name
            for before, now in scorers
            if now.written_by
            and _one_writes(before, now)
            and any(_lacks(sample, now) for sample in planned.samples or ())
        ]
        mismatches += [note("written_during_run", "warning", name=name) for name in later]
    if baseline.dataset_version != planned.dataset_version or (any(written) and baseline.samples is not None):
        entries = _case_metadata(baseline, planned, scorers)
        mismatches += _case_differences(baseline, planned, pairing, entries, written, whole=whole)[0]
    hint = () if pairing.partners is None else id_hint(baseline, planned)
    found = _allowed(mismatches, pairing.notes, allow_mismatch, hint, _THESE)
    signatures = {before.signature: now.signature for before, now in scorers}
    return PairedBaseline(pairing, signatures, tuple(found))


def check_written(
    baseline: Run, run: Run, signatures: Mapping[str, str], *, allow_mismatch: bool = False
) -> tuple[Note, ...]:
    """Check that what judges wrote during a run, such as rubrics, is what its baseline held answers against.

    signatures: those of the scorers to check in the run, by those in the baseline.

    Returns the mismatches that are allowed.

    Raises:
        ConfigError: unless `allow_mismatch`, a sample was scored against something else.
    """
    scorers = [(a, b) for a in baseline.scorers for b in run.scorers if signatures.get(a.signature) == b.signature]
    written = _written(scorers)
    if not any(written) or baseline.samples is None:
        return ()
    entries, pairing = _case_metadata(baseline, run, scorers), pair_samples(baseline, run)
    differences, _ = _case_differences(baseline, run, pairing, entries, written, whole=False)
    expected = [each for each in differences if each.kind == "expectations_differ"]
    return tuple(_allowed(expected, (), allow_mismatch, these=_THESE))


def unpaired_runs(
    a: Run, b: Run, *, allow_mismatch: bool = False, missing: Missing = "ignore"
) -> tuple[Iterator[UnpairedScores], list[Note]]:
    """The scores of each scorer that both runs have, built one at a time, because those of millions of samples take
    hundreds of megabytes; and how the runs differ apart from their scores.

    missing: which samples without a score are kept.

    Raises:
        ConfigError: the runs have no scorer in common, or one of them has no score. Unless `allow_mismatch`: their
            judges or scorer signatures differ.
    """
    scorers = _common_scorers(a, b)
    mismatches, found = _differences(a, b, scorers)
    found += _stopped_notes(a, b, paired=False)
    found += [
        note("written_unpaired", "caution", name=ours.name) for ours, theirs in scorers if _one_writes(ours, theirs)
    ]
    if common := _scored_in_both(a, b, scorers):
        found.append(note("could_be_paired", "caution", samples=common))
    pairs = _unpaired_scorers(a, b, scorers, missing)
    if (first := next(pairs, None)) is None:
        raise ConfigError("one of the runs has no score, so there is nothing to compare")
    return _with_first([first], pairs), _allowed(mismatches, found, allow_mismatch)


def _unpaired_scorers(
    a: Run, b: Run, scorers: Sequence[tuple[ScorerInfo, ScorerInfo]], missing: Missing
) -> Iterator[UnpairedScores]:
    """The scores of each scorer that has some in both runs."""
    for ours, theirs in scorers:
        give_back(len(a.records))  # what those of the last one took
        pair = unpaired_scores(a, b, ours, theirs, missing)
        give_back(len(a.records))  # what it took to build them
        if pair.units:
            yield pair
        del pair  # the scores of the next one may be large, too


def _with_first(first: list[UnpairedScores], rest: Iterator[UnpairedScores]) -> Iterator[UnpairedScores]:
    yield first.pop()  # without a reference to it, so that it is freed before the next one is built
    yield from rest


def same_outputs(a: Run, b: Run, pairing: Pairing) -> frozenset[str]:
    """The ids in the first run of the samples whose outputs, contexts and conversations are the same in both runs."""
    if a.samples is None or b.samples is None:
        return frozenset()
    scorers = _common_scorers(a, b)
    by_trial, entries, written = a.trials == b.trials, _case_metadata(a, b, scorers), _written(scorers)
    ours = _hashes(a, a.samples, entries, written[0], by_trial=by_trial)
    theirs = _hashes(b, b.samples, entries, written[1], by_trial=by_trial)
    both = zip(*pairing.match(ours.keys, theirs.keys), strict=True)
    return frozenset(ours.keys[row] for row, other in both if ours[row] == theirs[other])


def _stopped_notes(a: Run, b: Run, *, paired: bool) -> Iterator[Note]:
    """A note on each run that its gate stopped."""
    for run, name in ((a, "first"), (b, "second")):
        if run.drawn is not None:
            yield note("stopped_by_gate", "warning", run=name, paired=paired)


def _scored_in_both(a: Run, b: Run, scorers: Sequence[tuple[ScorerInfo, ScorerInfo]]) -> int:
    """How many samples and trials a scorer scored in both runs; 0 if it is not clear which ones these are."""
    import numpy as np  # noqa: PLC0415 - as in `stats`

    try:
        ours, theirs = _matched_cases(a, b, pair_samples(a, b))
    except ConfigError:  # an unpaired comparison needs no pairs
        return 0
    of_both = [
        a.columns.has_score(info.signature)[ours] & b.columns.has_score(other.signature)[theirs]
        for info, other in scorers
    ]
    return int(np.logical_or.reduce(of_both).sum())


def _matched_cases(a: Run, b: Run, pairing: Pairing) -> tuple[Any, Any]:
    """The cases of each of two runs that have records in both, as what arrays of numpy take for them."""
    if pairing.partners is None:
        b.columns.share_samples(a.columns)
    columns = a.columns, b.columns
    answered = [of.answered_cases for of in columns]
    keys = [
        of.case_keys if len(cases) == of.size else at(of.case_keys, cases)
        for of, cases in zip(columns, answered, strict=True)
    ]
    ours, theirs = pairing.match(*keys)
    return _among(answered[0], ours), _among(answered[1], theirs)


def _among(cases: Sequence[int], places: Sequence[int]) -> Any:
    """The cases at some places."""
    return index_of(places if isinstance(cases, range) else [cases[place] for place in places])


_THESE = "the baseline (first) and this run (second)"


def _allowed(
    mismatches: Sequence[Note],
    found: Sequence[Note],
    allow_mismatch: bool,
    hint: Sequence[WordingPart] = (),
    these: str = "these runs",
) -> list[Note]:
    """All differences. Raises NotComparable for mismatches that are not allowed, with a hint at what to do."""
    if mismatches and not allow_mismatch:
        anyway = Hint.of(". To compare them anyway, use ", Setting("allow_mismatch", True))
        problem = f"{these} are not comparable: {'; '.join(map(clause_of, mismatches))}"
        raise NotComparable(problem, *(". ", *hint) if hint else (), anyway, mismatches=tuple(mismatches))
    return [*mismatches, *found]


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


def _differences(a: Run, b: Run, scorers: Sequence[tuple[ScorerInfo, ScorerInfo]]) -> tuple[list[Note], list[Note]]:
    """The mismatches that make the runs incomparable, and the other differences. A scorer is the same if the judge
    wrote in one run what the samples of the other have: the written texts are a part of the cases."""
    mismatches: list[Note] = []
    found: list[Note] = []
    pairs = [(a.judge_of(ours.signature), b.judge_of(theirs.signature)) for ours, theirs in scorers]
    different = {pair for pair in pairs if len(set(pair) - {"none"}) > 1}
    mismatches += [note("judges_differ", "warning", judges=judges) for judges in sorted(different)]
    for ours, theirs in scorers:
        if ours.signature != theirs.signature and not _one_writes(ours, theirs):
            signatures = ours.signature, theirs.signature
            mismatches.append(note("scorer_differs", "warning", name=ours.name, signatures=signatures))
        if ours.scale != theirs.scale or ours.lower_is_better != theirs.lower_is_better:
            raise ConfigError(f"{ours.name} has a different scale or direction in the two runs")
    if {a.keeps_reasoning, b.keeps_reasoning} == {True, False}:
        mismatches.append(note("reasoning_differs", "warning"))
    if a.id == b.id:
        found.append(note("same_run", "warning"))
    for run, name in ((a, "first"), (b, "second")):
        if run.stop_reason and run.drawn is None:
            found.append(note("other_run_stopped", "warning", run=name, reason=run.stop_reason))
    if max(a.trials, b.trials) > 1:
        found.append(note("several_trials", trials=(a.trials, b.trials)))
    in_both = {info.signature for pair in scorers for info in pair}
    single = {title for run in (a, b) for signature, title in run.titles.items() if signature not in in_both}
    if single:
        found.append(note("scorers_of_one_run", scorers=tuple(sorted(single))))
    return mismatches, found


def _one_writes(ours: ScorerInfo, theirs: ScorerInfo) -> bool:
    """Whether two scorers differ only in that one has the judge write what the samples of the other have."""
    frozen = [info.frozen_signature or info.signature for info in (ours, theirs)]
    return ours.signature != theirs.signature and frozen[0] == frozen[1]


def _lacks(sample: Sample, info: ScorerInfo) -> bool:
    """Whether a sample lacks what the judge writes for it."""
    return not comparable({name: metadata_at(sample.metadata, name) for name in info.case_metadata})


_Written: TypeAlias = tuple[Sequence[ScorerInfo], Sequence[ScorerInfo]]
"""The scorers of each run whose judge wrote what samples lacked."""


def _written(scorers: Iterable[tuple[ScorerInfo, ScorerInfo]]) -> _Written:
    pairs = list(scorers)
    return [ours for ours, _ in pairs if ours.written_by], [theirs for _, theirs in pairs if theirs.written_by]


def _case_metadata(a: Run, b: Run, scorers: Iterable[tuple[ScorerInfo, ScorerInfo]]) -> tuple[str, ...]:
    """The entries of the metadata that these scorers hold answers against, or that a simulated user reads."""
    entries = {name for pair in scorers for info in pair for name in info.case_metadata}
    simulated = any(run.target is not None and run.target.user for run in (a, b))
    return tuple(sorted(entries.union(USER_METADATA if simulated else ())))


def _case_differences(
    a: Run,
    b: Run,
    pairing: Pairing,
    entries: Sequence[str],
    written: _Written = ((), ()),
    *,
    whole: bool = True,
) -> tuple[list[Note], list[Note]]:
    """How the datasets differ: in their cases (mismatches), and in what is under test (notes).

    entries: those of the metadata that belong to the case.
    written: the scorers whose judge wrote what samples lack; what it wrote belongs to the case, too.
    whole: whether a sample only in the first run is a mismatch.
    """
    if a.samples is None or b.samples is None:
        return [note("versions_differ", "warning", versions=(a.dataset_version, b.dataset_version))], []
    mismatches: list[Note] = []
    by_trial = a.trials == b.trials
    ours = _hashes(a, a.samples, entries, written[0], by_trial=by_trial)
    theirs = _hashes(b, b.samples, entries, written[1], by_trial=by_trial)
    rows = pairing.match(ours.keys, theirs.keys)
    common = len(rows[0])
    cases = expected = tested = 0
    by_judge = [0, 0]
    for row, other in zip(*rows, strict=True):
        first, second = ours[row], theirs[other]
        cases += first.case != second.case
        expected += _expect_other(first, second)
        tested += first.tested != second.tested
        by_judge[0] += first.written
        by_judge[1] += second.written
    if cases:
        mismatches.append(note("cases_differ", "warning", different=cases, samples=common))
    if expected:
        fields = tuple(entries)
        mismatches.append(note("expectations_differ", "warning", different=expected, samples=common, fields=fields))
    if (whole and len(ours) > common) or len(theirs) > common:
        alone = [
            _only_in_one(run.samples or (), of, own) for run, of, own in zip((a, b), (ours, theirs), rows, strict=True)
        ]
        mismatches.append(
            note(
                "samples_differ",
                "warning",
                only=tuple(number for number, _ in alone),
                examples=tuple(example for _, example in alone),
                by_question=pairing.partners is not None,
            )
        )
    found: list[Note] = []
    if tested:
        found.append(note("answers_differ", different=tested, samples=common))
    if by_judge[0] != by_judge[1]:
        fields = tuple(dict.fromkeys(info.case_metadata[0] for of in written for info in of))
        found.append(note("written_in_one_run", samples=common, written=tuple(by_judge), fields=fields))
    return mismatches, found


def _expect_other(ours: _Hashes, theirs: _Hashes) -> bool:
    return None not in (ours.expected, theirs.expected) and ours.expected != theirs.expected


def _only_in_one(samples: Iterable[Sample], hashed: _Hashed, paired: Sequence[int]) -> tuple[int, str]:
    """How many samples of a run are not in the other, and the ID or the question of the first. paired: the rows of
    those that are."""
    is_paired = bytearray(len(hashed))
    for row in paired:
        is_paired[row] = True
    if not (number := is_paired.count(False)):
        return 0, ""
    first = next(sample for sample, row in zip(samples, hashed.rows, strict=False) if not is_paired[row])
    return number, first.id if first.has_own_id else question_of(first)


class _Hashes(NamedTuple):
    """Hashes of what a sample consists of."""

    case: bytes
    """What was asked, and the reference."""
    expected: bytes | None
    """What else answers are held against; None if the judge failed to write it, so that no answer was."""
    tested: bytes
    """What is under test."""
    written: bool
    """Whether the judge wrote what answers are held against."""


class _Hashed(Sequence[_Hashes]):
    """The hashes of samples, or of trials, in 50 bytes each besides their keys.

    Args:
        repeats: Whether several trials may have one key. The hashes of the last one count.
    """

    def __init__(self, *, repeats: bool) -> None:
        self.keys = PackedTexts()
        """The key of each row."""
        self._data = bytearray()
        self._numbers: dict[str, int] | None = {} if repeats else None
        self._rows = array("q")

    def add(self, key: str, hashes: _Hashes) -> None:
        """Add a sample, or a trial."""
        row = len(self) if self._numbers is None else self._numbers.setdefault(key, len(self))
        if row == len(self):
            self.keys.append(key)
        if self._numbers is not None:
            self._rows.append(row)
        case, expected, tested, written = hashes
        data = case + (expected or bytes(_SIZE)) + tested + bytes([expected is not None, written])
        self._data[row * len(data) : (row + 1) * len(data)] = data

    @property
    def rows(self) -> Sequence[int]:
        """The row of each sample, or of each trial."""
        return range(len(self)) if self._numbers is None else self._rows

    @overload
    def __getitem__(self, index: int) -> _Hashes: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Hashes]: ...
    def __getitem__(self, index: int | slice) -> _Hashes | list[_Hashes]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        start = index * (3 * _SIZE + 2)
        case, expected, tested = (bytes(self._data[start + at : start + at + _SIZE]) for at in (0, _SIZE, 2 * _SIZE))
        is_known, written = self._data[start + 3 * _SIZE : start + 3 * _SIZE + 2]
        return _Hashes(case, expected if is_known else None, tested, bool(written))

    def __len__(self) -> int:
        return len(self.keys)


_SIZE = 16
"""The bytes of a hash."""


def _hash(value: Any) -> bytes:
    return bytes.fromhex(content_hash(value))


def _hashes(
    run: Run, samples: Iterable[Sample], entries: Sequence[str], written: Sequence[ScorerInfo], *, by_trial: bool
) -> _Hashed:
    """The hashes by sample, or by trial. entries: those of the metadata that belong to the case. written: the scorers
    whose judge wrote what samples lack."""
    texts = _texts_written(run, written)
    hashes = _Hashed(repeats=not by_trial)
    for sample in samples:
        found = comparable({name: metadata_at(sample.metadata, name) for name in entries})
        missing = [info for info in written if found.keys().isdisjoint(info.case_metadata)]
        texts_here = {info: texts[info.signature].get(sample.key, _UNKNOWN) for info in missing}
        by_judge = {info.case_metadata[0]: each for info, each in texts_here.items() if each is not None}
        expected = [
            sample.expected_trajectory,
            [(turn.id, turn.reference) for turn in sample.turns if turn.reference is not None],
            {**found, **comparable(by_judge)},
        ]
        of_sample = _Hashes(
            case=_hash([getattr(sample, name) for name in CASE_FIELDS]),
            expected=None if _UNKNOWN in by_judge.values() else _hash(expected),
            tested=_hash([getattr(sample, name) for name in TESTED_FIELDS]),
            written=bool(by_judge),
        )
        hashes.add(sample.key if by_trial else sample.id, of_sample)
    return hashes


_UNKNOWN = "unknown"
"""In place of texts that the judge failed to write."""


def _texts_written(run: Run, written: Sequence[ScorerInfo]) -> Mapping[str, Mapping[str, Any]]:
    """What the judge wrote for each sample or trial, by the signature of the scorer: None if it wrote nothing, or the
    run was saved without its calls. A sample that failed before has no entry."""
    kinds = {info.signature: info.written_by for info in written}
    texts: dict[str, dict[str, Any]] = {signature: {} for signature in kinds}
    for record in run.records if kinds else ():
        if (kind := kinds.get(record.signature)) is None:
            continue
        answers = [call.answer for call in record.calls if call.question == kind and call.answer is not None]
        if answers:
            texts[record.signature][record.key] = answers[0] if all(each == answers[0] for each in answers) else answers
        elif not isinstance(record.outcome, Failed):
            texts[record.signature][record.key] = None
    return texts
