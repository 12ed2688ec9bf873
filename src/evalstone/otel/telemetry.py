"""Spans, events and metrics of what evalstone does: the one module that imports the API of OpenTelemetry."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from opentelemetry import context, metrics, propagate, trace
from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider

from evalstone._core.display import safe
from evalstone._core.file_format import installed_version
from evalstone._core.observe import NOBODY, Observed, Observer, observe, observer
from evalstone._core.redaction import masked
from evalstone.errors import AnswerPending, JudgeError, RunStopped, error_text
from evalstone.judges.base import Judge
from evalstone.judges.decision import DecisionJudge
from evalstone.judges.model import ModelJudge, opening_messages
from evalstone.models.model import Model
from evalstone.models.provider import ChatMessage
from evalstone.otel.attributes import (
    EXPLANATION,
    NAME,
    OTHER,
    Attributes,
    error_type,
    evaluation,
    failure_type,
    messages,
    model_attributes,
    model_of,
    request_attributes,
    scorer_attributes,
    source_of,
    target_name,
    usage_attributes,
)
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.decisions import as_decisions
from evalstone.results.run import Run
from evalstone.scorers import Scorer
from evalstone.targets import Answer, FunctionTarget, Target
from evalstone.targets.base import conversation as said_to
from evalstone.types import (
    NO_USAGE,
    OUTCOME_NAMES,
    CallSource,
    Failed,
    JudgeCall,
    Record,
    Sample,
    Score,
    Usage,
)

if TYPE_CHECKING:
    from evalstone.run.plan import Plan

R = TypeVar("R")
EVENT = "gen_ai.evaluation.result"
SCORES = tuple(step / 10 for step in range(11))
TOKEN_KINDS = {
    "input": "Input tokens, including cached ones.",
    "output": "Output tokens, including those of reasoning.",
    "cache_read.input": "Input tokens that the provider read from its cache.",
}
TOKENS = tuple(4**power for power in range(14))
SECONDS = tuple(0.01 * 2**power for power in range(14))
"""Boundaries of histograms. Those of tokens and seconds are the conventions' own."""


