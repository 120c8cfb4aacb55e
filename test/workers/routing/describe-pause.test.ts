import test from 'ava';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import { describePause, type ReadCandidate } from '../../../workers/routing/describe-pause.ts';
import { createRoute } from '../../support/routing.ts';

/** How operators learn why no vendor was called. */

type State = ReadCandidate['state'];

const free: State = { cooldown: null, breaker: 'closed' };
const refused = (isForAll = true): State => ({
  cooldown: { forMs: 5_000, reason: 'refused with 401 (invalid_api_key)', isForAll },
  breaker: 'closed',
});

function describe(upstream: string, apiKeys: readonly string[], states: readonly State[]): ReadCandidate[] {
  const candidates = listCandidates(createRoute(`r-${upstream}`, { upstream, apiKeys }));
  return candidates.map((candidate, i) => ({ candidate, state: states[i]! }));
}

test('every upstream that cannot be called is named, with the reason', (t) => {
  const south = describe('south', ['a', 'b'], [refused(), refused()]);
  t.is(describePause(south), 'every key of south is on cooldown: refused with 401 (invalid_api_key)');
  const north = describe('north', ['a'], [{ ...free, breaker: 'open' }]);
  t.is(
    describePause([...south, ...north]),
    'every key of south is on cooldown: refused with 401 (invalid_api_key); the circuit breaker of north is open after failed calls',
  );
});

test('a cooldown of some keys, for some accounts, or of an upstream without keys is called that', (t) => {
  t.regex(
    describePause(describe('south', ['a', 'b'], [refused(), free]))!,
    /^a key of south is on cooldown:/,
  );
  t.regex(
    describePause(describe('south', ['a'], [refused(false)]))!,
    /^every key of south is on cooldown for some accounts:/,
  );
  t.regex(describePause(describe('south', [], [refused()]))!, /^south is on cooldown:/);
});

test('there is no reason if all can be called again', (t) => {
  t.is(describePause(describe('south', ['a'], [free])), null);
});
