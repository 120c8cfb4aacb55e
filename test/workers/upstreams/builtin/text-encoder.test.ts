import { once, setMaxListeners } from 'node:events';
import type { Worker } from 'node:worker_threads';
import test from 'ava';
import { tokenizeInput } from '../../../../workers/upstreams/builtin/encoder-input.ts';
import { createTextEncoder } from '../../../../workers/upstreams/builtin/text-encoder.ts';
import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const DIMENSIONS = 512;
const encoder = createTextEncoder({ threads: 1 });
const { signal } = new AbortController();
// Many calls in these tests share this signal, which would otherwise cause a warning.
setMaxListeners(0, signal);

test.after.always(() => encoder.close());

function readVectors(buffer: Buffer): number[][] {
  const vectors: number[][] = [];
  for (let at = 0; at < buffer.length; at += DIMENSIONS * 4) {
    vectors.push(Array.from({ length: DIMENSIONS }, (_, i) => buffer.readFloatLE(at + i * 4)));
  }
  return vectors;
}

async function encode(...texts: string[]): Promise<number[][]> {
  return readVectors(await encoder.encode(texts, signal));
}

function dot(a: readonly number[] = [], b: readonly number[] = []): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? Number.NaN), 0);
}

function findDistance(a: readonly number[] = [], b: readonly number[] = []): number {
  return Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
}

/** Creates different sentences of 3 to 90 words. */
function makeSentences(count: number): string[] {
  const words =
    'the old harbour waits for snow while green lamps count every ship that never came home'.split(' ');
  return Array.from({ length: count }, (_, index) => {
    const length = 3 + ((index * 37) % 88);
    const picked = Array.from(
      { length },
      (_, at) => words[(index * 7 + at * (1 + (index % 5))) % words.length],
    );
    return `${index} ${picked.join(' ')}`;
  });
}

test('texts of similar meaning are closer than texts of different meaning', async (t) => {
  const [cat, kitten, law] = await encode('cat', 'kitten', 'tax law');
  t.true(dot(cat, kitten) > dot(cat, law) + 0.2);
  const [question, answer, other] = await encode(
    'How do I reset my password?',
    'Click on "forgot password" to choose a new one.',
    'The volcano erupted twice in May.',
  );
  t.true(dot(question, answer) > dot(question, other));
});

test.serial('vectors have 512 numbers and length one, and are the same each time', async (t) => {
  const first = await encode('A quiet morning above the river');
  t.is(first[0]?.length, DIMENSIONS);
  t.true(Math.abs(Math.sqrt(dot(first[0], first[0])) - 1) < 1e-6);
  t.deepEqual(await encode('A quiet morning above the river'), first);
});

test.serial('80 inputs of mixed lengths return in order, each with the same vector as alone', async (t) => {
  const texts = makeSentences(80);
  const together = await encode(...texts);
  t.is(together.length, 80);
  for (const index of [0, 1, 2, 17, 43, 79]) {
    const [alone] = await encode(texts[index] ?? '');
    t.true(findDistance(together[index], alone) < 1e-5, `input ${index}`);
  }
});

test.serial('simultaneous calls of one input each return the same vector as alone', async (t) => {
  const texts = makeSentences(20);
  const together = await Promise.all(texts.map((text) => encode(text)));
  for (const index of [0, 1, 13, 19]) {
    const [alone] = await encode(texts[index] ?? '');
    t.true(findDistance(together[index]?.[0], alone) < 1e-5, `input ${index}`);
  }
});

test.serial('a short call does not wait for a long one that is running', async (t) => {
  const ended: string[] = [];
  const long = encode(...makeSentences(60)).then(() => ended.push('long'));
  await encode('something before it, so that the long one is at work');
  await encode('hello');
  ended.push('short');
  await long;
  t.deepEqual(ended, ['short', 'long']);
});

test('any text has a finite vector', async (t) => {
  const texts = ['', ' ', '\n\t', '.', 'Привет, мир', '🎉👩‍🚀', '\ud800', '\u0000', '世界', 'e\u0301', 'ﷺ'];
  const vectors = await encode(...texts);
  t.is(vectors.length, texts.length);
  for (const vector of vectors) t.true(Math.abs(dot(vector, vector) - 1) < 1e-5);
});

test('text beyond 128 tokens does not change the vector, and text before that does', async (t) => {
  const start = 'one two three four five six seven eight nine ten '.repeat(30);
  const [a, b, c] = await encode(
    `${start} apples`,
    `${start} ${'volcano '.repeat(10_000)}`,
    `volcano ${start}`,
  );
  t.deepEqual(a, b);
  t.notDeepEqual(a, c);
});

for (const [name, make] of Object.entries({
  words: (length: number) => 'the committee decided '.repeat(length / 22),
  'one unbroken word': (length: number) => 'a'.repeat(length),
  'unknown characters': (length: number) => 'Ж'.repeat(length),
  'expanding ligatures': (length: number) => 'ﷺ'.repeat(length),
})) {
  test.serial(`a million characters (${name}) take no longer than a few thousand`, async (t) => {
    const measure = async (text: string): Promise<number> => {
      const startedMs = performance.now();
      await encode(text);
      return performance.now() - startedMs;
    };
    const few = make(6600);
    const many = make(1_000_000);
    await measure(few);
    // Uses the best of several runs, because the machine may be busy.
    const fewMs = Math.min(await measure(few), await measure(few));
    let manyMs = Infinity;
    for (let i = 0; i < 5 && manyMs >= 3 * fewMs + 20; i++) manyMs = Math.min(manyMs, await measure(many));
    t.true(manyMs < 3 * fewMs + 20, `${fewMs} ms, ${manyMs} ms`);
  });
}

