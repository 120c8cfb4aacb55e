import test from 'ava';
import type { CatalogRoute, CatalogUpstream } from '../../../shared/catalog/catalog-schema.ts';
import { chooseRoute } from '../../../workers/routing/choose-route.ts';

const route = (name: string, weight: number, apiKeys: string[]): CatalogRoute => ({
  id: name,
  upstream: { name, apiKeys } as unknown as CatalogUpstream,
  model: name,
  weight,
  maxConcurrency: null,
  thinking: null,
  drops: new Set(),
});

test('routes are chosen by weight, and a route’s keys share it', (t) => {
  const routes = [route('a', 3, ['k1', 'k2', 'k3']), route('b', 1, [])];
  const counts = new Map<string, number>();
  for (let i = 0; i < 400; i++) {
    const choice = chooseRoute(routes, [], i / 400)!;
    const name = `${choice.route.model}:${choice.apiKey}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  t.deepEqual(
    [...counts.entries()],
    [
      ['a:k1', 100],
      ['a:k2', 100],
      ['a:k3', 100],
      ['b:null', 100],
    ],
  );
});

test('what failed is not chosen again while something else is left', (t) => {
  const routes = [route('a', 1, ['k1', 'k2'])];
  const first = chooseRoute(routes, [], 0)!;
  const second = chooseRoute(routes, [first], 0)!;
  t.not(second.apiKey, first.apiKey);
  t.not(chooseRoute(routes, [first, second], 0), null);
  t.is(chooseRoute([], [], 0), null);
});
