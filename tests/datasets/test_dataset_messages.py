from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import evaluate, score
from evalstone.datasets import sample_from
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import Message, Skipped, ToolCall

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather in Bern?"}, {"type": "image_url", "image_url": {}}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}},
            {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "assistant", "content": "Sunny."},
]


def test_openai_messages_fill_input_output_and_instructions() -> None:
    sample = sample_from({"messages": OPENAI})
    assert (sample.input, sample.output, sample.instructions) == ("Weather in Bern?", "Sunny.", "Be brief.")


def test_a_tool_s_reply_becomes_the_result_of_its_call() -> None:
    messages = sample_from({"messages": OPENAI}).messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "assistant"]
    assert list(messages[2].tool_calls) == [
        ToolCall(name="weather", arguments={"city": "Bern"}, result="sunny", id="c1"),
        ToolCall(name="clock", id="c2", state="call"),
    ]


def test_columns_win_over_what_the_messages_say() -> None:
    sample = sample_from({"messages": OPENAI, "input": "i", "output": "o", "instructions": "s"})
    assert (sample.input, sample.output, sample.instructions) == ("i", "o", "s")


OPEN = [
    {"role": "user", "content": "Bern?"},
    {"role": "assistant", "content": "Sunny."},
    {"role": "user", "content": "Basel?"},
]


@pytest.mark.parametrize("column", ["messages", "input", "output"])
@pytest.mark.parametrize("more", [[], [{"role": "assistant", "tool_calls": [{"function": {"name": "search"}}]}]])
def test_a_message_of_the_user_without_an_answer_is_not_paired_with_an_older_one(
    column: str, more: list[dict[str, Any]]
) -> None:
    sample = sample_from({column: [*OPEN, *more]})
    assert (sample.input, sample.output, len(sample.messages)) == ("Basel?", "" if more else None, 3 + len(more))
    run = evaluate([sample, {"output": "Sunny."}], ["contains(expected=Sunny)"], ledger=None)
    first = next(iter(run))
    assert first.value == 0 if more else first.outcome == Skipped("contains needs output")


def test_the_answer_to_a_conversation_may_be_a_column_of_its_own() -> None:
    sample = sample_from({"messages": OPEN, "output": "Rain."})
    assert (sample.input, sample.output) == ("Basel?", "Rain.")


def test_a_reply_that_answers_no_call_stays_a_message() -> None:
    sample = sample_from({"messages": [{"role": "tool", "tool_call_id": "x", "content": "42"}], "input": "q"})
    assert sample.messages == (Message(role="tool", content="42"),)


def test_arguments_that_are_no_object_are_kept_as_they_came() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
    sample = sample_from({"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]})
    assert sample.messages[0].tool_calls[0].arguments == {"raw": "{broken"}


def test_messages_as_a_json_text_are_read() -> None:
    assert sample_from({"messages": json.dumps([{"role": "user", "content": "hi"}])}).input == "hi"


def test_a_mastra_run_is_read() -> None:
    invocation = {"state": "result", "toolCallId": "1", "toolName": "add", "args": {"a": 1}, "result": {"sum": 2}}
    run = {
        "input": {
            "inputMessages": [
                {"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "hi"}], "content": "hi"}}
            ],
            "rememberedMessages": [{"role": "user", "content": "earlier"}],
            "systemMessages": [{"role": "system", "content": "Be kind."}],
        },
        "output": [
            {
                "role": "assistant",
                "content": {
                    "format": 2,
                    "parts": [
                        {"type": "step-start"},
                        {"type": "reasoning", "reasoning": "hm"},
                        {"type": "tool-invocation", "toolInvocation": invocation},
                        {"type": "text", "text": "two"},
                    ],
                },
            }
        ],
        "groundTruth": "2",
    }
    sample = sample_from(run)
    assert (sample.input, sample.output, sample.reference, sample.instructions) == ("hi", "two", "2", "Be kind.")
    assert [message.content for message in sample.messages] == ["Be kind.", "earlier", "hi", "two"]
    assert sample.messages[-1] == Message(
        role="assistant",
        content="two",
        tool_calls=[ToolCall(name="add", arguments={"a": 1}, result={"sum": 2}, id="1")],
        reasoning="hm",
    )
    assert not sample.metadata


def test_anthropic_parts_are_read() -> None:
    messages = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "It is gone."}]},
    ]
    sample = sample_from({"messages": messages})
    assert (sample.input, sample.output) == ("q", "It is gone.")
    call = ToolCall(name="look", arguments={"at": "x"}, result="gone", id="t1", state="error", error="gone")
    assert sample.messages[1] == Message(role="assistant", content="Looking.", tool_calls=[call], reasoning="hm")


