import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { addCredentials } from '../../scripts/embedded/credentials.ts';
import { dist } from '../../scripts/start/paths.ts';
import { readFirstLine } from '../../scripts/start/read-first-line.ts';
import type { RedisCluster } from '../support/redis-cluster.ts';
import { findStablePort } from '../support/stable-port.ts';
import { sharedStores, openTestMongo, openTestRedis } from '../support/stores.ts';

const mongoPassword = 'test-mongo-password';

/** A process that can be killed and restarted at the same address with the same data. */
export interface Victim {
  readonly name: string;
  /** Sends SIGKILL, and resolves when the process is gone. */
  kill(): Promise<void>;
  /** Restarts the process, and resolves when it serves again. */
  restart(): Promise<void>;
}

export interface StoreWithVictims {
  readonly url: string;
  /** Empty if the test did not start the store itself. */
  readonly victims: readonly Victim[];
}

export async function openRedisVictim(t: ExecutionContext, dir: string): Promise<StoreWithVictims> {
  const store = await openTestRedis({ dir });
  t.teardown(() => store.close());
  const { url, server, cluster } = store;
  if (cluster !== null) return { url, victims: [masterOf(cluster)] };
  if (server !== null) return { url, victims: [{ name: 'redis', ...server }] };
  t.log('Redis is not killed: REDIS_URL is a shared server');
  return { url, victims: [] };
}

/** A master of a Cluster, chosen when it is to be killed. It comes back as a replica. */
function masterOf(cluster: RedisCluster): Victim {
  let port: number;
  return {
    name: 'a Redis master',
    async kill() {
      port = (await cluster.masters())[0]!;
      await cluster.kill(port);
      await cluster.waitForFailover();
    },
    restart: () => cluster.restart(port),
  };
}

export async function openMongoVictim(t: ExecutionContext, dir: string): Promise<StoreWithVictims> {
  if (sharedStores.mongoUrl !== null) {
    const store = await openTestMongo({ dir });
    t.teardown(() => store.close());
    t.log('MongoDB is not killed: MONGODB_URL is a shared server');
    return { url: store.url, victims: [] };
  }
  let child: ChildProcess;
  let exited: Promise<unknown>;
  const start = async (port: number): Promise<string> => {
    const args = [dist('scripts/embedded/mongo/main.js'), '--dir', dir, '--port', String(port)];
    child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin!.end(mongoPassword);
    const ended = new AbortController();
    exited = once(child, 'exit').finally(() => ended.abort());
    const line = await readFirstLine(child.stdout!, ended.signal);
    return addCredentials((JSON.parse(line) as { endpoint: string }).endpoint, mongoPassword);
  };
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  };
  const port = await findStablePort();
  const url = await start(port);
  t.teardown(kill);
  const restart = async (): Promise<void> => {
    await start(port);
  };
  return { url, victims: [{ name: 'mongodb', kill, restart }] };
}
