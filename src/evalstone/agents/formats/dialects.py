"""Dialects of traces, translated to the attributes of OpenTelemetry's conventions for generative AI.

Traceloop (OpenLLMetry), Spring AI, the AI SDK, Mastra and pydantic-ai write attributes of their own in addition to
these, or instead. What the conventions' attributes lack is added here under their names. OpenInference's messages are
read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from evalstone._core.guards import is_array, is_list, is_object
from evalstone._core.names import normal
from evalstone.agents.formats.calls import text_of
from evalstone.agents.formats.mastra_rows import RESUMED
from evalstone.agents.formats.mastra_rows import TYPE as MASTRA_TYPE
from evalstone.agents.formats.mastra_spans import mastra
from evalstone.agents.formats.parts import BLOCKS, Content
from evalstone.agents.formats.pydantic_ai import is_waiting
from evalstone.agents.formats.records import TelemetryRecord, decoded
from evalstone.agents.formats.values import Entries, entries_of, first, json_text, objects_in, parsed
from evalstone.types.accounts import first_shown, is_hidden, is_redacted

SpanKind: TypeAlias = Literal["agent", "chain", "step", "model", "tool", "retrieval", "embedding"]

OPERATION = "gen_ai.operation.name"
INPUT, OUTPUT, SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
DOCUMENTS = "gen_ai.retrieval.documents"
QUESTION, ANSWER = "input.value", "output.value"

_OPERATIONS: Mapping[str, SpanKind] = {
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "invoke_graph": "agent",
    "invoke_swarm": "agent",
    **dict.fromkeys(("chat", "generate_content", "text_completion"), "model"),
    "execute_tool": "tool",
    "retrieval": "retrieval",
    **dict.fromkeys(("vector_db_retrieve", "RETRIEVER", "RERANKER"), "retrieval"),  # of Traceloop, and of MLflow
    "embeddings": "embedding",
}
_OPENINFERENCE: Mapping[str, SpanKind] = {
    "AGENT": "agent",
    "CHAIN": "chain",
    "LLM": "model",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "RERANKER": "retrieval",
    "EMBEDDING": "embedding",
}
_TRACELOOP: Mapping[str, SpanKind] = {"workflow": "chain", "agent": "agent", "task": "chain", "tool": "tool"}
_MASTRA: Mapping[str, SpanKind] = {"workflow_run": "agent", "workflow_step": "step", "model_generation": "chain"}
_AI_SDK = re.compile(r"ai\.(?:(?:generate|stream)(?:Text|Object)(\.do\w+)?|(toolCall)|(embed).*)")
_QUESTIONS = (
    *("question", "query", "query_str", "message", "user_msg"),
    *("input", "prompt", "user_input", "text", "input_str"),
)
_WORKFLOW_EVENT = re.compile(r"(?:Stop|\w*Output)\w*\(\w+=|\w+Event\(")
"""LlamaIndex's representation of the result of a workflow: Python's notation, cut off."""
_HANDOFF = "handoff to "
_OF_A_TOOL = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
_ADK_MERGED = "(merged tools)"
_MULTI_AGENT = ("invoke_graph", "invoke_swarm")
_REPEATING = ("execute_tool", "execute_event_loop_cycle", *_MULTI_AGENT)
"""Operations whose messages aren't those of a model call."""
_FLAT = re.compile(r"gen_ai\.(prompt|completion)\.\d")
_SPRING_LOG = re.compile(
    r"\s*(Chat (?:Client|Model) (?:Prompt Content|Completion)|Vector Store Query Response):\s*(\[.*\])\s*",
    re.DOTALL,
)
_SPRING_ROLE = re.compile(r'(?:^\[|", )"(system|user|assistant|tool)":"')