def test_ui_parts_of_the_ai_sdk_are_read() -> None:
    part = {"type": "tool-weather", "toolCallId": "1", "state": "output-available", "input": {"c": 1}, "output": "sun"}
    sample = sample_from({"messages": [{"role": "assistant", "parts": [part, {"type": "text", "text": "ok"}]}]})
    assert sample.messages[0].tool_calls == (ToolCall(name="weather", arguments={"c": 1}, result="sun", id="1"),)


def test_a_multi_turn_row_of_ragas_is_read() -> None:
    turns = [
        {"type": "human", "content": "q"},
        {"type": "ai", "content": "wait", "tool_calls": [{"name": "f", "args": {"x": 1}}]},
        {"type": "tool", "content": "7"},
        {"type": "ai", "content": "seven"},
    ]
    sample = sample_from({"user_input": turns, "reference": "7"})
    assert sample.input == "q"
    assert sample.output == "seven"
    assert sample.messages[1].tool_calls == (ToolCall(name="f", arguments={"x": 1}, result="7"),)
    assert len(sample.messages) == 3


def test_a_sharegpt_conversation_is_read() -> None:
    sample = sample_from({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})
    assert (sample.input, sample.output) == ("q", "a")


def test_expected_tools_of_deepeval_are_the_expected_trajectory() -> None:
    call = {"name": "f", "input_parameters": {"x": 1}, "description": None, "output": None}
    row = {"input": "q", "actual_output": "a", "tools_called": [call], "expected_tools": [call]}
    sample = sample_from(row)
    assert sample.expected_trajectory is not None
    assert [(step.name, step.data) for step in sample.expected_trajectory.steps or ()] == [
        ("f", {"tool_args": {"x": 1}})
    ]
    assert score("tool_call_f1", sample).value == 1  # with its arguments


def test_tools_called_become_a_conversation() -> None:
    row = {"input": "q", "actual_output": "a", "tools_called": [{"name": "f", "input_parameters": {"x": 1}}]}
    call = ToolCall(name="f", arguments={"x": 1}, state="call")
    assert sample_from(row).messages == (
        Message(role="user", content="q"),
        Message(role="assistant", content="a", tool_calls=[call]),
    )


def test_tools_called_may_be_names() -> None:
    row = {"input": "q", "actual_output": "a", "tools_called": ["find", "book"], "expected_tools": ["find", "book"]}
    for called in (row["tools_called"], json.dumps(row["tools_called"])):
        sample = sample_from(row | {"tools_called": called})
        assert [call.name for call in sample.messages[-1].tool_calls] == ["find", "book"]
        assert score("tool_call_f1", sample).value == 1.0
    for other in ({"messages": ["find"]}, {"tools_called": ["find", " "]}):
        with pytest.raises(DataError, match="must be an object"):
            sample_from({"input": "q", "output": "a", **other})


def test_an_openai_completion_is_an_output() -> None:
    sample = sample_from({"inputs": {"messages": OPENAI[:2]}, "outputs": {"choices": [{"message": OPENAI[-1]}]}})
    assert (sample.input, sample.output, len(sample.messages)) == ("Weather in Bern?", "Sunny.", 3)


