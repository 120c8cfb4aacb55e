import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { fetchMongod } from './mongod-program.mjs';
import { findOnPath, root, run, say } from './processes.mjs';

const program = join(root, 'dist', 'test', 'support', 'run-mongod.js');
const minRedisMajor = 7;

/**
 * Finds the real servers that tests can use here, reports them in one line, and starts a MongoDB replica set for all
 * tests. The tests themselves start Redis Clusters.
 * @returns the environment of the tests, and a function that stops the replica set
 */
export async function openRealStores() {
  const parts = [await chooseRedis(), await chooseMongo(), chooseS3()];
  const list = (name) => parts.flatMap((part) => part[name] ?? []).join(', ');
  const missing = list('missing');
  say(`Real stores: ${list('has') || 'none'}${missing === '' ? '' : `; not: ${missing}`}.`);
  const env = { ...process.env };
  for (const part of parts) Object.assign(env, part.env);
  return { env, close: () => Promise.all(parts.map((part) => part.close?.())) };
}

async function chooseRedis() {
  if (process.env.REDIS_URL) return { has: 'the Redis at REDIS_URL, used by one test at a time' };
  const { output } = await run('redis-server', ['--version']);
  const version = /v=(\d+)(\S*)/.exec(output);
  if (findOnPath(['redis-server']) === null || version === null)
    return { missing: 'a Redis Cluster (no redis-server on the PATH)' };
  const [, major, rest] = version;
  if (Number(major) < minRedisMajor)
    return { missing: `a Redis Cluster (redis-server ${major}${rest} is older than ${minRedisMajor})` };
  return {
    has: `Redis Clusters of six nodes (redis-server ${major}${rest})`,
    env: { TEST_REDIS: 'cluster' },
  };
}

async function chooseMongo() {
  const { path, reason } = await fetchMongod();
  const env = path === null ? {} : { TEST_MONGOD_BIN: path };
  if (process.env.MONGODB_URL)
    return { env, has: 'the MongoDB at MONGODB_URL', ...(path === null ? { missing: reason } : {}) };
  if (path === null) return { missing: reason };
  const { output } = await run(path, ['--version']);
  const version = /db version v(\S+)/.exec(output)?.[1] ?? 'of an unknown version';
  const set = await startReplicaSet({ ...process.env, ...env });
  if (set === null) return { missing: `mongod ${version} (it did not start; see its output above)` };
  return { env: { ...env, MONGODB_URL: set.url }, has: `mongod ${version}`, close: set.close };
}

function chooseS3() {
  return process.env.S3_ENDPOINT
    ? { has: 'the S3 at S3_ENDPOINT' }
    : { missing: 'S3 (the embedded one is used; set S3_ENDPOINT for another)' };
}

/** The child exits when its stdin closes, even if this process is killed. @returns null if it does not start */
async function startReplicaSet(env) {
  const child = spawn(process.execPath, [program], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise((fulfil) => child.once('exit', fulfil));
  for await (const line of createInterface({ input: child.stdout })) {
    const close = async () => {
      child.stdin.end();
      await exited;
    };
    return { url: JSON.parse(line).url, close };
  }
  return null;
}
