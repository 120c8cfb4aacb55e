import test from 'ava';
import {
  parseModelFields,
  parseTotalFields,
  parseTrafficFields,
  toModelFields,
  toTotalFields,
  toTrafficFields,
} from '../../../shared/ledger/request-stats-fields.ts';
import { RequestSums, type SettledRequest } from '../../../shared/ledger/request-sums.ts';
import { ModelTraffic } from '../../../shared/ledger/traffic-sums.ts';

const success: SettledRequest = {
  model: 'a',
  success: true,
  responseCode: 200,
  durationMs: 120,
  billedMs: 100,
  promptTokens: 7,
  completionTokens: 11,
  isAwaited: true,
  costNano: 0n,
  vendorCostNano: null,
};
const fail = (responseCode: number): SettledRequest => ({ ...success, success: false, responseCode });

test('a status of 500 or more is a failure of the model; a rejected request or a disconnected caller is not', (t) => {
  const sums = new RequestSums();
  t.is(sums.requests, 0);
  for (const request of [success, fail(500), fail(502), fail(504), fail(422), fail(499)]) sums.add(request);
  t.deepEqual(sums.totals, { requests: 6, succeeded: 1, failed: 3, tokens: 6 * 18 });
  t.deepEqual(Object.fromEntries(sums.models), {
    a: {
      succeeded: 1,
      failed: 3,
      durationMs: 120,
      vendorMs: 100,
      promptTokens: 7,
      completionTokens: 11,
    },
  });
});

test('a clock that was set back does not subtract time', (t) => {
  const sums = new RequestSums();
  sums.add({ ...success, durationMs: -5, billedMs: -3 });
  t.like(sums.models.get('a'), { succeeded: 1, durationMs: 0, vendorMs: 0 });
});

test('merging two objects gives the same sums as adding all requests to one object', (t) => {
  const [all, some, others] = [new RequestSums(), new RequestSums(), new RequestSums()];
  for (const request of [success, { ...success, model: 'b' }]) {
    some.add(request);
    all.add(request);
  }
  for (const request of [success, fail(502), fail(422)]) {
    others.add(request);
    all.add(request);
  }
  some.addAll(others);
  t.deepEqual(some.models, all.models);
  t.deepEqual(some.totals, all.totals);
});

test('sums can be read back from their Redis fields, for any model name', (t) => {
  const sums = new RequestSums();
  for (const model of ['lab/deep.thought:42', 'failed:x', '__proto__', ' ', 'a\nb'])
    for (const request of [success, fail(500)]) sums.add({ ...request, model });
  const flat = toModelFields(sums.models).flat().map(String);
  t.deepEqual(parseModelFields(['step', '1', ...flat]), new Map(sums.models));
  const totals = toTotalFields(sums.totals).flat().map(String);
  t.deepEqual(parseTotalFields(['step', '1', ...totals]), sums.totals);
});

test('operators also see rejections, money and durations, and can read them back from Redis', (t) => {
  const sums = new ModelTraffic();
  const paid = { ...success, costNano: 5_000_000_000_000_000n, vendorCostNano: 3n, firstTokenMs: 60 };
  for (const request of [paid, { ...success, costNano: 7n }, fail(502), fail(422)]) sums.add(request);
  t.is(sums.requests, 4);
  t.like(sums.of('a'), {
    succeeded: 2,
    failed: 1,
    rejected: 1,
    costNano: 5_000_000_000_000_007n,
    vendorCostNano: 3n,
    costed: 1,
    costedNano: 5_000_000_000_000_000n,
  });
  const fields = Object.fromEntries(
    toTrafficFields(sums.models).map(([name, amount]) => [name, String(amount)]),
  );
  t.deepEqual(parseTrafficFields({ step: '1', 'later0:a': '4', ...fields }), sums.models);
});

test('sums split into parts are the same sums', (t) => {
  for (const create of [() => new RequestSums(), () => new ModelTraffic()]) {
    const [sums, again] = [create(), create()] as (RequestSums & ModelTraffic)[];
    for (let i = 0; i < 25; i++) sums!.add({ ...success, model: `m${i % 7}`, durationMs: i * 100 });
    const parts = [...sums!.listParts(3)];
    t.deepEqual(
      parts.map(({ models }) => models.size),
      [3, 3, 1],
    );
    for (const part of parts) again!.addAll(part as RequestSums & ModelTraffic);
    t.deepEqual(again!.models, sums!.models);
    t.is(again!.requests, 25);
  }
});
