"""Records fixtures of tests/agents/traces with the instrumentations whose spans they are.

    pip install openai langchain-core traceloop-sdk openinference-instrumentation-openai \
        openinference-instrumentation-langchain opentelemetry-exporter-otlp-proto-http
    python tools/make_traces.py tests/agents/traces openinference_openai openinference_langchain traceloop
    pip install langchain openinference-instrumentation-llama-index opentelemetry-instrumentation-langchain
    python tools/make_traces.py tests/agents/traces openinference_llama_index traceloop_langgraph

traceloop_flat is the fixture `traceloop` as traceloop-sdk 0.44.3 and openai 1 write it, in an environment of their own.
The model is a function of this file: nothing is asked. Each fixture is a line of OTLP's JSON, as the collector's file
exporter writes it. ai_sdk.jsonl and ai_sdk_7.jsonl come from tools/make_traces.mjs.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: PLC0415 - each fixture needs its own libraries
from __future__ import annotations

import base64
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SYSTEM = "Be brief and cite the handbook."
QUESTION = "Do I need an umbrella in Bern tomorrow?"
PASSAGES = ["Handbook, page 3: carry an umbrella in April.", "Handbook, page 9: trains to Thun leave hourly."]
ARGUMENTS = {"city": "Bern, Switzerland"}
RESULT = "clear all afternoon, 21 degrees"
ANSWER = "No, it will be sunny in Bern."
MODEL = "gpt-5.1"


def completion(number: int, message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 30 + number, "completion_tokens": 12, "total_tokens": 42 + number}
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, **message}}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [choice],
        "usage": usage,
    }


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """What the model answers: a tool call, then the answer."""
    if request["messages"][-1]["role"] == "tool":
        return completion(2, {"content": ANSWER})
    function = {"name": "weather", "arguments": json.dumps(ARGUMENTS)}
    return completion(1, {"tool_calls": [{"id": "call_w", "type": "function", "function": function}]})


def client() -> Any:
    """OpenAI's client, which asks `reply`."""
    import openai

    httpx: Any = importlib.import_module("httpx" if openai.VERSION.startswith("1.") else "httpx2")

    def handle(request: Any) -> Any:
        return httpx.Response(200, json=reply(json.loads(request.content)))

    return openai.OpenAI(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(handle)))


