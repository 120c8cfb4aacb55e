import test from 'ava';
import { readLoss, waitForNoReservation } from '../../support/observe.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack.close());

// Serial: each test needs the only worker.
test.serial(
  'a worker stops even while the connections on which its queues wait are reconnecting',
  async (t) => {
    const worker = await stack.startWorker();
    const list = async (): Promise<string[]> => {
      const clients = String(await stack.redis.client('LIST'))
        .trim()
        .split('\n');
      // BullMQ sets the names of its connections.
      return clients.filter((line) => / name=\{bull\}:/.test(line));
    };
    const idOf = (line: string): string => /^id=(\d+)/.exec(line)![1]!;
    const waiting = await waitFor('the queues to wait', async () => {
      const found = (await list()).filter((line) => / cmd=bzpopmin /.test(line));
      return found.length === 4 && found;
    });
    for (const line of waiting) await stack.redis.client('KILL', 'ID', idOf(line));
    await t.notThrowsAsync(worker.stop());
  },
);

test.serial(
  'a caller whose request stayed queued past its deadline gets an error that says so, and is not charged',
  async (t) => {
    const account = await stack.createAccount();
    const timeoutMs = 1;
    const requests: readonly [string, object][] = [
      ['embeddings', { model: 'use-lite-en-512', input: 'one' }],
      ['images/generations', { model: 'demo-svg-image', prompt: 'a red fox', size: '256x256' }],
    ];
    const answers = requests.map(([path, body]) =>
      stack.post(`/v1/${path}`, account.apiKey, body, { 'x-request-timeout-ms': String(timeoutMs) }),
    );
    await waitFor('both to be queued', async () => {
      const lengths = ['embedding', 'image'].map((queue) => stack.redis.llen(`{bull}:${queue}:wait`));
      return (await Promise.all(lengths)).every((length) => length === 1);
    });
    const queuedAtMs = Date.now();
    await waitFor('their deadlines to pass', () => Date.now() > queuedAtMs + timeoutMs);
    const worker = await stack.startWorker();
    for (const answer of await Promise.all(answers)) {
      t.is(answer.status, 504);
      const { error } = (await answer.json()) as { error: { code: string } };
      t.is(error.code, 'deadline_exceeded');
    }
    await waitForNoReservation(stack, account.id);
    t.is(await readLoss(stack, account.id, '100'), 0n);
    await worker.stop();
  },
);
