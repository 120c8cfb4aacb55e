import test from 'ava';
import { bullQueues } from '../../../shared/work/queue/job-kinds.ts';
import { readAmountCharged, waitForNoReservation } from '../../support/observe.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack.close());

// Serial, because each test uses the only worker.
test.serial('a worker can stop while the Redis connections of its queues are reconnecting', async (t) => {
  const worker = await stack.startWorker();
  // BullMQ names its connections after their queues. The worker also waits for webhooks, on another one.
  const names = Object.values(bullQueues)
    .flat()
    .map((queue) => ` name={bull}:${Buffer.from(queue).toString('base64')} `);
  const listConnections = async (): Promise<string[]> => {
    const clients = String(await stack.redis.client('LIST'))
      .trim()
      .split('\n');
    return clients.filter((connection) => names.some((name) => connection.includes(name)));
  };
  const idOf = (connection: string): string => /^id=(\d+)/.exec(connection)![1]!;
  const waiting = await waitFor('the queue connections to wait for jobs', async () => {
    const found = (await listConnections()).filter((connection) => / cmd=bzpopmin /.test(connection));
    return found.length === names.length && found;
  });
  for (const connection of waiting) await stack.redis.client('KILL', 'ID', idOf(connection));
  await t.notThrowsAsync(worker.stop());
});

test.serial(
  'if a request is still queued at its deadline, it fails with that reason and is not charged',
  async (t) => {
    const account = await stack.createAccount();
    const timeoutMs = 1;
    const requests: readonly [string, object][] = [
      ['embeddings', { model: 'use-lite-en-512', input: 'one' }],
      ['images/generations', { model: 'demo-svg-image', prompt: 'a red fox', size: '256x256' }],
    ];
    const responses = requests.map(([path, body]) =>
      stack.post(`/v1/${path}`, account.apiKey, body, { 'x-request-timeout-ms': String(timeoutMs) }),
    );
    await waitFor('both requests to be queued', async () => {
      const lengths = ['embedding', 'image'].map((queue) => stack.redis.llen(`{bull}:${queue}:wait`));
      return (await Promise.all(lengths)).every((length) => length === 1);
    });
    const queuedAtMs = Date.now();
    await waitFor('their deadlines to pass', () => Date.now() > queuedAtMs + timeoutMs);
    const worker = await stack.startWorker();
    for (const response of await Promise.all(responses)) {
      t.is(response.status, 504);
      const { error } = (await response.json()) as { error: { code: string } };
      t.is(error.code, 'deadline_exceeded');
    }
    await waitForNoReservation(stack, account.id);
    t.is(await readAmountCharged(stack, account.id, '100'), 0n);
    await worker.stop();
  },
);
