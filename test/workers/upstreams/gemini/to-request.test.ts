import test from 'ava';

import type { JsonRecord } from '../../../../shared/encoding/json-record.ts';
import { toMethodPath, toModelName } from '../../../../workers/upstreams/gemini/model-name.ts';
import type { ConversationInputs } from '../../../../workers/upstreams/gemini/to-contents.ts';
import { isSentAsBytes } from '../../../../workers/upstreams/gemini/to-parts.ts';
import { toChatRequest } from '../../../../workers/upstreams/gemini/to-request.ts';
import { UpstreamError, type UpstreamTarget } from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const NOTHING: ConversationInputs = { images: new Map(), recalled: new Map() };
const HELLO = [{ role: 'user', content: 'hi' }];

function translate(
  body: JsonRecord,
  { model = 'gemini-2.5-flash', ...more }: Partial<UpstreamTarget> = {},
  inputs: Partial<ConversationInputs> = {},
): JsonRecord {
  return toChatRequest(createTarget(model, more), { messages: HELLO, ...body }, { ...NOTHING, ...inputs });
}

const contents = (...args: Parameters<typeof translate>): unknown => translate(...args)['contents'];
const config = (...args: Parameters<typeof translate>): unknown => translate(...args)['generationConfig'];

const call = (id: string | undefined, name: string, args = '{}', more: object = {}): JsonRecord => ({
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { name, arguments: args },
  ...more,
});

test('a plain message is one content, and fields without a Gemini equivalent are left out', (t) => {
  const body = { model: 'alias', user: 'u', metadata: {}, logit_bias: {}, stream: true, foo: 1, n: null };
  t.deepEqual(translate(body), { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] });
});

test('the path contains the model with its collection, URL-encoded', (t) => {
  t.is(
    toMethodPath('gemini-2.5-flash', 'generateContent'),
    '/v1beta/models/gemini-2.5-flash:generateContent',
  );
  t.is(toMethodPath('models/a b', 'x'), '/v1beta/models/a%20b:x');
  t.is(toMethodPath('tunedModels/a/b?c', 'x'), '/v1beta/tunedModels/a%2Fb%3Fc:x');
  t.is(toModelName('google/gemma'), 'models/google/gemma');
  t.is(toModelName('tunedModels/x'), 'tunedModels/x');
});

test('instructions from anywhere in the conversation are sent separately, in order', (t) => {
  const messages = [
    { role: 'system', content: 'be brief' },
    { role: 'developer', content: [{ type: 'text', text: 'be ' }, { text: 'kind' }] },
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'hello' },
    { role: 'system', content: 'be bold' },
    { role: 'system', content: '' },
    { role: 'user', content: 'go on' },
  ];
  t.deepEqual(translate({ messages }), {
    systemInstruction: { parts: [{ text: 'be brief' }, { text: 'be kind' }, { text: 'be bold' }] },
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ text: 'hello' }] },
      { role: 'user', parts: [{ text: 'go on' }] },
    ],
  });
});

test('instructions alone are sent as contents, because contents are never empty', (t) => {
  t.deepEqual(translate({ messages: [{ role: 'system', content: 'sing' }] }), {
    contents: [{ role: 'user', parts: [{ text: 'sing' }] }],
  });
  const error = t.throws(() => translate({ messages: [{ role: 'user', content: '' }] }), {
    instanceOf: UpstreamError,
  });
  t.is(error.failure, 'rejected');
});

test('consecutive messages of one role are one content, and empty ones are dropped', (t) => {
  const messages = [
    { role: 'user', content: 'a' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'b' },
        { type: 'text', text: '' },
      ],
    },
    { role: 'assistant', content: '' },
    { role: 'user', content: 'c' },
    { role: 'assistant', content: 'd' },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    { role: 'user', content: 'e' },
  ];
  t.deepEqual(contents({ messages }), [
    { role: 'user', parts: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] },
    { role: 'model', parts: [{ text: 'd' }, { text: 'no' }] },
    { role: 'user', parts: [{ text: 'e' }] },
  ]);
});

test('images are sent as loaded bytes, or as links if the route passes links to the vendor', (t) => {
  const link = 'https://example.com/a/cat.PNG?size=2';
  const bare = 'https://example.com/cat';
  const data = 'data:image/gif;base64,R0lGODlh';
  const content = [link, bare, data].map((url) => ({ type: 'image_url', image_url: { url } }));
  const messages = [{ role: 'user', content }];
  const images = new Map(
    [link, bare, data].map((url, i) => [url, { mediaType: 'image/webp', base64: `b${i}` }]),
  );
  const inline = (base64: string): object => ({ inlineData: { mimeType: 'image/webp', data: base64 } });
  t.deepEqual(contents({ messages }, { imageUrls: 'fetch' }, { images }), [
    { role: 'user', parts: [inline('b0'), inline('b1'), inline('b2')] },
  ]);
  t.deepEqual(contents({ messages }, { imageUrls: 'pass' }, { images }), [
    {
      role: 'user',
      parts: [{ fileData: { mimeType: 'image/png', fileUri: link } }, inline('b1'), inline('b2')],
    },
  ]);
});

