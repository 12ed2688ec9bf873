"""The results of promptfoo: versions 2 and 3, as `--output x.json` and `x.jsonl` write them, and its older table.

A provider and a prompt are a system. A test is a case, and the same test again is another trial. Metrics are
`test_passed` (whether promptfoo passed the test), `test_score` (its weighted score), each named metric, and each type
of assertion without a name: the weighted mean of a test's assertions of this type.

A row with `failureReason` 2 has no answer, or an assertion of it crashed; every other row has its scores. A grader that
gave no verdict and a script that crashed are failures of their metric, of `test_score`, and of `test_passed` unless the
test would have failed or passed without them. promptfoo counts them as 0.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.compat.imports.cases import as_metadata, case_fields, key_of, text_of
from evalstone.compat.imports.documents import JsonDocument
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    MOST_SYSTEMS,
    About,
    Event,
    FailureKind,
    Judged,
    Metric,
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
    too_many_systems,
    usage_of,
)
from evalstone.datasets.cells import storable
from evalstone.stats.exact_sum import ExactSum
from evalstone.targets import Answer
from evalstone.types import Failed, Sample, Usage, note

TOOL = "promptfoo"
JUDGED = frozenset(
    (
        *("agent-rubric", "answer-relevance", "context-faithfulness", "context-recall", "context-relevance"),
        *("conversation-relevance", "factuality", "g-eval", "llm-rubric", "model-graded-closedqa"),
        *("model-graded-factuality", "pi", "search-rubric", "select-best", "trajectory:goal-success"),
    )
)
"""The types of assertion that ask a language model."""
BOUNDED = frozenset(
    (
        *("bleu", "classifier", "contains", "contains-all", "contains-any", "contains-html", "contains-json"),
        *(
            "contains-sql",
            "contains-xml",
            "cost",
            "equals",
            "finish-reason",
            "gleu",
            "guardrails",
            "human",
            "icontains",
        ),
        *("icontains-all", "icontains-any", "is-html", "is-json", "is-refusal", "is-sql", "is-valid-function-call"),
        *("is-valid-openai-function-call", "is-valid-openai-tools-call", "is-xml", "latency", "levenshtein"),
        *("max-score", "meteor", "moderation", "perplexity", "perplexity-score", "regex", "rouge-n", "skill-used"),
        *("starts-with", "tool-call-f1", "trace-error-spans", "trace-span-count", "trace-span-duration"),
        *("trajectory:step-count", "trajectory:tool-args-match", "trajectory:tool-sequence", "trajectory:tool-used"),
        "word-count",
    )
)
"""The other types whose score is between 0 and 1."""
LIMITS = frozenset(("cost", "latency", "levenshtein", "perplexity"))
"""The types whose threshold is of what they measure, such as milliseconds, and not of the score."""
FREE = frozenset(
    ("javascript", "python", "ruby", "webhook", "similar", "similar:cosine", "similar:dot", "similar:euclidean")
)
"""The types whose score may be any number."""
SET = "assert-set"
KNOWN = JUDGED | BOUNDED | FREE | {SET}
RED_TEAM = "promptfoo:redteam:"
"""What the types of red-team assertions begin with: the rest is a plug-in, which asks a language model."""
ERROR = 2
"""The `failureReason` of a row without an answer, or whose assertions crashed."""
_STRIPPED = "[prompt stripped]"
_CRASHED = re.compile(
    r"Custom function threw error: |(?:Python|Ruby|JavaScript) code execution failed: |Scoring function error: "
)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
PASSED = Metric("test_passed", scale=1.0, description="promptfoo: whether the test passed")
SCORE = Metric("test_score", description="promptfoo: the weighted mean of the test's assertions")


@dataclass
class _Component:
    """The result of an assertion, or of a set of assertions."""

    data: dict[str, Any]
    type: str
    metric: str
    """The name of its metric, with the variables of the test in it; "" without one."""
    threshold: float | None
    weight: float
    only_metric: bool
    """Whether it counts for its metric, and neither for the score nor for passing."""
    judge: str
    failure: Failed | None
    """Why there is no verdict: the grader gave none, or the script crashed."""

    @property
    def base(self) -> str:
        """The type without a leading `not-`."""
        return self.type.removeprefix("not-")

    @property
    def is_known(self) -> bool:
        """Whether the type is one that promptfoo has, as far as we know."""
        return self.base in KNOWN or self.base.startswith(RED_TEAM)

    @property
    def judged(self) -> Judged | None:
        """The call of the grader; None for an assertion in code."""
        if self.base not in JUDGED and not self.base.startswith(RED_TEAM):
            return None
        verdict = {key: storable(self.data.get(key)) for key in ("pass", "score", "reason")}
        answer = None if self.failure is not None else verdict
        return Judged(judge=self.judge, answer=answer, usage=_tokens(self.data.get("tokensUsed")))

    def said(self) -> dict[str, Any]:
        """What the file says, as evidence."""
        assertion = object_in(self.data, "assertion")
        named = {key: assertion[key] for key in ("value", "threshold", "weight") if key in assertion}
        if rendered := text_in(object_in(self.data, "metadata"), "renderedAssertionValue"):
            named["value"] = rendered
        return {"type": self.type, **named, "passed": self.data.get("pass"), "score": self.data.get("score")}


@dataclass
class _Reading:
    """What is remembered while a file is read."""

    identities: dict[int, str] = field(default_factory=dict[int, str])
    """The name of each system, by its place among prompts and providers."""
    providers: dict[int, str] = field(default_factory=dict[int, str])
    """The provider of each of them."""
    listed: set[int] = field(default_factory=set[int])
    """The places that the file lists before its rows."""
    places: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The first place of a provider and a prompt."""
    unknown: set[str] = field(default_factory=set[str])
    has_rows: bool = False
    named: dict[tuple[str, str], ExactSum] = field(default_factory=dict[tuple[str, str], ExactSum])
    """By system and named metric, the sum of its scores times the weights of the assertions that they are of."""
    weighted: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The systems and named metrics whose sums aren't those of the scores: they are weighed."""
    printed: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])
    """By system and named metric, the sum that promptfoo has."""

    def system(self, place: int | None, provider: object, prompt: object, *, listed: bool = False) -> str:
        """The name of a system: its provider, and the label of its prompt. The place of a row decides, unless its
        provider is another one than there: of results that were put together, or of which some were taken away.

        Args:
            place: Its place among prompts and providers, as far as the file says it.
            provider: The provider of a row, or of the list.
            prompt: The prompt.
            listed: Whether this is the list of all of them.

        Raises DataError for too many systems.
        """
        names = _provider_name(provider), _prompt_name(prompt)
        if place is None:
            return system_name(*names)
        known = self.places.get(names)
        if place in self.identities and (names[0] == self.providers[place] or (known is None and place in self.listed)):
            known = place
        elif place not in self.identities and (listed or not self.listed):
            known = None
        if known is None:
            if len(self.identities) == MOST_SYSTEMS:
                raise too_many_systems()
            known = place if place not in self.identities else max(self.identities) + 1
            self.identities[known], self.providers[known] = self._unique(names), names[0]
            self.places.setdefault(names, known)
        if listed:
            self.listed.add(known)
        return self.identities[known]

    def _unique(self, names: tuple[str, str]) -> str:
        taken, number = {*self.identities.values()}, 1
        identity = first = system_name(*names)
        while identity in taken:
            number += 1
            identity = f"{first} ({number})"
        return identity

    def about(self) -> About:
        """The systems in the order of the prompts and providers."""
        return About(systems=tuple(name for _, name in sorted(self.identities.items())))

    def new_types(self, components: Iterable[_Component]) -> Iterator[str]:
        """The types of assertion that aren't known, and weren't met before."""
        for component in components:
            if not component.is_known and component.type not in self.unknown:
                self.unknown.add(component.type)
                yield component.type

    def add_named(
        self, system: str, scores: Mapping[str, Any], weights: Mapping[str, Any], components: Iterable[_Component]
    ) -> None:
        """Take the named scores of a row into account. Versions without weights add the assertions of a name up."""
        times = Counter(component.metric for component in components)
        for name in scores:
            score, weight = number_in(scores, name), number_in(weights, name) if name in weights else 1.0
            if score is not None and weight is not None:
                key = system, metric_name(name)
                self.named.setdefault(key, ExactSum()).add(score * weight)
                if weight != 1 or times[name] > 1:
                    self.weighted.add(key)

    def named_sums(self) -> Iterator[Printed]:
        """The sums of the named metrics. promptfoo weighs them; if all weights are 1, they are those of the scores."""
        for system, name, value in self.printed:
            key = system, name
            ours = self.named[key].value if key in self.weighted else None
            yield Printed(kind="sum", metric=name, value=value, system=system, ours=ours)


