import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { Job } from 'bullmq';
import OpenAI from 'openai';
import { Webhook } from 'standardwebhooks';
import { openBullQueue } from '../../../../shared/work/queue/open-bull-queue.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import {
  deliveryIdOf,
  webhookQueueName,
  type WebhookDelivery,
} from '../../../../shared/work/webhook-delivery.ts';
import { WebhookQueue, webhookAttempts } from '../../../../workers/deliveries/webhooks/webhook-queue.ts';
import { createWebhookClient } from '../../../../workers/deliveries/webhooks/webhook-client.ts';
import { startTestRedis, type TestRedis } from '../../../support/redis.ts';
import {
  attemptLimits,
  createTestWebhookClient,
  StateLog,
  startTestIntake,
  testSecret,
  useReceiver,
  type IntakeSettings,
  type ReceivedWebhook,
} from '../../../support/webhooks.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { startProgram } from '../../../support/worker-process.ts';

let server: TestRedis;
let databases = 0;

test.before(async () => {
  server = await startTestRedis();
});
test.after.always(async () => {
  await server.stop();
});

interface Rig {
  readonly redisUrl: string;
  readonly redis: RedisClient;
  readonly queue: WebhookQueue;
  readonly states: StateLog;
  /** Starts a worker that stops with the test. */
  readonly start: (settings: Partial<IntakeSettings> & Pick<IntakeSettings, 'client'>) => Promise<void>;
}

