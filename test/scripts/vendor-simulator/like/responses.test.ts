import test, { type ExecutionContext } from 'ava';
import OpenAI from 'openai';
import { serverNames, type ServerName } from '../../../../scripts/vendor-simulator/like/personalities.ts';
import { parseFaultWords } from '../../../../scripts/vendor-simulator/faults.ts';
import {
  startVendorSimulator,
  type VendorSimulator,
  type VendorSimulatorOptions,
} from '../../../../scripts/vendor-simulator/simulator.ts';
import { postJson } from '../../../support/post-json.ts';
import { type ChunkEvent, readSse, type SseEvents } from '../../../support/sse-events.ts';

/** How each server writes its answers. */

const hello = { role: 'user' as const, content: 'hello' };
const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };

async function start(
  t: ExecutionContext,
  like: ServerName,
  options: VendorSimulatorOptions = {},
): Promise<VendorSimulator> {
  const vendor = await startVendorSimulator({ like, ...options });
  t.teardown(() => vendor.close());
  return vendor;
}

const post = ({ url }: VendorSimulator, body: object): Promise<Response> =>
  postJson(`${url}/v1/chat/completions`, null, { model: 'sim-reasoner', messages: [hello], ...body });

interface Whole {
  readonly id: string;
  readonly choices: readonly Readonly<Record<string, unknown>>[];
  readonly usage: Readonly<Record<string, unknown>>;
}
const ask = async (vendor: VendorSimulator, body: object = {}): Promise<Whole> =>
  (await (await post(vendor, body)).json()) as Whole;
const stream = async (vendor: VendorSimulator, body: object = {}): Promise<SseEvents> =>
  await readSse(await post(vendor, { stream: true, ...body }));
const deltas = ({ events }: SseEvents): NonNullable<ChunkEvent['choices']>[number]['delta'][] =>
  events.flatMap(({ choices = [] }) => choices.map(({ delta }) => delta));
const usages = ({ events }: SseEvents): number =>
  events.filter(({ usage }) => (usage ?? null) !== null).length;

const reasoning = 'The user asked, so an answer is due.';

for (const like of serverNames.filter((name) => name !== 'tei' && name !== 'mistral')) {
  test(`the official SDK reads the answers of ${like}, streamed and not`, async (t) => {
    const { url } = await start(t, like);
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-sim', maxRetries: 0 });
    const request = { model: 'sim', messages: [hello] };
    const whole = await client.chat.completions.create(request);
    t.is(whole.choices[0]?.message.content, 'You said: hello');
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    t.is(streamed.choices[0]?.message.content, 'You said: hello');
    t.is(streamed.choices[0]?.finish_reason, 'stop');
  });
}

test('vllm names reasoning twice and why it stopped, and sends usage in the last chunk only when asked', async (t) => {
  const vendor = await start(t, 'vllm');
  const { choices, usage } = await ask(vendor);
  t.like(choices[0], { finish_reason: 'stop', stop_reason: null });
  t.like(choices[0]?.['message'], { reasoning, reasoning_content: reasoning, tool_calls: [] });
  t.deepEqual(Object.keys(usage), [
    'prompt_tokens',
    'total_tokens',
    'completion_tokens',
    'prompt_tokens_details',
  ]);
  t.is(usages(await stream(vendor)), 0);
  const asked = await stream(vendor, { stream_options: { include_usage: true } });
  t.is(usages(asked), 1);
  t.deepEqual(asked.events.at(-1)?.choices, []);
  t.false(Object.hasOwn(asked.events[0]!, 'usage'));
});

test('ollama ignores what it does not know, and sends reasoning, and each call whole', async (t) => {
  const vendor = await start(t, 'ollama');
  const { id, choices } = await ask(vendor, { n: 2, max_completion_tokens: 1, unknown: true });
  t.regex(id, /^chatcmpl-\d+$/);
  t.is(choices.length, 1);
  t.deepEqual(choices[0]?.['message'], { role: 'assistant', content: 'You said: hello', reasoning });
  t.is(usages(await stream(vendor)), 0);
  t.is(usages(await stream(vendor, { stream_options: { include_usage: true } })), 1);
  const called = deltas(await stream(vendor, { tools: [tool] })).flatMap((delta) => delta.tool_calls ?? []);
  t.is(called.length, 1);
  t.deepEqual(called[0]?.function, { name: 'look', arguments: '{}' });
});

test('llamacpp reports timings, and the completion of the first choice only', async (t) => {
  const vendor = await start(t, 'llamacpp');
  const one = await ask(vendor);
  const two = await ask(vendor, { n: 2 });
  t.true(Object.hasOwn(one, 'timings'));
  t.is(two.choices.length, 2);
  t.is(two.usage['completion_tokens'], one.usage['completion_tokens']);
  t.true(Object.hasOwn((await stream(vendor)).events.at(-1)!, 'timings'));
});

