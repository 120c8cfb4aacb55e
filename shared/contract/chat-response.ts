import Type, { type Static } from 'typebox';
import { CostRequest, CreatedSeconds, FreeRequest, Nullable, RequestId, TotalTime } from './fields.ts';

const tokens = (description: string) => Nullable(Type.Integer({ description }));
const unknown = 'null where the vendor does not tell.';

export const ChatUsage = Type.Object(
  {
    prompt_tokens: Type.Integer({ description: 'Tokens of the messages and tools.' }),
    prompt_tokens_details: Nullable(
      Type.Object({
        cached_tokens: tokens('Those that the vendor had in its cache, at their own price.'),
        audio_tokens: tokens(`Those of audio; ${unknown}`),
        web_search_tokens: tokens(`Those of search results; ${unknown}`),
        cache_write_tokens: tokens(
          `Those that the vendor put into its cache, at their own price; ${unknown}`,
        ),
      }),
    ),
    completion_tokens: Type.Integer({ description: 'Tokens of the answers, those of reasoning among them.' }),
    completion_tokens_details: Nullable(
      Type.Object({
        reasoning_tokens: tokens(`Those of reasoning; ${unknown}`),
        audio_tokens: tokens(`Those of audio; ${unknown}`),
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
    id: Type.String({ description: 'What your `tool` message names in `tool_call_id`.' }),
    type: Type.String({ description: '`function`.' }),
    function: Type.Object({
      name: Type.String(),
      arguments: Type.String({ description: 'JSON as a text. The model wrote it: check before use.' }),
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
        description: 'The answer; null where it consists of tool calls.',
      }),
      tool_calls: Type.Optional(
        Type.Array(MadeToolCall, { description: 'Calls that you are asked to make.' }),
      ),
      tool_call_id: Type.Optional(Nullable(Type.String())),
      reasoning_content: Type.Optional(
        Type.String({ description: 'What the model thought, where the vendor tells it.' }),
      ),
      refusal: Type.Optional(Type.String({ description: 'Why the model would not answer.' })),
    }),
    logprobs: Type.Unknown({ description: 'As OpenAI tells them; null unless asked for.' }),
    finish_reason: Nullable(
      Type.String({ description: '`stop`, `length` (the bound of tokens was reached) or `tool_calls`.' }),
    ),
    index: Nullable(Type.Integer({ description: 'Counts the answers from 0.' })),
    function_call: Type.Optional(Nullable(Type.String())),
    native_finish_reason: Type.Optional(
      Nullable(Type.String({ description: 'The vendor’s own word for `finish_reason`.' })),
    ),
  },
  { title: 'ChatChoice' },
);

export const ChatResponse = Type.Object(
  {
    id: RequestId,
    object: Type.String({ description: '`chat.completion`.' }),
    created: CreatedSeconds,
    model: Type.String({ description: 'The model’s id, also where an alternative id was asked for.' }),
    choices: Type.Array(ChatChoice, { description: 'As many as `n`.' }),
    usage: ChatUsage,
  },
  { title: 'ChatResponse' },
);
export type ChatResponse = Static<typeof ChatResponse>;
