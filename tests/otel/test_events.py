"""Every score as a `gen_ai.evaluation.result` event: its attributes, its parent, and what becomes of hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace

import evalstone
import evalstone.otel
from evalstone import Failed, Record, Sample, Score, ScriptedJudge, Skipped
from evalstone._core.redaction import register
from evalstone.otel.attributes import EXPLANATION, NAME, evaluation
from evalstone.scorers import Scorer, parse_scorers
from tests.otel.emitted import Emitted, Event, gen_ai, ids

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SOURCE = {"trace_id": TRACE, "span_id": SPAN, "response_id": "chatcmpl-1", "entity": "my_agent", "service": "shop"}


class Share(Scorer):
    """half_score of it."""

    name = "share"
    version = 2
    scale: float = 4.0
    expected: str = "x"
    words: tuple[str, ...] = ()
    interpretation = ((0.75, "most"), (0.25, "half"), (0.0, "little"))

    def score(self, *, output: str) -> Score:
        return Score(2.0, "half of it", scale=4.0)


class Broken(Scorer):
    """Raises."""

    name = "broken"

    def score(self, *, output: str) -> Score:
        raise KeyError("no")


def event_of(emitted: Emitted, scorer: Any, sample: Sample, **more: Any) -> Event:
    with emitted.enabled():
        evalstone.score(scorer, sample, **more)
    (event,) = emitted.events
    return event


def source_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The name and the arguments of the scorer, as the attributes have them."""
    return json.loads(gen_ai(attributes)["evaluation.evaluator.source"])


def test_a_score_has_what_pydantic_evals_emits_for_an_equal_evaluation(emitted: Emitted) -> None:
    # Recorded from pydantic-evals 2.62.0: an evaluator Share(expected="Paris") that returns
    # EvaluationReason(0.5, "half of it"), with get_evaluator_version "2", on a function my_agent.
    theirs = {
        "gen_ai.evaluation.target": "my_agent",
        "gen_ai.evaluation.name": "Share",
        "gen_ai.evaluation.evaluator.source": '{"name":"Share","arguments":["Paris"]}',
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.explanation": "half of it",
        "gen_ai.evaluation.evaluator.version": "2",
    }
    sample = Sample(id="s", output="Paris", metadata={"trace": SOURCE})
    event, name = event_of(emitted, Share(expected="Paris"), sample), "share(expected=Paris)"
    assert event.name.removeprefix("gen_ai.") == "evaluation.result"
    assert event.body == f"evaluation: {name}=2"
    assert {name: type(event.attributes[name]) for name in theirs} == {name: type(v) for name, v in theirs.items()}
    signature = Share(expected="Paris").signature
    expected = {
        **theirs,
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.evaluator.source": '{"name":"share","arguments":{"expected":"Paris"}}',
        "gen_ai.evaluation.score.value": 2.0,
        "gen_ai.evaluation.score.label": "half",
        "gen_ai.response.id": "chatcmpl-1",
        "evalstone.score.scale": 4.0,
        "evalstone.scorer": "share",
        "evalstone.signature": signature,
        "evalstone.sample.id": "s",
        "evalstone.outcome": "score",
    }
    assert event.attributes == expected


@pytest.mark.parametrize(
    ("value", "label"), [(4.0, "most"), (3.0, "most"), (2.99, "half"), (1.0, "half"), (0.9, "little")]
)
def test_the_label_is_that_of_the_score_s_share_of_its_scale(value: float, label: str) -> None:
    record = Record(sample_id="s", scorer="share", signature="share@2", outcome=Score(value, scale=4.0))
    _, attributes = evaluation(record, Sample(output="x"), Share())
    assert gen_ai(attributes)["evaluation.score.label"] == label


def test_a_failure_has_what_pydantic_evals_emits_for_one(emitted: Emitted) -> None:
    # Recorded from pydantic-evals 2.62.0: an evaluator Broken that raises KeyError("no").
    theirs = {
        "gen_ai.evaluation.target": "my_agent",
        "gen_ai.evaluation.evaluator.source": '{"name":"Broken","arguments":null}',
        "error.type": "KeyError",
        "gen_ai.evaluation.explanation": "KeyError: 'no'",
    }
    event = event_of(emitted, Broken(), Sample(output="x", metadata={"trace": SOURCE}))
    assert event.severity == "WARN"
    assert event.body.startswith("evaluation: broken failed")
    assert gen_ai(event.attributes)["evaluation.explanation"].startswith(gen_ai(theirs)["evaluation.explanation"])
    assert source_of(event.attributes) == {"name": "broken", "arguments": None}
    assert event.attributes["error.type"] == "KeyError"
    assert not [name for name in event.attributes if "score" in name.replace("evalstone.scorer", "")]


