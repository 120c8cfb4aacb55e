import { once, EventEmitter } from 'node:events';
import test from 'ava';
import { runOnSchedule } from '../../../workers/maintenance/schedule.ts';
import { captureLog } from '../../support/captured-log.ts';

const everySecond = '* * * * * *';

test('if a run of a task fails, the failure is logged and the task runs again', async (t) => {
  const { log, waitForLine } = captureLog();
  const events = new EventEmitter();
  let runs = 0;
  const running = runOnSchedule(
    {
      name: 'fragile',
      expression: everySecond,
      run: async () => {
        runs += 1;
        if (runs === 1) throw new Error('the store is down');
        events.emit('again');
      },
    },
    log,
  );
  t.teardown(() => running.stop());
  await once(events, 'again');
  const line = await waitForLine(({ task }) => task === 'fragile');
  t.like(line, { level: 40, err: { message: 'the store is down' } });
});

test('stopping aborts the current run and waits for it to finish, and no run starts afterwards', async (t) => {
  const { log, lines } = captureLog();
  const events = new EventEmitter();
  let isFinished = false;
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
        isFinished = true;
        throw new Error('aborted');
      },
    },
    log,
  );
  await once(events, 'begun');
  await running.stop();
  t.true(isFinished);
  t.is(runs, 1);
  t.deepEqual(
    lines.filter(({ level }) => Number(level) > 20),
    [],
  );
});
