"""How a model is held to the form of a reply, and what an endpoint's refusals teach."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from evalstone._core.parsing import object_schema
from evalstone._core.prompts import Prompt
from evalstone.errors import ProviderError
from evalstone.judges import ModelJudge
from evalstone.judges.model import opening_messages
from evalstone.models.batch import batch_api
from evalstone.models.forms import SCHEMA, WITHOUT_BOUNDS, ModelCapabilities, has_bounds, without_bounds
from evalstone.questions import ClaimSupported
from evalstone.questions.base import Question
from tests.serving import Behaviour, Response, Server, completion, serving

GOOD = completion('{"parts": ["a"]}')
PROMPT = Prompt("List the parts.", "{{text}}")
SCHEMAS, BARE, BESIDE, JSON_MODE, WORDS = "schema", "schema without bounds", "JSON and schema", "JSON", None


class Bounded(Question[tuple[str, ...]]):
    """Which parts does a text have?"""

    kind = "bounded"
    text: str = "a"
    prompt: Prompt = PROMPT

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"parts": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 9}}})

    def from_json(self, data: Any) -> tuple[str, ...]:
        return tuple(data["parts"])

    @property
    def form(self) -> str:
        return '{"parts": [<text>]}'


class Other(Bounded):
    """Another kind of question with the same reply."""

    kind = "other"


class Unbounded(Bounded):
    """A question whose schema has no bounds."""

    kind = "unbounded"

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"parts": {"type": "array", "items": {"type": "string"}}})


def form_of(request: dict[str, Any]) -> str | None:
    form = request.get("response_format")
    if form is None:
        return WORDS
    if form["type"] == "json_schema":
        return SCHEMAS if has_bounds(form["json_schema"]["schema"]) else BARE
    return BESIDE if "schema" in form else JSON_MODE


def accepting(*forms: str | None, status: int = 400, message: str = "response_format is not supported") -> Behaviour:
    """A server that takes these forms and refuses the others."""
    return lambda request, _: GOOD if form_of(request) in forms else Response(status, {"error": {"message": message}})


def asked(server: Server, *questions: Question[Any], **settings: Any) -> list[str | None]:
    """The forms of the requests that these questions take, one after another."""

    async def work() -> None:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0, **settings)
        for question in questions:
            assert (await judge.answer(question)).value == ("a",)

    asyncio.run(work())
    return [form_of(request) for request in server.requests]


def test_the_bounds_go_first_then_the_schema_and_then_json_mode() -> None:
    with serving(accepting(WORDS)) as server:
        assert asked(server, Bounded()) == [SCHEMAS, BARE, BESIDE, JSON_MODE, WORDS]
    with serving(accepting(WORDS)) as server:
        assert asked(server, Unbounded()) == [BARE, BESIDE, JSON_MODE, WORDS]


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for response_format 'x': In context=('items',), 'maxLength' is not permitted.",
        "For 'integer' type, properties maximum, minimum are not supported",
        "Unsupported keyword maxItems",
    ],
)
def test_an_endpoint_that_refuses_bounds_loses_the_bounds_alone(message: str) -> None:
    with serving(accepting(BARE, message=message)) as server:
        assert asked(server, Bounded(), Bounded(text="b"), Other(), Unbounded()) == [SCHEMAS, BARE, BARE, BARE, BARE]
    sent = server.requests[1]["response_format"]["json_schema"]["schema"]
    assert sent == Unbounded().json_schema


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_form_is_refused_once_for_all_kinds_of_questions_and_judges_of_a_model(status: int) -> None:
    with serving(accepting(BESIDE, status=status)) as server:
        forms = asked(server, Bounded(), Other(), Unbounded(), Bounded(text="b"))
        assert forms == [SCHEMAS, BARE, BESIDE, BESIDE, BESIDE, BESIDE]

        async def another(model: str) -> None:
            await ModelJudge(model, base_url=server.url).answer(Other(text="c"))

        asyncio.run(another("vllm/n"))  # another loop and model begin anew
        assert [form_of(request) for request in server.requests[6:]] == [SCHEMAS, BARE, BESIDE]


def test_a_schema_that_is_refused_where_others_are_accepted_is_given_up_for_its_kind_alone() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        named = request.get("response_format", {}).get("json_schema", {}).get("name")
        return Response(400, {"error": {"message": "bad response_format"}}) if named == "other" else GOOD

    with serving(behave) as server:
        forms = asked(server, Bounded(), Other(), Bounded(text="b"), Other(text="b"))
    assert forms == [SCHEMAS, SCHEMAS, BARE, BESIDE, SCHEMAS, BESIDE]


def test_a_schema_that_is_too_complex_takes_it_from_no_other_kind_whichever_comes_first() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        named = request.get("response_format", {}).get("json_schema", {}).get("name")
        told = "Invalid schema for response_format: too deep"
        return Response(400, {"error": {"message": told}}) if named == "other" else GOOD

    with serving(behave) as server:
        assert asked(server, Other(), Bounded()) == [SCHEMAS, BARE, BESIDE, SCHEMAS]


def test_many_refusals_at_once_are_one_step_down() -> None:
    with serving(accepting(BARE)) as server:

        async def many() -> None:
            judge = ModelJudge("vllm/m", base_url=server.url)
            async with judge.opened():
                await asyncio.gather(
                    *(judge.answer(kind(text=f"text {n}")) for n in range(10) for kind in (Bounded, Other))
                )

        asyncio.run(many())
    assert {form_of(request) for request in server.requests} == {SCHEMAS, BARE}


@pytest.mark.parametrize("message", ["JSON schema conversion failed: maxLength", "failed to parse grammar"])
def test_a_form_that_makes_a_server_fail_is_given_up_without_asking_again(message: str) -> None:
    with serving(accepting(BARE, message=message, status=500)) as server:
        assert asked(server, Bounded(), Other()) == [SCHEMAS, BARE, BARE]


def test_a_server_error_that_names_no_form_passes() -> None:
    def behave(_: Any, number: int) -> Any:
        return Response(500, {"error": {"message": "CUDA out of memory"}}) if number == 1 else GOOD

    with serving(behave) as server:
        assert asked(server, Bounded()) == [SCHEMAS, SCHEMAS]


def test_a_refused_value_of_a_setting_is_no_refused_bound() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        told = "seed exceeds the maximum"
        return Response(400, {"error": {"message": told}}) if "seed" in request else GOOD

    with serving(behave) as server:
        assert asked(server, Bounded(), Other(), seed=7) == [SCHEMAS, SCHEMAS, SCHEMAS]
    assert ["seed" in request for request in server.requests] == [True, False, False]


def test_a_refusal_that_names_nothing_is_final() -> None:
    with serving(accepting(WORDS, message="no")) as server, pytest.raises(ProviderError, match="HTTP 400: no"):
        asked(server, Bounded())
    assert len(server.requests) == 1


@pytest.mark.parametrize("form", [SCHEMAS, BARE, BESIDE, JSON_MODE, WORDS])
def test_the_form_is_the_last_line_where_no_schema_holds_the_model(form: str | None) -> None:
    with serving(accepting(form)) as server:
        asked(server, Bounded())
    held = form in (SCHEMAS, BARE, BESIDE)
    assert server.requests[-1]["messages"][-1]["content"].endswith(f"\n{Bounded().form}") is not held
    assert server.requests[-1]["messages"][0]["role"] == "system"


def test_a_correction_ends_with_the_form_too() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        if "response_format" in request:
            return Response(400, {"error": {"message": "response_format is not supported"}})
        return completion("nothing") if len(request["messages"]) == 2 else GOOD

    with serving(behave) as server:
        asked(server, Bounded())
    *_, wrong, last = server.requests[-1]["messages"]
    assert wrong == {"role": "assistant", "content": "nothing"}
    assert last["content"].endswith(f"\n{Bounded().form}")
    assert server.requests[-1]["messages"][1]["content"].endswith(f"\n{Bounded().form}") is False


def test_probabilities_that_only_a_question_asks_for_are_refused_before_anything_else() -> None:
    told = "logprobs is not supported with response_format json_schema"
    answered = completion('{"reason": "r", "verdict": "yes"}')
    with serving(lambda r, _: Response(400, {"error": {"message": told}}) if "logprobs" in r else answered) as server:

        async def work() -> list[Any]:
            judge = ModelJudge("vllm/m", base_url=server.url)
            questions = [ClaimSupported(claim=claim, context=("p",)) for claim in "ab"]
            return [await judge.answer(question) for question in questions]

        answers = asyncio.run(work())
    assert [(a.value.verdict, a.refused_settings) for a in answers] == [("yes", ()), ("yes", ())]
    assert ["logprobs" in request for request in server.requests] == [True, False, False]
    assert all("json_schema" in request["response_format"]["type"] for request in server.requests)


def test_what_was_learned_can_be_taken_up_by_another_process() -> None:
    first, second = ModelCapabilities(), ModelCapabilities()
    payload = {"response_format": {"type": "json_schema", "json_schema": {"schema": Bounded().json_schema}}}
    assert first.learn(Bounded().reply_form, payload, 400, "response_format: maxLength")
    first.accept(Other().reply_form, WITHOUT_BOUNDS)
    bare = {"response_format": {"type": "json_schema", "json_schema": {"schema": Unbounded().json_schema}}}
    assert first.learn(Unbounded().reply_form, bare, 400, "response_format")
    second.update(json.loads(json.dumps(first.to_dict())))
    for question in (Bounded(), Other(), Unbounded()):
        assert second.response_format(question.reply_form) == first.response_format(question.reply_form)
    assert second.to_dict() == first.to_dict()
    assert [second.level(each.reply_form) for each in (Bounded(), Other(), Unbounded())] == [1, 1, 2]


def test_a_form_that_is_accepted_late_is_given_back_to_the_other_kinds() -> None:
    known = ModelCapabilities()
    payload = {"response_format": {"type": "json_schema", "json_schema": {"schema": Bounded().json_schema}}}
    assert known.learn(Bounded().reply_form, payload, 400, "response_format")
    known.accept(Other().reply_form, SCHEMA)  # of a request that was in flight
    assert [known.level(each.reply_form) for each in (Bounded(), Other(), Unbounded())] == [1, 0, 0]


def test_bounds_are_taken_from_every_depth_and_no_property_is_taken_for_one() -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "a", "minLength": 1}, "maximum": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"anyOf": [{"type": "integer", "minimum": 0, "exclusiveMaximum": 5}, {"type": "null"}]}},
    }
    assert without_bounds(schema) == {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "maximum": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    }
    assert has_bounds(schema)
    assert not has_bounds(without_bounds(schema))


def test_batches_of_anthropic_send_no_bounds_and_without_schemas_the_form() -> None:
    judge = ModelJudge("anthropic/claude-sonnet-4-5", api_key="k")
    api, settings = batch_api(judge), judge.settings_for(Bounded())
    messages = opening_messages(Bounded())

    def sent() -> dict[str, Any]:
        return json.loads(api.request("b", Bounded().reply_form, messages, settings))["params"]

    held = sent()
    assert held["output_config"]["format"]["schema"] == Unbounded().json_schema
    assert not held["messages"][-1]["content"].endswith(Bounded().form)
    refusal = {"status": 400, "error": "output_config.format: not supported"}
    assert api.learn(Bounded().reply_form, held, refusal)
    free = sent()
    assert "output_config" not in free
    assert free["messages"][-1]["content"].endswith(f"\n{Bounded().form}")