test('files and audio are sent as bytes, with their declared type', (t) => {
  const content = [
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
    { file: { file_data: 'data:text/plain;charset=utf-8;base64,aGk=' } },
    { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
    { type: 'input_audio', input_audio: { data: 'SUQz', format: 'mp3' } },
  ];
  t.deepEqual(contents({ messages: [{ role: 'user', content }] }), [
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
        { inlineData: { mimeType: 'text/plain', data: 'aGk=' } },
        { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } },
        { inlineData: { mimeType: 'audio/mp3', data: 'SUQz' } },
      ],
    },
  ]);
});

test('content that Gemini cannot represent is rejected instead of being left out', (t) => {
  const user = (part: object): JsonRecord => ({ messages: [{ role: 'user', content: [part] }] });
  const assistant = (toolCall: object): JsonRecord => ({
    messages: [...HELLO, { role: 'assistant', content: null, tool_calls: [toolCall] }],
  });
  const bodies: JsonRecord[] = [
    user({ type: 'video_url', video_url: { url: 'https://x/y' } }),
    user({ type: 'file', file: { file_id: 'file-1' } }),
    user({ type: 'file', file: { file_data: 'https://x/y.pdf' } }),
    user({ type: 'input_audio', input_audio: { data: 'x', format: 'ogg' } }),
    user({ type: 'image_url', image_url: {} }),
    { messages: [{ role: 'critic', content: 'x' }] },
    { messages: [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://x/y' } }] }] },
    assistant(call('a', 'f', '[1]')),
    assistant(call('a', 'f', '{"x":')),
    assistant({ id: 'a', type: 'custom', custom: {} }),
    { tools: [{ type: 'custom', custom: { name: 'x' } }] },
    { tool_choice: { type: 'custom' } },
    { tool_choice: 'sometimes' },
    { stop: ['1', '2', '3', '4', '5', '6'] },
  ];
  for (const body of bodies) {
    const error = t.throws(() => translate(body), { instanceOf: UpstreamError }, JSON.stringify(body));
    t.is(error.failure, 'rejected');
  }
});

const CALLS = {
  role: 'assistant',
  content: 'wait',
  tool_calls: [call('given-1', 'weather', '{"city":"Paris"}'), call('call_gw_0a', 'now', '')],
};

test('tool calls and results have names, objects and Gemini’s own ids, and all results are in one content', (t) => {
  const messages = [
    ...HELLO,
    CALLS,
    { role: 'tool', tool_call_id: 'call_gw_0a', content: 'noon' },
    {
      role: 'tool',
      tool_call_id: 'given-1',
      content: [{ type: 'text', text: '{"sun":' }, { text: 'true}' }],
    },
  ];
  t.deepEqual(contents({ messages }), [
    { role: 'user', parts: [{ text: 'hi' }] },
    {
      role: 'model',
      parts: [
        { text: 'wait' },
        { functionCall: { id: 'given-1', name: 'weather', args: { city: 'Paris' } } },
        { functionCall: { name: 'now', args: {} } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'given-1', name: 'weather', response: { sun: true } } },
        { functionResponse: { name: 'now', response: { result: 'noon' } } },
      ],
    },
  ]);
  for (const content of ['[1]', '"a"', '7', '', null]) {
    const withResult = contents({
      messages: [...HELLO, CALLS, { role: 'tool', tool_call_id: 'given-1', content }],
    }) as { parts: unknown[] }[];
    t.deepEqual(withResult.at(-1)?.parts, [
      { functionResponse: { id: 'given-1', name: 'weather', response: { result: content ?? '' } } },
    ]);
  }
});

test('arguments nested too deeply for a request are rejected; a result nested too deeply is sent as text', (t) => {
  const nest = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const toBody = (args: string, content: string): JsonRecord => ({
    messages: [
      ...HELLO,
      { role: 'assistant', content: null, tool_calls: [call('a', 'f', args)] },
      { role: 'tool', tool_call_id: 'a', content },
    ],
  });
  for (const depth of [101, 100_000]) {
    const error = t.throws(() => translate(toBody(nest(depth), 'ok')), { instanceOf: UpstreamError });
    t.is(error.failure, 'rejected');
    const withResult = contents(toBody(nest(100), nest(depth))) as { parts: unknown[] }[];
    const response = { result: nest(depth) };
    t.deepEqual(withResult.at(-1)?.parts, [{ functionResponse: { id: 'a', name: 'f', response } }]);
    t.notThrows(() => JSON.stringify(withResult));
  }
});

test('a result without its call is rejected, and the error includes its id', (t) => {
  for (const tool_call_id of ['lost', null, undefined]) {
    const messages = [...HELLO, CALLS, { role: 'tool', tool_call_id, content: 'x' }];
    const error = t.throws(() => translate({ messages }), { instanceOf: UpstreamError });
    t.is(error.failure, 'rejected');
    t.regex(error.message, tool_call_id === 'lost' ? /"lost"/ : /""/);
  }
});

const tool = (name: string, more: object = {}): JsonRecord => ({
  type: 'function',
  function: { name, ...more },
});

test('tools keep their whole JSON Schema; one without parameters has none', (t) => {
  const parameters = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { a: { type: ['string', 'null'] }, b: { const: 1 } },
    additionalProperties: false,
  };
  const tools = [tool('f', { description: 'does', parameters, strict: true }), tool('g', { parameters: {} })];
  t.deepEqual(translate({ tools })['tools'], [
    {
      functionDeclarations: [
        { name: 'f', description: 'does', parametersJsonSchema: parameters },
        { name: 'g' },
      ],
    },
  ]);
  t.is(translate({ tools })['toolConfig'], undefined);
  t.deepEqual(Object.keys(translate({ tools: [] })), ['contents']);
});

