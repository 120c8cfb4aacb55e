import { isUtf8 } from 'node:buffer';
import test from 'ava';
import fc from 'fast-check';
import { Utf8Check } from '../../../shared/encoding/utf8-check.ts';

/** The position of the first invalid byte, given bytes in chunks of these lengths. */
function findErrorOffset(bytes: Buffer, lengths: readonly number[]): number {
  const check = new Utf8Check();
  let at = 0;
  for (const length of [...lengths, bytes.length]) {
    const errorOffset = check.push(bytes.subarray(at, at + length));
    if (errorOffset >= 0) return errorOffset;
    at = Math.min(at + length, bytes.length);
  }
  return check.end();
}

const chunkLengths = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 12 });
const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom('\ufffd', '\ufeff'),
);

test('valid UTF-8 has no error, wherever it is split', (t) => {
  fc.assert(
    fc.property(fc.array(character), chunkLengths, (characters, lengths) => {
      return findErrorOffset(Buffer.from(characters.join('')), lengths) === -1;
    }),
  );
  t.pass();
});

test('the error position is that of the first byte after the longest valid prefix', (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.array(fc.constantFrom(0x61, 0xc3, 0xa9, 0xef, 0xbf, 0xbd, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0xff)),
  );
  fc.assert(
    fc.property(bytes, chunkLengths, (values, lengths) => {
      const all = Buffer.from(values);
      if (isUtf8(all)) return findErrorOffset(all, lengths) === -1;
      let end = all.length;
      while (!isUtf8(all.subarray(0, end))) end -= 1;
      return findErrorOffset(all, lengths) === end;
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});
