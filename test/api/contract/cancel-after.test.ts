import test from 'ava';
import { readCancelAfter } from '../../../api/contract/cancel-after.ts';
import type { AppError } from '../../../shared/contract/errors.ts';

test('Cancel-After is a time in seconds, minutes or hours, up to a day', (t) => {
  const times: readonly [string, number][] = [
    ['1', 1_000],
    ['90s', 90_000],
    [' 15m ', 900_000],
    ['1h', 3_600_000],
    ['24h', 86_400_000],
    ['86400', 86_400_000],
  ];
  for (const [header, ms] of times) t.is(readCancelAfter(header), ms, header);
});

test('any other Cancel-After is a validation error that names the header and shows how it looks', (t) => {
  for (const header of [
    '',
    '0',
    '0h',
    '25h',
    '86401',
    '-1',
    '1.5h',
    '1e3',
    '90 s',
    '90S',
    '1d',
    '90s, 90s',
    'h',
    '9'.repeat(400),
  ]) {
    const error = t.throws<AppError>(() => readCancelAfter(header), undefined, header);
    t.is(error.code, 'validation_failed');
    t.deepEqual(error.issues[0]?.loc, ['header', 'Cancel-After']);
    t.regex(error.message, /90s, 15m or 1h/);
  }
});
