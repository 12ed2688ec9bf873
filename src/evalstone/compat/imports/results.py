"""What the file of another tool holds, whatever the tool: the rows that its reader yields, and what it says of them.

A reader is a generator. It yields, in the order of the file and one at a time, what `Event` lists. It computes nothing:
`evalstone.compat.imports.building` makes runs of it.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from evalstone._core.display import excerpt, safe
from evalstone._core.guards import is_array, is_number, is_object, is_whole, python_value
from evalstone._core.literals import MISSING
from evalstone.datasets.cells import number_in as numeric
from evalstone.datasets.cells import storable
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import NO_USAGE, TARGET_FAILED, Failed, Note, Sample, Skipped, Usage

T = TypeVar("T")
FailureKind: TypeAlias = Literal["TargetFailed", "JudgeFailed", "ScorerFailed", "NoScore", "NotFinite", "OutOfRange"]
"""What failed, in `Failed.exception`: the system that was evaluated, the judge, or the scorer's code; or the file has
no score, one that is no finite number, or one outside the scale."""
MOST_SYSTEMS, MOST_METRICS = 1_000, 10_000
"""The most systems and metrics of a file: each takes memory and time, whatever it has."""
LONGEST_NAME = 200
"""The most characters of the name of a metric or a system."""
_DECIMAL = re.compile(r"\A([-+]?(?:0(?=,)|\d{4,}|\d+(?!,\d{3}\Z))),(\d+)\Z", re.ASCII)
_BOOLEANS: Mapping[str, float] = {"true": 1.0, "false": 0.0}
_BRACKETS = str.maketrans("()", "[]")


@dataclass(frozen=True)
class Metric:
    """A metric of the tool: a scorer of the run. Two of the same name and settings are one."""

    name: str
    """Its name in the tool, as a line of visible text. Parentheses become brackets: in a signature, they hold settings.
    `metric_name` makes one of any text."""
    settings: tuple[tuple[str, str], ...] = ()
    """What tells it from other metrics of this name, such as a filter."""
    scale: float | None = field(default=None, compare=False)
    """The highest possible score, if the tool says so. None: 1 if no score is higher, else a power of ten, with a
    note."""
    lower_is_better: bool = field(default=False, compare=False)
    threshold: float | None = field(default=None, compare=False)
    """The score from which on the tool passes a sample; None if it has none, or if it differs between samples."""
    description: str = field(default="", compare=False)


metric_with = functools.lru_cache(4096)(Metric)
"""`Metric` for what is made for each row: a metric is made once."""


class Judged(NamedTuple):
    """What a judge said, for a metric that has one: it becomes the judge call of the record."""

    judge: str = ""
    """The model, as the tool names it; "" if the file doesn't say."""
    answer: Any = None
    """Its verdict as JSON data; None if it gave none."""
    usage: Usage = NO_USAGE
    cost: float | None = None
    """US dollars; None if unknown."""
    seconds: float = 0.0


class Result(NamedTuple):
    """What the tool has for a metric and a row: a value, or why there is none."""

    value: float | None = None
    """On the tool's own scale."""
    problem: Skipped | Failed | None = None
    """Why there is no value: it is undefined (Skipped) or something broke (Failed)."""
    reason: str = ""
    evidence: Any = ()
    """What else the file says of the score, as JSON data."""
    judged: Judged | None = None
    """None for a metric without a judge."""
    seconds: float = 0.0
    counted: float | None = None
    """What the tool counted where there is a problem, such as 0 for a failure; None if it left it out. It explains its
    printed numbers."""

    @classmethod
    def of(cls, value: object, reason: object = "", *, evidence: Any = (), judged: Judged | None = None) -> Result:
        """The result for a value as a file has it: a number, or true and false, which are 1 and 0. Anything else,
        also NaN, is a failure of its kind, never a 0."""
        number, problem = value, None
        if type(number) is not float or not math.isfinite(number):  # as nearly all are
            number, problem = _number_of(value)
        text = reason if isinstance(reason, str) else ""
        kept = storable(evidence) if evidence else evidence
        return cls(number, problem, text, kept, judged)


