"""Two runs sample by sample: what can be compared, and what a reader must be told of it.

Runs are comparable when the same judge scored the same cases by the same scorers. The cases are the same when the
samples have the same ids, questions, references and instructions; answers, passages and conversations are what is under
test, and may differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstone._core.json import content_hash
from evalstone.errors import ConfigError
from evalstone.results.run import Run
from evalstone.results.scores import grouped, scored
from evalstone.results.summary import ScorerInfo
from evalstone.types import Sample

ASKED = ("input", "reference", "instructions")
GIVEN = ("output", "context", "messages", "trajectory")


@dataclass(frozen=True)
class Paired:
    """One scorer's values in two runs, sample by sample, in the order of the first run.

    one_sided: how many samples only one of the runs has a score for; they are in no difference. groups: the samples'
    groups, where some sample names one in either run; the first run's where both do.
    """

    title: str
    info: ScorerInfo
    samples: tuple[str, ...]
    a: Sequence[float]
    b: Sequence[float]
    groups: tuple[str, ...] | None
    one_sided: int


@dataclass(frozen=True)
class Pairing:
    """What of two runs can be compared. told: in which ways they differ, as sentences for the reader."""

    scorers: tuple[Paired, ...]
    told: tuple[str, ...]


def paired(a: Run, b: Run, *, anyway: bool = False) -> Pairing:
    """Put two runs side by side.

    Raises ConfigError when they have no scorer or no scored sample in common, and, unless `anyway`, when their judges,
    their scorers' signatures or their cases differ.
    """
    scorers = _common(a, b)
    refused, told = _differences(a, b, scorers)
    if refused and not anyway:
        raise ConfigError(f"these runs are not comparable: {'; '.join(refused)}. To compare them anyway: --anyway")
    lines = [_pair(a, b, ours, theirs) for ours, theirs in scorers]
    if not any(line.samples for line in lines):
        raise ConfigError(
            "no sample was scored in both runs; samples are matched by their ids, and one without an id of its own is "
            "named by its content: give ids to compare different answers"
        )
    return Pairing(tuple(line for line in lines if line.samples), (*refused, *told))


def _common(a: Run, b: Run) -> list[tuple[ScorerInfo, ScorerInfo]]:
    """The scorers of both, by signature, else by title."""
    by_signature = {info.signature: info for info in b.scorers}
    by_title = {b.titles[info.signature]: info for info in b.scorers}
    found = [
        (info, other)
        for info in a.scorers
        if (other := by_signature.get(info.signature) or by_title.get(a.titles[info.signature])) is not None
    ]
    if not found:
        ours, theirs = (", ".join(run.titles.values()) for run in (a, b))
        raise ConfigError(f"the runs have no scorer in common: {ours} in the first, {theirs} in the second")
    return found


def _differences(
    a: Run, b: Run, scorers: Iterable[tuple[ScorerInfo, ScorerInfo]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What makes the runs incomparable, and what is only to be said."""
    refused: list[str] = []
    told: list[str] = []
    if a.judge != b.judge:
        refused.append(f"the judges differ ({a.judge}, {b.judge})")
    for ours, theirs in scorers:
        if ours.signature != theirs.signature:
            refused.append(f"{ours.name} differs ({ours.signature}, {theirs.signature})")
        if ours.scale != theirs.scale or ours.lower_is_better != theirs.lower_is_better:
            raise ConfigError(f"{ours.name} has another scale or direction in the two runs: no difference can be taken")
    if a.version != b.version:
        cases = _cases_differ(a, b)
        refused.extend(cases.refused)
        told.extend(cases.told)
    if a.id == b.id:
        told.append("they are one and the same run")
    for run, name in ((a, "first"), (b, "second")):
        if run.stop_reason:
            told.append(f"the {name} run ended before its end ({run.stop_reason})")
    both = [{run.titles[info.signature] for info in run.scorers} for run in (a, b)]
    if alone := sorted(both[0] ^ both[1]):
        told.append(f"only in one of the runs: {', '.join(alone)}")
    return tuple(refused), tuple(told)


@dataclass(frozen=True)
class _Cases:
    refused: tuple[str, ...]
    told: tuple[str, ...]


def _cases_differ(a: Run, b: Run) -> _Cases:
    """How the data sets of two runs differ: in the cases, or only in what is under test."""
    if a.dataset is None or b.dataset is None:
        return _Cases((f"the data set versions differ ({a.version}, {b.version}) and the texts are not at hand",), ())
    ours, theirs = _hashes(a.dataset), _hashes(b.dataset)
    common = ours.keys() & theirs.keys()
    asked = sum(ours[name][0] != theirs[name][0] for name in common)
    given = sum(ours[name][1] != theirs[name][1] for name in common)
    refused: list[str] = []
    if asked:
        refused.append(f"{asked} of {len(common)} samples have another question, reference or instruction")
    alone = (len(ours) - len(common), len(theirs) - len(common))
    if any(alone):
        refused.append(f"{alone[0]} samples are only in the first run and {alone[1]} only in the second")
    told = (f"{given} of {len(common)} samples have another answer, conversation or other passages",) if given else ()
    return _Cases(tuple(refused), told)


def _hashes(samples: Iterable[Sample]) -> Mapping[str, tuple[str, str]]:
    """By sample: the hash of what was asked, and of what is under test."""
    return {
        sample.id: (
            content_hash([getattr(sample, n) for n in ASKED]),
            content_hash([getattr(sample, n) for n in GIVEN]),
        )
        for sample in samples
    }


def _pair(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo) -> Paired:
    first, groups = scored(a, ours.signature)
    second, more = scored(b, theirs.signature)
    names = tuple(name for name in first if name in second)
    return Paired(
        title=a.titles[ours.signature],
        info=ours,
        samples=names,
        a=array("d", (first[name] for name in names)),
        b=array("d", (second[name] for name in names)),
        groups=grouped(names, {**more, **groups}),
        one_sided=len(first) + len(second) - 2 * len(names),
    )