def kind_of(record: TelemetryRecord) -> SpanKind | None:
    """The operation of a span; None if it has nothing to do with models."""
    attributes = record.attributes
    spring = attributes.get("spring.ai.kind")
    if spring is not None:
        kinds: Mapping[str, SpanKind] = {"chat_client": "agent", "tool_call": "tool"}
        is_query = spring == "vector_store" and attributes.get("db.operation.name") == "query"
        return "retrieval" if is_query else kinds.get(str(spring))
    if attributes.get("gen_ai.tool.name") == _ADK_MERGED:
        return None  # not a tool: the results of parallel calls in one
    if _makes_answer(attributes) and "gen_ai.tool.call.id" not in attributes:
        return None  # not a tool: what makes the answer of the model's text
    if attributes.get(MASTRA_TYPE) == "agent_run" and attributes.get(RESUMED):
        return "chain"  # no other agent inside: the rest of the run that was suspended
    if (operation := str(attributes.get(OPERATION))) in _OPERATIONS:
        return _OPERATIONS[operation]
    if (named := str(attributes.get(MASTRA_TYPE))) in _MASTRA:
        return _MASTRA[named]
    if (named := str(attributes.get("openinference.span.kind")).upper()) in _OPENINFERENCE:
        if named == "TOOL" and "tool.name" not in attributes and record.name.startswith(_HANDOFF):
            return None  # the agents SDK's account of a tool call that has a name of its own
        return _OPENINFERENCE[named]
    if (named := str(attributes.get("traceloop.span.kind"))) in _TRACELOOP:
        return _TRACELOOP[named]
    if match := _AI_SDK.fullmatch(str(attributes.get("ai.operationId"))):
        return "model" if match[1] else "tool" if match[2] else "embedding" if match[3] else "agent"
    if (requested := attributes.get("llm.request.type")) is not None:
        return "embedding" if requested == "embedding" else "model"
    if OPERATION not in attributes and any(key in attributes for key in (INPUT, OUTPUT)):
        return "model"
    if DOCUMENTS in attributes:
        return "retrieval"
    return None


def _makes_answer(attributes: Entries) -> bool:
    """Whether a span is of an output function of pydantic-ai. The agent calls it with the model's answer, and returns
    its result as the agent's answer. The model doesn't see that."""
    return str(attributes.get("logfire.msg")).startswith("running output function")


def translated(record: TelemetryRecord) -> Entries:
    """The attributes of a record, including those of its dialect under the conventions' names."""
    own = record.attributes
    added, replaced = Entries(), Entries()
    if any(map(_FLAT.match, own)):
        added |= _flat(own)
    if MASTRA_TYPE in own:
        added |= mastra(record)
    if any(key.startswith("gcp.vertex.agent.") for key in own):
        replaced |= {key: _without_positions(own[key]) for key in (INPUT, OUTPUT) if key in own}
    if "ai.operationId" in own:
        added |= _ai_sdk(own)
    if "traceloop.span.kind" in own:
        added |= _traceloop(own)
        replaced |= _traceloop_tool(own) if own["traceloop.span.kind"] == "tool" else {}
    if "spring.ai.tool.definition.name" in own:
        names = {"name": "definition.name", "call.id": "call.id"}
        names |= {"call.arguments": "call.arguments", "call.result": "call.result"}
        added |= {f"gen_ai.tool.{name}": own.get(f"spring.ai.tool.{key}") for name, key in names.items()}
    if "db.vector.query.response.documents" in own:
        added[DOCUMENTS] = _documents(own["db.vector.query.response.documents"])
    if record.name == "db.query.result" and isinstance(own.get("db.query.result.document"), str):
        added[DOCUMENTS] = [{"content": own["db.query.result.document"]}]
    if "tool_response" in own or "tool_arguments" in own:  # pydantic-ai's instrumentation, version 2
        added |= {"gen_ai.tool.call.arguments": own.get("tool_arguments")}
        added |= {"gen_ai.tool.call.result": own.get("tool_response")}
    if str(own.get("openinference.span.kind")).upper() == "TOOL":
        added |= _openinference_tool(record)
    is_langsmith = any(key.startswith("langsmith.") for key in own)  # whose prompts are the arguments of a function
    if "gen_ai.prompt" in own and not is_langsmith:
        added[INPUT] = _prompt(own["gen_ai.prompt"])
    if "gen_ai.completion" in own and not is_langsmith:
        added[OUTPUT] = _texts(own["gen_ai.completion"], "assistant")
    if record.kind == "log" and (match := _SPRING_LOG.fullmatch(str(own.get("body", "")))):
        added |= _spring_log(match[1], match[2])
    if (operation := own.get(OPERATION)) == "execute_tool":
        added |= _tool_events(record)
    elif operation in _MULTI_AGENT:
        added |= _multi_agent(record)
    if _makes_answer(own):
        added = {key: value for key, value in added.items() if key not in _OF_A_TOOL}
        own = {key: value for key, value in own.items() if key not in _OF_A_TOOL}
    if isinstance(own.get(INPUT), str) and '"fc_' in own[INPUT]:
        replaced[INPUT] = _with_call_ids(parsed(own[INPUT]))
    added, replaced = ({key: value for key, value in each.items() if value is not None} for each in (added, replaced))
    hidden = {key: added[key] for key in added.keys() & own.keys() if is_hidden(parsed(own[key]))}
    left_out = (INPUT, OUTPUT) if operation in _REPEATING else ()
    return {key: value for key, value in {**added, **own, **hidden, **replaced}.items() if key not in left_out}


