import test from 'ava';

import { cleanVendorText, readRetryAfterMs } from '../../../workers/upstreams/http-failure.ts';

const NOW = Date.parse('2026-03-01T00:00:00Z');

test('the retry delay is read from milliseconds, seconds or a date, in this order', (t) => {
  t.is(readRetryAfterMs({ 'retry-after-ms': '1500.2', 'retry-after': '9' }, NOW), 1501);
  t.is(readRetryAfterMs({ 'retry-after': '2.5' }, NOW), 2500);
  t.is(readRetryAfterMs({ 'retry-after': 'Sun, 01 Mar 2026 00:00:10 GMT' }, NOW), 10_000);
  t.is(readRetryAfterMs({ 'retry-after': 'Sat, 28 Feb 2026 00:00:00 GMT' }, NOW), 0);
  t.is(readRetryAfterMs({ 'retry-after': ['3', '4'] }, NOW), 3000);
});

test('an invalid retry delay is ignored', (t) => {
  for (const text of ['soon', '-5', '', 'NaN', '1e9x']) {
    t.is(readRetryAfterMs({ 'retry-after': text }, NOW), null, text);
  }
  t.is(readRetryAfterMs({}, NOW), null);
});

test('the key is removed from a vendor text in every form in which it may be echoed', (t) => {
  const key = 'sk-proj-A1b2C3d4E5/f6+g7';
  const text = [
    `key ${key}!`,
    `Bearer ${key}`,
    encodeURIComponent(key),
    'sk-proj-****f6+g7',
    `authorization: bearer ${key.slice(0, 15)}`,
  ].join(' | ');
  const clean = cleanVendorText(text, key);
  for (const part of ['A1b2', 'C3d4', 'sk-proj', 'g7']) {
    t.false(clean.includes(part), `${part} in ${clean}`);
  }
  t.true(clean.startsWith('key [redacted]'));
});

test('a vendor text becomes one line of limited length', (t) => {
  t.is(cleanVendorText(' a\r\n\u0000b\tc ', null), 'a b c');
  t.is(cleanVendorText('x'.repeat(2000), null).length, 500);
});
