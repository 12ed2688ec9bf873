"""The samples of a log of inspect: each is a case, and each epoch of it a trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.compat.imports.cases import metadata_of, text_of
from evalstone.compat.imports.documents import as_object
from evalstone.compat.imports.inspect_log import Log
from evalstone.compat.imports.inspect_scores import (
    TOOL,
    content_text,
    is_nan,
    judged_of,
    metric_of,
    results_of,
    tokens_of,
)
from evalstone.compat.imports.results import (
    Event,
    Metric,
    OfSystem,
    Result,
    Row,
    dollars,
    duration,
    failed,
    numbered,
    object_in,
    objects_in,
    text_in,
)
from evalstone.datasets.cells import storable
from evalstone.errors import ConfigError, DataError
from evalstone.targets import Answer
from evalstone.types import Failed, Sample, note

_ATTACHMENT = "attachment://"
_IN_SCORER = "await scorer("
"""What the traceback of an error in a scorer has."""


def row_of(log: Log, sample: dict[str, Any], place: str) -> Row:
    """The row of a sample. Raises DataError, with the place, for what isn't as inspect writes it."""
    sample = _with_attachments(sample)
    id, epoch = _identity(sample, place)
    error = object_in(sample, "error")
    problem = _problem(error) if error else None
    log.count(completed=problem is None, limit=sample.get("limit"))
    given = _scores_in(log, sample)
    scores = numbered(_scores(log, sample, given, log.cases.setdefault(id, len(log.cases))))
    is_target = problem is not None and problem.exception == "TargetFailed"
    if problem is not None and not is_target:
        absent = (metric for scorer in log.scorers if scorer not in given for metric in log.metrics(scorer))
        scores |= {metric: Result(problem=problem) for metric in absent}
    return Row(
        place=place,
        system=log.system,
        case=_case(sample, id),
        key=id,
        trial=epoch,
        order=log.orders.get(id, len(log.orders)),
        answer=None if is_target and not given else _answer(sample, place),
        problem=problem if is_target else None,
        scores=scores,
        seconds=duration(sample.get("working_time") or sample.get("total_time")),
    )


def _identity(sample: Mapping[str, Any], place: str) -> tuple[str, int]:
    """The ID of a sample, and its epoch. Raises DataError without these."""
    id, epoch = sample.get("id"), sample.get("epoch", 1)
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise DataError(f"{place}.id must be a text or a number, not {type(id).__name__}")
    if type(epoch) is not int:
        raise DataError(f"{place}.epoch must be a whole number, not {type(epoch).__name__}")
    return str(id), epoch


def _with_attachments(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample with its attachments where it refers to them, as far as it is read."""
    attachments = object_in(sample, "attachments") or object_in(object_in(sample, "transcript"), "content")
    if not attachments:
        return sample
    names = ("input", "messages", "output", "scores", "score", "target", "choices")
    return sample | {name: _resolved(sample[name], attachments) for name in names if name in sample}


def references(value: object) -> Iterator[str]:
    """The attachments that a value refers to."""
    if isinstance(value, str):
        if value.startswith(_ATTACHMENT):
            yield value.removeprefix(_ATTACHMENT)
    elif is_object(value):
        for item in value.values():
            yield from references(item)
    elif is_array(value):
        for item in value:
            yield from references(item)


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


def _problem(error: Mapping[str, Any]) -> Failed:
    in_scorer = _IN_SCORER in text_in(error, "traceback")
    return failed("ScorerFailed" if in_scorer else "TargetFailed", error.get("message"))


def _case(sample: Mapping[str, Any], id: str) -> Sample:
    metadata = metadata_of(object_in(sample, "metadata"))
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
            by_role.setdefault(text_in(message, "role"), []).append(content_text(message.get("content")))
    users, system = by_role.get("user", []), by_role.get("system", [])
    return users[-1] if users else text_of(value), "\n\n".join(system) or None


def _answer(sample: Mapping[str, Any], place: str) -> Answer:
    output = object_in(sample, "output")
    usages = object_in(sample, "model_usage")
    model = text_in(output, "model")
    used = usages.get(model) if model in usages else next(iter(usages.values()), None)
    messages = [_message(each) for each in objects_in(sample, "messages")]
    plain = [each["role"] for each in messages if isinstance(each["content"], str)] == ["user", "assistant"]
    choices = objects_in(output, "choices")
    text = output.get("completion")
    if not isinstance(text, str):
        text = content_text(object_in(choices[0], "message").get("content")) if choices else ""
    try:
        return Answer(
            output=text,
            messages=() if plain and len(messages) == 2 else messages,
            usage=tokens_of(used),
            cost=dollars(used.get("total_cost")) if is_object(used) else None,
            metadata={"limit": storable(limit)} if (limit := sample.get("limit")) else {},
        )
    except (ConfigError, DataError) as error:
        raise DataError(f"{place}.messages: ", error) from None


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


def _scores_in(log: Log, sample: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The scores of a sample by scorer. Versions before 0.3.18 had one score."""
    if one := object_in(sample, "score"):
        return {(log.scorers or ["score"])[0]: one}
    found = object_in(sample, "scores")
    return {name: as_object(score, f"the score {name} of {sample.get('id')}") for name, score in found.items()}


def _scores(
    log: Log, sample: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], case: int
) -> Iterator[tuple[Metric, Result]]:
    is_alone = sum("grading" in object_in(score, "metadata") for score in given.values()) == 1
    for scorer, score in given.items():
        value = score.get("value")
        if (parts := log.learn(scorer, value)) is not None:
            values = [(metric_of(scorer, key), each) for key, each in parts.items()]
        elif is_nan(value) and log.keys.get(scorer):
            values = [(metric, value) for metric in log.metrics(scorer)]
        else:
            values = [(metric_of(scorer), value)]
        judged = judged_of(score, sample if is_alone else {})
        results = results_of((each for _, each in values), score, judged)
        for (metric, _), result in zip(values, results, strict=True):
            tally = log.tally(metric)
            tally.add(case, result.counted if result.value is None else result.value)
            tally.failed += result.value is None and result.counted is not None
            yield metric, result


def reduced_rows(log: Log, reductions: object) -> Iterator[Event]:
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
        yield OfSystem(log.system, note("samples_unlogged", "caution", tool=TOOL))
    for id, sample in samples.items():
        row = row_of(log, sample, f"reductions.json: {id}")
        yield Row(place=row.place, system=row.system, case=row.case, key=row.key, order=row.order, scores=row.scores)
    log.rows = 0  # the numbers of samples that inspect printed are of those that aren't in the file
