import test from 'ava';
import { EncoderQueue, type EncoderInput } from '../../../../workers/upstreams/builtin/encoder-queue.ts';

interface NamedCall {
  readonly name: string;
  isOver: boolean;
}

const createCall = (name: string): NamedCall => ({ name, isOver: false });

/** Texts of about this many tokens each. */
const makeTexts = (...tokens: readonly number[]): string[] => tokens.map((count) => 'x'.repeat(count * 4));

const times = (count: number, tokens: number): string[] =>
  makeTexts(...Array.from({ length: count }, () => tokens));

function takeAll(line: EncoderQueue<NamedCall>): EncoderInput<NamedCall>[][] {
  const batches: EncoderInput<NamedCall>[][] = [];
  for (let batch = line.take(); batch.length > 0; batch = line.take()) batches.push(batch);
  return batches;
}

const namesOf = (batch: readonly EncoderInput<NamedCall>[]): string =>
  [...new Set(batch.map(({ call }) => call.name))].join('+');

test('every input is in exactly one batch, with its original index', (t) => {
  const line = new EncoderQueue<NamedCall>();
  const texts = makeTexts(3, 90, 5, 120, 4, 40, 500, 1, 33, 34);
  line.add(createCall('a'), texts);
  line.add(createCall('b'), texts);
  const inputs = takeAll(line).flat();
  for (const name of ['a', 'b']) {
    const own = inputs.filter(({ call }) => call.name === name);
    t.deepEqual(
      own.map(({ place }) => place).sort((x, y) => x - y),
      [...texts.keys()],
    );
    for (const { text, place } of own) t.is(text, texts[place]!);
  }
  t.is(line.batches, 0);
});

test('inputs of similar length share a batch, so that there is little padding', (t) => {
  const line = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 20; nr++) {
    line.add(
      createCall(String(nr)),
      makeTexts(...Array.from({ length: 30 }, (_, i) => 1 + ((i * 37 + nr) % 128))),
    );
  }
  let filled = 0;
  let totalTokens = 0;
  const batches = takeAll(line);
  for (const batch of batches) {
    const lengths = batch.map(({ tokens }) => tokens);
    const size = Math.max(...lengths) * lengths.length;
    t.true(size <= 128, `a batch of ${lengths.join()}`);
    filled += size;
    totalTokens += lengths.reduce((sum, length) => sum + length, 0);
  }
  t.true(filled < totalTokens * 1.2, `${filled} for ${totalTokens}`);
});

test('many calls of one short input are one batch', (t) => {
  const line = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 16; nr++) line.add(createCall(String(nr)), makeTexts(8));
  t.deepEqual(
    takeAll(line).map(({ length }) => length),
    [16],
  );
});

test('a short call among long ones is batched within two batches', (t) => {
  const line = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 10; nr++) line.add(createCall(`long ${nr}`), times(100, 60));
  for (let nr = 0; nr < 5; nr++) line.take();
  line.add(createCall('short'), makeTexts(2));
  t.true([line.take(), line.take()].map(namesOf).includes('short'));
});

test('a long call makes progress while short ones keep arriving', (t) => {
  const line = new EncoderQueue<NamedCall>();
  line.add(createCall('long'), times(40, 128));
  const served: string[] = [];
  for (let nr = 0; nr < 20; nr++) {
    line.add(createCall('short'), makeTexts(2));
    line.add(createCall('shorter'), makeTexts(60));
    served.push(namesOf(line.take()));
  }
  t.true(served.filter((name) => name === 'long').length >= 10, served.join());
  t.true(served.filter((name) => name !== 'long').length >= 9, served.join());
});

test('among calls of the same length, the first to arrive is the first to be completed', (t) => {
  const line = new EncoderQueue<NamedCall>();
  for (const name of ['a', 'b', 'c']) line.add(createCall(name), times(3, 128));
  t.deepEqual([...new Set(takeAll(line).map(namesOf))], ['a', 'b', 'c']);
});

test('an ended call is no longer computed, and has no effect on batches', (t) => {
  const line = new EncoderQueue<NamedCall>();
  const endedCall = createCall('gone');
  line.add(endedCall, times(50, 128));
  line.take();
  line.add(createCall('here'), makeTexts(5));
  endedCall.isOver = true;
  t.deepEqual(takeAll(line).map(namesOf), ['here']);
  t.is(line.batches, 0);
});

test('drain returns every call with a waiting input', (t) => {
  const line = new EncoderQueue<NamedCall>();
  line.add(createCall('a'), times(3, 128));
  line.take();
  line.add(createCall('b'), times(1, 1));
  t.deepEqual(
    line
      .drain()
      .map(({ name }) => name)
      .sort(),
    ['a', 'b'],
  );
  t.deepEqual(line.take(), []);
});
