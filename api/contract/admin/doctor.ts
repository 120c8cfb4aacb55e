import Type from 'typebox';
import { Nullable, StringEnum, Time } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { findingStatuses } from '../../../shared/doctor/finding.ts';
import { ReasonQuery } from './fields.ts';

const Finding = Type.Object(
  {
    check: Type.String({ description: 'What was checked.' }),
    status: StringEnum(findingStatuses, {
      description:
        '`warning`: it works, but should be changed. `problem`: requests, money or data are lost until it is changed.',
    }),
    found: Type.String(),
    advice: Nullable(Type.String({ description: 'What to do; null if there is nothing to do.' })),
  },
  { title: 'Finding' },
);

const response = Type.Object(
  {
    at: Time('When it was checked.'),
    findings: Type.Array(Finding, { description: 'In the order in which one would mend them.' }),
  },
  { title: 'DoctorReport' },
);

const at = '2026-11-21T09:15:04.000Z';

export const getDoctorReport = defineOperation({
  operationId: 'getDoctorReport',
  tag: 'Admin',
  summary: 'Check the set-up',
  description:
    'What `admin doctor` finds, run in the api process that responds: settings, versions, Redis, MongoDB, the bucket, clocks, the ' +
    'catalog, mail, and what runs. Each check has ten seconds. Calls within a few seconds share one report. It opens connections: ' +
    'do not poll it, `GET /v1/admin/overview` says what is wrong now.',
  method: 'get',
  path: '/admin/doctor',
  auth: 'admin',
  adminScope: 'read',
  response,
  errors: [],
  example: {
    response: {
      at,
      findings: [
        {
          check: 'redis aof',
          status: 'problem',
          found:
            'appendonly is off: a restart of Redis loses running requests, durable jobs and the charges of the last moments',
          advice: 'Set appendonly yes (docs/deployment.md).',
        },
        { check: 'mongodb', status: 'ok', found: 'MongoDB 7.0.14', advice: null },
      ],
    },
  },
});

export const checkAdminUpstreams = defineOperation({
  operationId: 'checkAdminUpstreams',
  tag: 'Admin',
  summary: 'Call each upstream',
  description:
    'A worker calls each upstream once with each of its keys, with the cheapest of its models: a text to embed, or a few tokens of ' +
    'a chat, which the vendors charge for. Upstreams that only have image models are not called. Each call is in the audit log as ' +
    'a test of the model. Calls at the same time share one check. Takes up to a minute.',
  method: 'post',
  path: '/admin/doctor/upstreams',
  auth: 'admin',
  query: ReasonQuery,
  response,
  errors: [],
  example: {
    response: {
      at,
      findings: [
        {
          check: 'upstream openai',
          status: 'problem',
          found: 'key sk-a…89: gpt-4o-mini failed: Incorrect API key provided.',
          advice: 'Replace the key, then: admin upstream reset openai.',
        },
      ],
    },
  },
});
