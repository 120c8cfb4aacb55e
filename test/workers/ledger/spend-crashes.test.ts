import test from 'ava';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { admission, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { waitFor } from '../../support/wait-for.ts';

const at = Date.UTC(2026, 10, 21, 12);
const requests = 20;

/** The steps after the rows of a batch. */
const steps = [
  'addToAccounts',
  'addToStats',
  'addToAccountSpend',
  'addToModelSpend',
  'writeCheckpoint',
] as const;

/** Settles requests that cost 5 and cost the operator 2 each. */
async function chargeAll(
  { redis }: LedgerServices,
  account: { readonly id: string; readonly keyHash: string },
): Promise<void> {
  for (let i = 0; i < requests; i++) {
    const request = admission(account.id, { keyHash: account.keyHash, fixedNano: 5n });
    await runAdmission(redis, request);
    const event = usageEvent(account.id, request.requestId, { at, vendorCostNano: '2', promptTokens: 3 });
    await runSettlement(redis, event, 5n);
  }
}

for (const step of steps) {
  test.serial(`sums are exact if a reader dies between the rows and ${step}`, async (t) => {
    const services = await openLedgerServices();
    t.teardown(() => services.close());
    const account = await services.createAccount();
    await chargeAll(services, account);
    let isReached = false;
    const die = async (): Promise<never> => {
      isReached = true;
      throw new Error('power failure');
    };
    const dying = services.startReader(Object.assign(new LedgerStore(services.mongo.db), { [step]: die }));
    await waitFor(step, () => isReached);
    await dying.stop();
    t.is(await services.ledger.logs.countDocuments({}), requests);
    t.not(await services.redis.xlen(redisKeys.ledgerStream(shardOf(account.id))), 0);
    await services.moveAll();
    const sums = {
      requests,
      rows: requests,
      promptTokens: 3 * requests,
      costNano: BigInt(5 * requests),
      vendorCostNano: BigInt(2 * requests),
      costedRequests: requests,
    };
    const { ofAccounts, ofModels } = services.ledger.spend;
    t.like(await ofAccounts.findOne({ _id: `${account.id}:2026-11-21:m` }), sums);
    t.like(await ofModels.findOne({ _id: `${shardOf(account.id)}:2026-11-21:m` }), sums);
    t.like(await services.ledger.stats.findOne({ _id: `${account.id}:2026-11-21` }), { requests });
  });
}
