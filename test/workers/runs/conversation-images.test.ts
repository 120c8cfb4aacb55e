import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { invalidField } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { ChatJob } from '../../../shared/work/queue/job-kinds.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { Conversation } from '../../../workers/runs/conversation.ts';
import type { JobDeps, RequestRun } from '../../../workers/runs/job-context.ts';
import type { MediaSources } from '../../../workers/media/media-loader.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { collectImages } from '../../../workers/upstreams/collect-media.ts';
import type { Upstream } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** Images linked in a chat are fetched and checked before the chat acquires a slot of the route. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

/** Responds with the number of images that it received as bytes. */
const upstream: Upstream = {
  needsImageBytes: ({ imageUrls }) => imageUrls === 'fetch',
  async *chat(target, body, _stream, context) {
    const images = await collectImages(body, context, () => target.imageUrls === 'fetch');
    yield [
      { type: 'delta', index: 0, delta: { content: `${images.size} pictures` } },
      { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' },
    ];
  },
  close: () => Promise.resolve(),
};

const image = { type: 'image_url', image_url: { url: 'https://pictures.test/a.png' } };

function createRig(limiter: RouteLimiter, media: MediaSources, imageUrls: 'pass' | 'fetch') {
  const dependencies = {
    routing: { limiter, upstreams: { get: () => upstream } },
    media,
  } as unknown as JobDeps;
  const plain = createRoute(`pictures-${randomUUID()}`, { maxConcurrency: 1 });
  const route = { ...plain, upstream: { ...plain.upstream, imageUrls } };
  const model = { id: 'm', context: 8_192, routes: [route], published: {} } as unknown as CatalogModel;
  return (content: unknown) => {
    const output: string[] = [];
    const run = {
      reply: { delta: (text: string) => void output.push(text), whenWritable: () => null },
      signal: new AbortController().signal,
      stopping: new AbortController().signal,
      whenResumed: () => null,
      log,
    } as unknown as RequestRun;
    const request = { requestId: 'r', model: 'm', accountId: 'a', deadlineAtMs: Date.now() + 10_000 };
    const body = { model: 'm', stream: true, messages: [{ role: 'user', content }], max_tokens: 9 };
    const conversation = new Conversation({ request, body } as unknown as ChatJob, run);
    return { conversation, response: conversation.ask(dependencies, model).then(() => output.join('')) };
  };
}

/** Sources whose links hang until `release` is called. */
function createHangingSources() {
  let markStarted!: () => void;
  let release!: () => void;
  const started = new Promise<void>((resolve) => (markStarted = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  let fetches = 0;
  const media: MediaSources = {
    fetchClient: {
      fetchBytes: async () => {
        fetches += 1;
        markStarted();
        await released;
        return { bytes: Buffer.from('bytes'), contentType: null };
      },
    },
    checkImage: () => Promise.resolve({ mediaType: 'image/png', pixels: 1 }),
    memory: new FairBudget({ capacity: 512_000_000 }),
  };
  return { media, started, release: () => release(), countFetches: () => fetches };
}

test('a link that hangs does not block the only slot of its route', async (t) => {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const { media, started, release, countFetches } = createHangingSources();
  const chat = createRig(limiter, media, 'fetch');
  const hanging = chat([image, image]);
  await started;
  t.regex(await chat('hello').response, /0 pictures/);
  release();
  t.regex(await hanging.response, /1 pictures/);
  t.is(countFetches(), 1);
  t.is(media.memory.held, 0);
});

test('a rejected image fails the chat before it reaches a model', async (t) => {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const refusal = invalidField(['body', 'messages'], 'the picture is broken.');
  const { media } = createHangingSources();
  const fetchClient = { fetchBytes: () => Promise.reject(refusal) };
  const { conversation, response } = createRig(limiter, { ...media, fetchClient }, 'fetch')([image]);
  t.is(await t.throwsAsync(response), refusal);
  t.false(conversation.reachedModel);
  t.false(conversation.isCharged);
  t.is(media.memory.held, 0);
});

test('images whose links are passed to the vendor are not fetched', async (t) => {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const { media, countFetches } = createHangingSources();
  t.regex(await createRig(limiter, media, 'pass')([image]).response, /0 pictures/);
  t.is(countFetches(), 0);
});