def _provider_name(provider: object) -> str:
    return metric_name(
        provider.get("label") or provider.get("id") if is_object(provider) else provider, "unnamed provider"
    )


def _prompt_name(prompt: object) -> str:
    """The label of a prompt, or its template, which older versions call `display`: `raw` of a row has values in it."""
    label = prompt.get("label") or prompt.get("display") or prompt.get("raw") if is_object(prompt) else prompt
    return metric_name(label, "")[:80].rstrip()


def recognizes(head: Head) -> bool:
    """Whether a file is of promptfoo."""
    if head.is_lines:
        return head.has("testCase", "provider", "prompt") or head.has("gradingResult", "provider", "prompt")
    summary = head.has("results", "stats") and not head.keys.isdisjoint(("table", "prompts"))
    return head.has("evalId", "results") or head.has("results.results", "results.version") or summary


def read(source: Source) -> Iterator[Event]:
    """What a file of promptfoo holds."""
    state = _Reading()
    if source.head.is_lines:
        for place, row in source.lines():
            yield from _row(state, row, place)
        yield state.about()
        return
    document = source.json()
    for key in document.members():
        if key == "results" and document.is_object:
            yield from _summary(state, document, "results.")
        elif key == "metadata" and document.is_object:
            said = document.object(key)
            yield About(version=text_in(said, "promptfooVersion"), started=text_in(said, "evaluationCreatedAt"))
        elif key == "config" and document.is_object:
            yield About(name=text_in(document.object(key), "description"))
        else:
            yield from _member(state, document, key, "")
    document.end()
    yield state.about()
    yield from state.named_sums()


