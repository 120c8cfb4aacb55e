import test from 'ava';
import { createRoute } from '../../support/routing.ts';
import { createSeededRandom } from '../../crash/seeded-random.ts';
import { orderCandidates } from '../../../workers/routing/order-candidates.ts';

test('the first candidate is chosen randomly by route weight, which is split among the keys of the route', (t) => {
  const routes = [
    createRoute('a', { weight: 3, apiKeys: ['k1', 'k2', 'k3'] }),
    createRoute('b', { weight: 1, apiKeys: [] }),
  ];
  const seeded = createSeededRandom('1');
  const random = (): number => seeded.next();
  const counts = new Map<string, number>();
  for (let i = 0; i < 8_000; i++) {
    const [first] = orderCandidates(routes, [], random);
    const name = `${first!.route.id}:${first!.apiKey}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  for (const name of ['a:k1', 'a:k2', 'a:k3', 'b:null']) {
    const share = (counts.get(name) ?? 0) / 8_000;
    t.true(Math.abs(share - 0.25) < 0.03, `${name}: ${share}`);
  }
});

test('the order contains every candidate once, except those that failed', (t) => {
  const routes = [createRoute('a', { apiKeys: ['k1', 'k2'] }), createRoute('b', { apiKeys: ['k1'] })];
  const all = orderCandidates(routes, [], Math.random);
  t.is(new Set(all.map((candidate) => `${candidate.route.id} ${candidate.apiKey}`)).size, 3);
  const remaining = orderCandidates(routes, all.slice(0, 1), Math.random);
  t.is(remaining.length, 2);
  t.false(
    remaining.some((candidate) => candidate.route === all[0]!.route && candidate.apiKey === all[0]!.apiKey),
  );
  t.deepEqual(orderCandidates(routes, all, Math.random), []);
  t.deepEqual(orderCandidates([], [], Math.random), []);
});

test('the order contains a random sample of limited size if there are very many keys', (t) => {
  const apiKeys = Array.from({ length: 500 }, (_, i) => `key-${i}`);
  t.is(orderCandidates([createRoute('a', { apiKeys })], [], Math.random).length, 128);
});
