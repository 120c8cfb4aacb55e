import test from 'ava';

import { makePng } from '../../../scripts/vendor-simulator/tiny-png.ts';
import {
  type CallOptions,
  type DialectClients,
  dig,
  digText,
  type Json,
  readJson,
  startDialectClients,
} from '../../support/simulated-dialects.ts';

const KEY = 'sk-sim-0123456789';
const HELLO = 'hello there, what is this';

type Send = (words?: string, options?: CallOptions & { readonly stream?: boolean }) => Promise<Response>;

/** The same small call in each dialect, with fault words in the model's name. */
function sendersFor({ askOpenAi, askAnthropic, askGemini }: DialectClients): Readonly<Record<string, Send>> {
  const name = (model: string, words: string): string => (words === '' ? model : `${model}+${words}`);
  const messages = [{ role: 'user', content: HELLO }];
  return {
    openai: (words = '', { stream = false, ...options } = {}) =>
      askOpenAi({ model: name('gpt-sim', words), messages, stream }, options),
    anthropic: (words = '', { stream = false, ...options } = {}) =>
      askAnthropic({ model: name('claude-sim', words), messages, stream }, options),
    gemini: (words = '', { stream = false, ...options } = {}) =>
      askGemini(
        name('gemini-sim', words),
        { contents: [{ parts: [{ text: HELLO }] }] },
        { ...options, action: stream ? 'streamGenerateContent?alt=sse' : 'generateContent' },
      ),
  };
}

interface ConversationResult {
  readonly text: unknown;
  readonly calls: readonly unknown[];
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
}

const SYSTEM = 'be short and kind';
const TOOL = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
const PNG = makePng(2, 2, [1, 2, 3]).toString('base64');
/** Spaces in JSON text, which are lost in a dialect that transfers arguments as objects. */
const RESULT = '{ "sky": "sunny all day", "wind": 3 }';

/** The same conversation in each dialect, up to a tool call or including its result. */
const conversations: Readonly<
  Record<string, (clients: DialectClients, hasResult: boolean) => Promise<ConversationResult>>
> = {
  async openai({ askOpenAi }, hasResult) {
    const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"x"}' } };
    const answer = await readJson(
      await askOpenAi({
        reasoning_effort: 'low',
        tools: [{ type: 'function', function: { name: 'look', parameters: TOOL } }],
        messages: [
          { role: 'system', content: SYSTEM },
          {
            role: 'user',
            content: [
              { type: 'text', text: HELLO },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
            ],
          },
          ...(hasResult
            ? [
                { role: 'assistant', content: 'let me see', tool_calls: [call] },
                { role: 'tool', tool_call_id: 'call_1', content: RESULT },
              ]
            : []),
        ],
      }),
    );
    const message = dig(answer, 'choices', 0, 'message') as Json;
    return {
      text: message['content'] ?? '',
      calls: ((message['tool_calls'] ?? []) as Json[]).map((item) =>
        JSON.parse(digText(item, 'function', 'arguments')),
      ),
      prompt: Number(dig(answer, 'usage', 'prompt_tokens')),
      completion: Number(dig(answer, 'usage', 'completion_tokens')),
      reasoning: Number(dig(answer, 'usage', 'completion_tokens_details', 'reasoning_tokens')),
    };
  },

  async anthropic({ askAnthropic }, hasResult) {
    const answer = await readJson(
      await askAnthropic({
        thinking: { type: 'adaptive' },
        system: SYSTEM,
        tools: [{ name: 'look', input_schema: TOOL }],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
              { type: 'text', text: HELLO },
            ],
          },
          ...(hasResult
            ? [
                {
                  role: 'assistant',
                  content: [
                    { type: 'text', text: 'let me see' },
                    { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'x' } },
                  ],
                },
                {
                  role: 'user',
                  content: [
                    {
                      type: 'tool_result',
                      tool_use_id: 'call_1',
                      content: [{ type: 'text', text: RESULT }],
                    },
                  ],
                },
              ]
            : []),
        ],
      }),
    );
    const content = answer['content'] as Json[];
    return {
      text: content.map((block) => digText(block, 'text')).join(''),
      calls: content.filter((block) => block['type'] === 'tool_use').map((block) => block['input']),
      prompt: Number(dig(answer, 'usage', 'input_tokens')),
      completion: Number(dig(answer, 'usage', 'output_tokens')),
      reasoning: Number(dig(answer, 'usage', 'output_tokens_details', 'thinking_tokens')),
    };
  },

  async gemini({ askGemini }, hasResult) {
    const answer = await readJson(
      await askGemini('gemini-sim', {
        systemInstruction: { parts: [{ text: SYSTEM }] },
        generationConfig: { thinkingConfig: { thinkingBudget: 1024 } },
        tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: TOOL }] }],
        contents: [
          { role: 'user', parts: [{ text: HELLO }, { inlineData: { mimeType: 'image/png', data: PNG } }] },
          ...(hasResult
            ? [
                {
                  role: 'model',
                  parts: [{ text: 'let me see' }, { functionCall: { name: 'look', args: { at: 'x' } } }],
                },
                {
                  role: 'user',
                  parts: [{ functionResponse: { name: 'look', response: JSON.parse(RESULT) as Json } }],
                },
              ]
            : []),
        ],
      }),
    );
    const parts = dig(answer, 'candidates', 0, 'content', 'parts') as Json[];
    const usage = answer['usageMetadata'] as Json;
    return {
      text: parts.map((part) => digText(part, 'text')).join(''),
      calls: parts.flatMap((part) => dig(part, 'functionCall', 'args') ?? []),
      prompt: Number(usage['promptTokenCount']),
      completion: Number(usage['candidatesTokenCount']) + Number(usage['thoughtsTokenCount']),
      reasoning: Number(usage['thoughtsTokenCount']),
    };
  },
};

