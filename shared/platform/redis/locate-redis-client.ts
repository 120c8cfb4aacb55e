// decision 0059
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import { isNamed, readSlotNodes } from './cluster-nodes-client.ts';
import { explainRedisError } from './explain-redis-error.ts';
import { atNode, splitRedisUrls } from './redis-urls.ts';
import { replyCode } from './reply-code.ts';

/** The first version with sharded pub/sub. */
const minMajorVersion = 7;
const pauseMs = 100;

/**
 * Finds out whether the URLs lead to a standalone server or a Cluster before clients are created.
 * @returns the URLs for `createRedis`; a single URL of a Cluster is followed by those of the Cluster's nodes
 * @throws ConfigError if nothing usable responds in time
 */
export async function locateRedis(urls: string, timeoutMs = 10_000): Promise<string> {
  const nodes = splitRedisUrls(urls);
  const deadlineMs = performance.now() + timeoutMs;
  for (let attempt = 0; ; attempt++) {
    const url = nodes[attempt % nodes.length]!;
    const found = await inspect(url);
    if (typeof found === 'string') {
      if (performance.now() < deadlineMs) {
        await delay(pauseMs);
        continue;
      }
      throw new ConfigError(
        `Redis could not be used within ${timeoutMs / 1_000} s (${found}). Check that it is running and that REDIS_URL is ` +
          'correct. If it uses TLS, REDIS_URL must start with rediss://, and a private CA needs NODE_EXTRA_CA_CERTS.',
      );
    }
    if (!found.isCluster && nodes.length > 1) {
      throw new ConfigError(
        `REDIS_URL lists ${nodes.length} nodes, but ${new URL(url).host} is not part of a Cluster. Specify one server, or ` +
          'the nodes of a Cluster.',
      );
    }
    return found.isCluster && nodes.length === 1 ? [url, ...found.nodeUrls].join(',') : urls;
  }
}

/** The server is not ready yet, but may be ready within seconds. */
class NotReady extends Error {}

interface Found {
  readonly isCluster: boolean;
  /** URLs of the Cluster's nodes; empty for a single server. */
  readonly nodeUrls: readonly string[];
}

/** @returns what kind of server the URL leads to, or the reason why that is not known yet */
async function inspect(url: string): Promise<Found | string> {
  let reason = 'it did not respond';
  const client = new Redis(url, {
    connectTimeout: 3_000,
    lazyConnect: true,
    // A server that is still loading its data can already report what it is.
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  // If connecting fails, the promise rejects only with "closed". The event has the cause.
  client.on('error', (error: Error) => {
    reason = error.message;
  });
  const timer = setTimeout(() => client.disconnect(), 3_000);
  try {
    await client.connect();
    const found = await readTopology(client, url);
    return found.isCluster ? found : ((await findRoleProblem(client)) ?? found);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (replyCode(error) !== null || error instanceof NotReady) reason = (error as Error).message;
    const explanation = explainRedisError(reason);
    if (explanation !== null) throw new ConfigError(explanation);
    return reason;
  } finally {
    clearTimeout(timer);
    client.disconnect();
  }
}

/** @returns why a standalone server accepts no writes now. It is temporary, as in a failover behind a DNS name */
async function findRoleProblem(client: Redis): Promise<string | null> {
  const info = await client.info('replication');
  return /^role:slave\b/m.test(info) ? 'it is a replica, which accepts no writes' : null;
}

async function readTopology(client: Redis, url: string): Promise<Found> {
  const info = await client.info('server');
  const version = /^redis_version:(\d+)\.\S*/m.exec(info);
  if (version !== null && Number(version[1]) < minMajorVersion) {
    const found = version[0].replace('redis_version:', '');
    throw new ConfigError(
      `Redis ${minMajorVersion}.0 or later is required; the server at REDIS_URL is ${found}.`,
    );
  }
  if (/^redis_mode:sentinel\b/m.test(info)) {
    const { host } = new URL(url);
    throw new ConfigError(
      `REDIS_URL points to a Sentinel (${host}). Specify the Redis server that it monitors, or a proxy that follows failovers.`,
    );
  }
  if (!/^redis_mode:cluster\b/m.test(info)) return { isCluster: false, nodeUrls: [] };
  const nodes = await readSlotNodes(client);
  if (nodes.length === 0) throw new NotReady('no node of its Cluster has slots');
  // Clients skip nodes without a name.
  const unnamed = nodes.find((node) => !isNamed(node));
  if (unnamed !== undefined) {
    throw new NotReady(
      `its Cluster does not report the address of its node at port ${unnamed.port}; set cluster-announce-ip or ` +
        'cluster-announce-hostname there, and do not set cluster-preferred-endpoint-type to unknown-endpoint',
    );
  }
  return {
    isCluster: true,
    nodeUrls: [...new Set(nodes.filter(isNamed).map((node) => atNode(url, node)))],
  };
}
