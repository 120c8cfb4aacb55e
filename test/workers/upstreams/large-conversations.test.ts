import test from 'ava';
import { toChatRequest as toMessagesRequest } from '../../../workers/upstreams/anthropic/to-request.ts';
import { toChatRequest as toGenerateRequest } from '../../../workers/upstreams/gemini/to-request.ts';
import { restoreReasoning } from '../../../workers/upstreams/openai/save-reasoning.ts';
import { toChatRequest as toCompletionRequest } from '../../../workers/upstreams/openai/to-request.ts';
import { type ChatBody, nameCall, UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../support/upstream-target.ts';

/** Translation blocks the worker's thread. Each of these conversations is about as large as a body may be. */

const recalled = new Map([[nameCall(1, 'none'), {}]]);

const dialects: Readonly<Record<string, (body: ChatBody) => unknown>> = {
  anthropic: (body) =>
    toMessagesRequest(createTarget('claude-sonnet-4-5'), body, false, { media: new Map(), recalled }),
  gemini: (body) => toGenerateRequest(createTarget('gemini-3-pro'), body, { images: new Map(), recalled }),
  openai: (body) => toCompletionRequest(createTarget('gpt'), restoreReasoning(body, 'gpt', recalled), false),
};

/** Returns the error, if there is one. */
function catchError(run: () => unknown): unknown {
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
const toResult = (id: string): object => ({ role: 'tool', tool_call_id: id, content: '{}' });
const toId = (index: number): string => `c${index}`;

const toBody = (messages: readonly object[]): ChatBody =>
  ({ model: 'm', max_tokens: 4_096, reasoning_effort: 'low', messages }) as unknown as ChatBody;
const isRejection = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'rejected';

/** Makes conversations with any number of calls, messages or parts. */
interface Shape {
  readonly max: number;
  readonly make: (count: number) => readonly object[];
}

const shapes: Readonly<Record<string, Shape>> = {
  'calls with the same id in one turn': { max: 44_000, make: (n) => [user, calls(...repeat(n, () => 'a'))] },
  'calls with the same id in many turns': {
    max: 16_000,
    make: (n) => [user, ...repeat(n, () => [calls('a'), toResult('a')]).flat(), user],
  },
  'calls whose ids are equal without their unsupported characters': {
    max: 32_000,
    make: (n) => [user, calls(...repeat(n, (i) => String.fromCodePoint(0x4e00 + i)))],
  },
  'calls whose ids equal those of renumbered calls': {
    max: 44_000,
    make: (n) => [user, calls(...repeat(n / 2, (i) => `a_${i + 2}`), ...repeat(n / 2, () => 'a'))],
  },
  'calls with results in one turn': {
    max: 24_000,
    make: (n) => [user, calls(...repeat(n, toId)), ...repeat(n, toId).map(toResult), user],
  },
  'results in the reverse order of their calls': {
    max: 24_000,
    make: (n) => [user, calls(...repeat(n, toId)), ...repeat(n, toId).toReversed().map(toResult)],
  },
  'steps of an unfinished turn': {
    max: 16_000,
    make: (n) => [user, ...repeat(n, (i) => [calls(toId(i)), toResult(toId(i))]).flat()],
  },
  'parts of two messages': {
    max: 80_000,
    make: (n) => repeat(2, () => ({ role: 'user', content: repeat(n / 2, () => ({ text: 'a' })) })),
  },
  'messages with speaker names': {
    max: 44_000,
    make: (n) => repeat(n, (i) => ({ role: 'user', name: toId(i), content: 'a' })),
  },
  'late instructions': {
    max: 44_000,
    make: (n) => [user, ...repeat(n, () => ({ role: 'system', content: 'a' }))],
  },
};

for (const [dialect, toRequest] of Object.entries(dialects)) {
  for (const [name, { max, make }] of Object.entries(shapes)) {
    test.serial(`${dialect}: the time for ${name} grows linearly with their number`, (t) => {
      const measureMs = (counts: readonly number[]): number => {
        const bodies = counts.map((count) => toBody(make(count)));
        const startedAt = performance.now();
        const errors = bodies.map((body) => catchError(() => toRequest(body)));
        const tookMs = performance.now() - startedAt;
        // A conversation may also be rejected, which must be as fast.
        t.true(errors.every((error) => error === null || isRejection(error)));
        return tookMs;
      };
      const quarters = repeat(4, () => max / 4);
      measureMs(quarters);
      // One conversation takes as long as four of a quarter of its size if time is linear, and four times as long if it
      // is quadratic. Times below 50 ms are taken as 50 ms.
      let best = Infinity;
      for (let i = 0; i < 4 && best >= 2; i++)
        best = Math.min(best, measureMs([max]) / Math.max(50, measureMs(quarters)));
      t.true(best < 2, `${best} times as long as in four parts`);
    });
  }
}