def event_message(record: TelemetryRecord) -> Entries | None:
    """The message that an event of OpenTelemetry's has, as in version 1.36 and earlier; None for any other record.

    Events of spans have lists and objects as JSON.
    """
    if not record.name.startswith("gen_ai.") or not record.name.endswith((".message", ".choice")):
        return None
    # Semantic Kernel logs the JSON of a message as text.
    texts = (record.attributes.get(key) for key in ("body", "gen_ai.event.content"))
    body = {**{key: value for text in texts for key, value in entries_of(parsed(text)).items()}, **record.attributes}
    if is_interrupted(body):
        message = {"role": "assistant", "content": ""}
    elif record.name.endswith(".choice") and isinstance(body.get("message"), str) and _is_of_strands_agent(record):
        return {"role": "assistant", "content": body["message"]}
    elif record.name.endswith(".choice"):
        said: Any = parsed(body.get("message"))
        # A text may be an answer that is JSON itself.
        is_message = not entries_of(said).keys().isdisjoint(("role", "content", "tool_calls", "refusal"))
        if said in ("", []):  # of Strands', where the model said nothing
            message = {"role": "assistant", "content": ""}
        elif not said or is_message or is_object(body["message"]):
            message = {"role": "assistant", "content": None, **entries_of(said or body)}
        else:
            message = {"role": "assistant", "content": body["message"]}
    else:
        role = record.name.removeprefix("gen_ai.").removesuffix(".message")
        answered_call = {"tool_call_id": body.get("id")} if role == "tool" else {}
        message = {"role": role, "content": None, **answered_call, **body}
    parts: Any = parsed(message["content"])
    if record.kind == "event" and _are_parts(parts):
        message["content"] = parts
    return {**message, "tool_calls": parsed(message["tool_calls"])} if "tool_calls" in message else message


def _is_of_strands_agent(record: TelemetryRecord) -> bool:
    """Whether this is an event of the span of a Strands agent, which has the answer as text, and no blocks."""
    span = entries_of(decoded(record.source.get("attributes"))) if record.kind == "event" else {}
    system = span.get("gen_ai.provider.name", span.get("gen_ai.system"))
    return system == "strands-agents" and span.get(OPERATION) == "invoke_agent"


def is_interrupted(message: Entries) -> bool:
    """Whether this isn't an answer of a Strands agent but its interrupts, as text."""
    return message.get("finish_reason") == "interrupt"


