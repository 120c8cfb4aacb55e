import test from 'ava';
import { openBullQueue } from '../../../../shared/work/queue/open-bull-queue.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

test('if Redis hangs longer than the command timeout while a queue is opened, the queue works once Redis continues', async (t) => {
  await redis().call('CLIENT', 'PAUSE', '5500', 'ALL');
  const queue = openBullQueue<{ text: string }>('image', redis());
  t.teardown(() => queue.close());
  // This ping is behind all commands that opening the queue sends, so once it times out, they have too.
  await t.throwsAsync(redis().ping(), { message: 'Command timed out' });
  await queue.add('image', { text: 'a fox' }, { jobId: 'one' });
  t.is(await queue.getWaitingCount(), 1);
});
