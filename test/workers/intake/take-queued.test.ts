import test from 'ava';
import { useStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

test('a worker stops although the connections on which its queues wait are being made anew', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const worker = await stack.startWorker();
  const list = async (): Promise<string[]> => {
    const clients = String(await stack.redis.client('LIST'))
      .trim()
      .split('\n');
    // BullMQ names its own.
    return clients.filter((line) => / name=\{bull\}:/.test(line));
  };
  const idOf = (line: string): string => /^id=(\d+)/.exec(line)![1]!;
  const waiting = await waitFor('the queues to wait', async () => {
    const found = (await list()).filter((line) => / cmd=bzpopmin /.test(line));
    return found.length === 4 && found;
  });
  for (const line of waiting) await stack.redis.client('KILL', 'ID', idOf(line));
  await t.notThrowsAsync(worker.stop());
});
