import test from 'ava';
import fc from 'fast-check';
import { formatRub, parseRub, toRubNumber } from '../../../shared/encoding/money.ts';

test('an amount is read exactly, up to nine decimals', (t) => {
  t.is(parseRub('12.5'), 12_500_000_000n);
  t.is(parseRub('0.000000001'), 1n);
  t.is(parseRub(0.1), 100_000_000n);
  t.is(parseRub(1e-7), 100n);
  t.is(parseRub('-3'), -3_000_000_000n);
  t.is(parseRub(9_000_000), 9_000_000_000_000_000n);
});

test('text that is not an amount, or has more than nine decimals, is rejected', (t) => {
  for (const text of ['', 'x', '1,5', '1.', '.5', '0.0000000001', '1e3', 'NaN', 'Infinity'])
    t.is(parseRub(text), null, text);
  t.is(parseRub(1e-10), null);
  t.is(parseRub(Number.NaN), null);
});

test('every amount is formatted so that it reads back as itself', (t) => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), (nano) => {
      t.is(parseRub(formatRub(nano)), nano);
    }),
  );
  t.pass();
});

test('a displayed number has no floating-point noise', (t) => {
  t.is(JSON.stringify(toRubNumber(1_400_000n)), '0.0014');
  t.is(JSON.stringify(toRubNumber(300_000_000n)), '0.3');
  t.is(JSON.stringify(toRubNumber(0n)), '0');
});
