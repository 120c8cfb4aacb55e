import Type from 'typebox';
import { chatStreamExample } from './chat-examples.ts';
import { Nullable } from './fields.ts';
import type { AdditionalResponse } from './operation.ts';

/** The data of one event of a streamed chat. */
export const ChatChunk = Type.Object(
  {
    id: Type.String({ description: 'The id of the request, the same throughout.' }),
    object: Type.Literal('chat.completion.chunk'),
    created: Type.Integer({ description: 'Unix seconds, the same throughout.' }),
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer({ description: 'Which of the `n` answers it belongs to.' }),
        delta: Type.Object(
          {
            role: Type.Optional(Type.String({ description: '`assistant`, in the first chunk alone.' })),
            content: Type.Optional(Nullable(Type.String({ description: 'The next piece of the text.' }))),
            tool_calls: Type.Optional(
              Type.Array(Type.Object({ index: Type.Optional(Type.Integer()) }), {
                description: 'Pieces of tool calls, put together by their `index`.',
              }),
            ),
          },
          { description: 'What is new; empty in the last chunk of an answer.' },
        ),
        logprobs: Type.Optional(Type.Unknown()),
        finish_reason: Nullable(Type.String({ description: 'null but in the last chunk of an answer.' })),
        native_finish_reason: Type.Optional(Nullable(Type.String())),
      }),
      { description: 'One piece of one answer; empty in the chunk that tells the usage.' },
    ),
    usage: Type.Optional(
      Nullable(
        Type.Object(
          {},
          {
            description:
              'Only with `stream_options.include_usage`: null in every chunk but the last, which tells it as a ' +
              'whole answer does, with `cost_request`, `total_time` and `free_request`.',
          },
        ),
      ),
    ),
  },
  { title: 'ChatChunk' },
);

export const chatStream: AdditionalResponse = {
  status: 200,
  responseType: 'text/event-stream',
  response: ChatChunk,
  description:
    'With `"stream": true` the answer is server-sent events. Each is a line `data: ` with the JSON of one chunk, ' +
    'then an empty line; `data: [DONE]` is the last.\n\n' +
    'The first chunk of an answer carries the role, the last its `finish_reason`. With ' +
    '`"stream_options": {"include_usage": true}` one more chunk, with empty `choices`, tells usage and cost.\n\n' +
    'While nothing is generated a comment goes out after 2 s, and then every 10 s: `: queued position=3` or ' +
    '`: keep-alive`. Lines that begin with a colon are not data.\n\n' +
    'A failure before the first event or comment is an error with its own status, as listed below. After it, the last event ' +
    'is `data: {"error": …}` with the body of that error, and `[DONE]` does not come.',
  example: chatStreamExample,
};
