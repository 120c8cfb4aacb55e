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
      Nullable(Type.String({ description: 'How closely the model looks, such as `low` or `high`.' })),
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
      Nullable(Type.String({ description: 'Its extension must be one of `supported_file_types`.' })),
    ),
    file_id: Type.Optional(
      Nullable(Type.String({ description: 'Refused: the gateway keeps no files; send `file_data`.' })),
    ),
  },
  { title: 'FilePart', description: 'For models with `supported_file_types`; others refuse it.' },
);
export type FilePart = Static<typeof FilePart>;

export const AudioPart = Type.Object(
  {
    data: Type.String({ minLength: 1, description: 'The sound in base64.' }),
    format: Type.String({ minLength: 1, description: '`wav` or `mp3`; others where the vendor takes them.' }),
  },
  { title: 'AudioPart', description: 'For models with `audio` among their `input_modalities`.' },
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
      Nullable(Type.String({ description: 'Of an `assistant` message: why it would not answer.' })),
    ),
  },
  { title: 'ContentItem' },
);
export type ContentItem = Static<typeof ContentItem>;

export const ToolCall = Type.Object(
  {
    id: Type.Optional(Type.String({ description: 'What the `tool_call_id` of its answer names.' })),
    type: Type.Optional(StringEnum(['function'])),
    function: Type.Object({
      name: Type.String(),
      arguments: Type.Optional(Type.String({ description: 'JSON as a text, as the model made it.' })),
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
          'A text, or a list of texts, images and files. A model takes the kinds of its `input_modalities`. May be empty ' +
          'where another message says something.',
      }),
    ),
    name: Type.Optional(Nullable(Type.String({ description: 'Tells apart speakers of one role.' }))),
    tool_calls: Type.Optional(
      Nullable(Type.Array(ToolCall, { description: 'Of an `assistant` message: the calls it made.' })),
    ),
    refusal: Type.Optional(
      Nullable(Type.String({ description: 'Of an `assistant` message: why it would not answer.' })),
    ),
    reasoning_content: Type.Optional(
      Nullable(
        Type.String({
          description: 'Of an `assistant` message: what it thought, for vendors that want it back.',
        }),
      ),
    ),
    audio: Type.Optional(
      Nullable(
        Type.Object({ id: Type.String() }, { description: 'Of an `assistant` message: what it said.' }),
      ),
    ),
    tool_call_id: Type.Optional(
      Nullable(Type.String({ description: 'Of a `tool` message: the call that it answers.' })),
    ),
    function_call: Type.Optional(
      Nullable(
        Type.Object(
          { name: Type.String(), arguments: Type.Optional(Type.String()) },
          { description: 'Of an `assistant` message: the older form of `tool_calls`.' },
        ),
      ),
    ),
  },
  { title: 'Message' },
);
export type Message = Static<typeof Message>;