def ask(model: Any, messages: list[Any]) -> Any:
    """One call of the model."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    return model.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message


def talk(model: Any, weather: Callable[[str], str]) -> str:
    """A question, a tool call, and the answer."""
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    first = ask(model, messages)
    call = first.tool_calls[0]
    result = weather(**json.loads(call.function.arguments))
    messages += [first.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": result}]
    return ask(model, messages).content


def openinference_openai(provider: Any) -> None:
    """A traced agent that looks something up and asks OpenAI."""
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from openinference.semconv.trace import DocumentAttributes, SpanAttributes

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = OITracer(provider.get_tracer("recorded"), TraceConfig())

    @tracer.tool(name="weather")
    def weather(city: str) -> str:
        return RESULT

    @tracer.agent(name="travel")
    def agent(question: str) -> str:
        with tracer.start_as_current_span("search", openinference_span_kind="retriever") as span:
            span.set_attribute(SpanAttributes.INPUT_VALUE, question)
            for number, text in enumerate(PASSAGES):
                prefix = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{number}."
                span.set_attribute(prefix + DocumentAttributes.DOCUMENT_CONTENT, text)
        return talk(model, weather)

    model = client()
    agent(QUESTION)
    OpenAIInstrumentor().uninstrument()


def openinference_langchain(provider: Any) -> None:
    """A chain with a retriever, whose prompt has the passages in it."""
    from langchain_core.documents import Document
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough
    from openinference.instrumentation.langchain import LangChainInstrumentor

    class Handbook(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=text) for text in PASSAGES]

    LangChainInstrumentor().instrument(tracer_provider=provider)
    prompt = ChatPromptTemplate.from_messages([("system", SYSTEM), ("human", "{context}\n\n{question}")])
    model = GenericFakeChatModel(messages=iter([AIMessage(content=ANSWER)]))
    chain = {"context": Handbook(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    chain.invoke(QUESTION)
    LangChainInstrumentor().uninstrument()


def traceloop(provider: Any) -> None:
    """A workflow with an agent and a tool, as decorated with the SDK of Traceloop."""
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    from traceloop.sdk.decorators import agent, tool, workflow
    from traceloop.sdk.tracing.tracing import TracerWrapper

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    TracerWrapper.verify_initialized = staticmethod(lambda: True)
    TracerWrapper.get_tracer = lambda _: provider.get_tracer("traceloop.tracer")

    @tool(name="weather")
    def weather(city: str) -> str:
        return RESULT

    @agent(name="travel")
    def travel(question: str) -> str:
        return talk(model, weather)

    @workflow(name="service")
    def service(question: str) -> str:
        return travel(question)

    model = client()
    service(QUESTION)
    OpenAIInstrumentor().uninstrument()


def openinference_llama_index(provider: Any) -> None:
    """An agent with a tool that searches."""
    import asyncio

    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, ToolCallBlock
    from llama_index.core.llms.callbacks import llm_chat_callback
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.core.tools import FunctionTool
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    class Handbook(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in PASSAGES]

    class Model(FunctionCallingLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name=MODEL, is_function_calling_model=True)

        def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
            return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

        def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> Any:
            calls = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
            return [
                ToolSelection(tool_id=c.tool_call_id, tool_name=c.tool_name, tool_kwargs=c.tool_kwargs) for c in calls
            ]

        @llm_chat_callback()
        async def achat(self, messages: Any, **_: Any) -> ChatResponse:
            raw = {"usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}}
            if messages[-1].role.value == "tool":
                return ChatResponse(message=ChatMessage(role="assistant", content=ANSWER), raw=raw)
            call = ToolCallBlock(tool_call_id="call_w", tool_name="weather", tool_kwargs=ARGUMENTS)
            return ChatResponse(message=ChatMessage(role="assistant", blocks=[call]), raw=raw)

        def chat(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        stream_chat = complete = stream_complete = astream_chat = acomplete = astream_complete = chat

    def weather(city: str) -> str:
        """The weather."""
        Handbook().retrieve(city)
        return RESULT

    async def talk() -> None:
        tools = [FunctionTool.from_defaults(weather)]
        await FunctionAgent(tools=tools, llm=Model(), system_prompt=SYSTEM, streaming=False).run(QUESTION)

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    asyncio.run(talk())
    LlamaIndexInstrumentor().uninstrument()


def traceloop_langgraph(provider: Any) -> None:
    """An agent of LangChain with a tool that searches."""
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import tool
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    class Handbook(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=text) for text in PASSAGES]

    class Model(GenericFakeChatModel):
        def _get_ls_params(self, *_: Any, **__: Any) -> Any:
            return {"ls_model_name": MODEL}

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    @tool
    def weather(city: str) -> str:
        """The weather."""
        Handbook().invoke(city)
        return RESULT

    usage: Any = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}
    call: Any = {"name": "weather", "args": ARGUMENTS, "id": "call_w"}
    more: Any = {"usage_metadata": usage, "response_metadata": {"model_name": MODEL}}
    replies = [AIMessage(content="", tool_calls=[call], **more), AIMessage(content=ANSWER, **more)]
    agent = create_agent(Model(messages=iter(replies)), tools=[weather], system_prompt=SYSTEM, name="travel")
    LangchainInstrumentor().instrument(tracer_provider=provider)
    agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
    LangchainInstrumentor().uninstrument()


def recorded(make: Callable[[Any], None]) -> dict[str, Any]:
    """The spans that a function makes, as an export request in OTLP's JSON."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "travel-service"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    make(provider)
    data = MessageToDict(encode_spans(kept.get_finished_spans()), use_integers_for_enums=True)
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
                span["attributes"] = [each for each in span.get("attributes", ()) if _adds(each)]
    return data


def _adds(attribute: dict[str, Any]) -> bool:
    """Whether an attribute is more than bulk: not LangGraph's checkpoints, and no state of LlamaIndex's workflows."""
    noise = attribute["key"].startswith(("traceloop.association.", "gen_ai.task."))
    return not noise and len(json.dumps(attribute)) < 3000


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name in sys.argv[2:]:
        request = recorded(globals()[name.removesuffix("_flat")])
        (folder / f"{name}.jsonl").write_text(json.dumps(request, ensure_ascii=False) + "\n", encoding="utf-8")
