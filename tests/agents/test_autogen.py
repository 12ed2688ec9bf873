"""AutoGen's messages and states beside those of the fixture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.transcripts import read_transcript
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall

FIXTURE = json.loads((Path(__file__).parent / "transcripts" / "autogen.json").read_text("utf-8"))["transcript"]
ASKED = {"source": "user", "models_usage": None, "content": "Where is order 1815?", "type": "TextMessage"}
CALL = {"id": "call_1", "arguments": '{"number": "1815"}', "name": "look_up"}
RESULT = {"content": "In Bern.", "name": "look_up", "call_id": "call_1", "is_error": False}
LOOKED_UP = ToolCall(name="look_up", arguments={"number": "1815"}, result="In Bern.", id="call_1")
USER = Message(role="user", content="Where is order 1815?")


def said(kind: str, content: Any, source: str = "clerk", **more: Any) -> dict[str, Any]:
    return {"source": source, "models_usage": None, "content": content, "type": kind, **more}


CALLED = [said("ToolCallRequestEvent", [CALL]), said("ToolCallExecutionEvent", [RESULT])]
CALLING = Message(role="assistant", tool_calls=[LOOKED_UP])
CODE = {"code": "print(1)", "language": "python"}

CASES: dict[str, tuple[list[dict[str, Any]], list[Message]]] = {
    "a summary of results is what the agent says": (
        [*CALLED, said("ToolCallSummaryMessage", "In Bern.", tool_calls=[CALL], results=[RESULT])],
        [CALLING, Message(role="assistant", content="In Bern.")],
    ),
    "a handoff without a call": (
        [said("HandoffMessage", "Please take over.", target="refunder", context=[])],
        [Message(role="assistant", content="Please take over.")],
    ),
    "a handoff that the call's result has": (
        [*CALLED, said("HandoffMessage", "In Bern.", target="refunder", context=[])],
        [CALLING],
    ),
    "a structured answer": (
        [said("StructuredMessage[Answer]", {"city": "Bern"}, format_string=None)],
        [Message(role="assistant", content='{"city": "Bern"}')],
    ),
    "an image": (
        [said("MultiModalMessage", ["This one?", {"data": "iVBORw0KGgo="}], "user")],
        [Message(role="user", content="This one?", attachments=("image",))],
    ),
    "the reply of a user's agent": (
        [
            said("UserInputRequestedEvent", "", "customer", request_id="r1"),
            said("TextMessage", "Yes, please.", "customer"),
        ],
        [Message(role="user", content="Yes, please.")],
    ),
    "code that an agent runs": (
        [
            said("CodeGenerationEvent", "I count.", code_blocks=[CODE], retry_attempt=0),
            {"source": "clerk", "models_usage": None, "type": "CodeExecutionEvent", "retry_attempt": 0}
            | {"result": {"exit_code": 1, "output": "no Python"}},
        ],
        [
            Message(
                role="assistant",
                content="I count.",
                tool_calls=[
                    ToolCall(
                        name="code_execution",
                        arguments={"code_blocks": [CODE]},
                        result="no Python",
                        state="error",
                        error="no Python",
                    )
                ],
            )
        ],
    ),
    "a thought that nothing follows": (
        [said("ThoughtEvent", "Hm.")],
        [Message(role="assistant", reasoning="Hm.")],
    ),
    "a thought of another agent": (
        [said("ThoughtEvent", "Hm."), said("TextMessage", "In Bern.", "refunder")],
        [Message(role="assistant", reasoning="Hm."), Message(role="assistant", content="In Bern.")],
    ),
    "a stream, with the result at its end": (
        [
            said("ModelClientStreamingChunkEvent", "In ", full_message_id="m1"),
            said("TextMessage", "In Bern."),
            {"messages": [said("TextMessage", "In Bern.")], "stop_reason": None},
        ],
        [Message(role="assistant", content="In Bern.")],
    ),
    "a message of a type of the user's own": (
        [said("Verdict", "Approved.")],
        [Message(role="assistant", content="Approved.")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_of_autogen_is_read(name: str) -> None:
    items, expected = CASES[name]
    transcript = read_transcript([ASKED, *items])
    assert transcript.format == "AutoGen"
    assert list(transcript.messages) == [USER, *expected]


def test_the_memory_of_an_agent_is_retrieved_and_instructs_it() -> None:
    memory = "The customer lives in Bern."
    found = [{"content": memory, "mime_type": "text/plain", "metadata": None}]
    transcript = read_transcript([ASKED, said("MemoryQueryEvent", found), said("TextMessage", "Bern.")])
    assert transcript.context == (memory,)
    assert transcript.messages[1] == Message(role="system", content=memory)


def test_the_state_of_a_team_has_its_thread() -> None:
    manager = {"type": "SwarmManagerState", "message_thread": FIXTURE["messages"], "current_speaker": "clerk"}
    clerk = {"type": "ChatAgentContainerState", "version": "1.0.0"}
    states = {"clerk": clerk, "SwarmGroupChatManager": manager}
    transcript = read_transcript({"type": "TeamState", "version": "1.0.0", "agent_states": states})
    assert transcript == read_transcript(FIXTURE)


def test_the_state_of_an_agent_has_its_model_context() -> None:
    context = [
        {"content": "Be brief.", "type": "SystemMessage"},
        {"content": "Where is order 1815?", "source": "user", "type": "UserMessage"},
        {"content": [CALL], "thought": "Hm.", "source": "clerk", "type": "AssistantMessage"},
        {"content": [RESULT], "type": "FunctionExecutionResultMessage"},
        {"content": "In Bern.", "thought": None, "source": "clerk", "type": "AssistantMessage"},
    ]
    transcript = read_transcript({"type": "AssistantAgentState", "llm_context": {"messages": context}})
    assert transcript.format == "AutoGen"
    assert list(transcript.messages) == [
        Message(role="system", content="Be brief."),
        USER,
        Message(role="assistant", reasoning="Hm.", tool_calls=[LOOKED_UP]),
        Message(role="assistant", content="In Bern."),
    ]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([ASKED, said("ToolCallExecutionEvent", "In Bern.")], r"messages\[1\]\.content: "),
        ([ASKED, said("ToolCallRequestEvent", "look_up")], r"messages\[1\]\.tool_calls: "),
        ([ASKED, {**said("CodeExecutionEvent", None), "result": "1"}], r"messages\[1\]\.result: "),
        ({"type": "TeamState", "agent_states": {"clerk": {}}}, "agent_states: "),
        ({"type": "AssistantAgentState", "llm_context": {"messages": "none"}}, r"llm_context\.messages: "),
    ],
)
def test_what_is_not_understood_is_placed(value: Any, place: str) -> None:
    with pytest.raises(DataError, match=f"^AutoGen: {place}"):
        read_transcript(value)
