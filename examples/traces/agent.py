"""A traced agent of pydantic-ai. Its model is a function, so that it answers without a network.

It exports its spans to wherever OTEL_EXPORTER_OTLP_ENDPOINT says. Needs
`pip install pydantic-ai-slim opentelemetry-sdk opentelemetry-exporter-otlp-proto-http`.
"""

from __future__ import annotations

import json
import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

HANDBOOK = {
    "return": "Goods can be returned within 30 days of delivery.",
    "deliver": "Delivery takes three working days in Switzerland.",
}
ANSWERS = {
    "return": "Goods can be returned within 30 days of delivery.",
    "deliver": "Delivery takes one working day in Switzerland.",  # wrong: the handbook says three
}


def topic(messages: list[ModelMessage]) -> str:
    """What the user asks about."""
    asked = next(str(part.content) for part in messages[0].parts if isinstance(part, UserPromptPart))
    return next((word for word in HANDBOOK if word in asked.lower()), "")


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that looks the topic up, and then answers."""
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return ModelResponse(parts=[TextPart(ANSWERS[topic(messages)])])
    return ModelResponse(parts=[ToolCallPart("look_up", {"topic": topic(messages)})])


def main() -> None:
    """Answer three questions, each in a trace of its own."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("shop")
    agent = Agent(FunctionModel(model), name="clerk", instructions="Answer from the handbook.")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def look_up(topic: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Search the handbook."""
        with tracer.start_as_current_span("retrieval handbook") as span:
            found = [{"id": topic, "content": HANDBOOK[topic]}]
            span.set_attribute("gen_ai.operation.name", "retrieval")
            span.set_attribute("gen_ai.retrieval.query.text", topic)
            span.set_attribute("gen_ai.retrieval.documents", json.dumps(found))
            return HANDBOOK[topic]

    for question in ("Can I return a lamp?", "How fast do you deliver?", "When must I return goods?"):
        print(agent.run_sync(question).output)
    provider.shutdown()


if __name__ == "__main__":
    if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
        raise SystemExit("set OTEL_EXPORTER_OTLP_ENDPOINT to the address that evalstone collect prints")
    main()
