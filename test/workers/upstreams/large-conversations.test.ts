import test from 'ava';
import { toChatRequest as toMessagesRequest } from '../../../workers/upstreams/anthropic/to-request.ts';
import { toChatRequest as toGenerateRequest } from '../../../workers/upstreams/gemini/to-request.ts';
import { restoreReasoning } from '../../../workers/upstreams/openai/save-reasoning.ts';
import { toChatRequest as toCompletionRequest } from '../../../workers/upstreams/openai/to-request.ts';
import { type ChatBody, nameCall, UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../support/upstream-target.ts';

/** A worker is blocked while it translates. Each of these conversations is about as large as a body may be. */

const recalled = new Map([[nameCall(1, 'none'), {}]]);

const dialects: Readonly<Record<string, (body: ChatBody) => unknown>> = {
  anthropic: (body) =>
    toMessagesRequest(createTarget('claude-sonnet-4-5'), body, false, { media: new Map(), recalled }),
  gemini: (body) => toGenerateRequest(createTarget('gemini-3-pro'), body, { images: new Map(), recalled }),
  openai: (body) => toCompletionRequest(createTarget('gpt'), restoreReasoning(body, 'gpt', recalled), false),
};

/** The error, if there is one. */
function tryTo(run: () => unknown): unknown {
  try {
    run();
    return null;
  } catch (error) {
    return error;
  }
}

const user = { role: 'user', content: 'go' };
const repeat = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const calls = (...ids: string[]): object => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, function: { name: 'f' } })),
});
const answer = (id: string): object => ({ role: 'tool', tool_call_id: id, content: '{}' });
const one = (index: number): string => `c${index}`;

const toBody = (messages: readonly object[]): ChatBody =>
  ({ model: 'm', max_tokens: 4_096, reasoning_effort: 'low', messages }) as unknown as ChatBody;
const isRejection = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'rejected';

/** By the number of calls, messages or parts. */
interface Shape {
  readonly most: number;
  readonly make: (count: number) => readonly object[];
}

const shapes: Readonly<Record<string, Shape>> = {
  'calls of one id in one turn': { most: 44_000, make: (n) => [user, calls(...repeat(n, () => 'a'))] },
  'calls of one id in turns': {
    most: 16_000,
    make: (n) => [user, ...repeat(n, () => [calls('a'), answer('a')]).flat(), user],
  },
  'calls whose ids are the same without letters that are not taken': {
    most: 32_000,
    make: (n) => [user, calls(...repeat(n, (i) => String.fromCodePoint(0x4e00 + i)))],
  },
  'calls whose ids others are numbered to': {
    most: 44_000,
    make: (n) => [user, calls(...repeat(n / 2, (i) => `a_${i + 2}`), ...repeat(n / 2, () => 'a'))],
  },
  'answered calls of one turn': {
    most: 24_000,
    make: (n) => [user, calls(...repeat(n, one)), ...repeat(n, one).map(answer), user],
  },
  'answers against the order of their calls': {
    most: 24_000,
    make: (n) => [user, calls(...repeat(n, one)), ...repeat(n, one).toReversed().map(answer)],
  },
  'steps of an open round': {
    most: 16_000,
    make: (n) => [user, ...repeat(n, (i) => [calls(one(i)), answer(one(i))]).flat()],
  },
  'parts of two messages': {
    most: 80_000,
    make: (n) => repeat(2, () => ({ role: 'user', content: repeat(n / 2, () => ({ text: 'a' })) })),
  },
  'messages of speakers': {
    most: 44_000,
    make: (n) => repeat(n, (i) => ({ role: 'user', name: one(i), content: 'a' })),
  },
  'late instructions': {
    most: 44_000,
    make: (n) => [user, ...repeat(n, () => ({ role: 'system', content: 'a' }))],
  },
};

for (const [dialect, toRequest] of Object.entries(dialects)) {
  for (const [name, { most, make }] of Object.entries(shapes)) {
    test.serial(`${dialect}: the time for ${name} grows linearly with their number`, (t) => {
      const measureMs = (counts: readonly number[]): number => {
        const bodies = counts.map((count) => toBody(make(count)));
        const startedAt = performance.now();
        const errors = bodies.map((body) => tryTo(() => toRequest(body)));
        const tookMs = performance.now() - startedAt;
        // A conversation that its vendor would reject is rejected as quickly.
        t.true(errors.every((error) => error === null || isRejection(error)));
        return tookMs;
      };
      const quarters = repeat(4, () => most / 4);
      measureMs(quarters);
      // Linear work takes the same time whole as in four parts, quadratic work four times as long; very short times are
      // ignored.
      let best = Infinity;
      for (let i = 0; i < 4 && best >= 2; i++)
        best = Math.min(best, measureMs([most]) / Math.max(50, measureMs(quarters)));
      t.true(best < 2, `${best} times as long as in four parts`);
    });
  }
}
