import { once } from 'node:events';
import test from 'ava';
import { AccountStore } from '../../../../shared/accounts/account-store.ts';
import { runAdmission } from '../../../../shared/money/admit-script.ts';
import { settleRequest, type RequestOutcome } from '../../../../shared/work/settlement/finish-request.ts';
import { HotAccountStore } from '../../../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../../../shared/ledger/ledger-store.ts';
import { testWithOwnStore } from '../../../support/own-stores.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { PriceStore } from '../../../../shared/ledger/price-store.ts';
import { noUsage } from '../../../../shared/catalog/cost.ts';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { RequestStatsRecorder } from '../../../../shared/ledger/request-stats-recorder.ts';
import type { TotalSums, RequestSums } from '../../../../shared/ledger/request-sums.ts';
import { admission } from '../../../support/billing.ts';
import { useStack, type TestStack } from '../../../support/stack.ts';

async function admitRequest(
  { redis }: TestStack,
  accountId: string,
  fixedNano = 0n,
): Promise<AdmittedRequest> {
  const keyHash = (await redis.hget(redisKeys.account(accountId), 'key'))!;
  const admissionRequest = admission(accountId, { keyHash, fixedNano });
  const { requestId } = admissionRequest;
  const { outcome } = await runAdmission(redis, admissionRequest);
  if (outcome !== 'ok') throw new Error(`not admitted: ${outcome}`);
  return {
    requestId,
    accountId,
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
}

const outcome: RequestOutcome = {
  usage: { ...noUsage, promptTokens: 3, completionTokens: 4 },
  counted: false,
  error: null,
  charged: true,
  reachedModel: true,
};

function createDependencies({ redis, mongo, config, log }: TestStack, recorded: TotalSums[] = []) {
  const record = async (sums: RequestSums): Promise<void> => {
    recorded.push(sums.totals);
  };
  const ledger = new LedgerStore(mongo.db);
  return {
    redis,
    ledger,
    hotAccounts: new HotAccountStore(redis, new AccountStore(mongo.db, config), ledger),
    requestStats: new RequestStatsRecorder({
      stats: { record },
      traffic: { record: async () => undefined },
      log,
    }),
    prices: new PriceStore(mongo.db),
  };
}

test('a settled request is counted once in the request stats, but not if it never reached a model', async (t) => {
  const stack = await useStack(t);
  const { id } = await stack.createAccount();
  const recorded: TotalSums[] = [];
  const dependencies = createDependencies(stack, recorded);
  const request = await admitRequest(stack, id);
  await settleRequest(dependencies, request, outcome);
  await settleRequest(dependencies, request, outcome);
  await settleRequest(dependencies, await admitRequest(stack, id), { ...outcome, reachedModel: false });
  await dependencies.requestStats.stop();
  // The price used for the settlement is stored, even if the catalog has changed since then.
  await waitFor('the price', () => dependencies.prices.find(request.model, request.priceVersion));
  t.deepEqual(
    recorded.map((totals) => totals.requests),
    [1],
  );
  t.deepEqual(recorded[0], { requests: 1, succeeded: 1, failed: 0, tokens: 7 });
});

/** The same connection, with a callback for each attempt to run a script. */
function watchScripts(redis: RedisClient, onRun: () => void): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      if (name === 'evalsha') onRun();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

testWithOwnStore('Redis')('settling outlasts a Redis outage of any length, and charges once', async (t) => {
  const stack = await useStack(t, { durableRedis: true, workers: [] });
  const { id } = await stack.createAccount();
  const request: AdmittedRequest = {
    ...(await admitRequest(stack, id, 900n)),
    pricing: {
      date_of_use: '2026-01-01',
      type: 'tokens',
      prompt: 0.1,
      completion: 0.1,
      free_requests: false,
    },
  };
  const { balanceNano } = await stack.readAccount(id);
  await stack.killRedis();
  let tries = 0;
  const redis = watchScripts(stack.redis, () => {
    tries += 1;
  });
  const finished = settleRequest({ ...createDependencies(stack), redis, retryPauseMs: 2 }, request, outcome);
  // An earlier version gave up after sixty attempts.
  await waitFor('many attempts', () => tries > 200);
  t.not(stack.redis.status, 'ready');
  await stack.restartRedis();
  t.is((await finished).costNano, 700n);
  t.like(await stack.readAccount(id), { balanceNano: balanceNano - 700n, reservedNano: 0n });
  await settleRequest(createDependencies(stack), request, outcome);
  t.like(await stack.readAccount(id), { balanceNano: balanceNano - 700n, reservedNano: 0n });
});

test('a process that is shutting down stops retrying a settlement', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const request = await admitRequest(stack, (await stack.createAccount()).id);
  const redis = createRedis(stack.config.redisUrl, 'commands', stack.log);
  await waitUntilReady(redis);
  const ended = once(redis, 'end');
  redis.disconnect();
  await ended;
  await t.throwsAsync(settleRequest({ ...createDependencies(stack), redis }, request, outcome));
});
