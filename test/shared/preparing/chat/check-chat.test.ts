import test from 'ava';
import { checkChat } from '../../../../shared/preparing/chat/check-chat.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import type { ChatRequest } from '../../../../shared/contract/chat.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { countChoices, findServingRoutes } from '../../../../shared/routing/chat-needs.ts';

/** Chat requests as prepared for vendors, and those rejected before they cause any cost. */

const model = (id: string, upstreams: string[], more = ''): string => `
  - id: ${id}
    type: chat
    context: 8192
    pricing: { prompt: 1, completion: 1 }
    ${more}
    routes: [${upstreams.map((upstream) => `{ upstream: ${upstream} }`).join(', ')}]`;

const catalog = parseCatalog(
  `
upstreams:
  open: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
  claude: { kind: anthropic, apiKeys: [k] }
  lenient: { kind: anthropic, apiKeys: [k], drops: [n] }
  google: { kind: gemini, apiKeys: [k] }
  ollama: { kind: openai, baseUrl: "http://127.0.0.1:2/v1", drops: [logit_bias, n, user] }
models:
${model('plain', ['open'])}
${model('reasoner', ['open'], 'reasoning: true\n    reasoning_effort: { default: low, choices: [low, high] }')}
${model('simple', ['open'], 'reasoning: false')}
${model('painter', ['google'], 'output_modalities: [text, image]\n    image_quality: { default: 1K, choices: [1K, 2K] }')}
  - { id: flat, type: chat, context: 1000, pricing: { type: request, cost_per_request: 1 }, routes: [{ upstream: google }] }
  - { id: flat-reasoner, type: chat, context: 1000, reasoning: true, reasoning_effort: { default: low, choices: [low, high] }, web_search: true, pricing: { type: request, cost_per_request: 1 }, routes: [{ upstream: open }] }
  - { id: flat-writer, type: chat, context: 1000, reasoning: false, output_modalities: [text], pricing: { type: request, cost_per_request: 1 }, routes: [{ upstream: open }] }
${model('sized-painter', ['google'], 'size: [1024x1024, 1536x1024]\n    output_modalities: [text, image]')}
${model('reader', ['open'], 'supported_file_types: [pdf, txt]\n    max_file_count: 2')}
${model('offline', ['open'], 'web_search: false')}
${model('claude', ['claude'])}
${model('lenient-claude', ['lenient'])}
${model('gemini', ['google'])}
${model('either', ['claude', 'open'])}
${model('google-or-open', ['google', 'open'])}
${model('ollama-or-open', ['ollama', 'open', 'claude'])}
${model('ollama-or-claude', ['ollama', 'lenient', 'claude'])}
${model('claude-reader', ['claude'], 'supported_file_types: [docx, csv]')}
`,
  { fileName: 'catalog.yaml', env: {}, today: '2026-01-01' },
);

const prepare = (id: string, more: object): ChatRequest =>
  checkChat(
    { model: id, messages: [{ role: 'user', content: 'hi' }], ...more } as unknown as ChatRequest,
    catalog.find(id)!,
  );

function findRejection(id: string, more: object): string {
  try {
    prepare(id, more);
  } catch (error) {
    if (error instanceof AppError)
      return error.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n');
    throw error;
  }
  return 'not rejected';
}

const serving = (id: string, more: object): string[] =>
  findServingRoutes(catalog.find(id)!.routes, prepare(id, more)).map(({ upstream }) => upstream.name);

const withPart = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] });
const file = (name: string, data = 'data:application/pdf;base64,JVBERi0='): object => ({
  type: 'file',
  file: { filename: name, file_data: data },
});

test("a model's default reasoning effort applies if the caller sets none, and no effort is sent to a model without reasoning", (t) => {
  t.is(prepare('reasoner', {}).reasoning_effort, 'low');
  t.is(prepare('reasoner', { reasoning_effort: 'high' }).reasoning_effort, 'high');
  t.is(prepare('simple', { reasoning_effort: 'high' }).reasoning_effort, null);
  t.is(prepare('plain', {}).reasoning_effort, null);
  t.regex(
    findRejection('reasoner', { reasoning_effort: 'medium' }),
    /reasoning_effort: must be one of: low, high/,
  );
});

test('a request to an image model requests images by default, at the model’s default quality unless the caller sets one', (t) => {
  const prepared = prepare('painter', {});
  t.deepEqual(prepared.modalities, ['image', 'text']);
  t.is(prepared.image_quality, '1K');
  t.deepEqual(prepare('painter', { modalities: ['text'], image_quality: '2K' }).modalities, ['text']);
  t.regex(findRejection('painter', { modalities: ['audio'] }), /modalities\.0: must be one of: text, image/);
});

