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
    Nullable(
      Type.String({ description: 'What the function does. The model uses this to decide when to call it.' }),
    ),
  ),
  parameters: Type.Optional(Type.Unknown({ description: 'The JSON Schema of the function’s arguments.' })),
  strict: Type.Optional(
    Nullable(Type.Boolean({ description: 'Whether the arguments must match the schema exactly.' })),
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

const droppedIfUnsupported = 'Not sent to vendors that do not support it.';

const anyObject = (description: string) => Type.Optional(Nullable(Type.Object({}, { description })));
const anyText = (description: string) => Type.Optional(Nullable(Type.String({ description })));

/** Additional fields that OpenAI's clients may send. docs/vendors.md describes how other vendors treat them. */
const openAiFields = {
  modalities: Type.Optional(
    Nullable(
      Type.Array(Type.String(), { description: 'The output types to generate: `text`, `image`, `audio`.' }),
    ),
  ),
  audio: anyObject('The voice and format of audio output, as in OpenAI’s API.'),
  prediction: anyObject('Predicted output, as in OpenAI’s API. Not sent to other vendors.'),
  web_search_options: anyObject('Web search options, as in OpenAI’s API. Enables search like `web_search`.'),
  verbosity: anyText(
    `How detailed the response is: \`low\`, \`medium\` or \`high\`. ${droppedIfUnsupported}`,
  ),
  metadata: anyObject('Metadata that OpenAI stores with the request. Not sent to other vendors.'),
  store: Type.Optional(
    Nullable(Type.Boolean({ description: 'Whether OpenAI stores the response. Not sent to other vendors.' })),
  ),
  prompt_cache_key: anyText(
    `Groups requests that start with the same prompt, for caching. ${droppedIfUnsupported}`,
  ),
  prompt_cache_options: anyObject(
    `How the vendor caches the prompt, as in OpenAI’s API. ${droppedIfUnsupported}`,
  ),
  prompt_cache_retention: anyText(`How long the vendor keeps a prompt in its cache. ${droppedIfUnsupported}`),
  safety_identifier: anyText(`Identifies the end user to the vendor. ${droppedIfUnsupported}`),
  service_tier: anyText('Accepted and ignored: it does not affect the price.'),
  functions: Type.Optional(
    Nullable(
      Type.Array(CalledFunction, {
        description:
          'The older form of `tools`. The response then has `function_call` instead of `tool_calls`.',
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
      description:
        'The conversation so far, oldest message first. All messages together must fit the model’s `context`.',
    }),
    max_tokens: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          default: 0,
          description:
            'Maximum number of tokens per choice. If 0 or null, the limit is what fits the model’s context and what half ' +
            'of the spendable balance can pay for.',
        }),
      ),
    ),
    max_completion_tokens: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          description: 'The newer name of `max_tokens`; takes precedence if both are set.',
        }),
      ),
    ),
    temperature: bounded('Sampling temperature: 0 is the most predictable, 2 the most varied.', 0, 2, {
      [lateDefault]: defaultTemperature,
    }),
    top_p: bounded(
      'Samples only from the most likely tokens whose probabilities add up to this share.',
      0,
      1,
    ),
    top_k: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          description: `Samples only from this many most likely tokens. ${droppedIfUnsupported}`,
        }),
      ),
    ),
    frequency_penalty: bounded(
      'Above 0, tokens become less likely the more often they have occurred.',
      -2,
      2,
    ),
    presence_penalty: bounded('Above 0, tokens become less likely once they have occurred.', -2, 2),
    repetition_penalty: bounded(`Above 1, repetition becomes less likely. ${droppedIfUnsupported}`, 0, 2),
    min_p: bounded(
      `Excludes tokens less likely than this share of the most likely token’s probability. ${droppedIfUnsupported}`,
      0,
      1,
    ),
    top_a: bounded(`Like \`min_p\`, but uses the square of the probability. ${droppedIfUnsupported}`, 0, 1),
    stream: Type.Optional(
      Nullable(
        Type.Boolean({ default: false, description: 'Whether to send the response as an event stream.' }),
      ),
    ),
    stream_options: Type.Optional(
      Nullable(
        Type.Object({
          include_usage: Type.Optional(
            Nullable(
              Type.Boolean({
                description: 'Whether the stream ends with a chunk that contains the usage and cost.',
              }),
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
          '`true` or `"links"` searches the web and cites sources, `"no-links"` searches without citing them; ' +
          '`false` or null turns search off. For models with `web_search`.',
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
      Nullable(Type.String({ description: 'The size of the generated images, for models that support it.' })),
    ),
    tools: Type.Optional(
      Nullable(
        Type.Array(Tool, {
          description: 'Functions that the model may call. You run them and send back the results.',
        }),
      ),
    ),
    tool_choice: Type.Optional(
      Type.Unsafe<string | object | null>({
        type: ['string', 'object', 'null'],
        description: '`auto`, `none`, `required`, or an object that names one function.',
      }),
    ),
    parallel_tool_calls: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether one response may contain several tool calls.' })),
    ),
    response_format: Type.Optional(
      Nullable(
        Type.Object(
          { type: Type.String({ description: '`text`, `json_object` or `json_schema`.' }) },
          { description: 'The format of the response, as in OpenAI’s API.' },
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
        description: 'One or more strings at which generation stops. They are not included in the response.',
      }),
    ),
    n: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 8,
          description: 'How many choices to generate. You pay for each.',
        }),
      ),
    ),
    seed: Type.Optional(
      Nullable(
        Type.Integer({
          description: 'Makes it more likely that identical requests get identical responses.',
        }),
      ),
    ),
    logprobs: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether to return the log probability of each token.' })),
    ),
    top_logprobs: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          maximum: 20,
          description: 'How many of the most likely tokens to return at each position; requires `logprobs`.',
        }),
      ),
    ),
    logit_bias: Type.Optional(
      Nullable(
        Type.Object({}, { description: 'Maps token IDs to a bias from -100 to 100, as in OpenAI’s API.' }),
      ),
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
  summary: 'Create a chat completion',
  description:
    'Generates a response to a conversation, as a whole or as a stream. Messages can contain images and files for ' +
    'models that accept them, and requests can define tools for the model to call. Fields that are not listed are ' +
    'accepted and ignored.\n\n' +
    'The maximum cost of the response is reserved before generation starts. The exact cost is charged at the end and ' +
    'returned in `usage`. If you close the connection early, you pay for the prompt and for what was generated until the ' +
    'model stopped, which can take up to two seconds. If the model does not report how much it generated, up to 1000 ' +
    'tokens per second are charged for the time without output. With an `Idempotency-Key`, the response is ' +
    'generated to the end and stored.',
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
