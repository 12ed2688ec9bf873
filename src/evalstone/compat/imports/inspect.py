"""The logs of inspect: `.eval`, whole or as a crashed evaluation left them, and `.json`. A folder has several.

A model is a system, with its solver if one was chosen. A sample is a case, and each epoch of it a trial. Each scorer is
a metric; if its value is an object or a list, each entry is one. As in inspect, the values C, P, I and N are 1, 0.5, 0
and 0. NaN means that there is no score, and its reason says whether the grader or the scorer failed.

Numbers that inspect printed are means over samples, after those over the epochs of each. They are calculated in the
same way here and compared.
"""

from __future__ import annotations

import functools
import math
import re
import statistics
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from evalstone._core.display import shortlist
from evalstone._core.guards import is_array, is_object
from evalstone.compat.imports.archives import Archive, Entry
from evalstone.compat.imports.cases import as_metadata, text_of
from evalstone.compat.imports.documents import JsonDocument, as_object
from evalstone.compat.imports.reading import Head, Reader, Source, place_of
from evalstone.compat.imports.results import (
    About,
    Event,
    Judged,
    Metric,
    Printed,
    Result,
    Row,
    dollars,
    duration,
    failed,
    metric_name,
    number_in,
    numbered,
    object_in,
    objects_in,
    text_in,
    usage_of,
)
from evalstone.datasets.cells import storable
from evalstone.errors import ConfigError, DataError
from evalstone.targets import Answer
from evalstone.types import NO_USAGE, Failed, Sample, Usage, note

TOOL = "inspect"
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What inspect counts for its grades: correct, partially correct, incorrect, no answer."""
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
MOST_VALUES = 100
"""The most values of a list that are metrics of their own."""
HEADER, START, SUMMARIES, REDUCTIONS = "header.json", "_journal/start.json", "summaries.json", "reductions.json"
_SAMPLE = re.compile(r"samples/(?:.*)_epoch_\d+(?:\.json|/sample\.json)", re.DOTALL)
_CHUNK = re.compile(r"(samples/.*_epoch_\d+)/(metadata|(?:messages|attachments)/[0-9]{1,15})\.json", re.DOTALL)
_JOURNAL = re.compile(r"_journal/summaries/\d+\.json")
_LOG = re.compile(r"(?:.*/)?(?:[^/]*\.eval|\d{4}-\d\d-\d\dT[^/]*_[^/]*\.json)")
_WHOLE = 8_000_000
"""The bytes of a member up to which it is read at once, which is faster."""
_UNREAD = frozenset(("events", "events_data", "store", "timelines", "error_retries", "files", "sandbox", "setup"))
_ATTACHMENT = "attachment://"
_IN_SCORER = "await scorer("
"""What the traceback of an error in a scorer has."""
_FAILURES = {"grader_failed": "JudgeFailed", "scoring_failed": "ScorerFailed"}
_MEANS = ("mean", "accuracy")
_SPREADS: Mapping[str, Literal["standard error", "deviation", "variance"]] = {
    "stderr": "standard error",
    "std": "deviation",
    "var": "variance",
}


def recognizes(head: Head) -> bool:
    """Whether this is a log of inspect, or a folder with some."""
    if head.is_folder:
        return any(_LOG.fullmatch(name) for name in head.names)
    if head.start.startswith(b"PK\3\4"):
        first = head.start[30 : 30 + int.from_bytes(head.start[26:28], "little")]
        return first.startswith((b"_journal/", b"samples/", b"header.json", b"summaries.json", b"reductions.json"))
    return head.has("eval", "eval.task", "eval.model", "eval.created")


def read(source: Source) -> Iterator[Event]:
    """Yield what a log has, or those of a folder. Raises DataError for one that can't be read."""
    is_one, folder = source.path.is_file(), _Folder()
    for file in [source.path] if is_one else source.files("*"):
        if not is_one and not _LOG.fullmatch(file.name):
            continue
        place = "" if is_one else place_of(file.name)
        try:
            with file.open("rb") as beginning:
                is_archive = beginning.read(4) == b"PK\3\4"
            if is_archive:
                with source.archive(file) as archive:
                    yield from _archive(folder, archive)
            else:
                yield from _document(folder, source.json(file))
        except DataError as error:
            raise DataError(place, error) from None


