import test from 'ava';
import fc from 'fast-check';
import { normalizeTimeZone, timeZones } from '../../../api/account-area/time-zone.ts';

test("zone names are normalized to IANA's spelling, including aliases", (t) => {
  for (const name of [
    'UTC',
    'Etc/UTC',
    'Etc/GMT+3',
    'Europe/Moscow',
    'Europe/Kiev',
    'Europe/Kyiv',
    'Asia/Calcutta',
    'Asia/Kolkata',
    'America/Argentina/Buenos_Aires',
    'America/Port-au-Prince',
    'Africa/Dar_es_Salaam',
    'Antarctica/DumontDUrville',
    'EST5EDT',
    'GB-Eire',
  ]) {
    t.is(normalizeTimeZone(name), name);
    t.is(normalizeTimeZone(` ${name.toLowerCase()} `), name);
    t.is(normalizeTimeZone(name.toUpperCase()), name);
  }
});

test('offsets, abbreviations and anything else are not time zones', (t) => {
  for (const text of [
    '',
    ' ',
    '+03:00',
    '-05',
    'GMT+3',
    'UTC+3',
    'MSK',
    'Europe',
    'Europe/',
    'Europe/Atlantis',
    'Europe /Moscow',
    'Europe//Moscow',
    '/UTC',
    'Factory',
    'posix/UTC',
    '../../etc/passwd',
    '__proto__',
    'constructor',
  ]) {
    t.is(normalizeTimeZone(text), null, text);
  }
});

test('every zone listed by this Node.js is accepted, and every name in the table works with it', (t) => {
  for (const name of Intl.supportedValuesOf('timeZone')) t.is(normalizeTimeZone(name), name);
  for (const name of timeZones) t.notThrows(() => new Intl.DateTimeFormat('en', { timeZone: name }), name);
});

test('the table has each zone once, in at most 64 characters', (t) => {
  t.true(timeZones.length > 590);
  t.is(new Set(timeZones.map((name) => name.toLowerCase())).size, timeZones.length);
  t.true(timeZones.every((name) => /^[A-Za-z][\w+/-]{1,63}$/.test(name)));
});

test('for any input, the result is a name in the table or null', (t) => {
  const names = new Set(timeZones);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...timeZones)), (text) => {
      const name = normalizeTimeZone(text);
      return name === null ? !names.has(text) : names.has(name);
    }),
  );
  t.pass();
});
