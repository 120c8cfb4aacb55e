import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { CallDeps } from '../../../workers/embeddings/embedding-caller.ts';
import { EmbeddingScheduler } from '../../../workers/embeddings/embedding-scheduler.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

/** What happens to the requests of a merged call whose server fails with a 5xx. */

interface Outcome {
  /** `served`, or the code of the error. */
  readonly results: string[];
  /** Calls to the vendor. */
  readonly calls: (readonly string[])[];
  /** The errors of the requests that were not served. */
  readonly messages: string[];
  /** Failures that counted towards the breaker. */
  readonly counted: number;
}

/** Embeds each text for a different account, unless they are to be of one. The vendor responds with `status` to the calls for which `fails` is true. */
async function embedTogether(
  texts: readonly string[],
  fails: (inputs: readonly string[], call: number) => boolean,
  {
    rounds = 1,
    status = 500,
    dimensions = 1,
    isOneAccount = false,
    leaving = '',
    leavesAtCall = 0,
  }: {
    readonly rounds?: number;
    /** Null if the server closes the connection. */
    readonly status?: number | null;
    /** What the catalog says about vectors, which have one number here. */
    readonly dimensions?: number;
    readonly isOneAccount?: boolean;
    /** The text whose caller disconnects during this call to the vendor. */
    readonly leaving?: string;
    readonly leavesAtCall?: number;
  } = {},
): Promise<Outcome> {
  const caller = new AbortController();
  const messages: string[] = [];
  const route = createRoute('a');
  const model = {
    routes: [route],
    embeddingCache: null,
    dimensions: { default: dimensions },
  } as unknown as CatalogModel;
  const calls: (readonly string[])[] = [];
  let counted = 0;
  const upstream = {
    // eslint-disable-next-line @typescript-eslint/require-await
    embed: async (_: unknown, { inputs }: { inputs: readonly string[] }) => {
      calls.push(inputs);
      if (calls.length === leavesAtCall) caller.abort(new Error('disconnected'));
      if (fails(inputs, calls.length))
        throw new UpstreamError('unavailable', `it broke at ${inputs.join()}`, { status });
      return {
        vectors: Buffer.alloc(inputs.length * 4),
        dimensions: 1,
        broken: [],
        promptTokens: inputs.length,
        release: null,
      };
    },
  };
  const candidate = { route, apiKey: null, fingerprint: 'none' };
  const limiter = {
    acquire: () =>
      Promise.resolve({ candidate, accountId: 'ann', lease: '', isProbe: false, spareSlots: 0, slots: 1 }),
    release: (_: unknown, outcome: string) => void (counted += outcome === 'bad' ? 1 : 0),
    reportFailure: () => void (counted += 1),
  };
  const dependencies = {
    routing: { limiter, upstreams: { get: () => upstream } },
    log: { warn: () => undefined, error: () => undefined },
    media: {},
  };
  const scheduler = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  const never = (): AbortSignal => new AbortController().signal;
  const embed = async (text: string, i: number): Promise<string> => {
    const { outcomes } = await scheduler.embed({
      accountId: isOneAccount ? 'account' : `account-${i}`,
      inputs: [text],
      inputTokens: [1],
      user: null,
      dimensions: null,
      isPaidByTime: false,
      signal: text === leaving ? caller.signal : never(),
      stopSignal: never(),
      deadlineAtMs: Infinity,
      log: undefined as never,
    });
    const [outcome] = outcomes;
    if (!('error' in outcome!)) return 'served';
    if (!(outcome.error instanceof AppError)) return String(outcome.error);
    messages.push(outcome.error.message);
    return outcome.error.code;
  };
  let results: string[] = [];
  for (let round = 0; round < rounds; round++) results = await Promise.all(texts.map(embed));
  return { results, calls, messages, counted };
}

const textsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);

for (const count of [2, 3, 5, 8, 32]) {
  test(`of ${count} requests, the one that the server fails at is rejected and all others are served, in at most ⌈log₂ n⌉ + 1 further calls`, async (t) => {
    for (let bad = 0; bad < count; bad++) {
      const texts = textsOf(count);
      texts[bad] = 'bad';
      const { results, calls, counted } = await embedTogether(texts, (inputs) => inputs.includes('bad'));
      t.deepEqual(
        results,
        texts.map((text) => (text === 'bad' ? 'upstream_rejected' : 'served')),
      );
      t.is(calls[0]!.length, count);
      const further = calls.length - 1;
      t.true(further <= Math.ceil(Math.log2(count)) + 1, `${further} further calls for ${bad} of ${count}`);
      t.is(counted, 0, 'it says nothing about the server');
    }
  });
}

test('a request is rejected with words that quote only itself', async (t) => {
  for (const count of [2, 3, 5, 8]) {
    for (let bad = 0; bad < count; bad++) {
      const texts = textsOf(count);
      texts[bad] = 'bad';
      const { messages } = await embedTogether(texts, (inputs) => inputs.includes('bad'));
      t.is(messages.length, 1);
      t.false(messages[0]!.includes('text'), messages[0]);
    }
  }
});

