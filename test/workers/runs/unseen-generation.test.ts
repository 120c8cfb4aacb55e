import test from 'ava';
import type { CatalogModel, CatalogUpstream } from '../../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { UnseenGeneration } from '../../../workers/runs/unseen-generation.ts';
import { createRoute } from '../../support/routing.ts';

interface Rig {
  readonly unseen: UnseenGeneration;
  readonly emit: (afterMs: number, delta: object, index?: number) => void;
  readonly pass: (ms: number) => void;
}

function start(
  kind: CatalogUpstream['kind'],
  body: Partial<ChatRequest> = {},
  published: Partial<CatalogModel['published']> = {},
  request: { readonly jobAttempt?: number } = {},
): Rig {
  let nowMs = 1_000;
  const known = createRoute('lab');
  const route = { ...known, upstream: { ...known.upstream, kind } };
  const chatRequest = { stream: true, ...body } as ChatRequest;
  const model = { published } as unknown as CatalogModel;
  const unseen = new UnseenGeneration({ body: chatRequest, request }, model, route, () => nowMs);
  return {
    unseen,
    emit: (afterMs, delta, index = 0) => {
      nowMs += afterMs;
      unseen.take({ index, delta: { ...delta } });
    },
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

const tools: NonNullable<ChatRequest['tools']> = [{ type: 'function', function: { name: 'write_file' } }];
const call = { tool_calls: [{ index: 0, id: 'call-1' }] };
const reasoningModel = { reasoning: true };

test('generating a tool call is unseen if the vendor sends calls whole and the model may call a tool', (t) => {
  for (const [body, expected] of [
    [{ tools }, 5_000],
    [{ tools, tool_choice: 'none' }, 0],
    [{ tools: [] }, 0],
    [{}, 0],
  ] as const) {
    const { unseen, emit, pass } = start('gemini', body as Partial<ChatRequest>);
    emit(0, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), expected);
    t.is(unseen.isPossible, expected > 0);
  }
});

test('after a tool call has started, silence may hide its arguments, until other output arrives', (t) => {
  for (const kind of ['anthropic', 'openai'] as const) {
    const { unseen, emit, pass } = start(kind, { tools });
    emit(4_000, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), 0, 'the model hides nothing and may have stopped');
    emit(0, call);
    emit(3_000, call);
    pass(2_000);
    t.is(unseen.countTokens(), 5_000);
    for (let i = 0; i < 100; i++) emit(50, call);
    t.is(unseen.countTokens(), 5_050, 'arguments sent as they are generated hide nothing');
    emit(0, { content: 'Done' });
    pass(5_000);
    t.is(unseen.countTokens(), 5_050);
  }
});

test('shown reasoning explains only the time its tokens take at the slowest rate, so short summaries explain little of a long silence', (t) => {
  const trickled = start('openai', {}, reasoningModel);
  for (let i = 0; i < 20; i++) trickled.emit(400, { reasoning_content: 'Hidden' });
  // Two tokens explain 200 of every 400 ms; the rest is unseen.
  t.is(trickled.unseen.countTokens(), 20 * 200);
  // Twelve tokens per second, six at a time.
  const slow = start('openai', {}, reasoningModel);
  for (let i = 0; i < 100; i++) slow.emit(i % 6 === 0 ? 490 : 2, { reasoning_content: ' and' });
  t.true(slow.unseen.countTokens() < 490, `${slow.unseen.countTokens()}`);
});

test('a burst of reasoning explains at most one step of time, and a longer pause is unseen as a whole', (t) => {
  const { unseen, emit } = start('openai', {}, reasoningModel);
  emit(0, { reasoning_content: 'A paragraph.'.repeat(100) });
  emit(4_000, { reasoning_content: 'Another one.'.repeat(100) });
  t.is(unseen.countTokens(), 4_000);
  // A token explains 100 ms, and the burst explains the first 500 ms.
  for (let i = 0; i < 10; i++) emit(400, { reasoning_content: '...' });
  t.is(unseen.countTokens(), 4_000 + 10 * (400 - 100) - 500);
});

test('silence is tracked per choice: while one choice holds back its tool call, output of other choices does not end its silence', (t) => {
  for (const [n, indices] of [
    [1, [0]],
    [2, [0, 1]],
    // A vendor might number choices from one.
    [2, [1, 2]],
  ] as const) {
    const { unseen, emit, pass } = start('anthropic', { tools, n });
    const others = indices.slice(1);
    emit(100, call, indices[0]);
    for (let i = 0; i < 30; i++) {
      for (const index of others) emit(0, { content: ' and' }, index);
      pass(100);
    }
    t.is(unseen.countTokens(), 3_000, `n: ${n}, from ${indices[0]}`);
    t.true(unseen.isPossible);
    unseen.finish(indices[0]);
    pass(2_000);
    t.is(unseen.countTokens(), 3_000, 'the choice has finished, and the others hide nothing');
  }
});

test('a choice that sends output adds nothing for its own time, while silent choices add theirs', (t) => {
  const { unseen, emit, pass } = start('openai', { n: 3 }, reasoningModel);
  for (let i = 0; i < 40; i++) emit(50, { content: ' and' });
  t.is(unseen.countTokens(), 2 * 2_000);
  unseen.finish(1);
  pass(1_000);
  t.is(unseen.countTokens(), 2 * 2_000 + 2 * 1_000);
  unseen.restart();
  pass(700);
  unseen.end();
  pass(5_000);
  t.is(unseen.countTokens(), 2 * 700, 'since the report, for the two choices that have not finished');
});

test('a durable job has no more unseen output than a stream, because the vendor streams it too', (t) => {
  for (const [request, expected] of [
    [{ jobAttempt: 1 }, 0],
    [{}, 10_000],
  ] as const) {
    const { unseen, emit, pass } = start('openai', { stream: false }, {}, request);
    emit(5_000, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), expected);
  }
});
