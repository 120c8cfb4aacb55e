import test from 'ava';
import { serverNames, type ServerName } from '../../../../scripts/vendor-simulator/like/personalities.ts';
import {
  startVendorSimulator,
  type VendorSimulator,
} from '../../../../scripts/vendor-simulator/simulator.ts';
import { postJson } from '../../../support/post-json.ts';

/** What each server refuses, with its status and the words and fields of its error. */

const vendors = new Map<ServerName, VendorSimulator>();
test.before(async () => {
  for (const like of serverNames) vendors.set(like, await startVendorSimulator({ like }));
});
test.after.always(() => Promise.all([...vendors.values()].map((vendor) => vendor.close())));

const hello = { role: 'user', content: 'hello' };
const image = {
  role: 'user',
  content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
};
const withArguments = (args: string, id = 'Call00000'): object[] => [
  hello,
  {
    role: 'assistant',
    content: '',
    tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: args } }],
  },
  { role: 'tool', tool_call_id: id, content: 'x' },
];
const long = 'слово '.repeat(6_000);

interface Rejection {
  readonly like: ServerName;
  readonly of: string;
  readonly path?: string;
  readonly body: object;
  readonly status: number;
  readonly error: unknown;
}

const chat = (body: object): object => ({ model: 'sim', messages: [hello], ...body });
const embeddings = '/v1/embeddings';

