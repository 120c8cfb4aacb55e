import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { AlertSender } from '../../../../api/operator/alerts/alert-sender.ts';
import { AlertStore } from '../../../../api/operator/alerts/alert-store.ts';
import type { AlertTarget } from '../../../../api/operator/alerts/alert-targets.ts';
import type { Condition } from '../../../../api/operator/conditions/conditions.ts';
import type { ConditionName } from '../../../../shared/contract/condition-names.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { captureLog, type LogLine } from '../../../support/captured-log.ts';
import { testOnOneRedis } from '../../../support/own-stores.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { waitFor } from '../../../support/wait-for.ts';

const redis = useRedis(test);
// All tests use the same lease.
test.serial.beforeEach(() => redis().del(redisKeys.alertLease, redisKeys.sentAlerts));

const hourMs = 3_600_000;

/** Receives the alerts of several processes. */
class Receiver implements AlertTarget {
  readonly name = 'webhook';
  readonly received: string[] = [];
  attempts = 0;
  isDown = false;

  send({ body }: Parameters<AlertTarget['send']>[0]): Promise<void> {
    this.attempts += 1;
    if (this.isDown) return Promise.reject(new Error('simulated'));
    this.received.push(`${body.type} ${body.condition}`);
    return Promise.resolve();
  }
}

interface Process {
  /** What the process sees. */
  isOn: boolean | null;
  nowMs: number;
  /** Whether its commands reach Redis. */
  hasRedis: boolean;
  readonly update: (name?: ConditionName) => Promise<void>;
  /** Sees these keys refused. */
  readonly updateKeys: (keys: readonly string[]) => Promise<void>;
  readonly stop: () => Promise<void>;
  readonly lines: readonly LogLine[];
}

function startProcess(t: ExecutionContext, target: AlertTarget): Process {
  const { log, lines } = captureLog();
  const store = new AlertStore(redis(), randomUUID());
  const whenUp = async <T>(run: () => Promise<T>): Promise<T> => {
    if (!state.hasRedis) throw new Error('simulated outage');
    return await run();
  };
  const state = { isOn: false as boolean | null, nowMs: 10 * hourMs, hasRedis: true };
  const sender = new AlertSender({
    store: {
      claim: () => whenUp(() => store.claim()),
      record: (records) => whenUp(() => store.record(records)),
      release: () => whenUp(() => store.release()),
    },
    targets: [target],
    log,
    pausesMs: [1, 1],
    nowMs: () => state.nowMs,
  });
  t.teardown(() => sender.stop());
  return Object.assign(state, {
    lines,
    stop: () => sender.stop(),
    async update(name: ConditionName = 'redis_memory') {
      const condition: Condition = { name, isOn: state.isOn, sinceMs: 1, subjects: [], problems: new Map() };
      await sender.update([condition]);
    },
    async updateKeys(keys: readonly string[]) {
      const fields = { reason: 'refused with 401', usableKeys: 1, keys: 2 };
      const problems = new Map(keys.map((key) => [key, { subject: key.split(' ')[0]!, sinceMs: 1, fields }]));
      const isOn = keys.length > 0;
      await sender.update([
        { name: 'upstream_key_refused', isOn, sinceMs: isOn ? 1 : null, subjects: [], problems },
      ]);
    },
  });
}

const readRecord = (name: string = 'redis_memory') => redis().hget(redisKeys.sentAlerts, name);

const begin = 'alert.begin redis_memory';
const end = 'alert.end redis_memory';

test.serial('of two processes that see a condition, one sends', async (t) => {
  const receiver = new Receiver();
  const [first, second] = [startProcess(t, receiver), startProcess(t, receiver)];
  for (const process of [first, second]) process.isOn = true;
  for (const process of [first, second, first, second]) await process.update();
  await waitFor('the alert to be noted', readRecord);
  for (const process of [first, second]) {
    process.isOn = false;
    await process.update();
  }
  await waitFor('the end to be noted', async () => (await readRecord())?.startsWith('off'));
  t.deepEqual(receiver.received, [begin, end]);
});

test.serial(
  'after the death of the sender another process sends the end, and does not repeat the beginning',
  async (t) => {
    const receiver = new Receiver();
    const [first, second] = [startProcess(t, receiver), startProcess(t, receiver)];
    first.isOn = true;
    await first.update();
    await waitFor('the alert to be noted', readRecord);
    // It never renews its lease again.
    await redis().del(redisKeys.alertLease);
    // It has not looked for long enough to know whether the condition is on.
    second.isOn = null;
    await second.update();
    second.isOn = true;
    second.nowMs += 2 * hourMs;
    await second.update();
    t.deepEqual(receiver.received, [begin]);
    second.isOn = false;
    await second.update();
    await waitFor('the end to be noted', async () => (await readRecord())?.startsWith('off'));
    t.deepEqual(receiver.received, [begin, end]);
  },
);

test.serial('a record that was read before an alert was noted does not make it due again', async (t) => {
  const receiver = new Receiver();
  const process = startProcess(t, receiver);
  process.isOn = true;
  await process.update();
  await waitFor('the alert to be noted', readRecord);
  const stale = (await readRecord())!;
  process.isOn = false;
  process.nowMs += 1_000;
  await process.update();
  await waitFor('the end to be noted', async () => (await readRecord())?.startsWith('off'));
  await redis().hset(redisKeys.sentAlerts, 'redis_memory', stale);
  for (let i = 0; i < 3; i++) await process.update();
  t.deepEqual(receiver.received, [begin, end]);
});

