"""Shared by the agent scorers: where the steps, the conversation, the goal and the tools come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evalstone._core.declarations import Rule
from evalstone._core.guards import is_mapping, is_sequence, is_texts
from evalstone._core.literals import written_list
from evalstone._core.text import is_blank
from evalstone.agents.messages import texts
from evalstone.agents.turns import trajectory_of
from evalstone.errors import DataError, OutcomeError, invalid
from evalstone.questions.conversation import ASSISTANT, CALL, RESULT, STATE, THINKING, USER
from evalstone.scorers.base import Scorer, as_text
from evalstone.scorers.reasons import shortened
from evalstone.types import TOOL_STEPS, Message, Role, Sample, Score, Skipped, ToolCall, Trajectory
from evalstone.types.agreement import call_of

_ACTIONS = (*TOOL_STEPS, "agent_run", "workflow_step")
_BREAKS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""The line breaks that JSON doesn't escape."""
OF_A_CONVERSATION: Mapping[str, tuple[str, ...]] = {"messages": ("output", "trajectory"), "input": ("messages",)}
OF_A_GOAL: Mapping[str, tuple[str, ...]] = {**OF_A_CONVERSATION, "input": ("messages", "metadata.goal")}
"""What may stand in for a conversation and its request; and for both, if a goal may stand in for the request."""
_HEADINGS: Mapping[Role, str] = {"user": USER, "assistant": ASSISTANT, "tool": RESULT}


class TrajectorySource(Scorer):
    """A scorer of a sample's steps: its trajectory, else the tool calls in its messages.

    If a sample has both, its trajectory has the tool calls of its messages too.
    """

    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"trajectory": ("messages",)}

    def values(self, sample: Sample) -> dict[str, Any]:
        return {**super().values(sample), "trajectory": trajectory_of(sample)}


class CallSource(Scorer):
    """A scorer of a sample's tool calls: those in its messages, else those in its trajectory."""

    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"messages": ("trajectory",), "input": ("messages",)}

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        if not sample.messages and sample.trajectory is not None:
            steps = [step for step in sample.trajectory.walk() if step.step_type in TOOL_STEPS]
            messages = tuple(Message(role="assistant", tool_calls=[call_of(step)]) for step in steps)
            return {**values, "messages": messages}
        return values


class ConversationSource(Scorer):
    """A scorer of a sample's conversation: its messages, else the steps of its trajectory as tool calls, else its
    output. Without anything that the assistant says, thinks or does, the sample is skipped: its output is blank.

    If there is no user message, the input comes first as one.
    """

    alternatives = OF_A_CONVERSATION

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        messages = sample.messages
        if not messages and sample.trajectory is not None:
            messages = tuple(messages_of(sample.trajectory))
        elif not messages and sample.output is not None:
            messages = (Message(role="assistant", content=sample.output),)
        if messages and sample.input is not None and not texts(messages, "user"):
            messages = (Message(role="user", content=sample.input), *messages)
        return {**values, "messages": messages}

    def present(self, values: Mapping[str, Any], sample: Sample | None = None) -> dict[str, Any] | Score | Skipped:
        messages: Sequence[Message] = values["messages"]
        spoken = [message for message in messages if message.role == "assistant"]
        if spoken and not any(map(_says, spoken)):
            return self.lacking("the output is blank")
        return super().present(values, sample)


def _says(message: Message) -> bool:
    """Whether an assistant's message has text, reasoning, tool calls or attachments."""
    seen = message.tool_calls or message.attachments
    return bool(seen) or not is_blank(message.content + (message.reasoning or ""))


def messages_of(trajectory: Trajectory) -> Iterator[Message]:
    """The steps that are actions, including nested ones, each as a message with a tool call."""
    for step in trajectory.walk():
        if step.step_type not in _ACTIONS:
            continue
        data = dict(step.data)
        arguments, success = data.pop("tool_args", None), data.pop("success", None)
        result = data.pop("tool_result", None) if step.step_type in TOOL_STEPS else data or None
        named = arguments if is_mapping(arguments) else {"arguments": arguments}
        state = "error" if success is False else "call" if result is None and success is None else "result"
        call = ToolCall(name=step.name, arguments={} if arguments is None else named, result=result, state=state)
        yield Message(role="assistant", tool_calls=[call])


