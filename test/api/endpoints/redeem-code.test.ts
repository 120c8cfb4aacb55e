import { randomUUID } from 'node:crypto';
import test from 'ava';
import { redeemCode } from '../../../api/endpoints/redeem-code.ts';
import { RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import { openLedgerServices } from '../../support/ledger-services.ts';

test('if redeeming was interrupted before crediting, sending the code again credits it once, and only to the same account', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const codes = new RefillCodeStore(services.mongo.db);
  const [claimer, other] = [await services.createAccount(), await services.createAccount()];
  const [code] = await codes.create(1, { balanceNano: 7n, freeRequests: 0, expiresAt: null });
  await codes.claim(code!, claimer.id, randomUUID());
  const redeem = ({ id }: { readonly id: string }): Promise<unknown> =>
    redeemCode({ ...services, codes }, id, code!);
  const refusal = { code: 'invalid_code' };
  await t.throwsAsync(redeem(other), refusal);
  await redeem(claimer);
  await t.throwsAsync(redeem(claimer), { ...refusal, message: /already redeemed this code/ });
  t.is((await services.hotAccounts.get(claimer.id)).balanceNano, 1_007n);
  t.is((await services.hotAccounts.get(other.id)).balanceNano, 1_000n);
});
