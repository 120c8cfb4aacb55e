import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';

export const ImageUrl = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      format: 'image-url',
      description:
        'An https URL of at most 2083 characters, or a base64 data URI (`data:image/…`) of at most 20 MB.',
    }),
    detail: Type.Optional(
      Nullable(
        Type.String({
          description: 'The level of detail at which the model processes the image, such as `low` or `high`.',
        }),
      ),
    ),
  },
  { title: 'ImageUrl' },
);

export const FilePart = Type.Object(
  {
    file_data: Type.Optional(
      Nullable(
        Type.String({ description: 'The file as a base64 data URI: `data:application/pdf;base64,…`.' }),
      ),
    ),
    filename: Type.Optional(
      Nullable(
        Type.String({
          description: 'The file name. Its extension must be one of the model’s `supported_file_types`.',
        }),
      ),
    ),
    file_id: Type.Optional(
      Nullable(
        Type.String({
          description: 'Not supported: the gateway does not store files. Send `file_data` instead.',
        }),
      ),
    ),
  },
  { title: 'FilePart', description: 'For models with `supported_file_types`; rejected for other models.' },
);
export type FilePart = Static<typeof FilePart>;

export const AudioPart = Type.Object(
  {
    data: Type.String({ minLength: 1, description: 'The audio data in base64.' }),
    format: Type.String({
      minLength: 1,
      description: '`wav` or `mp3`, or another format if the vendor supports it.',
    }),
  },
  { title: 'AudioPart', description: 'For models whose `input_modalities` include `audio`.' },
);

export const ContentItem = Type.Object(
  {
    type: Type.Optional(
      Nullable(
        StringEnum(['text', 'image_url', 'file', 'input_audio', 'refusal'], {
          description: 'Which of the other fields is set.',
        }),
      ),
    ),
    text: Type.Optional(Nullable(Type.String())),
    image_url: Type.Optional(Nullable(ImageUrl)),
    file: Type.Optional(Nullable(FilePart)),
    input_audio: Type.Optional(Nullable(AudioPart)),
    refusal: Type.Optional(
      Nullable(Type.String({ description: 'In an `assistant` message: why the model refused to respond.' })),
    ),
  },
  { title: 'ContentItem' },
);
export type ContentItem = Static<typeof ContentItem>;

export const ToolCall = Type.Object(
  {
    id: Type.Optional(
      Type.String({ description: 'The id to send as `tool_call_id` in the `tool` message with the result.' }),
    ),
    type: Type.Optional(StringEnum(['function'])),
    function: Type.Object({
      name: Type.String(),
      arguments: Type.Optional(
        Type.String({ description: 'The arguments as a JSON string, as the model generated it.' }),
      ),
    }),
  },
  { title: 'ToolCall' },
);
export type ToolCall = Static<typeof ToolCall>;

export const Message = Type.Object(
  {
    role: StringEnum(['user', 'assistant', 'system', 'developer', 'tool', 'function'], {
      description: '`function` is the older form of `tool`.',
    }),
    content: Type.Optional(
      Type.Unsafe<string | Static<typeof ContentItem>[] | null>({
        anyOf: [{ type: 'string' }, Type.Array(ContentItem), { type: 'null' }],
        default: '',
        description:
          'A text, or an array of texts, images and files. A model accepts the types in its `input_modalities`. Can be ' +
          'empty if another message is not.',
      }),
    ),
    name: Type.Optional(
      Nullable(Type.String({ description: 'Distinguishes participants with the same role.' })),
    ),
    tool_calls: Type.Optional(
      Nullable(
        Type.Array(ToolCall, {
          description: 'In an `assistant` message: the tool calls that the model made.',
        }),
      ),
    ),
    refusal: Type.Optional(
      Nullable(Type.String({ description: 'In an `assistant` message: why the model refused to respond.' })),
    ),
    reasoning_content: Type.Optional(
      Nullable(
        Type.String({
          description:
            'In an `assistant` message: the reasoning of the model, for vendors that require it back.',
        }),
      ),
    ),
    audio: Type.Optional(
      Nullable(
        Type.Object(
          { id: Type.String() },
          { description: 'In an `assistant` message: the audio that the model generated.' },
        ),
      ),
    ),
    tool_call_id: Type.Optional(
      Nullable(
        Type.String({
          description: 'In a `tool` message: the id of the tool call that this is the result of.',
        }),
      ),
    ),
    function_call: Type.Optional(
      Nullable(
        Type.Object(
          { name: Type.String(), arguments: Type.Optional(Type.String()) },
          { description: 'In an `assistant` message: the older form of `tool_calls`.' },
        ),
      ),
    ),
  },
  { title: 'Message' },
);
export type Message = Static<typeof Message>;
