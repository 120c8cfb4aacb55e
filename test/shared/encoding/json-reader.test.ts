import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import {
  JsonReader,
  requestJsonLimits,
  maxJsonDepth,
  maxJsonValues,
} from '../../../shared/encoding/json-reader.ts';

/** Reads the text in chunks that end at the given positions. */
function read(
  bytes: Buffer,
  cuts: readonly number[] = [],
  reader = new JsonReader(),
): { value: unknown } | null {
  const positions = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let from = 0;
  for (const to of positions) {
    reader.push(bytes.subarray(from, to));
    from = to;
  }
  return reader.end();
}

function parse(bytes: Buffer): { value: unknown } | null {
  try {
    // A byte order mark may precede the text; anywhere else it is an ordinary character.
    return { value: JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, '')) };
  } catch {
    return null;
  }
}

const cuts = fc.array(fc.nat(), { maxLength: 8 });

test('a text in chunks is parsed like JSON.parse parses the whole, wherever it is split', (t) => {
  const text = fc.oneof(
    fc.json({ maxDepth: 6, stringUnit: 'binary' }),
    fc.json({ maxDepth: 6 }).map((json) => JSON.stringify(JSON.parse(json), null, 2)),
  );
  fc.assert(
    fc.property(text, cuts, (json, positions) => {
      const bytes = Buffer.from(json);
      return isDeepStrictEqual(read(bytes, positions), parse(bytes));
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('bytes are rejected if and only if JSON.parse rejects them', (t) => {
  const word = fc.constantFrom(
    ...'{}[],:"\\ \n\t\u0001'.split(''),
    '"a"',
    '"\\u00e9"',
    '"\\ud83d\\ude00"',
    '\\u12',
    'true',
    'nul',
    'null',
    '1',
    '-0',
    '01',
    '1e5',
    '1.',
    '.5',
    '-',
    '1E+',
    '"__proto__":',
    '"a":',
    '"é"',
    '\u2028',
    '\ufeff',
    '+1',
    'NaN',
  );
  const raw = fc.oneof(
    fc.array(word, { maxLength: 12 }).map((words) => Buffer.from(words.join(''))),
    fc
      .uint8Array({ maxLength: 12 })
      .map((bytes) => Buffer.concat([Buffer.from('["'), bytes, Buffer.from('"]')])),
  );
  fc.assert(
    fc.property(raw, cuts, (bytes, positions) => isDeepStrictEqual(read(bytes, positions), parse(bytes))),
    { numRuns: 4_000 },
  );
  t.pass();
});

test('a string of megabytes is read correctly, wherever it has escapes and multi-byte characters', (t) => {
  const chunkBytes = 65_536;
  for (const unit of ['a', 'é', '\\u00e9', '😀', '\\ud83d\\ude00', '\\n', '\\\\', 'ab\\"', 'слово ']) {
    for (let shift = 0; shift < 6; shift++) {
      const text = `["${'x'.repeat(shift)}${unit.repeat(Math.ceil(1_200_000 / Buffer.byteLength(unit)))}",1]`;
      const bytes = Buffer.from(text);
      const positions = Array.from(
        { length: Math.floor(bytes.length / chunkBytes) },
        (_, i) => (i + 1) * chunkBytes,
      );
      const found = read(bytes, positions)?.value as [string, number];
      const expected = JSON.parse(text) as [string, number];
      t.true(found[0] === expected[0] && found[1] === 1, `${unit} after ${shift}`);
    }
  }
});

/**
 * fast-check treats each surrogate as a character, so that it also occurs alone, doubled or in the wrong order.
 */
const surrogateTexts = fc.array(fc.constantFrom('\ud83d', '\ude00', 'a', 'é', '😀', '"', '\\'), {
  maxLength: 6,
});

test('a lone surrogate is rejected, wherever the text is split, unless the reader allows it', (t) => {
  fc.assert(
    fc.property(surrogateTexts, cuts, fc.boolean(), (characters, positions, isLong) => {
      const text = characters.join('');
      // JSON.stringify escapes only lone surrogates. The padding makes the text so long that it is decoded in parts.
      const pad = isLong ? 'x'.repeat(1024 * 1024 - 8) : '';
      const bytes = Buffer.from(JSON.stringify({ a: [0, pad + text] }).replaceAll('😀', '\\ud83d\\ude00'));
      const isWhole = (pad + text).isWellFormed();
      return isDeepStrictEqual(read(bytes, positions), isWhole ? parse(bytes) : null);
    }),
    { numRuns: 300 },
  );
  const lenient = new JsonReader({ depth: 9, values: 9, loneSurrogates: true, integers: 0 });
  lenient.push(Buffer.from('["\\ud83d"]'));
  t.deepEqual(lenient.end(), { value: ['\ud83d'] });
});

test('the path to an error is reported', (t) => {
  const find = (text: string): (string | number)[] => {
    const reader = new JsonReader();
    t.is(reader.push(Buffer.from(text)), 'lone_surrogate');
    return reader.path;
  };
  t.deepEqual(find('"\\ud83d"'), []);
  t.deepEqual(find('{"a":[1,{"b":2,"c":"\\ud83d"}]}'), ['a', 1, 'c']);
  t.deepEqual(find('[[],{"a":{"\\ud83d":1}}]'), [1, 'a']);
  t.deepEqual(find('{"a":{},"b":["x","\\ude00"]}'), ['b', 1]);
});

test('the limits of depth and number of values are exact, and the text after an excess is not read', (t) => {
  const firstError = (text: string) => new JsonReader().push(Buffer.from(text));
  t.is(firstError('['.repeat(maxJsonDepth) + ']'.repeat(maxJsonDepth)), null);
  t.is(firstError('['.repeat(maxJsonDepth + 1)), 'too_deep');
  t.is(firstError(`[${'1,'.repeat(maxJsonValues - 2)}1]`), null);
  t.is(firstError(`[${'1,'.repeat(maxJsonValues)}1]`), 'too_many_values');
  const reader = new JsonReader();
  t.is(reader.push(Buffer.from(']')), 'invalid');
  t.is(reader.push(Buffer.from('['.repeat(200))), 'invalid', 'the first error is kept');
  t.is(reader.end(), null);
});

test('a number with thousands of digits is rejected', (t) => {
  t.is(read(Buffer.from('1'.repeat(5_000))), null);
  t.deepEqual(read(Buffer.from('1'.repeat(300))), { value: Number('1'.repeat(300)) });
});

const integerLimits = { ...requestJsonLimits, integers: 1_000_000 };

test('arrays of integers that are exempt from the value limit are parsed like JSON.parse', (t) => {
  const item = fc.oneof(
    { weight: 20, arbitrary: fc.nat(1_000_000).map(String) },
    fc.constantFrom(
      '-0',
      '0',
      '00',
      '01',
      '1e3',
      '1.5',
      '-7',
      '999999999',
      '1000000000',
      '1e',
      'null',
      '"a"',
    ),
    fc.constantFrom('[1,2]', '[]', '{}', '', ']', '['),
  );
  const array = fc.array(item, { maxLength: 12 });
  const comma = fc.constantFrom(',', ' , ', ',\n\t', ' \r,');
  fc.assert(
    fc.property(fc.array(array, { maxLength: 4 }), comma, cuts, (arrays, between, positions) => {
      const rows = arrays.map((items) => `[${items.join(between)}]`);
      const bytes = Buffer.from(`[${rows.join(between)}]`);
      return isDeepStrictEqual(read(bytes, positions, new JsonReader(integerLimits)), parse(bytes));
    }),
    { numRuns: 1_000 },
  );
  t.pass();
});

test('integers in arrays of only integers have a separate limit', (t) => {
  const count = (text: string, integers: number): [number, number] => {
    const reader = new JsonReader({ ...requestJsonLimits, integers });
    t.is(reader.push(Buffer.from(text)), null);
    t.not(reader.end(), null);
    return [reader.values, reader.integers];
  };
  const rows = JSON.stringify([Array.from({ length: 1_000 }, (_, i) => i), [1, 2, 3]]);
  // The last item of each array counts as a value, and so does each array.
  t.deepEqual(count(rows, 10_000), [5, 1_001]);
  t.deepEqual(count(rows, 600), [5 + 401, 600]);
  t.deepEqual(count(rows, 0), [5 + 1_001, 0]);
  // Integers next to a fraction or a string may use separate memory.
  for (const other of ['0.5', '"a"', '2000000000']) t.deepEqual(count(`[1,2,3,${other},4]`, 10), [6, 0]);

  const maxValues = Array.from({ length: maxJsonValues }, () => 1).join(',');
  const reader = new JsonReader({ ...requestJsonLimits, integers: Infinity });
  t.is(
    reader.push(Buffer.from(`[[${maxValues}],[${maxValues},1],[${maxValues},${maxValues},1`)),
    'too_many_values',
  );
  t.is(reader.push(Buffer.from(' ')), 'too_many_values');
});
