"""Pairing: which sample of one run is which sample of another.

Samples are paired by their IDs. Without IDs of their own, they are paired by what was asked: the reference, and the
input, or in a conversation what the user said. Outputs, contexts, instructions, tool calls and states are under test,
so they never decide which samples are paired: pairs chosen by equal answers would hide every difference.

In a conversation, what the user says after the first answer may depend on that answer. It only tells conversations
apart that begin in the same way, and only if both runs have the same ones.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, TypeVar

from evalstone._core.display import count, excerpt, shortlist
from evalstone._core.front_ends import Setting, WordingPart
from evalstone._core.packed_texts import PackedTexts
from evalstone._core.text import is_blank, normalized
from evalstone.agents.messages import texts
from evalstone.errors import ConfigError
from evalstone.report.notes import WITHOUT_IDS
from evalstone.types import Note, Sample, case_key, is_own_id, note, trace_metadata
from evalstone.types.reserved_metadata import WRITTEN_METADATA

if TYPE_CHECKING:
    from evalstone.results.run import Run

_T = TypeVar("_T")
NO_IDS, TRACES = "no_ids", "traces"
"""Why samples are not paired by their IDs."""


@dataclass(frozen=True)
class Pairing:
    """Which sample of the second of two runs is which sample of the first, by their keys."""

    partners: Mapping[str, str] | None = None
    """Keys in the second run, with those in the first; None if paired samples have the same key in both."""
    notes: tuple[Note, ...] = ()
    """What the samples are paired by, if not by ID."""

    def in_first(self, key: str) -> str:
        """The key in the first run of a sample of the second run; without a partner, a key that no sample has."""
        return key if self.partners is None else self.partners.get(key, f"\0{key}")

    def in_second(self, key: str) -> str:
        """The key in the second run of a sample of the first run; without a partner, a key that no sample has."""
        return key if self.partners is None else self._inverse.get(key, f"\0{key}")

    def renamed(self, values: Mapping[str, _T]) -> Mapping[str, _T]:
        """Values of the second run's samples, by their keys in the first run."""
        return values if self.partners is None else {self.in_first(key): value for key, value in values.items()}

    def match(self, first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[int], Sequence[int]]:
        """The places in each of two runs of the samples that are in both, in the order of the first.

        first, second: the keys of each run's samples.
        """
        if self.partners is None and first == second:
            return range(len(first)), range(len(second))
        if self.partners is None and isinstance(first, PackedTexts) and isinstance(second, PackedTexts):  # noqa: SIM102
            if (both := first.joined(second)) is not None:
                return both
        places = {self.in_first(name): place for place, name in enumerate(second)}
        ours = [place for place, name in enumerate(first) if name in places]
        return ours, [places[first[place]] for place in ours]

    @functools.cached_property
    def _inverse(self) -> Mapping[str, str]:
        return {ours: theirs for theirs, ours in (self.partners or {}).items()}


class _Asked(NamedTuple):
    """What a sample asked, as hashes."""

    opening: bytes
    """The reference, and the input or the user's first message. Nothing here can depend on an answer."""
    whole: bytes
    """The same with everything that the user said."""


@dataclass
class _Questions:
    """What the samples of a run asked. Millions of these fit into memory, so of a sample that nobody else begins like,
    there is no more than its name."""

    by_opening: dict[bytes, str | list[str]] = field(default_factory=dict[bytes, "str | list[str]"])
    """The sample that begins in a way, or the samples, in their order."""
    wholes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By sample, all that it asked, if that is more than how it begins."""
    with_ids: list[str] = field(default_factory=list[str])
    """The samples that are paired by their own IDs."""
    trials: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The trials of each sample that has some."""
    size: int = 0
    """The number of samples that aren't paired by ID."""
    silent: int = 0
    """How many of them ask nothing."""

    def add(self, name: str, asked: _Asked | None) -> None:
        """Add a sample that isn't paired by ID."""
        self.size += 1
        if asked is None:
            self.silent += 1
            return
        if asked.whole != asked.opening:
            self.wholes[name] = asked.whole
        known = self.by_opening.setdefault(asked.opening, name)
        if isinstance(known, list):
            known.append(name)
        elif known is not name:
            self.by_opening[asked.opening] = [known, name]

    def groups(self, opening: bytes) -> dict[bytes, list[str]]:
        """The samples that begin in a way, by all that they asked."""
        known = self.by_opening.get(opening, [])
        groups: dict[bytes, list[str]] = {}
        for name in [known] if isinstance(known, str) else known:
            groups.setdefault(self.wholes.get(name, opening), []).append(name)
        return groups


