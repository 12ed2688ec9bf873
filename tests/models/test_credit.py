"""Endpoints that want to be paid first: in which words they say so, and how that ends a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, ModelJudge, evaluate
from evalstone.errors import JudgeRefused, TargetUnavailable
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.models.model import LanguageModel
from evalstone.models.provider import ADD_CREDIT, NO_CREDIT
from evalstone.scorers import EmbeddingSimilarity
from evalstone.targets.http import HTTPTarget
from evalstone.targets.model import ModelTarget
from tests.serving import Response, Server, obliging, serving

ROWS = [{"id": f"s{number}", "output": f"Text number {number}."} for number in range(30)]


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


AFFORD = "This request requires more credits, or fewer max_tokens. You requested up to 9 tokens, but can only afford 3."
GEMINI = {"code": 429, "status": "RESOURCE_EXHAUSTED"}
NONE_LEFT = {"message": "Insufficient credits", "code": 402}

UNPAID = [
    (402, said("Insufficient credits. Add more using https://openrouter.ai/settings/credits", code=402)),
    (402, said(AFFORD, code=402)),
    (402, said("Insufficient Balance", type="unknown_error", code="invalid_request_error")),
    (402, {"error": "You have exceeded your monthly included credits for Inference Providers."}),
    (402, "<html>Payment Required</html>"),
    (429, said("You exceeded your current quota, please check your plan.", code="insufficient_quota")),
    (429, said("Your account is not active, please check your billing details.", code="billing_not_active")),
    (400, said("Billing hard limit has been reached.", code="billing_hard_limit_reached")),
    (401, said("You have insufficient quota", type="insufficient_quota")),
    (400, said("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.")),
    (400, said("You have reached your specified API usage limits. You will regain access on 2026-12-01.")),
    (429, said("Your account org-1 is suspended, please check your plan", type="exceeded_current_quota_error")),
    (429, said("余额不足或无可用资源包,请充值。", code="1113")),
    (
        412,
        said(
            "Account a is suspended, possibly due to reaching the monthly spending limit.", code="PRECONDITION_FAILED"
        ),
    ),
    (403, {"error": "Your team 16f2 has used all available credits. Please purchase more.", "code": "denied"}),
    (429, said("Your team has reached its monthly spending limit.")),
    (403, {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}),
    (400, said("Access denied, please make sure your account is in good standing.", code="Arrearage")),
    (403, said("The free tier of the model has been exhausted.", code="AllocationQuota.FreeTierOnly")),
    (403, said("The request failed because your account has an overdue balance.", code="AccountOverdueError")),
    (400, said("Budget has been exceeded! Current cost: 26.075, Max budget: 0.25", type="budget_exceeded")),
    (429, said("ExceededBudget: End User=e over budget. Spend=0.0008, Budget=0.0001", type="auth_error")),
    (429, said("Your prepayment credits are depleted. Please go to AI Studio.", **GEMINI)),
    (429, said("Your project has exceeded its monthly spending cap.", **GEMINI)),
    (403, said("用户额度不足, 剩余额度: $0.0", type="new_api_error", code="insufficient_user_quota")),
    (500, said("litellm.RateLimitError: OpenAIException - You exceeded your current quota: insufficient_quota")),
    (429, said("You are using a Trial key, which is limited to 1000 API calls / month.")),
    (200, {"choices": None, "error": NONE_LEFT}),
    (200, {"choices": None, "error": {"message": "Insufficient credits"}}),
    (200, {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    (200, {"choices": [{"error": NONE_LEFT, "finish_reason": "error"}]}),
]


@pytest.mark.parametrize(("status", "body"), UNPAID, ids=range(len(UNPAID)))
def test_an_account_without_credit_ends_the_run_at_once(status: int, body: Any) -> None:
    refusal = Response(status, body)
    with serving(lambda request, number: obliging(request, number) if number <= 3 else refusal) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=2)
        with pytest.raises(JudgeRefused, match="HTTP ") as ended:
            evaluate(ROWS, "toxicity", judge=judge, ledger=None, concurrency=1)
    assert str(ended.value).endswith(f"; {NO_CREDIT}")
    assert (run := ended.value.run) is not None
    assert run.ending.name == "judge_refused"
    assert (run["toxicity"].n_score, run["toxicity"].n_failed) == (3, 0)
    assert len(server.requests) <= 5  # the next one may have been sent


PASSING = [
    Response(
        429, said("You exceeded your current quota, check your plan and billing details. Retry in 0.3s.", **GEMINI)
    ),
    Response(
        429, said("Rate limit reached. Limit: 3 / min. Add a payment method to your account at /account/billing.")
    ),
    Response(429, said("You are using a Trial key, which is limited to 40 API calls / minute.")),
    Response(429, said("Rate limit reached for model m. Need more tokens? Upgrade to Dev Tier at /settings/billing")),
    Response(429, said("Rate limit exceeded: free-models-per-min. Add 10 credits to unlock 1000 requests per day")),
    Response(402, said("A prior charge is still being reconciled. Please retry shortly."), {"Retry-After": "0"}),
    *(Response(status, "<html>Web server is down</html>") for status in (408, 409, 425, 507, 525, 530)),
]


@pytest.mark.parametrize("refusal", PASSING, ids=range(len(PASSING)))
def test_what_may_pass_is_waited_for(refusal: Response) -> None:
    with serving(lambda request, number: refusal if number == 1 else obliging(request, number)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        run = evaluate(ROWS[:1], "toxicity", judge=judge, ledger=None)
    assert (run["toxicity"].n_score, len(server.requests)) == (1, 2)


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_judged_text_that_a_refusal_repeats_ends_no_run(status: int) -> None:
    text = "The bank said that my account has insufficient funds, and the flagged schema has a spending limit."
    rows = [{"id": "bank", "output": text}, *ROWS[:3]]

    def behave(request: dict[str, Any], number: int) -> Any:
        repeats = text in request["messages"][-1]["content"] and (status == 400 or number == 1)
        return Response(status, said(f"Can't read the message {text!r}")) if repeats else obliging(request, number)

    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        run = evaluate(rows, "toxicity", judge=judge, ledger=None, concurrency=1)
    assert [isinstance(record.outcome, Failed) for record in run] == [status == 400, False, False, False]


def test_a_run_resumes_where_the_credit_ran_out(tmp_path: Path) -> None:
    paid = 3

    def behave(request: dict[str, Any], number: int) -> Any:
        return obliging(request, number) if number <= paid else Response(*UNPAID[0])

    def evaluated(server: Server) -> Any:
        judge = ModelJudge("vllm/m", base_url=server.url)
        return evaluate(ROWS[:5], "toxicity", judge=judge, ledger=tmp_path / "l.db", concurrency=1)

    with serving(behave) as server:
        with pytest.raises(JudgeRefused):
            evaluated(server)
        paid = 100
        run = evaluated(server)
    assert (run["toxicity"].n_score, run["toxicity"].n_failed) == (5, 0)
    assert len(server.requests) <= 5 + 2


def test_an_embedding_model_without_credit_ends_the_run() -> None:
    with serving(lambda request, number: Response(*UNPAID[0])) as server:
        scorer = EmbeddingSimilarity(EmbeddingModel("vllm/m", base_url=server.url))
        rows = [{"output": "a", "reference": "b"}] * 3
        with pytest.raises(JudgeRefused, match=f"{ADD_CREDIT}$"):
            evaluate(rows, scorer, ledger=None, concurrency=1)
    assert len(server.requests) == 1


def test_a_target_without_credit_ends_the_run_and_says_what_to_do() -> None:
    with serving(lambda request, number: Response(*UNPAID[0])) as server:
        target = ModelTarget(model=LanguageModel("vllm/m", base_url=server.url))
        with pytest.raises(TargetUnavailable, match=f"{NO_CREDIT}$"):
            evaluate([{"input": "a", "reference": "a"}], "contains", target=target, ledger=None)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 402])
def test_a_service_may_say_so_about_one_sample(status: int) -> None:
    poor = Response(status, {"error": "insufficient funds"})
    with serving(lambda request, _: poor if request["q"] == "a" else {"answer": request["q"]}) as server:
        target = HTTPTarget(url=f"{server.url}/ask", body={"q": "{input}"}, output="answer")
        rows = [{"input": text, "reference": "b"} for text in "ab"]
        run = evaluate(rows, "contains", target=target, ledger=None)
    first, last = run.records
    assert isinstance(first.outcome, Failed)
    assert first.outcome.error.endswith(f"(HTTP {status}: insufficient funds)")
    assert last.value == 1


def test_a_server_that_never_does_something_is_not_asked_again() -> None:
    unsupported = Response(501, said("This server does not support it.", type="not_supported_error"))
    with serving(lambda request, number: unsupported) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        run = evaluate(ROWS[:1], "toxicity", judge=judge, ledger=None)
    outcome = run.records[0].outcome
    assert isinstance(outcome, Failed)
    assert "HTTP 501" in outcome.error
    assert len(server.requests) == 1
