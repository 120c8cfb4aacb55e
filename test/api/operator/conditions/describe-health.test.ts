import test from 'ava';
import { describeHealth } from '../../../../api/operator/conditions/describe-health.ts';
import type { SystemReading } from '../../../../api/operator/conditions/system-reading.ts';
import { queueNames, type QueueName } from '../../../../shared/work/queue/job-kinds.ts';

const served = (unserved: readonly QueueName[] = [], faults = 0) =>
  new Map(queueNames.map((queue) => [queue, { isServed: !unserved.includes(queue), faults }]));

const healthy: SystemReading = {
  isRedisUp: true,
  isMongoUp: true,
  isStorageUp: true,
  memory: { usedShare: null, used: null, isRefusing: false, evictionPolicy: null },
  queues: served(),
  ledger: { entries: 5, maxShardEntries: 2, oldestMs: 900, deadEntries: 0 },
  refusedKeys: [],
};
const expecting = { queuesInUse: new Set<QueueName>(queueNames), expectsWorkers: true };
const down = (changes: Partial<SystemReading>): [status: string, isServing: boolean, ...down: string[]] => {
  const { health, isServing } = describeHealth({ ...healthy, ...changes }, expecting);
  const names = Object.entries(health.checks).flatMap(([name, state]) => (state === 'ok' ? [] : [name]));
  return [health.status, isServing, ...names];
};

const refusedKey = {
  upstream: 'vendor',
  fingerprint: 'aaa',
  reason: 'refused with 401',
  usableKeys: 1,
  keys: 2,
  deadModels: [],
};

test('each problem is a check that is down, and without Redis the service is', (t) => {
  t.deepEqual(down({}), ['ok', true]);
  t.deepEqual(down({ isMongoUp: false }), ['degraded', true, 'mongodb']);
  t.deepEqual(down({ isStorageUp: false }), ['degraded', true, 's3']);
  t.deepEqual(down({ queues: served(['image']) }), ['degraded', false, 'workers']);
  t.deepEqual(down({ queues: served([], 1) }), ['degraded', true, 'workers']);
  t.deepEqual(down({ ledger: { entries: 9, maxShardEntries: 9, oldestMs: 60_001, deadEntries: 0 } }), [
    'degraded',
    true,
    'ledger',
  ]);
  const memory = { usedShare: 0.5, used: null, isRefusing: false, evictionPolicy: null };
  t.deepEqual(down({ memory }), ['ok', true]);
  for (const wrong of [{ usedShare: 0.91 }, { isRefusing: true }, { evictionPolicy: 'allkeys-lru' }])
    t.deepEqual(down({ memory: { ...memory, ...wrong } }), ['degraded', true, 'redis_memory']);
  t.deepEqual(down({ refusedKeys: [refusedKey] }), ['degraded', true, 'upstreams']);
  // A model that nothing else serves.
  t.deepEqual(down({ refusedKeys: [{ ...refusedKey, deadModels: ['chat'] }] }), [
    'degraded',
    false,
    'upstreams',
  ]);
  const unread = { isRedisUp: false, memory: null, queues: null, ledger: null, refusedKeys: null };
  t.deepEqual(down(unread), ['down', false, 'redis', 'workers', 'ledger', 'redis_memory', 'upstreams']);
});

test('health names no vendor and no key', (t) => {
  const refusedKeys = [{ ...refusedKey, deadModels: ['chat-model'] }];
  t.notRegex(JSON.stringify(describeHealth({ ...healthy, refusedKeys }, expecting)), /vendor|aaa|401|model/);
});

test('if workers are started on demand, their absence does not degrade the service, but requests are not served', (t) => {
  const onDemand = { ...expecting, expectsWorkers: false };
  const { health, isServing } = describeHealth({ ...healthy, queues: served(queueNames) }, onDemand);
  t.is(health.status, 'ok');
  t.is(health.checks.workers, 'down');
  t.false(isServing);
  t.is(describeHealth({ ...healthy, queues: served(queueNames, 1) }, onDemand).health.status, 'degraded');
});

test('a queue without a worker that no model needs does not mean that requests are not served', (t) => {
  const { isServing } = describeHealth(
    { ...healthy, queues: served(['embedding']) },
    { queuesInUse: new Set(['chat']), expectsWorkers: true },
  );
  t.true(isServing);
});
