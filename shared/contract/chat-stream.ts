import Type from 'typebox';
import { chatStreamExample } from './chat-examples.ts';
import { ChatUsage } from './chat-response.ts';
import { Nullable } from './fields.ts';
import type { AdditionalResponse } from './operation.ts';

/** The data of one event of a streamed chat. */
export const ChatChunk = Type.Object(
  {
    id: Type.String({ description: 'The id of the request, the same in every chunk.' }),
    object: Type.Literal('chat.completion.chunk'),
    created: Type.Integer({
      description: 'When the response was started, in Unix seconds; the same in every chunk.',
    }),
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer({ description: 'The index of the choice that this belongs to.' }),
        delta: Type.Object(
          {
            role: Type.Optional(
              Type.String({ description: '`assistant`, only in the first chunk of a choice.' }),
            ),
            content: Type.Optional(Nullable(Type.String({ description: 'The next piece of the text.' }))),
            reasoning_content: Type.Optional(
              Nullable(
                Type.String({
                  description: 'The next piece of the model’s reasoning, if the vendor returns it.',
                }),
              ),
            ),
            refusal: Type.Optional(
              Nullable(Type.String({ description: 'The next piece of why the model refused to respond.' })),
            ),
            tool_calls: Type.Optional(
              Type.Array(Type.Object({ index: Type.Optional(Type.Integer()) }), {
                description: 'Parts of tool calls. Join those with the same `index`.',
              }),
            ),
          },
          { description: 'The new content; empty in the last chunk of a choice.' },
        ),
        logprobs: Type.Optional(Type.Unknown()),
        finish_reason: Nullable(
          Type.String({ description: 'Set only in the last chunk of a choice; null in all others.' }),
        ),
        native_finish_reason: Type.Optional(Nullable(Type.String())),
      }),
      { description: 'A part of one choice; empty in the chunk that contains the usage.' },
    ),
    usage: Type.Optional(
      Nullable(
        Type.Object(ChatUsage.properties, {
          description:
            'Only with `stream_options.include_usage`. null in every chunk except the last, which contains the same ' +
            'usage as a non-streamed response, with `cost_request`, `total_time` and `free_request`.',
        }),
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
    'With `"stream": true`, the response is a stream of server-sent events. Each event is a line `data: ` with the JSON of ' +
    'one chunk, followed by an empty line. The last event is `data: [DONE]`.\n\n' +
    'The first chunk of a choice contains the role, the last one its `finish_reason`. With ' +
    '`"stream_options": {"include_usage": true}`, one more chunk with empty `choices` contains the usage and cost.\n\n' +
    'While nothing is generated, a comment is sent after 2 s and then every 10 s: `: queued position=3` or ' +
    '`: keep-alive`. Lines that begin with a colon are not data.\n\n' +
    'If the request fails before the first event or comment, the response is an error with its own status, as listed ' +
    'below. If it fails later, the last event is `data: {"error": …}` with the body of that error, and `[DONE]` is not sent.',
  example: chatStreamExample,
};