def test_a_skip_has_a_label_and_no_score_and_no_error(emitted: Emitted) -> None:
    event = event_of(emitted, "faithfulness", Sample(output="Paris."))
    assert gen_ai(event.attributes)["evaluation.score.label"] == event.attributes["evalstone.outcome"] == "skipped"
    assert (
        gen_ai(event.attributes)["evaluation.explanation"] == "faithfulness needs context (or tool results in messages)"
    )
    assert "evaluation.score.value" not in gen_ai(event.attributes)
    assert not {"error.type", "evalstone.score.scale"} & set(event.attributes)
    assert event.severity == "INFO"


def test_the_failure_of_a_judge_is_told_from_that_of_a_scorer(emitted: Emitted) -> None:
    sample = Sample(output="Paris.", context=["Paris."])
    event = event_of(emitted, "faithfulness", sample, judge=ScriptedJudge([{"wrong": 1}]))
    assert event.attributes["error.type"] == "JudgeError"


def test_the_parent_is_the_evaluated_span(emitted: Emitted) -> None:
    event = event_of(emitted, Share(), Sample(output="x", metadata={"trace": SOURCE}))
    assert event.parent == (int(TRACE, 16), int(SPAN, 16))
    (scored,) = emitted.named("score share")
    assert [(link.context.trace_id, link.context.span_id) for link in scored.links] == [event.parent]


def test_a_trace_without_a_span_is_the_event_s_own(emitted: Emitted) -> None:
    source = {"trace_id": TRACE, "response_id": "r1"}
    event = event_of(emitted, Share(), Sample(output="x", metadata={"trace": source}))
    assert event.parent == (int(TRACE, 16), 0)
    assert gen_ai(event.attributes)["response.id"] == "r1"


@pytest.mark.parametrize(
    "source",
    [
        {"trace_id": TRACE.upper(), "span_id": SPAN},
        {"trace_id": "0" * 32, "span_id": SPAN},
        {"trace_id": TRACE[1:], "span_id": SPAN},
        {"span_id": SPAN},
        {"trace_id": 7, "span_id": SPAN},
        TRACE,
        None,
    ],
)
def test_what_names_no_span_leaves_the_event_to_the_current_one(emitted: Emitted, source: Any) -> None:
    event = event_of(emitted, Share(), Sample(output="x", metadata={"trace": source}))
    (scored,) = emitted.named("score share")
    assert event.parent == ids(scored)
    assert not scored.links


def test_a_span_of_zeros_leaves_the_trace(emitted: Emitted) -> None:
    source = {"trace_id": TRACE, "span_id": "0" * 16}
    assert event_of(emitted, Share(), Sample(output="x", metadata={"trace": source})).parent == (int(TRACE, 16), 0)


def test_emit_takes_one_record_wherever_it_comes_from(emitted: Emitted) -> None:
    sample = Sample(id="s", output="Paris", metadata={"trace": SOURCE})
    scorer = Share(expected="Paris")
    record = evalstone.score(scorer, sample)
    with emitted.enabled():
        evalstone.otel.emit(record, sample, scorer)
        evalstone.otel.emit(replace(record), sample)
        with trace.get_tracer("app", tracer_provider=emitted.tracers).start_as_current_span("request") as span:
            evalstone.otel.emit(replace(record), Sample(id="s", output="Paris"))
        evalstone.otel.emit(replace(record), Sample(id="s", output="Paris"))
    whole, plain, current, alone = emitted.events
    assert whole.parent == plain.parent == (int(TRACE, 16), int(SPAN, 16))
    assert gen_ai(whole.attributes)["evaluation.score.label"] == "half"
    assert source_of(plain.attributes) == {"name": "share", "arguments": None}
    assert current.parent == (span.get_span_context().trace_id, span.get_span_context().span_id)
    assert alone.parent == (0, 0)


