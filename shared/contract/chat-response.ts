import Type, { type Static } from 'typebox';
import { CostRequest, CreatedSeconds, FreeRequest, Nullable, RequestId, TotalTime } from './fields.ts';

const tokens = (description: string) => Nullable(Type.Integer({ description }));
const unknown = 'null if the vendor does not report it.';

export const ChatUsage = Type.Object(
  {
    prompt_tokens: Type.Integer({ description: 'Tokens of the messages and tools.' }),
    prompt_tokens_details: Nullable(
      Type.Object({
        cached_tokens: tokens('Tokens that the vendor read from its cache, billed at their own price.'),
        audio_tokens: tokens(`Audio tokens; ${unknown}`),
        web_search_tokens: tokens(`Tokens of web search results; ${unknown}`),
        cache_write_tokens: tokens(
          `Tokens that the vendor wrote to its cache, billed at their own price; ${unknown}`,
        ),
      }),
    ),
    completion_tokens: Type.Integer({ description: 'Tokens of all choices, including reasoning tokens.' }),
    completion_tokens_details: Nullable(
      Type.Object({
        reasoning_tokens: tokens(`Reasoning tokens; ${unknown}`),
        audio_tokens: tokens(`Audio tokens; ${unknown}`),
      }),
    ),
    total_tokens: Type.Integer(),
    total_time: TotalTime,
    cost_request: CostRequest,
    free_request: FreeRequest,
  },
  { title: 'ChatUsage' },
);
export type ChatUsage = Static<typeof ChatUsage>;

/** A tool call as the model made it: every field is present, and the values are the vendor's own. */
const MadeToolCall = Type.Object(
  {
    id: Type.String({
      description: 'The id to send as `tool_call_id` in the `tool` message with the result.',
    }),
    type: Type.String({ description: '`function`.' }),
    function: Type.Object({
      name: Type.String(),
      arguments: Type.String({
        description:
          'The arguments as a JSON string. The model generates it and it may not be valid: check it before use.',
      }),
    }),
  },
  { title: 'MadeToolCall' },
);

export const ChatChoice = Type.Object(
  {
    message: Type.Object({
      role: Type.String({ description: '`assistant`.' }),
      content: Type.Unsafe<unknown>({
        type: ['string', 'array', 'null'],
        items: {},
        description: 'The text of the response; null if it consists of tool calls.',
      }),
      tool_calls: Type.Optional(
        Type.Array(MadeToolCall, { description: 'The tool calls that the model requests.' }),
      ),
      tool_call_id: Type.Optional(Nullable(Type.String())),
      reasoning_content: Type.Optional(
        Type.String({ description: 'The reasoning of the model, if the vendor returns it.' }),
      ),
      refusal: Type.Optional(Type.String({ description: 'Why the model refused to respond.' })),
    }),
    logprobs: Type.Unknown({ description: 'Log probabilities, as in OpenAI’s API; null unless requested.' }),
    finish_reason: Nullable(
      Type.String({ description: '`stop`, `length` (the token limit was reached) or `tool_calls`.' }),
    ),
    index: Nullable(Type.Integer({ description: 'The index of the choice, starting at 0.' })),
    function_call: Type.Optional(Nullable(Type.String())),
    native_finish_reason: Type.Optional(
      Nullable(Type.String({ description: 'The finish reason as the vendor reported it.' })),
    ),
  },
  { title: 'ChatChoice' },
);

export const ChatResponse = Type.Object(
  {
    id: RequestId,
    object: Type.String({ description: '`chat.completion`.' }),
    created: CreatedSeconds,
    model: Type.String({ description: 'The model’s id, even if you requested it by its alternative id.' }),
    choices: Type.Array(ChatChoice, { description: 'The generated choices, as many as `n`.' }),
    usage: ChatUsage,
  },
  { title: 'ChatResponse' },
);
export type ChatResponse = Static<typeof ChatResponse>;
