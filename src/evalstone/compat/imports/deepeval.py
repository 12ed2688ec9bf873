"""The results of deepeval: a test run as JSON, and the store of test runs (SQLite).

deepeval judges answers that are in its test cases, so a system is known only by the hyperparameters that were logged.
A metric that failed has an error and no score; deepeval counts its test as failed. The files say neither the version
nor whether low scores are good. That is learned from the rows: which scores passed, and which thresholds they have.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstone._core.display import excerpt, named, safe, shortlist
from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.calls import read_call
from evalstone.compat.imports.cases import key_of, metadata_of, text_of
from evalstone.compat.imports.documents import JsonDocument
from evalstone.compat.imports.reading import SQLITE, Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    MOST_SYSTEMS,
    About,
    Event,
    Judged,
    Metric,
    OfSystem,
    Printed,
    Result,
    Row,
    dollars,
    duration,
    failed,
    finite,
    index_in,
    metric_name,
    number_in,
    numbered,
    object_in,
    objects_in,
    system_name,
    text_in,
    usage_of,
)
from evalstone.datasets.cells import storable
from evalstone.errors import ConfigError, DataError
from evalstone.targets import Answer
from evalstone.types import Failed, Message, Sample, Skipped, TrajectoryExpectation, note
from evalstone.types.documents import read_passages

TOOL = "deepeval"
PASSED = Metric("test_passed", scale=1.0, description="deepeval: whether the test passed")
FLIPPED = frozenset(("Bias", "Hallucination", "Misuse", "Toxicity"))
"""The metrics of which low scores were good before version 4."""
LINK, WRAPPED = "testRunLink", "testRunData"
FULL = ".latest_run_full.json"
"""The file with the last test run, whether or not it was uploaded."""
LATEST = ".latest_test_run.json"
"""The file with the last test run, or with the link to it."""
STORE = "deepeval.db"
FILES = "test_run_*.json"
CASES = ("testCases", "conversationalTestCases")
_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")
_DEFAULT_NAME = re.compile(r"(?:conversational_)?test_case_\d+")
_MISSING = "MissingTestCaseParams"
"""What the error of a metric begins with if the test case lacks what it needs."""
_LONGEST_SETTING = 60
_PIECE = 1 << 20


@dataclass
class _TestRun:
    """A test run of a file or a store, and what the first reading learns of it."""

    document: Callable[[], JsonDocument]
    """Starts reading it."""
    path: str = ""
    """What its places begin with."""
    label: str = ""
    """What tells it from others of a store."""
    started: str = ""
    hyperparameters: dict[str, Any] = field(default_factory=dict[str, Any])
    test_file: str = ""
    cases: Counter[str] = field(default_factory=Counter[str])
    """How often each case is there."""
    without_verdict: Counter[str] = field(default_factory=Counter[str])
    """By metric, the scores that neither passed nor failed, which deepeval leaves out of its numbers."""

    @property
    def repeats(self) -> bool:
        """Whether all cases are there equally often, and more than once."""
        times = {*self.cases.values()}
        return len(times) == 1 and times != {1}

    @property
    def system(self) -> str:
        """What answered: its hyperparameters. "" if nothing names it, and nothing needs a name."""
        settings = {name: text for name, value in self.hyperparameters.items() if (text := _setting(value))}
        model = next((name for name in settings if name.lower() == "model"), None)
        first = [settings.pop(model)] if model is not None else []
        known = system_name(*first, ", ".join(f"{name}={text}" for name, text in settings.items()))
        if not known and self.repeats:
            known = self.test_file or "unnamed system"
        return metric_name(system_name(known, self.label), "")


@dataclass
class _Directions:
    """By metric, how many scores show that high ones pass, and how many that low ones do."""

    high: Counter[str] = field(default_factory=Counter[str])
    low: Counter[str] = field(default_factory=Counter[str])
    names: set[str] = field(default_factory=set[str])

    def learn(self, data: Mapping[str, Any]) -> None:
        """Take a score into account: it is above or below its threshold, and it passed or failed."""
        name = _name(data)
        self.names.add(name)
        score, threshold, success = number_in(data, "score"), number_in(data, "threshold"), data.get("success")
        if score is not None and threshold is not None and isinstance(success, bool) and score != threshold:
            (self.high if (score > threshold) is success else self.low)[name] += 1

    def lower_is_better(self, name: str) -> bool:
        """Whether low scores pass, and high ones never do."""
        return self.low[name] > 0 and self.high[name] == 0

    def unsure(self) -> Iterator[str]:
        """The metrics whose direction is taken to be that of most metrics, although it may be the other."""
        for name in sorted(self.names):
            known = self.low[name] or self.high[name]
            if (self.low[name] and self.high[name]) or (not known and name in FLIPPED):
                yield name


def recognizes(head: Head) -> bool:
    """Whether a file, or the folder `.deepeval`, is of deepeval."""
    if head.is_folder:
        return any(Path(name).name in (FULL, STORE, LATEST) for name in head.names) or _is_results_folder(head)
    if head.start.startswith(SQLITE):
        return b"metrics_scores_json" in head.start
    of_run = any(head.has(name) for name in CASES) and any(
        mark in head.start for mark in (b'"metricsData"', b'"metricsScores"')
    )
    return not head.is_lines and (of_run or head.has(WRAPPED) or head.keys == frozenset((LINK,)))


def _is_results_folder(head: Head) -> bool:
    names = [name for name in head.names if not name.startswith(".")]  # deepeval locks the folder by a file
    return bool(names) and all(re.fullmatch(r"test_run_\d{8}_\d{6}(?:_\d+)?\.json", name) for name in names)


def read(source: Source) -> Iterator[Event]:
    """What a test run or a store of deepeval holds."""
    with contextlib.ExitStack() as stack:
        try:
            runs = list(_test_runs(source, stack))
            directions = _Directions()
            for run in runs:
                _learn(run, directions)
            for name in directions.unsure():
                yield note("direction_unsure", "caution", metric_name(name), tool=TOOL)
            for run in runs:
                yield from _run(run, directions)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # which SQLite raises for the text of its own error
            raise DataError(f"the store of deepeval cannot be read: {safe(str(error), 200)}") from None


def _test_runs(source: Source, stack: contextlib.ExitStack) -> Iterator[_TestRun]:
    """The test runs of a file, a store or a folder."""
    file = source.path
    if file.is_dir():
        found = source.files(FULL) or source.files(STORE) or source.files(LATEST)
        if len(found) != 1:
            yield from _in_folder(source)
            return
        file = found[0]
    with file.open("rb") as opened:
        is_store = opened.read(len(SQLITE)) == SQLITE
    if is_store:
        yield from _stored(file, stack)
    else:
        yield _TestRun(lambda: source.json(file))


def _in_folder(source: Source) -> Iterator[_TestRun]:
    """The test runs that a folder has as files."""
    files = source.files(FILES)
    if not files:
        raise DataError(f"it has no {FILES}")
    for file in files:
        document = functools.partial(source.json, file)
        yield _TestRun(document, path=f"{file.name}: ", label=file.stem) if len(files) > 1 else _TestRun(document)


def _stored(file: Path, stack: contextlib.ExitStack) -> Iterator[_TestRun]:
    """The test runs of a store, which is only read. Without a journal beside it, not even a lock is written."""
    journal = file.with_name(file.name + "-wal")
    way = "mode=ro" if journal.exists() and journal.stat().st_size else "immutable=1"
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?{way}", uri=True)
    stack.callback(connection.close)
    kinds = connection.execute("SELECT type FROM sqlite_master WHERE name = 'test_runs'").fetchall()
    if kinds != [("table",)]:  # a view may never end
        raise DataError("it isn't a store of deepeval: it has no table test_runs")
    if any(hidden for *_, hidden in connection.execute("PRAGMA table_xinfo(test_runs)")):
        raise DataError("it isn't a store of deepeval: test_runs has columns that are calculated")
    rows = connection.execute("SELECT id, created_at, identifier FROM test_runs ORDER BY id").fetchall()
    if len(rows) > MOST_SYSTEMS:
        raise DataError(f"it has {len(rows):,} test runs; at most {MOST_SYSTEMS:,} can be imported")
    for number, created, identifier in rows:
        if not isinstance(number, int):
            raise DataError(f"test_runs: id must be a whole number, not {excerpt(number)}")
        label = " ".join(filter(None, (f"test run {number}", identifier if isinstance(identifier, str) else "")))
        yield _TestRun(
            functools.partial(_payload, connection, number, stack),
            path=f"test_runs[{number}].",
            label=label if len(rows) > 1 else "",
            started=created if isinstance(created, str) else "",
        )


def _payload(connection: sqlite3.Connection, number: int, stack: contextlib.ExitStack) -> JsonDocument:
    blob = connection.blobopen("test_runs", "payload_json", number, readonly=True)
    stack.callback(blob.close)
    return JsonDocument(_pieces(blob))


def _pieces(blob: sqlite3.Blob) -> Iterator[str]:
    """The text of a test run, which may be larger than memory."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while piece := blob.read(_PIECE):
        yield decoder.decode(piece)


