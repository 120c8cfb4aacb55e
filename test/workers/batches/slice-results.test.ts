import test, { type ExecutionContext } from 'ava';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { TakenSlice } from '../../../workers/batches/slice-scripts.ts';
import type { BatchPlan } from '../../../workers/batches/batch-plan.ts';
import { SliceResults, type SliceResultsOptions } from '../../../workers/batches/slice-results.ts';

const slice: TakenSlice = {
  accountId: 'an-account',
  batchId: 'batch_1',
  number: 1,
  attempt: 1,
  from: 0,
  to: 10,
  deaths: 0,
  step: 0,
  done: '',
  refusal: null,
};

const plan: BatchPlan = {
  endpoint: '/v1/embeddings',
  inputKey: 'input',
  inputBytes: 10,
  prices: new Map(),
  userIp: '127.0.0.1',
  resultLifetimeSeconds: 3_600,
  publicUrl: '',
};

const openResults = (t: ExecutionContext, dependencies: SliceResultsOptions['dependencies']): SliceResults =>
  new SliceResults({
    dependencies,
    slice,
    plan,
    signal: new AbortController().signal,
    onRefusal: () => t.fail(),
    onFault: () => undefined,
  });

test('results of an account that Redis forgets again and again are kept until they are settled', async (t) => {
  // The first reply is about the names of the objects.
  const replies = [null, ['unknown'], ['unknown'], ['unknown'], ['settled', 1, '']];
  let loads = 0;
  const stored: string[] = [];
  const dependencies = {
    redis: { evalsha: async () => replies.shift() } as unknown as RedisClient,
    hotAccounts: {
      load: async () => {
        loads += 1;
      },
    },
    objects: { put: async (key: string) => void stored.push(key) },
  } as unknown as SliceResultsOptions['dependencies'];
  const results = openResults(t, dependencies);
  await results.add({
    index: 0,
    pieces: [Buffer.from('{}\n')],
    status: 404,
    reservedNano: 0n,
    charge: null,
  });
  await results.end();
  t.is(loads, 2);
  t.is(stored.length, 1);
  t.deepEqual(replies, []);
});

test('results are stored only under names that are in the trash, however often that fails', async (t) => {
  const steps: string[] = [];
  const failures = { begin: 1, put: 1 };
  const takeFailure = (step: keyof typeof failures): boolean => (failures[step] -= 1) >= 0;
  const dependencies = {
    redis: {
      evalsha: async (_sha: string, keys: number, values: readonly string[]) => {
        const names = values.slice(keys);
        const isBegin = names.length === 2;
        steps.push(isBegin ? 'begin' : 'settle');
        if (isBegin && takeFailure('begin')) throw new Error('Connection is closed.');
        return isBegin ? null : ['settled', 1, ''];
      },
    } as unknown as RedisClient,
    objects: {
      put: async () => {
        steps.push('put');
        if (takeFailure('put')) throw new Error('unavailable');
      },
    },
  } as unknown as SliceResultsOptions['dependencies'];
  const results = openResults(t, dependencies);
  const line = { pieces: [Buffer.from('{}\n')], status: 404, reservedNano: 0n, charge: null };
  await results.add({ index: 0, ...line });
  await results.end();
  t.deepEqual(steps, ['begin', 'begin', 'put', 'begin', 'put', 'settle']);
});