def _summary(state: _Reading, document: JsonDocument, path: str) -> Iterator[Event]:
    for key in document.members(path.rstrip(".")):
        yield from _member(state, document, key, path)


def _member(state: _Reading, document: JsonDocument, key: str, path: str) -> Iterator[Event]:
    """A member of a summary, which is the whole document or its `results`."""
    if key == "results" and document.is_list and not state.has_rows:
        for place, row in document.objects(f"{path}results"):
            state.has_rows = True
            yield from _row(state, row, place)
    elif key == "table" and document.is_object:
        yield from _table(state, document, f"{path}table")
    elif key == "prompts" and document.is_list:
        yield from _prompts(state, document, f"{path}prompts")
    elif key == "timestamp":
        yield About(started=text_in({key: document.value(key)}, key))
    elif key == "stats" and document.is_object:
        yield from _statistics(document.object(key))


def _statistics(stats: Mapping[str, Any]) -> Iterator[Event]:
    yield from _counts(stats, ("successes", "failures", "errors"), None)
    yield About(seconds=duration(stats.get("durationMs"), 1e-3))


def _counts(values: Mapping[str, Any], names: tuple[str, str, str], system: str | None) -> Iterator[Event]:
    """What promptfoo counted of tests: those that passed, failed, and are errors, under these names."""
    passes, failures, errors = (number_in(values, name) for name in names)
    if passes is not None and failures is not None:
        yield Printed(kind="rows", value=passes + failures + (errors or 0), system=system)
        yield Printed(kind="sum", metric=PASSED.name, value=passes, system=system)
        yield Printed(kind="failed", metric=PASSED.name, value=errors or 0, system=system)


def _prompts(state: _Reading, document: JsonDocument, path: str) -> Iterator[Event]:
    """The prompts of each provider, with what promptfoo counted."""
    for number, (_, prompt) in enumerate(document.objects(path)):
        identity = state.system(number, prompt.get("provider"), prompt, listed=True)
        metrics = object_in(prompt, "metrics")
        yield from _counts(metrics, ("testPassCount", "testFailCount", "testErrorCount"), identity)
        if (score := number_in(metrics, "score")) is not None:
            yield Printed(kind="sum", metric=SCORE.name, value=score, system=identity)
        named = object_in(metrics, "namedScores")
        for name in named:
            if (score := number_in(named, name)) is not None:
                state.printed.append((identity, metric_name(name), score))


