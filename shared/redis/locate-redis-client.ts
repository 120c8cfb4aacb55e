import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import { isNamed, readSlotNodes } from './cluster-nodes-client.ts';
import { explainRedisRefusal } from './explain-redis-refusal.ts';
import { atNode, splitRedisUrls } from './redis-urls.ts';
import { replyCode } from './reply-code.ts';

/** The first version with sharded pub/sub. */
const leastMajorVersion = 7;
const pauseMs = 100;

/**
 * Finds out what serves at the URLs before clients are created.
 * @returns the URLs for `createRedis`; a single one that leads to a Cluster is followed by those of the Cluster's nodes
 * @throws ConfigError if nothing usable responds in time
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
        `Redis could not be used within ${timeoutMs / 1_000} s (${found}). Does it run, and is REDIS_URL right, with rediss:// ` +
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

/** The server does not serve yet, but may within seconds. */
class NotYet extends Error {}

interface Found {
  readonly isCluster: boolean;
  /** URLs of the Cluster's nodes; empty for a single server. */
  readonly others: readonly string[];
}

/** @returns what is there, or why that is not known yet */
async function look(url: string): Promise<Found | string> {
  let reason = 'it said nothing';
  const client = new Redis(url, {
    connectTimeout: 3_000,
    lazyConnect: true,
    // A server that is still loading its data can already say what it is.
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  // When a connection fails, its promise only says that it was closed. The event has the cause.
  client.on('error', (error: Error) => {
    reason = error.message;
  });
  const timer = setTimeout(() => client.disconnect(), 3_000);
  try {
    await client.connect();
    const found = await ask(client, url);
    return found.isCluster ? found : ((await findRoleFault(client)) ?? found);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (replyCode(error) !== null || error instanceof NotYet) reason = (error as Error).message;
    const refusal = explainRedisRefusal(reason);
    if (refusal !== null) throw new ConfigError(refusal);
    return reason;
  } finally {
    clearTimeout(timer);
    client.disconnect();
  }
}

/** @returns why a standalone server takes no writes now. This passes: it happens during a failover behind a DNS name */
async function findRoleFault(client: Redis): Promise<string | null> {
  const info = await client.info('replication');
  return /^role:slave\b/m.test(info) ? 'it is a replica, which takes no writes' : null;
}

async function ask(client: Redis, url: string): Promise<Found> {
  const info = await client.info('server');
  const version = /^redis_version:(\d+)\.\S*/m.exec(info);
  if (version !== null && Number(version[1]) < leastMajorVersion) {
    const found = version[0].replace('redis_version:', '');
    throw new ConfigError(`Redis ${leastMajorVersion}.0 or later is needed; at REDIS_URL there is ${found}.`);
  }
  if (/^redis_mode:sentinel\b/m.test(info)) {
    const { host } = new URL(url);
    throw new ConfigError(
      `REDIS_URL names a Sentinel (${host}). Name the server that it watches, or a proxy that follows it.`,
    );
  }
  if (!/^redis_mode:cluster\b/m.test(info)) return { isCluster: false, others: [] };
  const nodes = await readSlotNodes(client);
  if (nodes.length === 0) throw new NotYet('no node of its Cluster has any slots');
  // Clients skip nodes without a name.
  const unnamed = nodes.find((node) => !isNamed(node));
  if (unnamed !== undefined) {
    throw new NotYet(
      `its Cluster does not say where its node at port ${unnamed.port} is; set cluster-announce-ip or cluster-announce-hostname ` +
        'there, and no cluster-preferred-endpoint-type of unknown-endpoint',
    );
  }
  return {
    isCluster: true,
    others: [...new Set(nodes.filter(isNamed).map((node) => atNode(url, node)))],
  };
}
