import type { Queue } from 'bullmq';
import test from 'ava';
import { withBullQueue } from '../../../../shared/work/queue/open-bull-queue.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

test('a queue is closed whether or not its use succeeds', async (t) => {
  const used: Queue[] = [];
  const use = (fails: boolean) =>
    withBullQueue('image', redis(), async (queue) => {
      used.push(queue);
      if (fails) throw new Error('no jobs');
      return 'jobs';
    });
  t.is(await use(false), 'jobs');
  await t.throwsAsync(use(true), { message: 'no jobs' });
  t.is(used.length, 2);
  for (const queue of used) t.truthy(queue.closing);
});
