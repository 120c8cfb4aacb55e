import test from 'ava';
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

test('results of an account that Redis forgets again and again are kept until they are settled', async (t) => {
  const replies = [['unknown'], ['unknown'], ['unknown'], ['settled', 1, '']];
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
  const results = new SliceResults({
    dependencies,
    slice,
    plan,
    signal: new AbortController().signal,
    onRefusal: () => t.fail(),
    onFault: () => undefined,
  });
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
