import Type from 'typebox';
import { defineOperation } from '../../shared/contract/operation.ts';

const Count = Type.Integer({ minimum: 0 });
const Seconds = Type.Number({ minimum: 0 });

const sums = {
  waiting: Type.Integer({
    minimum: 0,
    description: 'Requests, durable jobs and lines of batches that do not run yet, wherever they wait.',
  }),
  waiting_for_slot: Type.Integer({
    minimum: 0,
    description:
      'The part of them that a worker has taken and that waits for the limit of its vendor. More workers do not help.',
  }),
  running: Count,
  oldest_waiting_seconds: Seconds,
};

const QueueDemand = Type.Object(
  {
    ...sums,
    takeable: Type.Integer({ minimum: 0, description: 'What a further worker could begin now.' }),
    takeable_waiting_seconds: Type.Number({
      minimum: 0,
      description: 'How long the first of that has waited.',
    }),
    demand: Type.Integer({
      minimum: 0,
      description:
        'How much of the workers’ concurrency the work uses that can run now, has been taken or runs. Divided by the ' +
        'concurrency of a worker, it is how many workers are needed. A line of a batch counts as a part of a request.',
    }),
    eta_seconds: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'How long the workers need for what waits if they go on as in the last minute. `null` if nothing ended in it.',
    }),
    workers: Type.Integer({ minimum: 0, description: 'Live workers that take work off the queue.' }),
    capacity: Type.Integer({ minimum: 0, description: 'How many requests they run at a time, together.' }),
    models: Type.Record(Type.String(), Type.Object(sums), {
      description: 'By model. Only those with work; `other` is one that the catalog no longer has.',
    }),
  },
  { title: 'QueueDemand' },
);

const Demand = Type.Object(
  { chat: QueueDemand, image: QueueDemand, embedding: QueueDemand },
  { title: 'Demand' },
);

const idle = {
  waiting: 0,
  waiting_for_slot: 0,
  running: 0,
  oldest_waiting_seconds: 0,
  takeable: 0,
  takeable_waiting_seconds: 0,
  demand: 0,
  eta_seconds: 0,
  workers: 1,
  capacity: 64,
  models: {},
};

export const getDemand = defineOperation({
  operationId: 'getDemand',
  tag: 'Admin',
  summary: 'Get what waits and runs',
  description:
    'For programs that start and stop workers: what waits and runs in all processes together, by queue. Works while no ' +
    'worker is alive. At most a second old. Needs the operator’s `METRICS_TOKEN` or `ADMIN_TOKEN`; without a `METRICS_TOKEN`, ' +
    'connections of the same machine also get it, without a proxy.',
  method: 'get',
  path: '/admin/demand',
  auth: 'metrics',
  response: Demand,
  errors: ['forbidden', 'service_unavailable'],
  example: {
    response: {
      chat: {
        waiting: 12,
        waiting_for_slot: 0,
        running: 64,
        oldest_waiting_seconds: 6.1,
        takeable: 12,
        takeable_waiting_seconds: 6.1,
        demand: 76,
        eta_seconds: 8,
        workers: 1,
        capacity: 64,
        models: {
          'gpt-4o-mini': { waiting: 12, waiting_for_slot: 0, running: 64, oldest_waiting_seconds: 6.1 },
        },
      },
      image: idle,
      embedding: idle,
    },
  },
});