def _members(document: JsonDocument) -> Iterator[str]:
    """The members of a test run, which may be in an object of its own."""
    for key in document.members():
        if key == LINK:
            raise DataError(
                f"it has only the link to a test run that was uploaded. The results are in {FULL} in the same folder, "
                f"and in the folder that DEEPEVAL_RESULTS_FOLDER names"
            )
        if key == WRAPPED and document.is_object:
            yield from document.members(WRAPPED)
        else:
            yield key
    document.end()


# ---- First reading ----


def _learn(run: _TestRun, directions: _Directions) -> None:
    """Read a test run for what its rows can't be understood without."""
    document = run.document()
    for key in _members(document):
        if key in CASES and document.is_list:
            for _, case in document.objects(f"{run.path}{key}"):
                run.cases[_digest(case)] += 1
                for data in (*objects_in(case, "metricsData"), *(data for _, data in _of_spans(case))):
                    directions.learn(data)
                    if number_in(data, "score") is not None and not isinstance(data.get("success"), bool):
                        run.without_verdict[metric_name(_name(data))] += 1
        elif key == "hyperparameters" and document.is_object:
            run.hyperparameters = document.object(key)
        elif key == "testFile":
            run.test_file = text_in({key: document.value(key)}, key)


def _setting(value: object) -> str:
    """The value of a hyperparameter; "" for a prompt, and what else is too long for a name."""
    text = "" if value is None or is_object(value) or is_array(value) else text_of(value) or ""
    return text if len(text) <= _LONGEST_SETTING and text.isprintable() else ""


