import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { ChatJob } from '../../../shared/work/queue/job-kinds.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { ChatMeter } from '../../../workers/runs/chat-meter.ts';
import { noUpstreamUsage, type UpstreamUsage } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

const route = createRoute('lab');

interface Rig {
  readonly meter: ChatMeter;
  readonly logged: object[];
  readonly report: (usage: Partial<UpstreamUsage>, isPartial?: true) => void;
}

function start(
  body: Partial<ChatJob['body']> = {},
  published: Partial<CatalogModel['published']> = {},
  nowMs?: () => number,
): Rig {
  const job = {
    request: { promptTokens: 10 },
    body: { stream: true, max_tokens: 1_000, ...body },
  } as unknown as ChatJob;
  const model = { id: 'm', context: 8_192, tokensPerSearch: 100, routes: [route], published };
  const logged: object[] = [];
  const record = (fields: object): number => logged.push(fields);
  const log = { error: record, warn: record } as unknown as Logger;
  const meter = new ChatMeter(job, nowMs);
  meter.start(model as unknown as CatalogModel, route, log);
  meter.markSent();
  return {
    meter,
    logged,
    report: (usage, isPartial) =>
      meter.takeUsage({
        type: 'usage',
        usage: { ...noUpstreamUsage, ...usage },
        ...(isPartial && { isPartial }),
      }),
  };
}

const words = (count: number): object => ({ content: ' cat'.repeat(count) });
const emit = (meter: ChatMeter, count: number): void =>
  meter.takeDelta({ index: 0, delta: { ...words(count) } });

test('charges exactly the reported usage for a complete call, even if more output was seen', (t) => {
  const { meter, report } = start();
  emit(meter, 50);
  report({ promptTokens: 12, completionTokens: 7 });
  t.like(meter.measure('complete'), { promptTokens: 12, completionTokens: 7, counted: false });
});

test('charges the larger of reported and seen usage for an incomplete call, without unseen output if the vendor broke it off', (t) => {
  const { meter, report } = start({}, { reasoning: true });
  report({ promptTokens: 12, completionTokens: 1 }, true);
  emit(meter, 50);
  meter.end();
  t.like(meter.measure('broken'), { promptTokens: 12, completionTokens: 50, counted: true });
  report({ promptTokens: 12, completionTokens: 400 });
  emit(meter, 1);
  t.like(meter.measure('broken'), { promptTokens: 12, completionTokens: 400, counted: true });
  t.is(meter.completionTokens, 400, 'the completion tokens sent in frames');
});

test('after a disconnect, a report that covers all output is charged as it is; later output makes the report outdated', (t) => {
  const { meter, report } = start({}, { reasoning: true });
  emit(meter, 50);
  report({ promptTokens: 12, completionTokens: 45 });
  t.true(meter.isCovered);
  t.like(meter.measure('left'), { promptTokens: 12, completionTokens: 45, counted: false });
  emit(meter, 1);
  t.false(meter.isCovered);
  report({ promptTokens: 12, completionTokens: 46 }, true);
  t.false(meter.isCovered);
});

test('charges for the prompt even if a partial report has placeholder zeros', (t) => {
  const { meter, report } = start();
  report({ promptTokens: 0, completionTokens: 0 }, true);
  meter.end();
  t.like(meter.measure('left'), { promptTokens: 10, completionTokens: 0, counted: true });
});

