import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../../shared/platform/storage/mongo-client.ts';
import { WebhookSecretStore } from '../../../shared/work/webhook-secret-store.ts';
import { openTestMongo, type OpenedStore } from '../../support/stores.ts';

const config = { masterKey: 'test-master-key-0123456789abcdef0123456789' };
const hourMs = 60 * 60 * 1_000;

let server: OpenedStore;
let mongo: MongoConnection;
let dir: string;
let nowMs = Date.parse('2026-11-23T12:00:00Z');

test.before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  server = await openTestMongo({ dir });
  mongo = openMongo(server.url, createLogger('test', 'silent'));
});
test.after.always(async () => {
  await mongo.close();
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

const openStore = (masterKey = config.masterKey): WebhookSecretStore =>
  new WebhookSecretStore(mongo.db, { masterKey }, () => nowMs);

test('an account has one secret, even if several processes request it first, and no other account has the same one', async (t) => {
  const [ann, bob] = [randomUUID(), randomUUID()];
  const secrets = await Promise.all([1, 2, 3, 4].map(() => openStore().getOrCreate(ann)));
  t.is(new Set(secrets).size, 1);
  t.not(await openStore().getOrCreate(bob), secrets[0]!);
});

test('a secret is 32 random bytes, and MongoDB does not store it in plain text', async (t) => {
  const id = randomUUID();
  const secret = await openStore().getOrCreate(id);
  t.is(Buffer.from(secret!.slice('whsec_'.length), 'base64').length, 32);
  const stored = JSON.stringify(
    await mongo.db.collection<{ _id: string }>('webhook_secrets').findOne({ _id: id }),
  );
  t.false(stored.includes(secret!.slice('whsec_'.length)));
});

test.serial('for 24 hours after a rotation both secrets sign, the new one first', async (t) => {
  const id = randomUUID();
  const store = openStore();
  const first = await store.getOrCreate(id);
  const second = await store.rotate(id);
  t.deepEqual(await store.listSigning(id), [second, first!]);
  nowMs += 24 * hourMs - 1;
  t.is((await store.listSigning(id)).length, 2);
  nowMs += 1;
  t.deepEqual(await store.listSigning(id), [second]);
});

test('a second rotation ends the first secret immediately, and no concurrent rotation is lost', async (t) => {
  const id = randomUUID();
  const store = openStore();
  const first = await store.getOrCreate(id);
  const rotated = await Promise.all([store.rotate(id), store.rotate(id)]);
  const signing = await store.listSigning(id);
  t.deepEqual([...signing].sort(), [...rotated].sort());
  t.false(signing.includes(first!));
});

test('a secret encrypted with another MASTER_KEY is not used, and a rotation replaces it', async (t) => {
  const id = randomUUID();
  await openStore().getOrCreate(id);
  const other = openStore('another-master-key-0123456789abcdef01234');
  t.is(await other.getOrCreate(id), null);
  await t.throwsAsync(other.listSigning(id), { message: /was stored with a different MASTER_KEY/ });
  const secret = await other.rotate(id);
  t.deepEqual(await other.listSigning(id), [secret]);
});
