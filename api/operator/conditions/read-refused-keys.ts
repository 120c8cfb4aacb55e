import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { cooldownFields } from '../../../shared/routing/candidate-keys.ts';
import { isRefusal, parseCooldown } from '../../../shared/routing/cooldowns.ts';
import { listCandidates, type RouteCandidate } from '../../../shared/routing/route-candidate.ts';
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
  const byModel = models.map(({ id, routes }) => ({ id, candidates: routes.flatMap(listCandidates) }));
  const candidates = byModel.flatMap((model) => model.candidates);
  const upstreams = [...new Set(candidates.map(({ route }) => route.upstream.name))];
  const [now, ...cooldowns] = await Promise.all([
    nowMs,
    ...upstreams.map((name) => redis.hgetall(redisKeys.keysOnCooldown(name))),
  ]);
  const byUpstream = new Map(upstreams.map((name, i) => [name, cooldowns[i]!]));
  const findReason = (candidate: RouteCandidate): string | null => {
    const { key, keyOnRoute } = cooldownFields(candidate);
    const fields = byUpstream.get(candidate.route.upstream.name)!;
    for (const field of [key, keyOnRoute]) {
      const cooldown = parseCooldown(fields[field], now);
      if (cooldown !== null && isRefusal(cooldown)) return cooldown.reason;
    }
    return null;
  };
  const reasons = new Map<string, { readonly candidate: RouteCandidate; readonly reason: string }>();
  for (const candidate of candidates) {
    const reason = findReason(candidate);
    if (reason !== null) reasons.set(keyOf(candidate), { candidate, reason });
  }
  if (reasons.size === 0) return [];
  const keys = [...new Map(candidates.map((candidate) => [keyOf(candidate), candidate])).values()];
  const dead = byModel.filter(
    (model) => model.candidates.length > 0 && model.candidates.every((one) => findReason(one) !== null),
  );
  return Array.from(reasons.values(), ({ candidate, reason }) => {
    const { name: upstream } = candidate.route.upstream;
    const ofUpstream = keys.filter(({ route }) => route.upstream.name === upstream);
    return {
      upstream,
      fingerprint: candidate.fingerprint,
      reason,
      usableKeys: ofUpstream.filter((one) => !reasons.has(keyOf(one))).length,
      keys: ofUpstream.length,
      deadModels: dead
        .filter((model) => model.candidates.some((one) => keyOf(one) === keyOf(candidate)))
        .map(({ id }) => id),
    };
  });
}

const keyOf = ({ route, fingerprint }: RouteCandidate): string => `${route.upstream.name} ${fingerprint}`;
