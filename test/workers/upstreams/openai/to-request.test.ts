import test from 'ava';

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
  t.deepEqual(limit({ max_completion_tokens: 9 }), newer);
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
