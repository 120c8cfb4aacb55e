import { randomUUID } from 'node:crypto';
import test from 'ava';
import { RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import { createCodes, listCodesOfBatch, revokeCodesOfBatch } from '../../../shared/admin/codes.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { createTrail } from '../../support/collecting-trail.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const value = { balanceNano: 5n, freeRequests: 0, expiresAt: null };
const config = { masterKey: 'm'.repeat(32), revealsKeys: true };

/** Creates and revokes codes as operators do, with one idempotency key. */
function useCodes() {
  const { mongo } = services;
  const store = new RefillCodeStore(mongo.db);
  const { trail } = createTrail();
  const deps = { codes: store, mongo, config: config as never };
  const once = { key: randomUUID(), request: { count: 3 } };
  return {
    store,
    create: (codes = store) => createCodes({ ...deps, codes }, trail, 3, value, { once }),
    revoke: async (batch: string) => {
      const found = await listCodesOfBatch(deps, batch);
      return found === null ? null : await revokeCodesOfBatch(deps, trail, batch, found);
    },
  };
}

test('a batch that is revoked before all its codes exist gets no live code later, and is not created again', async (t) => {
  const { store, create, revoke } = useCodes();
  const { batch, ids, codes } = await create();
  t.true((await create()).isReplay);
  // As if the call had died before it had inserted the others.
  await services.mongo.db
    .collection<{ _id: string }>('refill_codes')
    .deleteMany({ _id: { $in: ids.slice(1) } });
  t.is(await revoke(batch), 1);
  for (let i = 0; i < 2; i++)
    await t.throwsAsync(create(), {
      instanceOf: AppError,
      code: 'idempotency_conflict',
      message: /were revoked\. Use a new key/,
    });
  const made = await store.listBatch(batch);
  t.is(made.length, 3);
  t.true(made.every(({ revokedAt }) => revokedAt !== null));
  for (const code of codes!) t.is(await store.claim(code, 'an account', 'a refill'), null);
});

test('a batch can be revoked while it is created, before any of its codes exists', async (t) => {
  const { store, create, revoke } = useCodes();
  let batch = '';
  const slow = {
    revokeAll: store.revokeAll.bind(store),
    insertMissing: async (...args: Parameters<RefillCodeStore['insertMissing']>) => {
      batch = args[2].batch!;
      t.is(await revoke(batch), 0);
      await store.insertMissing(...args);
    },
  } as unknown as RefillCodeStore;
  await t.throwsAsync(create(slow), { instanceOf: AppError, code: 'idempotency_conflict' });
  const made = await store.listBatch(batch);
  t.is(made.length, 3);
  t.true(made.every(({ revokedAt }) => revokedAt !== null));
});

test('a batch that nobody has created is not revoked', async (t) => {
  t.is(await useCodes().revoke(randomUUID()), null);
});
