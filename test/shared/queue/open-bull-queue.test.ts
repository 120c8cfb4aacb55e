import test from 'ava';
import { openBullQueue } from '../../../shared/queue/open-bull-queue.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

test('a queue that was opened while Redis hung for longer than the command timeout works once Redis continues', async (t) => {
  await redis().call('CLIENT', 'PAUSE', '5500', 'ALL');
  const queue = openBullQueue<{ text: string }>('image', redis());
  t.teardown(() => queue.close());
  // Sent after all commands that opening a queue sends.
  await t.throwsAsync(redis().ping(), { message: 'Command timed out' });
  await queue.add('image', { text: 'a fox' }, { jobId: 'one' });
  t.is(await queue.getWaitingCount(), 1);
});
