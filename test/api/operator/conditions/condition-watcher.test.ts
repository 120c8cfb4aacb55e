import test, { type ExecutionContext } from 'ava';
import { ConditionBoard } from '../../../../api/operator/conditions/condition-board.ts';
import { ConditionWatcher } from '../../../../api/operator/conditions/condition-watcher.ts';
import type { Condition } from '../../../../api/operator/conditions/conditions.ts';
import type { SystemReading } from '../../../../api/operator/conditions/system-reading.ts';
import { showReading } from '../../../../api/operator/conditions/show-reading.ts';
import type { ConditionName } from '../../../../shared/contract/condition-names.ts';
import { ProcessMetrics } from '../../../../shared/platform/metrics/process-metrics.ts';
import type { QueueName } from '../../../../shared/work/queue/job-kinds.ts';
import { captureLog, type LogLine } from '../../../support/captured-log.ts';

const healthy: SystemReading = {
  isRedisUp: true,
  isMongoUp: true,
  isStorageUp: true,
  memory: { usedShare: 0.1, used: { usedBytes: 1, maxBytes: 10 }, isRefusing: false, evictionPolicy: null },
  queues: new Map([['chat' as QueueName, { isServed: true, faults: 0 }]]),
  ledger: { entries: 0, maxShardEntries: 0, oldestMs: 0, deadEntries: 0 },
  refusedKeys: [],
};

interface Setup {
  /** Looks once, and finds this. */
  readonly look: (changes?: Partial<SystemReading>) => Promise<void>;
  readonly find: (name: ConditionName) => Condition;
  readonly lines: readonly LogLine[];
  readonly readMetric: (sample: string) => Promise<string | undefined>;
}

function setUp(t: ExecutionContext): Setup {
  const { log, lines } = captureLog();
  const metrics = new ProcessMetrics({ role: 'api' });
  const board = new ConditionBoard(metrics, log);
  let reading = healthy;
  let nowMs = 0;
  let seen: readonly Condition[] = [];
  const watcher = new ConditionWatcher({
    board,
    read: () => Promise.resolve(reading),
    queuesInUse: () => new Set<QueueName>(['chat']),
    log,
    // The test looks by itself.
    intervalMs: 1_000_000,
    onLook: (conditions) => (seen = conditions),
    nowMs: () => nowMs,
  });
  t.teardown(() => watcher.stop());
  showReading(metrics, () => watcher.last);
  return {
    lines,
    find: (name) => seen.find((one) => one.name === name)!,
    async look(changes = {}) {
      reading = { ...healthy, ...changes };
      nowMs += 5_000;
      await watcher.look();
    },
    async readMetric(sample) {
      const text = await metrics.write();
      return text
        .split('\n')
        .find((line) => line.startsWith(`model_gateway_${sample} `))
        ?.split(' ')[1];
    },
  };
}

const full = {
  memory: {
    usedShare: 0.95,
    used: { usedBytes: 95, maxBytes: 100 },
    isRefusing: false,
    evictionPolicy: null,
  },
};

test('a condition begins with the second reading in a row, ends likewise, and each is one log line', async (t) => {
  const { look, find, lines, readMetric } = setUp(t);
  await look(full);
  t.is(find('redis_memory').isOn, null);
  t.deepEqual(lines, []);
  for (let i = 0; i < 3; i++) await look(full);
  t.like(find('redis_memory'), { isOn: true, sinceMs: 5_000 });
  t.is(await readMetric('condition{condition="redis_memory"}'), '1');
  await look();
  t.true(find('redis_memory').isOn);
  for (let i = 0; i < 3; i++) await look();
  t.like(find('redis_memory'), { isOn: false, sinceMs: null });
  t.is(await readMetric('condition{condition="redis_memory"}'), '0');
  t.is(lines.length, 2);
  t.like(lines[0], {
    level: 50,
    msg: 'Redis has no memory left',
    condition: 'redis_memory',
    usedPercent: 95,
  });
  t.like(lines[1], { level: 30, msg: 'Redis has memory again', condition: 'redis_memory' });
});

test('single readings that differ from those around them neither begin nor end a condition', async (t) => {
  const { look, find, lines } = setUp(t);
  for (let i = 0; i < 3; i++) {
    await look({ isMongoUp: false });
    await look();
  }
  t.false(find('mongodb_unreachable').isOn);
  await look({ isMongoUp: false });
  await look({ isMongoUp: false });
  for (let i = 0; i < 3; i++) {
    await look();
    await look({ isMongoUp: false });
  }
  t.true(find('mongodb_unreachable').isOn);
  t.is(lines.length, 1);
});

