import Type from 'typebox';
import { defineOperation } from '../../shared/contract/operation.ts';

/** Without `format: binary`, generated clients would read the bytes as text or JSON. */
export const bytes = (description: string) =>
  Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary', description });

export const getFile = defineOperation({
  operationId: 'getFile',
  tag: 'Images',
  summary: 'Download a generated image',
  description:
    'Returns an image that was generated with `response_format: "url"`. Anyone who knows the name can download it for ' +
    '24 hours, or as long as the results of the batch that it belongs to. After that, it is permanently deleted. ' +
    '`Range`, `If-Range` and HTTP’s conditional headers are supported, so you can resume an interrupted download.',
  method: 'get',
  path: '/files/{name}',
  atRoot: true,
  auth: 'none',
  pathParameters: Type.Object({
    name: Type.String({
      description: 'The time of creation, 43 unguessable characters, and `.png`, `.jpg` or `.webp`.',
    }),
  }),
  response: bytes('The bytes of the image.'),
  responseType: 'image/*',
  servesRanges: true,
  additionalResponses: [
    {
      status: 206,
      responseType: 'image/*',
      response: bytes('The requested bytes.'),
      description:
        'The bytes requested in `Range`. If you request several ranges, the whole file is returned.',
      example: {},
    },
  ],
  errors: ['not_found', 'queue_full', 'service_unavailable'],
  example: { path: { name: '019aa652f259-Zq3vR8xLw0mT5yKc2BnD7hJfU1sPgA9eXiO4tVbQ6kE.png' } },
});
