import Type, { type Static } from 'typebox';
import { chatExample } from './chat-examples.ts';
import { ChatResponse } from './chat-response.ts';
import { Message } from './chat-messages.ts';
import { chatStream } from './chat-stream.ts';
import { EndUser, lateDefault, Nullable, StringEnum } from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

/** From the specification. */
export const defaultTemperature = 0.7;

const CalledFunction = Type.Object({
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(
    Nullable(Type.String({ description: 'When to call it; the model goes by this.' })),
  ),
  parameters: Type.Optional(Type.Unknown({ description: 'The JSON Schema of its arguments.' })),
  strict: Type.Optional(
    Nullable(Type.Boolean({ description: 'Whether the arguments keep to the schema exactly.' })),
  ),
});

export const Tool = Type.Object(
  { type: StringEnum(['function']), function: CalledFunction },
  { title: 'Tool' },
);

const bounded = (description: string, minimum: number, maximum?: number, more: object = {}) =>
  Type.Optional(
    Nullable(Type.Number({ minimum, ...(maximum === undefined ? {} : { maximum }), ...more, description })),
  );

const droppedIfUnsupported = 'Left out for vendors that do not know it.';

const anyObject = (description: string) => Type.Optional(Nullable(Type.Object({}, { description })));
const anyText = (description: string) => Type.Optional(Nullable(Type.String({ description })));

/** Additional fields that OpenAI's clients may send. docs/vendors.md describes how other vendors treat them. */
const openAiFields = {
  modalities: Type.Optional(
    Nullable(
      Type.Array(Type.String(), { description: 'What the answer is made of: `text`, `image`, `audio`.' }),
    ),
  ),
  audio: anyObject('The voice and format of an answer in sound, as OpenAI takes it.'),
  prediction: anyObject('What most of the answer will be, as OpenAI takes it; left out for other vendors.'),
  web_search_options: anyObject('How to search, as OpenAI takes it; searches as `web_search` does.'),
  verbosity: anyText(`How long the answer is: \`low\`, \`medium\` or \`high\`. ${droppedIfUnsupported}`),
  metadata: anyObject('Kept by OpenAI with the request; left out for other vendors.'),
  store: Type.Optional(
    Nullable(Type.Boolean({ description: 'Whether OpenAI keeps the answer; left out for other vendors.' })),
  ),
  prompt_cache_key: anyText(`Groups requests whose beginnings are alike. ${droppedIfUnsupported}`),
  prompt_cache_options: anyObject(
    `How the vendor caches the prompt, as OpenAI takes it. ${droppedIfUnsupported}`,
  ),
  prompt_cache_retention: anyText(`How long the vendor keeps a prompt in its cache. ${droppedIfUnsupported}`),
  safety_identifier: anyText(`Stands for the end user before the vendor. ${droppedIfUnsupported}`),
  service_tier: anyText('Accepted and left out: the price does not depend on it here.'),
  functions: Type.Optional(
    Nullable(
      Type.Array(CalledFunction, {
        description:
          'The older form of `tools`. The answer then has a `function_call` instead of `tool_calls`.',
      }),
    ),
  ),
  function_call: Type.Optional(
    Type.Unsafe<'none' | 'auto' | { name: string } | null>({
      anyOf: [
        { type: 'string', enum: ['none', 'auto'] },
        Type.Object({ name: Type.String() }),
        { type: 'null' },
      ],
      description: 'The older form of `tool_choice`, for `functions`.',
    }),
  ),
};