@dataclass
class _Folder:
    """What the logs of a folder have in common."""

    task: str = ""
    version: str = ""
    systems: set[str] = field(default_factory=set[str])

    def system(self, spec: Mapping[str, Any]) -> str:
        """The name of a log's system. Raises DataError if the log is of another task, or of another version."""
        task, version = text_in(spec, "task"), text_in(object_in(spec, "packages"), "inspect_ai")
        if self.systems and task != self.task:
            raise DataError(f"the folder has logs of {self.task} and {task}; import each task on its own")
        if self.systems and version != self.version:
            raise DataError(f"the folder has logs of inspect {self.version} and {version}; import each on its own")
        self.task, self.version = task, version
        parts = [metric_name(spec.get("model"), "unnamed model"), metric_name(spec.get("solver"), "")]
        identity = " · ".join(filter(None, parts))
        if identity in self.systems:
            identity = f"{identity} · {text_in(spec, 'created') or len(self.systems)}"
        self.systems.add(identity)
        return identity


class _Tally:
    """The values of a metric by case, as inspect averages them."""

    def __init__(self) -> None:
        self.sums, self.counts, self.unscored = array("d"), array("l"), array("l")
        self.failed = 0
        """How many values are none, and were counted as 0."""

    def add(self, case: int, value: float | None) -> None:
        """Add a trial's value; None for one without a score."""
        missing = case + 1 - len(self.sums)
        for each in (self.sums, self.counts, self.unscored):
            each.extend([0] * missing)
        if value is None:
            self.unscored[case] += 1
        else:
            self.sums[case] += value
            self.counts[case] += 1

    def means(self) -> list[float]:
        """The mean of each case that has a score."""
        return [total / n for total, n in zip(self.sums, self.counts, strict=True) if n]

    @property
    def pooled(self) -> float:
        """The mean of all trials that have a score."""
        return math.fsum(self.sums) / sum(self.counts)


@dataclass
class _Log:
    """What is remembered of a log while it is read."""

    system: str
    header: Mapping[str, Any]
    orders: Mapping[Any, int]
    """The places of samples in the dataset, by ID."""
    keys: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """By scorer whose values are objects or lists, its keys or numbers."""
    tallies: dict[str, _Tally] = field(default_factory=dict[str, _Tally])
    cases: dict[str, int] = field(default_factory=dict[str, int])
    rows: int = 0
    completed: int = 0
    limits: dict[str, int] = field(default_factory=dict[str, int])

    def learn(self, scorer: str, value: object) -> dict[str, Any] | None:
        """The values of a scorer by key, if it gives an object or a list; None for any other value."""
        if is_array(value) and len(value) <= MOST_VALUES:
            value = {str(place): each for place, each in enumerate(value)}
        if not is_object(value):
            return None
        self.keys.setdefault(scorer, {}).update(dict.fromkeys(value))
        return value

    @property
    def scorers(self) -> list[str]:
        """The scorers that every sample should have."""
        named = [text_in(each, "scorer") or text_in(each, "name") for each in _printed_scores(self.header)]
        named += [text_in(each, "name") for each in objects_in(object_in(self.header, "eval"), "scorers")]
        return [*dict.fromkeys(filter(None, (*named, *self.keys)))]