def _are_parts(value: Any) -> bool:
    """Whether these are the parts of a message, as in Bedrock's format and others, and not other JSON data: at least
    one part is of a known kind. The others can be of unknown kinds."""
    parts = objects_in(value)
    known = any(map(_is_text, parts)) or any(normal(key) in BLOCKS for part in parts for key in part if len(part) == 1)
    return known and len(parts) == len(_list(value)) and all(map(_may_be_part, parts))


def _may_be_part(part: Entries) -> bool:
    return _is_text(part) or isinstance(part.get("type"), str) or [*map(type, part.values())] == [dict]


def _is_text(part: Entries) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"type", "text"}


def is_repeated(record: TelemetryRecord) -> bool:
    """Whether this event repeats other spans, or other attributes of its own span: in the span of a tool, its arguments
    or its result; in the span of several agents, their task; in the span of Strands' cycle around a model call, the
    messages of the call, and results of tools without their calls."""
    if record.kind != "event" or not record.name.startswith("gen_ai."):
        return False
    return entries_of(decoded(record.source.get("attributes"))).get(OPERATION) in _REPEATING


def _accounts(record: TelemetryRecord) -> Iterator[tuple[str, Entries]]:
    """The attributes of a span and of its events. Strands stores contents in either, under the same names."""
    yield "", record.attributes
    for event in objects_in(record.source.get("events")):
        yield str(event.get("name")), entries_of(decoded(event.get("attributes")))


def _multi_agent(record: TelemetryRecord) -> Entries:
    """The task of a graph or a swarm of Strands' agents, and its result if the span has it."""
    found: Entries = {}
    for name, said in _accounts(record):
        for key, role, event, entry, messages in (
            (QUESTION, "user", "gen_ai.user.message", "content", INPUT),
            (ANSWER, "assistant", "gen_ai.choice", "message", OUTPUT),
        ):
            value: Any = parsed(said.get(entry)) if name == event else None
            given = objects_in(parsed(said.get(messages)))
            value = given[-1].get("parts") if given else value
            if is_array(value):
                content = Content(role=role)
                content.read_texts(value)
                value = content.text
            found[key] = first_shown(value, found.get(key))
    return found


def _tool_events(record: TelemetryRecord) -> Entries:
    """The arguments and the result of a tool, from Strands' messages."""
    found: Entries = {}
    for name, said in _accounts(record):
        if name == "gen_ai.tool.message":
            found["gen_ai.tool.call.arguments"] = said.get("content")
        elif name == "gen_ai.choice":
            found["gen_ai.tool.call.result"] = said.get("message")
        for key, entry, name in ((INPUT, "arguments", "arguments"), (OUTPUT, "response", "result")):
            for part in (part for each in objects_in(parsed(said.get(key))) for part in objects_in(each.get("parts"))):
                found[f"gen_ai.tool.call.{name}"] = first_shown(part.get(entry), found.get(f"gen_ai.tool.call.{name}"))
    return found


def asked(attributes: Entries) -> str | None:
    """The question in the input of a chain or an agent: its text, or the text under a known name in an object. None if
    the input has no question, or several. For a workflow of Mastra, the whole input."""
    value: Any = parsed(attributes.get(QUESTION))
    said = _text_in(value)
    whole = said is None and value not in (None, "") and answers_for_others(attributes)
    return text_of(value) if whole else said


def answered(attributes: Entries) -> str | None:
    """The answer in the output of an agent or a chain; None if there is none, if it was redacted, or if it is an object
    with more than a text. For a workflow of Mastra, the whole result, which can be any JSON."""
    if isinstance(attributes.get("final_result"), str):  # pydantic-ai's, which may be JSON
        return None if is_waiting(parsed(attributes["final_result"])) else attributes["final_result"]
    value: Any = parsed(attributes.get(ANSWER))
    if value is not None and answers_for_others(attributes):
        return text_of(value)
    entries = entries_of(value)
    if "source_nodes" in entries:  # LlamaIndex's
        value = entries.get("response")
    return value if isinstance(value, str) and not _WORKFLOW_EVENT.match(value) and not is_redacted(value) else None


