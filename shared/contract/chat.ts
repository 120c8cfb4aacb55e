import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

export const ImageUrl = Type.Object({
  url: Type.String({
    minLength: 1,
    format: 'image-url',
    description: 'An https URL of at most 2083 characters, or a base64 data URI of at most 20 MB.',
  }),
  detail: Type.Optional(Nullable(Type.String())),
});

export const ContentItem = Type.Object({
  type: Type.Optional(Nullable(StringEnum(['text', 'image_url', 'file']))),
  text: Type.Optional(Nullable(Type.String())),
  image_url: Type.Optional(Nullable(ImageUrl)),
  file: Type.Optional(Nullable(Type.Object({}, { description: 'For models with supported_file_types.' }))),
});

export const ToolCall = Type.Object({
  id: Type.Optional(Type.String()),
  type: Type.Optional(StringEnum(['function'])),
  function: Type.Object({ name: Type.String(), arguments: Type.Optional(Type.String()) }),
});

export const Message = Type.Object({
  role: StringEnum(['user', 'assistant', 'system', 'developer', 'tool']),
  content: Type.Optional(
    Type.Unsafe<string | Static<typeof ContentItem>[] | null>({
      anyOf: [{ type: 'string' }, Type.Array(ContentItem), { type: 'null' }],
      default: '',
    }),
  ),
  name: Type.Optional(Nullable(Type.String())),
  tool_calls: Type.Optional(Nullable(Type.Array(ToolCall))),
  tool_call_id: Type.Optional(Nullable(Type.String())),
});
export type Message = Static<typeof Message>;

export const Tool = Type.Object({
  type: StringEnum(['function']),
  function: Type.Object({
    name: Type.String({ minLength: 1 }),
    description: Type.Optional(Nullable(Type.String())),
    parameters: Type.Optional(Type.Unknown()),
    strict: Type.Optional(Nullable(Type.Boolean())),
  }),
});

const bounded = (minimum: number, maximum?: number, more: object = {}) =>
  Type.Optional(Nullable(Type.Number({ minimum, ...(maximum === undefined ? {} : { maximum }), ...more })));

export const ChatRequest = Type.Object({
  model: Type.String({ minLength: 1 }),
  messages: Type.Array(Message, { minItems: 1 }),
  max_tokens: Type.Optional(
    Nullable(Type.Integer({ minimum: 0, default: 0, description: '0 means no limit of the caller’s own.' })),
  ),
  max_completion_tokens: Type.Optional(Nullable(Type.Integer({ minimum: 0 }))),
  temperature: bounded(0, 2, { default: 0.7 }),
  top_p: bounded(0, 1),
  top_k: Type.Optional(Nullable(Type.Integer({ minimum: 0 }))),
  frequency_penalty: bounded(-2, 2),
  presence_penalty: bounded(-2, 2),
  repetition_penalty: bounded(0, 2),
  min_p: bounded(0, 1),
  top_a: bounded(0, 1),
  stream: Type.Optional(Nullable(Type.Boolean({ default: false }))),
  stream_options: Type.Optional(
    Nullable(Type.Object({ include_usage: Type.Optional(Nullable(Type.Boolean())) })),
  ),
  web_search: Type.Optional(
    Type.Unsafe<boolean | 'links' | 'no-links' | null>({
      type: ['boolean', 'string', 'null'],
      enum: [true, false, 'links', 'no-links', null],
    }),
  ),
  reasoning_effort: Type.Optional(Nullable(Type.String())),
  image_quality: Type.Optional(Nullable(Type.String())),
  quality: Type.Optional(Nullable(Type.String())),
  size: Type.Optional(Nullable(Type.String())),
  tools: Type.Optional(Nullable(Type.Array(Tool))),
  tool_choice: Type.Optional(Type.Unsafe<string | object | null>({ type: ['string', 'object', 'null'] })),
  parallel_tool_calls: Type.Optional(Nullable(Type.Boolean())),
  response_format: Type.Optional(Nullable(Type.Object({ type: Type.String() }))),
  stop: Type.Optional(
    Type.Unsafe<string | string[] | null>({
      anyOf: [
        { type: 'string' },
        { type: 'array', items: { type: 'string' }, maxItems: 16 },
        { type: 'null' },
      ],
    }),
  ),
  n: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 8 }))),
  seed: Type.Optional(Nullable(Type.Integer())),
  logprobs: Type.Optional(Nullable(Type.Boolean())),
  top_logprobs: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 20 }))),
  logit_bias: Type.Optional(Nullable(Type.Object({}))),
  user: Type.Optional(Nullable(Type.String({ maxLength: 512 }))),
});
export type ChatRequest = Static<typeof ChatRequest>;

export const ChatUsage = Type.Object({
  prompt_tokens: Type.Integer(),
  prompt_tokens_details: Nullable(
    Type.Object({
      cached_tokens: Nullable(Type.Integer()),
      audio_tokens: Nullable(Type.Integer()),
      web_search_tokens: Nullable(Type.Integer()),
    }),
  ),
  completion_tokens: Type.Integer(),
  completion_tokens_details: Nullable(
    Type.Object({ reasoning_tokens: Nullable(Type.Integer()), audio_tokens: Nullable(Type.Integer()) }),
  ),
  total_tokens: Type.Integer(),
  total_time: Type.Number({ description: 'Seconds.' }),
  cost_request: Type.Number({ description: 'Roubles.' }),
  free_request: Nullable(Type.Boolean()),
});
export type ChatUsage = Static<typeof ChatUsage>;

export const ChatChoice = Type.Object({
  message: Type.Object({
    role: Type.String(),
    content: Type.Unsafe<unknown>({}),
    tool_calls: Type.Optional(Type.Unknown()),
    tool_call_id: Type.Optional(Nullable(Type.String())),
  }),
  logprobs: Type.Unknown(),
  finish_reason: Nullable(Type.String()),
  index: Nullable(Type.Integer()),
  function_call: Type.Optional(Nullable(Type.String())),
  native_finish_reason: Type.Optional(Nullable(Type.String())),
});

export const ChatResponse = Type.Object({
  id: Type.String(),
  object: Type.String(),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String(),
  choices: Type.Array(ChatChoice),
  usage: ChatUsage,
});
export type ChatResponse = Static<typeof ChatResponse>;

export const createChatCompletion = defineOperation({
  operationId: 'createChatCompletion',
  tag: 'Chat',
  summary: 'Generate text, whole or streamed',
  method: 'post',
  path: '/chat/completions',
  auth: 'key',
  bodyLimitBytes: 32_000_000,
  body: ChatRequest,
  response: ChatResponse,
  errors: creationErrors,
});