def _archive(folder: _Folder, archive: Archive) -> Iterator[Event]:
    entries = archive.entries
    header = entries.get(HEADER) or entries.get(START)
    if header is None:
        raise DataError(f"it has neither {HEADER} nor {START}")
    log = _log(folder, as_object(_value(archive, header), header.name))
    yield from _about(log)
    if HEADER not in entries:
        yield note("eval_unfinished", "caution", tool=TOOL, status="started", error="")
    if archive.replaced:
        yield note("entries_replaced", tool=TOOL, entries=archive.replaced)
    samples = [name for name in entries if _SAMPLE.fullmatch(name)]
    chunks: dict[str, list[Entry]] = {}
    for name in entries:
        if found := _CHUNK.fullmatch(name):
            chunks.setdefault(found[1], []).append(entries[name])
    if not _printed_scores(log.header):
        for name in (SUMMARIES, *filter(_JOURNAL.fullmatch, entries)):
            if name in entries:
                _learn(log, _value(archive, entries[name]))
    for name in samples:
        sample = _sample_in(archive, entries[name])
        if of := chunks.get(name.removesuffix("/sample.json")):
            _add_chunks(sample, archive, of)
        yield from _row(log, sample, name)
    if not samples and REDUCTIONS in entries:
        yield from _reduced(log, _value(archive, entries[REDUCTIONS]))
    yield from _end(log)


def _document(folder: _Folder, document: JsonDocument) -> Iterator[Event]:
    header: dict[str, Any] = {}
    log: _Log | None = None
    for key in document.members():
        if key == "samples" and document.is_list:
            if "eval" not in header:
                raise DataError("its samples come before eval, which says of which model they are")
            log = _log(folder, header)
            for place, sample in document.objects(key):
                yield from _row(log, sample, place)
        elif key == "reductions" and log is None and "eval" in header:
            log = _log(folder, header)
            yield from _reduced(log, document.value(key))
        elif key in ("version", "status", "eval", "results", "stats", "error"):
            header[key] = document.value(key)
    document.end()
    if log is None:
        raise DataError("it has no samples")
    yield from _about(log)
    yield from _end(log)


def _value(archive: Archive, entry: Entry) -> Any:
    """The value of a member."""
    try:
        document = JsonDocument(archive.text(entry))
        value = document.value(entry.name)
        document.end()
    except DataError as error:
        raise DataError(place_of(entry.name), error) from None
    return value


def _sample_in(archive: Archive, entry: Entry) -> dict[str, Any]:
    """A sample without what isn't read of it. If it is large, that is never in memory."""
    if entry.size <= _WHOLE:
        return as_object(_value(archive, entry), entry.name)
    sample: dict[str, Any] = {}
    document = JsonDocument(archive.text(entry))
    for key in document.members(entry.name):
        if key == "attachments" and document.is_object and "messages" in sample:
            wanted = {*_references(sample)}
            found = sample[key] = dict[str, Any]()
            for name in document.members(key):
                if name in wanted:
                    found[name] = document.value(name)
        elif key not in _UNREAD:
            sample[key] = document.value(f"{entry.name}: {key}")
    return sample


def _add_chunks(sample: dict[str, Any], archive: Archive, chunks: Sequence[Entry]) -> None:
    """Add what a sample in chunks has in other members."""
    messages: dict[int, Any] = {}
    attachments: dict[str, Any] = {}
    for entry in chunks:
        *_, kind, number = entry.name.removesuffix(".json").split("/")
        value = _value(archive, entry)
        if number == "metadata":
            sample["metadata"] = value
        elif is_array(value) and kind == "messages":
            messages[int(number)] = value
        elif is_array(value):
            attachments |= {str(place): each for place, each in enumerate(value, int(number))}
    sample["messages"] = [each for place in sorted(messages) for each in messages[place]]
    sample["attachments"] = attachments