/** Uses one Redis database per test, because the queue has the same name in every test. */
async function createRig(t: ExecutionContext, maxUndelivered?: number): Promise<Rig> {
  const redisUrl = `${server.url}/${databases++}`;
  const redis = createRedis(redisUrl, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
  t.teardown(() => redis.disconnect());
  const queue = new WebhookQueue(redis, maxUndelivered);
  t.teardown(() => queue.close());
  const states = new StateLog();
  return {
    redisUrl,
    redis,
    queue,
    states,
    async start(settings) {
      const intake = await startTestIntake(redisUrl, redis, { reporter: states, ...settings });
      t.teardown(() => intake.stop());
    },
  };
}

function createDelivery(url: string, accountId = 'ann'): WebhookDelivery {
  return { v: 1, jobId: randomUUID(), accountId, url, event: 'job.succeeded' };
}

test('the webhooks library and the OpenAI SDK can verify a webhook, with either secret while two are in use', async (t) => {
  const { queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (_webhook, response) => response.writeHead(204).end());
  const previousSecret = `whsec_${Buffer.alloc(32, 'former').toString('base64')}`;
  const secrets = { listSigning: () => Promise.resolve([testSecret, previousSecret]) };
  await start({ client: createTestWebhookClient(receiver.port), secrets });
  const delivery = createDelivery(receiver.url);
  t.true(await queue.add(delivery));
  t.deepEqual(await states.when(delivery.jobId, 'delivered'), {
    status: 'delivered',
    attempts: 1,
    lastStatus: 204,
    lastError: null,
    nextAttemptAt: null,
  });
  const [{ path, headers, body }] = receiver.received as [ReceivedWebhook];
  t.is(path, '/hook?from=gateway');
  t.is(headers['webhook-id'], deliveryIdOf(delivery));
  t.false(headers['webhook-id']!.includes('.'));
  t.is(headers['content-type'], 'application/json');
  t.is(headers['user-agent'], 'model-gateway');
  const expected = {
    type: 'job.succeeded',
    timestamp: '2026-11-23T12:00:00.000Z',
    data: { id: delivery.jobId, object: 'job', status: 'succeeded' },
  };
  for (const secret of [testSecret, previousSecret]) {
    t.deepEqual(new Webhook(secret).verify(body, headers), expected);
    const client = new OpenAI({ apiKey: 'none' });
    t.deepEqual((await client.webhooks.unwrap(body, headers, secret)) as unknown, expected);
  }
  const other = `whsec_${Buffer.alloc(32, 'other').toString('base64')}`;
  t.throws(() => new Webhook(other).verify(body, headers));
});

test('a failed webhook is retried with the same id, and its state shows the failure until the webhook is delivered', async (t) => {
  const { queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (_webhook, response, count) => {
    response.writeHead(count === 1 ? 500 : 200, { 'retry-after': '7' }).end('thanks');
  });
  const delayArguments: (number | null)[] = [];
  const computeRetryDelayMs = (attempts: number, retryAfterMs: number | null): number => {
    delayArguments.push(attempts, retryAfterMs);
    return 1;
  };
  await start({ client: createTestWebhookClient(receiver.port), computeRetryDelayMs });
  const delivery = createDelivery(receiver.url);
  await queue.add(delivery);
  t.like(await states.when(delivery.jobId, 'delivered'), { attempts: 2, lastStatus: 200, lastError: null });
  const [first] = states.of(delivery.jobId);
  t.like(first, { status: 'pending', attempts: 1, lastStatus: 500 });
  t.is(first?.lastError, 'The server responded with status 500.');
  t.true(first?.nextAttemptAt instanceof Date);
  t.deepEqual(delayArguments, [1, 7_000]);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  t.deepEqual(ids, [deliveryIdOf(delivery), deliveryIdOf(delivery)]);
});

test('a redirect is not followed, and a webhook whose last attempt failed remains in the queue as failed', async (t) => {
  const { redis, queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (_webhook, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  await start({ client: createTestWebhookClient(receiver.port) });
  const delivery = createDelivery(receiver.url);
  await queue.add(delivery);
  const failed = await states.when(delivery.jobId, 'failed');
  t.like(failed, { attempts: webhookAttempts, lastStatus: 307, nextAttemptAt: null });
  t.is(failed.lastError, 'The server responded with status 307; redirects are not followed.');
  t.is(receiver.received.length, webhookAttempts);
  t.true(receiver.received.every(({ path }) => path.startsWith('/hook')));
  const storedJob = await findJob(t, redis, delivery);
  t.deepEqual(storedJob.data, delivery);
});

/** A delivery as BullMQ stores it. */
async function findJob(t: ExecutionContext, redis: RedisClient, delivery: WebhookDelivery) {
  const queue = openBullQueue<WebhookDelivery>(webhookQueueName, redis);
  t.teardown(() => queue.close());
  const job = await Job.fromId<WebhookDelivery>(queue, deliveryIdOf(delivery));
  return job!;
}

test('a receiver that responds with 410 gets no further attempts', async (t) => {
  const { queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (_webhook, response) => response.writeHead(410).end());
  await start({ client: createTestWebhookClient(receiver.port) });
  const delivery = createDelivery(receiver.url);
  await queue.add(delivery);
  t.like(await states.when(delivery.jobId, 'failed'), { attempts: 1, lastStatus: 410 });
  t.is(receiver.received.length, 1);
});

test('nothing is sent to a host with an internal address, or to a URL that is not https', async (t) => {
  const receiver = await useReceiver(t, (_webhook, response) => response.end());
  const strictClient = createWebhookClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    ports: new Set([receiver.port]),
    timeouts: { connectMs: 5_000, rejectionStepMs: 1 },
  });
  const notPublic = 'The URL has a host that is not on the public internet.';
  for (const host of ['pictures.test', '127.0.0.1', '[::ffff:127.0.0.1]']) {
    const url = `https://${host}:${receiver.port}/`;
    t.deepEqual(await strictClient.post(url, {}, '{}', attemptLimits()), {
      status: null,
      error: notPublic,
      retryAfterMs: null,
    });
  }
  const plain = await strictClient.post(`http://pictures.test:${receiver.port}/`, {}, '{}', attemptLimits());
  t.is(plain.error, 'The URL is not https.');
  t.is(receiver.received.length, 0);
});

test('a missing response and an invalid certificate are reported without further details', async (t) => {
  const receiver = await useReceiver(t, () => undefined);
  const late = await createTestWebhookClient(receiver.port).post(receiver.url, {}, '{}', attemptLimits(100));
  t.is(late.error, 'There was no response within 0.1 s.');
  const withoutTestCa = createWebhookClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: () => true,
    ports: new Set([receiver.port]),
  });
  const refused = await withoutTestCa.post(receiver.url, {}, '{}', attemptLimits());
  t.is(refused.error, 'The server did not respond over https with a valid certificate.');
});

