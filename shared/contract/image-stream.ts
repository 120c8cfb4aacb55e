import Type, { type Static } from 'typebox';
import { Nullable } from './fields.ts';
import { createImageUsage, ImageUsage } from './image-usage.ts';
import type { AdditionalResponse } from './operation.ts';

/** Prefix of the event names of the two operations, as OpenAI names them. */
export type ImageEventKind = 'image_generation' | 'image_edit';

/** The data of one event of a streamed image. */
export const ImageEvent = Type.Object(
  {
    type: Type.String({
      description:
        '`image_generation.partial_image` or `image_generation.completed`; for an edit, `image_edit.…`.',
    }),
    b64_json: Type.String({ description: 'The preview or the final image, in base64.' }),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    size: Type.String({ description: 'The size requested from the vendor.' }),
    quality: Type.String(),
    background: Type.String(),
    output_format: Type.String({ description: '`png`, `jpeg` or `webp`.' }),
    partial_image_index: Type.Optional(
      Type.Integer({ description: 'The index of the preview, starting at 0; absent from the last event.' }),
    ),
    revised_prompt: Type.Optional(
      Nullable(Type.String({ description: 'In the last event: the prompt as revised by the vendor.' })),
    ),
    usage: Type.Optional(ImageUsage),
  },
  { title: 'ImageEvent' },
);
export type ImageEvent = Static<typeof ImageEvent>;

/** A one-pixel PNG, for examples that can be sent as they are. */
export const tinyPng =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export function createImageStream(kind: ImageEventKind, body: object): AdditionalResponse {
  const event = {
    created_at: 1_763_727_045,
    size: '1024x1024',
    quality: 'auto',
    background: 'auto',
    output_format: 'png',
  };
  const completed: ImageEvent = {
    type: `${kind}.completed`,
    b64_json: tinyPng,
    ...event,
    revised_prompt: null,
    usage: createImageUsage({}, { total_time: 0.731, cost_request: 0.05, free_request: false }),
  };
  return {
    status: 200,
    responseType: 'text/event-stream',
    response: ImageEvent,
    description:
      'With `"stream": true`, the response is a stream of server-sent events. Each event is a line `event: ` with the type ' +
      'and a line `data: ` with the JSON, followed by an empty line. If the model generates previews, up to ' +
      `\`partial_images\` of them are sent as \`${kind}.partial_image\`. The final image is sent as ` +
      `\`${kind}.completed\`, with usage and cost, and ends the stream.\n\n` +
      'While there is nothing to send, a comment is sent at least every 10 s: `: keep-alive`. If the request fails before ' +
      'the first event, the response is an error with its own status, as listed below. If it fails later, the last event ' +
      'is `data: {"error": …}` with the body of that error.',
    example: {
      body: { ...body, stream: true, partial_images: 1 },
      response: `event: ${completed.type}\ndata: ${JSON.stringify(completed)}\n\n`,
    },
  };
}