def test_a_call_of_a_model_of_langchain_is_read() -> None:
    def dumped(kind: str, text: str) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": {"type": kind, "content": text}}

    for generation in ({"text": "There.", "message": dumped("ai", "There.")}, {"text": "There.", "type": "Generation"}):
        inputs = {"messages": [[dumped("system", "Be brief."), dumped("human", "Where?")]]}
        sample = sample_from({"inputs": inputs, "outputs": {"generations": [[generation]], "llm_output": None}})
        assert (sample.input, sample.output, sample.instructions) == ("Where?", "There.", "Be brief.")
        assert [message.role for message in sample.messages] == ["system", "user", "assistant"]


def test_parts_alone_are_an_output() -> None:
    assert sample_from({"output": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}).output == "ab"


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ("hello", "messages must be a list of messages, not str: 'hello'"),
        (["hello"], "message 1 must be an object, not 'hello'"),
        ([{"content": "x"}], "message 1 has no role (expected system, user, assistant, tool); it has content"),
        ([{"role": "user", "content": "x"}, {"role": "alien"}], "message 2 has role 'alien', expected system, user"),
        ([{"role": "user", "content": 5}], "in message 1, content must be text or a list of parts, not int: 5"),
        ([{"role": "user", "content": [5]}], "in message 1, a part of the content must be an object, not int: 5"),
        ([{"role": "assistant", "tool_calls": 5}], "in message 1, tool calls must be a list, not int: 5"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], "a tool call must have a name, not only id"),
        ([{"role": "assistant", "tool_calls": ["f"]}], "a tool call must be an object, not str: 'f'"),
    ],
)
def test_a_broken_conversation_is_refused_with_the_message(messages: Any, text: str) -> None:
    with pytest.raises(DataError) as caught:
        sample_from({"messages": messages, "input": "q"}, where="line 3")
    assert str(caught.value).startswith("line 3: messages ")
    assert text in str(caught.value)


TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "a", "retrieval_context": ["p", "r"]},
    {"role": "assistant", "content": "b", "retrieval_context": ["r", "s"]},
    {"role": "assistant", "content": "c", "retrieval_context": None},
]


@pytest.mark.parametrize("row", [{"turns": TURNS}, {"turns": json.dumps(TURNS)}, {"output": TURNS}])
def test_the_passages_that_turns_carry_are_the_context_of_a_row_without_one(row: Any) -> None:
    sample = sample_from({**row, "context": None})
    assert sample.context == ("p", "r", "s")
    assert sample.metadata == {}


def test_the_passages_that_turns_carry_are_kept_where_the_row_has_a_context_of_its_own() -> None:
    sample = sample_from({"turns": TURNS, "context": ["mine"]})
    assert sample.context == ("mine",)
    assert sample.metadata == {"turns": TURNS}
    left = sample_from({"turns": TURNS}, map={"context": ""})
    assert left.context is None
    assert left.metadata == {"turns": TURNS}
    assert sample_from({"turns": TURNS[:1], "context": ["mine"]}).metadata == {}


def test_broken_passages_of_a_turn_are_refused() -> None:
    with pytest.raises(DataError, match=r"'turns', .* of passages, .* 5"):
        sample_from({"turns": [{"role": "user", "content": "q", "retrieval_context": 5}]})


def test_retrieved_passages_in_messages_are_the_context_whether_in_a_row_or_returned_by_a_target() -> None:
    documents: list[Any] = [{"page_content": "Bern is in Switzerland.", "metadata": {}, "type": "Document"}]
    call = {"name": "search", "args": {"q": "Bern"}, "id": "c1"}
    messages: list[Any] = [
        {"type": "human", "data": {"content": "Where is Bern?", "type": "human"}},
        {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [call]}},
        {"type": "tool", "data": {"content": "found", "type": "tool", "tool_call_id": "c1", "artifact": documents}},
        {"type": "ai", "data": {"content": "In Switzerland.", "type": "ai"}},
    ]
    passages = ("Bern is in Switzerland.",)
    assert sample_from({"messages": messages}).context == passages
    assert sample_from({"messages": json.dumps(messages)}).context == passages
    assert sample_from({"messages": messages, "context": ["mine"]}).context == ("mine",)
    for returned in (messages, {"messages": messages}, Answer(messages=messages)):
        assert Answer.of(returned).context == passages
    assert Answer(messages=messages, context=["mine"]).context == ("mine",)
