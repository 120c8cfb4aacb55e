import test from 'ava';
import * as fc from 'fast-check';

import { createSseParser, type SseEvent } from '../../../workers/upstreams/sse-parser.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';

function parse(pieces: readonly Uint8Array[]): SseEvent[] {
  const parser = createSseParser();
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()];
}

function parseText(text: string): SseEvent[] {
  return parse([Buffer.from(text)]);
}

function split(bytes: Buffer, points: readonly number[]): Buffer[] {
  const sorted = [0, ...points.map((point) => point % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

test('LF, CR and CRLF all end a line', (t) => {
  const expected = [{ event: 'message', data: 'one\ntwo' }];
  for (const end of ['\n', '\r', '\r\n']) {
    t.deepEqual(parseText(`data: one${end}data: two${end}${end}`), expected);
  }
});

test('comments, unknown fields, ids and empty events yield nothing', (t) => {
  t.deepEqual(parseText(': keep-alive\n\nid: 7\nretry: 10\nfoo: bar\n\nevent: ping\n\n'), []);
});

test('an event without a name is a message, and a name applies to its event only', (t) => {
  t.deepEqual(parseText('event: error\ndata: 1\n\ndata: 2\n\n'), [
    { event: 'error', data: '1' },
    { event: 'message', data: '2' },
  ]);
});

test('exactly one space after the colon is dropped from the value, and a field may have no colon', (t) => {
  t.deepEqual(parseText('data:  x\n\ndata:y\n\ndata\n\n'), [
    { event: 'message', data: ' x' },
    { event: 'message', data: 'y' },
    { event: 'message', data: '' },
  ]);
});

test('invalid UTF-8 is replaced, also if the body ends within a character', (t) => {
  const bytes = Buffer.concat([
    Buffer.from('data: a'),
    Buffer.of(0xff),
    Buffer.from('b\n\ndata: ж').subarray(0, -1),
  ]);
  t.deepEqual(parse([bytes]), [
    { event: 'message', data: 'a\uFFFDb' },
    { event: 'message', data: '\uFFFD' },
  ]);
});

test('a byte order mark is skipped at the start only', (t) => {
  t.deepEqual(parseText('\uFEFFdata: 1\n\n\uFEFFdata: 2\n\n'), [{ event: 'message', data: '1' }]);
});

test('the last event is complete even without the blank line after it', (t) => {
  t.deepEqual(parseText('data: 1\n\ndata: [DONE]'), [
    { event: 'message', data: '1' },
    { event: 'message', data: '[DONE]' },
  ]);
});

test('any split of a stream gives the same events', (t) => {
  const line = fc.oneof(
    fc.constantFrom(
      'data: x',
      'data:',
      'data',
      ': comment',
      'event: error',
      'event:',
      '',
      '',
      'id: 1',
      '\uFEFFdata: b',
    ),
    fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => `data: ${text.replaceAll(/[\r\n]/g, ' ')}`),
  );
  const end = fc.constantFrom('\n', '\r', '\r\n');
  const stream = fc
    .tuple(fc.boolean(), fc.array(fc.tuple(line, end), { maxLength: 20 }))
    .map(([hasMark, lines]) => Buffer.from((hasMark ? '\uFEFF' : '') + lines.flat().join('')));
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (bytes, points) => {
      t.deepEqual(parse(split(bytes, points)), parse([bytes]));
    }),
    { numRuns: 500 },
  );
  const bytes = Buffer.from('\uFEFFevent: a\r\ndata: ж\r\n\r\ndata: 😀\rdata: 2\r\r: c\n\ndata: end\n\n');
  t.deepEqual(parse(split(bytes, [...bytes.keys()])), parse([bytes]));
});

test('a line or an event over the limit is rejected, even before it ends', (t) => {
  const isTooLong = { instanceOf: UpstreamError, message: /more than 100 characters/ };
  t.throws(() => createSseParser({ maxEventLength: 100 }).push(Buffer.alloc(101, 'x')), isTooLong);
  t.throws(
    () => createSseParser({ maxEventLength: 100 }).push(Buffer.from(`data: ${'x'.repeat(101)}\n\n`)),
    isTooLong,
  );
  t.throws(() => {
    const parser = createSseParser({ maxEventLength: 100 });
    for (let count = 0; count < 101; count += 1) {
      parser.push(Buffer.from('x'));
    }
  }, isTooLong);
  t.throws(
    () => createSseParser({ maxEventLength: 100 }).push(Buffer.from('data: 1234567890\n'.repeat(20))),
    isTooLong,
  );
});

test('a line of a megabyte in small pieces does not take quadratic time', (t) => {
  const parser = createSseParser();
  const startedAtMs = performance.now();
  parser.push(Buffer.from('data: '));
  const piece = Buffer.alloc(64, 'x');
  for (let bytes = 0; bytes < 1_000_000; bytes += piece.length) {
    parser.push(piece);
  }
  t.is(parser.push(Buffer.from('\n\n'))[0]?.data.length, 1_000_000);
  t.true(performance.now() - startedAtMs < 2000);
});

test('a line received byte by byte takes little more memory than its bytes', (t) => {
  const parser = createSseParser();
  parser.push(Buffer.from('data: '));
  const before = process.memoryUsage().heapUsed;
  for (let bytes = 0; bytes < 1_000_000; bytes += 1) parser.push(Uint8Array.of(120));
  t.true(process.memoryUsage().heapUsed - before < 100_000_000);
  t.is(parser.push(Buffer.from('\n\n'))[0]?.data, 'x'.repeat(1_000_000));
});
