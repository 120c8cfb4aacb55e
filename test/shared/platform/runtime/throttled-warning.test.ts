import test from 'ava';
import { createThrottledWarning } from '../../../../shared/platform/runtime/throttled-warning.ts';

test('one warning per interval is logged, and the next one reports how many were suppressed', (t) => {
  const warned: [string, object][] = [];
  let nowMs = 5;
  const warn = createThrottledWarning((line, fields: object) => warned.push([line, fields]), {
    intervalMs: 100,
    now: () => nowMs,
  });
  warn('refused', { open: 1 });
  warn('refused', { open: 2 });
  nowMs = 104;
  warn('refused', { open: 3 });
  nowMs = 105;
  warn('refused', { open: 4 });
  nowMs = 205;
  warn('refused', { open: 5 });
  t.deepEqual(warned, [
    ['refused', { open: 1 }],
    ['refused (and 2 more since the last such line)', { open: 4 }],
    ['refused', { open: 5 }],
  ]);
});
