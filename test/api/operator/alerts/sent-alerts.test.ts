import test from 'ava';
import {
  findDue,
  formatRecord,
  neverSent,
  parseSent,
  type SentRecord,
} from '../../../../api/operator/alerts/sent-alerts.ts';

const hourMs = 3_600_000;
const due = (isOn: boolean | null, sent: SentRecord, nowMs: number) => findDue(isOn, sent, nowMs, hourMs);

test('a beginning is told once, and an end only if the beginning was told', (t) => {
  t.is(due(false, neverSent, hourMs), null);
  t.is(due(true, neverSent, hourMs), 'begin');
  const told = { isOn: true, sinceMs: 0, beganAtMs: hourMs, endedAtMs: 0 };
  t.is(due(true, told, 9 * hourMs), null);
  t.is(due(false, told, hourMs + 1), 'end');
});

test('what begins again within the hour is told when the hour is over, if it still lasts', (t) => {
  const ended = { isOn: false, sinceMs: 0, beganAtMs: hourMs, endedAtMs: hourMs + 60_000 };
  t.is(due(true, ended, hourMs + 120_000), null);
  t.is(due(false, ended, hourMs + 180_000), null);
  t.is(due(true, ended, 2 * hourMs), 'begin');
  const again = { ...ended, isOn: true, beganAtMs: 2 * hourMs };
  t.is(due(false, again, 2 * hourMs + 30_000), null);
  t.is(due(false, again, 2 * hourMs + 60_000), 'end');
});

test('while it is unknown whether a condition is on, nothing is told', (t) => {
  t.is(due(null, neverSent, 0), null);
  t.is(due(null, { isOn: true, sinceMs: 0, beganAtMs: 0, endedAtMs: 0 }, 0), null);
});

test('a clock that was ahead for a while does not silence alerts', (t) => {
  t.is(due(true, { isOn: false, sinceMs: 0, beganAtMs: 9 * hourMs, endedAtMs: 9 * hourMs }, hourMs), 'begin');
});

test('records are read as they were written, and unknown ones are ignored', (t) => {
  const record = { isOn: true, sinceMs: 1, beganAtMs: 2, endedAtMs: 3 };
  t.is(formatRecord({ ...record, sinceMs: 1.4 }), formatRecord(record));
  const fields = ['no_workers', formatRecord(record), 'unknown', 'on 1 2 3', 'redis_memory', 'on 1', 'odd'];
  t.deepEqual([...parseSent(fields)], [['no_workers', record]]);
});
