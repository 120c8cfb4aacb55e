import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import type { Logger } from '../../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../../shared/platform/runtime/run-in-background.ts';

test('failed background work is logged with its name and does not end the process', async (t) => {
  const logged: unknown[] = [];
  const log = {
    error: (fields: object, text: string) => logged.push([fields, text]),
  } as unknown as Logger;
  const error = new Error('Redis is away');
  runInBackground(Promise.reject(error), 'ban look-up', log);
  runInBackground(Promise.resolve(), 'heartbeat', log);
  await nextTurn();
  t.deepEqual(logged, [[{ err: error }, 'ban look-up failed']]);
});
