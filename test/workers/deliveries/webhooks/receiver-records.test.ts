import test from 'ava';
import { readStanding, writeTimeout } from '../../../../workers/deliveries/webhooks/receiver-records.ts';

const minuteMs = 60_000;

test('each timeout of a receiver shortens the wait for it, but once in ten minutes it gets the full time', (t) => {
  let nowMs = 1_000 * minuteMs;
  let record: string | null = null;
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    const standing = readStanding(record, record !== null, nowMs);
    waits.push(standing.limitMs);
    record = writeTimeout(standing, 'timeout', nowMs);
    nowMs += 1_000;
  }
  t.deepEqual(waits, [15_000, 5_000, 2_000, 2_000, 2_000]);
  const later = readStanding(record, true, nowMs + 11 * minuteMs);
  t.is(later.limitMs, 15_000);
  t.is(later.lane, 'hanging', 'it still has no claim to the places of others');
});

test('after an attempt that was ended early, the next one to its receiver still gets the full time', (t) => {
  const nowMs = 1_000 * minuteMs;
  const record = writeTimeout(readStanding(null, false, nowMs), 'ended', nowMs);
  const standing = readStanding(record, true, nowMs + 1_000);
  t.is(standing.lane, 'hanging');
  t.is(standing.limitMs, 15_000);
});

test('a new receiver of an account with a hanging one counts as hanging, but a prompt one does not', (t) => {
  t.is(readStanding(null, false, 0).lane, 'unknown');
  t.is(readStanding(null, true, 0).lane, 'hanging');
  t.is(readStanding('prompt', true, 0).lane, 'prompt');
});