test('if the receiver of one account does not respond, webhooks of other accounts are not delayed', async (t) => {
  const { queue, states, start } = await createRig(t);
  const held: ServerResponse[] = [];
  let isRevived = false;
  const arrived = new EventEmitter();
  const receiver = await useReceiver(t, (webhook, response) => {
    if (isRevived || !webhook.path.startsWith('/dead')) return response.end();
    held.push(response);
    return arrived.emit(`held ${held.length}`);
  });
  const dead = receiver.url.replace('/hook', '/dead');
  for (let i = 0; i < 20; i++) await queue.add(createDelivery(dead, 'dead'));
  const bothSlotsHeld = once(arrived, 'held 2');
  await start({ client: createTestWebhookClient(receiver.port) });
  await bothSlotsHeld;
  const others = ['bob', 'cid', 'dan'].map((accountId) => createDelivery(receiver.url, accountId));
  for (const delivery of others) await queue.add(delivery);
  for (const { jobId } of others) t.is((await states.when(jobId, 'delivered')).attempts, 1);
  t.is(held.length, 2, 'concurrent attempts of one account');
  isRevived = true;
  for (const response of held) response.end();
});

test('a webhook over its account’s attempt limit is delayed, and delivered as soon as an attempt of the account ends', async (t) => {
  const { redis, queue, states, start } = await createRig(t);
  const held: ServerResponse[] = [];
  let isHeld = true;
  const receiver = await useReceiver(t, (_webhook, response) => {
    if (isHeld) held.push(response);
    else response.end();
  });
  const deliveries = Array.from({ length: 30 }, () => createDelivery(receiver.url));
  for (const delivery of deliveries) await queue.add(delivery);
  await start({ client: createTestWebhookClient(receiver.port) });
  const bull = openBullQueue(webhookQueueName, redis);
  t.teardown(() => bull.close());
  await waitFor('all but two webhooks to wait', async () => (await bull.getDelayedCount()) === 28);
  // The rest of the test takes less time than these delays, so the webhooks are only delivered if released early.
  for (const { delay } of await bull.getDelayed()) t.true(delay >= 30_000);
  await waitFor('two attempts', () => held.length === 2);
  isHeld = false;
  for (const response of held) response.end();
  for (const { jobId } of deliveries) t.is((await states.when(jobId, 'delivered')).attempts, 1);
  t.is(receiver.received.length, deliveries.length);
  const jobs = await Promise.all(deliveries.map((delivery) => findJob(t, redis, delivery)));
  const starts = jobs.map(({ attemptsStarted }) => attemptsStarted);
  const moves = starts.reduce((sum, count) => sum + count - 1, 0);
  t.true(moves <= 1.5 * deliveries.length, `${moves} times delayed`);
  t.is(await redis.exists(redisKeys.waitingWebhooks('prompt', 'ann')), 0);
});

test('a webhook that is delayed after a failure is not released early when other webhooks of its account are delivered', async (t) => {
  const { redis, queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (webhook, response) => {
    response.writeHead(webhook.path.startsWith('/broken') ? 500 : 200).end();
  });
  await start({
    client: createTestWebhookClient(receiver.port),
    computeRetryDelayMs: () => 600_000,
  });
  const broken = createDelivery(receiver.url.replace('/hook', '/broken'));
  const others = Array.from({ length: 10 }, () => createDelivery(receiver.url));
  for (const delivery of [broken, ...others]) await queue.add(delivery);
  for (const { jobId } of others) await states.when(jobId, 'delivered');
  await states.when(broken.jobId, 'pending');
  t.is(receiver.received.filter(({ path }) => path.startsWith('/broken')).length, 1);
  await waitFor(
    'the webhook to be delayed',
    async () => (await (await findJob(t, redis, broken)).getState()) === 'delayed',
  );
});

