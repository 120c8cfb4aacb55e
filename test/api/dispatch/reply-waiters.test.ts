import { randomUUID } from 'node:crypto';
import test from 'ava';
import { ReplyWaiters, type Waiter } from '../../../api/dispatch/reply-waiters.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../../shared/queue/job-kinds.ts';
import { WorkerRegistryStore } from '../../../shared/queue/worker-registry-store.ts';
import { createRedis, waitUntilReady } from '../../../shared/redis/redis-client.ts';
import { FrameOrder } from '../../../shared/reply/frame-order.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { startTestRedis } from '../../support/redis.ts';

test('a caller whose worker died with the job waits until the deadline, and while the worker lives for longer', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const log = createLogger('test', 'silent');
  const redis = createRedis(server.url, 'commands', log);
  const subscriber = createRedis(server.url, 'subscriber', log);
  t.teardown(() => {
    redis.disconnect();
    subscriber.disconnect();
  });
  await Promise.all([waitUntilReady(redis), waitUntilReady(subscriber)]);
  const registry = new WorkerRegistryStore(redis);
  const waiters = new ReplyWaiters(randomUUID(), redis, subscriber, registry, log);
  t.teardown(() => waiters.close());
  await waiters.subscribe();
  await registry.beat('image', 'living', 1);

  const abandoned: string[] = [];
  const owner = {
    check: () => undefined,
    abandon: ({ request }: Waiter) => void abandoned.push(request.requestId),
  };
  const wait = (workerId: string, endsAtMs: number): Promise<string> =>
    new Promise((resolve) => {
      const request = { requestId: workerId, accountId: 'a', deadlineAtMs: endsAtMs, claimHash: null };
      waiters.add(
        {
          request: request as AdmittedRequest,
          queue: 'image',
          receiver: {
            delta: () => undefined,
            end: () => resolve('end'),
            fail: (error: AppError) => resolve(error.code),
          },
          order: new FrameOrder(),
          workerId,
          hasOutput: false,
          tokens: 0,
        },
        owner,
      );
    });
  const past = Date.now() - 1;
  const outcomes = new Map<string, string>();
  void wait('living', past).then((outcome) => outcomes.set('living', outcome));
  void wait('dead-in-time', Date.now() + 60_000).then((outcome) => outcomes.set('dead-in-time', outcome));
  t.is(await wait('dead', past), 'deadline_exceeded');
  t.deepEqual(abandoned, ['dead']);
  t.is(outcomes.size, 0);
});