test('whoever leaves during the search, and whenever, the others get what they would get without him', async (t) => {
  for (const count of [2, 3, 5])
    for (let bad = 0; bad < count; bad++)
      for (let leaving = 0; leaving < count; leaving++)
        for (let leavesAtCall = 1; leavesAtCall < 6; leavesAtCall++) {
          const texts = textsOf(count);
          texts[bad] = 'bad';
          const { results } = await embedTogether(texts, (inputs) => inputs.includes('bad'), {
            leaving: texts[leaving]!,
            leavesAtCall,
          });
          const label = `${bad} of ${count} is bad, ${leaving} leaves at call ${leavesAtCall}`;
          for (const [i, result] of results.entries()) {
            if (i === leaving) continue;
            if (i !== bad) t.is(result, 'served', label);
            // If the only other caller has left, nothing shows that the server is well.
            else t.true(result === 'upstream_rejected' || count === 2, label);
          }
        }
});

test('nobody is rejected because the server fails at large calls', async (t) => {
  const sizes = [1, 10, 5, 10, 2, 10, 3, 3];
  for (let first = 0; first < sizes.length; first++) {
    const texts = [...sizes.slice(first), ...sizes.slice(0, first)].map((size, i) => `${i}`.repeat(size));
    const isTooLarge = (inputs: readonly string[]): boolean => inputs.join('').length > 12;
    const { results } = await embedTogether(texts, isTooLarge);
    t.false(results.includes('upstream_rejected'), results.join());
    t.true(results.includes('served'));
  }
});

test('if the server closes the connection of each call with one request, that request is rejected, without our words for operators', async (t) => {
  const texts = ['text 0', 'bad', 'text 1', 'text 2'];
  const { results, messages, counted } = await embedTogether(texts, (inputs) => inputs.includes('bad'), {
    status: null,
  });
  t.deepEqual(results, ['served', 'upstream_rejected', 'served', 'served']);
  t.false(messages[0]!.includes('it broke'), messages[0]);
  t.is(counted, 0);
});

test('vectors of another length than the catalog says are not requested again', async (t) => {
  const { results, calls, counted } = await embedTogether(textsOf(4), () => false, { dimensions: 2 });
  t.deepEqual(new Set(results), new Set(['upstream_error']));
  t.deepEqual([calls.length, counted], [1, 0]);
});

test('several bad requests are all rejected, and all others are served', async (t) => {
  const texts = textsOf(20).map((text, i) => (i % 7 === 3 ? `bad ${i}` : text));
  const { results } = await embedTogether(texts, (inputs) => inputs.some((text) => text.startsWith('bad')));
  t.deepEqual(
    results,
    texts.map((text) => (text.startsWith('bad') ? 'upstream_rejected' : 'served')),
  );
});

test('if the server failed only once, all are served', async (t) => {
  for (const count of [2, 3, 9]) {
    const { results, counted } = await embedTogether(textsOf(count), (_, call) => call === 1);
    t.deepEqual(new Set(results), new Set(['served']));
    t.is(counted, 0);
  }
});

test('if the server serves nothing, its failure counts once and nobody is rejected', async (t) => {
  const { results, calls, counted } = await embedTogether(textsOf(16), () => true);
  t.deepEqual(new Set(results), new Set(['upstream_error']));
  t.true(calls.length <= 1 + 4 + 1);
  t.is(counted, 1);
});

test('while the server is down, further calls are not searched', async (t) => {
  const { calls } = await embedTogether(textsOf(16), () => true, { rounds: 2 });
  t.deepEqual(
    calls.slice(-3).map((inputs) => inputs.length),
    [16, 16, 16],
    'the second merged call is retried as it is',
  );
});

test('requests whose single call fails are retried, and get the failure of the server', async (t) => {
  const { results, calls } = await embedTogether(['alone'], () => true);
  t.deepEqual(results, ['upstream_error']);
  t.is(calls.length, 3);
});

test('a call that fails with a 503 is retried first, and then searched for a request that fails again', async (t) => {
  const texts = ['bad', ...textsOf(3)];
  const { results, calls } = await embedTogether(texts, (inputs) => inputs.includes('bad'), { status: 503 });
  t.deepEqual(results, ['upstream_rejected', 'served', 'served', 'served']);
  t.deepEqual(
    calls.slice(0, 3).map((inputs) => inputs.length),
    [4, 4, 4],
  );
});

test('nobody is rejected because a server was busy for a while', async (t) => {
  for (let busyCalls = 1; busyCalls < 8; busyCalls++) {
    const { results } = await embedTogether(textsOf(8), (_, call) => call <= busyCalls, { status: 503 });
    t.false(results.includes('upstream_rejected'), `${busyCalls} calls`);
  }
});

test('requests that share their only text are retried like one request, because there is nothing to search', async (t) => {
  const options = { isOneAccount: true };
  const { results, calls } = await embedTogether(['same', 'same'], (_, call) => call < 3, options);
  t.deepEqual(results, ['served', 'served']);
  t.deepEqual(calls, [['same'], ['same'], ['same']]);
});
