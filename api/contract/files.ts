import Type from 'typebox';
import { defineOperation } from '../../shared/contract/operation.ts';

/** Without `format: binary`, generated clients would read the bytes as text or JSON. */
const bytes = (description: string) =>
  Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary', description });

export const getFile = defineOperation({
  operationId: 'getFile',
  tag: 'Images',
  summary: 'Fetch a generated image',
  description:
    'What the links of `response_format: "url"` point at. Whoever knows the name may fetch it, for 24 hours; ' +
    'then it is gone for good. `Range`, `If-Range` and the conditional headers of HTTP are understood, so that a ' +
    'download that was cut can be resumed.',
  method: 'get',
  path: '/files/{name}',
  atRoot: true,
  auth: 'none',
  pathParameters: Type.Object({
    name: Type.String({
      description:
        'When the image was made, 43 characters that cannot be guessed, and `.png`, `.jpg` or `.webp`.',
    }),
  }),
  response: bytes('The bytes of the picture.'),
  responseType: 'image/*',
  servesRanges: true,
  additionalResponses: [
    {
      status: 206,
      responseType: 'image/*',
      response: bytes('The bytes that were asked for.'),
      description: 'The range that `Range` asks for. Several ranges at once are answered by the whole file.',
      example: {},
    },
  ],
  errors: ['not_found', 'queue_full', 'service_unavailable'],
  example: { path: { name: '019aa652f259-Zq3vR8xLw0mT5yKc2BnD7hJfU1sPgA9eXiO4tVbQ6kE.png' } },
});