test('while something cannot be read, its conditions stay as they are', async (t) => {
  const { look, find, lines, readMetric } = setUp(t);
  const behind = { ledger: { entries: 70, maxShardEntries: 40, oldestMs: 61_000, deadEntries: 0 } };
  await look(behind);
  await look(behind);
  t.is(await readMetric('ledger_lag_entries'), '70');
  t.is(await readMetric('ledger_lag_seconds'), '61');
  const unread = { isRedisUp: false, memory: null, queues: null, ledger: null, refusedKeys: null };
  for (let i = 0; i < 4; i++) await look(unread);
  t.true(find('ledger_behind').isOn);
  t.false(find('redis_memory').isOn ?? false);
  t.true(find('redis_unreachable').isOn);
  t.is(await readMetric('ledger_lag_entries'), 'Nan');
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['ledger is not written', 'Redis does not respond'],
  );
});

test('a ledger with half of what admission allows is behind, however young its entries are', async (t) => {
  const { look, find } = setUp(t);
  const many = { ledger: { entries: 50_001, maxShardEntries: 50_001, oldestMs: 2_000, deadEntries: 0 } };
  await look(many);
  await look(many);
  t.true(find('ledger_behind').isOn);
});

test('entries that could not be read are a condition until they are discarded', async (t) => {
  const { look, find, lines } = setUp(t);
  const ledger = { entries: 0, maxShardEntries: 0, oldestMs: 0, deadEntries: 2 };
  for (let i = 0; i < 2; i++) await look({ ledger });
  t.true(find('ledger_dead_entries').isOn);
  for (let i = 0; i < 2; i++) await look({ ledger: { ...ledger, deadEntries: 0 } });
  t.false(find('ledger_dead_entries').isOn);
  t.like(lines[0], { msg: 'ledger has entries that cannot be read', entries: 2 });
});

test('without any worker, the ledger is not a problem of its own', async (t) => {
  const { look, find } = setUp(t);
  const queues = new Map([['chat' as QueueName, { isServed: false, faults: 0 }]]);
  const behind = { ledger: { entries: 1, maxShardEntries: 1, oldestMs: 61_000, deadEntries: 0 } };
  for (let i = 0; i < 3; i++) await look({ ...behind, queues });
  t.false(find('ledger_behind').isOn);
  for (let i = 0; i < 3; i++) await look(behind);
  t.true(find('ledger_behind').isOn);
});

test('each refused key has lines of its own, which name its upstream and fingerprint, and ends a minute late', async (t) => {
  const { look, find, lines, readMetric } = setUp(t);
  const reason = 'refused with 401';
  const left = { usableKeys: 1, keys: 3, deadModels: [] };
  const first = { upstream: 'vendor', fingerprint: 'aaa', reason, ...left };
  const second = { upstream: 'vendor', fingerprint: 'bbb', reason, ...left };
  await look({ refusedKeys: [first] });
  await look({ refusedKeys: [first, second] });
  await look({ refusedKeys: [first, second] });
  t.like(find('upstream_key_refused'), { isOn: true, subjects: ['vendor'] });
  t.is(await readMetric('upstream_keys_refused{upstream="vendor"}'), '2');
  // Its cooldown has ended, and the next call is refused again.
  for (let i = 0; i < 11; i++) await look({ refusedKeys: [second] });
  await look({ refusedKeys: [first, second] });
  for (let i = 0; i < 12; i++) await look({ refusedKeys: [second] });
  t.true(find('upstream_key_refused').isOn);
  for (let i = 0; i < 12; i++) await look();
  t.false(find('upstream_key_refused').isOn);
  t.is(await readMetric('upstream_keys_refused{upstream="vendor"}'), undefined);
  t.deepEqual(
    lines.map(({ level, msg, key }) => [level, msg, key]),
    [
      [50, 'upstream refuses a key', 'aaa'],
      [50, 'upstream refuses a key', 'bbb'],
      [30, 'upstream key no longer refused', 'aaa'],
      [30, 'upstream key no longer refused', 'bbb'],
    ],
  );
  t.like(lines[0], { upstream: 'vendor', reason });
});

test('failures of workers count only for queues that a model of the catalog needs', async (t) => {
  const { look, find } = setUp(t);
  const faults = (queue: QueueName) => ({ queues: new Map([[queue, { isServed: true, faults: 2 }]]) });
  await look(faults('image'));
  await look(faults('image'));
  t.false(find('worker_faults').isOn);
  await look(faults('chat'));
  await look(faults('chat'));
  t.like(find('worker_faults'), { isOn: true, subjects: ['chat'] });
});
