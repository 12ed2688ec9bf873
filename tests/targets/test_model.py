"""Language models with a prompt as targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Sample, Skipped, evaluate
from evalstone.errors import ConfigError, PromptError, TargetUnavailable
from evalstone.results.run_notes import LEFT_OUT_REASONING
from evalstone.targets import parse_target
from evalstone.types import Message, ToolCall
from tests.hostile_serving import http, serving_hostile
from tests.serving import Response, completion, serving

BORN = "contains(expected='1815')"
CASE = {
    "id": "q",
    "input": "When, {Ada}?",
    "context": ["one {input}", "two"],
    "instructions": "Be brief.",
    "metadata": {"tone": {"is": "dry"}},
}
REPLY = completion("Ada was born in 1815.")


def asked(case: Any = CASE, *, trials: int = 1, **settings: Any) -> list[dict[str, Any]]:
    """The requests that a model gets."""
    with serving(lambda request, n: REPLY) as server:
        target = {"address": "vllm/m", "base_url": server.url, **settings}
        run = evaluate([case], BORN, target=target, trials=trials, ledger=None)
    assert [record.value for record in run] == [1] * trials
    return server.requests


def test_without_a_prompt_a_model_gets_the_input() -> None:
    (request,) = asked()
    assert request == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "When, {Ada}?"},
        ],
    }


def test_a_prompt_is_filled_in_once_and_stands_in_a_text_or_a_file(tmp_path: Path) -> None:
    text = '{"as": "JSON"}, {metadata.tone.is}:\n{{ context }}\n\n{input} \\{input\\}'
    file = tmp_path / "prompt.md"
    file.write_text(text)
    for prompt in (text, str(file)):
        (request,) = asked(prompt=prompt, system="Be {metadata.tone}.")
        system, user = request["messages"]
        assert system == {"role": "system", "content": 'Be {"is": "dry"}.'}
        lines = ['{"as": "JSON"}, dry:', "one {input}", "", "two", "", "When, {Ada}? {input}"]
        assert user == {"role": "user", "content": "\n".join(lines)}


def test_a_long_system_prompt_is_a_text_and_not_a_path() -> None:
    for text in ("Be brief. " * 100, "Write as README.md does."):
        (request,) = asked(system=text)
        assert request["messages"][0]["content"] == text


def test_the_conversation_before_stays_and_the_recorded_answer_does_not_go_out() -> None:
    messages = [("user", "Hi"), ("assistant", "Hello."), ("user", "When?"), ("assistant", "In 1816.")]
    sample = Sample(input="When?", messages=[Message(role=role, content=text) for role, text in messages])  # pyright: ignore[reportArgumentType]
    (request,) = asked(sample)
    assert [message["content"] for message in request["messages"]] == ["Hi", "Hello.", "When?"]
    (request,) = asked(sample, prompt="Briefly: {input}")
    assert [message["content"] for message in request["messages"]] == ["Hi", "Hello.", "Briefly: When?"]


def test_each_trial_has_a_seed_of_its_own_and_settings_are_sent() -> None:
    requests = asked(trials=3, seed=7, temperature=0.5, max_tokens=50)
    assert sorted(request["seed"] for request in requests) == [7, 8, 9]
    assert {(request["temperature"], request["max_tokens"]) for request in requests} == {(0.5, 50)}


def test_tokens_and_cost_are_counted() -> None:
    with serving(lambda request, n: REPLY) as server:
        target = {"address": "vllm/m", "base_url": server.url, "prices": [1.0, 10.0]}
        run = evaluate([CASE], BORN, target=target, ledger=None)
    assert run.cost == pytest.approx(300e-6)
    assert run.target is not None
    assert (run.target.usage.input, run.target.usage.output, run.target.usage.requests) == (100, 20, 1)


def test_a_refusal_is_the_answer() -> None:
    refusal: Any = completion("")
    refusal["choices"][0]["message"]["refusal"] = "I can't say 1815."
    with serving(lambda request, n: refusal) as server:
        run = evaluate([CASE], BORN, target={"address": "vllm/m", "base_url": server.url}, ledger=None)
    assert [sample.output for sample in run.samples or ()] == ["I can't say 1815."]


def test_an_answer_that_is_cut_off_is_marked() -> None:
    with serving(lambda request, n: completion("1815 and", finish="length")) as server:
        run = evaluate([CASE], BORN, target={"address": "vllm/m", "base_url": server.url}, ledger=None)
    answered = next(iter(run.samples or ()))
    assert answered.metadata["target"]["trace"] == {"complete": False}


def test_reasoning_in_front_of_an_answer_is_no_part_of_it() -> None:
    reply = completion("1814? No.\n</think>\n\nIn 1815.")
    with serving(lambda request, n: reply) as server:
        target = {"address": "vllm/m", "base_url": server.url}
        run = evaluate([CASE], "exact_match(expected='In 1815.')", target=target, ledger=None)
        kept = evaluate([CASE], "contains(expected='1814')", target=target, keep_reasoning=True, ledger=None)
    assert [record.value for record in (*run, *kept)] == [1, 1]
    assert [answered.output for answered in run.samples or ()] == ["1814? No.\n</think>\n\nIn 1815."]
    assert run.warnings == {LEFT_OUT_REASONING: 1}


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (http(b"<html>"), "sent no JSON object: '<html>'"),
        (http(b'{"choices": []}'), "sent no choices"),
        (http(b'{"error": {"message": "bad request"}}', status=400), "HTTP 400: bad request"),
        (http(b'{"error": {"message": "maximum context length is 10 tokens"}}', status=400), "context length is 10"),
    ],
)
def test_a_reply_that_is_no_answer_fails_its_sample(reply: bytes, problem: str) -> None:
    with serving_hostile(lambda n: reply) as server:
        run = evaluate([CASE], BORN, target={"address": "vllm/m", "base_url": server.url}, ledger=None)
    (outcome,) = [record.outcome for record in run]
    assert isinstance(outcome, Failed)
    assert problem in outcome.error
    assert "judge" not in outcome.error


def test_a_model_that_is_not_there_ends_the_run() -> None:
    with (
        serving(lambda request, n: Response(404, {"error": {"message": "no model m"}})) as server,
        pytest.raises(TargetUnavailable, match=r"used: .*no model m"),
    ):
        evaluate([CASE], BORN, target={"address": "vllm/m", "base_url": server.url}, ledger=None)


def test_a_sample_that_lacks_what_the_prompt_needs_is_skipped() -> None:
    with serving(lambda request, n: REPLY) as server:
        target = {"address": "vllm/m", "base_url": server.url, "prompt": "{context} {input} {metadata.tone}"}
        run = evaluate([CASE, {"id": "b", "input": "x"}], BORN, target=target, ledger=None)
    assert isinstance(run.records[1].outcome, Skipped)
    assert parse_target(target).lacking(Sample(id="b", input="x")) == ["context", "metadata.tone"]


def test_messages_with_tool_calls_fail_rather_than_lose_them() -> None:
    call = Message(role="assistant", tool_calls=[ToolCall(name="f")])
    sample = Sample(messages=[Message(role="user", content="x"), call, Message(role="user", content="y")])
    run = evaluate([sample], BORN, target="vllm/m", ledger=None)
    assert "have tool calls" in str(run.records[0].outcome)


def test_the_prompt_is_part_of_the_identity(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    names = set[str]()
    for text in ("One {input}", "Two {input}"):
        file.write_text(text)
        names.add(parse_target({"address": "ollama/llama3:8b", "prompt": str(file)}).name)
        names.add(parse_target({"address": "ollama/llama3:8b", "prompt": text}).name)
    assert len(names) == 2
    address = "openai/gpt-5.1"
    assert parse_target(address).name == address
    assert parse_target({"address": address, "temperature": 0, "seed": 1}).name == f"{address}(temperature=0, seed=1)"


@pytest.mark.parametrize(
    ("settings", "kind", "problem"),
    [
        ({"prompt": "{imput}"}, PromptError, "prompt has an unknown placeholder 'imput'; did you mean input?"),
        ({"prompt": "{messages} x"}, PromptError, "unknown placeholder 'messages'"),
        ({"prompt": "no-file.md"}, ConfigError, "prompt: there is no file 'no-file.md', and it is no text with a"),
        ({"prompt": "A text\nof two lines"}, ConfigError, "prompt has no placeholder"),
        ({"system": "no-file.md"}, ConfigError, "system: there is no file"),
        ({"temperature": 3}, ConfigError, "temperature must be a number from 0 to 2 or 'auto', not 3"),
        ({"modle": "m"}, ConfigError, "unknown setting 'modle'; known: "),
        ({"address": "opnai/gpt-5.1"}, ConfigError, "unknown provider 'opnai'; did you mean openai"),
        ({"base_url": "ftp://x"}, ConfigError, "base_url must start with http"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem.replace("(", r"\(").replace("?", r"\?")):
        parse_target({"address": "openai/gpt-5.1", **settings})
