"""The results of lm-eval: `samples_TASK_TIME.jsonl` of `--log_samples`, with the `results_TIME.json` beside them. A
folder has those of several evaluations.

A model and a task are a system, so that each task is a run of its own dataset: two models are compared task by task.
A document is a case. The file has a line for each document and filter; each metric of each filter is a metric. Metrics
that are only calculated over all documents, such as BLEU and perplexity, have no scores.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalstone._core.display import count, excerpt, named, shortlist
from evalstone._core.guards import is_array, is_number, is_object, is_whole
from evalstone._core.sizes import MOST_SCALE
from evalstone._core.times import utc_time
from evalstone.compat.imports.cases import case_fields, text_of
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    About,
    Event,
    Metric,
    NextPart,
    OfSystem,
    Printed,
    Result,
    Row,
    duration,
    index_in,
    metric_name,
    metric_with,
    number_in,
    numbered,
    object_in,
    objects_in,
    system_name,
    text_in,
)
from evalstone.datasets.cells import number_in as number_of
from evalstone.datasets.cells import storable
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import Sample, note

TOOL = "lm-eval"
NO_FILTER = "none"
"""The name of the filter of a task without filters."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d.:+-]+\d")
_SAMPLES = re.compile(rf"samples_(.+)_({_TIME.pattern})\.jsonl")
_RESULTS = re.compile(rf"results_({_TIME.pattern})\.json")
_ABOUT_LINE = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"),
        *("prompt_hash", "target_hash"),
    )
)
_MEANS = (None, "mean", "nanmean")


def recognizes(head: Head) -> bool:
    """Whether these are results or samples of lm-eval, or a folder with some."""
    if head.is_folder:
        names = [name.rpartition("/")[2] for name in head.names]
        return any(_SAMPLES.fullmatch(name) or _RESULTS.fullmatch(name) for name in names)
    if head.is_lines:
        return head.has("doc_id", "doc", "target", "resps", "filtered_resps")
    return head.has("results", "configs", "versions") or head.has("results", "group_subtasks", "configs")


def read(source: Source) -> Iterator[Event]:
    """Yield what evaluations have, by version. Raises DataError if their samples are missing or can't be read."""
    evaluations = [*_evaluations(source)]
    means_only = [named(results.name) for results, samples in evaluations if results and not samples]
    if not any(samples for _, samples in evaluations):
        what = f"{means_only[0]} has means only" if means_only else "there are no samples"
        raise DataError(f"{what}; evaluate with --log_samples, and keep samples_*.jsonl beside the results")
    versions: dict[str, list[tuple[Path | None, list[tuple[str, Path]]]]] = {}
    for results, samples in evaluations:
        if samples:
            versions.setdefault(_version(source, results), []).append((results, samples))
    for version, of_version in versions.items():
        if len(versions) > 1:
            yield NextPart(f"{TOOL} {metric_name(version, 'without a version')}")
        if means_only:
            yield note("results_of_means", "caution", tool=TOOL, files=len(means_only), what=shortlist(means_only))
        systems = set[str]()
        for results, samples in of_version:
            evaluation = _Evaluation(systems, _header(source, results) if results else {})
            yield from _evaluated(evaluation, source, samples)


def _version(source: Source, results: Path | None) -> str:
    return "" if results is None else text_in(_header(source, results), "lm_eval_version")


def _evaluated(evaluation: _Evaluation, source: Source, samples: Sequence[tuple[str, Path]]) -> Iterator[Event]:
    """What an evaluation has of each task."""
    header = evaluation.header
    seconds = duration(number_of(header.get("total_evaluation_time_seconds")))  # lm-eval writes it as a text
    evaluation.about = About(started=_started(header), seconds=seconds)
    yield About(version=text_in(header, "lm_eval_version"))
    for task, file in samples:
        try:
            yield from _task(evaluation, source, task, file)
        except DataError as error:
            raise DataError("" if file == source.path else f"{file.name}: ", error) from None
    yield from _end(evaluation)