def _number_of(value: object) -> tuple[float | None, Failed | None]:
    """The score that a value is; or why it is none."""
    given = python_value(value)
    if given is None:
        return None, failed("NoScore", "the file has no score")
    if not isinstance(given, bool | int | float):
        return None, failed("NotFinite", f"the score is no number but {type(given).__name__}: {excerpt(given)}")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return number, None
    return None, failed("NotFinite", f"the score is no finite number: {excerpt(given)}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A case with what the system answered and what the tool made of it."""

    place: str
    """Where it is in the file, such as `results[3]`."""
    case: Sample
    """What was asked, without an answer if `system` is known. Without an ID of the tool's, it has a default ID."""
    scores: Mapping[Metric, Result]
    system: str = ""
    """What answered: provider and prompt, or model. Each is a run. "" if the file doesn't say; the case then has the
    output."""
    dataset: str = ""
    """The name of the dataset of a system's cases; "": the name of the evaluation."""
    answer: Answer | None = None
    """The answer of a known system; None if there is none."""
    problem: Failed | Skipped | None = None
    """Why a known system gave no answer: the outcome of every metric that isn't in `scores`."""
    only_scores: bool = False
    """Whether the case has no other metrics than those in `scores`: they are undefined for it, whatever the problem."""
    key: str = ""
    """What tells the case from others. The same key again is another trial of it. "": every row is a case."""
    trial: int | None = None
    """The number of the trial, from 1, if the tool numbers them."""
    order: int = 0
    """The place of the case among the others, if the rows of the file aren't in the order of the cases."""
    seconds: float = 0.0
    """How long the system took to answer."""


@dataclass(frozen=True, kw_only=True)
class About:
    """What a file says of itself, in one or more parts: a later part fills what earlier ones lack."""

    version: str = ""
    """The version of the tool, or of the format of its files."""
    name: str = ""
    """The name of the evaluation, which becomes that of the dataset."""
    started: str = ""
    """When it was made, in ISO 8601."""
    seconds: float = 0.0
    systems: tuple[str, ...] = ()
    """The systems in the order in which the file lists them, if that may not be the order of the rows."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A number that the tool has printed, to be compared with ours."""

    kind: Literal["rows", "scores", "failed", "sum", "mean", "standard error", "deviation", "variance"]
    """The number of rows, those of scores and of failures of a metric, the sum of its scores, or their mean. The others
    need `ours`."""
    value: float
    metric: str = ""
    """The name of the metric; "" for rows."""
    system: str | None = None
    """None: all systems of the file together."""
    digits: int | None = None
    """To how many decimals it is rounded; None if it isn't."""
    ours: float | None = None
    """What the reader has calculated from the scores in the file, for numbers that a run doesn't have, such as those of
    scores that are averaged over trials first. None: the run's number."""


class Restart:
    """What was yielded before is void: a later row has shown that it was read wrongly, and the file is read again."""


@dataclass(frozen=True)
class NextPart:
    """What follows is a part of its own: of another task, or another version of the tool than what was before. Its runs
    are the same as if it was imported alone."""

    name: str
    """Its task, or its version."""


@dataclass(frozen=True)
class OfSystem:
    """What a file says of one system only."""

    system: str
    said: About | Note


PartEvent: TypeAlias = Row | About | Printed | Note | OfSystem | Restart
"""What a reader yields of a part."""
Event: TypeAlias = PartEvent | NextPart
"""What a reader yields of all parts. A note says what of the file isn't understood, or is read with a caveat."""


def read_learning(
    items: Callable[[], Iterable[tuple[str, T] | Note]],
    learn: Callable[[T], bool],
    events: Callable[[str, T], Iterable[Event]],
    *,
    again: Callable[[], None] = lambda: None,
) -> Iterator[Event]:
    """What items say, if how one is read depends on all of them. Nearly always, the first ones tell; if not, the file
    is read again.

    Args:
        items: Reads the file: each item after its place, and notes.
        learn: Learns from an item. Returns whether earlier ones were read wrongly.
        events: What an item says.
        again: Called before the file is read again.
    """
    reading = iter(items())
    for item in reading:
        if not isinstance(item, tuple):
            yield item
        elif learn(item[1]):
            break
        else:
            yield from events(*item)
    else:
        return
    for item in reading:
        if isinstance(item, tuple):
            learn(item[1])
    again()
    yield Restart()
    for item in items():
        if isinstance(item, tuple):
            yield from events(*item)
        else:
            yield item


def failed(kind: FailureKind, error: object, *, reply: str | None = None) -> Failed:
    """A failure with its kind. error: what the file says of it."""
    text = error if isinstance(error, str) and error.strip() else "the file doesn't say why"
    return Failed((TARGET_FAILED if kind == "TargetFailed" else "") + text, reply=reply, exception=kind)


def metric_name(value: object, otherwise: str = "unnamed") -> str:
    """The name of a metric or a system from any text: a line of visible text of at most 200 characters."""
    return (_line(value) if isinstance(value, str) else "") or otherwise


def too_many_systems() -> DataError:
    """The error for a file with more than MOST_SYSTEMS."""
    return DataError(f"more than {MOST_SYSTEMS:,} systems, of which each becomes a run")


def system_name(*parts: str) -> str:
    """The name of a system from those of its parts, such as a model and a task; "" ones are left out."""
    return " · ".join(filter(None, parts))


@functools.lru_cache(4096)
def _line(text: str) -> str:
    return safe(text, LONGEST_NAME).strip().translate(_BRACKETS)


def numbered(results: Iterable[tuple[Metric, Result]]) -> dict[Metric, Result]:
    """The results of a row by metric. The second of a metric is that of another one, with its number among the
    settings: no score replaces another, also if two names of the tool are the same here."""
    pairs = list(results)
    found = dict(pairs)
    if len(found) == len(pairs):  # as nearly always
        return found
    found.clear()
    times = Counter[Metric]()
    for metric, result in pairs:
        if metric in found:
            times[metric] += 1
            metric = replace(metric, settings=(*metric.settings, ("number", str(times[metric] + 1))))
        found[metric] = result
    return found


def valued(scores: Mapping[Metric, Result]) -> dict[Metric, Result]:
    """The results that have a value: those that a row without an answer has all the same."""
    return {metric: result for metric, result in scores.items() if result.value is not None}


def object_in(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name; empty if there is none."""
    value = values.get(name)
    return value if is_object(value) else {}


def objects_in(values: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in the list under a name; empty if there is none."""
    value = values.get(name)
    return [item for item in value if is_object(item)] if is_array(value) else []


def text_in(values: Mapping[str, Any], name: str) -> str:
    """The text under a name; "" if there is none."""
    value = values.get(name)
    return value if isinstance(value, str) else ""


def number_in(values: Mapping[str, Any], name: str) -> float | None:
    """The finite number under a name; None if there is none."""
    return finite(values.get(name))


def finite(value: object) -> float | None:
    """A finite number; None for anything else."""
    if type(value) is float and math.isfinite(value):  # as nearly all are
        return value
    return Result.of(value).value if is_number(value) else None


def cell_value(cell: object, *, is_text: bool) -> object:
    """A number, or true and false, as the cell of a table has it; None for a missing one. A comma that can't group
    thousands is a decimal one: 0,25 and 12,5 are numbers, 1,000 isn't.

    is_text: Whether every cell is a text, as in CSV. A text that is no number stays one.
    """
    if isinstance(cell, float) and cell != cell:
        return None
    if not is_text or not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text.lower() in ("", *MISSING):
        return None
    return _BOOLEANS.get(text.lower(), numeric(_DECIMAL.sub(r"\1.\2", text)))


def index_in(values: Mapping[str, Any], name: str) -> int | None:
    """The whole number of 0 or more under a name, as of a place in a list; None if there is none."""
    return _count(values.get(name))


def _count(value: object) -> int | None:
    """A whole number of 0 or more; None for anything else. Data frames write 3 as 3.0 if another cell is missing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if is_whole(value) and 0 <= value < 2**53 else None


def usage_of(value: object, **names: str) -> Usage:
    """Tokens from an object of the file. names: its keys by field of Usage (input, output, requests …). What is no
    whole number of 0 or more is left out."""
    if not is_object(value):
        return NO_USAGE
    counts = {name: n for name, key in names.items() if (n := _count(value.get(key))) is not None}
    return Usage(**counts) if counts else NO_USAGE


def dollars(value: object) -> float | None:
    """A cost from a file; None for anything but a number of 0 or more."""
    return float(value) if is_number(value) and 0 <= value < 1e9 else None


def duration(value: object, unit: float = 1.0) -> float:
    """Seconds from a file; 0 for anything but a number of 0 or more. unit: what one of it is in seconds."""
    return float(value) * unit if is_number(value) and 0 <= value < 1e12 else 0.0
