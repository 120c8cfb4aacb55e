import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { cooldownFields } from '../../../shared/routing/candidate-keys.ts';
import { isRefusal, parseCooldown } from '../../../shared/routing/cooldowns.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import type { RefusedKey } from './system-reading.ts';

/**
 * Reads which of the catalog's keys are on cooldown for all accounts because their upstream refuses them. One round
 * trip. A refusal that concerns only some accounts does not count: their requests may be the reason.
 * @param nowMs Redis's time
 */
export async function readRefusedKeys(
  redis: RedisClient,
  { models }: Pick<Catalog, 'models'>,
  nowMs: Promise<number>,
): Promise<RefusedKey[]> {
  const candidates = models.flatMap(({ routes }) => routes).flatMap(listCandidates);
  const upstreams = [...new Set(candidates.map(({ route }) => route.upstream.name))];
  const [now, ...cooldowns] = await Promise.all([
    nowMs,
    ...upstreams.map((name) => redis.hgetall(redisKeys.keysOnCooldown(name))),
  ]);
  const byUpstream = new Map(upstreams.map((name, i) => [name, cooldowns[i]!]));
  const refused = new Map<string, RefusedKey>();
  for (const candidate of candidates) {
    const { name: upstream } = candidate.route.upstream;
    const { key, keyOnRoute } = cooldownFields(candidate);
    for (const field of [key, keyOnRoute]) {
      const cooldown = parseCooldown(byUpstream.get(upstream)![field], now);
      if (cooldown === null || !isRefusal(cooldown)) continue;
      const { fingerprint } = candidate;
      refused.set(`${upstream} ${fingerprint}`, { upstream, fingerprint, reason: cooldown.reason });
    }
  }
  return [...refused.values()];
}
