import test from 'ava';
import { formatContentRange, parseRange, resolveRange } from '../../../../api/endpoints/files/byte-range.ts';

/** The part of a 1000-byte body that a header selects: `whole`, `none` (a 416), or the content range. */
function select(header: string): string {
  const requested = parseRange(header);
  if (requested === null) return 'whole';
  const range = resolveRange(requested, 1_000);
  return range === null ? 'none' : formatContentRange(range, 1_000);
}

test('a single byte range selects those of its bytes that exist', (t) => {
  const selected = {
    'bytes=0-0': 'bytes 0-0/1000',
    'bytes=0-499': 'bytes 0-499/1000',
    'bytes=500-': 'bytes 500-999/1000',
    'bytes=999-999': 'bytes 999-999/1000',
    'bytes=900-99999': 'bytes 900-999/1000',
    'bytes=-1': 'bytes 999-999/1000',
    'bytes=-1000': 'bytes 0-999/1000',
    'bytes=-99999999999999999999': 'bytes 0-999/1000',
    'BYTES= 1-2 ': 'bytes 1-2/1000',
  };
  for (const [header, range] of Object.entries(selected)) t.is(select(header), range, header);
});

test('a range that starts after the end selects nothing', (t) => {
  for (const header of ['bytes=1000-', 'bytes=1000-1001', 'bytes=-0', 'bytes=99999999999999999999999-'])
    t.is(select(header), 'none', header);
  t.is(formatContentRange(null, 1_000), 'bytes */1000');
});

test('multiple ranges, other units and malformed headers select the whole body', (t) => {
  const headers = ['', 'bytes', 'bytes=', 'bytes=-', 'bytes=5-4', 'bytes=a-b', 'bytes=1-2,4-5', 'lines=1-2'];
  headers.push('bytes=0x1-2', 'bytes=1 - 2', 'bytes=--1', 'bytes=1.5-2');
  for (const header of headers) t.is(select(header), 'whole', header);
});