def _references(value: object) -> Iterator[str]:
    """The attachments that a value refers to."""
    if isinstance(value, str):
        if value.startswith(_ATTACHMENT):
            yield value.removeprefix(_ATTACHMENT)
    elif is_object(value):
        for item in value.values():
            yield from _references(item)
    elif is_array(value):
        for item in value:
            yield from _references(item)


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value with its attachments, except for images, audio and other files."""
    if isinstance(value, str):
        if not value.startswith(_ATTACHMENT):
            return value
        found = attachments.get(value.removeprefix(_ATTACHMENT))
        return found if isinstance(found, str) and not found.startswith("data:") else value
    if is_object(value):
        return {key: _resolved(item, attachments) for key, item in value.items()}
    if is_array(value):
        return [_resolved(item, attachments) for item in value]
    return value


# ---- The header ----


def _log(folder: _Folder, header: Mapping[str, Any]) -> _Log:
    spec = object_in(header, "eval")
    ids = object_in(spec, "dataset").get("sample_ids")
    orders = {str(id): place for place, id in enumerate(ids)} if is_array(ids) else {}
    log = _Log(folder.system(spec), header, orders)
    for score in _printed_scores(header):
        scorer, name = text_in(score, "scorer"), text_in(score, "name")
        if scorer and name and name != scorer:
            log.keys.setdefault(scorer, {})[name] = None
    return log


def _about(log: _Log) -> Iterator[Event]:
    spec, stats = object_in(log.header, "eval"), object_in(log.header, "stats")
    yield About(
        version=text_in(object_in(spec, "packages"), "inspect_ai"),
        name=text_in(spec, "task"),
        started=text_in(stats, "started_at") or text_in(spec, "created"),
        seconds=_between(stats.get("started_at"), stats.get("completed_at")),
    )
    if (status := text_in(log.header, "status")) not in ("", "success"):
        error = text_in(object_in(log.header, "error"), "message")
        yield note("eval_unfinished", "caution", tool=TOOL, status=status, error=error)


def _between(start: object, end: object) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _printed_scores(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scorers with the metrics that inspect calculated. Versions before 0.3.18 had one, beside its metrics."""
    results = object_in(header, "results")
    if one := object_in(results, "scorer"):
        return [{"scorer": one.get("name"), "metrics": results.get("metrics"), **one}]
    return objects_in(results, "scores")


def _learn(log: _Log, summaries: object) -> None:
    """Learn from the summaries of samples which scorers give objects."""
    for summary in summaries if is_array(summaries) else ():
        for scorer, score in object_in(summary, "scores").items() if is_object(summary) else ():
            if is_object(score):
                log.learn(scorer, score.get("value"))


def _end(log: _Log) -> Iterator[Event]:
    """What inspect printed, and what was noticed of the rows."""
    if log.limits:
        what = ", ".join(log.limits)
        yield note("samples_limited", tool=TOOL, samples=sum(log.limits.values()), what=what)
    results = object_in(log.header, "results")
    planned, logged = number_in(results, "total_samples"), number_in(results, "logged_samples")
    if planned is not None and log.rows:
        yield Printed(kind="rows", value=planned if logged is None else logged, system=log.system)
        if (completed := number_in(results, "completed_samples")) is not None:
            yield Printed(kind="rows", value=completed, system=log.system, ours=log.completed)
    uncompared: list[str] = []
    is_unreduced = object_in(object_in(log.header, "eval"), "config").get("epochs_reducer") == []
    for score in _printed_scores(log.header):
        yield from _printed(log, score, uncompared, is_unreduced=is_unreduced)
    if uncompared:
        yield note("printed_uncompared", tool=TOOL, what=shortlist(uncompared))


def _printed(log: _Log, score: Mapping[str, Any], uncompared: list[str], *, is_unreduced: bool) -> Iterator[Event]:
    scorer, key = text_in(score, "scorer") or text_in(score, "name"), text_in(score, "name")
    name = (_metric(scorer, key) if key in log.keys.get(scorer, ()) else _metric(scorer)).name
    tally, reducer = log.tallies.get(name), score.get("reducer")
    metrics = {label: each for label, each in object_in(score, "metrics").items() if is_object(each)}
    if tally is None or reducer not in (None, "mean"):
        uncompared += [f"{name}: {label}{f' ({reducer})' if reducer else ''}" for label in metrics]
        return
    means = tally.means()
    if not is_unreduced:
        if (value := number_in(score, "scored_samples")) is not None:
            yield Printed(kind="scores", value=value, metric=name, system=log.system, ours=len(means))
        if (value := number_in(score, "unscored_samples")) is not None:
            yield Printed(kind="failed", value=value, metric=name, system=log.system, ours=_unscored(tally))
    for label, metric in metrics.items():
        value = number_in(metric, "value")
        what = text_in(metric, "name").rpartition("/")[2]
        if value is None or not means or metric.get("group") or object_in(metric, "params").get("cluster"):
            uncompared.append(f"{name}: {label}")
        elif what in _MEANS and (is_unreduced or math.isclose(value, tally.pooled, rel_tol=1e-12, abs_tol=1e-12)):
            yield Printed(kind="mean", value=value, metric=name, system=log.system)
        elif what in _MEANS:
            yield Printed(kind="mean", value=value, metric=name, system=log.system, ours=statistics.fmean(means))
            yield note("printed_by_case", "fact", name, tool=TOOL)
            if tally.failed:
                yield note("printed_with_failed", "caution", name, tool=TOOL, failed=tally.failed, what="mean")
        elif what in _SPREADS and not is_unreduced:
            ours = _spread(what, means)
            yield Printed(kind=_SPREADS[what], value=value, metric=name, system=log.system, ours=ours)
        else:
            uncompared.append(f"{name}: {label}")


