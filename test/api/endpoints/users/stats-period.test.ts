import test from 'ava';
import { readPeriod } from '../../../../api/endpoints/users/stats-period.ts';
import { AppError } from '../../../../shared/contract/errors.ts';

const now = new Date('2026-03-05T00:00:00.000Z');

test('the default period is the last 30 days and today', (t) => {
  t.deepEqual(readPeriod({}, now), { start: '2026-02-03', end: '2026-03-05' });
});

test('setting one day replaces only that default', (t) => {
  t.deepEqual(readPeriod({ start_date: '2026-02-28' }, now), { start: '2026-02-28', end: '2026-03-05' });
  t.deepEqual(readPeriod({ end_date: '2026-02-03' }, now), { start: '2026-02-03', end: '2026-02-03' });
  t.deepEqual(readPeriod({ start_date: '2026-03-05', end_date: '2026-12-31' }, now), {
    start: '2026-03-05',
    end: '2026-12-31',
  });
});

test('a period that starts too early or ends before it starts is rejected, and the error points to the invalid day', (t) => {
  const locate = (query: { start_date?: string; end_date?: string }): unknown => {
    const error = t.throws(() => readPeriod(query, now), { instanceOf: AppError });
    return error.issues[0]?.loc;
  };
  t.deepEqual(locate({ start_date: '2026-02-02' }), ['query', 'start_date']);
  t.deepEqual(locate({ end_date: '2026-02-02' }), ['query', 'end_date']);
  t.deepEqual(locate({ start_date: '2026-03-04', end_date: '2026-03-03' }), ['query', 'start_date']);
  t.deepEqual(locate({ start_date: '2026-03-06' }), ['query', 'start_date']);
});