def pair_samples(a: Run, b: Run) -> Pairing:
    """Pair the samples of two runs: by ID, or, without IDs, by what was asked.

    The ID of a trace is that of one execution, so different traces are paired by what was asked, too.
    Samples that asked the same, equally often in both runs, are paired in their order; the notes say so. So are those
    that are the same in everything but their answers, however often each run has them.

    Raises:
        ConfigError: The samples have no IDs, and it is not clear which of them belong together: only one of the runs
            has IDs, a sample asks nothing, something was asked more often in one run than in the other, or the texts
            are not available.
    """
    if a.dataset_version == b.dataset_version:  # each sample is in both datasets, with the same ID
        return Pairing()
    places = {"first": a, "second": b}
    own = {place: Counter(map(is_own_id, _ids(run))) for place, run in places.items()}
    if not any(of[False] for of in own.values()):
        return _by_what_was_asked(a, b, TRACES) if _are_other_traces(a, b) else Pairing()
    for place, other in (("first", "second"), ("second", "first")):
        if not own[place][True] and not own[other][False]:
            raise ConfigError(
                f"the samples of the {place} run have no IDs and those of the {other} run have some, so it is not "
                "clear which samples belong together. ",
                *id_hint(a, b),
            )
    for place, run in places.items():
        if run.samples is None:
            raise ConfigError(
                f"{WITHOUT_IDS[NO_IDS]}, so they are paired by what was asked, and the texts of the {place} run are "
                "not available. ",
                *id_hint(a, b),
            )
    return _by_what_was_asked(a, b, NO_IDS)


def _ids(run: Run) -> Iterable[str]:
    """The samples' IDs: of a finished run, as its records have them, because samples may be read from files."""
    columns = run.columns
    if run.samples is None:
        return (one.sample_id for one in columns.entries())
    if columns.answered == columns.size == len(run.samples):
        return map(columns.sample, range(columns.size))
    return (sample.id for sample in run.samples)


def _are_other_traces(a: Run, b: Run) -> bool:
    """Whether all samples are from traces, and no trace is in both runs."""
    ids: list[set[str]] = []
    for run in (a, b):
        own = set[str]()
        for sample in run.samples or ():
            trace = trace_metadata(sample).get("trace_id")
            if not (trace and sample.id.startswith(str(trace))):
                return False
            own.add(sample.id)
        if not own:
            return False
        ids.append(own)
    return ids[0].isdisjoint(ids[1])


def _by_what_was_asked(a: Run, b: Run, why: str) -> Pairing:
    """The pairing of runs whose texts are available. Samples with IDs of their own are paired by them all the same,
    except for traces.

    why: NO_IDS or TRACES.
    """
    first, second = (_read(run, by_id=why == NO_IDS) for run in (a, b))
    for place, asked in (("first", first), ("second", second)):
        if asked.silent:
            raise ConfigError(
                f"{WITHOUT_IDS[why]}, and {asked.silent:,} of {count(asked.size, 'sample')} of the {place} run have no "
                "input, reference or turns to pair them by. ",
                *id_hint(a, b),
            )
    partners = {name: name for name in second.with_ids}
    unclear: list[str] = []
    in_order = 0
    for opening, ours in first.by_opening.items():
        theirs = second.by_opening.get(opening)
        if isinstance(ours, str) and isinstance(theirs, str):
            partners[theirs] = ours
        elif theirs is not None:
            one, other = first.groups(opening), second.groups(opening)
            sizes, other_sizes = ({whole: len(names) for whole, names in each.items()} for each in (one, other))
            if sizes == other_sizes or _are_same(*one.values(), *other.values()):
                for whole, names in one.items():
                    pairs = [*zip(other[whole], names, strict=False)]
                    partners.update(pairs)
                    in_order += len(pairs) if len(names) + len(other[whole]) > 2 else 0
            else:
                unclear.append(next(iter(one.values()))[0])
    if unclear:
        raise ConfigError(
            f"{WITHOUT_IDS[why]}, and it is not clear which samples belong together: "
            f"{count(len(unclear), 'question')} (such as {excerpt(_question(a, unclear[0]))}) "
            f"{'was' if len(unclear) == 1 else 'were'} asked more often in one run than in the other, or began "
            "conversations that went on differently. ",
            *id_hint(a, b),
        )
    notes = [note("paired_by_question", "warning", because=why)]
    if in_order:
        notes.append(note("paired_in_order", "warning", samples=in_order))
    for name, trials in second.trials.items():
        if (ours := partners.get(name)) is not None:
            partners |= {case_key(name, trial): case_key(ours, trial) for trial in trials}
    return Pairing(partners, tuple(notes))


def _are_same(*groups: Sequence[str]) -> bool:
    """Whether samples without IDs of their own are the same in everything: their default IDs differ in numbers only.
    Which of them belong together then doesn't matter."""
    names = list(itertools.chain(*groups))
    first = min(names, key=len)
    return all(name == first or name.startswith(f"{first}-") for name in names)


