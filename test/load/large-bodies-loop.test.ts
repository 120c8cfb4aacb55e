import test from 'ava';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { useStack } from '../support/stack.ts';
import { readThreadMs } from '../support/thread-clock.ts';
import { startUpload } from '../support/uploads.ts';
import { waitFor } from '../support/wait-for.ts';

/** How long large bodies block the event loop. In a separate file, so that other tests do not affect the measurement. */

/** The maximum CPU time of the thread between two timer ticks, in milliseconds. */
async function measureLongestBlock(run: () => Promise<void>): Promise<number> {
  let last = readThreadMs();
  let longestBlockMs = 0;
  const timer = setInterval(() => {
    const now = readThreadMs();
    longestBlockMs = Math.max(longestBlockMs, now - last);
    last = now;
  }, 1);
  await run();
  clearInterval(timer);
  return longestBlockMs;
}

test.serial('the largest body is parsed and validated without blocking the process for long', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount();
  const bodies = {
    texts: {
      model: 'nope',
      input: Array.from({ length: 2048 }, (_, i) => `слово ${i} `.repeat(3_000).slice(0, 19_000)),
    },
    'one text': { model: 'nope', input: 'QUJD'.repeat(18_000_000) },
    'token ids': {
      model: 'nope',
      input: Array.from({ length: 500 }, (_, i) => Array.from({ length: 8_192 }, (_, j) => (i * j) % 99_999)),
    },
    'small values': { model: 'nope', input: Array.from({ length: 190_000 }, (_, i) => `a${i}`) },
  };
  for (const [name, body] of Object.entries(bodies)) {
    const bytes = Buffer.from(JSON.stringify(body));
    const startedAt = readThreadMs();
    JSON.parse(bytes.toString());
    const plainMs = readThreadMs() - startedAt;
    const longestMs = await measureLongestBlock(async () => {
      const { request, answer } = startUpload(`${stack.url}/v1/embeddings`, account.apiKey, {
        'content-length': bytes.length,
      });
      request.end(bytes);
      t.true([404, 422].includes((await answer).status));
    });
    t.log(`${name}: ${Math.round(longestMs)} ms; JSON.parse takes ${Math.round(plainMs)} ms`);
    t.true(longestMs < Math.max(250, plainMs / 2), `${name} blocked the process for ${longestMs} ms`);
  }
});

test.serial(
  'a large request is hashed, admitted and queued without blocking the process for long',
  async (t) => {
    const catalog = `
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: see, type: vision, context: 128000, input_modalities: [text, image], pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: m }] }
`;
    const stack = await useStack(t, { catalog, workers: [] });
    const account = await stack.createAccount();
    const url = `data:image/png;base64,iVBORw0KGgoA${'QUJD'.repeat(3_700_000)}`;
    const image = { type: 'image_url', image_url: { url } };
    const bytes = Buffer.from(
      JSON.stringify({ model: 'see', messages: [{ role: 'user', content: [image, image] }] }),
    );
    const longestMs = await measureLongestBlock(async () => {
      const { request, answer } = startUpload(`${stack.url}/v1/chat/completions`, account.apiKey, {
        'content-length': bytes.length,
        'idempotency-key': 'large',
      });
      request.end(bytes);
      const isQueued = async (): Promise<boolean> => (await stack.redis.llen(redisKeys.readyQueue)) === 1;
      const early = answer.then(({ status, text }) => t.fail(`${status} instead of queueing: ${text}`));
      await Promise.race([waitFor('the request to be queued', isQueued), early]);
      request.destroy();
    });
    t.log(`${Math.round(longestMs)} ms`);
    t.true(longestMs < 250, `blocked the process for ${longestMs} ms`);
  },
);
