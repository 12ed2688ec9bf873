"""The output items of OpenAI's evals API, as JSON, JSON Lines or pages of the API, or as its dashboard exports them.

The model of a run is the system, and a row of the data source is a case. A grader that failed has an error in its own
sample and a score all the same, which isn't read. The items have no numbers of the run to compare with. The dashboard
leaves out the types of graders: one that has a sample asked a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone._core.times import utc_time
from evalstone.agents.formats.messages import read_messages
from evalstone.compat.imports.cases import case_fields, text_of
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    About,
    Event,
    Judged,
    Metric,
    Result,
    Row,
    failed,
    index_in,
    metric_name,
    metric_with,
    number_in,
    numbered,
    object_in,
    objects_in,
    read_learning,
    system_name,
    text_in,
    usage_of,
    valued,
)
from evalstone.datasets.cells import storable
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import Failed, Note, Sample, Usage, note

TOOL = "openai-evals"
ITEM = "eval.run.output_item"
PASSED = Metric("test_passed", scale=1.0, description="OpenAI Evals: whether the item passed")
JUDGED = frozenset(("azure_ai_evaluator", "label_model", "score_model"))
"""The types of grader that ask a language model."""
BOUNDED = frozenset(("label_model", "string_check", "text_similarity"))
"""The types whose score is between 0 and 1."""
KNOWN = JUDGED | BOUNDED | frozenset(("endpoint", "multi", "python"))
_PASSED: Mapping[str, bool] = {"pass": True, "passed": True, "fail": False, "failed": False}
_UNIQUE = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""What the API adds to the name of a grader."""
_LATEST = 2**33
_EXPORTED = ("data_source_idx", "item", "grades")
"""Keys of an item that the dashboard has exported."""
_TEXT = "sample.output_text"
"""The answer in a row of the data source that had it already."""


@dataclass
class _Known:
    """What was learned of the items so far."""

    models: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The models of each run."""
    types: set[str] = field(default_factory=set[str])
    """The unknown types of grader that were named."""
    systems: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The systems of the items, by what these name: the run and the model."""

    def learn(self, item: Mapping[str, Any]) -> bool:
        """Learn of which model the run of an item is. Returns whether earlier items are of other systems, after all."""
        run, model = text_in(item, "run_id"), _model(item)
        if (models := self.models.get(run)) is not None and (not model or model in models):
            return False
        self.models.setdefault(run, set()).update(filter(None, (model,)))
        return any(self._system(*names) != system for names, system in self.systems.items())

    def system(self, item: Mapping[str, Any]) -> str:
        """The model, and the run if a model has several. An item that failed may not name the model of its run."""
        names = text_in(item, "run_id"), _model(item)
        if (system := self.systems.get(names)) is None:
            system = self.systems[names] = self._system(*names)
        return system

    def _system(self, run: str, model: str) -> str:
        models = self.models[run]
        model = model or (next(iter(models)) if len(models) == 1 else "")
        of_model = [each for each in self.models.values() if (model in each if model else not each)]
        return metric_name(system_name(model, run if len(of_model) > 1 else ""), "")


def recognizes(head: Head) -> bool:
    """Whether a file has output items, or is of a run, which has none."""
    if head.is_folder:
        return False
    of_page = head.has("data") and ITEM.encode() in head.start
    of_items = head.has("datasource_item", "results") or head.has(*_EXPORTED)
    return of_page or of_items or head.has("per_testing_criteria_results")


def read(source: Source) -> Iterator[Event]:
    """What a file of output items holds. Whether a model has several runs depends on all of them."""
    known = _Known()

    def again() -> None:
        known.types.clear()
        known.systems.clear()

    def events(place: str, item: dict[str, Any]) -> Iterator[Event]:
        return _row(place, item, known)

    return read_learning(lambda: _items(source), known.learn, events, again=again)


def _items(source: Source) -> Iterator[tuple[str, dict[str, Any]] | Note]:
    """The output items, as the API has them, with their places; and what a page says of them."""
    return (item if isinstance(item, Note) else (item[0], _as_item(item[1])) for item in _written(source))


