import test from 'ava';
import fc from 'fast-check';
import {
  createIdempotencyClaim,
  createLargeIdempotencyClaim,
} from '../../../shared/money/idempotency-claim.ts';
import { encodeWholeJson, isLongJson, writeJson } from '../../../shared/encoding/json-pieces.ts';

test('the pieces of a value join to the output of JSON.stringify', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), (value) => {
      t.is([...writeJson(value)].join(''), JSON.stringify(value));
    }),
    { numRuns: 1_000 },
  );
  const odd = { a: undefined, b: [undefined, null], c: { d: undefined }, '': 0 };
  t.is([...writeJson(odd)].join(''), JSON.stringify(odd));
});

test('a long string is written in pieces, without splitting a character', (t) => {
  for (const shift of ['', 'x']) {
    const value = { text: shift + '😀"\n'.repeat(100_000), after: ['😀'.repeat(200_000), 1] };
    const pieces = [...writeJson(value)];
    t.true(pieces.length > 5);
    t.true(Math.max(...pieces.map((piece) => piece.length)) < 1_000_000);
    t.true(pieces.join('') === JSON.stringify(value));
  }
});

test('a large value is encoded in pieces with the same result as in one go, and its idempotency claim is the same, too', async (t) => {
  const value = { model: 'm', input: Array.from({ length: 3_000 }, (_, i) => `${i} слово`.repeat(300)) };
  t.true((await encodeWholeJson(value, 'account')).equals(Buffer.from(JSON.stringify(value))));
  t.deepEqual(
    await createLargeIdempotencyClaim('k', '/p', value, 'account'),
    createIdempotencyClaim('k', '/p', value),
  );
});

test('checking whether a value is long does not read all of it', (t) => {
  t.false(isLongJson({ a: 'x'.repeat(900) }, 1_000));
  t.true(isLongJson({ a: ['x'.repeat(1_000)] }, 1_000));
  t.true(
    isLongJson(
      Array.from({ length: 2_000 }, () => 1),
      1_000,
    ),
  );
  let reads = 0;
  const item = {
    get a() {
      reads += 1;
      return 'x'.repeat(100);
    },
  };
  t.true(isLongJson({ list: Array.from({ length: 900 }, () => item) }, 1_000));
  t.true(reads < 100, `${reads} reads`);
});
