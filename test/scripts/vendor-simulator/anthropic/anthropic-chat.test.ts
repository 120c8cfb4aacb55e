import test from 'ava';

import {
  mergeAnthropicEvents,
  dig,
  digText,
  digList,
  type Json,
  readEvents,
  readJson,
  startDialectClients,
} from '../../../support/simulated-dialects.ts';

const MESSAGES = [{ role: 'user', content: 'hello there' }];
const SCHEMA = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
const TOOLS = [
  { name: 'look', input_schema: SCHEMA },
  { name: 'wait', input_schema: { type: 'object' } },
];
const SEARCH = { type: 'web_search_20250305', name: 'web_search' };
const THINKING = { type: 'enabled', budget_tokens: 1024 };

const bodies: readonly [string, Json][] = [
  ['a text', { messages: MESSAGES }],
  ['thinking', { messages: MESSAGES, thinking: THINKING }],
  ['hidden thinking', { messages: MESSAGES, thinking: { ...THINKING, display: 'omitted' } }],
  ['tool calls', { model: 'claude-parallel', messages: MESSAGES, tools: TOOLS, thinking: THINKING }],
  ['search results', { messages: MESSAGES, tools: [SEARCH] }],
  ['a limited answer', { messages: MESSAGES, max_tokens: 2 }],
  ['cached tokens', { model: 'claude-cached-cachewrite', messages: MESSAGES, system: 'be kind to all' }],
  ['a refusal', { messages: [{ role: 'user', content: 'blockme now' }] }],
];

for (const [what, body] of bodies) {
  test(`${what}: a stream adds up to the same result as a whole response`, async (t) => {
    const { askAnthropic } = await startDialectClients(t);
    const whole = await readJson(await askAnthropic(body));
    const added = mergeAnthropicEvents(await readEvents(await askAnthropic({ ...body, stream: true })));
    const content = digList(added, 'content').map((block) =>
      block['type'] === 'text' ? { citations: null, ...block } : block,
    );
    t.deepEqual(content, [...digList(whole, 'content')]);
    t.is(added['stop_reason'], whole['stop_reason']);
    t.like(whole['usage'], added['usage'] as Json);
  });
}

test("a stream's events come in the vendor's order, with a ping and with spaces after the JSON", async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const response = await askAnthropic({ messages: MESSAGES, thinking: THINKING, stream: true });
  const text = await response.text();
  const order = [...text.matchAll(/^event: (.+)$/gm)].map(([, name]) => name);
  t.deepEqual(order.slice(0, 4), ['message_start', 'content_block_start', 'ping', 'content_block_delta']);
  t.deepEqual(order.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
  t.regex(text, /\} +\n\n/);
  const events = await readEvents(
    await askAnthropic({ messages: MESSAGES, thinking: THINKING, stream: true }),
  );
  const firstBlock = events.filter((event) => event['index'] === 0);
  t.is(dig(firstBlock.at(-2), 'delta', 'type'), 'signature_delta');
  t.deepEqual(
    new Set(events.map((event) => event['index']).filter((index) => index !== undefined)),
    new Set([0, 1]),
  );
});

test('the first event has the prompt tokens and one output token in its usage, and the last has the complete usage', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const events = await readEvents(
    await askAnthropic({ messages: MESSAGES, thinking: THINKING, tools: [SEARCH], stream: true }),
  );
  t.like(dig(events[0], 'message', 'usage'), { input_tokens: 2, output_tokens: 1 });
  const end = events.find((event) => event['type'] === 'message_delta');
  t.like(end?.['usage'], {
    input_tokens: 20,
    output_tokens: 12,
    output_tokens_details: { thinking_tokens: 8 },
    server_tool_use: { web_search_requests: 1 },
  });
});

test('cached tokens are reported separately, and are not included in the input tokens', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const body = {
    model: 'claude-cached-cachewrite',
    messages: MESSAGES,
    system: 'one two three four five six',
  };
  const { usage } = await readJson(await askAnthropic(body));
  t.like(usage, { input_tokens: 2, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 });
});

test('a tool call starts with an empty piece, which is the only one if the tool has no arguments', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const body = { model: 'claude-parallel', messages: MESSAGES, tools: TOOLS, stream: true };
  const events = await readEvents(await askAnthropic(body));
  const piecesOf = (index: number): unknown[] =>
    events
      .filter((event) => event['index'] === index && event['type'] === 'content_block_delta')
      .map((event) => dig(event, 'delta', 'partial_json'));
  t.deepEqual(piecesOf(0), ['', '{"at":"si', 'mulated"}']);
  t.deepEqual(piecesOf(1), ['']);
  const starts = events.filter((event) => event['type'] === 'content_block_start');
  t.deepEqual(
    starts.map((event) => dig(event, 'content_block', 'input')),
    [{}, {}],
  );
});