const rejections: readonly Rejection[] = [
  {
    like: 'vllm',
    of: 'a prompt and a limit beyond its length',
    body: chat({ max_tokens: 8_190 }),
    status: 400,
    error: {
      error: {
        message:
          "This model's maximum context length is 8192 tokens. However, you requested 8190 output tokens and your prompt contains at least 3 input tokens, for a total of at least 8193 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=3)",
        type: 'BadRequestError',
        param: 'input_tokens',
        code: 400,
      },
    },
  },
  {
    like: 'vllm',
    of: 'an empty list of tools',
    body: chat({ tools: [] }),
    status: 400,
    error: /must not be an empty array/,
  },
  {
    like: 'vllm',
    of: 'a choice among no tools',
    body: chat({ tool_choice: 'auto' }),
    status: 400,
    error: /When using `tool_choice`, `tools` must be set/,
  },
  {
    like: 'vllm',
    of: 'the role developer',
    body: chat({ messages: [{ role: 'developer', content: 'x' }, hello] }),
    status: 400,
    error: /Unexpected message role/,
  },
  {
    like: 'vllm',
    of: 'an image',
    body: chat({ messages: [image] }),
    status: 400,
    error: /is not a multimodal model/,
  },
  {
    like: 'vllm',
    of: 'an input beyond its length',
    path: embeddings,
    body: { model: 'sim', input: ['fine', long] },
    status: 400,
    error: /your prompt contains at least 513 input tokens/,
  },
  {
    like: 'vllm',
    of: 'shorter vectors',
    path: embeddings,
    body: { model: 'sim', input: 'x', dimensions: 8 },
    status: 400,
    error: /matryoshka/,
  },
  {
    like: 'ollama',
    of: 'a call without arguments',
    body: chat({ messages: withArguments('') }),
    status: 400,
    error: {
      error: {
        message: 'invalid tool call arguments',
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    },
  },
  {
    like: 'ollama',
    of: 'an image',
    body: chat({ messages: [image] }),
    status: 500,
    error: /missing data required for image input.*"type":"api_error"/,
  },
  {
    like: 'ollama',
    of: 'an effort of a model that does not think',
    body: chat({ reasoning_effort: 'low' }),
    status: 400,
    error: /does not support thinking/,
  },
  {
    like: 'llamacpp',
    of: 'an image',
    body: chat({ messages: [image] }),
    status: 500,
    error: {
      error: {
        code: 500,
        message:
          'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
        type: 'server_error',
      },
    },
  },
  {
    like: 'llamacpp',
    of: 'a call without arguments',
    body: chat({ messages: withArguments('') }),
    status: 500,
    error: /Failed to parse tool call arguments as JSON/,
  },
  {
    like: 'llamacpp',
    of: 'a prompt beyond its context',
    body: chat({ messages: [{ role: 'user', content: long }] }),
    status: 400,
    error:
      /exceeds the available context size.*"type":"exceed_context_size_error","n_prompt_tokens":\d+,"n_ctx":8192/,
  },
  {
    like: 'llamacpp',
    of: 'an input beyond its batch, for the whole call',
    path: embeddings,
    body: { model: 'sim', input: ['fine', long] },
    status: 500,
    error: /is too large to process. increase the physical batch size/,
  },
  ...[
    'user',
    'logit_bias',
    'stream_options',
    'max_completion_tokens',
    'seed',
    'store',
    'logprobs',
    'top_k',
  ].map((field): Rejection => ({
    like: 'mistral',
    of: `the field ${field}`,
    body: chat({ [field]: 1 }),
    status: 422,
    error: {
      object: 'error',
      message: {
        detail: [
          { type: 'extra_forbidden', loc: ['body', field], msg: 'Extra inputs are not permitted', input: 1 },
        ],
      },
      type: 'invalid_request_error',
      param: null,
      code: null,
      raw_status_code: 422,
    },
  })),
  {
    like: 'mistral',
    of: 'a name of a user',
    body: chat({ messages: [{ ...hello, name: 'ann' }] }),
    status: 422,
    error: /"loc":\["body","messages",0,"user","name"\]/,
  },
  {
    like: 'mistral',
    of: 'earlier reasoning',
    body: chat({ messages: [hello, { role: 'assistant', content: 'x', reasoning_content: 'y' }, hello] }),
    status: 422,
    error: /"reasoning_content"/,
  },
  {
    like: 'mistral',
    of: "OpenAI's ids of calls",
    body: chat({ messages: withArguments('{}', 'call_1') }),
    status: 400,
    error: {
      object: 'error',
      message: 'Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.',
      type: 'invalid_function_call',
      param: null,
      code: '3280',
      raw_status_code: 400,
    },
  },
  {
    like: 'mistral',
    of: 'a last message of the assistant',
    body: chat({ messages: [hello, { role: 'assistant', content: 'x' }] }),
    status: 400,
    error: /Expected last role User or Tool \(or Assistant with prefix True\)/,
  },
  {
    like: 'mistral',
    of: 'a user after a tool',
    body: chat({ messages: [...withArguments('{}'), hello] }),
    status: 400,
    error: /Unexpected role 'user' after role 'tool'/,
  },
  {
    like: 'mistral',
    of: 'the field dimensions',
    path: embeddings,
    body: { model: 'sim', input: 'x', dimensions: 8 },
    status: 422,
    error: /"dimensions"/,
  },
  {
    like: 'deepseek',
    of: 'the role developer',
    body: chat({ messages: [hello, { role: 'developer', content: 'x' }] }),
    status: 400,
    error: /messages\[1\]\.role: unknown variant `developer`.*"type":"invalid_request_error"/,
  },
  {
    like: 'deepseek',
    of: 'two choices',
    body: chat({ n: 2 }),
    status: 400,
    error: /only n = 1 is supported/,
  },
  {
    like: 'deepseek',
    of: 'a limit beyond its maximum',
    body: chat({ max_tokens: 9_000 }),
    status: 400,
    error: /valid range of max_tokens is \[1, 8192\]/,
  },
  {
    like: 'deepseek',
    of: 'calls of this turn without their reasoning',
    body: chat({ model: 'deepseek-reasoner', messages: withArguments('{}') }),
    status: 400,
    error: /`reasoning_content` in the thinking mode must be passed back/,
  },
  {
    like: 'openrouter',
    of: 'a prompt and a limit beyond the context',
    body: chat({ max_tokens: 8_190 }),
    status: 400,
    error: /maximum context length is 8192 tokens.*"code":400/,
  },
  {
    like: 'openrouter',
    of: 'an image',
    body: chat({ messages: [image] }),
    status: 404,
    error: /No endpoints found that support image input.*"code":404/,
  },
  {
    like: 'tei',
    of: 'more than 32 inputs',
    path: embeddings,
    body: { model: 'sim', input: Array.from({ length: 33 }, () => 'x') },
    status: 422,
    error: { message: 'batch size 33 > maximum allowed batch size 32', code: 422, type: 'Validation' },
  },
  {
    like: 'tei',
    of: 'an input beyond its length',
    path: embeddings,
    body: { model: 'sim', input: long },
    status: 422,
    error: /must have less than 512 tokens. Given: \d+/,
  },
  {
    like: 'tei',
    of: 'a body of more than 2 MB',
    path: embeddings,
    body: { model: 'sim', input: 'x'.repeat(2_000_000) },
    status: 413,
    error: /^Failed to buffer the request body: length limit exceeded$/,
  },
  { like: 'tei', of: 'a chat', body: chat({}), status: 404, error: /^$/ },
  {
    like: 'deepseek',
    of: 'embeddings',
    path: embeddings,
    body: { input: 'x' },
    status: 404,
    error: /"message"/,
  },
];

for (const { like, of, path = '/v1/chat/completions', body, status, error } of rejections) {
  test(`${like} refuses ${of}`, async (t) => {
    const response = await postJson(`${vendors.get(like)!.url}${path}`, null, body);
    const text = await response.text();
    t.is(response.status, status, text);
    if (error instanceof RegExp) t.regex(text, error);
    else t.deepEqual(JSON.parse(text), error);
  });
}