def _written(source: Source) -> Iterator[tuple[str, dict[str, Any]] | Note]:
    if source.head.is_lines:
        yield from source.lines()
        return
    document = source.json()
    if document.is_list:
        yield from document.objects("items")
    elif source.head.has("datasource_item") or source.head.has(*_EXPORTED):
        yield "the item", document.object("the item")
    else:
        for key in document.members():
            if key == "data" and document.is_list:
                yield from document.objects("data")
            elif key == "has_more" and document.value(key) is True:
                yield note("more_rows", "warning", tool=TOOL)
            elif key == "per_testing_criteria_results":
                raise DataError(
                    "it is a run with its counts, and has no results of single items: save those of "
                    "client.evals.runs.output_items.list(run_id, eval_id=…), one JSON object a line"
                )
    document.end()


def _as_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item as the API has it."""
    if "grades" not in item:
        return item
    scores, passed, samples = (object_in(item, name) for name in ("grades", "passes", "grader_samples"))
    graders = [
        {
            "name": name,
            "score": scores.get(name, passed.get(name)),
            "passed": passed.get(name),
            "sample": _as_sample(samples.get(name)),
        }
        for name in {**scores, **passed}
    ]
    return {
        "run_id": item.get("run_id"),
        "datasource_item": item.get("item"),
        "datasource_item_id": item.get("data_source_idx"),
        "results": graders,
        "sample": _as_sample(item.get("sample")),
    }


def _as_sample(sample: object) -> dict[str, Any] | None:
    """A sample as the API has it; None if there is none."""
    if not is_object(sample):
        return None
    said = sample.get("outputs")
    texts = [{"content": each} if isinstance(each, str) else each for each in (said if is_array(said) else ())]
    return {**sample, "output": texts, "usage": sample.get("token_usage")}


def _model(item: Mapping[str, Any]) -> str:
    return text_in(object_in(item, "sample"), "model")


def _row(place: str, item: dict[str, Any], known: _Known) -> Iterator[Event]:
    sample, values = object_in(item, "sample"), object_in(item, "datasource_item")
    if values.keys() == {"item"} and is_object(values["item"]):
        values = values["item"]
    fields = case_fields({name: value for name, value in values.items() if not name.startswith("sample.")})
    created = number_in(item, "created_at")
    if created is not None and 0 <= created < _LATEST:
        yield About(started=utc_time(created).isoformat(), name=text_in(item, "eval_id"))
    for grader in objects_in(item, "results"):
        if (kind := _type(grader)) and kind not in KNOWN and kind not in known.types:
            known.types.add(kind)
            yield note("metric_unknown", "caution", tool=TOOL, metric=kind, place=place)
    system, answer = known.system(item), _answer(sample, values, place)
    problem = None if answer is not None else failed("TargetFailed", _error(sample) or "the item has no answer")
    if not system and answer is not None:
        fields |= {"output": answer.output, "messages": answer.messages}
    number, scores = index_in(item, "datasource_item_id"), _scores(item)
    yield Row(
        place=place,
        system=system,
        case=Sample(**fields),
        answer=answer if system else None,
        problem=problem,
        key="" if not system or number is None else str(number),
        order=number or 0,
        scores=scores if problem is None else _despite(scores),
    )


def _despite(scores: Mapping[Metric, Result]) -> dict[Metric, Result]:
    """What graders say of an item without an answer. If no grader says anything, its status only says that."""
    found = valued(scores)
    return {} if found.keys() == {PASSED} else found


def _answer(sample: Mapping[str, Any], values: Mapping[str, Any], place: str) -> Answer | None:
    """What the model answered; None if there is no answer."""
    said = [each for each in objects_in(sample, "output") if each.get("content") is not None]
    output = text_of(said[-1]["content"]) if said else text_of(values.get(_TEXT))
    if output is None:
        return None
    asked = [each for each in objects_in(sample, "input") if each.get("content") is not None]
    try:
        spoken = read_messages([*asked, *({"role": "assistant", **_without_none(each)} for each in said)])
    except DataError as error:
        raise DataError(f"{place}.sample ", error) from None
    return Answer(output=output, messages=spoken if asked else (), usage=_tokens(sample.get("usage")))


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _tokens(value: object) -> Usage:
    return usage_of(value, input="prompt_tokens", output="completion_tokens", cached="cached_tokens")


def _error(sample: Mapping[str, Any]) -> str:
    """The error of a sample, which may be an object with nothing in it."""
    error = sample.get("error")
    if is_object(error):
        return text_in(error, "message") or text_in(error, "code")
    return error if isinstance(error, str) else ""


# ---- Scores ----


def _type(grader: Mapping[str, Any]) -> str:
    """The type of a grader: `string-check-grader` is `string_check`."""
    return text_in(grader, "type").lower().replace("-", "_").removesuffix("_grader")


def _asks_model(grader: Mapping[str, Any]) -> bool:
    """Whether a grader is a judge."""
    return _type(grader) in JUDGED if _type(grader) else bool(object_in(grader, "sample"))


def _scores(item: Mapping[str, Any]) -> dict[Metric, Result]:
    graders = objects_in(item, "results")
    of_graders = [(_metric(grader), _result(grader)) for grader in graders]
    is_decided = "status" in item or any(grader.get("passed") is not None for grader in graders)
    return numbered([(PASSED, _passed(item, graders)), *of_graders] if is_decided else of_graders)


def _metric(grader: Mapping[str, Any]) -> Metric:
    name = metric_name(_UNIQUE.sub("", text_in(grader, "name")) or _type(grader))
    return metric_with(
        name,
        scale=1.0 if _type(grader) in BOUNDED else None,
        description=f"OpenAI Evals: grader {_type(grader)}".rstrip(),
    )


def _failure(grader: Mapping[str, Any]) -> Failed | None:
    error = _error(object_in(grader, "sample")) or _error(grader)
    return failed("JudgeFailed" if _asks_model(grader) else "ScorerFailed", error) if error else None


def _reasoning(reply: str) -> str:
    """What a grader replied: of a reply in steps, their conclusions."""
    if not reply.lstrip().startswith("{"):
        return reply
    try:
        steps = objects_in(json.loads(reply), "steps")
    except (ValueError, RecursionError):
        return reply
    return " ".join(filter(None, (text_in(step, "conclusion") for step in steps))) or reply


def _result(grader: Mapping[str, Any]) -> Result:
    sample, failure, judged = object_in(grader, "sample"), _failure(grader), None
    replies = [text for each in objects_in(sample, "output") if (text := text_of(each.get("content"))) is not None]
    reason = text_in(grader, "reason") or (_reasoning(replies[-1]) if replies else "")
    if _asks_model(grader):
        verdict = {name: storable(grader[name]) for name in ("score", "passed", "label") if name in grader}
        judged = Judged(
            judge=text_in(sample, "model"),
            answer=None if failure is not None else verdict,
            usage=_tokens(sample.get("usage")),
        )
    if failure is not None:
        return Result(problem=failure, counted=number_in(grader, "score"), judged=judged)
    evidence = {name: grader[name] for name in ("passed", "label", "threshold") if grader.get(name) is not None}
    return Result.of(grader.get("score"), reason, evidence=evidence, judged=judged)


def _passed(item: Mapping[str, Any], graders: list[dict[str, Any]]) -> Result:
    """Whether an item passed: as its status says, or else if all graders say so. A grader that failed decides it only
    if no other has rejected the item."""
    broken = [failure for grader in graders if (failure := _failure(grader)) is not None]
    verdicts = [grader.get("passed") for grader in graders if _failure(grader) is None]
    passed = _PASSED.get(text_in(item, "status").lower())
    if broken and passed is not True and False not in verdicts:
        return Result(problem=broken[0], counted=0.0)
    if passed is None and verdicts and all(isinstance(verdict, bool) for verdict in verdicts):
        passed = all(verdicts)
    return Result.of(passed)


READER = Reader(
    tool=TOOL,
    version=1,
    forms=(Form("output items", (ITEM, "datasource_item", "results")), Form("exported items", _EXPORTED)),
    recognizes=recognizes,
    read=read,
)
