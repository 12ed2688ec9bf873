// Writes the fixtures of the AI SDK and of Mastra in tests/agents/transcripts, as these libraries return them:
//     npm install ai @mastra/core zod && node tools/make_transcripts.mjs tests/agents/transcripts
import { generateText, jsonSchema, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import fs from 'node:fs';
import path from 'node:path';

const folder = process.argv[2];
const version = (name) => JSON.parse(fs.readFileSync(`node_modules/${name}/package.json`, 'utf8')).version;
const write = (name, format, source, transcript) => {
  const file = path.join(folder, `${name}.json`);
  const { metadata } = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
  fs.writeFileSync(file, JSON.stringify({ format, source, metadata, transcript }, null, 1) + '\n');
};

const usage = {
  inputTokens: { total: 10, noCache: 6, cacheRead: 4, cacheWrite: 0 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};
const call = { type: 'tool-call', toolCallId: 'call_w', toolName: 'weather', input: '{"city":"Bern, Switzerland"}' };
const broken = { type: 'tool-call', toolCallId: 'call_t', toolName: 'tides', input: '{"harbor":"Port of Basel"}' };
const image = 'iVBORw0KGgo=';
const page = { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.org/w', title: 'Weather page' };
const turns = (file) => [
  [{ type: 'reasoning', text: 'The forecast has to be looked up.' },
   { type: 'text', text: 'Let me check the weather.' }, call, broken],
  [page, file, { type: 'text', text: 'It will be sunny in Bern.' }],
];
const finish = (number) =>
  number === 0 ? { unified: 'tool-calls', raw: 'tool_calls' } : { unified: 'stop', raw: 'stop' };

function chunks(content) {
  return content.flatMap((part, number) => {
    if (part.type !== 'text' && part.type !== 'reasoning') return [part];
    const id = `${part.type}-${number}`;
    return [{ type: `${part.type}-start`, id }, { type: `${part.type}-delta`, id, delta: part.text },
            { type: `${part.type}-end`, id }];
  });
}

function model(kind, file) {
  let number = 0;
  return new kind({
    doGenerate: async () => {
      const turn = number++;
      return { content: turns(file)[turn], finishReason: finish(turn), usage, warnings: [] };
    },
    doStream: async () => {
      const turn = number++;
      const parts = [{ type: 'stream-start', warnings: [] }, ...chunks(turns(file)[turn]),
                     { type: 'finish', finishReason: finish(turn), usage }];
      return { stream: new ReadableStream({ start(to) { parts.forEach((part) => to.enqueue(part)); to.close(); } }) };
    },
  });
}

const forecast = async () => ({ sky: 'clear all afternoon', high: 21 });
const fail = async () => { throw new Error('no tide table for this harbor'); };
const file4 = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: image } };
const settings = () => ({
  model: model(MockLanguageModelV4, file4),
  system: 'Be brief and cite the handbook.',
  prompt: 'What is the weather in Bern tomorrow?',
  tools: {
    weather: tool({ inputSchema: jsonSchema({ type: 'object' }), execute: forecast }),
    tides: tool({ inputSchema: jsonSchema({ type: 'object' }), execute: fail }),
  },
  stopWhen: stepCountIs(3),
});

const result = await generateText(settings());
write('ai_sdk_result', 'AI SDK', `ai ${version('ai')}`, result);

const streamed = streamText(settings());
let message;
for await (const part of readUIMessageStream({ stream: streamed.toUIMessageStream({ sendSources: true }) })) {
  message = part;
}
const question = {
  id: 'msg_user', role: 'user',
  parts: [{ type: 'text', text: 'What is the weather in Bern tomorrow?' },
          { type: 'file', mediaType: 'application/pdf', filename: 'plan.pdf', url: 'https://example.org/plan.pdf' }],
};
write('ai_sdk_ui', 'AI SDK', `ai ${version('ai')}`, [question, message]);
const asked = { role: 'user', content: [{ type: 'text', text: 'What is the weather in Bern tomorrow?' }] };
write('ai_sdk_messages', 'AI SDK', `ai ${version('ai')}`,
  [{ role: 'system', content: 'Be brief and cite the handbook.' }, asked, ...result.responseMessages]);

const agent = new Agent({
  id: 'guide', name: 'guide', instructions: 'Be brief and cite the handbook.',
  model: model(MockLanguageModelV3, { type: 'file', mediaType: 'image/png', data: image }),
  tools: {
    weather: createTool({ id: 'weather', description: 'Forecast', inputSchema: z.object({ city: z.string() }),
                          execute: forecast }),
    tides: createTool({ id: 'tides', description: 'Tides', inputSchema: z.object({ harbor: z.string() }),
                        execute: fail }),
  },
});
const generated = await agent.generate('What is the weather in Bern tomorrow?');
write('mastra_result', 'Mastra', `@mastra/core ${version('@mastra/core')}`, generated);
write('mastra_messages', 'Mastra', `@mastra/core ${version('@mastra/core')}`, generated.messages);
process.exit(0);