def answers_for_others(attributes: Entries) -> bool:
    """Whether the answer of a span is its own output, and not the last answer of an agent inside it."""
    return attributes.get(MASTRA_TYPE) == "workflow_run"


def _text_in(value: Any) -> str | None:
    if isinstance(value, str):
        return None if is_hidden(value) else value
    entries = entries_of(value)
    if {"args", "kwargs"} <= entries.keys():  # the call of a function that is traced
        said = [*_list(entries["args"]), *entries_of(entries["kwargs"]).values()]
        texts = [text for text in said if isinstance(text, str)]
        named = _text_in(entries["kwargs"])
        return texts[0] if len(texts) == 1 else named
    if is_array(entries.get("messages")):
        users = [_said_by_user(message) for message in entries["messages"]]
        return next((text for text in reversed(users) if text is not None), None)
    named = [entries[name] for name in _QUESTIONS if isinstance(entries.get(name), str)]
    if named:
        return named[0]
    return _text_in(entries["inputs"]) if is_object(entries.get("inputs")) else None


def _said_by_user(message: Any) -> str | None:
    if is_list(message):
        message = {"role": message[0], "content": message[1]} if len(message) == 2 else {}
    entries = entries_of(message)
    entries = _kept(entries) or entries
    said = entries.get("content")
    by_user = (entries.get("role") or entries.get("type")) in ("user", "human")
    return said if by_user and isinstance(said, str) else None


def _without_positions(value: Any) -> Any:
    """Messages of Google ADK without its generated IDs. ADK numbers calls without an ID by their place in the message,
    and a result has another place than its call."""
    messages = objects_in(parsed(value))
    parts = [part for message in messages for part in objects_in(message.get("parts"))]
    names = {str(part["name"]) for part in parts if part.get("type") == "tool_call" and "name" in part}
    read = [
        {**message, "parts": [_without_position(part, at, names) for at, part in enumerate(_list(message["parts"]))]}
        if "parts" in message
        else message
        for message in messages
    ]
    return read or value


def _without_position(part: Any, place: int, names: set[str]) -> Any:
    name, _, at = str(entries_of(part).get("id")).rpartition("_")
    if name not in names or at != str(place) or part.get("name", name) != name:
        return part
    return {**{key: value for key, value in part.items() if key != "id"}, "name": name}


def _list(value: Any) -> list[Any]:
    return value if is_array(value) else []


def _with_call_ids(messages: Any) -> Any:
    """Messages whose calls have the IDs of their answers. Traceloop gives OpenAI's calls those of their items (`fc_…`)
    when they are sent again, though not when they are made."""
    made = [dict(each) for each in objects_in(messages)]
    waiting, answering = list[Entries](), False
    for message in made:
        message["parts"] = [dict(part) for part in objects_in(message.get("parts"))]
        for part in message["parts"]:
            if part.get("type") == "tool_call" and str(part.get("id")).startswith("fc_"):
                waiting, answering = ([] if answering else waiting), False
                waiting.append(part)
            elif part.get("type") == "tool_call_response":
                answering = True
                if waiting:
                    waiting.pop(0)["id"] = part.get("id")
    return made if len(made) == len(_list(messages)) else messages


def _flat(own: Entries) -> Entries:
    """Messages that older versions of Traceloop store as separate attributes: `gen_ai.prompt.0.content`."""
    found: Entries = {}
    for name, key in (("prompt", INPUT), ("completion", OUTPUT)):
        messages: dict[int, Entries] = {}
        for attribute, value in own.items():
            match = re.fullmatch(rf"gen_ai\.{name}\.(\d{{1,6}})\.(.+)", attribute)
            if match is None:
                continue
            message = messages.setdefault(int(match[1]), {})
            call = re.fullmatch(r"tool_calls\.(\d{1,6})\.(\w+)", match[2])
            if call is not None:
                message.setdefault("tool_calls", {}).setdefault(int(call[1]), {})[call[2]] = value
            elif match[2] != "tool_calls":
                message[match[2]] = value
        if messages:
            found[key] = [_flat_message(messages[number]) for number in sorted(messages)]
    return found


