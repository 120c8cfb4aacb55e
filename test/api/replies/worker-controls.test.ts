import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import type { PendingReply } from '../../../api/replies/pending-reply.ts';
import { WorkerControls, type WaiterControl } from '../../../api/replies/worker-controls.ts';
import { redisChannels } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { listenTo } from '../../support/listen-to.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

const waiterOf = (workerId: string, requestId: string) =>
  ({ workerId, request: { requestId } }) as unknown as PendingReply;

test('only the last word on a request is said again: what a later one took back stays unsaid', async (t) => {
  const controls = new WorkerControls(redis(), createLogger('test', 'silent'));
  const workerId = randomUUID();
  const say = (requestId: string, ...words: WaiterControl[]): void => {
    const waiter = waiterOf(workerId, requestId);
    for (const word of words) controls.control(waiter, word);
  };
  // Nobody listens yet. The first word is answered after the second one was said.
  say('paused', 'resume', 'pause');
  say('cancelled', 'resume', 'cancel');
  say('resumed', 'pause', 'resume');
  await redis().ping();
  await nextTurn();
  t.true(controls.hasUntold);
  const { host, port } = redis().options as { host: string; port: number };
  const worker = await listenTo(t, `redis://${host}:${port}`, redisChannels.control(workerId));
  await controls.tellUntold();
  t.false(controls.hasUntold);
  const heard: unknown[] = [JSON.parse((await worker.receive()).toString())];
  heard.push(JSON.parse((await worker.receive()).toString()));
  t.deepEqual(heard, [
    { action: 'cancel', requestId: 'cancelled' },
    { action: 'resume', requestId: 'resumed' },
  ]);
});
