"""What a call of a model or a run of an agent returns: the responses of providers, and the results of frameworks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from evalstone.agents.formats.calls import passages_in
from evalstone.agents.formats.messages import Conversation, Reading, read_conversation
from evalstone.agents.formats.parts import BLOCKS
from evalstone.agents.formats.pydantic_ai import is_waiting
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    by_normal_name,
    checked_entries,
    checked_list,
    checked_objects,
    entries_of,
    normal,
    objects_in,
    plain,
    read_cost,
    read_usage,
)
from evalstone.agents.from_traces import extract_workflow_trajectory

_WORKFLOW_ENDS = ("success", "failed", "tripwire", "suspended", "paused", "bailed", "canceled")
"""The values of `status` in the result of a Mastra workflow."""
_MASTRA = ("runId", "traceId", "rememberedMessages", "usedFallbackValue", "scoringData", "tripwire")


def is_chat_completion(value: Any) -> bool:
    """Whether this is a chat completion of OpenAI's API."""
    return any("message" in choice for choice in objects_in(entries_of(value).get("choices")))


def read_chat_completion(value: Any) -> Reading:
    """The message of the only choice, with the tokens and, where a gateway says it, the cost."""
    completion = cast("Entries", value)
    choice = _only(completion["choices"], "choices")
    conversation = Conversation()
    conversation.read(checked_entries(choice.get("message"), "choices[0].message"), "choices[0].message")
    usage = entries_of(completion.get("usage"))
    return Reading(conversation, read_usage(usage), read_cost(usage.get("cost")))


def is_response(value: Any) -> bool:
    """Whether this is a response of OpenAI's Responses API."""
    entries = entries_of(value)
    return entries.get("object") == "response" and isinstance(entries.get("output"), list)


def read_response(value: Any) -> Reading:
    """The instructions, the items of the output, the tokens."""
    response = cast("Entries", value)
    instructions = response.get("instructions")
    conversation = Conversation()
    if isinstance(instructions, list):
        conversation = read_conversation(cast("list[Any]", instructions), "instructions")
    elif instructions:
        conversation.read({"role": "system", "content": instructions}, "instructions")
    return Reading(_more(conversation, response["output"], "output"), read_usage(response.get("usage")))


def is_anthropic_message(value: Any) -> bool:
    """Whether this is a message that Anthropic's API returned."""
    entries = entries_of(value)
    return entries.get("type") == "message" and "stop_reason" in entries and isinstance(entries.get("content"), list)


def read_anthropic_message(value: Any) -> Reading:
    """The one message."""
    conversation = Conversation()
    conversation.read({"role": "assistant", **cast("Entries", value)}, "")
    return Reading(conversation)


def is_converse(value: Any) -> bool:
    """Whether this is a request or a response of Bedrock's Converse API, or a record of both in its invocation log."""
    entries = entries_of(value)
    logged = entries_of(entries.get("input")).get("inputBodyJson") if "schemaType" in entries else None
    body = entries_of(logged) or entries
    answered = "stopReason" in entries and "message" in entries_of(entries.get("output"))
    asked = not body.keys().isdisjoint(("system", "inferenceConfig", "toolConfig", "additionalModelRequestFields"))
    return answered or (
        (asked or logged is not None) and any(map(is_converse_message, objects_in(body.get("messages"))))
    )


def is_converse_message(item: Entries) -> bool:
    """Whether this is a message of Bedrock's: the blocks of its content have no type, and one entry that names it."""
    blocks = objects_in(item.get("content"))
    if item.get("role") not in ("user", "assistant") or not blocks or any("type" in block for block in blocks):
        return False
    return any(normal(key) in BLOCKS or key == "text" for block in blocks for key in block)


def read_converse(value: Any) -> Reading:
    """The system's blocks, the messages, the message of the response, the tokens."""
    record = cast("Entries", value)
    request, response, logged = record, record, "schemaType" in record
    if logged:
        request = entries_of(entries_of(record.get("input")).get("inputBodyJson"))
        response = entries_of(entries_of(record.get("output")).get("outputBodyJson"))
    at = "input.inputBodyJson." if logged else ""
    conversation = Conversation()
    if request.get("system"):
        conversation.read({"role": "system", "content": request["system"]}, f"{at}system")
    _more(conversation, request.get("messages"), f"{at}messages")
    if message := entries_of(response.get("output")).get("message"):
        place = "output.outputBodyJson.output.message" if logged else "output.message"
        conversation.read(checked_entries(message, place), place)
    return Reading(conversation, read_usage(response.get("usage")))


def is_gemini(value: Any) -> bool:
    """Whether this is a request or a response of Gemini's API."""
    entries = by_normal_name(entries_of(value))
    candidates = map(by_normal_name, objects_in(entries.get("candidates")))
    answered = any(not {"content", "finishreason"}.isdisjoint(candidate) for candidate in candidates)
    blocked = "promptfeedback" in entries and not {"usagemetadata", "modelversion"}.isdisjoint(entries)
    return isinstance(entries.get("contents"), list) or answered or blocked


