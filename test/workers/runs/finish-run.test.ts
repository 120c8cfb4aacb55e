import { randomUUID } from 'node:crypto';
import test from 'ava';
import { noUsage } from '../../../shared/catalog/cost.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import { createRedis, waitUntilReady } from '../../../shared/platform/redis/redis-client.ts';
import type { RequestFacts } from '../../../shared/work/replies/request-facts.ts';
import { finishRun } from '../../../workers/runs/finish-run.ts';
import type { JobDeps, RequestRun } from '../../../workers/runs/job-context.ts';
import { RunFacts } from '../../../workers/runs/run-facts.ts';
import { captureLog } from '../../support/captured-log.ts';
import { openTestRedis } from '../../support/stores.ts';

const request: AdmittedRequest = {
  requestId: randomUUID(),
  accountId: randomUUID(),
  model: 'm',
  pricing: { date_of_use: '2026-01-01', type: 'tokens', free_requests: false },
  priceVersion: 'v',
  admittedAtMs: Date.now(),
  deadlineAtMs: Date.now() + 60_000,
  userIp: '127.0.0.1',
  promptTokens: 3,
  user: null,
  claimHash: null,
};

test('facts are sent only to an api process that reads them: one of release 0.1.0 would exit', async (t) => {
  const server = await openTestRedis();
  t.teardown(() => server.close());
  const { log } = captureLog();
  const redis = createRedis(server.url, 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  const sent: RequestFacts[] = [];
  const run = {
    facts: new RunFacts(request),
    reply: { facts: (facts: RequestFacts) => void sent.push(facts) } as unknown as RequestRun['reply'],
    log,
  };
  const finish = async (finished: AdmittedRequest): Promise<void> => {
    const error = { code: 'upstream_error', message: 'down' } as const;
    const outcome = { usage: noUsage, counted: false, error, charged: false, reachedModel: false };
    await finishRun({ redis } as unknown as JobDeps, run, finished, outcome, () => Promise.resolve());
  };
  await finish(request);
  t.is(sent.length, 0);
  await finish({ ...request, wantsFacts: true });
  t.is(sent.length, 1);
});