test('each tool choice maps to a calling mode', (t) => {
  const tools = [tool('f'), tool('g')];
  const mode = (tool_choice: unknown): unknown => translate({ tools, tool_choice })['toolConfig'];
  t.deepEqual(mode('auto'), { functionCallingConfig: { mode: 'AUTO' } });
  t.deepEqual(mode('none'), { functionCallingConfig: { mode: 'NONE' } });
  t.deepEqual(mode('required'), { functionCallingConfig: { mode: 'ANY' } });
  const named = { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['g'] } };
  t.deepEqual(mode(tool('g')), named);
  const allowed = (of: string): object => ({
    type: 'allowed_tools',
    allowed_tools: { mode: of, tools: [tool('g')] },
  });
  t.deepEqual(mode(allowed('required')), named);
  const free = translate({ tools, tool_choice: allowed('auto') });
  t.deepEqual(free['toolConfig'], { functionCallingConfig: { mode: 'AUTO' } });
  t.deepEqual(free['tools'], [{ functionDeclarations: [{ name: 'g' }] }]);
  t.is(translate({ tool_choice: 'auto' })['toolConfig'], undefined);
});

test('web search is sent as a vendor tool, even alongside functions', (t) => {
  for (const on of [
    { web_search: true },
    { web_search: 'links' },
    { web_search: 'no-links' },
    { web_search_options: {} },
  ]) {
    t.deepEqual(translate(on)['tools'], [{ googleSearch: {} }]);
  }
  for (const off of [false, null, undefined]) {
    t.is(translate({ web_search: off })['tools'], undefined);
  }
  // The gateway checks and reserves by the same rule: `false` turns search off, even with options.
  t.is(translate({ web_search: false, web_search_options: {} })['tools'], undefined);
  const mixed = { web_search: true, tools: [tool('f')], tool_choice: 'auto' };
  const tools = [{ functionDeclarations: [{ name: 'f' }] }, { googleSearch: {} }];
  t.like(translate(mixed), { tools, toolConfig: { functionCallingConfig: { mode: 'AUTO' } } });
  const newer = translate(mixed, { model: 'gemini-3-flash' });
  t.deepEqual(newer['tools'], tools);
  t.deepEqual(newer['toolConfig'], {
    functionCallingConfig: { mode: 'VALIDATED' },
    includeServerSideToolInvocations: true,
  });
});

test('each setting is sent under its Gemini name, and an unset one is left out', (t) => {
  const body = {
    max_tokens: 100,
    temperature: 0,
    top_p: 0.5,
    top_k: 7,
    presence_penalty: -1,
    frequency_penalty: 1,
    seed: 3,
    stop: ['a', '', 'b'],
    n: 2,
    logprobs: true,
    top_logprobs: 4,
  };
  t.deepEqual(config(body), {
    temperature: 0,
    topP: 0.5,
    presencePenalty: -1,
    frequencyPenalty: 1,
    seed: 3,
    topK: 7,
    maxOutputTokens: 100,
    candidateCount: 2,
    stopSequences: ['a', 'b'],
    responseLogprobs: true,
    logprobs: 4,
  });
  const empty = { temperature: null, top_k: 0, n: 1, stop: null, logprobs: false, top_logprobs: 0 };
  t.is(config(empty), undefined);
  t.deepEqual(config({ stop: 'x' }), { stopSequences: ['x'] });
});

