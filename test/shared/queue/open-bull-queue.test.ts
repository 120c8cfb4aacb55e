import test from 'ava';
import { openBullQueue } from '../../../shared/queue/open-bull-queue.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

test('a queue that was opened while Redis stood still for longer than a command may take is used once it goes on', async (t) => {
  await redis().call('CLIENT', 'PAUSE', '5500', 'ALL');
  const queue = openBullQueue<{ text: string }>('image', redis());
  t.teardown(() => queue.close());
  // Sent after whatever opening a queue sends.
  await t.throwsAsync(redis().ping(), { message: 'Command timed out' });
  await queue.add('image', { text: 'a fox' }, { jobId: 'one' });
  t.is(await queue.getWaitingCount(), 1);
});
