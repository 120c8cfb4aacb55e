import Type from 'typebox';
import { CreatedSeconds, Nullable, RequestId } from './fields.ts';
import { ImageEditForm, imageFields, ImageEditRequest, ImageRequest } from './image-request.ts';
import { createImageStream, tinyPng } from './image-stream.ts';
import { createImageUsage, ImageUsage } from './image-usage.ts';
import { creationErrors, defineOperation } from './operation.ts';

export const Image = Type.Object(
  {
    revised_prompt: Nullable(
      Type.String({ description: 'The prompt as revised by the vendor; null if not reported.' }),
    ),
    b64_json: Nullable(Type.String({ description: 'The image in base64; null with `url`.' })),
    url: Nullable(
      Type.String({
        description: 'A link to the image that works without a key for 24 hours; null with `b64_json`.',
      }),
    ),
  },
  { title: 'Image' },
);

export const ImageResponse = Type.Object(
  {
    id: RequestId,
    created: CreatedSeconds,
    data: Type.Array(Image, { description: 'The generated images, as many as `n`.' }),
    usage: ImageUsage,
  },
  { title: 'ImageResponse' },
);

const howLong =
  'Generation takes seconds to minutes: set your client’s timeout accordingly. If you close the connection while the ' +
  'request is still queued, it is dropped and not charged, unless it has an `Idempotency-Key`. Once the request has been ' +
  'sent to the model, the images are generated to the end and charged.';

/** For JSON bodies and for the parts of a form. */
const bodyLimitBytes = 32_000_000;

const exampleLink =
  'https://gateway.example/files/019aa652f259-Zq3vR8xLw0mT5yKc2BnD7hJfU1sPgA9eXiO4tVbQ6kE.png';
const exampleResponse = {
  id: '019aa652-f259-7b68-b0d2-3f6c1e5a9d80',
  created: 1_763_727_045,
  data: [{ revised_prompt: null, b64_json: null, url: exampleLink }],
  usage: createImageUsage({}, { total_time: 0.731, cost_request: 0.05, free_request: false }),
};

export const createImage = defineOperation({
  operationId: 'createImage',
  tag: 'Images',
  summary: 'Generate images from a prompt',
  description: howLong,
  method: 'post',
  path: '/images/generations',
  auth: 'key',
  modelTypes: ['image'],
  bodyLimitBytes,
  body: ImageRequest,
  response: ImageResponse,
  additionalResponses: [
    createImageStream('image_generation', { model: 'demo-svg-image', prompt: 'a lighthouse at dusk' }),
  ],
  errors: [...creationErrors, 'unsafe_url'],
  example: {
    body: {
      model: 'demo-svg-image',
      prompt: 'a lighthouse at dusk',
      size: '512x512',
      response_format: 'url',
    },
    response: exampleResponse,
  },
});

const editExample = {
  model: 'demo-image-edit',
  prompt: 'grayscale',
  image_url: `data:image/png;base64,${tinyPng}`,
};

export const editImage = defineOperation({
  operationId: 'editImage',
  tag: 'Images',
  summary: 'Edit images with a prompt',
  description: `For models whose \`input_modalities\` include \`image\`. ${howLong}`,
  method: 'post',
  path: '/images/edits',
  auth: 'key',
  modelTypes: ['image'],
  bodyLimitBytes,
  body: ImageEditRequest,
  formBody: ImageEditForm,
  formFiles: imageFields,
  response: ImageResponse,
  additionalResponses: [createImageStream('image_edit', editExample)],
  errors: [...creationErrors, 'unsafe_url'],
  example: { body: { ...editExample, response_format: 'url' }, response: exampleResponse },
});
