"""Budgets and limits hold together, whatever the concurrency, the rate and the share of malformed replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstone import ModelJudge, Run, evaluate
from evalstone._core.json import content_hash
from evalstone.models.limits import Limits
from evalstone.results.endings import BUDGET, COMPLETE, MAX_REQUESTS
from tests.serving import Server, completion, obliging, serving

PRICES = (1.0, 10.0)
SAMPLES = [
    {"id": f"s{n}", "input": f"question {n}", "output": f"answer {n} says this", "context": [f"answer {n} says this"]}
    for n in range(16)
]


class Endpoint:
    """An endpoint that bills each reply by its tokens, and tokens of reasoning. A share of the replies, by request, is
    malformed."""

    def __init__(self, share: float, reasoning: int = 0) -> None:
        self.share = share
        self.reasoning = reasoning
        self.billed = 0.0

    def __call__(self, request: dict[str, Any], number: int) -> Any:
        reply = obliging(request, number)
        text = reply["choices"][0]["message"]["content"]
        if int(content_hash(request["messages"])[:8], 16) < self.share * 16**8:
            text = text[: len(text) // 2]
        asked = sum(len(message["content"].encode()) for message in request["messages"])
        asked += len(json.dumps(request["response_format"]["json_schema"]["schema"], separators=(",", ":")))
        usage = {"prompt_tokens": asked // 4, "completion_tokens": len(text) // 4 + self.reasoning}
        self.billed += (usage["prompt_tokens"] * PRICES[0] + usage["completion_tokens"] * PRICES[1]) * 1e-6
        return completion(text) | {"usage": usage}


def scored(server: Server, limits: Limits, concurrency: int, budget: float | None = None) -> Run:
    judge = ModelJudge("vllm/m", base_url=server.url, prices=PRICES, limits=limits)
    return evaluate(SAMPLES, "context_relevance", judge=judge, ledger=None, concurrency=concurrency, budget=budget)


def unlimited(share: float) -> tuple[int, float]:
    """The requests and the cost of a run without limits."""
    endpoint = Endpoint(share)
    with serving(endpoint) as server:
        scored(server, Limits(), 4)
    return len(server.requests), endpoint.billed


SHARES = (0.0, 0.2, 0.5)


@pytest.fixture(scope="module")
def needed() -> dict[float, tuple[int, float]]:
    return {share: unlimited(share) for share in SHARES}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    share=st.sampled_from(SHARES),
    part=st.none() | st.floats(0, 2),
    max_requests=st.none() | st.integers(0, 40),
    concurrency=st.integers(1, 20),
    max_concurrency=st.none() | st.integers(1, 8),
    requests_per_minute=st.none() | st.sampled_from([6_000, 30_000]),
)
@pytest.mark.slow
def test_no_limit_is_exceeded_and_none_ends_a_run_early(
    needed: dict[float, tuple[int, float]],
    share: float,
    part: float | None,
    max_requests: int | None,
    concurrency: int,
    max_concurrency: int | None,
    requests_per_minute: int | None,
) -> None:
    requests, cost = needed[share]
    budget = None if part is None else part * cost
    limits = Limits(max_concurrency=max_concurrency, requests_per_minute=requests_per_minute, max_requests=max_requests)
    endpoint = Endpoint(share)
    with serving(endpoint) as server:
        run = scored(server, limits, concurrency, budget)
    sent = len(server.requests)
    assert sent <= (requests if max_requests is None else min(max_requests, requests))
    assert run.cost == pytest.approx(endpoint.billed)
    if budget is not None:
        assert endpoint.billed <= budget + 1e-12
    if run.ending is not BUDGET:
        assert sent == (requests if max_requests is None else min(max_requests, requests))
        assert run.ending is (COMPLETE if sent == requests else MAX_REQUESTS)


def test_a_run_with_a_budget_for_its_corrections_is_complete(needed: dict[float, tuple[int, float]]) -> None:
    requests, cost = needed[0.5]
    with serving(Endpoint(0.5)) as server:
        run = scored(server, Limits(), 1, 3 * cost)
    assert (run.ending, len(server.requests)) == (COMPLETE, requests)
    assert requests > len(SAMPLES)


def test_a_correction_that_the_budget_does_not_cover_is_not_sent_and_the_reply_before_it_is_counted() -> None:
    endpoint = Endpoint(1.0)
    with serving(endpoint) as server:
        first = scored(server, Limits(), 1, 0.002)
    assert first.ending is BUDGET
    assert 0 < endpoint.billed <= 0.002
    assert first.cost == pytest.approx(endpoint.billed)
    assert len(first) == 0


@pytest.mark.parametrize("concurrency", [1, 20])
def test_what_the_first_call_cost_beyond_its_estimate_is_reserved_for_the_next(concurrency: int) -> None:
    endpoint = Endpoint(0, reasoning=1000)  # each call costs about a cent, ten times its estimate
    with serving(endpoint) as server:
        run = scored(server, Limits(), concurrency, 0.05)
    assert (run.ending, len(server.requests), len(run)) == (BUDGET, 4, 4)
    assert endpoint.billed <= 0.05
    assert run.cost == pytest.approx(endpoint.billed)


def test_only_the_first_call_may_exceed_a_budget() -> None:
    endpoint = Endpoint(0, reasoning=1000)
    with serving(endpoint) as server:
        scored(server, Limits(), 20, 0.005)
    assert len(server.requests) == 1