def _digest(case: Mapping[str, Any]) -> str:
    """What tells cases apart: all that isn't of the answer."""
    names = ("input", "expectedOutput", "context", "expectedTools", "metadata")
    names += ("scenario", "expectedOutcome", "userDescription")
    parts: list[Any] = [case.get(name) for name in names]
    if _is_conversation(case) and not text_in(case, "scenario"):
        parts.append(_asked(objects_in(case, "turns")))
    return key_of(parts)


def _is_conversation(case: Mapping[str, Any]) -> bool:
    return "turns" in case


def _asked(turns: list[dict[str, Any]]) -> str | None:
    return next((text_in(turn, "content") for turn in turns if turn.get("role") == "user"), None)


# ---- Second reading ----


def _run(run: _TestRun, directions: _Directions) -> Iterator[Event]:
    document, system, repeats = run.document(), run.system, run.repeats
    yield OfSystem(system, About(started=run.started))
    for key in _members(document):
        if key in CASES and document.is_list:
            for place, case in document.objects(f"{run.path}{key}"):
                yield _row(case, place, system, directions, repeats=repeats)
        elif key == "metricsScores" and document.is_list:
            for _, said in document.objects(f"{run.path}{key}"):
                yield from _printed(said, run, system)
        elif key in ("datasetAlias", "identifier", "runDuration", "testPassed", "testFailed"):
            value = {key: document.value(key)}
            name = text_in(value, "datasetAlias") or text_in(value, "identifier")
            yield OfSystem(system, About(name=name, seconds=duration(value.get("runDuration"))))
            if (passed := number_in(value, "testPassed")) is not None:
                yield Printed(kind="sum", value=passed, metric=PASSED.name, system=system or None)


