import { isEvicting } from '../platform/redis/eviction-policy.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { readInfo, type RedisInfo } from '../platform/redis/redis-info.ts';
import { checkClock, readClock } from './check-clock.ts';
import { ok, problem, warning, type Finding } from './finding.ts';
import { isOlder } from './is-older.ts';

const minVersion = '7.0';

/** Checks every server of a Redis: version, AOF, what happens when its memory is full, clock. */
export async function checkRedis(redis: RedisClient): Promise<Finding[]> {
  const [servers, clock] = await Promise.all([
    readInfo(redis, 'server', 'memory', 'persistence'),
    readClock(async () => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    }),
  ]);
  const readable = servers.filter((server) => server('redis_version') !== null);
  if (readable.length === 0)
    return [
      warning(
        'redis',
        'the user of REDIS_URL may not read INFO',
        'Give it the right +info (docs/deployment.md), so that its version, AOF and memory can be checked.',
      ),
    ];
  // The worst of a Cluster's servers stands for all.
  const worst = (of: (server: RedisInfo) => Finding): Finding => {
    const found = readable.map(of);
    return (
      (['problem', 'warning'] as const)
        .map((status) => found.find((finding) => finding.status === status))
        .find((finding) => finding !== undefined) ?? found[0]!
    );
  };
  return [
    worst(checkServerVersion),
    worst(checkAof),
    worst(checkEvictionPolicy),
    worst(checkMemory),
    checkClock('redis', clock),
  ];
}

function checkServerVersion(read: RedisInfo): Finding {
  const valkey = read('valkey_version');
  const version = read('redis_version') ?? '';
  const found = valkey === null ? `Redis ${version}` : `Valkey ${valkey}`;
  return isOlder(version, minVersion)
    ? problem('redis', found, `Install Redis ${minVersion} or later, or Valkey.`)
    : ok('redis', found);
}

function checkAof(read: RedisInfo): Finding {
  const check = 'redis aof';
  if (read('aof_enabled') === '0')
    return problem(
      check,
      'appendonly is off: a restart of Redis loses running requests, durable jobs and the charges of the last moments',
      'Set appendonly yes (docs/deployment.md).',
    );
  const writes = read('aof_last_write_status');
  return writes === null || writes === 'ok'
    ? ok(check, 'appendonly is on')
    : problem(check, `its last write failed: ${writes}`, "Look at the disk of Redis, and at Redis's log.");
}

function checkEvictionPolicy(read: RedisInfo): Finding {
  const policy = read('maxmemory_policy');
  return isEvicting(policy)
    ? problem(
        'redis eviction',
        `maxmemory-policy is ${policy}: when its memory is full, Redis deletes balances, reservations and jobs`,
        'Set maxmemory-policy to noeviction.',
      )
    : ok('redis eviction', policy ?? 'unknown');
}

/** Of its limit. Redis uses memory beside its data. */
const muchShare = 0.75;

function checkMemory(read: RedisInfo): Finding {
  const check = 'redis memory';
  const [used, max] = [Number(read('used_memory')), Number(read('maxmemory'))];
  const toMb = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
  if (!(max > 0))
    return warning(
      check,
      `${toMb(used)} used, without a limit: the kernel kills Redis when memory runs out`,
      'Set maxmemory to half of the memory of its machine or container.',
    );
  const found = `${toMb(used)} of ${toMb(max)} used`;
  return used / max > muchShare
    ? warning(check, found, 'Give Redis more memory (docs/scaling.md).')
    : ok(check, found);
}
