import test from 'ava';

import {
  listUnsupportedFields,
  openAiProfiles,
  type OpenAiProfile,
} from '../../../../shared/catalog/openai-profile.ts';
import { createTarget } from '../../../support/upstream-target.ts';
import type { ChatBody, UpstreamTarget } from '../../../../workers/upstreams/upstream.ts';
import { toChatRequest, toEmbeddingRequest } from '../../../../workers/upstreams/openai/to-request.ts';

function target(model: string, ...drops: string[]): UpstreamTarget {
  return createTarget(model, { drops: new Set(drops) });
}

const MESSAGES = [{ role: 'user', content: 'hi' }];

function chat(body: Record<string, unknown>, ...drops: string[]): Record<string, unknown> {
  return toChatRequest(target('gpt', ...drops), { messages: MESSAGES, ...body }, false);
}

test('the model is that of the route, known fields are sent, and unknown and empty ones are left out', (t) => {
  const request = chat({
    model: 'alias',
    temperature: 0,
    top_k: 5,
    seed: 1,
    n: null,
    foo: 1,
    cost: 2,
    stream: true,
  });
  t.deepEqual(request, { model: 'gpt', messages: MESSAGES, temperature: 0, top_k: 5, seed: 1 });
});

test('fields that the route drops are left out, but never the model or the messages', (t) => {
  const request = chat({ temperature: 1, top_k: 5, user: 'u' }, 'temperature', 'top_k', 'model', 'messages');
  t.deepEqual(request, { model: 'gpt', messages: MESSAGES, user: 'u' });
});

test('only the smaller token limit is sent, under the name that the server accepts', (t) => {
  const limit = (body: object, ...drops: string[]): object => {
    const { max_tokens, max_completion_tokens } = chat({ ...body }, ...drops);
    return { max_tokens, max_completion_tokens };
  };
  const older = { max_tokens: 9, max_completion_tokens: undefined };
  const newer = { max_tokens: undefined, max_completion_tokens: 9 };
  const none = { max_tokens: undefined, max_completion_tokens: undefined };
  t.deepEqual(limit({ max_tokens: 9 }), older);
  t.deepEqual(limit({ max_tokens: 9 }, 'max_tokens'), newer);
  t.deepEqual(limit({ max_completion_tokens: 9 }), older);
  t.deepEqual(limit({ max_completion_tokens: 9 }, 'max_completion_tokens'), older);
  t.deepEqual(limit({ max_tokens: 9, max_completion_tokens: 12 }), older);
  t.deepEqual(limit({ max_tokens: 12, max_completion_tokens: 9 }, 'max_tokens'), newer);
  t.deepEqual(limit({ max_tokens: 9 }, 'max_tokens', 'max_completion_tokens'), none);
  t.deepEqual(limit({ max_tokens: 0 }), none);
});

test('a stream always requests usage, and its other options are sent', (t) => {
  const body = { messages: MESSAGES, stream_options: { include_obfuscation: false, include_usage: false } };
  const request = toChatRequest(target('gpt'), body, true);
  t.is(request['stream'], true);
  t.deepEqual(request['stream_options'], { include_obfuscation: false, include_usage: true });
  t.is(toChatRequest(target('gpt', 'stream_options'), body, true)['stream_options'], undefined);
});

test('web search is requested under the vendor’s field name, and only if it is on', (t) => {
  for (const on of [true, 'links', 'no-links']) {
    t.deepEqual(chat({ web_search: on })['web_search_options'], {});
  }
  for (const off of [false, null, undefined]) {
    t.is(chat({ web_search: off })['web_search_options'], undefined);
  }
  const options = { search_context_size: 'low' };
  t.deepEqual(chat({ web_search: true, web_search_options: options })['web_search_options'], options);
});

test('messages are sent whole, without the nulls that vendors reject', (t) => {
  const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
  const messages = [
    { role: 'user', name: 'ann', content: 'x', tool_calls: null, tool_call_id: null },
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'tool', content: 'y', tool_call_id: 'c' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a', image_url: null },
        { type: null, text: 'b' },
        { type: null, image_url: { url: 'https://x/y.png', detail: 'low' } },
      ],
    },
  ];
  t.deepEqual(toChatRequest(target('gpt'), { messages }, false)['messages'], [
    { role: 'user', name: 'ann', content: 'x' },
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'tool', content: 'y', tool_call_id: 'c' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
        { type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } },
      ],
    },
  ]);
});

