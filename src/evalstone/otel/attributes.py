"""Scores, judges and targets as attributes of OpenTelemetry: the GenAI semantic conventions, and `evalstone.…` for what
these don't name. Texts are redacted, on one line, and cut."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from evalstone._core.code_identity import brief
from evalstone._core.display import safe, visible
from evalstone._core.redaction import masked, redacted
from evalstone.errors import EvalstoneError, TargetError
from evalstone.judges.base import Judge
from evalstone.judges.decision import DecisionJudge
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.judges.logging import LoggingJudge
from evalstone.judges.model import ModelJudge
from evalstone.models.catalog import split_model, url_parts
from evalstone.models.model import Model
from evalstone.models.provider import ChatMessage
from evalstone.questions.base import Question
from evalstone.scorers import Scorer
from evalstone.types import (
    OUTCOME_NAMES,
    Failed,
    Record,
    Sample,
    Score,
    Skipped,
    Usage,
    scorer_name,
    trace_metadata,
    without_fingerprints,
)

Attributes: TypeAlias = dict[str, str | bool | int | float]

EXPLANATION = 2_000
"""The most characters of an explanation."""
NAME = 200
"""The most characters of a name."""
CONTENT = 20_000
"""The most characters of a message to or from a model."""
SKIPPED = "skipped"
OTHER = "_OTHER"
"""The conventions' value for an unknown kind of error."""
_PROVIDERS = {
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers, where evalstone's differ."""
_FOLDERS = re.compile(r"^[^:@ ]*[/\\](?=[^/\\:]+\.py:)")
_TRACE_ID, _SPAN_ID = re.compile("(?!0{32})[0-9a-f]{32}"), re.compile("[0-9a-f]{16}")


def source_of(sample: Sample) -> dict[str, str]:
    """The valid entries of a sample's `metadata["trace"]`: `trace_id`, `span_id`, `response_id`, `entity` and
    `service`. IDs have lower-case hexadecimal digits, and that of a trace is not zero."""
    source: dict[str, str] = {}
    for name, text in trace_metadata(sample).items():
        pattern = {"trace_id": _TRACE_ID, "span_id": _SPAN_ID}.get(str(name))
        if isinstance(text, str) and text and (pattern is None or pattern.fullmatch(text)):
            source[str(name)] = text
    return source


def scorer_attributes(record: Record) -> Attributes:
    """The name of the record's scorer."""
    return {"gen_ai.evaluation.name": safe(without_fingerprints(record.signature), NAME)}


def evaluation(record: Record, sample: Sample, scorer: Scorer | None) -> tuple[str, Attributes]:
    """The body and the attributes of a record's `gen_ai.evaluation.result` event.

    The name, target, evaluator's source and version, score, explanation and `error.type` are in the form in which
    pydantic-evals emits them. scorer: what made the record, for the label of its score and its parameters.
    """
    outcome, source, shown = record.outcome, source_of(sample), scorer_attributes(record)
    name = str(shown["gen_ai.evaluation.name"])
    attributes: Attributes = {
        **shown,
        "gen_ai.evaluation.evaluator.source": _evaluator(record, scorer),
        "gen_ai.evaluation.evaluator.version": record.signature.rpartition("@")[2],
        "evalstone.scorer": safe(record.scorer, NAME),
        "evalstone.signature": safe(record.signature, NAME),
        "evalstone.sample.id": safe(record.sample_id, NAME),
        "evalstone.outcome": OUTCOME_NAMES[type(outcome)],
    }
    if record.trial is not None:
        attributes["evalstone.trial"] = record.trial
    if "entity" in source:
        attributes["gen_ai.evaluation.target"] = safe(source["entity"], NAME)
    if "response_id" in source:
        attributes["gen_ai.response.id"] = safe(source["response_id"], NAME)
    match outcome:
        case Score(value, reason, scale=scale):
            attributes |= {"gen_ai.evaluation.score.value": float(value), "evalstone.score.scale": float(scale or 1)}
            if label := _label(outcome, scorer):
                attributes["gen_ai.evaluation.score.label"] = label
            body = f"evaluation: {name}={value:g}"
        case Skipped(reason):
            attributes["gen_ai.evaluation.score.label"] = SKIPPED
            body = f"evaluation: {name} skipped: {safe(reason, NAME)}"
        case Failed(reason):
            reason = masked(reason)
            attributes["error.type"] = failure_type(record)
            body = f"evaluation: {name} failed: {safe(reason, NAME)}"
    if reason:
        attributes["gen_ai.evaluation.explanation"] = safe(reason, EXPLANATION)
    return body, attributes


def _evaluator(record: Record, scorer: Scorer | None) -> str:
    """The scorer's name and the parameters that differ from their defaults, as JSON."""
    arguments: dict[str, Any] | None = None
    if scorer is not None:
        arguments = {name: _argument(value) for name, value in scorer.changed_parameters()} or None
    return json.dumps(
        {"name": safe(scorer_name(record.signature), NAME), "arguments": arguments}, separators=(",", ":")
    )


def _argument(value: object) -> str | bool | int | float | None:
    """A parameter as JSON, which has no NaN and no infinity."""
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return safe(value if isinstance(value, str) else brief(value), NAME)


def _label(score: Score, scorer: Scorer | None) -> str:
    """The label of a score in the scorer's interpretation; "" if it has none."""
    interpretation = () if scorer is None else scorer.interpretation
    return next((safe(meaning, NAME) for floor, meaning in interpretation if score.fraction >= floor), "")


def failure_type(record: Record) -> str:
    """`error.type` of a failed record: the exception of the scorer's own code, or the part that failed."""
    outcome = record.outcome
    if not isinstance(outcome, Failed):
        return ""
    if outcome.exception is not None:
        return safe(outcome.exception, NAME)
    if outcome.by_target:
        return TargetError.__name__
    return "JudgeError" if any(call.answer is None for call in record.calls) else OTHER


def error_type(error: BaseException | type[BaseException]) -> str:
    """`error.type` of an exception: its class, with its module unless it is Python's or evalstone's."""
    kind = error if isinstance(error, type) else type(error)
    known = kind.__module__ == "builtins" or issubclass(kind, EvalstoneError | asyncio.CancelledError)
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def target_name(name: str) -> str:
    """The name or identity of a target, without the folders of its file."""
    return safe(_FOLDERS.sub("", name), NAME)


def model_of(judge: Judge) -> Model[Any] | None:
    """The model of a judge; None if it isn't a model."""
    while isinstance(judge, LoggingJudge):
        judge = judge.judge
    return judge if isinstance(judge, Model) else None


def model_attributes(model: Model[Any]) -> Attributes:
    """The attributes that identify a model's operation on spans and metrics."""
    provider, name = split_model(model.model)
    found: Attributes = {
        "gen_ai.operation.name": _operation(model),
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": safe(name, NAME),
    }
    if url := model.url:
        parts = url_parts(url)
        found["server.address"] = safe(parts.hostname or "", NAME)
        found["server.port"] = parts.port or (443 if parts.scheme == "https" else 80)
    return found


def _operation(model: Model[Any]) -> str:
    """What a model does; "decide" is none of the values that OpenTelemetry defines."""
    kinds = ((EmbeddingModel, "embeddings"), (DecisionJudge, "decide"))
    return next((name for kind, name in kinds if isinstance(model, kind)), "chat")


def request_attributes(model: Model[Any], question: Question[Any], repeat: int) -> Attributes:
    """The settings of a request to a model."""
    if not isinstance(model, ModelJudge):
        return {}
    settings = model.settings_for(question, repeat)
    found: Mapping[str, float | None] = {
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.request.max_tokens": settings.max_tokens,
    }
    return {"gen_ai.output.type": "json", **{name: value for name, value in found.items() if value is not None}}


def usage_attributes(usage: Usage, cost: float | None) -> Attributes:
    """The tokens and the cost of a call, as far as known."""
    found: Attributes = {}
    if usage.input or usage.output:
        found |= {"gen_ai.usage.input_tokens": usage.input, "gen_ai.usage.output_tokens": usage.output}
    if usage.cached:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if cost is not None:
        found["evalstone.cost"] = cost
    return found


def messages(said: Iterable[ChatMessage | tuple[str, str]], *, finish_reason: str = "") -> str:
    """Messages as JSON for `gen_ai.input.messages`; with a finish_reason, for `gen_ai.output.messages`."""
    pairs = ((one.role, one.content) if isinstance(one, ChatMessage) else one for one in said)
    ended = {"finish_reason": finish_reason} if finish_reason else {}
    rows = [{"role": role, "parts": [{"type": "text", "content": _content(text)}], **ended} for role, text in pairs]
    return json.dumps(rows, ensure_ascii=False)


def _content(text: str) -> str:
    text = redacted(text)  # before it is cut, so that no part of a secret is left
    shown = visible(text[:CONTENT])
    return shown if len(text) <= CONTENT and len(shown) <= CONTENT else f"{shown[: CONTENT - 1]}…"
