import test from 'ava';
import type { AppError } from '../../../shared/contract/errors.ts';
import { maxPreferLength, readPreferences, readRequestTimeout } from '../../../api/contract/prefer.ts';

const prefersAsync = (header: string | undefined): boolean => readPreferences(header).respondsAsync;

test('respond-async is found wherever a preference list may contain it', (t) => {
  const asyncHeaders = [
    'respond-async',
    'Respond-Async',
    ' respond-async ',
    'wait=10,respond-async',
    'respond-async, wait=10',
    'respond-async;foo=bar',
    'foo="a, b; c", respond-async',
    'foo="a \\" b", respond-async',
    'respond-async=""',
    ',, respond-async',
  ];
  for (const header of asyncHeaders) t.true(prefersAsync(header), header);
});

test('text that only resembles respond-async does not request it', (t) => {
  const others = [
    undefined,
    '',
    'respond',
    'respond-async2',
    'foo; respond-async',
    'foo=respond-async',
    'foo="x, respond-async"',
    'foo="x, respond-async',
    'respond-async=no',
    '"respond-async"',
    'foo="\\',
    'foo="\\", respond-async',
  ];
  for (const header of others) t.false(prefersAsync(header), header);
});

test('wait is read as whole seconds from 1 to 600, and other numbers are limited to that', (t) => {
  const waits: readonly [string, number | null][] = [
    ['respond-async, wait=10', 10],
    ['wait=10, respond-async', 10],
    ['respond-async, WAIT = 10', 10],
    ['respond-async, wait="10"', 10],
    ['respond-async, wait=10; foo=bar', 10],
    ['respond-async, wait=1', 1],
    ['respond-async, wait=600', 600],
    ['respond-async, wait=601', 600],
    [`respond-async, wait=${'9'.repeat(400)}`, 600],
    ['respond-async, wait=0', 1],
    ['respond-async, wait=10, wait=20', 10],
  ];
  for (const [header, waitSeconds] of waits)
    t.deepEqual(readPreferences(header), { respondsAsync: true, waitSeconds }, header);
});

test('a wait that is malformed, a parameter, or without respond-async is ignored', (t) => {
  for (const wait of [
    'wait',
    'wait=',
    'wait=-1',
    'wait=1.5',
    'wait=1e2',
    'wait=ten',
    'wait=10 s',
    'foo; wait=10',
  ])
    t.deepEqual(readPreferences(`respond-async, ${wait}`), { respondsAsync: true, waitSeconds: null }, wait);
  t.deepEqual(readPreferences('respond-async; wait=10'), { respondsAsync: true, waitSeconds: null });
  t.deepEqual(readPreferences('wait=10'), { respondsAsync: false, waitSeconds: null });
});

test('a header of more than 1024 characters is ignored', (t) => {
  const padded = (length: number): string => 'respond-async, x='.padEnd(length, 'y');
  t.true(prefersAsync(padded(maxPreferLength)));
  t.false(prefersAsync(padded(maxPreferLength + 1)));
});

test('X-Request-Timeout-Ms must be an integer from 1 to the milliseconds of a day', (t) => {
  t.is(readRequestTimeout(undefined), null);
  t.is(readRequestTimeout('1'), 1);
  t.is(readRequestTimeout(' 86400000 '), 86_400_000);
  for (const text of [
    '',
    '0',
    '-1',
    '+5',
    '1e3',
    '0x10',
    '1.0',
    '86400001',
    '1, 2',
    '99999999999999999999',
  ]) {
    const error = t.throws<AppError>(() => readRequestTimeout(text), undefined, text);
    t.is(error.code, 'validation_failed');
    t.deepEqual(error.issues[0]?.loc, ['header', 'X-Request-Timeout-Ms']);
  }
});