test('embeddings are requested as base64, with dimensions and user only if given', (t) => {
  const call = { inputs: ['a', 'b'], dimensions: null, user: null };
  const plain = { model: 'emb', input: ['a', 'b'], encoding_format: 'base64' };
  t.deepEqual(toEmbeddingRequest(target('emb'), call), plain);
  t.deepEqual(toEmbeddingRequest(target('emb'), { ...call, dimensions: 8, user: 'u' }), {
    ...plain,
    dimensions: 8,
    user: 'u',
  });
  t.deepEqual(toEmbeddingRequest(target('emb', 'encoding_format'), call), {
    model: 'emb',
    input: ['a', 'b'],
  });
});

test('Mistral gets shorter vectors by its own name', (t) => {
  const mistral = createTarget('emb', {
    profile: 'mistral',
    drops: new Set(listUnsupportedFields('mistral')),
  });
  t.deepEqual(toEmbeddingRequest(mistral, { inputs: ['a'], dimensions: 8, user: 'u' }), {
    model: 'emb',
    input: ['a'],
    encoding_format: 'base64',
    output_dimension: 8,
  });
});

test('a fetched image is sent as bytes with the caller’s other fields, and other images are sent unchanged', (t) => {
  const part = (url: string): object => ({ type: 'image_url', image_url: { url, detail: 'low' } });
  const messages = [{ role: 'user', content: [part('https://a.example/1'), part('https://a.example/2')] }];
  const images = new Map([['https://a.example/1', { mediaType: 'image/png', base64: 'iVBO' }]]);
  const request = toChatRequest(target('gpt'), { messages } as unknown as ChatBody, false, images);
  t.deepEqual(request['messages'], [
    { role: 'user', content: [part('data:image/png;base64,iVBO'), part('https://a.example/2')] },
  ]);
});

test('a search that is turned off is not requested, even with options', (t) => {
  t.is(chat({ web_search: false, web_search_options: {} })['web_search_options'], undefined);
});

test('aspect ratio and image size are sent only if images are requested', (t) => {
  const imageSettings = { size: '1536x1024', image_quality: '2k' };
  const withImages = chat({ ...imageSettings, modalities: ['image', 'text'] });
  t.deepEqual(withImages['image_config'], { aspect_ratio: '3:2', image_size: '2K' });
  t.deepEqual(withImages['modalities'], ['image', 'text']);
  t.is(chat(imageSettings)['image_config'], undefined);
  t.is(chat({ modalities: ['image', 'text'] })['image_config'], undefined);
  t.is(chat({ ...imageSettings, modalities: ['image'] }, 'image_config')['image_config'], undefined);
});

test('tool calls are sent without fields of other APIs, and their messages include the reasoning that led to them', (t) => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const message = {
    role: 'assistant',
    tool_calls: [{ ...call, extra_content: { google: {} } }],
    reasoning_content: 'Hm.',
  };
  const request = toChatRequest(target('gpt'), { messages: [message] }, false);
  t.deepEqual(request['messages'], [{ role: 'assistant', tool_calls: [call], reasoning_content: 'Hm.' }]);
});

const ofProfile = (
  profile: OpenAiProfile,
  body: Record<string, unknown>,
  messages: readonly object[] = MESSAGES,
): Record<string, unknown> => {
  const drops = new Set(listUnsupportedFields(profile));
  return toChatRequest(
    createTarget('model', { profile, drops }),
    { ...body, messages } as unknown as ChatBody,
    true,
  );
};
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };

test('each profile gets the name of the token limit that its servers know', (t) => {
  for (const profile of openAiProfiles) {
    const request = ofProfile(profile, { max_completion_tokens: 20 });
    const isNewer = ['openai', 'azure', 'groq', 'cerebras'].includes(profile);
    t.is(request['max_completion_tokens'], isNewer ? 20 : undefined, profile);
    t.is(request['max_tokens'], isNewer ? undefined : 20, profile);
  }
});

test('empty lists, and settings for tools without tools, are left out', (t) => {
  const empty = { tools: [], stop: [], tool_choice: 'auto', parallel_tool_calls: false };
  const request = ofProfile('compatible', empty, [{ role: 'assistant', content: 'x', tool_calls: [] }]);
  t.deepEqual(Object.keys(request).sort(), ['messages', 'model', 'stream', 'stream_options']);
  t.deepEqual(request['messages'], [{ role: 'assistant', content: 'x' }]);
  const used = ofProfile('compatible', { ...empty, tools: [tool] });
  t.like(used, { tools: [tool], tool_choice: 'auto', parallel_tool_calls: false });
});