def _unscored(tally: _Tally) -> int:
    """The number of cases without a score, although there was a scorer for them."""
    return sum(not n and bool(missing) for n, missing in zip(tally.counts, tally.unscored, strict=True))


def _spread(what: str, values: Sequence[float]) -> float:
    variance = statistics.variance(values) if len(values) > 1 else 0.0
    return variance if what == "var" else math.sqrt(variance / (len(values) if what == "stderr" else 1))


# ---- A sample ----


def _row(log: _Log, sample: dict[str, Any], place: str) -> Iterator[Row]:
    attachments = object_in(sample, "attachments") or object_in(object_in(sample, "transcript"), "content")
    if attachments:
        for name in ("input", "messages", "output", "scores", "score", "target", "choices"):
            if name in sample:
                sample[name] = _resolved(sample[name], attachments)
    id, epoch = sample.get("id"), sample.get("epoch", 1)
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise DataError(f"{place}.id must be a text or a number, not {type(id).__name__}")
    if type(epoch) is not int:
        raise DataError(f"{place}.epoch must be a whole number, not {type(epoch).__name__}")
    case = log.cases.setdefault(str(id), len(log.cases))
    log.rows += 1
    error = object_in(sample, "error")
    problem = _problem(error) if error else None
    log.completed += problem is None
    limit = sample.get("limit")
    if limit:
        what = text_in(limit, "type") if is_object(limit) else str(limit)
        log.limits[what] = log.limits.get(what, 0) + 1
    given = _scores_in(log, sample)
    scores = numbered(_scores(log, sample, given, case))
    is_target = problem is not None and problem.exception == "TargetFailed"
    if problem is not None and (scores or not is_target):
        for scorer in log.scorers:
            if scorer not in given:
                for metric in _metrics(log, scorer):
                    scores[metric] = Result(problem=problem)
    yield Row(
        place=place,
        system=log.system,
        case=_case(sample, str(id)),
        key=str(id),
        trial=epoch,
        order=log.orders.get(str(id), len(log.orders)),
        answer=None if is_target and not given else _answer(sample, limit, place),
        problem=problem if is_target else None,
        scores=scores,
        seconds=duration(sample.get("working_time") or sample.get("total_time")),
    )


def _problem(error: Mapping[str, Any]) -> Failed:
    in_scorer = _IN_SCORER in text_in(error, "traceback")
    return failed("ScorerFailed" if in_scorer else "TargetFailed", error.get("message"))


def _case(sample: Mapping[str, Any], id: str) -> Sample:
    metadata = {as_metadata(name): storable(value) for name, value in object_in(sample, "metadata").items()}
    if choices := sample.get("choices"):
        metadata.setdefault("choices", storable(choices))
    target = sample.get("target")
    if is_array(target) and len(target) <= 1:
        target = target[0] if target else None
    asked, instructions = _asked(sample.get("input"))
    return Sample(id=id, input=asked, reference=text_of(target) or None, instructions=instructions, metadata=metadata)


def _asked(value: object) -> tuple[str | None, str | None]:
    """The input and the instructions: of a conversation, the last message of the user and the system's."""
    if not is_array(value):
        return text_of(value), None
    by_role: dict[str, list[str]] = {}
    for message in value:
        if is_object(message):
            by_role.setdefault(text_in(message, "role"), []).append(_text_in(message.get("content")))
    users, system = by_role.get("user", []), by_role.get("system", [])
    return users[-1] if users else text_of(value), "\n\n".join(system) or None