export const ChatRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: 'The id of a `chat` or `vision` model.' }),
    messages: Type.Array(Message, {
      minItems: 1,
      description: 'The conversation so far, oldest first. Together they must fit the model’s `context`.',
    }),
    max_tokens: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          default: 0,
          description:
            'The most tokens of each answer. 0 or null sets no bound of your own: the gateway then allows as many ' +
            'as the model’s context and half of the spendable balance afford.',
        }),
      ),
    ),
    max_completion_tokens: Type.Optional(
      Nullable(
        Type.Integer({ minimum: 0, description: 'The newer name of `max_tokens`; wins where both are set.' }),
      ),
    ),
    temperature: bounded('0 is the most predictable; 2 the most varied.', 0, 2, {
      [lateDefault]: defaultTemperature,
    }),
    top_p: bounded('Picks from the likeliest tokens that make up this share.', 0, 1),
    top_k: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          description: `Picks from this many likeliest tokens. ${droppedIfUnsupported}`,
        }),
      ),
    ),
    frequency_penalty: bounded('Above 0, tokens become less likely the more often they occurred.', -2, 2),
    presence_penalty: bounded('Above 0, tokens become less likely once they occurred.', -2, 2),
    repetition_penalty: bounded(`Above 1, repetition becomes less likely. ${droppedIfUnsupported}`, 0, 2),
    min_p: bounded(
      `Drops tokens below this share of the likeliest one’s probability. ${droppedIfUnsupported}`,
      0,
      1,
    ),
    top_a: bounded(`Like \`min_p\`, by the square of the probability. ${droppedIfUnsupported}`, 0, 1),
    stream: Type.Optional(
      Nullable(Type.Boolean({ default: false, description: 'Whether the answer comes as an event stream.' })),
    ),
    stream_options: Type.Optional(
      Nullable(
        Type.Object({
          include_usage: Type.Optional(
            Nullable(
              Type.Boolean({ description: 'Whether a stream ends with a chunk that tells usage and cost.' }),
            ),
          ),
        }),
      ),
    ),
    web_search: Type.Optional(
      Type.Unsafe<boolean | 'links' | 'no-links' | null>({
        type: ['boolean', 'string', 'null'],
        enum: [true, false, 'links', 'no-links', null],
        description:
          '`true` or `"links"` searches and names sources, `"no-links"` searches without naming them; ' +
          '`false` or null is off. For models with `web_search`.',
      }),
    ),
    reasoning_effort: Type.Optional(
      Nullable(Type.String({ description: 'One of the model’s `reasoning_effort.choices`.' })),
    ),
    image_quality: Type.Optional(
      Nullable(Type.String({ description: 'One of the model’s `image_quality.choices`.' })),
    ),
    quality: Type.Optional(
      Nullable(Type.String({ description: 'The same as `image_quality`, which takes precedence.' })),
    ),
    size: Type.Optional(
      Nullable(Type.String({ description: 'Of images that the model makes, where it takes this.' })),
    ),
    tools: Type.Optional(
      Nullable(Type.Array(Tool, { description: 'Functions that the model may ask you to call.' })),
    ),
    tool_choice: Type.Optional(
      Type.Unsafe<string | object | null>({
        type: ['string', 'object', 'null'],
        description: '`auto`, `none`, `required`, or an object that names one function.',
      }),
    ),
    parallel_tool_calls: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether one answer may hold several tool calls.' })),
    ),
    response_format: Type.Optional(
      Nullable(
        Type.Object(
          { type: Type.String({ description: '`text`, `json_object` or `json_schema`.' }) },
          { description: 'The form of the answer, as OpenAI takes it.' },
        ),
      ),
    ),
    stop: Type.Optional(
      Type.Unsafe<string | string[] | null>({
        anyOf: [
          { type: 'string' },
          { type: 'array', items: { type: 'string' }, maxItems: 16 },
          { type: 'null' },
        ],
        description: 'One or more texts at which the answer ends; they are not part of it.',
      }),
    ),
    n: Type.Optional(
      Nullable(
        Type.Integer({ minimum: 1, maximum: 8, description: 'How many answers to make; each is paid for.' }),
      ),
    ),
    seed: Type.Optional(
      Nullable(Type.Integer({ description: 'Makes equal requests likelier to get equal answers.' })),
    ),
    logprobs: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether to tell the probability of each token.' })),
    ),
    top_logprobs: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          maximum: 20,
          description: 'How many other likely tokens to tell at each place; needs `logprobs`.',
        }),
      ),
    ),
    logit_bias: Type.Optional(
      Nullable(Type.Object({}, { description: 'Token id to a bias of -100 to 100, as OpenAI takes it.' })),
    ),
    user: EndUser,
    ...openAiFields,
  },
  { title: 'ChatRequest' },
);
export type ChatRequest = Static<typeof ChatRequest>;

export const createChatCompletion = defineOperation({
  operationId: 'createChatCompletion',
  tag: 'Chat',
  summary: 'Generate text, whole or streamed',
  description:
    'Answers a conversation. Messages may hold images and files for models that take them, and tools for the model ' +
    'to call. Fields that are not listed are accepted and ignored.\n\n' +
    'The most that the answer can cost is reserved before it starts, its exact cost is debited at the end, and ' +
    '`usage` says what it was. If you close the connection before the end, you pay for the prompt and for what was ' +
    'generated until the model stopped, which may be two seconds later; where the model does not say how much that ' +
    'was, up to 1000 tokens a second are charged for the time in which it said nothing. With an `Idempotency-Key` the ' +
    'answer is made to the end and kept.',
  method: 'post',
  path: '/chat/completions',
  auth: 'key',
  modelTypes: ['chat', 'vision'],
  bodyLimitBytes: 32_000_000,
  body: ChatRequest,
  response: ChatResponse,
  additionalResponses: [chatStream],
  hasResumableStream: true,
  errors: creationErrors,
  example: chatExample,
});