test('the role developer is system for all but OpenAI', (t) => {
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'developer', content: 'b' },
  ];
  for (const profile of openAiProfiles) {
    const request = ofProfile(profile, {}, messages);
    const isKept = profile === 'openai' || profile === 'azure';
    t.is((request['messages'] as { role: string }[])[1]!.role, isKept ? 'developer' : 'system', profile);
  }
});

test('nulls are left out at any depth, except where a JSON schema has them as values', (t) => {
  const parameters = {
    type: 'object',
    description: null,
    properties: { a: { enum: ['x', null], default: null, title: null }, b: { const: null } },
  };
  const clean = {
    type: 'object',
    properties: { a: { enum: ['x', null], default: null }, b: { const: null } },
  };
  const body = {
    tools: [{ type: 'function', function: { name: 'f', description: null, parameters, strict: null } }],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'n', description: null, schema: parameters },
    },
    web_search_options: { user_location: null, search_context_size: 'low' },
  };
  const url = 'https://a.example/1.png';
  const request = ofProfile('compatible', body, [
    { role: 'user', content: [{ type: 'image_url', image_url: { url, detail: null } }] },
  ]);
  t.deepEqual(request['tools'], [{ type: 'function', function: { name: 'f', parameters: clean } }]);
  t.deepEqual(request['response_format'], {
    type: 'json_schema',
    json_schema: { name: 'n', schema: clean },
  });
  t.deepEqual(request['web_search_options'], { search_context_size: 'low' });
  t.deepEqual(request['messages'], [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]);
});

const hints = {
  store: true,
  metadata: { a: 'b' },
  prompt_cache_key: 'k',
  safety_identifier: 's',
  service_tier: 'flex',
};

test('hints for OpenAI are sent to OpenAI alone, and the service tier to nobody', (t) => {
  const { service_tier: _tier, ...sent } = hints;
  t.like(ofProfile('openai', hints), sent);
  for (const profile of openAiProfiles) {
    const request = ofProfile(profile, hints);
    t.is(request['service_tier'], undefined, profile);
    if (['openai', 'azure', 'openrouter'].includes(profile)) continue;
    for (const name of Object.keys(hints)) t.is(request[name], undefined, `${profile}: ${name}`);
  }
});

test('Mistral gets only what it knows, with ids and names by its rules', (t) => {
  const call = { id: 'call_a-long-id', type: 'function', function: { name: 'f', arguments: '' } };
  const request = ofProfile(
    'mistral',
    {
      ...hints,
      seed: 7,
      user: 'u',
      logit_bias: { 1: 2 },
      top_k: 4,
      temperature: 0.1,
      max_completion_tokens: 9,
    },
    [
      { role: 'user', name: 'ann', content: 'a' },
      { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'Hm.' },
      { role: 'tool', tool_call_id: call.id, content: 'b' },
      { role: 'assistant', content: 'It is' },
    ],
  );
  const messages = request['messages'] as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
  const id = messages[1]!.tool_calls![0]!.id;
  t.regex(id, /^[a-zA-Z0-9]{9}$/);
  t.deepEqual(request, {
    model: 'model',
    temperature: 0.1,
    random_seed: 7,
    max_tokens: 9,
    stream: true,
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content: 'b' },
      { role: 'assistant', content: 'It is', prefix: true },
    ],
  });
});

test('fields that a route accepts are sent, and llama.cpp gets its own name for a penalty', (t) => {
  const body = { messages: MESSAGES, chat_template_kwargs: { enable_thinking: false }, other: 1 };
  const accepting = createTarget('m', { accepts: ['chat_template_kwargs'] });
  t.deepEqual(toChatRequest(accepting, body, false), {
    model: 'm',
    messages: MESSAGES,
    chat_template_kwargs: { enable_thinking: false },
  });
  const request = ofProfile('llamacpp', { repetition_penalty: 1.1 });
  t.is(request['repeat_penalty'], 1.1);
  t.is(request['repetition_penalty'], undefined);
});

test('earlier reasoning is sent back under the name that the server reads', (t) => {
  const messages = [{ role: 'assistant', content: 'x', reasoning_content: 'Hm.' }];
  const sent = (profile: OpenAiProfile): object =>
    (ofProfile(profile, {}, messages)['messages'] as object[])[0]!;
  t.deepEqual(sent('deepseek'), { role: 'assistant', content: 'x', reasoning_content: 'Hm.' });
  t.deepEqual(sent('groq'), { role: 'assistant', content: 'x', reasoning: 'Hm.' });
  t.deepEqual(sent('openai'), { role: 'assistant', content: 'x' });
});
