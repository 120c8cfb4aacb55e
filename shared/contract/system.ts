import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

/** The API's version in the OpenAPI document. `/logs/summary` reports it too. */
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
  hasETag: true,
  response: Health,
  additionalResponses: [
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
  hasETag: true,
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
  hasETag: true,
  response: Type.String({ description: 'A page that needs no script and loads nothing.' }),
  responseType: 'text/html',
  errors: [],
  example: { response: '<!doctype html>\n<html lang="en">…</html>\n' },
});

export const LogsSummary = Type.Object(
  {
    version: Type.String({ description: 'Version of the interface.' }),
    period_hours: Type.Integer({ description: 'How far back it counts: 24.' }),
    total_requests: Type.Integer({ description: 'Requests that reached a model, however they went.' }),
    total_tokens: Type.Integer({ description: 'Prompt and completion tokens of those requests.' }),
    success_rate: Type.Number({
      minimum: 0,
      maximum: 100,
      description:
        'Percent of the judged requests that succeeded, with two decimals; 0 where none was judged. Judged as in ' +
        '`/models/status`.',
    }),
  },
  { title: 'LogsSummary' },
);
export type LogsSummary = Static<typeof LogsSummary>;

export const getLogsSummary = defineOperation({
  operationId: 'getLogsSummary',
  tag: 'System',
  summary: 'Sum up the last 24 hours of all requests',
  description: 'Refreshed every 30 seconds and the same on every server.',
  method: 'get',
  path: '/logs/summary',
  auth: 'none',
  hasETag: true,
  response: LogsSummary,
  errors: ['service_unavailable'],
  example: {
    response: {
      version: apiVersion,
      period_hours: 24,
      total_requests: 18_204,
      total_tokens: 9_412_377,
      success_rate: 99.18,
    },
  },
});

export const Server = Type.Object(
  {
    name: StringEnum(['main', 'backup', 'direct']),
    description: Nullable(Type.String({ description: 'For people to read.' })),
    base_url: Type.String({ description: 'With the version segment, as clients take it.' }),
    health_url: Type.String({ description: 'Answers 200 while the server works.' }),
    server_url: Type.String({ description: 'Without the version segment.' }),
  },
  { title: 'Server' },
);
export type Server = Static<typeof Server>;

export const listServers = defineOperation({
  operationId: 'listServers',
  tag: 'System',
  summary: 'List the addresses of the service',
  description: 'They serve the same models and accounts: a key that one knows works on all.',
  method: 'get',
  path: '/servers',
  auth: 'none',
  hasETag: true,
  response: Type.Array(Server),
  errors: [],
  example: {
    response: [
      {
        name: 'main',
        description: 'The address to use.',
        base_url: 'https://gateway.example/v1',
        health_url: 'https://gateway.example/v1/health',
        server_url: 'https://gateway.example',
      },
    ],
  },
});

export const WebConfig = Type.Object(
  {
    name: Type.String({ description: 'What this service is called.' }),
    api_base_url: Type.String({
      description: 'The address for clients of the API, with the version segment.',
    }),
    support_email: Nullable(
      Type.String({ description: 'Where users ask for help; null where there is no such address.' }),
    ),
    signup_enabled: Type.Boolean({ description: 'Whether new users can sign up.' }),
    captcha_required: Type.Boolean({
      description: 'Whether `/web/auth/request-code` needs a `captcha_token`.',
    }),
    captcha_mode: StringEnum(['on', 'optional', 'off'], {
      description:
        '`on`: a `captcha_token` is required. `optional`: it may be left out, within stricter limits. `off`: none is needed.',
    }),
    default_account_label: Type.String({ description: 'The label of an account that was given none.' }),
    currency: Type.Literal('RUB'),
    code_ttl_seconds: Type.Integer({ description: 'How long a mailed code can be used.' }),
  },
  { title: 'WebConfig' },
);
export type WebConfig = Static<typeof WebConfig>;

export const getWebConfig = defineOperation({
  operationId: 'getWebConfig',
  tag: 'System',
  summary: 'Get the account area’s settings',
  method: 'get',
  path: '/web/config',
  auth: 'none',
  hasETag: true,
  response: WebConfig,
  errors: [],
  example: {
    response: {
      name: 'Model Gateway',
      api_base_url: 'https://gateway.example/v1',
      support_email: 'support@gateway.example',
      signup_enabled: true,
      captcha_required: true,
      captcha_mode: 'on',
      default_account_label: 'Основной',
      currency: 'RUB',
      code_ttl_seconds: 600,
    },
  },
});
