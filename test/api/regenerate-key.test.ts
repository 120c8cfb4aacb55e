import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { AccountStore, type AccountDocument } from '../../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../../shared/accounts/api-key-store.ts';
import { hashSecret, isApiKey, maskApiKey } from '../../shared/accounts/credentials.ts';
import { replaceKey } from '../../shared/accounts/replace-key.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { NewApiKey } from '../../api/contract/users.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { callApi } from '../support/call-api.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { startApiOf } from '../support/other-api.ts';
import { parseSse } from '../support/sse-events.ts';
import { startStack, useStack, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';

/** A replaced key stops working immediately and everywhere, and an account is never left without a key. */

let stack: TestStack;
let vendor: VendorSimulator;

test.before(async () => {
  vendor = await startVendorSimulator({ logCapacity: 0 });
  stack = await startStack({ catalog: vendorCatalog(vendor.url) });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] };
const regenerate = (apiKey: string) =>
  callApi<NewApiKey>(stack.url, apiKey, 'PUT', '/users/regenerate_api_key');
const readProfile = (apiKey: string, url = stack.url) => callApi(url, apiKey, 'GET', '/users/profile');
const openAccounts = (): AccountStore => new AccountStore(stack.mongo.db, stack.config);
const readStored = (id: string) =>
  stack.mongo.db.collection<AccountDocument>('accounts').findOne({ _id: id });

test('once the response has been sent, the new key works in every api process, and the old one does not', async (t) => {
  const second = await startApiOf(stack);
  t.teardown(() => second.stop());
  const { id, apiKey } = await stack.createAccount();
  for (const url of [stack.url, second.url]) t.is((await readProfile(apiKey, url)).status, 200);
  const { status, body } = await regenerate(apiKey);
  t.is(status, 200);
  t.deepEqual(Object.keys(body), ['new_api_key']);
  t.true(isApiKey(body.new_api_key));
  t.not(body.new_api_key, apiKey);
  for (const url of [stack.url, second.url]) {
    const oldKeyResult = await readProfile(apiKey, url);
    t.is(oldKeyResult.status, 401);
    t.is(oldKeyResult.body.error.code, 'invalid_api_key');
    const newKeyResult = await readProfile(body.new_api_key, url);
    t.like(newKeyResult, { status: 200, body: { id } });
  }
  t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 401);
  t.is((await stack.post('/v1/chat/completions', body.new_api_key, chat)).status, 200);
  t.is(await stack.redis.exists(redisKeys.apiKey(hashSecret(apiKey))), 0);
});

test('the new key is stored like the old one: as a hash and a mask, and separately in a form that can be revealed', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const { new_api_key: newKey } = (await regenerate(apiKey)).body;
  const stored = await readStored(id);
  t.like(stored, { keyHash: hashSecret(newKey), keyMasked: maskApiKey(newKey) });
  t.is(await openAccounts().revealKey(id), newKey);
  t.false(Object.values(stored!).includes(newKey));
  const secrets = stack.mongo.db.collection<{ _id: string }>('key_secrets');
  t.is(await secrets.countDocuments({ _id: { $in: [hashSecret(apiKey)] } }), 0, 'the old secret is deleted');
});

test('a stream opened with the old key continues to its end', async (t) => {
  const { apiKey } = await stack.createAccount();
  const response = await stack.post('/v1/chat/completions', apiKey, {
    ...chat,
    model: 'drip-chat',
    stream: true,
  });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let text = decoder.decode((await reader.read()).value, { stream: true });
  t.is((await regenerate(apiKey)).status, 200);
  t.is((await readProfile(apiKey)).status, 401);
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    text += decoder.decode(chunk.value, { stream: true });
  }
  t.true(parseSse(text).isDone);
});

test('of twenty concurrent calls with one key, one gets a new key, and that key works', async (t) => {
  const { apiKey } = await stack.createAccount();
  const results = await Promise.all(Array.from({ length: 20 }, () => regenerate(apiKey)));
  const succeeded = results.filter(({ status }) => status === 200);
  t.is(succeeded.length, 1);
  t.is(results.filter(({ status }) => status === 401).length, 19);
  t.is((await readProfile(succeeded[0]!.body.new_api_key)).status, 200);
  t.is((await readProfile(apiKey)).status, 401);
});

