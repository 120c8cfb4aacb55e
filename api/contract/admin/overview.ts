import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { Count, LastRefusal, Moment, OptionalMoment, Roubles } from './fields.ts';

const seconds = (description: string) => Nullable(Type.Number({ minimum: 0, description }));

const money = {
  cost: Roubles('What customers paid, in roubles.'),
  vendor_cost: Nullable(
    Roubles('What vendors charge, in roubles, as far as it is known; null if it is known of no request.'),
  ),
  margin: Nullable(
    Roubles(
      'What customers paid for the requests whose vendor cost is known, minus that, in roubles; null if there are none.',
    ),
  ),
};

const trafficFields = {
  requests: Count(
    'Requests that ended: those that succeeded, failed or were rejected. Lines of batches count one by one.',
  ),
  succeeded: Count(),
  failed: Count('Requests that failed here or at a vendor (5xx).'),
  rejected: Count(
    'Requests that reached a model and ended with a status of 4xx, which is neither for nor against the model: the vendor ' +
      'refused the request itself, such as with `upstream_rejected`, or its caller cancelled it or left (499). Those that ended ' +
      'before a model was called are not among them, nor in any other of these numbers: no key, no money, over a limit, not ' +
      'valid, or cancelled while they waited. `GET /v1/admin/requests?outcome=rejected` lists such requests.',
  ),
  median_seconds: seconds(
    'From admission to the end of the requests that succeeded, without durable jobs and lines of batches, for which nobody waits: half were as fast. Null if there are none.',
  ),
  p95_seconds: seconds('The same of 95 of 100.'),
  first_token_median_seconds: seconds(
    'From admission to the first output of streamed chats: half were as fast. Null if there are none.',
  ),
  first_token_p95_seconds: seconds('The same of 95 of 100.'),
  ...money,
};

const Traffic = Type.Object(trafficFields, { title: 'OverviewTraffic' });

const ModelTraffic = Type.Object(
  { model: Type.String({ description: 'Its id in the catalog.' }), ...trafficFields },
  { title: 'OverviewModelTraffic' },
);

const TopModels = (description: string) => Type.Array(ModelTraffic, { description });

const Period = Type.Object(
  {
    since: Moment('Since when the requests are counted.'),
    all: Traffic,
    most_requests: TopModels('The five models with the most requests, most first.'),
    most_failed: TopModels('The five models with the most failures, most first. Only those with any.'),
  },
  { title: 'OverviewPeriod' },
);

const Hour = Type.Object(
  { hour: Moment('When the hour began.'), requests: Count(), failed: Count(), rejected: Count(), ...money },
  { title: 'OverviewHour' },
);

const Queue = Type.Object(
  {
    waiting: Count('Requests, durable jobs and lines of batches that do not run yet.'),
    waiting_for_slot: Count('The part of them that waits for the limit of a vendor.'),
    running: Count(),
    oldest_waiting_seconds: Type.Number({ minimum: 0 }),
    eta_seconds: Nullable(
      Count(
        'How long the workers need for what waits if they go on as in the last minute; null if nothing ended in it.',
      ),
    ),
    workers: Count('Live workers that take work off the queue.'),
  },
  { title: 'OverviewQueue' },
);

const breakers = ['closed', 'open', 'half-open'] as const;

const Upstream = Type.Object(
  {
    name: Type.String(),
    slots: Count('How many of its calls run at a time at most.'),
    slots_used: Count('Calls that run, in all workers.'),
    routes: Count('Models that it serves.'),
    breaker: StringEnum(breakers, { description: 'That of the route that is worst off.' }),
    open_breakers: Count('Routes whose circuit breaker is not closed.'),
    drained: Type.Boolean({ description: 'Whether an operator has drained the whole upstream.' }),
    drained_models: Type.Array(Type.String(), {
      description: 'Models whose routes at it are drained; all of its models if the whole is.',
    }),
    keys: Count('Its keys in the catalog.'),
    refused_keys: Nullable(Count('Those of them that it refuses; null if that is not known.')),
    cooldown_seconds: Count('For how long the key is set aside that is so for longest.'),
    last_refusal: LastRefusal,
  },
  { title: 'OverviewUpstream' },
);