def _text_in(content: object) -> str:
    """The text of a message."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if is_object(part)] if is_array(content) else []
    return "\n".join(filter(None, (text_in(part, "text") for part in parts)))


def _answer(sample: Mapping[str, Any], limit: object, place: str) -> Answer:
    output = object_in(sample, "output")
    usages = object_in(sample, "model_usage")
    model = text_in(output, "model")
    used = usages.get(model) if model in usages else next(iter(usages.values()), None)
    messages = [_message(each) for each in objects_in(sample, "messages")]
    plain = [each["role"] for each in messages if isinstance(each["content"], str)] == ["user", "assistant"]
    choices = objects_in(output, "choices")
    text = output.get("completion")
    if not isinstance(text, str):
        text = _text_in(object_in(choices[0], "message").get("content")) if choices else ""
    try:
        return Answer(
            output=text,
            messages=() if plain and len(messages) == 2 else messages,
            usage=_tokens(used),
            cost=dollars(used.get("total_cost")) if is_object(used) else None,
            metadata={"limit": storable(limit)} if limit else {},
        )
    except (ConfigError, DataError) as error:
        raise DataError(f"{place}.messages: ", error) from None


def _tokens(value: object) -> Usage:
    """The tokens of a model. inspect doesn't count those from the cache in its input."""
    usage = usage_of(value, input="input_tokens", output="output_tokens", cached="input_tokens_cache_read")
    if usage == NO_USAGE or not is_object(value):
        return usage
    written = usage_of(value, input="input_tokens_cache_write").input
    return Usage(usage.input + usage.cached + written, usage.output, usage.cached, usage.requests)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as OpenAI writes it."""
    said: dict[str, Any] = {"role": message.get("role"), "content": message.get("content") or ""}
    if error := object_in(message, "error"):
        said["content"] = f"Error: {text_in(error, 'message')}"
    calls = objects_in(message, "tool_calls")
    if calls:
        said["tool_calls"] = [
            {"id": call.get("id") or "", "name": call.get("function"), "arguments": call.get("arguments") or {}}
            for call in calls
        ]
    if id := text_in(message, "tool_call_id"):
        said["tool_call_id"] = id
    return said


# ---- Scores ----


def _scores_in(log: _Log, sample: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The scores of a sample by scorer. Versions before 0.3.18 had one score."""
    if one := object_in(sample, "score"):
        return {(log.scorers or ["score"])[0]: one}
    found = object_in(sample, "scores")
    return {name: as_object(score, f"the score {name} of {sample.get('id')}") for name, score in found.items()}


def _scores(
    log: _Log, sample: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], case: int
) -> Iterator[tuple[Metric, Result]]:
    is_alone = sum("grading" in object_in(score, "metadata") for score in given.values()) == 1
    for scorer, score in given.items():
        value = score.get("value")
        if (parts := log.learn(scorer, value)) is not None:
            values = [(_metric(scorer, key), each) for key, each in parts.items()]
        elif _is_nan(value) and log.keys.get(scorer):
            values = [(metric, value) for metric in _metrics(log, scorer)]
        else:
            values = [(_metric(scorer), value)]
        judged = _judged(score, sample if is_alone else {})
        for metric, each in values:
            result = _result(each, score, judged)
            if (tally := log.tallies.get(metric.name)) is None:
                tally = log.tallies[metric.name] = _Tally()
            tally.add(case, result.counted if result.value is None else result.value)
            tally.failed += result.value is None and result.counted is not None
            yield metric, result


def _metrics(log: _Log, scorer: str) -> list[Metric]:
    """The metrics of a scorer, as far as they are known."""
    return [_metric(scorer, key) for key in keys] if (keys := log.keys.get(scorer)) else [_metric(scorer)]


