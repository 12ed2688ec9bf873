"""Checks that a sample has of its own: other checks, in its metadata."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

from evalstone._core.declarations import TEXT
from evalstone._core.display import count
from evalstone._core.guards import is_mapping, is_number, is_sequence
from evalstone._core.json import to_jsonable
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone.errors import ConfigError, OutcomeError, invalid, unknown
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.questions.base import Ask
from evalstone.scorers.base import Scorer
from evalstone.scorers.needs import METADATA
from evalstone.scorers.reasons import shortened
from evalstone.scorers.text import CodeScorer
from evalstone.types import Sample, Score, Skipped

OWN = "checks"
"""The entry of the metadata with the checks of a sample."""
_MOST_DEEP = 20
_SETTINGS = ("name", "invert", "weight", "label", "at_least")
_GROUP_SETTINGS = (OWN, "weight", "label", "at_least")


@dataclass(frozen=True)
class _Entry:
    """A check of a sample, or a group of them."""

    scorer: Scorer | None
    """None for a group."""
    group: tuple[_Entry, ...] = ()
    invert: bool = False
    weight: float = 1.0
    label: str = ""
    at_least: float | None = None
    """The lowest share of the scale that passes. By default, of a check all of it; of a group, that all pass."""

    @property
    def shown(self) -> str:
        """What it is called in reasons."""
        if self.scorer is None:
            return self.label or f"a group of {count(len(self.group), 'check')}"
        settings = ", ".join(f"{name}={value!r}" for name, value in self.scorer.changed_parameters())
        named = f"{self.scorer.name}({settings})" if settings else self.scorer.name
        return f"not {shortened(named, 200)}" if self.invert else shortened(named, 200)


@dataclass(frozen=True)
class _Outcome:
    """What became of an entry: the share of the scale that it reached, and whether it passed."""

    entry: _Entry
    value: float
    passed: bool
    reason: str
    parts: tuple[_Outcome, ...] = ()

    def data(self) -> dict[str, Any]:
        """As evidence."""
        about = {"check": self.entry.shown, "passed": self.passed, "score": self.value}
        about |= {"label": self.entry.label} if self.entry.label else {}
        return about | ({"checks": [part.data() for part in self.parts]} if self.parts else {"reason": self.reason})

    def failures(self) -> Iterator[str]:
        """The checks that failed, with their reasons."""
        if not self.passed and not self.parts:
            yield f"{self.entry.shown}: {self.reason.rstrip('.')}" if self.reason else self.entry.shown
        for part in self.parts if not self.passed else ():
            yield from part.failures()


class SampleChecks(Scorer, kw_only=False):
    """Whether the answer passes the checks of its sample.

        sample checks = 1 if every check passes, else 0          range [0, scale], higher is better
        share         = Σ weight · score / Σ weight over the checks

    The checks are `checks` in the metadata of the sample: a list of tables, each with the name of a scorer in code and
    its parameters, such as {"name": "contains", "expected": "Oslo"}. A table may also have `invert` (the check passes
    if it would fail), `weight` (1 by default; 0 doesn't count), `label`, and `at_least`, the lowest share of the scale
    that passes (by default all of it). A table with a list of `checks` instead of a name is a group: it passes if they
    all do, or with `at_least`, if its share is at least that. The metadata may be such a group, too. Undefined without
    checks, and if a check is undefined. Failed if a check is unknown, or fails itself. No judge call.

    Attributes:
        label: Only the checks with this label, in groups as well. All of them must pass.
        share: The weighted share instead of 1 or 0.
    """

    name = "sample_checks"
    required_fields = (f"{METADATA}{OWN}",)
    case_metadata = (OWN,)
    interpretation = ((1.0, "every check passes"), (0.0, "a check fails"))
    advice = "The reason names the checks that fail. Read those answers."

    label: Annotated[str | None, TEXT] = None
    _: KW_ONLY
    share: bool = False
    explain: bool = field(default=False, init=False)
    judge: ReadAs[JudgeSpec | None, Judge | None] = field(default=NOTHING, init=False)

    @property
    def is_immediate(self) -> bool:
        return True

    def values(self, sample: Sample) -> dict[str, Any]:
        return {"sample": sample}

    def absent(self, values: Mapping[str, Any], sample: Sample | None = None) -> list[str]:
        """The checks, if the sample has none."""
        return [] if values["sample"].metadata.get(OWN) else [*self.required_fields]

    async def run(self, ask: Ask, sample: Sample) -> Score | Skipped:
        if lacking := self.absent(self.values(sample)):
            return Skipped(self.needs_text(lacking))
        return self.scaled(await self.score(ask, sample=sample))

    async def score(self, ask: Ask, *, sample: Sample, **fields: Any) -> Score | Skipped:
        """Return the score of the sample's checks."""
        whole = _checks_of(sample.metadata[OWN], self.name)
        if self.label is not None:
            labeled = tuple(_labeled(whole, self.label))
            if not labeled:
                return Skipped(f"the sample has no check with the label {self.label}")
            whole = _Entry(None, labeled)
        outcome = await self._outcome(ask, whole, sample, OWN)
        if isinstance(outcome, Skipped):
            return outcome
        value = outcome.value if self.share else float(outcome.passed)
        failed = list(outcome.failures())
        reason = f"Failed: {'; '.join(failed)}." if failed else f"{count(len(outcome.parts), 'check')} passed."
        return Score(value * self.scale, reason, evidence=[part.data() for part in outcome.parts])

    async def _outcome(self, ask: Ask, entry: _Entry, sample: Sample, place: str) -> _Outcome | Skipped:
        if entry.scorer is None:
            return await self._of_group(ask, entry, sample, place)
        try:
            result = await entry.scorer.run(ask, sample)
        except OutcomeError as error:
            raise OutcomeError(f"{self.name}: {place}: ", error) from None
        if isinstance(result, Skipped):
            return Skipped(f"{place}: {result.reason}")
        value = result.value / entry.scorer.scale
        if entry.scorer.lower_is_better != entry.invert:
            value = 1 - value
        return _Outcome(entry, value, value >= (1.0 if entry.at_least is None else entry.at_least), result.reason or "")

    async def _of_group(self, ask: Ask, group: _Entry, sample: Sample, place: str) -> _Outcome | Skipped:
        outcomes: list[_Outcome] = []
        for number, entry in enumerate(group.group):
            if not entry.weight:
                continue
            outcome = await self._outcome(ask, entry, sample, f"{place}[{number}]")
            if isinstance(outcome, Skipped):
                return outcome
            outcomes.append(outcome)
        if not outcomes:
            return Skipped(f"{place} has no check that counts")
        weights = math.fsum(each.entry.weight for each in outcomes)
        value = min(math.fsum(each.value * each.entry.weight for each in outcomes) / weights, 1.0)
        passed = all(each.passed for each in outcomes) if group.at_least is None else value >= group.at_least
        return _Outcome(group, value, passed, "", tuple(outcomes))


sample_checks = SampleChecks


def _labeled(entry: _Entry, label: str) -> Iterator[_Entry]:
    """The entries with a label, and those in groups without it. A check that counts for its label alone counts here."""
    for each in entry.group:
        if each.label == label:
            yield each if each.weight else _Entry(each.scorer, each.group, each.invert, 1.0, label, each.at_least)
        else:
            yield from _labeled(each, label)


def _checks_of(value: object, what: str) -> _Entry:
    """The checks in the metadata of a sample. Raises OutcomeError for what are none."""
    try:
        return _parsed(json.dumps(to_jsonable(value)))
    except ConfigError as error:
        raise OutcomeError(f"{what}: ", error) from None


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> _Entry:
    value = json.loads(text)
    return _group({OWN: value} if is_sequence(value) else value, OWN, 0)


def _group(table: object, place: str, depth: int) -> _Entry:
    if depth > _MOST_DEEP:
        raise ConfigError(f"{place} is nested too deeply: {_MOST_DEEP} groups are the most")
    if not is_mapping(table) or not is_sequence(table.get(OWN)) or not table[OWN]:
        raise ConfigError(invalid(place, f"a list of checks, or a table with a list of {OWN}", table))
    for name in table:
        if name not in _GROUP_SETTINGS:
            raise ConfigError(f"{place}: ", unknown("setting of a group", str(name), _GROUP_SETTINGS))
    entries: Sequence[Any] = table[OWN]
    group = tuple(_entry(each, f"{place}[{number}]", depth) for number, each in enumerate(entries))
    return _Entry(None, group, **_settings(table, place))


def _entry(table: object, place: str, depth: int) -> _Entry:
    if is_mapping(table) and OWN in table:
        return _group(table, place, depth + 1)
    if not is_mapping(table) or not isinstance(table.get("name"), str):
        raise ConfigError(invalid(place, 'a table with the name of a scorer, such as {"name": "contains"}', table))
    parameters = {key: value for key, value in table.items() if key == "name" or key not in _SETTINGS}
    try:
        scorer = _scorer(parameters)
    except ConfigError as error:
        raise ConfigError(f"{place}: ", error) from None
    invert = table.get("invert", False)
    if not isinstance(invert, bool):
        raise ConfigError(invalid(f"{place}.invert", "true or false", invert))
    return _Entry(scorer, invert=invert, **_settings(table, place))


def _settings(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    weight, at_least, label = table.get("weight", 1.0), table.get("at_least"), table.get("label", "")
    if not is_number(weight) or weight < 0:
        raise ConfigError(invalid(f"{place}.weight", "a number, 0 or more", weight))
    if at_least is not None and not is_number(at_least):
        raise ConfigError(invalid(f"{place}.at_least", "a number", at_least))
    if not isinstance(label, str):
        raise ConfigError(invalid(f"{place}.label", "text", label))
    return {"weight": float(weight), "at_least": at_least, "label": label}


def _scorer(table: Mapping[str, Any]) -> Scorer:
    """The scorer of a check. Data name no code of anybody's, so it is one of evalstone's, in code."""
    from evalstone.scorers.registry import SCORERS, parse_scorer  # noqa: PLC0415 - the registry imports this module

    name = table["name"]
    allowed = [each for each, path in SCORERS.paths.items() if path.startswith(("checks.", "text."))]
    allowed = [each for each in allowed if each not in (SampleChecks.name, "embedding_similarity")]
    if name not in allowed:
        raise ConfigError(unknown("check", name, allowed))
    scorer = parse_scorer(table)
    if not isinstance(scorer, CodeScorer) or not scorer.is_immediate:
        raise ConfigError(f"{name} asks a judge, which the checks of a sample can't")
    return scorer