const Processes = Type.Object(
  {
    count: Count(),
    oldest_started_at: OptionalMoment('When the oldest of them started; null if none says.'),
    builds: Type.Array(
      Type.Object({
        build: Type.String({ description: 'The version and the build: `0.1.0+5d1f0c2a`.' }),
        count: Count(),
      }),
      { description: 'The builds that run, most processes first. Several during an update.' },
    ),
  },
  { title: 'OverviewProcesses' },
);

const aboutKinds = ['queue', 'upstream', 'model', 'ledger', 'redis', 'mongodb', 'storage'] as const;

const Condition = Type.Object(
  {
    name: Type.String({ description: 'As in the table of conditions of docs/operations.md.' }),
    since: Moment('When it began.'),
    title: Type.String({ description: 'What is wrong, in a few words.' }),
    text: Type.String({ description: 'What it means, and what to do.' }),
    about: Type.Array(
      Type.Object({
        kind: StringEnum(aboutKinds),
        id: Nullable(Type.String({ description: 'Which one; null if there is only one.' })),
      }),
      { description: 'What it concerns, the cause first.' },
    ),
  },
  { title: 'OverviewCondition' },
);

const refusalCauses = ['disabled', 'drained', 'refused', 'cooldown', 'breaker'] as const;

const RefusingModel = Type.Object(
  {
    model: Type.String({ description: 'Its id in the catalog.' }),
    causes: Type.Array(
      Type.Object({
        why: StringEnum(refusalCauses, {
          description:
            '`disabled` and `drained` by an operator; `refused`: the vendor refuses all keys; `cooldown`: all keys are set aside; ' +
            '`breaker`: calls have failed.',
        }),
        upstream: Nullable(Type.String({ description: 'Null if the model is disabled.' })),
        reason: Nullable(Type.String({ description: 'Of a key that is set aside.' })),
        resource: Nullable(
          Type.String({ description: 'What an operator changed, as `GET /v1/admin/audit` takes it.' }),
        ),
      }),
      { description: 'One for each upstream, or that the model is disabled.' },
    ),
  },
  { title: 'OverviewRefusingModel' },
);

const parts = ['traffic', 'queues', 'upstreams', 'processes', 'ledger'] as const;

export const Overview = Type.Object(
  {
    at: Moment('When this was read.'),
    unavailable: Type.Array(StringEnum(parts), {
      description: 'The parts that could not be read, because a store does not respond. They are null.',
    }),
    conditions: Type.Array(Condition, {
      description:
        'What is wrong now, as this api process sees it, the worst first: what operators get alerts about.',
    }),
    refusing_models: Nullable(
      Type.Array(RefusingModel, {
        description:
          'Models that can serve nobody now, although the gateway has routes to them; null if that is not known.',
      }),
    ),
    traffic: Nullable(
      Type.Object({
        hour: Period,
        day: Period,
        hours: Type.Array(Hour, {
          description: 'The last 24 hours one by one, oldest first; the current one is the last.',
        }),
      }),
    ),
    queues: Nullable(Type.Object({ chat: Queue, image: Queue, embedding: Queue })),
    upstreams: Nullable(Type.Array(Upstream, { description: 'In the order of the catalog.' })),
    processes: Nullable(Type.Object({ apis: Processes, workers: Processes })),
    ledger: Nullable(
      Type.Object({
        waiting: Count('Entries that are not in MongoDB yet.'),
        lag_seconds: Type.Number({
          minimum: 0,
          description: 'The age of the oldest of them; 0 if there is none.',
        }),
        is_behind: Type.Boolean({ description: 'Whether that is so much that operators are alerted.' }),
        dead: Count('Entries that could not be read: `GET /v1/admin/ledger/dead` lists them.'),
      }),
    ),
  },
  { title: 'Overview' },
);
export type Overview = Static<typeof Overview>;