def test_a_score_is_emitted_once(emitted: Emitted) -> None:
    sample = Sample(id="s", output="Paris")
    with emitted.enabled():
        record = evalstone.score(Share(), sample)
        evalstone.otel.emit(record, sample)
    assert len(emitted.events) == 1
    assert [point.value for point in emitted.metric("evalstone.outcomes").values()] == [1]


def test_emit_counts_scores_by_scorer(emitted: Emitted) -> None:
    sample = Sample(id="s", output="Paris")
    record = evalstone.score(Share(), sample)
    failed = Record(sample_id="s", scorer="share", signature="share@2", outcome=Failed("no"))
    with emitted.enabled():
        for each in (record, replace(record), failed):
            evalstone.otel.emit(each, sample)
    ((found, point),) = emitted.metric("evalstone.score").items()
    assert gen_ai(dict(found)) == {"evaluation.name": "share"}
    assert len(found) == 1
    assert (point.count, point.sum) == (2, 1.0)
    counted = {
        dict(key)["evalstone.outcome"]: point.value for key, point in emitted.metric("evalstone.outcomes").items()
    }
    assert counted == {"score": 2, "failed": 1}
    errors = {dict(key).get("error.type") for key in emitted.metric("evalstone.outcomes")}
    assert errors == {None, "_OTHER"}


def test_secrets_and_what_terminals_obey_are_in_no_event() -> None:
    register("sk-verysecret0123456789")
    bad = "sk-verysecret0123456789 \x1b[31m \ud800 password=hunter22 \u202e"
    for outcome in (Score(1.0, reason=bad), Skipped(bad), Failed(bad)):
        sample = Sample(id=bad, output="x", metadata={"trace": {"entity": bad, "response_id": bad}})
        body, attributes = evaluation(
            Record(sample_id=bad, scorer="share", signature=f"share(expected={bad})@2", outcome=outcome), sample, None
        )
        text = json.dumps([body, attributes], ensure_ascii=False)
        assert "verysecret" not in text
        assert not {"\x1b", "\u202e"} & set(text)
        text.encode()
    assert "hunter22" not in str(gen_ai(attributes)["evaluation.explanation"])


def test_parameters_that_are_no_plain_values_are_named_by_a_hash() -> None:
    (scorer,) = parse_scorers([{"name": "faithfulness", "judge": "vllm/small(api_key=sk-abcdef123456)", "scale": 10}])
    record = Record(sample_id="s", scorer=scorer.name, signature=scorer.signature, outcome=Score(1.0, scale=10.0))
    _, attributes = evaluation(record, Sample(output="x"), scorer)
    assert source_of(attributes) == {"name": "faithfulness", "arguments": {"scale": 10}}
    long = Share(words=("a long list", "of words"))
    _, attributes = evaluation(replace(record, scorer=long.signature), Sample(output="x"), long)
    (hashed,) = source_of(attributes)["arguments"].values()
    assert re.fullmatch("[0-9a-f]{8}", hashed)


def half_score(reason: str) -> Score:
    return Score(0.5, reason, scale=1.0)


TEXT = st.text(max_size=30) | st.sampled_from(["x" * 50_000, "\ud800", "\x00", "0" * 32, TRACE, SPAN])
ANY = st.recursive(
    TEXT | st.none() | st.integers() | st.floats(), lambda one: st.lists(one) | st.dictionaries(TEXT, one)
)
SOURCES = st.dictionaries(st.sampled_from([*SOURCE, "other"]), ANY) | ANY


@settings(max_examples=60, deadline=None)
@given(SOURCES, TEXT, TEXT, st.sampled_from([half_score, Skipped, Failed]))
def test_whatever_a_sample_says_its_event_is_one(source: Any, sample: str, text: str, outcome: Any) -> None:
    record = Record(sample_id=sample, scorer="share", signature="share(expected=x; 12345678)@2", outcome=outcome(text))
    body, attributes = evaluation(record, Sample(id="s", output="x", metadata={"trace": source}), None)
    assert gen_ai(attributes)["evaluation.name"] == "share(expected=x)"
    longest = 6 * EXPLANATION  # what is invisible is written with six characters
    assert len(body) <= 6 * NAME + 100
    for value in attributes.values():
        assert isinstance(value, str | float | int)
        assert not isinstance(value, str) or len(value.encode()) <= 4 * longest
