import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import type { Logger } from '../../../shared/runtime/logger.ts';
import { runInBackground } from '../../../shared/runtime/run-in-background.ts';

test('work in the background that fails is logged with what it was, and ends nothing', async (t) => {
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