def _evaluations(source: Source) -> Iterator[tuple[Path | None, list[tuple[str, Path]]]]:
    """The results and the samples by task of each evaluation: those in one folder with the same time in their names."""
    path = source.path
    if path.is_file() and path.suffix == ".jsonl":
        found = _SAMPLES.fullmatch(path.name)
        results = path.with_name(f"results_{found[2]}.json") if found else path
        task = found[1] if found else metric_name(path.stem)
        yield results if found and results.is_file() else None, [(task, path)]
        return
    if path.is_file():
        time = _TIME.search(path.name)
        yield path, _samples_beside(path, time[0] if time else "")
        return
    used: set[Path] = set()
    for results in source.files("*.json"):
        if (time := _TIME.search(results.name)) and (_RESULTS.fullmatch(results.name)):
            samples = _samples_beside(results, time[0])
            used.update(file for _, file in samples)
            yield results, samples
    rest = [(found[1], file) for file in source.files("*.jsonl") if (found := _SAMPLES.fullmatch(file.name))]
    if rest := [each for each in rest if each[1] not in used]:
        yield None, rest


def _samples_beside(results: Path, time: str) -> list[tuple[str, Path]]:
    """The samples of an evaluation, by task."""
    found = ((_SAMPLES.fullmatch(file.name), file) for file in sorted(results.parent.glob("samples_*.jsonl")))
    return [(match[1], file) for match, file in found if match is not None and match[2] == time]


def _header(source: Source, results: Path) -> dict[str, Any]:
    """The results without what isn't read of them."""
    document = source.json(results)
    unread = ("pretty_env_info", "groups", "samples")
    try:
        header = {key: document.value(key) for key in document.members() if key not in unread}
        document.end()
    except DataError as error:
        raise DataError("" if results == source.path else f"{results.name}: ", error) from None
    return header


@dataclass
class _Evaluation:
    """What is remembered of an evaluation while it is read."""

    taken: set[str]
    """The systems of all evaluations of the version."""
    header: Mapping[str, Any]
    systems: dict[str, str] = field(default_factory=dict[str, str])
    """The systems by task."""
    values: dict[tuple[str, str], array[float]] = field(default_factory=dict[tuple[str, str], "array[float]"])
    """The scores by task and metric."""
    about: About = field(default_factory=About)
    """When it was made, and how long it took."""
    corpus: dict[str, None] = field(default_factory=dict[str, None])
    """The metrics that have no score of a document."""

    @property
    def model(self) -> str:
        """The name of the model. lm-eval makes a random one for a model without arguments."""
        config = object_in(self.header, "config")
        name = text_in(self.header, "model_name") if config.get("model_args") else ""
        return metric_name(name or config.get("model") or self.header.get("model_name"), "unnamed model")

    def system(self, task: str) -> str:
        """The system of a task; "" if it isn't known what answered."""
        if not self.header:
            return ""
        identity = system_name(self.model, metric_name(task))
        if identity in self.taken:
            identity = system_name(identity, _started(self.header) or str(len(self.taken)))
        self.taken.add(identity)
        self.systems[task] = identity
        return identity


def _started(header: Mapping[str, Any]) -> str:
    when = number_in(header, "date")
    return "" if when is None or not 0 < when < 1e11 else utc_time(when).isoformat()


# ---- Samples ----


def _task(evaluation: _Evaluation, source: Source, task: str, file: Path) -> Iterator[Event]:
    system = evaluation.system(task)
    yield OfSystem(system, evaluation.about)
    others: dict[int | str, dict[Metric, Result]] = {}
    first, filters = "", _filters(evaluation, task)
    if len(filters) != 1:
        for place, line in _lines(source, file, filters):
            name = _filter(line)
            first = first or name
            if name != first:
                of = others.setdefault(_id(line, place), {})
                for metric, result in numbered(_scores(evaluation, task, line, place)).items():
                    if metric in of:
                        raise DataError(
                            f"{place}: {metric.name} of document {excerpt(_id(line, place))} is there twice"
                        )
                    of[metric] = result
    for place, line in _lines(source, file, filters):
        if first and _filter(line) != first:
            continue
        id = _id(line, place)
        scores = {**numbered(_scores(evaluation, task, line, place)), **others.pop(id, {})}
        if not scores:
            continue  # all its metrics are in the note on metrics without scores
        for metric, result in scores.items():
            if result.value is not None and abs(result.value) <= MOST_SCALE:
                evaluation.values.setdefault((task, metric.name), array("d")).append(result.value)
        answer = _answer(line)
        case = _case(line, str(id))
        yield Row(
            place=f"{task}, {place}",
            system=system,
            dataset=metric_name(task),
            case=case if system else replace(case, output=answer.output),
            key=str(id),
            trial=1,
            order=index_in(line, "doc_id") or 0,
            answer=answer if system else None,
            scores=scores,
        )
    if others:
        some = shortlist(str(id) for id in others)
        raise DataError(f"documents have no line of the filter {first}, but of others: {some}")


