import test from 'ava';
import { countSlots } from '../../../shared/routing/route-candidate.ts';
import { createRoute } from '../../support/routing.ts';

test('the lowest limit of a route applies, and the slots of different upstreams are added', (t) => {
  const apiKeys = ['k1', 'k2', 'k3'];
  t.is(countSlots([createRoute('a', { maxConcurrency: 8 })]), 8);
  t.is(countSlots([createRoute('a', { maxConcurrency: 64, maxConcurrencyPerKey: 5, apiKeys })]), 15);
  t.is(countSlots([createRoute('a', { maxConcurrency: 12, maxConcurrencyPerKey: 5, apiKeys })]), 12);
  t.is(
    countSlots([createRoute('a', { maxConcurrencyPerKey: 5 })]),
    5,
    'without keys, the limit per key applies once',
  );
  t.is(countSlots([createRoute('a', { routeConcurrency: 3 })]), 3);
  const shared = { upstream: 'both', maxConcurrency: 10 };
  t.is(countSlots([createRoute('a', shared), createRoute('b', { ...shared, routeConcurrency: 2 })]), 10);
  t.is(countSlots([createRoute('a', shared), createRoute('c', { maxConcurrency: 7 })]), 17);
});
