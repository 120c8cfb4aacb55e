import { once, EventEmitter } from 'node:events';
import test from 'ava';
import { runOnSchedule } from '../../../workers/maintenance/schedule.ts';
import { captureLog } from '../../support/captured-log.ts';

const everySecond = '* * * * * *';

test('a task whose run fails runs again, and the failure is logged', async (t) => {
  const { log, waitForLine } = captureLog();
  const events = new EventEmitter();
  let runs = 0;
  const running = runOnSchedule(
    {
      name: 'fragile',
      expression: everySecond,
      run: async () => {
        runs += 1;
        if (runs === 1) throw new Error('the store is away');
        events.emit('again');
      },
    },
    log,
  );
  t.teardown(() => running.stop());
  await once(events, 'again');
  const line = await waitForLine(({ task }) => task === 'fragile');
  t.like(line, { level: 40, err: { message: 'the store is away' } });
});

test('a stop aborts the run in progress and waits for its end, and nothing runs after it', async (t) => {
  const { log, lines } = captureLog();
  const events = new EventEmitter();
  let isOver = false;
  let runs = 0;
  const running = runOnSchedule(
    {
      name: 'long',
      expression: everySecond,
      run: async (signal) => {
        runs += 1;
        events.emit('begun');
        await once(signal, 'abort');
        await Promise.resolve();
        isOver = true;
        throw new Error('aborted');
      },
    },
    log,
  );
  await once(events, 'begun');
  await running.stop();
  t.true(isOver);
  t.is(runs, 1);
  t.deepEqual(
    lines.filter(({ level }) => Number(level) > 20),
    [],
  );
});
