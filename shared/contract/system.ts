import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

/** The label of the interface description, which `/logs/summary` reports too. */
export const apiVersion = '0.11.2β';

const Check = StringEnum(['ok', 'down']);

export const Health = Type.Object({
  status: StringEnum(['ok', 'degraded', 'down']),
  version: Type.String(),
  checks: Type.Object({ redis: Check, mongodb: Check, s3: Check, workers: Check }),
});
export type Health = Static<typeof Health>;

export const getHealth = defineOperation({
  operationId: 'getHealth',
  tag: 'System',
  summary: 'Tell whether the service works',
  method: 'get',
  path: '/health',
  auth: 'none',
  response: Health,
  errors: [],
});

export const LogsSummary = Type.Object({
  version: Type.String({ description: 'Version of the interface.' }),
  period_hours: Type.Integer(),
  total_requests: Type.Integer({ description: 'Requests that reached a model, however they went.' }),
  total_tokens: Type.Integer({ description: 'Prompt and completion tokens of those requests.' }),
  success_rate: Type.Number({
    minimum: 0,
    maximum: 100,
    description:
      'Percent of the judged requests that succeeded, with two decimals; 0 where none was judged. Judged as in ' +
      '`/models/status`.',
  }),
});
export type LogsSummary = Static<typeof LogsSummary>;

export const getLogsSummary = defineOperation({
  operationId: 'getLogsSummary',
  tag: 'System',
  summary: 'Sum up the last 24 hours of all requests',
  description: 'Refreshed every 30 seconds and the same on every server.',
  method: 'get',
  path: '/logs/summary',
  auth: 'none',
  response: LogsSummary,
  errors: ['service_unavailable'],
});

export const Server = Type.Object({
  name: StringEnum(['main', 'backup', 'direct']),
  description: Nullable(Type.String()),
  base_url: Type.String({ description: 'With the version segment, as clients take it.' }),
  health_url: Type.String({ description: 'Answers 200 while the server works.' }),
  server_url: Type.String({ description: 'Without the version segment.' }),
});
export type Server = Static<typeof Server>;

export const listServers = defineOperation({
  operationId: 'listServers',
  tag: 'System',
  summary: 'List the addresses of the service',
  description: 'They serve the same models and accounts: a key that one knows works on all.',
  method: 'get',
  path: '/servers',
  auth: 'none',
  response: Type.Array(Server),
  errors: [],
});