class _Spanned(Observed[R], Generic[R]):
    """An operation, as a span.

    Args:
        span: Begun, and not yet the current one.
        ended: Called with the result, before the span ends.
        left: Called with the seconds it took and the error that ended it, or None.
        source: What a sample's trace metadata has beside the IDs; None if no score can belong to the operation.
    """

    def __init__(
        self,
        span: Span,
        ended: Callable[[Span, R], None],
        left: Callable[[float, BaseException | None], None] | None = None,
        source: Mapping[str, str] | None = None,
    ) -> None:
        self._span, self._ended, self._left = span, ended, left
        self._done = False
        if source is not None and (own := span.get_span_context()).is_valid:
            ids = {"trace_id": trace.format_trace_id(own.trace_id), "span_id": trace.format_span_id(own.span_id)}
            self.trace = {**ids, **source}

    def __enter__(self) -> Observed[R]:
        self._started = time.perf_counter()
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def result(self, result: R) -> None:
        self._done = True
        self._ended(self._span, result)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        span = self._span
        context.detach(self._token)
        if self._left is not None:
            self._left(time.perf_counter() - self._started, error)
        if error is not None:
            span.set_attribute("error.type", error_type(error))
            if isinstance(error, Exception) and not isinstance(error, AnswerPending | RunStopped):
                span.set_status(Status(StatusCode.ERROR, safe(masked(error_text(error)), EXPLANATION)))
        elif not self._done:
            span.set_attribute("error.type", OTHER)
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class Telemetry(Observer):
    """Observes this process and emits spans, events and metrics.

    Args: as `evalstone.otel.enable`.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        *,
        content: bool = False,
    ) -> None:
        name, version = "evalstone", installed_version()
        self._content = content
        self._emitted: WeakValueDictionary[int, Record] = WeakValueDictionary()
        self._tracer = trace.get_tracer(name, version, tracer_provider)
        self._logger = get_logger(name, version, logger_provider)
        meter = metrics.get_meter(name, version, meter_provider)
        histogram, counter = meter.create_histogram, meter.create_counter
        self._scores = histogram(
            "evalstone.score", "1", "Scores, divided by their scale.", explicit_bucket_boundaries_advisory=SCORES
        )
        self._outcomes = counter("evalstone.outcomes", "{outcome}", "Scores, skips and failures.")
        self._usage = {
            kind: counter(f"gen_ai.client.inference.usage.{kind}_tokens", "{token}", description)
            for kind, description in TOKEN_KINDS.items()
        }
        self._tokens = {
            name: histogram(
                f"gen_ai.client.{name}_tokens",
                "{token}",
                "Tokens of one call, as far as they are known.",
                explicit_bucket_boundaries_advisory=TOKENS,
            )
            for name in ("inference.operation.input", "inference.operation.output", "embeddings.operation.input")
        }
        self._seconds = {
            operation: histogram(
                f"gen_ai.client.{operation}.duration",
                "s",
                f"How long {what} took, with its retries.",
                explicit_bucket_boundaries_advisory=SECONDS,
            )
            for operation, what in (("inference", "a call of a model"), ("embeddings", "a request for embeddings"))
        }
        self._cost = counter("evalstone.judge.cost", "{USD}", "What judge calls cost, as far as it is known.")
        self._calls = counter("evalstone.judge.calls", "{call}", "Judge calls that were asked, shared and cached.")
        self._latency = histogram(
            "evalstone.target.duration",
            "s",
            "How long the target took to answer.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    def __enter__(self) -> None:
        """As a context, this observes until its end."""

    def __exit__(self, *error: object) -> None:
        if observer() is self:
            observe(NOBODY)

    def run(self, run: str, plan: Plan) -> Observed[Run]:
        dataset = safe(plan.dataset.name, NAME)
        attributes: Attributes = {
            "evalstone.run.id": run,
            "evalstone.dataset": dataset,
            "evalstone.samples": len(plan.dataset),
            "evalstone.scorers": len(plan.scorers),
        }
        span = self._tracer.start_span(f"evaluate {dataset}", attributes=attributes)
        return _Spanned(span, _nothing)

    def score(self, scorer: Scorer, sample: Sample) -> Observed[Record]:
        attributes: Attributes = {
            "evalstone.signature": safe(scorer.signature, NAME),
            "evalstone.sample.id": safe(sample.id, NAME),
        }
        if sample.trial is not None:
            attributes["evalstone.trial"] = sample.trial
        link = _context_of(sample)
        links = () if link is None else (trace.Link(trace.get_current_span(link).get_span_context()),)
        span = self._tracer.start_span(f"score {scorer.name}", attributes=attributes, links=links)

        def ended(span: Span, record: Record) -> None:
            span.set_attribute("evalstone.scorer", safe(record.scorer, NAME))
            span.set_attribute("evalstone.outcome", OUTCOME_NAMES[type(record.outcome)])
            if isinstance(record.outcome, Failed):
                span.set_attribute("error.type", failure_type(record))
                span.set_status(Status(StatusCode.ERROR, safe(masked(record.outcome.error), EXPLANATION)))
            self.emit(record, sample, scorer)

        return _Spanned(span, ended)

    def emit(self, record: Record, sample: Sample, scorer: Scorer | None = None) -> None:
        """Emit a record as an event, and count it, once."""
        if self._emitted.get(id(record)) is record:
            return
        self._emitted[id(record)] = record
        body, attributes = evaluation(record, sample, scorer)
        event = LogRecord(
            timestamp=time.time_ns(),
            context=_context_of(sample),
            severity_number=SeverityNumber.WARN if isinstance(record.outcome, Failed) else SeverityNumber.INFO,
            body=body,
            attributes=attributes,
            event_name=EVENT,
        )
        self._logger.emit(event)
        shown = scorer_attributes(record)
        error = failure_type(record)
        counted = {**shown, "evalstone.outcome": OUTCOME_NAMES[type(record.outcome)]}
        self._outcomes.add(1, {**counted, "error.type": error} if error else counted)
        if isinstance(record.outcome, Score):
            self._scores.record(record.outcome.fraction, shown)

    def judge_call(self, judge: Judge, question: Question[Any], repeat: int) -> Observed[JudgeAnswer[Any]]:
        model = model_of(judge)
        asked: Attributes = {
            "evalstone.question": question.kind,
            "evalstone.judge": safe(judge.identity, NAME),
            "evalstone.repeat": repeat,
        }
        if judge.members:
            return _Spanned(self._tracer.start_span(f"judge {asked['evalstone.judge']}", attributes=asked), _nothing)
        asked["evalstone.source"] = "asked"
        answered = False

        def counted(error: BaseException | None) -> None:
            if answered or (isinstance(error, JudgeError) and (error.usage or NO_USAGE).requests):
                self._count_call(judge.identity, "asked")

        if model is None:

            def gave(span: Span, answer: JudgeAnswer[Any]) -> None:
                nonlocal answered
                answered = True

            span = self._tracer.start_span(f"judge {asked['evalstone.judge']}", attributes=asked)
            return _Spanned(span, gave, lambda _, error: counted(error))
        identified = model_attributes(model)
        span = self._tracer.start_span(
            f"{identified['gen_ai.operation.name']} {identified['gen_ai.request.model']}",
            kind=SpanKind.CLIENT,
            attributes={**identified, **request_attributes(model, question, repeat), **asked},
        )
        took = (NO_USAGE, None)
        if self._content and span.is_recording():
            span.set_attribute("gen_ai.input.messages", messages(_asked(model, question)))

        def replied(reply: str | None) -> None:
            if self._content and reply is not None:
                span.set_attribute("gen_ai.output.messages", messages([("assistant", reply)], finish_reason="stop"))

        def ended(span: Span, answer: JudgeAnswer[Any]) -> None:
            nonlocal took, answered
            took, answered = (answer.usage, answer.cost), True
            if answer.response_model:
                span.set_attribute("gen_ai.response.model", safe(answer.response_model, NAME))
            replied(answer.reply)

        def left(seconds: float, error: BaseException | None) -> None:
            usage, cost = took
            if isinstance(error, JudgeError):
                usage, cost = error.usage or NO_USAGE, error.cost
                replied(error.reply)
            span.set_attributes(usage_attributes(usage, cost))
            timed = identified if error is None else {**identified, "error.type": error_type(error)}
            self._seconds[_operation(identified)].record(seconds, timed)
            self._count(identified, usage, cost)
            counted(error)

        return _Spanned(span, ended, left)

    def _count(self, identified: Attributes, usage: Usage, cost: float | None) -> None:
        operation = _operation(identified)
        counts = {"input": usage.input, "output": usage.output, "cache_read.input": usage.cached}
        for kind, tokens in counts.items():
            if not tokens:
                continue
            if operation == "inference":
                self._usage[kind].add(tokens, {**identified, "gen_ai.token.modality": "unknown"})
            if (of_one := self._tokens.get(f"{operation}.operation.{kind}")) is not None:
                of_one.record(tokens, identified)
        if cost:
            self._cost.add(cost, identified)

    def reused_call(self, call: JudgeCall) -> None:
        attributes: Attributes = {
            "evalstone.question": call.question,
            "evalstone.judge": safe(call.judge, NAME),
            "evalstone.repeat": call.repeat_index,
            "evalstone.source": call.source,
        }
        self._tracer.start_span(f"{call.source} {call.question}", attributes=attributes).end()
        for leaf in call.leaves():
            for source in leaf.sources():
                self._count_call(leaf.judge, source)

    def batched_call(self, judge: Judge, usage: Usage, cost: float | None) -> None:
        self._count_call(judge.identity, "asked")
        if (model := model_of(judge)) is not None:
            self._count(model_attributes(model), usage, cost)

    def _count_call(self, judge: str, source: CallSource) -> None:
        self._calls.add(1, {"evalstone.judge": safe(judge, NAME), "evalstone.source": source})

    def target_call(self, target: Target, sample: Sample, *, conversation: bool = False) -> Observed[Answer]:
        name = target_name(target.name)
        attributes: Attributes = {
            "evalstone.target": target_name(target.identity),
            "evalstone.sample.id": safe(sample.id, NAME),
        }
        if sample.trial is not None:
            attributes["evalstone.trial"] = sample.trial
        if conversation:
            span = self._tracer.start_span(f"conversation {name}", attributes=attributes)
            return _Spanned(span, _nothing, source={"entity": name})
        span = self._tracer.start_span(
            f"invoke_agent {name}",
            kind=SpanKind.INTERNAL if isinstance(target, FunctionTarget) else SpanKind.CLIENT,
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **attributes},
        )
        if self._content and span.is_recording():
            asked = messages((message.role, message.content) for message in said_to(sample))
            span.set_attribute("gen_ai.input.messages", asked)

        def ended(span: Span, answer: Answer) -> None:
            span.set_attributes(usage_attributes(answer.usage, answer.cost))
            if self._content and answer.output is not None:
                replied = messages([("assistant", answer.output)], finish_reason="stop")
                span.set_attribute("gen_ai.output.messages", replied)

        def left(seconds: float, error: BaseException | None) -> None:
            timed: Attributes = {"evalstone.target": target_name(target.identity)}
            self._latency.record(seconds, timed if error is None else {**timed, "error.type": error_type(error)})

        return _Spanned(span, ended, left, source={"entity": name})

    def headers(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return carrier


def _nothing(span: Span, result: object) -> None:
    pass


def _asked(model: Model[Any], question: Question[Any]) -> Sequence[ChatMessage]:
    """What a model is asked: messages, or for a decision model the state and the decisions as JSON."""
    if isinstance(model, DecisionJudge) and (closed := as_decisions(question)) is not None:
        return [ChatMessage("user", json.dumps(asdict(closed), ensure_ascii=False))]
    return opening_messages(question, model.instructions if isinstance(model, ModelJudge) else "")


def _context_of(sample: Sample) -> Context | None:
    """The span that answered a sample, as a context; None (the current context) if it is unknown."""
    source = source_of(sample)
    if "trace_id" not in source:
        return None
    trace_id, span_id = int(source["trace_id"], 16), int(source.get("span_id", "0"), 16)
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    return trace.set_span_in_context(
        NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags))
    )


def _operation(identified: Attributes) -> str:
    """The kind of a model's operation in the conventions' metric names."""
    return "embeddings" if identified["gen_ai.operation.name"] == "embeddings" else "inference"
