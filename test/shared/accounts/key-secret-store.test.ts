import { inspect } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { AccountStore, type AccountDocument } from '../../../shared/accounts/account-store.ts';
import { createApiKey, encryptSecret, hashSecret } from '../../../shared/accounts/credentials.ts';
import { KeySecretStore } from '../../../shared/accounts/key-secret-store.ts';
import { loadConfig } from '../../../shared/platform/config/config.ts';
import type { Database } from '../../../shared/platform/storage/mongo-client.ts';
import { startWorker } from '../../../workers/worker.ts';
import { allQueues, useStack } from '../../support/stack.ts';
import { useMongo } from '../../support/use-mongo.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A key is revealed only to its owner, and no other key is ever revealed instead. */

const revealOn = { masterKey: 'test-master-key-0123456789abcdef0123456789', revealsKeys: true };
const revealOff = { ...revealOn, revealsKeys: false };
const newAccount = { userType: 'default', requestsPerMinute: 60 };

const openTestMongo = useMongo(test);
const openDatabase = (t: ExecutionContext): Database => openTestMongo(t).db;

const readAccount = async (db: Database, id: string): Promise<object | null> =>
  await db.collection<AccountDocument>('accounts').findOne({ _id: id });
const countSecrets = async (db: Database): Promise<number> =>
  await db.collection('key_secrets').countDocuments({});

test('a key can be revealed, and is stored apart from its account, encrypted with the master key', async (t) => {
  const db = openDatabase(t);
  const accounts = new AccountStore(db, revealOn);
  const { id, apiKey } = await accounts.create(newAccount);
  t.is(await accounts.revealKey(id), apiKey);
  t.false(inspect(await readAccount(db, id), { depth: null }).includes(apiKey));
  t.false(JSON.stringify(await db.collection('key_secrets').find({}).toArray()).includes(apiKey));
  t.is(await accounts.revealKey('nobody'), null);
});

test('a key that is not the expected one is not revealed', async (t) => {
  const accounts = new AccountStore(openDatabase(t), revealOn);
  const { id, apiKey } = await accounts.create(newAccount);
  const expectedKeyHash = hashSecret(apiKey);
  t.is(await accounts.revealKey(id, { expectedKeyHash }), apiKey);
  await accounts.replaceKey(id);
  t.is(await accounts.revealKey(id, { expectedKeyHash }), null);
});

test('with REVEAL=off only the hashes of new and replaced keys are stored, and no key is revealed', async (t) => {
  const db = openDatabase(t);
  const accounts = new AccountStore(db, revealOff);
  const { id } = await accounts.create(newAccount);
  await accounts.replaceKey(id);
  t.is(await countSecrets(db), 0);
  t.is(await accounts.revealKey(id), null);
});

test('if a crash interrupts a replacement, before or after the account is changed, the key in use is revealed', async (t) => {
  const db = openDatabase(t);
  const accounts = new AccountStore(db, revealOn);
  const { id, apiKey } = await accounts.create(newAccount);
  await new KeySecretStore(db, revealOn).save(createApiKey());
  t.is(await accounts.revealKey(id), apiKey, 'the new secret is stored, but the account is not changed');
  const replaced = await accounts.replaceKey(id);
  t.is(await countSecrets(db), 3);
  t.is(
    await accounts.revealKey(id),
    replaced!.apiKey,
    'the account is changed, but the old secret is not deleted',
  );
});

test('a replacement that loses a race does not leave its secret in MongoDB', async (t) => {
  const db = openDatabase(t);
  const accounts = new AccountStore(db, revealOn);
  const { id, apiKey } = await accounts.create(newAccount);
  t.is(await accounts.replaceKey(id, { expectedKeyHash: 'another' }), null);
  t.is(await countSecrets(db), 1);
  t.is(await accounts.revealKey(id), apiKey);
});

test('a secret stored under the wrong hash or encrypted with another master key reveals nothing', async (t) => {
  const db = openDatabase(t);
  const accounts = new AccountStore(db, revealOn);
  const { id, apiKey } = await accounts.create(newAccount);
  const other = new AccountStore(db, { ...revealOn, masterKey: 'another-master-key-0123456789abcdef' });
  t.is(await other.revealKey(id), null);
  const wrong = encryptSecret(createApiKey(), revealOn.masterKey);
  await db
    .collection<{ _id: string }>('key_secrets')
    .updateOne({ _id: hashSecret(apiKey) }, { $set: { encrypted: wrong } });
  t.is(await accounts.revealKey(id), null);
});

test('a worker that starts with REVEAL=off deletes all stored secrets', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { db } = stack.mongo;
  const kept = await stack.createAccount();
  t.is(await countSecrets(db), 1);
  const env = { ...stack.env, REVEAL: 'off' };
  const worker = await startWorker(loadConfig(env), env, stack.log, allQueues);
  t.teardown(() => worker.stop());
  await waitFor('the secrets to be deleted', async () => (await countSecrets(db)) === 0);
  const accounts = new AccountStore(db, loadConfig(env));
  t.is(await accounts.revealKey(kept.id), null);
  const profile = await fetch(`${stack.url}/v1/users/profile`, {
    headers: { authorization: `Bearer ${kept.apiKey}` },
  });
  t.is(profile.status, 200);
});