def read_gemini(value: Any) -> Reading:
    """The system instruction, the contents, the history of automatic calls, and the content of the only candidate."""
    entries = by_normal_name(cast("Entries", value))
    conversation = Conversation()
    system = entries.get("systeminstruction")
    if system:
        inner = (
            {"parts": [{"text": system}]} if isinstance(system, str) else checked_entries(system, "system_instruction")
        )
        conversation.read({**inner, "role": "system"}, "system_instruction")
    for key in ("contents", "automaticfunctioncallinghistory"):
        _more(conversation, entries.get(key) or [], key)
    if entries.get("candidates"):
        candidate = by_normal_name(_only(entries["candidates"], "candidates"))
        place = "candidates[0].content"
        content = checked_entries(candidate.get("content") or {"parts": []}, place)
        conversation.read({"parts": [], **content, "role": "model"}, place)
        grounding = by_normal_name(entries_of(candidate.get("groundingmetadata")))
        for chunk in map(by_normal_name, objects_in(grounding.get("groundingchunks"))):
            text = entries_of(chunk.get("retrievedcontext")).get("text")
            if isinstance(text, str) and text.strip():
                conversation.passages[text] = None
    return Reading(conversation, read_usage(entries.get("usagemetadata")))


def is_agent_result(value: Any, *, mastra: bool) -> bool:
    """Whether this is what `generateText` of the AI SDK or `generate` of Mastra returns, as JSON."""
    entries = entries_of(value)
    steps = objects_in(entries.get("steps"))
    known = any(not {"content", "toolCalls", "text"}.isdisjoint(step) for step in steps)
    return known and (not entries.keys().isdisjoint(_MASTRA)) == mastra


def read_agent_result(value: Any) -> Reading:
    """The messages of all steps.

    Mastra's steps leave some parts out, so that its messages are read instead: all of them, or those of the response.
    """
    result = cast("Entries", value)
    response = entries_of(result.get("response"))
    usage = read_usage(result.get("totalUsage") or result.get("usage"))
    steps = checked_objects(result["steps"], "steps")
    usage = None if usage is None else replace(usage, requests=len(steps))
    text, structured = result.get("text"), result.get("object")
    output = structured if structured is not None and not text else None
    if output is None and text == "" and result.get("finishReason") == "stop":
        output = text  # of which no message says anything
    choices: list[tuple[str, Any]] = [
        ("messages", result.get("messages")),
        ("response.dbMessages", response.get("dbMessages")),
        ("responseMessages", result.get("responseMessages")),
    ]
    whole = all(isinstance(step.get("content"), list) for step in steps)
    if not whole or not result.keys().isdisjoint(_MASTRA):
        choices.append(("response.messages", response.get("messages")))
        last = f"steps[{len(steps) - 1}].response.messages"
        choices.append((last, entries_of(steps[-1].get("response")).get("messages")))
    place, messages = next(((at, items) for at, items in choices if items), ("", None))
    if messages is not None:
        return Reading(_more(Conversation(), messages, place), usage, output=output)
    conversation = Conversation()
    for number, step in enumerate(steps):
        conversation.read(_step(step), f"steps[{number}]")
    return Reading(conversation, usage, output=output)


def _step(step: Entries) -> Entries:
    """One step of an agent as a message: its content, or the text, the calls and the results that it has instead."""
    if isinstance(step.get("content"), list):
        content = [_with_error(part, step) for part in step["content"]]
        return {"role": "assistant", "content": content, "usage": step.get("usage")}
    keys = ("toolCalls", "toolResults")
    inner = [{**each, **entries_of(each.get("payload"))} for key in keys for each in objects_in(step.get(key))]
    thought = step.get("reasoningText") or step.get("reasoning")
    parts = [{"type": "text", "text": step["text"]}] if step.get("text") else []
    files = [{"type": "file", **each} for each in objects_in(step.get("files"))]
    return {
        "role": "assistant",
        "content": [*parts, *files, *inner],
        "reasoning": thought if isinstance(thought, str) else None,
        "usage": step.get("usage"),
    }


def _with_error(part: Any, step: Entries) -> Any:
    """A part of a step. JSON has nothing of an Error of JavaScript; what it said is in the step's response."""
    call = entries_of(part)
    if call.get("type") != "tool-error" or call.get("error"):
        return part
    replies = objects_in(entries_of(step.get("response")).get("messages"))
    results = [
        each for reply in replies for each in objects_in(reply.get("content")) if each.get("type") == "tool-result"
    ]
    said = next((each.get("output") for each in results if each.get("toolCallId") == call.get("toolCallId")), None)
    return {**call, "error": said}