test('the tokenizer gets one word at a time, and none once the token limit is reached', (t) => {
  const given: string[] = [];
  const tokenizeWord = (word: string): number[] => {
    given.push(word);
    return Array.from({ length: word.length }, (_, index) => index);
  };
  const tokens = tokenizeInput(`  ab\n\tcd ${'x'.repeat(10_000)}`, tokenizeWord);
  t.deepEqual(tokens.slice(0, 4), [0, 1, 0, 1]);
  t.is(tokens.length, 128);
  t.deepEqual(
    given.map(({ length }) => length),
    [2, 2, 200],
  );
});

test('an aborted call rejects immediately with the abort reason, and other calls continue', async (t) => {
  const controller = new AbortController();
  const reason = new Error('the caller disconnected');
  const long = encoder.encode(makeSentences(80), controller.signal);
  const short = encode('hello');
  controller.abort(reason);
  t.is(await t.throwsAsync(long), reason);
  t.is((await short).length, 1);
  t.is(await t.throwsAsync(encoder.encode(['never begun'], controller.signal)), reason);
});

test.serial('if a thread dies while working, it is replaced and its call completes', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 1, onThread: (thread) => threads.push(thread) });
  t.teardown(() => ownEncoder.close());
  const expected = await ownEncoder.encode(['hello'], signal);
  const texts = ['hello', ...makeSentences(30)];
  const call = ownEncoder.encode(texts, signal);
  await threads[0]?.terminate();
  const vectors = await call;
  t.is(threads.length, 2);
  t.is(vectors.length, texts.length * DIMENSIONS * 4);
  t.true(findDistance(readVectors(vectors)[0], readVectors(expected)[0]) < 1e-5);
});

test.serial('if a thread dies while idle, it is replaced at the next call', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 1, onThread: (thread) => threads.push(thread) });
  t.teardown(() => ownEncoder.close());
  await ownEncoder.encode(['hello'], signal);
  await threads[0]?.terminate();
  t.is((await ownEncoder.encode(['hello'], signal)).length, DIMENSIONS * 4);
  t.is(threads.length, 2);
});

test.serial('the reason for the death of a thread is reported', async (t) => {
  const causes: unknown[] = [];
  const ownEncoder = createTextEncoder({
    threads: 1,
    onThread: (thread) => thread.postMessage('no list of texts', []),
    onFault: (cause) => causes.push(cause),
  });
  t.teardown(() => ownEncoder.close());
  await t.throwsAsync(ownEncoder.encode(['hello'], signal), { instanceOf: UpstreamError });
  t.is(causes.length, 2);
  t.regex((causes[0] as Error).stack ?? '', /encode/);
});

test.serial('if a second thread dies during a call, the call fails as unavailable', async (t) => {
  let started = 0;
  const ownEncoder = createTextEncoder({
    threads: 1,
    onThread: (thread) => {
      started += 1;
      void thread.terminate();
    },
  });
  t.teardown(() => ownEncoder.close());
  const error = await t.throwsAsync(ownEncoder.encode(['hello'], signal), { instanceOf: UpstreamError });
  t.is(error?.failure, 'unavailable');
  t.is(started, 2);
});

test.serial('if a thread dies, all calls in its batch still complete', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 1, onThread: (thread) => threads.push(thread) });
  t.teardown(() => ownEncoder.close());
  await ownEncoder.encode(['hello'], signal);
  const texts = makeSentences(12);
  const calls = texts.map((text) => ownEncoder.encode([text], signal));
  await threads[0]?.terminate();
  const vectors = await Promise.all(calls);
  t.is(threads.length, 2);
  for (const [index, vector] of vectors.entries()) {
    t.true(findDistance(readVectors(vector)[0], (await encode(texts[index] ?? ''))[0]) < 1e-5);
  }
});

test.serial('long calls start several threads, short calls one', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 3, onThread: (thread) => threads.push(thread) });
  t.teardown(() => ownEncoder.close());
  await ownEncoder.encode(['hello'], signal);
  t.is(threads.length, 1);
  t.is((await ownEncoder.encode(makeSentences(60), signal)).length, 60 * DIMENSIONS * 4);
  t.is(threads.length, 3);
});

test.serial('no thread is started before the first call, and closing fails running calls', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 2, onThread: (thread) => threads.push(thread) });
  t.is(threads.length, 0);
  const call = ownEncoder.encode(makeSentences(60), signal);
  t.is(threads.length, 2);
  const failed = t.throwsAsync(call, { instanceOf: UpstreamError });
  await ownEncoder.close();
  t.is((await failed)?.failure, 'unavailable');
  await t.throwsAsync(ownEncoder.encode(['hello'], signal), { instanceOf: UpstreamError });
});

test('an idle thread is stopped, and the next call starts another', async (t) => {
  const threads: Worker[] = [];
  const ownEncoder = createTextEncoder({ threads: 1, idleMs: 1, onThread: (thread) => threads.push(thread) });
  t.teardown(() => ownEncoder.close());
  // Neither an idle thread nor its timer keeps the process alive, so this timer does.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const first = readVectors(await ownEncoder.encode(['a cat'], signal));
  if (threads[0]!.threadId !== -1) await once(threads[0]!, 'exit');
  t.deepEqual(readVectors(await ownEncoder.encode(['a cat'], signal)), first);
  t.is(threads.length, 2);
});