def _table(state: _Reading, document: JsonDocument, path: str) -> Iterator[Event]:
    """The table of version 2: a row for each test, with an output for each provider and prompt."""
    variables: list[str] = []
    prompts: list[dict[str, Any]] = []
    for key in document.members(path):
        if key == "head" and document.is_object:
            head = document.object(f"{path}.head")
            variables = _texts(head.get("vars"))
            prompts = objects_in(head, "prompts")
            for number, prompt in enumerate(prompts):
                state.system(number, prompt.get("provider"), prompt, listed=True)
        elif key == "body" and document.is_list and not state.has_rows:
            for place, row in document.objects(f"{path}.body"):
                values = dict(zip(variables, row["vars"] if is_array(row.get("vars")) else (), strict=False))
                for number, output in enumerate(objects_in(row, "outputs")):
                    state.has_rows = True
                    prompt = prompts[number] if number < len(prompts) else {}
                    result = _of_table(output, number, prompt, values, row)
                    yield from _row(state, result, f"{place}.outputs[{number}]")


def _of_table(
    output: dict[str, Any], number: int, prompt: Mapping[str, Any], variables: Mapping[str, Any], row: Mapping[str, Any]
) -> dict[str, Any]:
    """An output of a table in the form of a result."""
    return {
        **output,
        "testIdx": row.get("testIdx"),
        "success": output.get("pass"),
        "promptIdx": number,
        "provider": output.get("provider") or prompt.get("provider"),
        "prompt": {"raw": output.get("prompt"), "label": prompt.get("label")},
        "response": object_in(output, "response") or {"output": output.get("text")},
        "vars": variables,
        "testCase": {"vars": variables, **object_in(row, "test")},
    }


# ---- A row ----


def _row(state: _Reading, row: dict[str, Any], place: str) -> Iterator[Event]:
    test = object_in(row, "testCase")
    variables = object_in(test, "vars") or object_in(row, "vars")
    prompt = row.get("prompt")
    raw = prompt.get("raw") if is_object(prompt) else prompt
    response, grading = object_in(row, "response"), object_in(row, "gradingResult")
    output = text_of(response.get("output"))
    components = list(_components(grading, test, variables))
    for kind in state.new_types(components):
        label = text_in(test, "description") or place
        yield note("metric_unknown", "caution", tool=TOOL, metric=kind, place=label)
    system = state.system(index_in(row, "promptIdx"), row.get("provider"), prompt)
    if (problem := _problem(row, output, grading)) is None:
        state.add_named(system, object_in(row, "namedScores"), object_in(grading, "namedScoreWeights"), components)
        scores = numbered(_scores(row, grading, components, test))
    else:
        scores = {metric: Result(problem=problem) for metric in _expected(test, variables)}
    case = _case(test, variables, raw)
    yield Row(
        place=place,
        system=system,
        case=case,
        key=_key(row, test, variables, raw),
        answer=None if output is None else _answer(row, response, output, raw, case.input),
        problem=problem,
        scores=scores,
        only_scores=True,
        seconds=duration(row.get("latencyMs"), 1e-3),
        order=index_in(row, "testIdx") or 0,
    )


def _case(test: Mapping[str, Any], variables: Mapping[str, Any], raw: object) -> Sample:
    """What was asked. raw: The prompt, which is the input if no variable is."""
    fields = case_fields(variables)
    about = {"description": test.get("description"), **object_in(test, "metadata")}
    for name, value in about.items():
        if value is not None and not name.startswith("_"):
            fields["metadata"].setdefault(as_metadata(name), storable(value))
    if "input" not in fields and isinstance(raw, str) and raw != _STRIPPED:
        fields["input"] = raw
    return Sample(**fields)


def _key(row: Mapping[str, Any], test: Mapping[str, Any], variables: Mapping[str, Any], raw: object) -> str:
    """What tells tests apart: their definition. Without variables, the prompt; if that was left out, the number."""
    parts: list[Any] = [variables, test]
    if not variables:
        parts.append(row.get("testIdx") if raw in (None, _STRIPPED) else raw)
    return key_of(parts)


def _problem(row: Mapping[str, Any], output: str | None, grading: Mapping[str, Any]) -> Failed | None:
    """Why a row has no scores: the provider gave no answer, or its assertions crashed."""
    reason = row.get("failureReason")
    if reason == ERROR or (reason is None and row.get("error") and not grading):
        kind: FailureKind = "TargetFailed" if output is None else "ScorerFailed"
        return failed(kind, row.get("error"))
    return None


