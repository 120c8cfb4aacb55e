import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import type { PendingReply } from '../../../../api/requests/replies/pending-reply.ts';
import { WorkerControls, type ReplyControl } from '../../../../api/requests/replies/worker-controls.ts';
import { redisChannels } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { listenTo } from '../../../support/listen-to.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

const pendingReplyOf = (workerId: string, requestId: string) =>
  ({ workerId, request: { requestId } }) as unknown as PendingReply;

test('only the last control message for a request is resent; superseded messages are not', async (t) => {
  const controls = new WorkerControls(redis(), createLogger('test', 'silent'));
  const workerId = randomUUID();
  const send = (requestId: string, ...messages: ReplyControl[]): void => {
    const pending = pendingReplyOf(workerId, requestId);
    for (const message of messages) controls.control(pending, message);
  };
  // No worker listens yet, and Redis replies to the first message only after the second one was sent.
  send('paused', 'resume', 'pause');
  send('cancelled', 'resume', 'cancel');
  send('resumed', 'pause', 'resume');
  await redis().ping();
  await nextTurn();
  t.true(controls.hasUndelivered);
  const { host, port } = redis().options as { host: string; port: number };
  const worker = await listenTo(t, `redis://${host}:${port}`, redisChannels.control(workerId));
  await controls.retryUndelivered();
  t.false(controls.hasUndelivered);
  const received: unknown[] = [JSON.parse((await worker.receive()).toString())];
  received.push(JSON.parse((await worker.receive()).toString()));
  t.deepEqual(received, [
    { action: 'cancel', requestId: 'cancelled' },
    { action: 'resume', requestId: 'resumed' },
  ]);
});
