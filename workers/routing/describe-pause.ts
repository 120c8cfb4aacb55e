import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { CandidateState } from '../../shared/routing/route-state-store.ts';

export interface ReadCandidate {
  readonly candidate: RouteCandidate;
  readonly state: Pick<CandidateState, 'cooldown' | 'breaker'>;
}

/**
 * Describes which upstreams cannot be called, and why, such as `every key of south is on cooldown: refused with 401
 * (invalid_api_key)`. Returns null if there is no known reason.
 */
export function describePause(candidates: readonly ReadCandidate[]): string | null {
  const upstreams = new Map<string, ReadCandidate[]>();
  for (const one of candidates) {
    const { name } = one.candidate.route.upstream;
    const own = upstreams.get(name) ?? [];
    own.push(one);
    upstreams.set(name, own);
  }
  const reasons = Array.from(upstreams, ([name, own]) => describeUpstream(name, own));
  return reasons.filter((reason) => reason !== null).join('; ') || null;
}

function describeUpstream(name: string, candidates: readonly ReadCandidate[]): string | null {
  const cooldowns = candidates.flatMap(({ state: { cooldown } }) => (cooldown === null ? [] : [cooldown]));
  const parts: string[] = [];
  if (cooldowns.length > 0) {
    const all = cooldowns.length === candidates.length ? 'every key' : 'a key';
    const what = candidates.every(({ candidate }) => candidate.apiKey === null) ? name : `${all} of ${name}`;
    const whom = cooldowns.every(({ isForAll }) => isForAll) ? '' : ' for some accounts';
    const reasons = [...new Set(cooldowns.map(({ reason }) => reason))];
    parts.push(`${what} is on cooldown${whom}: ${reasons.join(', ')}`);
  }
  if (candidates.some(({ state: { breaker } }) => breaker !== 'closed'))
    parts.push(`the circuit breaker of ${name} is open after failed calls`);
  return parts.length === 0 ? null : parts.join(', and ');
}
