import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { createRedis, waitUntilReady } from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import type { WebhookDelivery } from '../../../../shared/work/webhook-delivery.ts';
import { WebhookQueue } from '../../../../workers/deliveries/webhooks/webhook-queue.ts';
import { defaultLaneLimits } from '../../../../workers/deliveries/webhooks/delivery-lanes.ts';
import { startTestRedis, type TestRedis } from '../../../support/redis.ts';
import { waitFor } from '../../../support/wait-for.ts';
import {
  createTestWebhookClient,
  StateLog,
  startTestIntake,
  useReceiver,
  type IntakeSettings,
} from '../../../support/webhooks.ts';

/** Receivers that accept a webhook and never respond, at many accounts at once. */

let server: TestRedis;
let databases = 0;

test.before(async () => {
  server = await startTestRedis();
});
test.after.always(async () => {
  await server.stop();
});

const longMs = 600_000;

/** One worker, and a receiver that never responds to paths that begin with `/dead` until `revive` is called. */
async function useWorker(t: ExecutionContext, settings: Partial<IntakeSettings>, limitMs?: number) {
  const redisUrl = `${server.url}/${databases++}`;
  const redis = createRedis(redisUrl, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
  t.teardown(() => redis.disconnect());
  const queue = new WebhookQueue(redis);
  t.teardown(() => queue.close());
  const states = new StateLog();
  const held = new Set<ServerResponse>();
  let isDead = true;
  let maxHeld = 0;
  const receiver = await useReceiver(t, (webhook, response) => {
    if (!isDead || !webhook.path.startsWith('/dead')) {
      response.end();
      return;
    }
    held.add(response);
    response.on('close', () => held.delete(response));
    maxHeld = Math.max(maxHeld, held.size);
  });
  const client = createTestWebhookClient(receiver.port);
  const intake = await startTestIntake(redisUrl, redis, {
    client: {
      post: (url, headers, body, limits) =>
        client.post(url, headers, body, { ...limits, limitMs: limitMs ?? limits.limitMs }),
    },
    reporter: states,
    computeRetryDelayMs: () => longMs,
    ...settings,
  });
  t.teardown(() => {
    revive();
    return intake.stop();
  });
  function revive(): void {
    isDead = false;
    for (const response of held) response.end();
  }
  async function send(accountId: string, isToDead: boolean): Promise<WebhookDelivery> {
    const url = isToDead ? receiver.url.replace('/hook', '/dead') : receiver.url;
    const delivery: WebhookDelivery = { v: 1, jobId: randomUUID(), accountId, url, event: 'job.succeeded' };
    await queue.add(delivery);
    return delivery;
  }
  /** Number of attempts that the dead receiver has seen beyond the first one of each delivery. */
  const countRepeats = (): number => {
    const ids = receiver.received
      .filter(({ path }) => path.startsWith('/dead'))
      .map(({ headers }) => headers['webhook-id']);
    return ids.length - new Set(ids).size;
  };
  return { states, held, send, revive, countRepeats, maxHeld: () => maxHeld };
}

test.serial(
  'a receiver that responds is sent its webhooks while the receivers of a hundred other accounts hang and none has timed out',
  async (t) => {
    // No attempt becomes late or times out, so whatever places the hanging receivers have, they keep.
    const laneLimits = { ...defaultLaneLimits, lateAfterMs: longMs };
    const { states, held, send } = await useWorker(t, { laneLimits }, longMs);
    const first = await send('innocent', false);
    await states.when(first.jobId, 'delivered');
    const hanging: WebhookDelivery[] = [];
    for (let i = 0; i < 100; i++) hanging.push(await send(`account ${i}`, true));
    await waitFor('hanging attempts', () => held.size === laneLimits.unknown);
    for (let i = 0; i < 5; i++) {
      const { jobId } = await send('innocent', false);
      t.is((await states.when(jobId, 'delivered')).attempts, 1);
    }
    t.is(hanging.flatMap(({ jobId }) => states.of(jobId)).length, 0, 'hanging attempts that ended');
  },
);

test.serial(
  'a new receiver gets its turn although more accounts than there are places have hanging ones, whose number in flight is limited',
  async (t) => {
    const laneLimits = { prompt: 2, unknown: 2, hanging: 2, late: 4, lateAfterMs: 100 };
    const { states, send, countRepeats, maxHeld } = await useWorker(t, { laneLimits });
    const hanging: WebhookDelivery[] = [];
    for (let i = 0; i < 20; i++) hanging.push(await send(`account ${i}`, true));
    const { jobId } = await send('innocent', false);
    t.is((await states.when(jobId, 'delivered')).attempts, 1);
    t.true(maxHeld() <= laneLimits.unknown + laneLimits.hanging + laneLimits.late, `${maxHeld()} in flight`);
    await waitFor('an attempt after one that was ended', () => countRepeats() > 0);
    // Attempts that were ended do not count, and none has timed out.
    t.deepEqual(
      hanging.flatMap(({ jobId }) => states.of(jobId)),
      [],
    );
  },
);

test.serial(
  'all webhooks of an account are delivered after its hanging receiver responds again',
  async (t) => {
    const laneLimits = { ...defaultLaneLimits, late: 1, lateAfterMs: 50 };
    const { states, send, revive, countRepeats } = await useWorker(t, { laneLimits });
    // Two accounts, whose attempts end each other while there is a place for only one late attempt.
    const deliveries: WebhookDelivery[] = [];
    const sendMany = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) deliveries.push(await send(i % 2 === 0 ? 'ann' : 'bob', true));
    };
    await sendMany(4);
    await waitFor('an attempt after one that was ended', () => countRepeats() > 0);
    await sendMany(36);
    revive();
    for (const { jobId } of deliveries) t.is((await states.when(jobId, 'delivered')).attempts, 1);
  },
);
