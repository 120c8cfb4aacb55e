import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { fetchMongod } from './mongod-program.mjs';
import { findOnPath, root, run, say } from './processes.mjs';

const program = join(root, 'dist', 'test', 'support', 'run-mongod.js');
const leastRedisMajor = 7;

/**
 * Finds the real servers that tests can have here, says so in one line, and starts a replica set of MongoDB for all of them.
 * Redis Clusters are started by the tests themselves.
 * @returns the environment of the tests, and what ends the replica set
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
  if (process.env.REDIS_URL) return { has: 'the Redis of REDIS_URL, which one test at a time has' };
  const { output } = await run('redis-server', ['--version']);
  const version = /v=(\d+)(\S*)/.exec(output);
  if (findOnPath(['redis-server']) === null || version === null)
    return { missing: 'a Redis Cluster (there is no redis-server on the PATH)' };
  const [, major, rest] = version;
  if (Number(major) < leastRedisMajor)
    return { missing: `a Redis Cluster (redis-server ${major}${rest} is older than ${leastRedisMajor})` };
  return { has: `Redis Clusters of six (redis-server ${major}${rest})`, env: { TEST_REDIS: 'cluster' } };
}

async function chooseMongo() {
  const { path, reason } = await fetchMongod();
  const env = path === null ? {} : { TEST_MONGOD_BIN: path };
  if (process.env.MONGODB_URL)
    return { env, has: 'the MongoDB of MONGODB_URL', ...(path === null ? { missing: reason } : {}) };
  if (path === null) return { missing: reason };
  const { output } = await run(path, ['--version']);
  const version = /db version v(\S+)/.exec(output)?.[1] ?? 'of an unknown version';
  const set = await startReplicaSet({ ...process.env, ...env });
  if (set === null) return { missing: `mongod ${version} (it did not start; what it said is above)` };
  return { env: { ...env, MONGODB_URL: set.url }, has: `mongod ${version}`, close: set.close };
}

function chooseS3() {
  return process.env.S3_ENDPOINT
    ? { has: 'the S3 of S3_ENDPOINT' }
    : { missing: 'S3 (the embedded one stands in; S3_ENDPOINT names another)' };
}

/** It ends when its input does, so also when this process is killed. @returns null where it does not start */
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