test('tools are called as tool_choice specifies, each call with its own id, and not again after a result', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const namesOf = (answer: Json): unknown[] => digList(answer, 'content').map((block) => block['name']);
  const send = async (body: Json): Promise<Json> =>
    readJson(await askAnthropic({ model: 'claude-parallel', tools: TOOLS, messages: MESSAGES, ...body }));
  t.deepEqual(namesOf(await send({})), ['look', 'wait']);
  t.deepEqual(namesOf(await send({ model: 'claude-sim' })), ['look']);
  t.deepEqual(namesOf(await send({ tool_choice: { type: 'auto', disable_parallel_tool_use: true } })), [
    'look',
  ]);
  t.deepEqual(namesOf(await send({ tool_choice: { type: 'tool', name: 'wait' } })), ['wait']);
  t.deepEqual(namesOf(await send({ tool_choice: { type: 'none' } })), [undefined]);

  const messages: Json[] = [...MESSAGES];
  const ids = new Set<unknown>();
  for (let round = 0; round < 3; round += 1) {
    const called = await send({ messages });
    t.is(called['stop_reason'], 'tool_use');
    const uses = digList(called, 'content');
    uses.forEach((use) => ids.add(use['id']));
    messages.push(
      { role: 'assistant', content: uses },
      { role: 'user', content: uses.map((use) => ({ type: 'tool_result', tool_use_id: use['id'] })) },
    );
    const answered = await send({ messages });
    t.is(dig(answered, 'content', 0, 'text'), 'You said: hello there');
    messages.push({ role: 'assistant', content: answered['content'] }, ...MESSAGES);
  }
  t.is(ids.size, 6);
});

test('a search is returned as a call, its results and a text that cites them', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const answer = await readJson(await askAnthropic({ messages: MESSAGES, tools: [SEARCH] }));
  const [use, found, first, cited] = digList(answer, 'content');
  t.like(use, { type: 'server_tool_use', name: 'web_search', input: { query: 'hello there' } });
  t.like(found, { type: 'web_search_tool_result', tool_use_id: use?.['id'] });
  t.is(`${digText(first, 'text')}${digText(cited, 'text')}`, 'You said: hello there');
  t.like(digList(cited, 'citations')[0], {
    type: 'web_search_result_location',
    url: dig(found, 'content', 0, 'url'),
  });
});

test('a paused turn continues where it stopped, and its halves together have as many output tokens as the whole', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const body = { model: 'claude-pauseturn', thinking: THINKING, tools: [SEARCH] };
  const paused = await readJson(await askAnthropic({ ...body, messages: MESSAGES }));
  t.is(paused['stop_reason'], 'pause_turn');
  const messages = [...MESSAGES, { role: 'assistant', content: paused['content'] }];
  const rest = await readJson(await askAnthropic({ ...body, messages }));
  t.is(rest['stop_reason'], 'end_turn');
  const text = [paused, rest].flatMap((answer) =>
    digList(answer, 'content').map((block) => digText(block, 'text')),
  );
  t.is(text.join(''), 'You said: hello there');
  const output = [paused, rest].map((answer) => Number(dig(answer, 'usage', 'output_tokens')));
  t.is((output[0] ?? 0) + (output[1] ?? 0), 12);
});

test('the answer follows the requested schema', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const output_config = { format: { type: 'json_schema', schema: SCHEMA } };
  const answer = await readJson(await askAnthropic({ messages: MESSAGES, output_config }));
  t.deepEqual(JSON.parse(digText(answer, 'content', 0, 'text')), { at: 'simulated' });
});

test('fault words move the usage to other events or remove it', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const outputTokensWith = async (word: string): Promise<unknown[]> => {
    const events = await readEvents(
      await askAnthropic({ model: `claude-sim+${word}`, messages: MESSAGES, stream: true }),
    );
    const end = events.find((event) => event['type'] === 'message_delta');
    return [dig(events[0], 'message', 'usage', 'output_tokens'), dig(end, 'usage', 'output_tokens')];
  };
  t.deepEqual(await outputTokensWith('nousage'), [undefined, undefined]);
  t.deepEqual(await outputTokensWith('firstusage'), [4, undefined]);
  t.deepEqual(await outputTokensWith('finishusage'), [undefined, 4]);
  t.deepEqual(await outputTokensWith('everyusage'), [4, 4]);
  t.deepEqual(await outputTokensWith('outputusage'), [1, 4]);
});

test('fault words remove or repeat the events at the end of a stream', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const namesOf = async (word: string): Promise<unknown[]> => {
    const body = { model: `claude-sim+${word}`, messages: MESSAGES, stream: true };
    return (await readEvents(await askAnthropic(body))).map((event) => event['type']);
  };
  t.deepEqual((await namesOf('nomark')).slice(-2), ['content_block_stop', 'message_delta']);
  t.deepEqual((await namesOf('nofinish')).slice(-2), ['content_block_stop', 'message_stop']);
  t.is((await namesOf('noend')).at(-1), 'content_block_stop');
  const twice = await namesOf('duplicates');
  for (const name of [
    'message_start',
    'content_block_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]) {
    t.is(twice.filter((type) => type === name).length, 2, name);
  }
});