def require_both_sides(
    scorer: Scorer, messages: Sequence[Message], input: str | None, *, count_blank: bool = False
) -> None:
    """Raise OutcomeError for an incomplete conversation: one without a user message or an assistant message. Blank
    messages of the user count only with `count_blank`."""
    from_user = (m for m in messages if m.role == "user")
    if input is None and not any(count_blank or not is_blank(m.content) for m in from_user):
        raise OutcomeError(f"{scorer.name}: the conversation has no user message, and the sample no input")
    if not any(m.role == "assistant" for m in messages):
        raise OutcomeError(f"{scorer.name}: the conversation has no assistant message")


def conversation_of(
    messages: Sequence[Message], *, thinking: bool = False, calls: bool = True, state: Any = None
) -> tuple[str, ...]:
    """A conversation as questions show it: texts, each with a heading on its first line.

    Blank messages and system messages are left out. thinking, calls: include the assistant's reasoning and tool calls.
    state: the final state, which comes last; None for none.
    """
    passages: list[str] = []
    for index, message in enumerate(messages):
        content = ""
        if message.role != "system" and not is_blank(message.content):
            content = f"{_HEADINGS.get(message.role, message.role)}\n{message.content}"
        reasoning = f"{THINKING}\n{message.reasoning}" if thinking and not is_blank(message.reasoning or "") else ""
        tool_calls = [_call_text(call) for call in message.tool_calls if calls and call.state != "partial"]
        is_last = index + 1 == len(messages) or messages[index + 1].role == "user"
        # Many formats put a turn's calls into the message with the answer, which was written after them.
        is_answer = is_last and all(call.state in ("result", "error") for call in message.tool_calls)
        passages += filter(None, [reasoning, *tool_calls, content] if is_answer else [reasoning, content, *tool_calls])
    return (*passages, f"{STATE}\n{as_text(state)}") if state is not None else tuple(passages)


def _call_text(call: ToolCall) -> str:
    lines = [f"{CALL} {shortened(call.name, 60)}", f"arguments: {as_text(call.arguments).translate(_BREAKS)}"]
    match call.state:
        case "result":
            lines.append(f"result: {as_text(call.result)}")
        case "error":
            lines.append(f"error: {as_text(call.result if call.error is None else call.error)}")
        case _:
            lines.append("no result")
    return "\n".join(lines)


def goal_of(
    scorer: Scorer, metadata: Mapping[str, Any] | None, messages: Sequence[Message], *, longest: int | None = None
) -> tuple[str, ...]:
    """The criteria of a sample's goal: `goal` in the metadata, or else one criterion from the user's messages.

    Empty if there are neither. longest: the most characters of the user's messages, from the beginning and the end.
    """
    if goal := texts_in(scorer, metadata, "goal"):
        return goal
    request = "\n\n".join(text for text in texts(messages, "user") if not is_blank(text))
    if longest is not None and len(request) > longest:
        request = f"{request[: longest // 2]} […] {request[-longest // 2 :]}"
    return (f"The user gets what they ask for: {request}",) if request else ()


def texts_in(scorer: Scorer, metadata: Mapping[str, Any] | None, name: str) -> tuple[str, ...]:
    """A text or a list of texts in the metadata, as a tuple; empty if there is none. The list may be written as text.

    Raises OutcomeError for anything else, and for a blank text in the list.
    """
    value: object = (metadata or {}).get(name)
    if value is None or (isinstance(value, str) and is_blank(value)):
        return ()
    try:
        value = written_list(value) if isinstance(value, str) else value
    except DataError as error:
        raise OutcomeError(f"{scorer.name}: {name} in metadata ", error) from None
    if isinstance(value, str):
        return (value,)
    if is_texts(value) and not any(map(is_blank, value)):
        return tuple(value)
    shown = shortened(repr(value), 60)
    raise OutcomeError(f"{scorer.name}: ", invalid(f"{name} in metadata", "text or a list of texts", value, shown))


def _tool(tool: object) -> str:
    """The name of a tool, with its description; empty for what is no tool."""
    if isinstance(tool, str):
        return "" if is_blank(tool) else tool
    name = (tool.get("name") or tool.get("id")) if is_mapping(tool) else None
    if not is_mapping(tool) or not isinstance(name, str):
        return ""
    return f"{name}: {tool['description']}" if tool.get("description") else name


TOOLS = Rule(
    "a list of tools, each a name or an object with a name",
    lambda value: is_sequence(value) and all(map(_tool, value)),
    lambda value: tuple(map(_tool, value)),
)