def _lines(source: Source, file: Path, filters: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines with the names of their filters. Versions before 0.4.5 don't name them, and have the lines of one
    filter after those of another, in the order of the results."""
    times = Counter[int | str]()
    for place, line in source.lines(file):
        if "filter" not in line:
            id = _id(line, place)
            if filters and times[id] >= len(filters):
                number = f"{times[id] + 1} lines, and {named(file.name)} has {count(len(filters), 'filter')}"
                raise DataError(f"{place}: document {excerpt(id)} has {number}")
            if not filters and times[id]:
                raise DataError(
                    f"{place}: document {excerpt(id)} is there again: of another filter, which only results_*.json "
                    f"names"
                )
            line["filter"] = filters[times[id]] if filters else NO_FILTER
            times[id] += 1
        yield place, line


def _id(line: Mapping[str, Any], place: str) -> int | str:
    """The ID of a line's document. Raises DataError without one."""
    id = line.get("doc_id")
    if not (is_whole(id) or isinstance(id, str)):
        raise DataError(f"{place}: doc_id must be a number or a text, not {type(id).__name__}")
    return id


def _filter(line: Mapping[str, Any]) -> str:
    """The filter of a line."""
    return text_in(line, "filter") or NO_FILTER


def _filters(evaluation: _Evaluation, task: str) -> list[str]:
    """The filters that the results have of a task, in their order."""
    printed = object_in(object_in(evaluation.header, "results"), task)
    return [*dict.fromkeys(key.rpartition(",")[2] for key in printed if "," in key)]


def _case(line: Mapping[str, Any], id: str) -> Sample:
    doc = line.get("doc")
    fields = case_fields(doc if is_object(doc) else {"doc": doc})
    target, choices = line.get("target"), _choices(line)
    if len(choices) > 1 and (place := _whole(target)) is not None and place < len(choices):
        target = choices[place]
    if (reference := text_of(target)) is not None:
        fields["reference"] = reference
    fields["id"] = id
    return Sample(**fields)


def _answer(line: Mapping[str, Any]) -> Answer:
    """What the model said: of choices that it gave likelihoods for, the likeliest."""
    arguments, replies = _arguments(line), _replies(line.get("resps"))
    prompt = next((each[0] for each in arguments if each), None)
    metadata: dict[str, Any] = {"prompt": prompt} if isinstance(prompt, str) else {}
    likelihoods = [_likelihood(each[0]) if each else None for each in replies]
    choices = _choices(line)
    if likelihoods and len(choices) == len(likelihoods) and None not in likelihoods:
        known = [value for value, _ in filter(None, likelihoods)]
        metadata["log_likelihoods"] = [storable(value) for value in known]
        best = max(range(len(known)), key=known.__getitem__)
        is_said = len(known) > 1 or any(greedy for _, greedy in filter(None, likelihoods))
        return Answer(output=choices[best] if is_said else "", metadata=metadata)
    texts = [text_of(reply) or "" for of in replies for reply in of]
    if len(texts) > 1:
        metadata["responses"] = texts
    return Answer(output=texts[0] if texts else "", metadata=metadata)


def _arguments(line: Mapping[str, Any]) -> list[list[Any]]:
    """What each request to the model was: a prompt, and a continuation or settings."""
    found = line.get("arguments")
    if is_object(found):
        found = [[*each.values()] if is_object(each) else each for each in found.values()]
    return [each for each in found if is_array(each)] if is_array(found) else []


def _choices(line: Mapping[str, Any]) -> list[str]:
    """The continuations that the model gave likelihoods for."""
    return [each[1].strip() for each in _arguments(line) if len(each) > 1 and isinstance(each[1], str)]


def _replies(value: object) -> list[list[Any]]:
    """The replies to each request."""
    return [each if is_array(each) else [each] for each in value] if is_array(value) else []


def _likelihood(reply: object) -> tuple[float, bool] | None:
    """A log likelihood, and whether the continuation is what the model would have said."""
    if not is_array(reply) or len(reply) != 2:
        return None
    try:
        return float(reply[0]), str(reply[1]) == "True"
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _scores(evaluation: _Evaluation, task: str, line: Mapping[str, Any], place: str) -> Iterator[tuple[Metric, Result]]:
    listed = line.get("metrics")
    names: Sequence[Any] = listed if is_array(listed) else [name for name in line if name not in _ABOUT_LINE]
    filtered = line.get("filtered_resps")
    evidence = {} if listed is None or _filter(line) == NO_FILTER else {"filtered": storable(filtered)}
    for name in names:
        if not isinstance(name, str) or name not in line:
            raise DataError(f"{place}: metrics has {excerpt(name)}, which the line hasn't")
        value = line[name]
        if is_array(value) or is_object(value):
            evaluation.corpus[f"{task}: {name}"] = None
        else:
            yield _metric(evaluation, task, name, _filter(line)), Result.of(value, evidence=evidence or ())


def _metric(evaluation: _Evaluation, task: str, name: str, filter: str) -> Metric:
    header = evaluation.header
    version = text_of(object_in(header, "versions").get(task))
    is_higher = object_in(object_in(header, "higher_is_better"), task).get(name)
    return metric_with(
        metric_name(name if filter == NO_FILTER else f"{name}.{filter}"),
        settings=(("task", metric_name(task)), *((("version", metric_name(version)),) if version else ())),
        lower_is_better=is_higher is False,
        description=f"lm-eval: {metric_name(name)} of {metric_name(task)}"
        + ("" if filter == NO_FILTER else f", filter {metric_name(filter)}"),
    )


# ---- What lm-eval printed ----


def _end(evaluation: _Evaluation) -> Iterator[Event]:
    header = evaluation.header
    uncompared: list[str] = []
    for task, system in evaluation.systems.items():
        number = number_in(object_in(object_in(header, "n-samples"), task), "effective")
        has_rows = any(of == task for of, _ in evaluation.values)
        if number is not None and has_rows:
            yield Printed(kind="rows", value=number, system=system)
        for key, value in object_in(object_in(header, "results"), task).items():
            if "," in key and is_number(value):
                yield from _printed(evaluation, task, system, key, float(value), uncompared)
    groups = [name for name in object_in(header, "group_subtasks") if name not in evaluation.systems]
    uncompared += [f"{name} (group)" for name in groups if name in object_in(header, "results")]
    if evaluation.corpus:
        yield note("metric_of_all", "caution", tool=TOOL, what=shortlist(evaluation.corpus))
    if uncompared:
        yield note("printed_uncompared", tool=TOOL, what=shortlist(uncompared))


def _printed(
    evaluation: _Evaluation, task: str, system: str, key: str, value: float, uncompared: list[str]
) -> Iterator[Printed]:
    label, _, filter = key.rpartition(",")
    name = label.removesuffix("_stderr")
    metric = _metric(evaluation, task, name, filter).name
    values = evaluation.values.get((task, metric))
    listed = objects_in(object_in(object_in(evaluation.header, "configs"), task), "metric_list")
    aggregation = next((each.get("aggregation") for each in listed if each.get("metric") == name), None)
    if f"{task}: {name}" in evaluation.corpus:
        return  # that is another note
    if not values or aggregation not in _MEANS:
        uncompared.append(f"{task}: {key}")
    elif name == label:
        yield Printed(kind="mean", value=value, metric=metric, system=system)
    elif len(values) > 1:
        mean = math.fsum(values) / len(values)
        variance = math.fsum((each - mean) ** 2 for each in values) / (len(values) - 1)
        ours = math.sqrt(variance / len(values))
        yield Printed(kind="standard error", value=value, metric=metric, system=system, ours=ours)


READER = Reader(
    tool=TOOL,
    version=1,
    forms=(
        Form("results_*.json", ("results", "configs", "versions")),
        Form("samples_*.jsonl", ("doc_id", "doc", "filtered_resps")),
        Form("folder", ("results_*.json", "samples_*.jsonl"), is_folder=True),
    ),
    recognizes=recognizes,
    read=read,
)