testWithOwnStore('MongoDB')(
  'while MongoDB is down, no key is created: the error says so in two languages, and the old key keeps working',
  async (t) => {
    const ownStack = await useStack(t);
    const { apiKey } = await ownStack.createAccount();
    t.is((await readProfile(apiKey, ownStack.url)).status, 200);
    await ownStack.stopMongo();
    const { status, body } = await callApi(ownStack.url, apiKey, 'PUT', '/users/regenerate_api_key');
    t.is(status, 500);
    t.is(body.error.code, 'key_generation_failed');
    const detail = body.detail as { error: string; message_ru: string; message_en: string };
    t.deepEqual(Object.keys(detail), ['error', 'message_ru', 'message_en']);
    t.is(detail.error, 'key_generation_failed');
    t.regex(detail.message_ru, /[а-я]/);
    t.is((await readProfile(apiKey, ownStack.url)).status, 200);
    await ownStack.restartMongo();
    t.is((await callApi(ownStack.url, apiKey, 'PUT', '/users/regenerate_api_key')).status, 200);
  },
);

test('if Redis fails after MongoDB has stored the new key, the old one is restored', async (t) => {
  class FailingStore extends HotAccountStore {
    override async setKey(): Promise<void> {
      throw new AppError('service_unavailable');
    }
  }
  const { id, apiKey } = await stack.createAccount();
  const before = await readStored(id);
  const accounts = openAccounts();
  const dependencies = {
    redis: stack.redis,
    accounts,
    hotAccounts: new FailingStore(stack.redis, accounts, new LedgerStore(stack.mongo.db)),
    apiKeys: new ApiKeyStore(stack.redis, accounts),
  };
  await t.throwsAsync(replaceKey(dependencies, id), { instanceOf: AppError });
  const { keyHash, keyMasked } = before!;
  t.like(await readStored(id), { keyHash, keyMasked });
  t.is(await accounts.revealKey(id), apiKey);
  t.is((await readProfile(apiKey)).status, 200);
});

test('if the caller was told to retry before MongoDB stored the new key, the old one is restored', async (t) => {
  const timeout = new AbortController();
  class SlowAccounts extends AccountStore {
    override async replaceKey(...args: Parameters<AccountStore['replaceKey']>) {
      const replaced = await super.replaceKey(...args);
      timeout.abort(new AppError('service_unavailable'));
      return replaced;
    }
  }
  const { id, apiKey } = await stack.createAccount();
  t.is((await readProfile(apiKey)).status, 200);
  const accounts = new SlowAccounts(stack.mongo.db, stack.config);
  const dependencies = {
    redis: stack.redis,
    accounts,
    hotAccounts: new HotAccountStore(stack.redis, accounts, new LedgerStore(stack.mongo.db)),
    apiKeys: new ApiKeyStore(stack.redis, accounts),
  };
  const replacing = replaceKey(dependencies, id, {}, timeout.signal);
  await t.throwsAsync(replacing, { code: 'service_unavailable' });
  t.is((await readStored(id))?.keyHash, hashSecret(apiKey));
  t.is(await accounts.revealKey(id), apiKey);
  t.is((await readProfile(apiKey)).status, 200);
});

test('after a crash during a replacement, the key in MongoDB is accepted, and the old one is not', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  // MongoDB has the new key, but Redis does not.
  const replaced = await openAccounts().replaceKey(id);
  t.like(await readProfile(replaced!.apiKey), { status: 200, body: { id } });
  t.is((await stack.readAccount(id)).keyHash, replaced!.keyHash);
  t.is((await readProfile(apiKey)).status, 401);
});

test('if Redis has a key that MongoDB does not have, MongoDB takes precedence', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const orphanedHash = hashSecret('a key that was never returned');
  await stack.redis.hset(redisKeys.account(id), 'key', orphanedHash);
  t.is((await readProfile(apiKey)).status, 200);
  t.is((await stack.readAccount(id)).keyHash, hashSecret(apiKey));

  // This call caches the old key, so that the next call gets as far as comparing its hash.
  t.is((await readProfile(apiKey)).status, 200);
  const replaced = await openAccounts().replaceKey(id);
  await stack.redis.hset(redisKeys.account(id), 'key', orphanedHash);
  t.is((await readProfile(apiKey)).status, 401);
  t.is((await stack.readAccount(id)).keyHash, replaced!.keyHash);
});

test('a key that has already been replaced in MongoDB cannot be used to create another', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const replaced = await openAccounts().replaceKey(id);
  t.is((await regenerate(apiKey)).status, 401);
  t.is((await readStored(id))?.keyHash, replaced!.keyHash);
  t.is((await readProfile(apiKey)).status, 401);
});
