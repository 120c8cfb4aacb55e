import test from 'ava';
import { Double, Int32, Long, ObjectId } from 'bson';
import fc from 'fast-check';
import {
  decodeDocument,
  encodeDocument,
  type Doc,
} from '../../../../scripts/embedded/mongo/bson/document.ts';
import { isPlain } from '../../../../scripts/embedded/mongo/bson/plain-document.ts';

const value = fc.oneof(
  fc.constantFrom(null, true, false, -0, NaN, Infinity),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.integer().map((n) => new Int32(n)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => Long.fromBigInt(n)),
  fc.double().map((n) => new Double(n)),
  fc.date({ noInvalidDate: false }),
  fc.constant(new ObjectId()),
  fc.constantFrom<unknown>({}, { a: 1 }, [], [1], /a/, Buffer.from('a')),
);
const document: fc.Arbitrary<Doc> = fc.dictionary(
  fc
    .oneof(fc.constantFrom('a', '_id', '1', '', 'é'), fc.string({ maxLength: 4 }))
    .filter((name) => !name.includes('\0')),
  value,
  { maxKeys: 5, noNullPrototype: true },
);

const isUnchanged = (raw: Buffer): boolean => encodeDocument(decodeDocument(raw)).equals(raw);

/** Decodes bytes that may not be a document. */
function tryDecode(raw: Buffer): Doc | null {
  try {
    return decodeDocument(raw);
  } catch {
    return null;
  }
}

test('a plain document is the same when it is encoded again, whatever its bytes', (t) => {
  let plain = 0;
  fc.assert(
    fc.property(
      document,
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }),
      (fields, changes) => {
        const raw = encodeDocument(fields);
        for (const [at, byte] of changes) raw[4 + (at % (raw.length - 4))] = byte;
        const decoded = tryDecode(raw);
        if (decoded === null || !isPlain(raw, decoded)) return;
        plain += 1;
        t.true(isUnchanged(raw));
      },
    ),
    { numRuns: 20_000 },
  );
  t.true(plain > 1_000);
});

test('rows of the ledger are plain', (t) => {
  const row = {
    _id: 'id',
    at: new Date(),
    amountNano: Long.fromNumber(-5),
    free: false,
    user: null,
    ms: new Int32(3),
  };
  const raw = encodeDocument(row);
  t.true(isPlain(raw, decodeDocument(raw)));
});

test('what may change when it is encoded again is not plain', (t) => {
  const twice = encodeDocument({ a: new Int32(1), b: new Int32(2) });
  twice[twice.indexOf('b')] = 'a'.charCodeAt(0);
  const farDate = encodeDocument({ at: new Date(0) });
  farDate[farDate.length - 2] = 0x7f;
  const other = [{ 7: 'seven' }, { nested: {} }, { list: [1] }, { naïve: 1 }, { number: NaN }];
  // The library refuses to encode this name.
  const reserved = encodeDocument({ _bsontypo: 'ObjectId' });
  reserved[reserved.indexOf('typo') + 3] = 'e'.charCodeAt(0);
  for (const raw of [twice, farDate, reserved, ...other.map((fields) => encodeDocument(fields))])
    t.false(isPlain(raw, decodeDocument(raw)), raw.toString());
});
