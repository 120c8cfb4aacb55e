import { randomUUID } from 'node:crypto';
import { Worker } from 'bullmq';
import { MailQueue } from '../../shared/account-area/mail-queue.ts';
import { createRedis } from '../../shared/platform/redis/redis-client.ts';
import { bullPrefix } from '../../shared/platform/redis/redis-keys.ts';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import { webhookQueueName } from '../../shared/work/webhook-delivery.ts';
import type { TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';

/** Words that callers wrote, or that belong to them. No page of an operator may show one. */
export const privateWords = [
  'crimson-lighthouse',
  'turquoise-tugboat',
  'someone@private.example',
  '731904',
  'hook.private.example',
] as const;
const [prompt, failure, email, code, hookHost] = privateWords;

/**
 * Fills the queues of a stack without workers: an image and a text that wait, an image that failed with the text of its
 * prompt as the reason, a mail with a code, and a webhook.
 * @returns a function that ends the requests that wait
 */
export async function fillQueues(stack: TestStack): Promise<() => Promise<void>> {
  const { apiKey } = await stack.createAccount();
  const stop = new AbortController();
  const post = (path: string, body: object): Promise<unknown> =>
    fetch(`${stack.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
      body: JSON.stringify(body),
      signal: stop.signal,
    }).catch(() => undefined);
  const waiting = [
    post('/v1/images/generations', { model: 'demo-svg-image', prompt: `A ${prompt}`, user: email }),
    post('/v1/embeddings', { model: 'use-lite-en-512', input: `A ${prompt}` }),
  ];
  const { redis } = stack;
  const images = openBullQueue('image', redis);
  const texts = openBullQueue('embedding', redis);
  await waitFor('the requests to wait', async () => {
    const counts = await Promise.all(
      [images, texts].map((queue) => queue.getJobCountByTypes('waiting', 'prioritized')),
    );
    return counts.every((count) => count === 1);
  });
  await failImage(stack);
  const mails = new MailQueue(redis, { masterKey: stack.config.masterKey });
  await mails.add({
    kind: 'sign-in-code',
    email,
    purpose: 'login',
    code,
    expiresAt: Date.now() + 600_000,
    language: 'en',
  });
  const webhooks = openBullQueue(webhookQueueName, redis);
  const url = `https://${hookHost}/${code}`;
  await webhooks.add('job.succeeded', { v: 1, jobId: 'job_1', accountId: 'a1', url, event: 'job.succeeded' });
  await Promise.all([images.close(), texts.close(), mails.close(), webhooks.close()]);
  return async () => {
    stop.abort();
    await Promise.all(waiting);
  };
}

/** As if a vendor had quoted the prompt in its error. */
async function failImage({ config, redis, log }: TestStack): Promise<void> {
  const queue = openBullQueue('image-bulk', redis);
  await queue.add('image', { v: 1, kind: 'image', prompt: failure }, { jobId: randomUUID() });
  await queue.close();
  const connection = createRedis(config.redisUrl, 'bullmq', log);
  const worker = new Worker('image-bulk', null, { connection, prefix: bullPrefix, autorun: false });
  const job = await worker.getNextJob('token');
  await job.moveToFailed(new Error(`The prompt "${failure}" was refused.`), 'token');
  await worker.close();
  connection.disconnect();
}
