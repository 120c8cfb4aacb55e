import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { ChatJob } from '../../../shared/queue/job-kinds.ts';
import type { Logger } from '../../../shared/runtime/logger.ts';
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
  const note = (fields: object): number => logged.push(fields);
  const log = { error: note, warn: note } as unknown as Logger;
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
const say = (meter: ChatMeter, count: number): void =>
  meter.takeDelta({ index: 0, delta: { ...words(count) } });

test('a finished call is billed exactly as reported, even below its visible output', (t) => {
  const { meter, report } = start();
  say(meter, 50);
  report({ promptTokens: 12, completionTokens: 7 });
  t.like(meter.measure('complete'), { promptTokens: 12, completionTokens: 7, counted: false });
});

test('an unfinished call is billed the maximum of reported and visible usage, and nothing unseen if the stream broke', (t) => {
  const { meter, report } = start({}, { reasoning: true });
  report({ promptTokens: 12, completionTokens: 1 }, true);
  say(meter, 50);
  meter.end();
  t.like(meter.measure('broken'), { promptTokens: 12, completionTokens: 50, counted: true });
  report({ promptTokens: 12, completionTokens: 400 });
  say(meter, 1);
  t.like(meter.measure('broken'), { promptTokens: 12, completionTokens: 400, counted: true });
  t.is(meter.completionTokens, 400, 'the usage in the frames');
});

test('a report that covers everything so far is billed as it is after a disconnect; later output makes it outdated', (t) => {
  const { meter, report } = start({}, { reasoning: true });
  say(meter, 50);
  report({ promptTokens: 12, completionTokens: 45 });
  t.true(meter.isCovered);
  t.like(meter.measure('left'), { promptTokens: 12, completionTokens: 45, counted: false });
  say(meter, 1);
  t.false(meter.isCovered);
  report({ promptTokens: 12, completionTokens: 46 }, true);
  t.false(meter.isCovered);
});

test('placeholder zeros do not make a prompt free', (t) => {
  const { meter, report } = start();
  report({ promptTokens: 0, completionTokens: 0 }, true);
  meter.end();
  t.like(meter.measure('left'), { promptTokens: 10, completionTokens: 0, counted: true });
});

test('reports beyond what the request allows are ignored, and logged once with model and route', (t) => {
  const { meter, logged, report } = start({ n: 2, max_tokens: 100 });
  say(meter, 5);
  // Two choices of a hundred tokens each, and some slack.
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

test('a caller that disconnects from a reasoning model pays for the time without output, but not for the time with output', (t) => {
  let nowMs = 1_000;
  const { meter } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  nowMs += 3_000;
  for (let word = 0; word < 400; word++) {
    say(meter, 1);
    nowMs += 50;
  }
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 400 + 3_000 + 50, counted: true });
  nowMs += 2_000;
  meter.end();
  // From the last word on.
  t.like(meter.measure('left'), { completionTokens: 400 + 3_000 + 2_050 });
});

test('reasoning summaries do not end the silence, and neither does output of one of several choices', (t) => {
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

test('a complete response without usage is billed for hidden reasoning, and for its visible reasoning if there is any', (t) => {
  for (const { what, body, published, delta, unseen } of [
    { what: 'hidden', body: {}, published: { reasoning: true }, delta: {}, unseen: 5_000 },
    {
      what: 'shown',
      body: {},
      published: { reasoning: true },
      delta: { reasoning_content: ' so' },
      unseen: 0,
    },
    {
      what: 'shown as newer servers do',
      body: {},
      published: { reasoning: true },
      delta: { reasoning: ' so' },
      unseen: 0,
    },
    {
      what: 'turned off',
      body: { reasoning_effort: 'none' },
      published: { reasoning: true },
      delta: {},
      unseen: 0,
    },
    { what: 'turned on', body: { reasoning_effort: 'low' }, published: {}, delta: {}, unseen: 5_000 },
    { what: 'of a model that does not reason', body: {}, published: {}, delta: {}, unseen: 0 },
    {
      what: 'beyond the reservation',
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
    say(meter, 1);
    meter.end();
    const shown = Object.keys(delta).length;
    t.like(
      meter.measure('complete'),
      { promptTokens: 10, completionTokens: 1 + shown + unseen, counted: true },
      what,
    );
    t.is(meter.measure('broken').completionTokens, 1 + shown, what);
  }
});

test('a report beyond max_tokens is accepted up to the visible output, or up to what a reasoning model can generate in the time', (t) => {
  for (const { seen, seconds, published, reported, isBelieved } of [
    { seen: 500, seconds: 0, published: {}, reported: 500, isBelieved: true },
    { seen: 500, seconds: 0, published: {}, reported: 1_000, isBelieved: false },
    { seen: 1, seconds: 5, published: { reasoning: true }, reported: 5_000, isBelieved: true },
    { seen: 1, seconds: 5, published: { reasoning: true }, reported: 6_000, isBelieved: false },
    { seen: 1, seconds: 5, published: {}, reported: 5_000, isBelieved: false },
    { seen: 9_000, seconds: 60, published: { reasoning: true }, reported: 20_000, isBelieved: false },
  ]) {
    let nowMs = 1_000;
    const { meter, report, logged } = start({ max_tokens: 100 }, published, () => nowMs);
    nowMs += seconds * 1_000;
    say(meter, seen);
    report({ promptTokens: 12, completionTokens: reported });
    meter.end();
    t.is(meter.measure('complete').counted, !isBelieved, `${reported} of ${seen} seen in ${seconds} s`);
    t.is(logged.length, 1, 'the operator is warned of both');
  }
});
test('a report becomes outdated: a model that may generate hidden output is billed for the silence since then, any other is not', (t) => {
  for (const { published, unseen } of [
    { published: { reasoning: true }, unseen: 5_000 },
    { published: {}, unseen: 0 },
  ]) {
    let nowMs = 1_000;
    const { meter, report } = start({ max_tokens: 100_000 }, published, () => nowMs);
    nowMs += 20_000;
    say(meter, 3);
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

test('output after a report is added to it, and so is hidden output between the two', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  nowMs += 20_000;
  report({ promptTokens: 12, completionTokens: 2_000 });
  nowMs += 3_000;
  say(meter, 7);
  nowMs += 100;
  meter.end();
  t.like(meter.measure('left'), { completionTokens: 2_000 + 3_000 + 7 + 100, counted: true });
});

test('a model generates nothing after its end: the usage reported with it does not become outdated', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start({ max_tokens: 100_000 }, { reasoning: true }, () => nowMs);
  say(meter, 1);
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

test('a further call for the same response is not in the report of the previous one', (t) => {
  let nowMs = 1_000;
  const { meter, report } = start(
    { max_tokens: 100_000, web_search: true },
    { web_search: true },
    () => nowMs,
  );
  say(meter, 1);
  report({ promptTokens: 90, completionTokens: 10 });
  nowMs += 300;
  t.true(meter.isCovered);
  meter.markSent();
  t.false(meter.isCovered);
  nowMs += 3_000;
  meter.end();
  // The prompt, and the possible results of two searches.
  t.like(meter.measure('left'), { promptTokens: 220, completionTokens: 10 + 3_000, counted: true });
});
