// Writes tests/agents/traces/ai_sdk.jsonl with the spans of the AI SDK's own telemetry, or ai_sdk_7.jsonl with those of
// version 7, which has it in a package of its own: ai@7 @ai-sdk/otel.
//
//     npm install ai@5 zod @opentelemetry/sdk-trace-node @opentelemetry/resources @opentelemetry/otlp-transformer
//     node tools/make_traces.mjs tests/agents/traces
import { writeFileSync } from "node:fs";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import * as ai from "ai";
import { generateText, stepCountIs, tool } from "ai";
import * as test from "ai/test";
import { z } from "zod";

const kept = new InMemorySpanExporter();
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "travel-service" }),
  spanProcessors: [new SimpleSpanProcessor(kept)],
});
provider.register();
const seven = "MockLanguageModelV4" in test;
if (seven) ai.registerTelemetry(new (await import("@ai-sdk/otel")).OpenTelemetry());
const reason = (unified) => (seven ? { unified, raw: unified } : unified);
const usage = seven ? { inputTokens: { total: 30 }, outputTokens: { total: 12 } } : { inputTokens: 30, outputTokens: 12, totalTokens: 42 };
const call = { type: "tool-call", toolCallId: "call_w", toolName: "weather", input: '{"city":"Bern, Switzerland"}' };
const replies = [
  { content: [call], finishReason: reason("tool-calls"), usage, warnings: [] },
  { content: [{ type: "text", text: "No, it will be sunny in Bern." }], finishReason: reason("stop"), usage, warnings: [] },
];
const model = new (test.MockLanguageModelV4 ?? test.MockLanguageModelV2)({ modelId: "gpt-5.1", provider: "openai", doGenerate: async () => replies.shift() });
const weather = tool({
  inputSchema: z.object({ city: z.string() }),
  execute: async () => "clear all afternoon, 21 degrees",
});
await generateText({
  model,
  [seven ? "instructions" : "system"]: "Be brief and cite the handbook.",
  prompt: "Do I need an umbrella in Bern tomorrow?",
  tools: { weather },
  stopWhen: stepCountIs(3),
  [seven ? "telemetry" : "experimental_telemetry"]: { isEnabled: true, functionId: "travel", tracer: provider.getTracer("ai") },
});
const request = new TextDecoder().decode(JsonTraceSerializer.serializeRequest(kept.getFinishedSpans()));
writeFileSync(`${process.argv[2]}/${seven ? "ai_sdk_7" : "ai_sdk"}.jsonl`, `${request}\n`);
