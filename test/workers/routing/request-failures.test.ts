import test from 'ava';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { RequestFailures } from '../../../workers/routing/request-failures.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

/** Which failures of a request count towards the circuit breakers of its routes. */

const slotOf = (route: string, isProbe = false): CallSlot =>
  ({ candidate: { route: createRoute(route), apiKey: null, fingerprint: 'none' }, isProbe }) as never;
const failed = (status: number | null, message = 'it broke'): UpstreamError =>
  new UpstreamError('unavailable', message, { status });

/** A limiter that writes down what counts: `route` if a failure counts, `route?` if it counts unless others are served. */
function createLimiter(): { counted: string[]; limiter: ConstructorParameters<typeof RequestFailures>[0] } {
  const counted: string[] = [];
  return {
    counted,
    limiter: {
      release: ({ candidate }, outcome) => void (outcome === 'bad' && counted.push(candidate.route.id)),
      reportFailure: ({ candidate }, _, unlessServedForMs) =>
        void counted.push(`${candidate.route.id}${unlessServedForMs === null ? '' : '?'}`),
    },
  };
}

for (const [title, statuses, expected] of [
  ['a 503 counts at once, and only the first of a request', [503, 503, 503], ['a']],
  ['a lost connection counts at once, and only the first of a request', [null, null], ['a']],
  ['a single 500 counts', [500], ['a']],
  ['a 500 that is repeated counts once, unless the route served others', [500, 500, 500], ['a?']],
  ['a 500 that is followed by another failure counts', [500, 503], ['a']],
] as const) {
  test(title, (t) => {
    const { counted, limiter } = createLimiter();
    const failures = new RequestFailures(limiter);
    for (const status of statuses) failures.add(slotOf('a'), failed(status), ['ann']);
    failures.count();
    failures.count();
    t.deepEqual(counted, expected);
  });
}

test('words that differ only in numbers are the same, and other words are not', (t) => {
  const { counted, limiter } = createLimiter();
  for (const second of ['request 17 broke', 'out of memory']) {
    const failures = new RequestFailures(limiter);
    failures.add(slotOf('a'), failed(500, 'request 4 broke'), ['ann']);
    failures.add(slotOf('a'), failed(500, second), ['ann']);
    failures.count();
  }
  t.deepEqual(counted, ['a?', 'a']);
});

test('the failure of one route counts when another is called', (t) => {
  const { counted, limiter } = createLimiter();
  const failures = new RequestFailures(limiter);
  failures.add(slotOf('a'), failed(500), ['ann']);
  failures.count('a');
  t.deepEqual(counted, []);
  failures.count('b');
  t.deepEqual(counted, ['a']);
});

test('a failed probe always counts: it decides whether other calls may follow', (t) => {
  const { counted, limiter } = createLimiter();
  const failures = new RequestFailures(limiter);
  failures.add(slotOf('a'), failed(503), ['ann']);
  failures.add(slotOf('a', true), failed(500), ['ann']);
  failures.count();
  t.deepEqual(counted, ['a', 'a']);
});

test('of a searched call, any 5xx counts only once the search says so', (t) => {
  const { counted, limiter } = createLimiter();
  const failures = new RequestFailures(limiter, { isSearched: true });
  failures.add(slotOf('a'), failed(503), ['ann', 'bob']);
  failures.add(slotOf('a'), failed(500), ['ann']);
  t.deepEqual(counted, []);
  failures.forget();
  failures.count();
  t.deepEqual(counted, []);
});