test('an unsupported parameter is rejected with the reason if it would change the response', (t) => {
  t.regex(findRejection('claude', { n: 2 }), /body\.n: claude supports only one choice/);
  t.regex(findRejection('claude', { logprobs: true }), /body\.logprobs/);
  t.regex(findRejection('claude', { logit_bias: { 50256: -100 } }), /body\.logit_bias/);
  t.regex(findRejection('claude', { response_format: { type: 'json_object' } }), /body\.response_format/);
  t.regex(findRejection('claude', { modalities: ['text', 'audio'], audio: {} }), /body\.modalities/);
  const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
  t.regex(findRejection('claude', withPart(sound)), /body\.messages/);
  t.regex(findRejection('gemini', { logit_bias: { 50256: -100 } }), /body\.logit_bias/);
  for (const body of [
    { n: 2 },
    { logprobs: true },
    { response_format: { type: 'json_object' } },
    withPart(sound),
  ]) {
    t.is(findRejection('gemini', body), 'not rejected');
    t.is(findRejection('plain', body), 'not rejected');
  }
  for (const body of [{ n: 1 }, { logprobs: false }, { logit_bias: {} }, { seed: 7, frequency_penalty: 1 }]) {
    t.is(findRejection('claude', body), 'not rejected');
  }
});

test('a parameter is accepted if one of the routes supports it or drops it', (t) => {
  t.is(findRejection('either', { n: 2 }), 'not rejected');
  t.is(findRejection('lenient-claude', { n: 2 }), 'not rejected');
});

test('a route that drops a parameter is used only if no other route supports it, and generates one choice', (t) => {
  t.deepEqual(serving('ollama-or-open', {}), ['ollama', 'open', 'claude']);
  for (const body of [{ n: 2 }, { logit_bias: { 50256: -100 } }]) {
    t.deepEqual(serving('ollama-or-open', body), ['open']);
  }
  t.deepEqual(serving('ollama-or-open', { user: 'somebody' }), ['ollama', 'open', 'claude']);
  t.deepEqual(serving('ollama-or-claude', { n: 2 }), ['ollama', 'lenient']);
  t.deepEqual(
    serving('ollama-or-claude', { n: 2, logprobs: true }),
    ['ollama'],
    'claude does not support logprobs',
  );
  const [ollama, open] = catalog.find('ollama-or-open')!.routes;
  t.deepEqual(
    [countChoices(ollama!, { n: 8 }), countChoices(open!, { n: 8 }), countChoices(open!, {})],
    [1, 8, 1],
  );
});

test('web search is rejected if the catalog disables it for the model', (t) => {
  t.regex(
    findRejection('offline', { web_search: true }),
    /body\.web_search: offline does not support web search/,
  );
  t.regex(findRejection('offline', { web_search_options: {} }), /body\.web_search_options/);
  t.is(findRejection('offline', { web_search: false }), 'not rejected');
  t.is(findRejection('plain', { web_search: 'links' }), 'not rejected');
});

test('files must be inline and of a supported type, and no more than the model accepts', (t) => {
  t.is(findRejection('reader', withPart(file('a.pdf'))), 'not rejected');
  t.is(
    findRejection('reader', withPart({ type: 'file', file: { file_data: 'data:text/plain;base64,aGk=' } })),
    'not rejected',
  );
  t.regex(
    findRejection('reader', withPart(file('a.docx'))),
    /content\.0\.file: must be a file of one of these types: pdf, txt/,
  );
  t.regex(
    findRejection('reader', withPart(file('a.pdf', 'https://files.example/a.pdf'))),
    /file_data: must be a base64 data URI/,
  );
  t.regex(
    findRejection('reader', withPart({ type: 'file', file: { file_id: 'file-123' } })),
    /file_id: is not supported: send the file as file_data/,
  );
  t.regex(findRejection('plain', withPart(file('a.pdf'))), /plain does not accept files/);
  // Gemini uses only the declared type, and bills a video per second.
  t.regex(
    findRejection('reader', withPart(file('a.txt', 'data:video/mp4;base64,AAAA'))),
    /file_data: has the media type video\/mp4, but its filename ends in \.txt/,
  );
  const three = { messages: [{ role: 'user', content: [file('a.pdf'), file('b.pdf'), file('c.pdf')] }] };
  t.regex(findRejection('reader', three), /at most 2 files/);
});

test('unknown fields of the request, of messages and of their parts are dropped, and so is the service tier', (t) => {
  const prepared = prepare('plain', {
    service_tier: 'priority',
    some_new_field: 1,
    metadata: { a: 'b' },
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: {} }], weight: 1 }],
  });
  t.deepEqual(prepared.messages, [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] as never);
  t.false('service_tier' in prepared || 'some_new_field' in prepared);
  t.deepEqual(prepared.metadata, { a: 'b' });
});