test('the same conversation gets the same answer and the same token counts in all dialects', async (t) => {
  const clients = await startDialectClients(t);
  const promptTokens = 4 + 5;
  for (const [dialect, converse] of Object.entries(conversations)) {
    t.deepEqual(
      await converse(clients, false),
      { text: '', calls: [{ at: 'simulated' }], prompt: promptTokens, completion: 8 + 2, reasoning: 8 },
      dialect,
    );
    t.deepEqual(
      await converse(clients, true),
      {
        text: `You said: ${HELLO}`,
        calls: [],
        prompt: promptTokens + 3 + 3,
        completion: 8 + 7,
        reasoning: 8,
      },
      dialect,
    );
  }
});

/** A fault word, then each vendor's status and its own name for the error. */
const vendorErrors: readonly [string, Readonly<Record<string, readonly [number, string]>>][] = [
  [
    'revoked',
    {
      openai: [401, 'invalid_request_error'],
      anthropic: [401, 'authentication_error'],
      gemini: [400, 'INVALID_ARGUMENT'],
    },
  ],
  [
    'exhausted',
    {
      openai: [429, 'insufficient_quota'],
      anthropic: [400, 'invalid_request_error'],
      gemini: [429, 'RESOURCE_EXHAUSTED'],
    },
  ],
  [
    'exhausted402',
    {
      openai: [402, 'unknown_error'],
      anthropic: [402, 'billing_error'],
      gemini: [429, 'RESOURCE_EXHAUSTED'],
    },
  ],
  [
    'forbidden',
    {
      openai: [403, 'invalid_request_error'],
      anthropic: [403, 'permission_error'],
      gemini: [403, 'PERMISSION_DENIED'],
    },
  ],
  [
    'fail-529',
    { openai: [529, 'server_error'], anthropic: [529, 'overloaded_error'], gemini: [529, 'INTERNAL'] },
  ],
  [
    'fail-429',
    {
      openai: [429, 'requests'],
      anthropic: [429, 'rate_limit_error'],
      gemini: [429, 'RESOURCE_EXHAUSTED'],
    },
  ],
  [
    'fail-503',
    { openai: [503, 'server_error'], anthropic: [503, 'api_error'], gemini: [503, 'UNAVAILABLE'] },
  ],
];

for (const [word, expected] of vendorErrors) {
  test(`${word} in the name of the model or in the key causes each vendor's own error`, async (t) => {
    const clients = await startDialectClients(t);
    for (const [dialect, send] of Object.entries(sendersFor(clients))) {
      for (const response of [await send(word), await send('', { key: `${KEY}+${word}` })]) {
        const [status, name] = expected[dialect] ?? [0, ''];
        const { error } = await readJson(response);
        t.is(response.status, status, dialect);
        t.is(dig(error, dialect === 'gemini' ? 'status' : 'type'), name, dialect);
      }
    }
  });
}

test('an Anthropic account without credit is recognizable only by the message, and an unknown Google key by a reason', async (t) => {
  const { anthropic, gemini } = sendersFor(await startDialectClients(t));
  const empty = await readJson((await anthropic?.('exhausted')) as Response);
  t.regex(digText(empty, 'error', 'message'), /credit balance is too low/);
  const unknown = await readJson((await gemini?.('revoked')) as Response);
  t.is(dig(unknown, 'error', 'details', 0, 'reason'), 'API_KEY_INVALID');
  t.true(JSON.stringify(dig(unknown, 'error', 'details')).includes(KEY));
});

test('the retry delay is in a header, or for Google in the body', async (t) => {
  for (const [dialect, send] of Object.entries(sendersFor(await startDialectClients(t)))) {
    const response = await send('fail-429+retry-1500');
    const isGemini = dialect === 'gemini';
    t.is(response.headers.get('retry-after'), isGemini ? null : '2', dialect);
    t.is(response.headers.get('retry-after-ms'), isGemini ? null : '1500', dialect);
    const { error } = await readJson(response);
    t.is(dig(error, 'details', 0, 'retryDelay'), isGemini ? '1.5s' : undefined, dialect);
  }
});