def _flat_message(message: Entries) -> Entries:
    content = parsed(message.get("content"))
    calls: dict[int, Entries] = message.get("tool_calls", {})
    return {
        "role": message.get("role") or "assistant",
        "content": content if objects_in(content) else message.get("content"),
        **({"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}),
        **({"tool_calls": [calls[number] for number in sorted(calls)]} if calls else {}),
    }


def _ai_sdk(own: Entries) -> Entries:
    if own.get("ai.toolCall.name") is not None:
        names = {"name": "name", "call.id": "id", "call.arguments": "args", "call.result": "result"}
        found: Entries = {f"gen_ai.tool.{name}": own.get(f"ai.toolCall.{key}") for name, key in names.items()}
        return {**found, "gen_ai.tool.call.result": json_text(found["gen_ai.tool.call.result"])}
    found = {}
    prompt: Any = parsed(own.get("ai.prompt.messages"))
    whole = entries_of(parsed(own.get("ai.prompt")))
    if is_array(prompt):
        found[INPUT] = prompt
    elif whole:
        system = [{"role": "system", "content": whole["system"]}] if isinstance(whole.get("system"), str) else []
        said = whole.get("messages") or whole.get("prompt")
        said = [{"role": "user", "content": said}] if isinstance(said, str) else _list(said)
        found[INPUT] = [*system, *said]
    text = first(own, ("ai.response.text", "ai.response.object"))
    calls = parsed(own.get("ai.response.toolCalls"))
    if text is not None or calls:
        reasoning = own.get("ai.response.reasoning")
        message = {"role": "assistant", "content": text, "tool_calls": calls, "reasoning": reasoning}
        found[OUTPUT] = [{key: value for key, value in message.items() if value is not None or key == "content"}]
    return found


def _traceloop(own: Entries) -> Entries:
    given, result = own.get("traceloop.entity.input"), own.get("traceloop.entity.output")
    if own.get(OPERATION) == "vector_db_retrieve":
        asked = entries_of(parsed(given)).get("query")
        return {"gen_ai.retrieval.query.text": asked, DOCUMENTS: entries_of(parsed(result)).get("documents")}
    return {QUESTION: given, ANSWER: json_text(result)} if own["traceloop.span.kind"] != "tool" else {}


def _traceloop_tool(own: Entries) -> Entries:
    """A tool call without the wrapper that Traceloop and LangChain put around it, for attributes of both."""
    given = first_shown(own.get("gen_ai.tool.call.arguments"), own.get("traceloop.entity.input"))
    result = first_shown(own.get("gen_ai.tool.call.result"), own.get("traceloop.entity.output"))
    called, entries = parsed(given), entries_of(parsed(given))
    call_id: Any = None
    if "inputs" in entries or "input_str" in entries:
        called = entries.get("inputs") or entries.get("input_str")
        call_id = entries_of(entries.get("kwargs")).get("tool_call_id")
    returned: Any = json_text(result)
    returned = parsed(returned)
    output = entries_of(returned).get("output", returned)
    said = _tool_message(output)
    return {
        "gen_ai.tool.name": own.get("gen_ai.tool.name") or own.get("traceloop.entity.name"),
        "gen_ai.tool.call.id": own.get("gen_ai.tool.call.id") or said.get("tool_call_id") or call_id,
        "gen_ai.tool.call.arguments": _arguments(called),
        "gen_ai.tool.call.result": said.get("content", output),
        "error.type": _failure(said),
    }


def _arguments(called: Any) -> Any:
    """The arguments of a call, without the `args` and `kwargs` of the traced function."""
    entries = entries_of(called)
    if not entries or not entries.keys() <= {"args", "kwargs"} or not is_object(entries.get("kwargs")):
        return called
    positional = _list(entries.get("args"))
    return {**({"args": positional} if positional else {}), **entries_of(entries["kwargs"])}


def _openinference_tool(record: TelemetryRecord) -> Entries:
    own = record.attributes
    result: Any = own.get(ANSWER)
    said = _tool_message(parsed(result))
    result = said.get("content", result)
    output = entries_of(parsed(result))
    if {"blocks", "raw_input", "raw_output"} <= output.keys():  # LlamaIndex's, whose blocks are what the model gets
        result = "\n".join(str(block.get("text", "")) for block in objects_in(output["blocks"]))
    return {
        "gen_ai.tool.name": own.get("tool.name") or record.name,
        "gen_ai.tool.call.id": own.get("tool.id") or said.get("tool_call_id"),
        "gen_ai.tool.call.arguments": _arguments(parsed(first(own, (QUESTION, "tool.parameters")))),
        "gen_ai.tool.call.result": result,
        "error.type": _failure(said),
    }


def _tool_message(returned: Any) -> Entries:
    """LangChain's message with the result of a tool: the tool's return value, or the last message in the state update
    that it returned to hand over (`Command`). Empty for anything else."""
    entries = entries_of(returned)
    commanded = entries_of(entries.get("update")) if "goto" in entries else {}
    messages = [_kept(each) for each in (entries, *objects_in(commanded.get("messages")))]
    return next((each for each in reversed(messages) if "tool_call_id" in each), Entries())


def _kept(message: Entries) -> Entries:
    """The entries of a message of LangChain, from `messages_to_dict` or `dumpd`."""
    return entries_of(message.get("data")) or entries_of(message.get("kwargs"))


def _failure(message: Entries) -> str | None:
    """The failure in LangChain's message with a tool's result, which the tool's span lacks."""
    return "error" if message.get("status") == "error" else None


def _prompt(value: Any) -> list[Any] | None:
    """The messages of a prompt: with roles, or only texts. Of texts, the last is the user's, and those before are
    instructions, because Spring AI's prompts begin with them."""
    messages = _texts(value, "user")
    if messages is None or any(is_object(each) and "content" not in each for each in messages):
        return messages
    texts = _list(value) or [value]
    if len(texts) > 1 and all(isinstance(text, str) for text in texts):
        return [*({"role": "system", "content": text} for text in texts[:-1]), messages[-1]]
    return messages


def _texts(value: Any, role: str) -> list[Any] | None:
    """Messages with their roles, or texts as messages of one role."""
    read: Any = parsed(value)
    items = read if is_array(read) else [read]
    if all(isinstance(item, str) for item in items):
        return [{"role": role, "content": item} for item in items]
    return [{"role": role, **entries_of(item)} for item in items] if objects_in(items) == items else None


def _spring_log(title: str, listed: str) -> Entries:
    """Spring AI's log format: lists of texts in quotes, without escapes."""
    if title.startswith("Vector"):
        return {DOCUMENTS: _documents(listed)}
    if title.endswith("Completion"):
        return {OUTPUT: [{"role": "assistant", "content": listed[2:-2]}]} if len(listed) > 3 else {}
    if title.startswith("Chat Model"):
        texts = _quoted(listed)
        return {INPUT: _prompt(texts)} if texts else {}
    starts = [*_SPRING_ROLE.finditer(listed)]
    ends = [*(match.start() for match in starts[1:]), len(listed) - 2]
    roles = {match[1]: listed[match.end() : end] for match, end in zip(starts, ends, strict=True)}
    ordered = [{"role": role, "content": roles[role]} for role in ("system", "user", "assistant") if role in roles]
    return {INPUT: ordered} if ordered else {}


def _quoted(listed: str) -> list[str]:
    return listed[2:-2].split('", "') if listed.startswith('["') and listed.endswith('"]') else []


def _documents(value: Any) -> list[Entries]:
    texts: Any = value
    if isinstance(value, str):
        texts = parsed(value)
        texts = _quoted(value) if isinstance(texts, str) else texts
    return [{"content": text} if isinstance(text, str) else entries_of(text) for text in _list(texts)]
