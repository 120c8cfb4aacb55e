import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { readSpawnedAdmin } from '../support/admin.ts';
import { callApi } from '../support/call-api.ts';
import { startRedisCluster, type RedisCluster, type RedisClusterOptions } from '../support/redis-cluster.ts';
import type { TestAccount } from '../support/stack.ts';
import { openTestMongo, openTestS3 } from '../support/stores.ts';
import { testOnlyCertificate } from '../support/test-only-certificate.ts';
import { startRole } from '../support/worker-process.ts';
import { callChat, countOutcomes, isComplete } from './call-chat.ts';
import { clusterCatalog, writeWords } from './cluster-world.ts';

/** The kinds of Redis Cluster URLs that operators get, with the roles in their own processes. */

const calls = 30;

interface Roles {
  readonly env: Readonly<Record<string, string>>;
  readonly url: string;
}

async function startRoles(
  t: ExecutionContext,
  options: RedisClusterOptions,
  urlOf: (cluster: RedisCluster) => string,
): Promise<Roles> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const cluster = await startRedisCluster(options);
  t.teardown(() => cluster.close());
  const mongo = await openTestMongo({ dir: join(dir, 'mongo'), password: 'test-mongo-password' });
  t.teardown(() => mongo.close());
  const s3 = await openTestS3(join(dir, 's3'));
  t.teardown(() => s3.close());
  await writeFile(join(dir, 'catalog.yaml'), clusterCatalog(vendor.url));
  await writeFile(join(dir, 'ca.pem'), testOnlyCertificate);
  const env = {
    REDIS_URL: urlOf(cluster),
    MONGODB_URL: mongo.url,
    ...s3.env,
    MASTER_KEY: 'test-master-key-0123456789abcdef0123456789',
    DATA_DIR: dir,
    CATALOG: join(dir, 'catalog.yaml'),
    PORT: '0',
    NODE_EXTRA_CA_CERTS: join(dir, 'ca.pem'),
  };
  const [api] = await Promise.all([startRole(t, 'api', env), startRole(t, 'worker', env)]);
  return { env, url: String(api.readyLine['url']) };
}

/** Admin commands run as separate processes, too, because Node reads NODE_EXTRA_CA_CERTS only at startup. */
async function checkCore(t: ExecutionContext, { env, url }: Roles): Promise<void> {
  const created = await readSpawnedAdmin<{ id: string; api_key: string }>(
    env,
    'account',
    'create',
    '--balance',
    '10000',
  );
  const account: TestAccount = { id: created.id, apiKey: created.api_key };
  await readSpawnedAdmin(env, 'account', 'limit', account.id, '--rpm', '10000');
  const contents = Array.from({ length: calls }, (_, i) => writeWords(`c${i}`, 30));
  const results = await Promise.all(contents.map((content) => callChat(url, account, 'drip-20', content)));
  t.deepEqual(countOutcomes(results), { ok: calls });
  t.true(results.every((result, i) => isComplete(result, contents[i]!)));
  const image = { model: 'image', prompt: 'a red fox', response_format: 'b64_json' };
  t.is((await callApi(url, account.apiKey, 'POST', '/images/generations', image)).status, 200);
  const texts = { model: 'embedding', input: ['one', 'two'] };
  t.is((await callApi(url, account.apiKey, 'POST', '/embeddings', texts)).status, 200);
  const { differences } = await readSpawnedAdmin<{ differences: unknown[] }>(env, 'ledger', 'verify');
  t.deepEqual(differences, []);
}

test('a Cluster works over TLS, with a password and a private certificate authority', async (t) => {
  t.timeout(90_000);
  await checkCore(t, await startRoles(t, { tls: true }, ({ url }) => url));
});

test('the URL of a single node is enough for a Cluster, such as the endpoint of a managed service', async (t) => {
  t.timeout(90_000);
  await checkCore(t, await startRoles(t, {}, ({ oneUrl }) => oneUrl));
});
