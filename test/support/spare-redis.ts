import { Redis } from 'ioredis';
import { startTestRedis, type TestRedis } from './redis.ts';

/** Longer than a server needs to reply, even on a busy machine, unless a test has paused it. */
const replyMs = 30_000;

/** A server that nobody uses, with its settings and users as they were when it started. */
interface Spare {
  readonly server: TestRedis;
  readonly settings: string;
}

const spares: Spare[] = [];
process.once('exit', () => {
  for (const { server } of spares) void server.stop();
});

/** A redis-server for one test, without persistence. Starting one costs more than most tests, so it is used again. */
export interface LentRedis extends TestRedis {
  /** Keeps the server for a later test if it is as new, and stops it otherwise. */
  release(): Promise<void>;
}

/** Takes a server that an earlier test of this process released, or starts one. */
export async function lendRedis(): Promise<LentRedis> {
  const spare = spares.pop() ?? (await startSpare());
  const { server, settings } = spare;
  return {
    ...server,
    async release() {
      if (await isAsNew(server, settings)) spares.push(spare);
      else await server.stop();
    },
  };
}

async function startSpare(): Promise<Spare> {
  const server = await startTestRedis();
  return { server, settings: await useBriefly(server, readSettings) };
}

/** Empties the server. @returns false if a test has changed it, killed it, or is still connected */
async function isAsNew(server: TestRedis, settings: string): Promise<boolean> {
  try {
    return await useBriefly(server, async (client) => {
      // A client that has just disconnected may still be in the list.
      if ((await countClients(client)) > 1) await new Promise((resolve) => setTimeout(resolve, 20));
      if ((await countClients(client)) > 1) return false;
      await Promise.all([
        client.flushall('SYNC'),
        client.script('FLUSH', 'SYNC'),
        client.call('SLOWLOG', 'RESET'),
        client.config('RESETSTAT'),
      ]);
      return (await readSettings(client)) === settings;
    });
  } catch {
    return false;
  }
}

async function useBriefly<T>(server: TestRedis, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(server.url, { retryStrategy: () => null, commandTimeout: replyMs });
  client.on('error', () => undefined);
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

const countClients = async (client: Redis): Promise<number> =>
  String(await client.client('LIST'))
    .trimEnd()
    .split('\n').length;

async function readSettings(client: Redis): Promise<string> {
  const [settings, users] = await Promise.all([client.config('GET', '*'), client.call('ACL', 'LIST')]);
  return JSON.stringify([settings, users]);
}