for (const { title, emitted, reported, charged } of [
  { title: 'the first of two alike', emitted: [50, 50], reported: 50, charged: 100 },
  { title: 'the first of two alike, in a larger vocabulary', emitted: [50, 50], reported: 35, charged: 100 },
  { title: 'the first of two alike, in a smaller vocabulary', emitted: [50, 50], reported: 65, charged: 100 },
  { title: 'a long first choice', emitted: [100, 40], reported: 100, charged: 140 },
  { title: 'a short first choice', emitted: [10, 200], reported: 12, charged: 210 },
  { title: 'the first of four', emitted: [50, 50, 50, 50], reported: 50, charged: 200 },
  { title: 'all choices', emitted: [50, 50], reported: 100, charged: 100 },
  { title: 'all choices, in a larger vocabulary', emitted: [50, 50], reported: 75, charged: 75 },
  { title: 'all choices, in a smaller vocabulary', emitted: [50, 50], reported: 165, charged: 165 },
  {
    title: 'the only choice that it returned, in a larger vocabulary',
    emitted: [50, 0],
    reported: 30,
    charged: 30,
  },
  { title: 'all choices, of which the first is empty', emitted: [0, 50], reported: 50, charged: 50 },
]) {
  test(`if a server reports the usage of ${title}, all choices are charged`, (t) => {
    const { meter, report } = start({ n: emitted.length });
    for (const [index, count] of emitted.entries()) meter.takeDelta({ index, delta: { ...words(count) } });
    report({ promptTokens: 12, completionTokens: reported });
    t.like(meter.measure('complete'), { completionTokens: charged, counted: charged !== reported });
  });
}

test('reports above what the request allows are ignored, and logged once with model and route', (t) => {
  const { meter, logged, report } = start({ n: 2, max_tokens: 100 });
  emit(meter, 5);
  // Two choices of a hundred tokens, plus some slack.
  report({ promptTokens: 12, completionTokens: 300, reasoningTokens: 250 });
  t.is(logged.length, 0);
  for (const completionTokens of [500, 600])
    report({ promptTokens: 12, completionTokens, reasoningTokens: 450 });
  t.like(meter.measure('complete'), {
    promptTokens: 12,
    completionTokens: 5,
    reasoningTokens: null,
    counted: true,
  });
  report({ promptTokens: 30_000, completionTokens: 5, cachedTokens: 29_000 });
  t.like(meter.measure('complete'), {
    promptTokens: 10,
    completionTokens: 5,
    cachedTokens: null,
    counted: true,
  });
  t.is(logged.length, 1);
  t.like(logged[0], { model: 'm', route: 'lab', reported: { promptTokens: 12, completionTokens: 500 } });
});

test('after a disconnect, charges for the time in which a reasoning model was silent, not for the time in which it sent output', (t) => {
  let nowMs = 1_000;
  const { meter } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  nowMs += 3_000;
  for (let word = 0; word < 400; word++) {
    emit(meter, 1);
    nowMs += 50;
  }
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 400 + 3_000 + 50, counted: true });
  nowMs += 2_000;
  meter.end();
  // The silent time starts at the last output.
  t.like(meter.measure('left'), { completionTokens: 400 + 3_000 + 2_050 });
});

test('silent time continues during reasoning summaries, non-streamed calls and output of only one of several choices', (t) => {
  let nowMs = 1_000;
  for (const { body, delta } of [
    { body: { stream: false }, delta: words(1) },
    { body: { n: 2 }, delta: words(1) },
    { body: {}, delta: { reasoning_details: [] } },
  ]) {
    const { meter } = start({ max_tokens: 100_000, ...body }, { reasoning: true }, () => nowMs);
    for (let step = 0; step < 20; step++) {
      nowMs += 100;
      meter.takeDelta({ index: 0, delta: { ...delta } });
    }
    meter.end();
    t.true(meter.measure('left').completionTokens >= 2_000, JSON.stringify(body));
  }
});

test('without a usage report, charges for the time of hidden reasoning in a complete response; shown reasoning is tokenized as output', (t) => {
  for (const { label, body, published, delta, unseen } of [
    { label: 'hidden', body: {}, published: { reasoning: true }, delta: {}, unseen: 5_000 },
    {
      label: 'shown',
      body: {},
      published: { reasoning: true },
      delta: { reasoning_content: ' so' },
      unseen: 0,
    },
    {
      label: 'shown as newer servers do',
      body: {},
      published: { reasoning: true },
      delta: { reasoning: ' so' },
      unseen: 0,
    },
    {
      label: 'turned off',
      body: { reasoning_effort: 'none' },
      published: { reasoning: true },
      delta: {},
      unseen: 0,
    },
    { label: 'turned on', body: { reasoning_effort: 'low' }, published: {}, delta: {}, unseen: 5_000 },
    { label: 'from a model that does not reason', body: {}, published: {}, delta: {}, unseen: 0 },
    {
      label: 'beyond the reservation',
      body: { max_tokens: 1_000 },
      published: { reasoning: true },
      delta: {},
      unseen: 999,
    },
  ] as const) {
    let nowMs = 1_000;
    const { meter } = start({ max_tokens: 100_000, ...body }, published, () => nowMs);
    nowMs += 5_000;
    if (Object.keys(delta).length > 0) meter.takeDelta({ index: 0, delta });
    emit(meter, 1);
    meter.end();
    const shown = Object.keys(delta).length;
    t.like(
      meter.measure('complete'),
      { promptTokens: 10, completionTokens: 1 + shown + unseen, counted: true },
      label,
    );
    t.is(meter.measure('broken').completionTokens, 1 + shown, label);
  }
});

