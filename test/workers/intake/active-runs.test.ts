import { mock } from 'node:test';
import test from 'ava';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import { ActiveRuns, type StartedRun } from '../../../workers/intake/active-runs.ts';
import {
  AccountBanned,
  CallerGone,
  CallerStalled,
  hasCallerDisconnected,
  RunReplaced,
} from '../../../workers/runs/job-context.ts';

const request = { requestId: 'one', accountId: 'ann', claimHash: null } as AdmittedRequest;

interface Rig {
  readonly runs: ActiveRuns;
  readonly run: StartedRun;
  readonly requestUpTo: (upToByte: number, requestId?: string, attempt?: number) => void;
}

function start(): Rig {
  const runs = new ActiveRuns();
  const run = runs.start(request, 'channel', 1);
  const requestUpTo = (upToByte: number, requestId = 'one', attempt = 1): void =>
    runs.control({ action: 'send', requestId, attempt, upToByte });
  return { runs, run, requestUpTo };
}

/** Lets all ready callbacks run. @returns whether the promise is still pending afterwards */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const settle = (): void => {
    pending = false;
  };
  promise.then(settle, settle);
  await new Promise((resolve) => setImmediate(resolve));
  return pending;
}

test('a wait for bytes that were already requested ends immediately', async (t) => {
  const { run, requestUpTo } = start();
  requestUpTo(100);
  t.is(await run.whenRequested(0), 100);
  t.is(await run.whenRequested(99), 100);
});

test('a wait ends only when enough bytes are requested', async (t) => {
  const { run, requestUpTo } = start();
  const requested = run.whenRequested(10);
  t.true(await isPending(requested));
  requestUpTo(10);
  t.true(await isPending(requested), 'ten bytes are not enough: the wait is for more than ten');
  requestUpTo(5);
  t.true(await isPending(requested));
  requestUpTo(11);
  t.is(await requested, 11);
});

test('a later request for a lower number of bytes does not reduce the requested bytes', async (t) => {
  const { run, requestUpTo } = start();
  requestUpTo(100);
  requestUpTo(40);
  t.is(await run.whenRequested(50), 100);
  const more = run.whenRequested(100);
  requestUpTo(60);
  t.true(await isPending(more));
  requestUpTo(200);
  t.is(await more, 200);
});

test('of several simultaneous requests for bytes, the highest number applies', async (t) => {
  const { run, requestUpTo } = start();
  const requested = run.whenRequested(0);
  requestUpTo(1);
  requestUpTo(3);
  requestUpTo(2);
  t.is(await requested, 3);
});

test('bytes requested for another request, or for a run that has ended, do not apply to this run', async (t) => {
  const { runs, run, requestUpTo } = start();
  requestUpTo(7);
  run.end();
  requestUpTo(8);
  t.is(runs.size, 0);
  const requested = runs.start(request, 'channel', 1).whenRequested(0);
  requestUpTo(9, 'another');
  t.true(await isPending(requested));
  requestUpTo(1);
  t.is(await requested, 1);
});

test('when a run is cancelled, its pending and later waits fail', async (t) => {
  const { runs, run, requestUpTo } = start();
  const requested = run.whenRequested(0);
  runs.control({ action: 'cancel', requestId: 'one' });
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  requestUpTo(100);
  await t.throwsAsync(run.whenRequested(0), { instanceOf: CallerGone });
});

test('when a channel has no listener, its runs stop waiting and runs of other channels continue to wait', async (t) => {
  const { runs, run } = start();
  const other = runs.start({ ...request, requestId: 'two' }, 'other channel', 1);
  const [requested, otherRequested] = [run.whenRequested(0), other.whenRequested(0)];
  runs.cancelChannel('channel');
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  t.true(await isPending(otherRequested));
  runs.cancelChannel('other channel');
  await t.throwsAsync(otherRequested, { instanceOf: CallerGone });
});

test('a run paused because its caller does not read resumes when the caller disconnects', async (t) => {
  const { runs, run } = start();
  runs.control({ action: 'pause', requestId: 'one' });
  const resumed = run.whenResumed();
  t.true(await isPending(resumed!));
  runs.control({ action: 'cancel', requestId: 'one' });
  await resumed;
  t.is(run.whenResumed(), null);
});

test('a disconnected caller is distinguished from an internal error that prevents sending the response', (t) => {
  const causes = [
    { cancel: (runs: ActiveRuns) => runs.control({ action: 'cancel', requestId: 'one' }), isInternal: false },
    {
      cancel: (runs: ActiveRuns) => runs.control({ action: 'cancel', requestId: 'one', isOurFault: true }),
      isInternal: true,
    },
    { cancel: (runs: ActiveRuns) => runs.cancelChannel('channel'), isInternal: true },
  ];
  for (const { cancel, isInternal } of causes) {
    const { runs, run } = start();
    cancel(runs);
    t.true(run.signal.reason instanceof CallerGone);
    t.is(hasCallerDisconnected(run.signal), !isInternal);
  }
});

test('a caller that did not read is distinguished from one that disconnected, but is charged in the same way', (t) => {
  const { runs, run } = start();
  runs.control({ action: 'cancel', requestId: 'one', isUnread: true });
  t.true(run.signal.reason instanceof CallerStalled);
  t.true(hasCallerDisconnected(run.signal));
});

test('a replaced run ends, and only bytes requested from its replacement apply to the replacement', async (t) => {
  const { runs, run, requestUpTo } = start();
  requestUpTo(100);
  const waiting = run.whenRequested(100);
  const later = runs.start(request, 'channel', 2);
  await t.throwsAsync(waiting, { instanceOf: RunReplaced });
  const requested = later.whenRequested(0);
  requestUpTo(100);
  t.true(await isPending(requested), 'bytes requested from the earlier run do not apply');
  run.end();
  t.is(runs.size, 1, 'the end of the earlier run does not end the later one');
  requestUpTo(50, 'one', 2);
  t.is(await requested, 50);
});

// Serial, because mocked timers would affect other tests.
test.serial(
  'waiting for a result to be requested fails after five minutes, and each request restarts that time',
  async (t) => {
    const { run, requestUpTo } = start();
    requestUpTo(10);
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const requested = run.whenRequested(10);
      mock.timers.tick(5 * 60_000 - 1);
      requestUpTo(10);
      // The next wait starts in a later microtask.
      await Promise.resolve();
      t.true(await isPending(requested));
      mock.timers.tick(5 * 60_000 - 1);
      t.true(await isPending(requested));
      mock.timers.tick(1);
      await t.throwsAsync(requested, { message: 'nobody requested the result' });
    } finally {
      mock.timers.reset();
    }
  },
);

test.serial('a paused run ends as stalled when no pause message has arrived for half a minute', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { runs, run } = start();
    for (let i = 0; i < 10; i++) {
      runs.control({ action: 'pause', requestId: 'one' });
      mock.timers.tick(29_000);
      t.false(run.signal.aborted);
    }
    mock.timers.tick(1_000);
    t.true(run.signal.reason instanceof CallerStalled);
  } finally {
    mock.timers.reset();
  }
});

test('a ban ends only the runs of its account, paused ones too, with its own reason', async (t) => {
  const { runs, run } = start();
  const other = runs.start({ ...request, requestId: 'two', accountId: 'bob' }, 'channel', 1);
  runs.control({ action: 'pause', requestId: 'one' });
  const resumed = run.whenResumed();
  t.not(resumed, null);
  runs.cancelAccount('ann', new AccountBanned());
  await resumed;
  t.true(run.signal.reason instanceof AccountBanned);
  t.false(other.signal.aborted);
});
