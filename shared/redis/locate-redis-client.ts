import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import { replyCode } from './redis-client.ts';
import { atNode, splitRedisUrls } from './redis-urls.ts';

/** Sharded pub/sub came with it. */
const leastMajorVersion = 7;
const pauseMs = 100;

/**
 * Looks at what answers at the URLs before clients are made for it.
 * @returns the URLs as `createRedis` takes them: a lone one that leads to a Cluster is followed by those of the nodes
 * @throws ConfigError where nothing answers in time, or the wrong thing does
 */
export async function locateRedis(urls: string, timeoutMs = 10_000): Promise<string> {
  const nodes = splitRedisUrls(urls);
  const givesUpAtMs = performance.now() + timeoutMs;
  for (let attempt = 0; ; attempt++) {
    const url = nodes[attempt % nodes.length]!;
    const found = await look(url);
    if (typeof found === 'string') {
      if (performance.now() < givesUpAtMs) {
        await delay(pauseMs);
        continue;
      }
      throw new ConfigError(
        `Redis did not answer within ${timeoutMs / 1_000} s (${found}). Does it run, and is REDIS_URL right, with rediss:// ` +
          'where it speaks TLS, and with NODE_EXTRA_CA_CERTS for a private CA?',
      );
    }
    if (!found.isCluster && nodes.length > 1) {
      throw new ConfigError(
        `REDIS_URL names ${nodes.length} nodes, but ${new URL(url).host} is no node of a Cluster. Name one server, or the ` +
          'nodes of a Cluster.',
      );
    }
    return found.isCluster && nodes.length === 1 ? [url, ...found.others].join(',') : urls;
  }
}

interface Found {
  readonly isCluster: boolean;
  /** URLs of the nodes, where a lone one was asked. */
  readonly others: readonly string[];
}

/** @returns what is there, or why nothing can be said yet */
async function look(url: string): Promise<Found | string> {
  let reason = 'it said nothing';
  const client = new Redis(url, {
    connectTimeout: 3_000,
    lazyConnect: true,
    // A server that still loads its data says what it is.
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  // Where a connection fails, the promise of it only says that it is closed.
  client.on('error', (error: Error) => {
    reason = error.message;
  });
  const timer = setTimeout(() => client.disconnect(), 3_000);
  try {
    await client.connect();
    return await ask(client, url);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (replyCode(error) !== null) reason = (error as Error).message;
    if (/^(?:WRONGPASS|NOAUTH)\b/.test(reason))
      throw new ConfigError(`Redis refuses the user or the password of REDIS_URL: ${reason}`);
    if (/^NOPERM\b/.test(reason))
      throw new ConfigError(
        `The user of REDIS_URL lacks a right that the gateway needs; docs/deployment.md lists them: ${reason}`,
      );
    return reason;
  } finally {
    clearTimeout(timer);
    client.disconnect();
  }
}

async function ask(client: Redis, url: string): Promise<Found | string> {
  const info = await client.info('server');
  const version = /^redis_version:(\d+)\.\S*/m.exec(info);
  if (version !== null && Number(version[1]) < leastMajorVersion) {
    const found = version[0].replace('redis_version:', '');
    throw new ConfigError(`Redis ${leastMajorVersion}.0 or later is needed; at REDIS_URL there is ${found}.`);
  }
  if (!/^redis_mode:cluster\b/m.test(info)) {
    // It may be about to become the master: a failover is waited for like a start.
    if (/^role:slave\b/m.test(await client.info('replication')))
      return 'it is a replica, which takes no writes';
    return { isCluster: false, others: [] };
  }
  const { hostname } = new URL(url);
  const slots = await client.cluster('SLOTS');
  const others = slots.flatMap(([, , ...nodes]) =>
    nodes.map(([host, port]) => atNode(url, { host: host === '' ? hostname : host, port })),
  );
  return { isCluster: true, others: [...new Set(others)] };
}
