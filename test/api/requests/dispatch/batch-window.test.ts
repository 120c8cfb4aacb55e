import test from 'ava';
import { chooseWindowMs, exceedsBatch } from '../../../../api/requests/dispatch/batch-window.ts';

const limits = { windowMs: 4, maxWindowMs: 20, maxInputs: 10, maxBytes: 100 };

test('a call is sent immediately if no other is in flight; the more are in flight, the longer a batch waits, up to a limit', (t) => {
  t.deepEqual(
    [0, 1, 3, 5, 100].map((inFlight) => chooseWindowMs(inFlight, limits)),
    [0, 4, 12, 20, 20],
  );
});

test('a batch is closed before a call would exceed a limit; a call that exceeds a limit by itself is sent as its own batch', (t) => {
  t.false(exceedsBatch({ inputs: 0, bytes: 0 }, { inputs: 99, bytes: 9_999 }, limits));
  t.false(exceedsBatch({ inputs: 9, bytes: 1 }, { inputs: 1, bytes: 1 }, limits));
  t.true(exceedsBatch({ inputs: 9, bytes: 1 }, { inputs: 2, bytes: 1 }, limits));
  t.true(exceedsBatch({ inputs: 1, bytes: 60 }, { inputs: 1, bytes: 60 }, limits));
});
