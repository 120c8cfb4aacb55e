import test from 'ava';
import type { CatalogModel, CatalogUpstream } from '../../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { UnseenGeneration } from '../../../workers/runs/unseen-generation.ts';
import { createRoute } from '../../support/routing.ts';

interface Rig {
  readonly unseen: UnseenGeneration;
  /** Produces this many tokens after this long. */
  readonly say: (afterMs: number, delta: object, tokens?: number, index?: number) => void;
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
  const asked = { stream: true, ...body } as ChatRequest;
  const model = { published } as unknown as CatalogModel;
  const unseen = new UnseenGeneration({ body: asked, request }, model, route, () => nowMs);
  return {
    unseen,
    say: (afterMs, delta, tokens = 1, index = 0) => {
      nowMs += afterMs;
      unseen.take({ index, delta: { ...delta } }, tokens);
    },
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

const tools: NonNullable<ChatRequest['tools']> = [{ type: 'function', function: { name: 'write_file' } }];
const call = { tool_calls: [{ index: 0, id: 'call-1' }] };
const thinker = { reasoning: true };

test('a tool call in progress counts as unseen if the vendor sends calls whole and there are tools to call', (t) => {
  for (const [body, expected] of [
    [{ tools }, 5_001],
    [{ tools, tool_choice: 'none' }, 1],
    [{ tools: [] }, 1],
    [{}, 1],
  ] as const) {
    const { unseen, say, pass } = start('gemini', body as Partial<ChatRequest>);
    say(0, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), expected);
    t.is(unseen.isPossible, expected > 1);
  }
});

test('a tool call that has started and whose arguments are held back counts as unseen until there is other output', (t) => {
  for (const kind of ['anthropic', 'openai'] as const) {
    const { unseen, say, pass } = start(kind, { tools });
    say(4_000, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), 1, 'a model that hides nothing, and may just as well have stopped');
    say(0, call);
    say(3_000, call);
    pass(2_000);
    t.is(unseen.countTokens(), 3 + 5_000);
    for (let i = 0; i < 100; i++) say(50, call);
    t.is(unseen.countTokens(), 103 + 5_050, 'arguments that are streamed as they are generated hide nothing');
    say(0, { content: 'Done' });
    pass(5_000);
    t.is(unseen.countTokens(), 104 + 5_050);
  }
});

test('reasoning accounts for the time that its tokens take at the slowest speed, and summaries that trickle account for little', (t) => {
  const trickled = start('openai', {}, thinker);
  for (let i = 0; i < 20; i++) trickled.say(400, { reasoning_content: 'Thinking... ' }, 2);
  // Two tokens account for 200 ms of each 400.
  t.is(trickled.unseen.countTokens(), 40 + 20 * 200);
  // Twelve tokens a second, in bursts of six.
  const slow = start('openai', {}, thinker);
  for (let i = 0; i < 100; i++) slow.say(i % 6 === 0 ? 490 : 2, { reasoning_content: ' and' });
  t.true(slow.unseen.countTokens() < 100 + 490, `${slow.unseen.countTokens()}`);
});

test('a burst of reasoning accounts for one step at most: a longer pause is unseen whatever came before it', (t) => {
  const { unseen, say } = start('openai', {}, thinker);
  say(0, { reasoning_content: 'A paragraph.' }, 300);
  say(4_000, { reasoning_content: 'Another.' }, 300);
  t.is(unseen.countTokens(), 600 + 4_000);
  for (let i = 0; i < 10; i++) say(400, { reasoning_content: '.' }, 0);
  t.is(unseen.countTokens(), 600 + 4_000 + 3_500);
});

test('each choice is silent by itself: output of others does not end the silence of one that holds back its call', (t) => {
  for (const [n, indices] of [
    [1, [0]],
    [2, [0, 1]],
    // As a vendor might do that counts from one.
    [2, [1, 2]],
  ] as const) {
    const { unseen, say, pass } = start('anthropic', { tools, n });
    const others = indices.slice(1);
    say(100, call, 1, indices[0]);
    for (let i = 0; i < 30; i++) {
      for (const index of others) say(0, { content: ' and' }, 1, index);
      pass(100);
    }
    const seen = 1 + 30 * others.length;
    t.is(unseen.countTokens(), seen + 3_000, `n: ${n}, from ${indices[0]}`);
    t.true(unseen.isPossible);
    unseen.finish(indices[0]);
    pass(2_000);
    t.is(unseen.countTokens(), seen + 3_000, 'the call is complete, and the others hide nothing');
  }
});

test('a choice with output is not billed for its own time, but the silent choices are billed', (t) => {
  const { unseen, say, pass } = start('openai', { n: 3 }, thinker);
  for (let i = 0; i < 40; i++) say(50, { content: ' and' });
  t.is(unseen.countTokens(), 40 + 2 * 2_000);
  unseen.finish(1);
  pass(1_000);
  t.is(unseen.countTokens(), 40 + 2 * 2_000 + 2 * 1_000);
  unseen.restart();
  pass(700);
  unseen.end();
  pass(5_000);
  t.is(unseen.countTokens(), 2 * 700, 'since the report: for the two that have not ended');
});

test('a durable job, which the vendor streams as well, has no more unseen output than a stream', (t) => {
  for (const [request, expected] of [
    [{ jobAttempt: 1 }, 1],
    [{}, 10_001],
  ] as const) {
    const { unseen, say, pass } = start('openai', { stream: false }, {}, request);
    say(5_000, { content: 'I write' });
    pass(5_000);
    t.is(unseen.countTokens(), expected);
  }
});
