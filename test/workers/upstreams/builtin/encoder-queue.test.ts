import test from 'ava';
import { EncoderQueue, type EncoderInput } from '../../../../workers/upstreams/builtin/encoder-queue.ts';

interface NamedCall {
  readonly name: string;
  isOver: boolean;
}

const createCall = (name: string): NamedCall => ({ name, isOver: false });

/** Creates texts of about the given numbers of tokens. */
const makeTexts = (...tokens: readonly number[]): string[] => tokens.map((count) => 'x'.repeat(count * 4));

const repeatText = (count: number, tokens: number): string[] =>
  makeTexts(...Array.from({ length: count }, () => tokens));

function takeAll(queue: EncoderQueue<NamedCall>): EncoderInput<NamedCall>[][] {
  const batches: EncoderInput<NamedCall>[][] = [];
  for (let batch = queue.take(); batch.length > 0; batch = queue.take()) batches.push(batch);
  return batches;
}

const namesOf = (batch: readonly EncoderInput<NamedCall>[]): string =>
  [...new Set(batch.map(({ call }) => call.name))].join('+');

test('every input is in exactly one batch, with its original position', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  const texts = makeTexts(3, 90, 5, 120, 4, 40, 500, 1, 33, 34);
  queue.add(createCall('a'), texts);
  queue.add(createCall('b'), texts);
  const inputs = takeAll(queue).flat();
  for (const name of ['a', 'b']) {
    const ownInputs = inputs.filter(({ call }) => call.name === name);
    t.deepEqual(
      ownInputs.map(({ place }) => place).sort((x, y) => x - y),
      [...texts.keys()],
    );
    for (const { text, place } of ownInputs) t.is(text, texts[place]!);
  }
  t.is(queue.batches, 0);
});

test('inputs of similar length share a batch, and batches have little padding', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 20; nr++) {
    queue.add(
      createCall(String(nr)),
      makeTexts(...Array.from({ length: 30 }, (_, i) => 1 + ((i * 37 + nr) % 128))),
    );
  }
  let paddedTokens = 0;
  let inputTokens = 0;
  const batches = takeAll(queue);
  for (const batch of batches) {
    const lengths = batch.map(({ tokens }) => tokens);
    const size = Math.max(...lengths) * lengths.length;
    t.true(size <= 128, `a batch of ${lengths.join()}`);
    paddedTokens += size;
    inputTokens += lengths.reduce((sum, length) => sum + length, 0);
  }
  t.true(paddedTokens < inputTokens * 1.2, `${paddedTokens} for ${inputTokens}`);
});

test('many calls of one short input share one batch', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 16; nr++) queue.add(createCall(String(nr)), makeTexts(8));
  t.deepEqual(
    takeAll(queue).map(({ length }) => length),
    [16],
  );
});

test('a short call among long ones is served within two batches', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  for (let nr = 0; nr < 10; nr++) queue.add(createCall(`long ${nr}`), repeatText(100, 60));
  for (let nr = 0; nr < 5; nr++) queue.take();
  queue.add(createCall('short'), makeTexts(2));
  t.true([queue.take(), queue.take()].map(namesOf).includes('short'));
});

test('a long call makes progress while short ones keep arriving', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  queue.add(createCall('long'), repeatText(40, 128));
  const served: string[] = [];
  for (let nr = 0; nr < 20; nr++) {
    queue.add(createCall('short'), makeTexts(2));
    queue.add(createCall('shorter'), makeTexts(60));
    served.push(namesOf(queue.take()));
  }
  t.true(served.filter((name) => name === 'long').length >= 10, served.join());
  t.true(served.filter((name) => name !== 'long').length >= 9, served.join());
});

test('calls of equal length are completed in order of arrival', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  for (const name of ['a', 'b', 'c']) queue.add(createCall(name), repeatText(3, 128));
  t.deepEqual([...new Set(takeAll(queue).map(namesOf))], ['a', 'b', 'c']);
});

test('the inputs of a finished or cancelled call are no longer encoded or counted', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  const overCall = createCall('gone');
  queue.add(overCall, repeatText(50, 128));
  queue.take();
  queue.add(createCall('here'), makeTexts(5));
  overCall.isOver = true;
  t.deepEqual(takeAll(queue).map(namesOf), ['here']);
  t.is(queue.batches, 0);
});

test('draining the queue returns every call with waiting inputs', (t) => {
  const queue = new EncoderQueue<NamedCall>();
  queue.add(createCall('a'), repeatText(3, 128));
  queue.take();
  queue.add(createCall('b'), repeatText(1, 1));
  t.deepEqual(
    queue
      .drain()
      .map(({ name }) => name)
      .sort(),
    ['a', 'b'],
  );
  t.deepEqual(queue.take(), []);
});
