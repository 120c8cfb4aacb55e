import test from 'ava';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { runAdmission } from '../../../shared/billing/admit-script.ts';
import { finishRequest, type RequestOutcome } from '../../../shared/billing/finish-request.ts';
import { HotAccountStore } from '../../../shared/billing/hot-account-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { waitFor } from '../../support/wait-for.ts';
import { PriceStore } from '../../../shared/ledger/price-store.ts';
import { noUsage } from '../../../shared/pricing/cost.ts';
import type { AdmittedRequest } from '../../../shared/queue/job-kinds.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { TrafficRecorder } from '../../../shared/traffic/traffic-recorder.ts';
import type { TotalSums, TrafficSums } from '../../../shared/traffic/traffic-sums.ts';
import { admission } from '../../support/billing.ts';
import { useStack, type TestStack } from '../../support/stack.ts';

async function admitRequest({ redis }: TestStack, accountId: string): Promise<AdmittedRequest> {
  const keyHash = (await redis.hget(redisKeys.account(accountId), 'key'))!;
  const asked = admission(accountId, { keyHash });
  const { requestId } = asked;
  const { outcome } = await runAdmission(redis, asked);
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

test('traffic notes a request once, when it is settled, and only if it reached a model', async (t) => {
  const stack = await useStack(t);
  const { id } = await stack.createAccount();
  const noted: TotalSums[] = [];
  const traffic = new TrafficRecorder(
    {
      record: async (sums: TrafficSums) => {
        noted.push(sums.totals);
      },
    },
    stack.log,
  );
  const { redis, mongo, config } = stack;
  const ledger = new LedgerStore(mongo.db);
  const hotAccounts = new HotAccountStore(redis, new AccountStore(mongo.db, config), ledger);
  const prices = new PriceStore(mongo.db);
  const dependencies = { redis, ledger, hotAccounts, traffic, prices };
  const outcome: RequestOutcome = {
    usage: { ...noUsage, promptTokens: 3, completionTokens: 4 },
    counted: false,
    error: null,
    charged: true,
    reachedModel: true,
  };
  const request = await admitRequest(stack, id);
  await finishRequest(dependencies, request, outcome);
  await finishRequest(dependencies, request, outcome);
  await finishRequest(dependencies, await admitRequest(stack, id), { ...outcome, reachedModel: false });
  await traffic.stop();
  // The price it was settled by is kept, whatever any catalog says of it by then.
  await waitFor('the price', () => new PriceStore(mongo.db).find(request.model, request.priceVersion));
  t.deepEqual(
    noted.map((totals) => totals.requests),
    [1],
  );
  t.deepEqual(noted[0], { requests: 1, succeeded: 1, failed: 0, tokens: 7 });
});