test('a report above max_tokens is accepted up to the output seen, or up to what a reasoning model can generate in the time', (t) => {
  for (const { seen, seconds, published, reported, isAccepted } of [
    { seen: 500, seconds: 0, published: {}, reported: 500, isAccepted: true },
    { seen: 500, seconds: 0, published: {}, reported: 1_000, isAccepted: false },
    { seen: 1, seconds: 5, published: { reasoning: true }, reported: 5_000, isAccepted: true },
    { seen: 1, seconds: 5, published: { reasoning: true }, reported: 6_000, isAccepted: false },
    { seen: 1, seconds: 5, published: {}, reported: 5_000, isAccepted: false },
    { seen: 9_000, seconds: 60, published: { reasoning: true }, reported: 20_000, isAccepted: false },
  ]) {
    let nowMs = 1_000;
    const { meter, report, logged } = start({ max_tokens: 100 }, published, () => nowMs);
    nowMs += seconds * 1_000;
    emit(meter, seen);
    report({ promptTokens: 12, completionTokens: reported });
    meter.end();
    t.is(meter.measure('complete').counted, !isAccepted, `${reported} of ${seen} seen in ${seconds} s`);
    t.is(logged.length, 1, 'logged for operators, whether accepted or not');
  }
});

test('charges for the silence since the last report only if the model may generate unseen output', (t) => {
  for (const { published, unseen } of [
    { published: { reasoning: true }, unseen: 5_000 },
    { published: {}, unseen: 0 },
  ]) {
    let nowMs = 1_000;
    const { meter, report } = start({ max_tokens: 100_000 }, published, () => nowMs);
    nowMs += 20_000;
    emit(meter, 3);
    report({ promptTokens: 12, completionTokens: 2_000 });
    nowMs += 400;
    t.true(meter.isCovered);
    nowMs += 4_600;
    t.is(meter.isCovered, unseen === 0);
    meter.end();
    t.like(meter.measure('left'), {
      promptTokens: 12,
      completionTokens: 2_000 + unseen,
      counted: unseen > 0,
    });
  }
});

test('after a disconnect, the output since the last report and what may have been generated unseen since then are added to that report', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  nowMs += 20_000;
  report({ promptTokens: 12, completionTokens: 2_000 });
  nowMs += 3_000;
  emit(meter, 7);
  nowMs += 100;
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 2_000 + 3_000 + 7 + 100, counted: true });
});

test('a model generates nothing after it finishes, so usage reported afterwards does not become outdated', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  emit(meter, 1);
  nowMs += 100;
  meter.finish(0);
  nowMs += 5_000;
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 101, counted: true });
  report({ promptTokens: 12, completionTokens: 40 });
  nowMs += 5_000;
  t.true(meter.isCovered);
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 40, counted: false });
});

test('the report of one call does not cover the next call for the same response', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start(
    { max_tokens: 100_000, web_search: true },
    { web_search: true },
    () => nowMs,
  );
  emit(meter, 1);
  report({ promptTokens: 90, completionTokens: 10 });
  nowMs += 300;
  t.true(meter.isCovered);
  meter.markSent();
  t.false(meter.isCovered);
  nowMs += 3_000;
  meter.end();
  // The prompt tokens include the possible results of two searches.
  t.like(meter.measure('left'), { promptTokens: 220, completionTokens: 10 + 3_000, counted: true });
});