test('the token limit is read from both of its fields, and is still sent if the route drops one of them', (t) => {
  const drops = (...fields: string[]): Partial<UpstreamTarget> => ({ drops: new Set(fields) });
  t.deepEqual(config({ max_completion_tokens: 9 }), { maxOutputTokens: 9 });
  t.deepEqual(config({ max_tokens: 12, max_completion_tokens: 9 }), { maxOutputTokens: 9 });
  t.deepEqual(config({ max_tokens: 9 }, drops('max_tokens')), { maxOutputTokens: 9 });
  t.is(config({ max_tokens: 9 }, drops('max_tokens', 'max_completion_tokens')), undefined);
});

test('fields that the route drops, named as in OpenAI’s API, are left out, but the messages never are', (t) => {
  const body = { temperature: 1, top_k: 5, tools: [tool('f')], reasoning_effort: 'low', web_search: true };
  const drops = new Set([...Object.keys(body), 'messages', 'model']);
  t.deepEqual(translate(body, { drops }), { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] });
});

test('a JSON response is requested, with its schema if there is one', (t) => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false };
  const response = (response_format: unknown): unknown => config({ response_format });
  t.deepEqual(response({ type: 'json_object' }), { responseMimeType: 'application/json' });
  t.deepEqual(response({ type: 'json_schema', json_schema: { name: 'x', strict: true, schema } }), {
    responseMimeType: 'application/json',
    responseJsonSchema: schema,
  });
  t.is(response({ type: 'text' }), undefined);
});

test('effort becomes a thinking config if the model thinks', (t) => {
  t.deepEqual(config({ reasoning_effort: 'low' }), {
    thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 },
  });
  t.is(config({ reasoning_effort: 'low' }, { model: 'gemini-2.0-flash' }), undefined);
  t.is(config({ reasoning_effort: null }), undefined);
});

test('the image modality requests images; image settings are sent only with it or to models that make images', (t) => {
  const imageSettings = { size: '1536x1024', image_quality: '2K', quality: '4K' };
  t.deepEqual(config({ modalities: ['text', 'image'], ...imageSettings }), {
    responseModalities: ['TEXT', 'IMAGE'],
    imageConfig: { aspectRatio: '3:2', imageSize: '2K' },
  });
  t.deepEqual(config(imageSettings, { model: 'gemini-3-pro-image' }), {
    imageConfig: { aspectRatio: '3:2', imageSize: '2K' },
  });
  t.is(config(imageSettings), undefined);
});

test('results are in the order of their calls, which is the only way to distinguish calls without ids', (t) => {
  const round = (first: string, second: string): JsonRecord[] => [
    { role: 'user', content: 'where is it warm?' },
    { role: 'assistant', tool_calls: [call('call_gw_1', 'get', first), call('call_gw_2', 'get', second)] },
    { role: 'tool', tool_call_id: 'call_gw_2', content: `of ${second}` },
    { role: 'tool', tool_call_id: 'call_gw_1', content: `of ${first}` },
  ];
  // The second round repeats the ids, as some models number their calls from zero in each round.
  const messages = [...round('{"of":"Paris"}', '{"of":"Rome"}'), ...round('{"of":"Oslo"}', '{"of":"Bern"}')];
  const parts = (contents({ messages }) as { parts: JsonRecord[] }[]).flatMap((content) => content.parts);
  const results = parts.flatMap((part) => {
    const response = part['functionResponse'] as { response: { result: string } } | undefined;
    return response === undefined ? [] : response.response.result;
  });
  t.deepEqual(results, ['of {"of":"Paris"}', 'of {"of":"Rome"}', 'of {"of":"Oslo"}', 'of {"of":"Bern"}']);
});

test('a link to a file in the vendor account of the key is never passed to the vendor', (t) => {
  const target = createTarget('gemini-2.5-flash', { imageUrls: 'pass' });
  t.false(isSentAsBytes(target, 'https://example.com/v1beta/files/abc.png'));
  for (const url of [
    'https://generativelanguage.googleapis.com/v1beta/files/abc',
    'https://GenerativeLanguage.googleapis.com.:443/v1beta/files/abc',
  ]) {
    t.true(isSentAsBytes(target, url), url);
  }
});

test('a link that may point to a video or a document is not passed to the vendor as an image', (t) => {
  const target = createTarget('gemini-2.5-flash', { imageUrls: 'pass' });
  for (const url of [
    'https://www.youtube.com/watch?v=abc',
    'https://example.com/a.pdf',
    'https://a.test/b.mp4',
  ]) {
    t.true(isSentAsBytes(target, url), url);
  }
});