def _answer(row: Mapping[str, Any], response: Mapping[str, Any], output: str, raw: object, asked: object) -> Answer:
    cost = dollars(response.get("cost"))
    sent = {"prompt": raw} if isinstance(raw, str) and raw not in (asked, _STRIPPED) else {}
    return Answer(
        output=output,
        usage=_tokens(response.get("tokenUsage") or row.get("tokenUsage")),
        cost=cost if cost is not None else dollars(row.get("cost")) or None,
        metadata=sent,
    )


def _tokens(value: object) -> Usage:
    return usage_of(value, input="prompt", output="completion", cached="cached", requests="numRequests")


def _scores(
    row: Mapping[str, Any], grading: Mapping[str, Any], components: list[_Component], test: Mapping[str, Any]
) -> Iterator[tuple[Metric, Result]]:
    """The results of a row that has an answer."""
    yield from _of_test(row, grading, components, test)
    by_metric: dict[str, list[_Component]] = {}
    for component in components:
        by_metric.setdefault(component.metric or component.type, []).append(component)
    for name, score in object_in(row, "namedScores").items():
        of = [each for each in by_metric.pop(name, ()) if each.metric]
        yield _metric(name, of), _result(_mean_of(name, score, of, grading), of)
    for name, of in by_metric.items():
        yield _metric(name, of), _result(_weighted_mean(of), of)


def _of_test(
    row: Mapping[str, Any], grading: Mapping[str, Any], components: list[_Component], test: Mapping[str, Any]
) -> Iterator[tuple[Metric, Result]]:
    """Whether the test passed, and its score. An assertion without a verdict leaves the score undecided, and passing as
    well, unless the test would have failed or passed without it."""
    counted = [each for each in components if each.weight and not each.only_metric]
    broken = next((failure for each in counted if (failure := each.failure) is not None), None)
    passed, reason = row.get("success"), text_in(grading, "reason") or text_in(row, "error")
    fails_anyway = number_in(test, "threshold") is None and any(
        each.data.get("pass") is False and each.failure is None and not each.only_metric for each in components
    )
    if broken is not None and passed is not True and not fails_anyway:
        yield PASSED, Result(problem=broken, counted=0.0)
    else:
        yield PASSED, Result.of(passed, reason)
    if broken is not None:
        yield SCORE, Result(problem=broken, counted=Result.of(row.get("score")).value)
    else:
        yield SCORE, Result.of(row.get("score"), reason)


def _weighted_mean(of: list[_Component]) -> object:
    """The mean of the scores of assertions by their weights. If one of these is no number, that one."""
    if len(of) == 1:
        return of[0].data.get("score")
    scores: list[float] = []
    for each in of:
        if (score := number_in(each.data, "score")) is None:
            return each.data.get("score")
        scores.append(score)
    weights = [each.weight for each in of]
    if not sum(weights):
        weights = [1.0] * len(of)
    return sum(weight * score for weight, score in zip(weights, scores, strict=True)) / sum(weights)


def _mean_of(name: str, score: object, of: list[_Component], grading: Mapping[str, Any]) -> object:
    """The score of a named metric: the mean of its assertions. Versions without weights have their sum."""
    scores = [number for each in of if (number := number_in(each.data, "score")) is not None]
    value, total = finite(score), sum(scores)
    if value is None or len(scores) < max(2, len(of)) or name in object_in(grading, "namedScoreWeights"):
        return score
    return total / len(of) if math.isclose(value, total, abs_tol=1e-9) else score


def _metric(name: str, of: list[_Component]) -> Metric:
    types = tuple(dict.fromkeys(each.type for each in of))
    thresholds = {each.threshold for each in of}
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return _metric_of(name, types, threshold, named=any(each.metric for each in of))


@functools.lru_cache(maxsize=1024)
def _metric_of(name: str, types: tuple[str, ...], threshold: float | None, *, named: bool) -> Metric:
    what = f"named metric of {', '.join(types)}" if named else f"assertions of type {name}" if types else "named scores"
    is_bounded = bool(types) and {each.removeprefix("not-") for each in types} <= JUDGED | BOUNDED
    scale = 1.0 if is_bounded else None
    return Metric(metric_name(name), scale=scale, threshold=threshold, description=f"promptfoo: {what}")


