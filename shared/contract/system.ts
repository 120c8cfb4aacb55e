import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

/** The API's version in the OpenAPI document. `/logs/summary` reports it too. */
export const apiVersion = '0.11.2β';

const check = (description: string) => StringEnum(['ok', 'down'], { description });

export const Health = Type.Object(
  {
    status: StringEnum(['ok', 'degraded', 'down'], {
      description:
        '`degraded`: part of the service is unavailable, the rest works. `down`: no requests are accepted.',
    }),
    version: Type.String({ description: 'The version of the gateway.' }),
    checks: Type.Object({
      redis: check('If it is down, no requests are accepted.'),
      mongodb: check('If it is down, only recently used keys work.'),
      s3: check('If it is down, links to images are not available.'),
      workers: check('`down` if a queue has no worker. Requests in that queue are not processed.'),
      ledger: check('`down` if settled requests do not appear in histories and statistics.'),
      redis_memory: check('If it is down, requests may soon be refused.'),
      upstreams: check('`down` if a vendor refuses the service. Some models may not be available.'),
    }),
  },
  { title: 'Health' },
);
export type Health = Static<typeof Health>;

const healthExample = {
  status: 'ok',
  version: '0.1.0',
  checks: {
    redis: 'ok',
    mongodb: 'ok',
    s3: 'ok',
    workers: 'ok',
    ledger: 'ok',
    redis_memory: 'ok',
    upstreams: 'ok',
  },
};

export const getHealth = defineOperation({
  operationId: 'getHealth',
  tag: 'System',
  summary: 'Check whether the service works',
  description:
    'The checks run at most once per second, regardless of how often you call this. For monitors, `/health?strict` ' +
    'returns 503 also if requests of some model cannot be served now: a queue has no worker, or vendors refuse all keys of the ' +
    'model.',
  method: 'get',
  path: '/health',
  auth: 'none',
  hasETag: true,
  query: Type.Object({
    strict: Type.Optional(
      StringEnum(['', 'true', 'false'], {
        description: 'Whether a model that cannot be served makes the status code 503. No value is needed.',
      }),
    ),
  }),
  response: Health,
  additionalResponses: [
    {
      status: 503,
      response: Health,
      description: 'The status is `down`, or with `strict`, requests of some model cannot be served.',
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
  summary: 'Get the OpenAPI description',
  description: 'Returns an OpenAPI 3.1 document, for client generators and API tools.',
  method: 'get',
  path: '/openapi.json',
  auth: 'none',
  hasETag: true,
  response: Type.Object({
    openapi: Type.String({ description: 'The OpenAPI version.' }),
    info: Type.Object({ title: Type.String(), version: Type.String() }),
    paths: Type.Object({}),
  }),
  errors: [],
  example: {
    response: { openapi: '3.1.1', info: { title: 'Model Gateway', version: apiVersion }, paths: {} },
  },
});

export const LogsSummary = Type.Object(
  {
    version: Type.String({ description: 'The version of the API.' }),
    period_hours: Type.Integer({ description: 'The length of the period in hours: 24.' }),
    total_requests: Type.Integer({ description: 'Requests that reached a model, successful or not.' }),
    total_tokens: Type.Integer({ description: 'Prompt and completion tokens of those requests.' }),
    success_rate: Type.Number({
      minimum: 0,
      maximum: 100,
      description:
        'Percentage of the counted requests that succeeded, with two decimal places; 0 if none were counted. Requests ' +
        'are counted as in `/models/status`.',
    }),
  },
  { title: 'LogsSummary' },
);
export type LogsSummary = Static<typeof LogsSummary>;

export const getLogsSummary = defineOperation({
  operationId: 'getLogsSummary',
  tag: 'System',
  summary: 'Get a summary of all requests in the last 24 hours',
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
    description: Nullable(Type.String({ description: 'A description for users.' })),
    base_url: Type.String({ description: 'The base URL for clients, with the version segment.' }),
    health_url: Type.String({ description: 'Returns 200 while the server works.' }),
    server_url: Type.String({ description: 'The base URL without the version segment.' }),
  },
  { title: 'Server' },
);
export type Server = Static<typeof Server>;

export const listServers = defineOperation({
  operationId: 'listServers',
  tag: 'System',
  summary: 'List the servers of the service',
  description: 'All servers have the same models and accounts: a key works on every server.',
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
        description: 'Main server. Use it by default.',
        base_url: 'https://gateway.example/v1',
        health_url: 'https://gateway.example/v1/health',
        server_url: 'https://gateway.example',
      },
    ],
  },
});

export const WebConfig = Type.Object(
  {
    name: Type.String({ description: 'The name of this service.' }),
    logo_url: Nullable(
      Type.String({ description: 'The path of the logo on this server; null if there is none.' }),
    ),
    api_base_url: Type.String({
      description: 'The base URL for API clients, with the version segment.',
    }),
    support_email: Nullable(
      Type.String({ description: 'The email address for support; null if there is none.' }),
    ),
    terms_url: Nullable(
      Type.String({ description: 'The address of the terms of service; null if there is none.' }),
    ),
    privacy_url: Nullable(
      Type.String({ description: 'The address of the privacy policy; null if there is none.' }),
    ),
    footer_text: Nullable(
      Type.String({ description: 'A line that the operator adds to each page; null if there is none.' }),
    ),
    signup_enabled: Type.Boolean({ description: 'Whether new users can sign up.' }),
    captcha_required: Type.Boolean({
      description: 'Whether `/web/auth/request-code` needs a `captcha_token`.',
    }),
    captcha_mode: StringEnum(['on', 'optional', 'off'], {
      description:
        '`on`: a `captcha_token` is required. `optional`: it can be omitted, with stricter limits. `off`: it is not needed.',
    }),
    default_account_label: Type.String({
      description: 'The label of an account that was created or linked without one.',
    }),
    keys_shown_again: Type.Boolean({
      description:
        'Whether a mailed code shows the key of an account again. Otherwise it is shown only when it is made.',
    }),
    currency: Type.Literal('RUB'),
    code_ttl_seconds: Type.Integer({ description: 'How long an emailed code is valid, in seconds.' }),
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
      logo_url: null,
      api_base_url: 'https://gateway.example/v1',
      support_email: 'support@gateway.example',
      terms_url: 'https://gateway.example/terms',
      privacy_url: 'https://gateway.example/privacy',
      footer_text: null,
      signup_enabled: true,
      captcha_required: true,
      captcha_mode: 'on',
      default_account_label: 'Основной',
      keys_shown_again: true,
      currency: 'RUB',
      code_ttl_seconds: 600,
    },
  },
});
