import Type, { type Static } from 'typebox';
import { StringEnum } from './fields.ts';
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
