import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { loadTokenizer } from '../../../shared/pricing/count-tokens.ts';
import type { ChatJob } from '../../../shared/queue/job-kinds.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { findWays } from '../../../shared/routing/route-way.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { Conversation } from '../../../workers/jobs/conversation.ts';
import type { JobDependencies, RequestRun } from '../../../workers/jobs/job-context.ts';
import { RouteGate } from '../../../workers/routing/route-gate.ts';
import { UpstreamError, type ChatEvent } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');
// It takes long enough to load to outweigh the times below.
loadTokenizer();

async function* sayAndTimeOut(): AsyncGenerator<ChatEvent> {
  yield { type: 'delta', index: 0, delta: { content: 'word' } };
  await delay(20);
  throw new UpstreamError('timeout', 'the call took over 320 ms');
}

for (const unreadMs of [300, 0]) {
  const whose =
    unreadMs > 0 ? 'a caller who does not read, and says nothing of' : 'the vendor, and counts against';
  test(`a timeout after ${unreadMs} ms in which nothing was read is of ${whose} the route`, async (t) => {
    const gate = new RouteGate(redis(), randomUUID(), log);
    t.teardown(() => gate.stop());
    const route = createRoute(`read-after-${unreadMs}`);
    const dependencies = {
      routing: { gate, upstreams: { get: () => ({ chat: sayAndTimeOut }) } },
      turns: { recall: () => Promise.resolve(new Map()) },
      media: {},
    } as unknown as JobDependencies;
    const request = { requestId: 'r', model: 'm', accountId: 'a', deadlineAtMs: Date.now() + 10_000 };
    const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 };
    const run = {
      reply: { delta: () => undefined },
      signal: new AbortController().signal,
      whenWanted: () => (unreadMs > 0 ? delay(unreadMs) : null),
      log,
    } as unknown as RequestRun;
    const conversation = new Conversation({ request, body } as unknown as ChatJob, run);
    const asked = conversation.ask(dependencies, { routes: [route] } as unknown as CatalogModel);
    await t.throwsAsync(asked, { message: /too long/ });
    t.true(conversation.hasOutput);
    await delay(50);
    const state = await new RouteStateStore(redis()).read(findWays(route)[0]!, Date.now());
    t.is(state.failed, unreadMs > 0 ? 0 : 1);
    t.is(state.calls, 0);
  });
}