def _result(value: object, of: list[_Component]) -> Result:
    evidence: Any = [each.said() for each in of]
    evidence = evidence[0] if len(evidence) == 1 else evidence
    judged = next((found for each in of if (found := each.judged) is not None), None)
    counted = Result.of(value).value
    for each in of:
        if (failure := each.failure) is not None:
            return Result(problem=failure, counted=counted, judged=judged)
    reasons = [text_in(each.data, "reason") for each in of]
    reason = reasons[0] if len(reasons) == 1 else "; ".join(filter(None, reasons))
    return Result.of(value, reason, evidence=evidence, judged=judged)


# ---- Assertions ----


def _components(
    grading: Mapping[str, Any], test: Mapping[str, Any], variables: Mapping[str, Any]
) -> Iterator[_Component]:
    """The results of the assertions. Those of a set follow it in the list; if not, they are in it."""
    items = objects_in(grading, "componentResults")
    place = 0
    while place < len(items):
        item = items[place]
        yield _component(item, test, variables)
        place += 1
        inner = objects_in(item, "componentResults")
        follow = items[place : place + len(inner)]
        repeats = len(follow) == len(inner) and all(
            _outcome(a) == _outcome(b) for a, b in zip(follow, inner, strict=True)
        )
        is_set = _set_of(item) is not None or not is_object(item.get("assertion"))
        if is_set:
            yield from (_component(each, test, variables) for each in (follow if repeats else inner))
        place += len(inner) if repeats else 0


def _outcome(component: Mapping[str, Any]) -> tuple[Any, ...]:
    return component.get("pass"), component.get("score"), component.get("reason")


def _set_of(component: Mapping[str, Any]) -> dict[str, Any] | None:
    """The definition of a set of assertions; None for the result of anything else."""
    return object_in(object_in(component, "metadata"), "assertionSet") or None


def _component(item: dict[str, Any], test: Mapping[str, Any], variables: Mapping[str, Any]) -> _Component:
    assertion = object_in(item, "assertion") or _set_of(item) or {}
    weight = number_in(assertion, "weight")
    return _Component(
        data=item,
        type=text_in(assertion, "type") or SET,
        metric=_rendered(assertion.get("metric"), variables),
        threshold=_threshold(assertion),
        weight=1.0 if weight is None else weight,
        only_metric=assertion.get("metricOnly") is True,
        judge=_judge(assertion, test),
        failure=_failure(item),
    )


def _threshold(assertion: Mapping[str, Any]) -> float | None:
    """The score from which on an assertion passes, if its threshold is one of the score."""
    of = text_in(assertion, "type")
    return None if of in LIMITS or of.startswith("not-") else number_in(assertion, "threshold")


def _failure(item: Mapping[str, Any]) -> Failed | None:
    reason = text_in(item, "reason")
    if object_in(item, "metadata").get("graderError"):
        return failed("JudgeFailed", reason)
    if item.get("pass") is not True and _CRASHED.match(reason):
        return failed("ScorerFailed", reason)
    return None


def _judge(assertion: Mapping[str, Any], test: Mapping[str, Any]) -> str:
    """The grader, as far as the test names it: a provider, or one of each kind."""
    for named in (assertion.get("provider"), object_in(test, "options").get("provider")):
        for _ in range(2):
            if is_object(named):
                named = named.get("id") or named.get("text")
        if isinstance(named, str) and named:
            return named
    return ""


def _expected(test: Mapping[str, Any], variables: Mapping[str, Any]) -> Iterator[Metric]:
    """The metrics that a row without scores would have."""
    yield PASSED
    yield SCORE
    names: dict[str, list[_Component]] = {}
    for assertion in _assertions(test):
        component = _component({"assertion": assertion}, test, variables)
        names.setdefault(component.metric or component.type, []).append(component)
    for name, of in names.items():
        yield _metric(name, of)


def _assertions(of: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The assertions of a test or a set, also those of sets in it."""
    for assertion in objects_in(of, "assert"):
        yield assertion
        yield from _assertions(assertion)


def _rendered(metric: object, variables: Mapping[str, Any]) -> str:
    """The name of a metric, with the variables of the test."""
    if not isinstance(metric, str):
        return ""
    return _VARIABLE.sub(lambda found: str(variables.get(found[1], "")), metric)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if is_array(value) else []


READER = Reader(
    tool=TOOL,
    version=2,
    forms=(Form(".json", ("evalId", "results")), Form(".jsonl", ("testCase", "prompt", "provider"))),
    recognizes=recognizes,
    read=read,
)
