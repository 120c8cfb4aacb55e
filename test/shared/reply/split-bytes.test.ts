import test from 'ava';
import fc from 'fast-check';
import { SplitBytes } from '../../../shared/reply/split-bytes.ts';

const parts = fc.array(
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 8 },
);

test('bytes read as if they were in one buffer, wherever they are cut, in whatever order they are read', (t) => {
  const reads = fc.array(fc.tuple(fc.nat(170), fc.nat(170)), { maxLength: 20 });
  fc.assert(
    fc.property(parts, fc.nat(170), reads, (all, skipped, places) => {
      const joined = Buffer.concat(all);
      const from = Math.min(skipped, joined.length);
      const whole = new SplitBytes(all);
      const rest = whole.from(from);
      t.is(whole.length, joined.length);
      t.is(rest.length, joined.length - from);
      for (const [a, b] of places) {
        const [start, end] = [Math.min(a, b), Math.max(a, b)];
        for (const [bytes, expected] of [
          [whole, joined],
          [rest, joined.subarray(from)],
        ] as const) {
          if (end <= expected.length) t.deepEqual(bytes.slice(start, end), expected.subarray(start, end));
          else t.throws(() => bytes.slice(start, end), { instanceOf: RangeError });
        }
      }
      t.deepEqual(rest.join(), joined.subarray(from));
    }),
  );
});

test('a slice that lies in one buffer is a view of it; one across several is a copy', (t) => {
  const [first, second] = [Buffer.from('abc'), Buffer.from('def')];
  const bytes = new SplitBytes([first, second]);
  const view = bytes.slice(3, 6);
  const copy = bytes.slice(2, 4);
  second.fill('x');
  t.is(view.toString(), 'xxx');
  t.is(copy.toString(), 'cd');
});

test('a rest of a rest begins where both say', (t) => {
  const bytes = new SplitBytes([Buffer.from('ab'), Buffer.from('cdef')]).from(1).from(2);
  t.is(bytes.join().toString(), 'def');
});

test('there is nothing before the first byte, and nothing backwards', (t) => {
  const bytes = new SplitBytes([Buffer.from('abc')]).from(1);
  t.throws(() => bytes.slice(-1, 1), { instanceOf: RangeError });
  t.throws(() => bytes.slice(2, 1), { instanceOf: RangeError });
  t.is(new SplitBytes([]).join().length, 0);
});