test('mistral sends reasoning as parts of the content, and usage with the end, always', async (t) => {
  const vendor = await start(t, 'mistral');
  const { choices } = await ask(vendor);
  t.deepEqual(choices[0]?.['message'], {
    role: 'assistant',
    tool_calls: null,
    content: [
      { type: 'thinking', thinking: [{ type: 'text', text: reasoning }], closed: true },
      { type: 'text', text: 'You said: hello' },
    ],
  });
  const streamed = await stream(vendor);
  t.is(usages(streamed), 1);
  t.is(streamed.events.at(-1)?.choices?.[0]?.finish_reason, 'stop');
  t.true(deltas(streamed).some(({ content }) => Array.isArray(content)));
  const called = deltas(await stream(vendor, { tools: [tool] })).flatMap((delta) => delta.tool_calls ?? []);
  t.regex(called[0]?.id ?? '', /^[a-zA-Z0-9]{9}$/);
});

test('mistral ends with model_length if its own context is full', async (t) => {
  const vendor = await start(t, 'mistral', { replyWords: 33_000 });
  const { choices } = await ask(vendor, { model: 'sim', max_tokens: 32_760 });
  t.is(choices[0]?.['finish_reason'], 'model_length');
});

test('deepseek reports cache hits, and usage with the end', async (t) => {
  const vendor = await start(t, 'deepseek');
  const { choices, usage } = await ask(vendor, {
    model: 'cached-reasoner',
    messages: [{ role: 'user', content: 'one two three four' }],
  });
  t.like(choices[0]?.['message'], { reasoning_content: reasoning });
  t.like(usage, { prompt_cache_hit_tokens: 2, prompt_cache_miss_tokens: 2 });
  const streamed = await stream(vendor, { stream_options: { include_usage: true } });
  t.is(streamed.events.at(-1)?.choices?.[0]?.finish_reason, 'stop');
  t.is(usages(streamed), 1);
});

test('deepseek ends a stream that breaks off with insufficient_system_resource', async (t) => {
  const vendor = await start(t, 'deepseek', { faults: parseFaultWords('streamerror-3') });
  const { events, isDone } = await stream(vendor);
  t.false(isDone);
  t.is(events.at(-1)?.choices?.[0]?.finish_reason, 'insufficient_system_resource');
});

test('openrouter begins with comments, and sends native words, reasoning details and usage after the end', async (t) => {
  const vendor = await start(t, 'openrouter');
  const { choices, usage } = await ask(vendor);
  t.like(choices[0], { finish_reason: 'stop', native_finish_reason: 'end_turn' });
  t.like(choices[0]?.['message'], {
    reasoning,
    reasoning_details: [{ type: 'reasoning.text', text: reasoning, format: 'unknown', index: 0 }],
  });
  t.true(Object.hasOwn(usage, 'cost'));
  const text = await (await post(vendor, { stream: true })).text();
  t.true(text.startsWith(': OPENROUTER PROCESSING\n\n'));
  const streamed = await stream(vendor);
  t.is(usages(streamed), 1);
  t.is(streamed.events.at(-1)?.choices?.length, 1);
});

test('openrouter reports an error within a choice of a 200, and within a chunk of a stream', async (t) => {
  const vendor = await start(t, 'openrouter', { faults: parseFaultWords('streamerror-3') });
  const { choices } = await ask(vendor);
  t.like(choices[0], { finish_reason: 'error', error: { code: 502 } });
  const last = (await stream(vendor)).events.at(-1);
  t.is(Number(last?.error?.code), 502);
  t.is(last?.choices?.[0]?.finish_reason, 'error');
});

test('tei sends its own model, as numbers and as base64', async (t) => {
  const { url } = await start(t, 'tei');
  for (const encoding_format of ['float', 'base64']) {
    const response = await postJson(`${url}/v1/embeddings`, null, {
      input: ['x', 'y'],
      model: 'any',
      encoding_format,
    });
    const { model, data } = (await response.json()) as { model: string; data: { embedding: unknown }[] };
    t.is(model, 'BAAI/bge-base-en-v1.5');
    t.is(data.length, 2);
    t.is(typeof data[0]?.embedding, encoding_format === 'float' ? 'object' : 'string');
  }
});

test('a simulator like one server has no other dialect, and the errors that faults cause are in its format', async (t) => {
  const vendor = await start(t, 'vllm', { faults: parseFaultWords('fail-503') });
  t.is((await fetch(`${vendor.url}/v1/messages`, { method: 'POST', body: '{}' })).status, 404);
  const response = await post(vendor, {});
  t.is(response.status, 503);
  t.like(await response.json(), { error: { type: 'InternalServerError', code: 503 } });
});
