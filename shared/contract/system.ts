import Type, { type Static } from 'typebox';
import { StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

/** The label of the interface description, which `/logs/summary` reports too. */
export const apiVersion = '0.11.2β';

const check = (description: string) => StringEnum(['ok', 'down'], { description });

export const Health = Type.Object(
  {
    status: StringEnum(['ok', 'degraded', 'down'], {
      description: '`degraded`: something is away and the rest works. `down`: no request is admitted.',
    }),
    version: Type.String({ description: 'Of this interface.' }),
    checks: Type.Object({
      redis: check('Without it nothing is admitted.'),
      mongodb: check('Without it only keys in recent use work.'),
      s3: check('Without it there are no links to images.'),
      workers: check('Without one for each queue, requests of that queue are not answered.'),
    }),
  },
  { title: 'Health' },
);
export type Health = Static<typeof Health>;

const healthExample = {
  status: 'ok',
  version: apiVersion,
  checks: { redis: 'ok', mongodb: 'ok', s3: 'ok', workers: 'ok' },
};

export const getHealth = defineOperation({
  operationId: 'getHealth',
  tag: 'System',
  summary: 'Tell whether the service works',
  description: 'Looked up at most once a second, however often it is asked for.',
  method: 'get',
  path: '/health',
  auth: 'none',
  response: Health,
  furtherAnswers: [
    {
      status: 503,
      response: Health,
      description: 'The status is `down`.',
      example: {
        response: { ...healthExample, status: 'down', checks: { ...healthExample.checks, redis: 'down' } },
      },
    },
  ],
  errors: [],
  example: { response: healthExample },
});

export const getDescription = defineOperation({
  operationId: 'getDescription',
  tag: 'System',
  summary: 'Describe this interface for machines',
  description: 'An OpenAPI 3.1 document, for generators of clients and for tools that try an interface out.',
  method: 'get',
  path: '/openapi.json',
  auth: 'none',
  response: Type.Object({
    openapi: Type.String({ description: 'The version of OpenAPI.' }),
    info: Type.Object({ title: Type.String(), version: Type.String() }),
    paths: Type.Object({}),
  }),
  errors: [],
  example: {
    response: { openapi: '3.1.1', info: { title: 'Model Gateway', version: apiVersion }, paths: {} },
  },
});

export const getDocs = defineOperation({
  operationId: 'getDocs',
  tag: 'System',
  summary: 'Describe this interface for people',
  description: 'The page of the description: all that it says, to read.',
  method: 'get',
  path: '/docs',
  atRoot: true,
  auth: 'none',
  response: Type.String({ description: 'A page that needs no script and loads nothing.' }),
  responseType: 'text/html',
  errors: [],
  example: { response: '<!doctype html>\n<html lang="en">…</html>\n' },
});