def _printed(said: Mapping[str, Any], run: _TestRun, system: str) -> Iterator[Event]:
    """What deepeval counted of a metric: the scores that passed or failed, and errors."""
    scores, errors = said.get("scores"), number_in(said, "errors")
    name = metric_name(said.get("metric"))
    if without := run.without_verdict[name]:
        yield OfSystem(system, note("without_verdict", "caution", name, tool=TOOL, scores=without))
        return
    numbers = [score for score in scores if isinstance(score, int | float)] if is_array(scores) else []
    values = [value for score in numbers if (value := finite(score)) is not None]
    of = system or None
    yield Printed(kind="scores", value=len(numbers), metric=name, system=of)
    if errors is not None:
        yield Printed(kind="failed", value=errors, metric=name, system=of)
    if numbers and len(values) == len(numbers) and math.isfinite(total := sum(values)):
        yield Printed(kind="sum", value=total, metric=name, system=of)
        yield Printed(kind="mean", value=math.fsum(values) / len(values), metric=name, system=of)


def _row(case: dict[str, Any], place: str, system: str, directions: _Directions, *, repeats: bool) -> Row:
    try:
        sample, reply = _sample(case, has_system=bool(system))
    except ConfigError as error:
        raise DataError(f"{place}: ", error) from None
    return Row(
        place=place,
        system=system,
        case=sample,
        answer=reply,
        key=_digest(case) if system and repeats else "",
        order=index_in(case, "order") or 0,
        seconds=duration(case.get("completionTime")),
        scores=_scores(case, directions),
    )


def _sample(case: dict[str, Any], *, has_system: bool) -> tuple[Sample, Answer | None]:
    """What was asked, and what the system answered; the answer of an unknown system is part of the sample."""
    asked, answer = _conversation(case) if _is_conversation(case) else _exchange(case)
    asked["metadata"] = _metadata(case, asked)
    if has_system:
        has_answer = not answer.keys().isdisjoint(("output", "messages"))
        return Sample(**asked), Answer(**answer, **_cost(case)) if has_answer else None
    asked["context"] = answer.get("context") or asked.get("context")
    return Sample(**asked, **{name: answer[name] for name in ("output", "messages") if name in answer}), None


def _cost(case: Mapping[str, Any]) -> dict[str, Any]:
    usage = usage_of(case, input="inputTokenCount", output="outputTokenCount")
    return {"cost": dollars(case.get("tokenCost")), "usage": usage}


