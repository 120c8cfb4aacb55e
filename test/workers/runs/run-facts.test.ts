import test from 'ava';
import { noUsage } from '../../../shared/catalog/cost.ts';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';
import { maxCallReason, maxRecordedCalls } from '../../../shared/ledger/usage-event.ts';
import type { EndedCall } from '../../../workers/routing/call-observer.ts';
import { RunFacts, type RunOutcome } from '../../../workers/runs/run-facts.ts';
import { noUpstreamUsage } from '../../../workers/upstreams/upstream.ts';

const prices = {
  date_of_use: '',
  type: 'tokens',
  prompt: 10,
  completion: 100,
  free_requests: false,
} as const;

const routeOf = (name: string, cost: CatalogRoute['cost'] = prices): CatalogRoute =>
  ({ cost, upstream: { name, kind: 'openai' } }) as CatalogRoute;

const call = (route: CatalogRoute, more: Partial<EndedCall> = {}): EndedCall => ({
  model: 'm',
  route,
  callClass: 'interactive',
  end: 'success',
  status: 200,
  reason: null,
  usage: null,
  waitedMs: 0,
  startedAtMs: 0,
  durationMs: 12.4,
  ...more,
});

const failed = { end: 'unavailable', status: 503, reason: 'overloaded' } as const;

const outcome = (more: Partial<RunOutcome> = {}): RunOutcome => ({
  usage: { ...noUsage, promptTokens: 5, completionTokens: 2 },
  counted: false,
  error: null,
  charged: true,
  reachedModel: true,
  ...more,
});

const usageCost = 5n * 10_000n + 2n * 100_000n;

const start = (): RunFacts => new RunFacts({ admittedAtMs: Date.now() });

test('a success at the first attempt is recorded in few bytes, and is billed for the usage of the request', (t) => {
  const facts = start();
  facts.noteCall(call(routeOf('vendor')));
  const recorded = facts.record(outcome());
  t.deepEqual(recorded, { calls: [['vendor', 12]], callStartsMs: [0], vendorCostNano: usageCost });
});

test('each attempt is recorded with its status and reason, and a failed one is billed for what the vendor reported', (t) => {
  const facts = start();
  const usage = { ...noUpstreamUsage, promptTokens: 7, completionTokens: 1 };
  facts.noteCall(call(routeOf('first'), failed));
  facts.noteCall(call(routeOf('second'), { ...failed, status: null, reason: 'broke off', usage }));
  facts.noteCall(call(routeOf('third')));
  t.deepEqual(facts.record(outcome()), {
    calls: [
      ['first', 12, 503, 'overloaded'],
      ['second', 12, null, 'broke off'],
      ['third', 12],
    ],
    callStartsMs: [0, 0, 0],
    vendorCostNano: usageCost + 7n * 10_000n + 100_000n,
  });
});

test('the start of each recorded call is known, in milliseconds from the admission', (t) => {
  const facts = start();
  const nowMs = performance.now();
  for (let i = 1; i <= maxRecordedCalls + 3; i++)
    facts.noteCall(call(routeOf('vendor'), { startedAtMs: nowMs + i * 1_000 }));
  const { calls, callStartsMs } = facts.record(outcome());
  t.is(callStartsMs?.length, calls?.length);
  for (const [i, seconds] of [
    [0, 1],
    [1, 2],
    [maxRecordedCalls - 1, maxRecordedCalls + 3],
  ] as const)
    t.is(Math.floor(callStartsMs![i]! / 1_000), seconds);
});

test('a request that is not charged costs what the vendor reported, or nothing', (t) => {
  const notCharged = outcome({ charged: false });
  const silent = start();
  silent.noteCall(call(routeOf('vendor'), failed));
  t.is(silent.record(notCharged).vendorCostNano, 0n);
  const reporting = start();
  const usage = { ...noUpstreamUsage, promptTokens: 3 };
  reporting.noteCall(call(routeOf('vendor'), { ...failed, usage }));
  t.is(reporting.record(notCharged).vendorCostNano, 30_000n);
  t.is(start().record(notCharged).vendorCostNano, 0n);
});

test('images that are not charged are billed by the vendor nevertheless', (t) => {
  const facts = start();
  const perImage = { ...prices, type: 'image', cost_per_image: 2 } as const;
  facts.noteCall(call(routeOf('vendor', perImage)));
  const vendorUsage = { ...noUsage, images: 3 };
  const recorded = facts.record(outcome({ charged: false, vendorUsage, usage: noUsage }));
  t.is(recorded.vendorCostNano, 6_000_000_000n);
});

test('the cost is unknown if the catalog does not say what a vendor charges that bills anything', (t) => {
  const facts = start();
  facts.noteCall(call(routeOf('silent', null), failed));
  facts.noteCall(call(routeOf('vendor')));
  t.is(facts.record(outcome()).vendorCostNano, usageCost);
  facts.noteCall(call(routeOf('unpriced', null)));
  t.is(facts.record(outcome()).vendorCostNano, null);
});

test('the counts of a vendor may be anything', (t) => {
  const facts = start();
  const usage = { ...noUpstreamUsage, promptTokens: 1.5, completionTokens: -3, cachedTokens: Number.NaN };
  facts.noteCall(call(routeOf('vendor'), { ...failed, usage }));
  t.is(facts.record(outcome({ charged: false })).vendorCostNano, 0n);
});

test('the number of attempts and the length of reasons are bounded; the first attempts and the last one are kept', (t) => {
  const facts = start();
  const reason = 'x'.repeat(5_000);
  for (let i = 0; i < 50; i++) facts.noteCall(call(routeOf(`vendor-${i}`), { ...failed, reason }));
  const { calls = [] } = facts.record(outcome());
  t.is(calls.length, maxRecordedCalls);
  t.is(calls[0]![0], 'vendor-0');
  t.is(calls.at(-1)![0], 'vendor-49');
  for (const [, , , text] of calls) t.is(text?.length, maxCallReason);
});