const traffic = {
  requests: 1_204,
  succeeded: 1_180,
  failed: 3,
  rejected: 21,
  median_seconds: 1.9,
  p95_seconds: 7.4,
  first_token_median_seconds: 0.4,
  first_token_p95_seconds: 1.2,
  cost: 49.36,
  vendor_cost: 25.77,
  margin: 23.59,
};
const models = [{ model: 'gpt-4o-mini', ...traffic }];
const period = {
  since: '2026-11-21T08:15:00.000Z',
  all: traffic,
  most_requests: models,
  most_failed: models,
};
const idle = {
  waiting: 0,
  waiting_for_slot: 0,
  running: 0,
  oldest_waiting_seconds: 0,
  eta_seconds: 0,
  workers: 2,
};
const processes = {
  count: 2,
  oldest_started_at: '2026-11-20T06:00:12.000Z',
  builds: [{ build: '0.1.0+5d1f0c2a', count: 2 }],
};

const example: Overview = {
  at: '2026-11-21T09:15:04.000Z',
  unavailable: [],
  conditions: [
    {
      name: 'upstream_key_refused',
      since: '2026-11-21T09:02:10.000Z',
      title: 'a key is refused by azure',
      text: 'It is the key 5d1f0c2a, refused with 401. azure has 1 of 2 keys left. Other keys or routes take its calls.',
      about: [{ kind: 'upstream', id: 'azure' }],
    },
  ],
  refusing_models: [
    {
      model: 'gpt-4o-mini',
      causes: [{ why: 'drained', upstream: 'openai', reason: null, resource: 'upstream:openai' }],
    },
  ],
  traffic: {
    hour: period,
    day: { ...period, since: '2026-11-20T10:00:00.000Z' },
    hours: [
      {
        hour: '2026-11-21T09:00:00.000Z',
        requests: 301,
        failed: 1,
        rejected: 4,
        cost: 12.31,
        vendor_cost: 6.4,
        margin: 5.91,
      },
    ],
  },
  queues: {
    chat: { ...idle, waiting: 12, running: 64, oldest_waiting_seconds: 6.1, eta_seconds: 8 },
    image: idle,
    embedding: idle,
  },
  upstreams: [
    {
      name: 'azure',
      slots: 64,
      slots_used: 12,
      routes: 4,
      breaker: 'closed',
      open_breakers: 0,
      drained: false,
      drained_models: [],
      keys: 2,
      refused_keys: 1,
      cooldown_seconds: 540,
      last_refusal: { at: '2026-11-21T09:02:10.000Z', reason: 'refused with 401' },
    },
  ],
  processes: { apis: processes, workers: processes },
  ledger: { waiting: 12, lag_seconds: 0.4, is_behind: false, dead: 0 },
};

export const getOverview = defineOperation({
  operationId: 'getOverview',
  tag: 'Admin',
  summary: 'Get an overview of the gateway',
  description:
    'Traffic, queues, upstreams, processes, the ledger and what is wrong. It may be polled every few seconds: each process ' +
    'reads it at most every two seconds, for all callers together, and its work does not grow with accounts, requests or ' +
    'batches. Traffic is summed when requests end, and shown in steps of half a minute; since the update for the sums that ' +
    'earlier releases do not have. Seconds of medians and of 95 of 100 are exact to about a tenth. Sums are not money: a worker ' +
    'that is killed loses its last second of them, and `GET /v1/admin/spend` is exact.',
  method: 'get',
  path: '/admin/overview',
  auth: 'admin',
  adminScope: 'read',
  response: Overview,
  errors: [],
  example: { response: example },
});