def _exchange(case: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was asked and what was answered in a test case of one turn."""
    question, output = text_of(case.get("input")), text_of(case.get("actualOutput"))
    asked: dict[str, Any] = {"input": question, "reference": text_of(case.get("expectedOutput"))}
    answer: dict[str, Any] = {} if output is None else {"output": output}
    if is_array(expected := case.get("expectedTools")):
        asked["expected_trajectory"] = TrajectoryExpectation.read([*map(_expected, expected)])
    if is_array(retrieved := case.get("retrievalContext")):
        answer["context"] = read_passages(retrieved)
    elif is_array(ideal := case.get("context")):
        asked["context"] = read_passages(ideal)
    if called := objects_in(case, "toolsCalled"):
        calling = Message(role="assistant", content=output or "", tool_calls=[*map(read_call, called)])
        answer["messages"] = (Message(role="user", content=question or ""), calling)
    return asked, answer


def _expected(tool: Any) -> dict[str, Any]:
    """The step that an expected tool is. Without arguments, any will do."""
    call = read_call(tool)
    has_arguments = is_object(tool) and tool.get("inputParameters") is not None
    return {"name": call.name, **({"arguments": call.arguments} if has_arguments else {})}


def _conversation(case: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was asked and what was answered in a test case of several turns."""
    turns = objects_in(case, "turns")
    messages: list[Message] = []
    passages: list[str | None] = []
    for turn in turns:
        calls = [*map(read_call, objects_in(turn, "toolsCalled"))]
        role = "user" if turn.get("role") == "user" else "assistant"
        messages.append(Message(role=role, content=text_in(turn, "content"), tool_calls=calls))
        if is_array(retrieved := turn.get("retrievalContext")):
            passages += read_passages(retrieved)
    asked: dict[str, Any] = {
        "input": text_in(case, "scenario") or _asked(turns),
        "reference": text_of(case.get("expectedOutcome")),
    }
    said = [message.content for message in messages if message.role == "assistant"]
    answer: dict[str, Any] = {"messages": tuple(messages), **({"output": said[-1]} if said else {})}
    if passages:
        answer["context"] = list(dict.fromkeys(passages))
    elif is_array(ideal := case.get("context")):
        asked["context"] = read_passages(ideal)
    return asked, answer


def _metadata(case: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a case, and is no field of it."""
    found = metadata_of(object_in(case, "metadata"))
    for name in ("name", "tags", "comments", "userDescription", "expectedTools", "context"):
        value = case.get(name)
        is_default = name == "name" and isinstance(value, str) and _DEFAULT_NAME.fullmatch(value)
        if value in (None, []) or is_default or (name == "context" and "context" in asked):
            continue
        found.setdefault(name, storable(value))
    return found


# ---- Scores ----


def _name(data: Mapping[str, Any]) -> str:
    return text_in(data, "name")


def _of_spans(case: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The scores of the parts of an application, each with the name of the part. Those of the whole trace are also
    among the scores of the case."""
    trace = object_in(case, "trace")
    for kind in _SPANS:
        for span in objects_in(trace, kind):
            for data in objects_in(span, "metricsData"):
                yield metric_name(span.get("name"), "unnamed span"), data


def _scores(case: Mapping[str, Any], directions: _Directions) -> dict[Metric, Result]:
    parts = [("", data, _failure(data)) for data in objects_in(case, "metricsData")]
    parts += [(span, data, _failure(data)) for span, data in _of_spans(case)]
    found = [(PASSED, _passed(case, [(data, failure) for _, data, failure in parts]))]
    if expectations := object_in(case, "expectationsData"):
        data = {"name": "Expectations", **expectations}
        parts.append(("", data, _failure(data)))
    for span, data, failure in parts:
        strict, lower = data.get("strictMode") is True, directions.lower_is_better(_name(data))
        metric = _metric(metric_name(data.get("name")), span, strict, lower, number_in(data, "threshold"))
        found.append((metric, _result(data, failure)))
    return numbered(found)


@functools.lru_cache(4096)
def _metric(name: str, span: str, strict: bool, lower_is_better: bool, threshold: float | None) -> Metric:
    settings = [("strict", "true")] if strict else []
    settings += [("span", span)] if span else []
    return Metric(
        name,
        settings=tuple(settings),
        lower_is_better=lower_is_better,
        threshold=threshold,
        description=f"deepeval: {name}",
    )


def _failure(data: Mapping[str, Any]) -> Failed | None:
    """Why a metric has no score: deepeval has an error."""
    error = data.get("error")
    if error is None:
        return None
    is_judged = bool(text_in(data, "evaluationModel")) and not str(error).startswith(_MISSING)
    return failed("JudgeFailed" if is_judged else "ScorerFailed", text_of(error))


def _result(data: Mapping[str, Any], failure: Failed | None) -> Result:
    judged = None
    if judge := text_in(data, "evaluationModel"):
        verdict = {name: data.get(name) for name in ("score", "success", "reason")}
        judged = Judged(
            judge=judge,
            answer=None if failure is not None else storable(verdict),
            usage=usage_of(data, input="inputTokenCount", output="outputTokenCount"),
            cost=dollars(data.get("evaluationCost")),
        )
    if failure is not None:
        return Result(problem=failure, judged=judged)
    evidence = {"success": data.get("success")}
    for name in ("threshold", "strictMode", "flaky", "verdicts", "verboseLogs"):
        if (value := data.get(name)) is not None and value is not False:
            evidence[name] = value
    return Result.of(data.get("score"), data.get("reason"), evidence=evidence, judged=judged)


def _passed(case: Mapping[str, Any], parts: list[tuple[dict[str, Any], Failed | None]]) -> Result:
    """Whether the test passed. A metric that broke decides it only if no other has failed. parts: The metrics, each
    with why it broke."""
    success = case.get("success")
    if success is None:
        return Result(problem=Skipped("deepeval has no verdict: no metric has a threshold"))
    decisive = [(data, failure) for data, failure in parts if data.get("flaky") is not True]
    broken = [failure for _, failure in decisive if failure is not None]
    rejected = [data for data, failure in decisive if data.get("success") is False and failure is None]
    if success is False and broken and not rejected:
        return Result(problem=broken[0], counted=0.0)
    names = [metric_name(data.get("name")) for data in rejected]
    return Result.of(success, f"failed: {shortlist(names)}" if success is False and names else "")


READER = Reader(
    tool=TOOL,
    version=1,
    forms=(
        Form(f"{named(FULL)} or {FILES}", ("testCases", "metricsData")),
        Form("folder", (FULL, LATEST, STORE, FILES), is_folder=True),
    ),
    recognizes=recognizes,
    read=read,
)
