import test from 'ava';
import { ApiKeyStore } from '../../../shared/accounts/api-key-store.ts';
import { hashSecret, maskApiKey } from '../../../shared/accounts/credentials.ts';
import { rotateKey } from '../../../shared/admin/accounts.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { createTrail } from '../../support/collecting-trail.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

test('of two operators who replace a key at the same time, one gets a key that works, and the other an error', async (t) => {
  const { redis, accounts, hotAccounts } = services;
  const { id } = await services.createAccount();
  const old = (await accounts.findById(id))!.keyMasked;
  const deps = { redis, accounts, hotAccounts, apiKeys: new ApiKeyStore(redis, accounts) };
  const [first, second] = [createTrail(), createTrail()];
  let key: string | null = null;
  /** The other operator replaces the key after this one has read it. */
  const overtaken = {
    findById: async (accountId: string) => {
      const found = await accounts.findById(accountId);
      key ??= await rotateKey(deps, second.trail, accountId);
      return found;
    },
    replaceKey: accounts.replaceKey.bind(accounts),
    deleteSecret: accounts.deleteSecret.bind(accounts),
  } as unknown as typeof accounts;
  await t.throwsAsync(rotateKey({ ...deps, accounts: overtaken }, first.trail, id), {
    instanceOf: AppError,
    code: 'validation_failed',
  });
  t.is((await accounts.findById(id))!.keyHash, hashSecret(key!));
  t.is((await hotAccounts.get(id)).keyHash, hashSecret(key!));
  t.like(second.written, [{ before: { key: old } }, { outcome: 'done', after: { key: maskApiKey(key!) } }]);
  t.like(first.written, [{ before: { key: old } }, { outcome: 'failed' }]);
});

test('the key of an account that does not exist is not replaced, and nothing is recorded', async (t) => {
  const { redis, accounts, hotAccounts } = services;
  const { trail, written } = createTrail();
  const deps = { redis, accounts, hotAccounts, apiKeys: new ApiKeyStore(redis, accounts) };
  t.is(await rotateKey(deps, trail, 'nobody'), null);
  t.deepEqual(written, []);
});