def _read(run: Run, *, by_id: bool) -> _Questions:
    """What each sample asked. by_id: leave out samples that have an ID of their own, which pairs them."""
    found = _Questions()
    by_user = run.target is not None and bool(run.target.user)
    for sample in run.samples or ():
        name = sample.id
        if sample.trial is not None:
            trials = found.trials.setdefault(name, [])
            trials.append(sample.trial)
            if trials[1:]:
                continue
        if by_id and sample.has_own_id:
            found.with_ids.append(name)
        elif by_user:
            # A simulated user's words depend on the answers. The default ID is a hash from before the conversation.
            found.add(name, _Asked(name.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")))
        else:
            found.add(name, _asked(sample))
    return found


def _asked(sample: Sample) -> _Asked | None:
    """What a sample asked; None if nothing."""
    said = list(map(_normalized, _said(sample)))
    of_turns = [turn.reference for turn in sample.turns if _filled(turn.reference)]
    references = [sample.reference if _filled(sample.reference) else None, *of_turns]
    if not said and not any(references):
        return None
    references = [None if text is None else _normalized(text) for text in references]
    opening = _hash(said[:1], references)
    return _Asked(opening, opening if len(said) < 2 else _hash(said, references))


def _hash(*texts: Sequence[str | None]) -> bytes:
    return hashlib.blake2b(repr(texts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _said(sample: Sample) -> Sequence[str]:
    """The input, or everything that the user said in a conversation. Without both, the instructions."""
    if sample.turns:
        return [turn.input for turn in sample.turns if _filled(turn.input)]
    said = [text for text in texts(sample.messages, "user") if _filled(text)]
    if _filled(sample.input) and len(said) < 2:  # messages of one turn repeat the input
        return [sample.input]
    return said or list(filter(_filled, (sample.instructions,)))


def _normalized(text: str) -> str:
    """A text without what files store in several ways: line breaks and other whitespace, and accents."""
    return normalized("NFC", " ".join(text.split()))


def _filled(text: str | None) -> TypeGuard[str]:
    return text is not None and not is_blank(text)


def _question(run: Run, name: str) -> str:
    """What a sample asked, for a message."""
    return question_of(next(sample for sample in run.samples or () if sample.id == name))


def question_of(sample: Sample) -> str:
    """What a sample asked, for a message."""
    return next(iter(_said(sample)), sample.reference or "")


def id_hint(a: Run, b: Run) -> tuple[WordingPart, ...]:
    """What to do to pair the samples of two runs by ID, with the columns of metadata that can be the ID, if any."""
    if any(map(trace_metadata, itertools.chain(a.samples or (), b.samples or ()))):
        return ("To pair them by ID, load the traces in Python and give the samples IDs of your own",)
    if any(info.tool for info in (*a.scorers, *b.scorers)):
        return ("To pair them by ID, import files that have IDs of the samples",)
    ours, theirs = _columns(a), _columns(b)
    if shared := [name for name in ours.keys() & theirs.keys() if name != "id" and _agree(ours[name], theirs[name])]:
        shared.sort(key=list(ours).index)
        column = "the column" if len(shared) == 1 else "one of the columns"
        return (
            f"To pair them by ID, use {column} {shortlist(shared)}, with a value of its own for each sample: score "
            "both datasets again with ",
            Setting("map", {"id": shared[0]}),
        )
    for place, columns, other in (("first", ours, theirs), ("second", theirs, ours)):
        for name in columns:
            if "id" in other and name != "id" and _agree(columns[name], other["id"]):
                return (
                    f"The column {excerpt(name)} of the {place} run has the IDs of the other: score it again with ",
                    Setting("map", {"id": name}),
                )
    return ("To pair them by ID, give both datasets a column id with the same IDs, and score them again",)


def _columns(run: Run) -> dict[str, frozenset[str]]:
    """The columns of metadata with a value of its own for each sample; "id" for their IDs, unless these are default
    ones."""
    samples = {sample.id: sample for sample in run.samples or ()}
    if all(map(is_own_id, samples)):
        rows = [{**sample.metadata, "id": name} for name, sample in samples.items()]
    else:
        rows = [{name: value for name, value in sample.metadata.items() if name != "id"} for sample in samples.values()]
    columns: dict[str, frozenset[str]] = {}
    for name in rows[0] if rows else ():
        values = [row.get(name) for row in rows]
        texts = frozenset(str(value) for value in values if isinstance(value, str | int))
        if name not in WRITTEN_METADATA and len(texts) == len(rows):
            columns[name] = texts
    return columns


def _agree(one: frozenset[str], other: frozenset[str]) -> bool:
    return one <= other or other <= one