test('with a fault word, the errors of every dialect contain the key', async (t) => {
  for (const [dialect, send] of Object.entries(sendersFor(await startDialectClients(t)))) {
    t.true((await (await send('fail-500+echokey')).text()).includes(KEY), dialect);
    t.false((await (await send('fail-500')).text()).includes(KEY), dialect);
  }
});

test("an error within a stream has the dialect's format and follows the content already sent", async (t) => {
  const forms: Readonly<Record<string, RegExp>> = {
    openai: /\n\ndata: \{"error":\{[^\n]*\}\}\n\n$/,
    anthropic: /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"overloaded_error"[^\n]*\n\n$/,
    gemini: /\r\n\r\n\{\n {2}"error": \{\n {4}"code": 503,[^]*\}$/,
  };
  for (const [dialect, send] of Object.entries(sendersFor(await startDialectClients(t)))) {
    const response = await send('streamerror-2', { stream: true });
    t.is(response.status, 200);
    t.regex(await response.text(), forms[dialect] ?? /^$/, dialect);
  }
});

test('an interrupted stream has no end marker, and a stalled one stays open until its caller disconnects', async (t) => {
  const clients = await startDialectClients(t);
  for (const [dialect, send] of Object.entries(sendersFor(clients))) {
    await t.throwsAsync(async () => (await send('cut-2', { stream: true })).text(), undefined, dialect);
    await t.throwsAsync(async () => (await send('cutbytes-20')).text(), undefined, dialect);
    for (const words of ['stall-2', 'hang']) {
      const response = await send(words, { stream: true });
      const entry = clients.simulator.requests.entries.at(-1);
      t.is(entry?.isOver, false);
      await response.body?.cancel();
      const endedCall = await clients.simulator.requests.waitFor((item) => item === entry && item.isOver);
      t.true(endedCall.isAborted, `${dialect} ${words}`);
    }
  }
});

test("nonsense responses are sent in every dialect, and a body that is not JSON is rejected in the dialect's format", async (t) => {
  const clients = await startDialectClients(t);
  for (const [dialect, send] of Object.entries(sendersFor(clients))) {
    const response = await send('garbage');
    t.is(response.status, 200);
    await t.throwsAsync(() => response.json(), undefined, dialect);
  }
  const send = async (path: string): Promise<Json> => {
    const headers = { 'x-api-key': KEY, 'x-goog-api-key': KEY, 'anthropic-version': '2023-06-01' };
    const response = await fetch(`${clients.simulator.url}${path}`, { method: 'POST', headers, body: '{' });
    t.is(response.status, 400, path);
    return readJson(response);
  };
  t.is(dig(await send('/v1/chat/completions'), 'error', 'type'), 'invalid_request_error');
  t.is((await send('/v1/messages'))['type'], 'error');
  t.is(dig(await send('/v1beta/models/x:generateContent'), 'error', 'status'), 'INVALID_ARGUMENT');
});

test('an unknown path gets a 404 in the format of the dialect that it resembles', async (t) => {
  const { simulator } = await startDialectClients(t);
  const send = async (path: string): Promise<Json> => {
    const response = await fetch(`${simulator.url}${path}`, { method: 'POST', body: '{}' });
    t.is(response.status, 404, path);
    return readJson(response);
  };
  t.like(await send('/v1/nothing'), { error: { type: 'invalid_request_error' } });
  t.like(await send('/v1/messages/nothing'), { type: 'error', error: { type: 'not_found_error' } });
  t.like(await send('/v1beta/models/x:nothing'), { error: { status: 'NOT_FOUND' } });
});

test('the calls of all dialects share one concurrency limit, and are counted and recorded in the same way', async (t) => {
  const clients = await startDialectClients(t, {
    cost: { perCallMs: 60_000, maxConcurrency: 1, overflow: 'reject' },
  });
  const messages = [{ role: 'user', content: 'x' }];
  // This call is still in progress when the simulator stops.
  clients.askOpenAi({ model: 'gpt-held', messages }).catch(() => undefined);
  await clients.simulator.requests.waitFor((entry) => entry.model === 'gpt-held');
  for (const [dialect, send] of Object.entries(sendersFor(clients))) {
    t.is((await send()).status, 429, dialect);
  }
  t.deepEqual(
    { ...clients.simulator.requests.counters.byModel },
    {
      'gpt-held': 1,
      'gpt-sim': 1,
      'claude-sim': 1,
      'gemini-sim': 1,
    },
  );
  t.true(clients.simulator.requests.entries.every((entry) => entry.key === KEY));
});