test('a request beyond a limit of one dialect is served by a route with another dialect', (t) => {
  const stop = ['1', '2', '3', '4', '5', '6'];
  t.regex(findRejection('gemini', { stop }), /body\.stop: gemini accepts at most 5/);
  t.is(findRejection('gemini', { stop: [...stop.slice(1), ''] }), 'not rejected');
  const sound = (format: string): object =>
    withPart({ type: 'input_audio', input_audio: { data: 'AAAA', format } });
  t.regex(findRejection('gemini', sound('flac')), /body\.messages: gemini accepts only wav and mp3/);
  t.is(findRejection('gemini', sound('mp3')), 'not rejected');
  t.is(findRejection('gemini', sound('constructor')).startsWith('body.messages'), true);
  const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  t.regex(
    findRejection('claude-reader', withPart(file('a.docx', `data:${word};base64,AAAA`))),
    /body\.messages: claude-reader accepts only PDF and text/,
  );
  t.is(findRejection('claude-reader', withPart(file('a.csv', 'data:text/csv;base64,AAAA'))), 'not rejected');
  for (const body of [{ stop }, sound('flac')]) {
    t.deepEqual(serving('google-or-open', body), ['open']);
  }
});

test('a chat with no content in any message is rejected', (t) => {
  const empty =
    'must not be empty, because no message has any content: add the text that the model is to respond to';
  const part = { type: 'text', text: '' };
  for (const content of ['', null, [part], [part, { type: 'image_url', image_url: null }], [{ txt: 'hi' }]]) {
    t.is(
      findRejection('plain', { messages: [{ role: 'user', content }] }),
      `body.messages.0.content: ${empty}`,
    );
  }
  const silent = [
    { role: 'system', content: '' },
    { role: 'assistant', content: null, tool_calls: [] },
  ];
  t.is(findRejection('plain', { messages: silent }), `body.messages.1.content: ${empty}`);
});

test('individual messages may be empty if the chat has any content', (t) => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const conversations = [
    [{ role: 'system', content: 'Say hello.' }],
    [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '' },
      { role: 'user', content: '' },
    ],
    [{ role: 'user', content: [image] }],
    [
      { role: 'user', content: '' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: '', tool_call_id: 'a' },
    ],
  ];
  for (const messages of conversations) t.is(findRejection('plain', { messages }), 'not rejected');
});

test('the quality of images is limited to the model’s, under both of its names', (t) => {
  t.is(prepare('painter', { quality: '2K' }).image_quality, '2K');
  t.is(prepare('painter', { quality: '2K', image_quality: '1K' }).image_quality, '1K');
  for (const quality of ['auto', 'standard']) t.is(prepare('painter', { quality }).image_quality, '1K');
  t.is(findRejection('painter', { quality: '4K' }), 'body.quality: must be one of: 1K, 2K');
  t.is(findRejection('painter', { image_quality: '4K' }), 'body.image_quality: must be one of: 1K, 2K');
  t.is(findRejection('plain', { quality: '4K', size: '1x1' }), 'not rejected', 'its tokens are charged');
});

test('the size of images is limited to the sizes that the model lists', (t) => {
  for (const size of ['1536x1024', 'auto', null])
    t.is(findRejection('sized-painter', { size }), 'not rejected');
  t.is(
    findRejection('sized-painter', { size: '8192x8192' }),
    'body.size: must be one of: 1024x1024, 1536x1024',
  );
});

test('with one price for a request, options that raise the vendor’s charge must be listed', (t) => {
  const rejections: Readonly<Record<string, object>> = {
    'body.reasoning_effort: must be omitted: a request to flat costs the same at every reasoning effort': {
      reasoning_effort: 'high',
    },
    'body.web_search: must be omitted: the price of a request to flat does not include web search': {
      web_search: 'links',
    },
    'body.web_search_options: must be omitted: the price of a request to flat does not include web search': {
      web_search_options: { search_context_size: 'high' },
    },
    'body.quality: must be omitted or auto: flat has only one quality': { quality: '4K' },
    'body.image_quality: must be omitted or auto: flat has only one quality': { image_quality: '4K' },
  };
  for (const [rejection, more] of Object.entries(rejections)) t.is(findRejection('flat', more), rejection);
  const harmless = { web_search: false, reasoning_effort: null, quality: 'auto', size: '1536x1024' };
  t.is(findRejection('flat', harmless), 'not rejected');
  t.is(findRejection('flat-reasoner', { reasoning_effort: 'high', web_search: true }), 'not rejected');
  t.is(
    findRejection('flat-writer', { reasoning_effort: 'high', quality: 'high' }),
    'not rejected',
    'neither is sent',
  );
  t.is(prepare('flat-writer', { reasoning_effort: 'high' }).reasoning_effort, null);
});
