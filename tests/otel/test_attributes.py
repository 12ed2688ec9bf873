"""What attributes say of sources, failures, judges and tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, ModelJudge, Record, Sample, Score
from evalstone.judges import LoggingJudge
from evalstone.otel.attributes import (
    evaluation,
    failure_type,
    messages,
    model_attributes,
    model_of,
    source_of,
    usage_attributes,
)
from evalstone.types import TARGET_FAILED, JudgeCall, Usage
from tests.otel.emitted import gen_ai

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ({"trace_id": TRACE, "span_id": "b7ad6b7169203331"}, ["trace_id", "span_id"]),
        ({"trace_id": f"{TRACE}0", "span_id": "b7ad6b71692033310"}, []),
        ({"trace_id": TRACE.upper()}, []),
        ({"trace_id": "0" * 32, "entity": ""}, []),
        ({"entity": "shop", "service": 5}, ["entity"]),
        ("no mapping", []),
    ],
)
def test_of_a_source_only_what_is_well_formed_is_known(known: Any, found: list[str]) -> None:
    assert list(source_of(Sample(output="x", metadata={"trace": known}))) == found


def failed(error: str, *answers: int | None) -> Record:
    steps = tuple(JudgeCall(question="q", fingerprint="f", judge="j", answer=answer) for answer in answers)
    return Record(sample_id="1", scorer="s", signature="s@1", outcome=Failed(error), calls=steps)


def test_who_failed_is_the_type_of_a_failure() -> None:
    found = [failure_type(each) for each in (failed(f"{TARGET_FAILED}: no"), failed("no", 1, None), failed("no", 1))]
    assert found == ["TargetError", "JudgeError", "_OTHER"]


def test_the_version_of_a_scorer_comes_after_its_parameters() -> None:
    record = Record(sample_id="1", scorer="regex", signature="regex(pattern='a@b')@3", outcome=Score(1.0))
    _, found = evaluation(record, Sample(output="x"), None)
    assert gen_ai(found)["evaluation.evaluator.version"] == "3"


@pytest.mark.parametrize(
    ("url", "port"), [("http://localhost/v1", 80), ("https://localhost/v1", 443), ("http://localhost:8000/v1", 8000)]
)
def test_a_port_that_a_url_does_not_name_is_that_of_its_scheme(tmp_path: Path, url: str, port: int) -> None:
    judge = ModelJudge("openai/x", base_url=url, api_key="sk-0123456789abc")
    model = model_of(LoggingJudge(LoggingJudge(judge, tmp_path / "one.jsonl"), tmp_path / "two.jsonl"))
    assert model is judge
    assert model is not None
    assert model_attributes(model)["server.port"] == port


def test_tokens_are_known_where_there_are_any() -> None:
    assert gen_ai(usage_attributes(Usage(7, 0), None)) == {"usage.input_tokens": 7, "usage.output_tokens": 0}
    assert usage_attributes(Usage(), 0.0) == {"evalstone.cost": 0.0}


def test_only_what_a_model_says_has_a_reason_why_it_ended() -> None:
    assert "finish_reason" not in json.loads(messages([("user", "q")]))[0]
    assert json.loads(messages([("assistant", "a")], finish_reason="stop"))[0]["finish_reason"] == "stop"
