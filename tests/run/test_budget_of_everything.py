"""What is billed is within the budget and is the cost of the run, with every kind of judge, scorer and target, through
corrections, refused requests, replies without usage, and reruns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstone import ModelJudge, Scorer, evaluate
from evalstone._core.json import content_hash
from evalstone.judges import Cascade, EmbeddingModel, Judge, Panel, SelfConsistency
from evalstone.models.model import LanguageModel
from evalstone.scorers import EmbeddingSimilarity
from evalstone.targets import Answer, FunctionTarget, ModelTarget
from tests.serving import Response, completion, obliging, serving

PRICES = (1.0, 10.0)
OF_A_TARGET = 0.0005
SAMPLES = [
    {"id": f"s{n}", "input": f"question {n}", "output": f"answer {n} says this", "context": [f"answer {n} says this"]}
    for n in range(6)
]


class Endpoint:
    """Bills by the token. A share of the replies is malformed, refused with HTTP 429, or has no usage."""

    def __init__(self, malformed: float, refused: float, silent: float) -> None:
        self.malformed, self.refused, self.silent = malformed, refused, silent
        self.billed, self.said_nothing = 0.0, False

    def __call__(self, request: dict[str, Any], number: int) -> Any:
        if _share(["429", number]) < self.refused:
            return Response(429, {"error": {"message": "busy"}}, {"Retry-After": "0.001"})
        if "input" in request:
            usage = {"prompt_tokens": sum(len(text) for text in request["input"]) // 4}
            self._bill(usage)
            vectors = [{"index": place, "embedding": [1.0, 2.0]} for place in range(len(request["input"]))]
            return {"data": vectors, "usage": usage}
        text, schema = "an answer of some words", ""
        if "response_format" in request:
            text = obliging(request, number)["choices"][0]["message"]["content"]
            schema = json.dumps(request["response_format"]["json_schema"]["schema"], separators=(",", ":"))
            if _share(["malformed", request["messages"]]) < self.malformed:
                text = text[: len(text) // 2]
        asked = sum(len(message["content"].encode()) for message in request["messages"]) + len(schema)
        usage = {"prompt_tokens": asked // 4, "completion_tokens": len(text) // 4}
        self._bill(usage)
        reply = completion(text) | {"usage": usage}
        if _share(["silent", request["messages"]]) < self.silent:
            self.said_nothing = True
            del reply["usage"]
        return reply

    def _bill(self, usage: dict[str, int]) -> None:
        tokens = usage["prompt_tokens"] * PRICES[0] + usage.get("completion_tokens", 0) * PRICES[1]
        self.billed += tokens * 1e-6


def _share(value: object) -> float:
    return int(content_hash(value)[:8], 16) / 16**8


def judge_of(kind: str, url: str) -> Judge:
    one, two, three = (ModelJudge(f"vllm/{name}", base_url=url, prices=PRICES) for name in "abc")
    kinds: dict[str, Judge] = {
        "model": one,
        "cascade": Cascade(one, two, threshold=1.0),
        "panel": Panel(one, two, three),
        "self-consistency": SelfConsistency(one, 3),
    }
    return kinds[kind]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["model", "cascade", "panel", "self-consistency"]),
    scorer=st.sampled_from(["faithfulness", "answer_relevancy", "context_relevance"]),
    embeddings=st.booleans(),
    target=st.sampled_from(["none", "function", "model"]),
    shares=st.tuples(st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.15]), st.sampled_from([0.0, 0.0, 0.3])),
    concurrency=st.sampled_from([1, 4, 16]),
    budgets=st.lists(st.floats(OF_A_TARGET, 0.03), min_size=1, max_size=3).map(sorted),
)
@pytest.mark.slow
def test_what_is_billed_is_within_the_budget_and_is_the_cost_of_the_run(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    scorer: str,
    embeddings: bool,
    target: str,
    shares: tuple[float, float, float],
    concurrency: int,
    budgets: list[float],
) -> None:
    endpoint, ledger = Endpoint(*shares), Path(tmp_path_factory.mktemp("ledger")) / "l.db"

    def agent(*, input: str) -> Answer:
        endpoint.billed += OF_A_TARGET
        return Answer(output=f"{input} answered", cost=OF_A_TARGET)

    with serving(endpoint) as server:
        scorers: list[str | Scorer] = [scorer]
        if embeddings:
            embedder = EmbeddingModel("vllm/e", base_url=server.url, prices=PRICES)
            scorers.append(EmbeddingSimilarity(embedder=embedder))
        targets = {
            "none": None,
            "function": FunctionTarget(function=agent, label="agent", version="1"),
            "model": ModelTarget(model=LanguageModel("vllm/t", base_url=server.url, prices=PRICES)),
        }
        samples = [{**sample, "reference": "an answer"} for sample in SAMPLES]
        if target != "none":
            samples = [{name: value for name, value in each.items() if name != "output"} for each in samples]
        for budget in budgets:
            options: dict[str, Any] = {"judge": judge_of(kind, server.url), "target": targets[target]}
            run = evaluate(samples, scorers, budget=budget, ledger=ledger, concurrency=concurrency, **options)
            assert endpoint.billed <= budget + 1e-12
            if run.complete:
                break
            if not endpoint.said_nothing:
                assert run.cost == pytest.approx(endpoint.billed)
