"""The identity of a judge: every setting that may change an answer, and no secret."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from evalstone.api import aevaluate, evaluate
from evalstone.errors import ConfigError
from evalstone.judges import ModelJudge, Panel, ScriptedJudge
from evalstone.ledger.store import Ledger
from evalstone.results.compare import compare
from evalstone.results.files import write_run
from evalstone.results.run import Run
from evalstone.results.views.run import run_view
from tests.serving import Behaviour, Response, obliging, serving

CHANGED: dict[str, Any] = {
    "model": "vllm/other",
    "base_url": "http://other/v1",
    "temperature": None,
    "seed": 0,
    "max_tokens": 100,
    "reasoning_effort": "low",
    "language": "German",
    "logprobs": True,
    "context_window": 8_000,
    "headers": {"x-route": "llama-8b"},
}
"""Settings that may change an answer, or the questions that are asked."""

SAME: dict[str, Any] = {
    "api_key": "k",
    "retries": 0,
    "timeout": 1.0,
    "total_timeout": 1.0,
    "prices": (1.0, 1.0),
    "max_reply_bytes": 9,
}
"""Settings that only decide whether and when there is an answer, and what it costs."""


def test_every_setting_is_known_to_change_answers_or_not() -> None:
    settings = {field.name for field in dataclasses.fields(ModelJudge) if field.init}
    assert settings == {*CHANGED, *SAME, "limits"}


@pytest.mark.parametrize("name", CHANGED)
def test_a_setting_that_may_change_answers_is_in_the_identity(name: str) -> None:
    judge = ModelJudge("vllm/m")
    other = dataclasses.replace(judge, **{name: CHANGED[name]})
    assert other.identity != judge.identity
    assert other != judge
    assert pickle.loads(pickle.dumps(other)) == other


@pytest.mark.parametrize("name", SAME)
def test_any_other_setting_is_not(name: str) -> None:
    judge = ModelJudge("vllm/m")
    other = dataclasses.replace(judge, **{name: SAME[name]})
    assert other.identity == judge.identity
    assert other == judge


def test_equal_numbers_are_one_setting() -> None:
    assert ModelJudge("vllm/m", temperature=1).identity == ModelJudge("vllm/m", temperature=1.0).identity
    assert ModelJudge("vllm/m", temperature=0).identity == "vllm/m"
    assert ModelJudge("vllm/m", temperature=0.5).identity == "vllm/m(temperature=0.5)"


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Proxy-Authorization", "cf-aig-authorization", "Cookie", "X-API-Key", "api-key", "x-goog-api-key",
     "Ocp-Apim-Subscription-Key", "X-Auth-Token", "x-amz-security-token", "CF-Access-Client-Secret", "Helicone-Auth",
     "x-functions-key", "x-portkey-api-key", "Authentication", "x-api-token", "x-jwt-assertion", "x-signature"],
)  # fmt: skip
def test_a_header_that_carries_a_credential_is_not_in_the_identity(name: str) -> None:
    assert ModelJudge("vllm/m", headers={name: "hidden"}).identity == "vllm/m"


@pytest.mark.parametrize(
    "name", ["x-route", "X-Portkey-Config", "x-virtual-key", "OpenAI-Organization", "anthropic-beta"]
)
def test_a_header_that_may_route_is_in_the_identity_as_a_hash(name: str) -> None:
    judges = [ModelJudge("vllm/m", headers={name: text}) for text in ("llama-8b", "llama-70b")]
    assert judges[0].identity != judges[1].identity
    for judge in judges:
        assert re.fullmatch(r"vllm/m\(headers=[0-9a-f]{32}\)", judge.identity)
        assert "llama" not in judge.identity + repr(judge)
    upper = ModelJudge("vllm/m", headers={name.upper(): "llama-8b", "Authorization": "Bearer x"})
    assert upper.identity == judges[0].identity


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-5.1", "OPENAI_BASE_URL"),
        ("ollama/llama3", "OLLAMA_BASE_URL"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_BASE_URL"),
        ("google/gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL"),
    ],
)
def test_an_endpoint_from_the_environment_is_in_the_identity(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert ModelJudge(model).identity == model
    monkeypatch.setenv(variable, "https://user:secret@proxy.example/v1/")
    assert ModelJudge(model).identity.startswith(f"{model}(https://proxy.example/v1")


def refusing(*names: str) -> Behaviour:
    """A server that refuses these settings."""

    def behave(request: dict[str, Any], number: int) -> Any:
        for name in names:
            if name in request:
                return Response(400, {"error": {"message": f"Unsupported parameter: {name!r}"}})
        return obliging(request, number)

    return behave


SAMPLES = [{"id": f"s{number}", "input": "q", "output": f"text {number}"} for number in range(4)]


def run_with(url: str, ledger: Any = None, samples: Any = SAMPLES, judge: Any = None) -> Run:
    return evaluate(samples, ["toxicity"], judge=judge or ModelJudge("vllm/m", base_url=url), ledger=ledger)


def test_a_refused_setting_is_visible_in_answers_records_and_the_run(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    with serving(refusing("temperature")) as server:
        run = run_with(server.url, file)
        identity = ModelJudge("vllm/m", base_url=server.url).identity
        assert all("temperature" not in request for request in server.requests[-4:])
        assert [call.refused_settings for record in run.records for call in record.calls] == [("temperature",)] * 4
        assert run.warnings == {"temperature refused": 4}
        assert run.judge == run.judge_of("toxicity") == f"{identity} without temperature"
        assert "temperature; 4 answers were" in run_view(run).warnings[0]
        with Ledger(str(file)) as ledger:
            key = run.records[0].calls[0].fingerprint
            assert ledger.answers(identity, [key])[key].refused_settings == ("temperature",)
        write_run(run, tmp_path / "results")
        line = json.loads((tmp_path / "results" / "records.jsonl").read_text().splitlines()[0])
        assert line["calls"][0]["refused_settings"] == ["temperature"]
        assert json.loads((tmp_path / "results" / "summary.json").read_text())["warnings"] == {"temperature refused": 4}
        # Answers that are used again say so, too, though the endpoint takes the setting by now.
        server.behaviour = obliging
        again = run_with(server.url, file)
        assert (again.cost, again.warnings) == (0.0, {"temperature refused": 4})
        # A process that has not learned of the refusal sends it: the answers are of two kinds, and that is said.
        samples = [*SAMPLES, {"id": "new", "input": "q", "output": "another answer"}]
        judge = ModelJudge("vllm/m", base_url=server.url)
        mixed = asyncio.run(aevaluate(samples, ["toxicity"], judge=judge, ledger=file))
    assert (mixed.warnings, len(mixed.records)) == ({"temperature refused": 4}, 5)
    assert mixed.judge == f"{identity}, {identity} without temperature"


def test_runs_with_and_without_a_refused_setting_are_not_compared_silently() -> None:
    with serving(refusing("temperature")) as one, serving() as other:
        # Behind a proxy both are one endpoint; here the addresses differ, so that the judges are given one name.
        runs = [run_with(server.url) for server in (one, other)]
    names = [run.judge.partition("(")[0] + run.judge.partition(")")[2] for run in runs]
    assert names == ["vllm/m without temperature", "vllm/m"]
    with pytest.raises(ConfigError, match="the judges differ"):
        compare(*runs)


def test_members_of_a_panel_say_what_was_refused() -> None:
    settings = ("temperature", "seed")
    with serving(refusing(*settings)) as server:
        judge = Panel(
            ModelJudge("vllm/m", base_url=server.url, seed=3), ScriptedJudge(lambda question: question.example())
        )
        run = run_with(server.url, judge=judge)
    assert run.judge == f"{judge.identity} without {' and '.join(sorted(settings))}"
    assert run.warnings["seed refused"] == run.warnings["temperature refused"] == 4


def test_what_no_endpoint_refused_is_not_named() -> None:
    with serving(refusing("max_tokens")) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, max_tokens=500)
        run = run_with(server.url, judge=judge)
    assert server.requests[-1]["max_completion_tokens"] == 500
    assert (run.warnings, run.judge) == ({}, judge.identity)