test('if the worker that sends a webhook is killed, another worker delivers the webhook, with the same webhook id', async (t) => {
  const { redisUrl, queue, states, start } = await createRig(t);
  const arrived = new EventEmitter();
  const receiver = await useReceiver(t, (_webhook, response, count) => {
    // The first attempt gets no response, because its sender dies.
    if (count > 1) response.end();
    else arrived.emit('first');
  });
  const env = { REDIS_URL: redisUrl, RECEIVER_PORT: String(receiver.port), LOCK_MS: '1000' };
  const program = fileURLToPath(new URL('../../../support/webhook-worker.js', import.meta.url));
  const doomed = await startProgram(t, 'worker', [program], env);
  const first = once(arrived, 'first');
  const delivery = createDelivery(receiver.url);
  await queue.add(delivery);
  await first;
  await doomed.kill();
  await start({ client: createTestWebhookClient(receiver.port), lockMs: 1_000 });
  t.like(await states.when(delivery.jobId, 'delivered'), { attempts: 1, lastStatus: 200 });
  const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  t.deepEqual([...ids], [deliveryIdOf(delivery)]);
});

test('an internal error does not use up an attempt, and the webhook of a deleted job fails without being sent', async (t) => {
  const { redis, queue, states, start } = await createRig(t);
  const receiver = await useReceiver(t, (_webhook, response) => response.end());
  const events = new EventEmitter();
  const [failing, deleted] = [createDelivery(receiver.url), createDelivery(receiver.url)];
  await start({
    client: createTestWebhookClient(receiver.port),
    loadPayload: ({ jobId }) => {
      if (jobId === deleted.jobId) return Promise.resolve(null);
      events.emit('payload');
      return Promise.reject(new Error('the store is down'));
    },
  });
  const payloadRequested = once(events, 'payload');
  await queue.add(failing);
  await payloadRequested;
  await queue.add(deleted);
  const end = await states.when(deleted.jobId, 'failed');
  t.like(end, { attempts: 0, lastStatus: null, lastError: 'The job is no longer stored.' });
  const job = await findJob(t, redis, failing);
  await waitFor('the delivery to return to the queue', async () => (await job.getState()) === 'delayed');
  t.is((await findJob(t, redis, failing)).attemptsMade, 0);
  t.deepEqual(states.of(failing.jobId), []);
  t.is(receiver.received.length, 0);
});

test('while the gateway cannot prepare webhooks, delayed webhooks are not released early only to fail', async (t) => {
  const { redis, queue, start } = await createRig(t);
  let preparations = 0;
  await start({
    client: createTestWebhookClient(443),
    loadPayload: () => {
      preparations += 1;
      return Promise.reject(new Error('the store is down'));
    },
  });
  for (let i = 0; i < 20; i++) await queue.add(createDelivery('https://pictures.test/hook'));
  const waiting = redisKeys.waitingWebhooks('prompt', 'ann');
  await waitFor('all webhooks to wait', async () => (await redis.zcard(waiting)) === 20);
  t.true(preparations <= 40, `${preparations} attempts to prepare`);
});

test('an event that is added several times is delivered once, and an account has a maximum number of waiting webhooks', async (t) => {
  const { queue, states, start } = await createRig(t, 2);
  const receiver = await useReceiver(t, (_webhook, response) => response.end());
  const deliveries = [1, 2, 3].map(() => createDelivery(receiver.url));
  const [first, second, third] = deliveries as [WebhookDelivery, WebhookDelivery, WebhookDelivery];
  t.deepEqual(
    [await queue.add(first), await queue.add(first), await queue.add(second), await queue.add(third)],
    [true, true, true, false],
  );
  t.true(await queue.add(createDelivery(receiver.url, 'bob')), 'the limit is per account');
  await start({ client: createTestWebhookClient(receiver.port) });
  await Promise.all([first, second].map(({ jobId }) => states.when(jobId, 'delivered')));
  t.true(await queue.add(third), 'the deliveries freed capacity');
  await states.when(third.jobId, 'delivered');
  await queue.add(first);
  const ofFirst = receiver.received.filter(({ headers }) => headers['webhook-id'] === deliveryIdOf(first));
  t.is(ofFirst.length, 1);
});