@functools.lru_cache(1000)
def _metric(scorer: str, key: str | None = None) -> Metric:
    """The metric of a scorer, or of one of its values."""
    if key is None:
        return Metric(metric_name(scorer), description=f"inspect: the scorer {metric_name(scorer)}")
    description = f"inspect: a value of the scorer {metric_name(scorer)}"
    return Metric(metric_name(f"{scorer}.{key}"), description=description)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _result(value: object, score: Mapping[str, Any], judged: Judged | None) -> Result:
    reason, said = text_in(score, "explanation"), text_in(score, "reason")
    metadata = object_in(score, "metadata")
    said = said or text_in(metadata, "unscored_reason")
    if _is_nan(value):
        kind: Any = _FAILURES.get(said, "JudgeFailed" if judged is not None else "NoScore")
        text = ": ".join(filter(None, (said.replace("_", " "), reason)))
        reply = next((_text_in(each.get("content")) for each in _grading(score)), None)
        return Result(problem=failed(kind, text, reply=reply), judged=judged)
    number = _number(value)
    others = {name: each for name, each in metadata.items() if name != "grading"}
    evidence = {
        "value": None if number == value and not isinstance(value, bool) else value,
        "answer": score.get("answer"),
        "reason": said or None,
        "metadata": others or None,
    }
    kept = {name: each for name, each in evidence.items() if each is not None}
    if number is not None:
        return Result.of(number, reason, evidence=kept or (), judged=judged)
    result = Result.of(value, reason, evidence=kept or (), judged=judged)
    return Result(problem=result.problem, judged=judged, counted=0.0)


def _number(value: object) -> float | None:
    """A value as inspect counts it; None if it counts 0 because it is none."""
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else None
    if not isinstance(value, str):
        return None
    if value in GRADES:
        return GRADES[value]
    try:
        number = float(value)
    except ValueError:
        return _WORDS.get(value.lower())
    return number if math.isfinite(number) else None


def _judged(score: Mapping[str, Any], sample: Mapping[str, Any]) -> Judged | None:
    """The verdict of a grader, which left what it was asked and what it replied. sample: what it used is taken from
    there; empty if that is of several graders."""
    metadata = object_in(score, "metadata")
    if "grading" not in metadata:
        return None
    value, judge = (
        score.get("value"),
        next((model for each in _grading(score) if (model := text_in(each, "model"))), ""),
    )
    usage = object_in(object_in(sample, "role_usage"), "grader")
    if not usage and judge != text_in(object_in(sample, "output"), "model"):
        usage = object_in(object_in(sample, "model_usage"), judge)
    return Judged(
        judge=judge,
        answer=None if _is_nan(value) else {"value": storable(value), "explanation": text_in(score, "explanation")},
        usage=_tokens(usage),
        cost=dollars(usage.get("total_cost")),
    )


def _grading(score: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages to and from a grader, the last one first."""
    return objects_in(object_in(score, "metadata"), "grading")[::-1]


def _reduced(log: _Log, reductions: object) -> Iterator[Event]:
    """The scores of samples that weren't logged themselves: each is that of all epochs of a sample."""
    samples: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for place, reduction in enumerate(reductions if is_array(reductions) else ()):
        scorer = text_in(as_object(reduction, f"reductions[{place}]"), "scorer")
        if scorer in seen:
            continue
        seen.add(scorer)
        for score in objects_in(reduction, "samples"):
            id = str(score.get("sample_id"))
            samples.setdefault(id, {"id": id, "epoch": 1, "scores": {}})["scores"][scorer] = score
    if samples:
        yield note("samples_unlogged", "caution", tool=TOOL)
    for id, sample in samples.items():
        for row in _row(log, sample, f"{REDUCTIONS}: {id}"):
            yield Row(
                place=row.place, system=row.system, case=row.case, key=row.key, order=row.order, scores=row.scores
            )
    log.rows = 0  # the numbers of samples that inspect printed are of those that aren't in the file


READER = Reader(
    tool=TOOL,
    version=1,
    expects="logs of inspect, a .eval file, which is a zip archive known by header.json or _journal/start.json in "
    "it, a .json file known by eval with task, model and created, or a folder of them",
    recognizes=recognizes,
    read=read,
)