def is_workflow(value: Any) -> bool:
    """Whether this is what `start` of a Mastra workflow returns, as JSON."""
    entries = entries_of(value)
    return isinstance(entries.get("steps"), dict) and entries.get("status") in _WORKFLOW_ENDS


def read_workflow(value: Any) -> Reading:
    """The result, and the steps as a trajectory, in the order of execution if the result has it."""
    entries = cast("Entries", value)
    results = {name: step for name, step in entries_of(entries["steps"]).items() if name != "input" or _ran(step)}
    path = entries.get("stepExecutionPath")
    order = [str(step) for step in cast("list[Any]", path)] if isinstance(path, list) else []
    if not results.keys() <= {*order}:  # it has no steps of branches, parallel steps and loops
        order = sorted(results, key=lambda name: _started(results[name]))
    trajectory = extract_workflow_trajectory(results, order)
    if entries["status"] == "success":
        result = entries.get("result")
        return Reading(Conversation(), output="" if result is None else result, trajectory=trajectory)
    return Reading(Conversation(), trajectory=trajectory, error=_workflow_error(entries, results))


def _ran(step: Any) -> bool:
    """Whether this is a step's result; the input of a workflow stands among them."""
    return "status" in entries_of(step)


def _started(step: Any) -> float:
    started = entries_of(step).get("startedAt")
    return float(started) if isinstance(started, int | float) else 0.0


def _workflow_error(entries: Entries, results: Entries) -> str:
    """What became of a workflow that did not succeed, at which step, and why."""
    status = entries["status"]
    ended = next((name for name, step in results.items() if entries_of(step).get("status") == status), None)
    step = {} if ended is None else entries_of(results[ended])
    cause: Any = next((each for each in (step.get("error"), entries.get("error"), entries.get("tripwire")) if each), "")
    named = entries_of(cause)
    why = str(named.get("message") or named.get("reason") or "") if isinstance(cause, dict) else str(cause)
    happened = "the workflow failed" if status == "failed" else f"the workflow ended with the status {status}"
    return happened + (f" in step {ended!r}" if ended is not None else "") + (f": {why}" if why else "")


def is_state(value: Any) -> bool:
    """Whether this is an object with a list of messages, such as the state of a LangGraph graph."""
    return isinstance(entries_of(value).get("messages"), list)


def read_state(value: Any) -> Reading:
    """The messages; the documents in other entries, as passages; a structured response, as the output."""
    state = cast("Entries", value)
    conversation = read_conversation(state["messages"], "messages")
    for key, documents in state.items():
        if key != "messages":
            conversation.passages |= dict.fromkeys(passages_in(documents))
    return Reading(conversation, output=state.get("structured_response"))


def of_agents_run(value: Any, data: Any) -> Reading:
    """The result of a run of the OpenAI Agents SDK: `data` are its items, `value` the object with the rest."""
    usage = getattr(getattr(value, "context_wrapper", None), "usage", None)
    output = getattr(value, "final_output", None)
    counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens", "requests")}
    details = getattr(usage, "input_tokens_details", None)
    counts["cached_tokens"] = getattr(details, "cached_tokens", None)
    return Reading(read_conversation(data, "to_input_list()"), read_usage(counts), output=output)


def of_pydantic_ai_run(value: Any, data: Any) -> Reading:
    """The result of a run of pydantic-ai: `data` are its messages, `value` the object with the rest."""
    usage = getattr(value, "usage", None)
    if not hasattr(usage, "input_tokens") and callable(usage):  # a method before version 2
        usage = usage()
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "requests")
    counts = {name: getattr(usage, name, None) for name in names}
    cost = getattr(usage, "cost", None)
    conversation = read_conversation(data, "all_messages()")
    spent = None if cost is None else read_cost(float(cost))
    output = getattr(value, "output", None)
    waits = is_waiting(plain(output))
    return Reading(conversation, read_usage(counts), spent, None if waits else output)


def of_strands_run(value: Any, data: Any) -> Reading:
    """The result of a call of a Strands agent: `data` are its messages, `value` the object with the rest."""
    call = value.metrics.agent_invocations[-1]
    usage, structured = read_usage(dict(call.usage)), getattr(value, "structured_output", None)
    output = None if structured is None else structured.model_dump_json()  # as its spans have it
    spent = None if usage is None else replace(usage, requests=len(call.cycles))
    return Reading(read_conversation(data, "metrics.traces"), spent, output=output)


def _more(conversation: Conversation, items: Any, place: str) -> Conversation:
    """A conversation with more messages."""
    return read_conversation(checked_list(items, place), place, conversation)


def _only(items: Any, place: str) -> Entries:
    every = checked_list(items, place)
    if len(every) != 1:
        raise PlacedError(f"must have one entry, not {len(every)}; pass the one that is to be scored", place)
    return checked_entries(every[0], f"{place}[0]")