test.serial('a process that stops lets another one send at once', async (t) => {
  const receiver = new Receiver();
  const [first, second] = [startProcess(t, receiver), startProcess(t, receiver)];
  await first.update();
  second.isOn = true;
  await second.update();
  t.deepEqual(receiver.received, []);
  await first.stop();
  await second.update();
  await waitFor('the alert', () => receiver.received.length === 1);
});

test.serial(
  'an alert that nobody accepts is a warning after three attempts, and is sent again a minute later',
  async (t) => {
    const receiver = new Receiver();
    const process = startProcess(t, receiver);
    receiver.isDown = true;
    process.isOn = true;
    await process.update();
    await waitFor('the warning', () => process.lines.length > 0);
    t.is(receiver.attempts, 3);
    t.like(process.lines, [
      { level: 40, msg: 'alert not delivered', target: 'webhook', reason: 'simulated' },
    ]);
    receiver.isDown = false;
    await process.update();
    t.deepEqual(receiver.received, []);
    process.nowMs += 60_000;
    await waitFor('the alert', async () => {
      await process.update();
      return receiver.received.length === 1;
    });
  },
);

test.serial(
  'without Redis, each process sends once what it sees, but only after any lease has expired',
  async (t) => {
    const receiver = new Receiver();
    const processes = [startProcess(t, receiver), startProcess(t, receiver)];
    for (const process of processes) {
      await process.update();
      process.hasRedis = false;
      process.isOn = true;
      await process.update();
    }
    t.deepEqual(receiver.received, []);
    for (const process of processes) {
      process.nowMs += 20_001;
      await process.update();
      await process.update();
    }
    await waitFor('the alerts', () => receiver.received.length === 2);
    // Redis is back: both know what they sent, and one of them sends the end.
    for (const process of processes) {
      process.hasRedis = true;
      await process.update();
      process.isOn = false;
    }
    await waitFor('the end', async () => {
      for (const process of processes) await process.update();
      return receiver.received.length === 3 && (await readRecord())?.startsWith('off');
    });
    for (const process of processes) await process.update();
    t.deepEqual(receiver.received, [begin, begin, end]);
  },
);

test.serial('each process tells at once that it does not reach Redis, and that it does again', async (t) => {
  const receiver = new Receiver();
  const processes = [startProcess(t, receiver), startProcess(t, receiver)];
  for (const process of processes) {
    process.hasRedis = false;
    process.isOn = true;
    await process.update('redis_unreachable');
    await process.update('redis_unreachable');
  }
  await waitFor('the alerts', () => receiver.received.length === 2);
  for (const process of processes) {
    process.hasRedis = true;
    process.isOn = false;
    await process.update('redis_unreachable');
  }
  await waitFor('the ends', () => receiver.received.length === 4);
  t.is(receiver.received.filter((text) => text === 'alert.end redis_unreachable').length, 2);
  t.is(await readRecord('redis_unreachable'), null);
});

testOnOneRedis(test.serial)('the process that sends can tell that Redis has no memory left', async (t) => {
  const receiver = new Receiver();
  const [first, second] = [startProcess(t, receiver), startProcess(t, receiver)];
  await first.update();
  await second.update();
  await redis().config('SET', 'maxmemory', '1');
  t.teardown(() => redis().config('SET', 'maxmemory', '0'));
  for (const process of [first, second]) process.isOn = true;
  for (let i = 0; i < 3; i++) for (const process of [first, second]) await process.update();
  await waitFor('the alert', () => receiver.received.length > 0);
  t.is(await readRecord(), null);
  await redis().config('SET', 'maxmemory', '0');
  for (const process of [first, second]) await process.update();
  t.deepEqual(receiver.received, [begin]);
  t.regex((await readRecord())!, /^on /);
});

test.serial(
  'each refused key has alerts of its own, and another process that takes over tells the end of those it does not see',
  async (t) => {
    const texts: string[] = [];
    const target: AlertTarget = {
      name: 'webhook',
      send({ subject }) {
        texts.push(subject);
        return Promise.resolve();
      },
    };
    const first = startProcess(t, target);
    await first.updateKeys(['north aaa']);
    await first.updateKeys(['north aaa', 'south bbb']);
    const recordOf = (key: string) => readRecord(`upstream_key_refused ${key}`);
    await waitFor(
      'both to be noted',
      async () => (await recordOf('north aaa')) && (await recordOf('south bbb')),
    );
    await first.updateKeys(['south bbb']);
    await waitFor('an end to be noted', async () => (await recordOf('north aaa'))?.startsWith('off'));
    await first.stop();
    const second = startProcess(t, target);
    await second.updateKeys([]);
    await waitFor('the other end', async () => (await recordOf('south bbb'))?.startsWith('off'));
    await second.updateKeys([]);
    t.deepEqual(texts, [
      'a key is refused by north',
      'a key is refused by south',
      'ended: the key aaa is no longer refused by north',
      'ended: the key bbb is no longer refused by south',
    ]);
  },
);
