import { mock } from 'node:test';
import test from 'ava';
import type { AdmittedRequest } from '../../../shared/billing/admitted-request.ts';
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

test('bytes that were requested before are known immediately', async (t) => {
  const { run, requestUpTo } = start();
  requestUpTo(100);
  t.is(await run.whenRequested(0), 100);
  t.is(await run.whenRequested(99), 100);
});

test('a wait ends when enough bytes are requested, and not for fewer', async (t) => {
  const { run, requestUpTo } = start();
  const requested = run.whenRequested(10);
  t.true(await isPending(requested));
  requestUpTo(10);
  t.true(await isPending(requested), 'that many were known already');
  requestUpTo(5);
  t.true(await isPending(requested));
  requestUpTo(11);
  t.is(await requested, 11);
});

test('a lower number that arrives later does not reduce the requested bytes', async (t) => {
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

test('the highest of several simultaneous requests counts', async (t) => {
  const { run, requestUpTo } = start();
  const requested = run.whenRequested(0);
  requestUpTo(1);
  requestUpTo(3);
  requestUpTo(2);
  t.is(await requested, 3);
});

test('bytes requested of another request, or of a run that has ended, do not count for this run', async (t) => {
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

test('waits of a cancelled run fail, both pending and later ones', async (t) => {
  const { runs, run, requestUpTo } = start();
  const requested = run.whenRequested(0);
  runs.control({ action: 'cancel', requestId: 'one' });
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  requestUpTo(100);
  await t.throwsAsync(run.whenRequested(0), { instanceOf: CallerGone });
});

test('when a channel has no listener its runs stop waiting, while those of others do not', async (t) => {
  const { runs, run } = start();
  const other = runs.start({ ...request, requestId: 'two' }, 'other channel', 1);
  const [requested, otherAsked] = [run.whenRequested(0), other.whenRequested(0)];
  runs.cancelChannel('channel');
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  t.true(await isPending(otherAsked));
  runs.cancelChannel('other channel');
  await t.throwsAsync(otherAsked, { instanceOf: CallerGone });
});

test('a run whose caller does not read resumes when the caller disconnects', async (t) => {
  const { runs, run } = start();
  runs.control({ action: 'pause', requestId: 'one' });
  const resumed = run.whenResumed();
  t.true(await isPending(resumed!));
  runs.control({ action: 'cancel', requestId: 'one' });
  await resumed;
  t.is(run.whenResumed(), null);
});

test('a disconnected caller is distinguished from one whose response an internal error blocks', (t) => {
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

test('a caller that did not read is distinguished from one that disconnected, but charged alike', (t) => {
  const { runs, run } = start();
  runs.control({ action: 'cancel', requestId: 'one', isUnread: true });
  t.true(run.signal.reason instanceof CallerStalled);
  t.true(hasCallerDisconnected(run.signal));
});

test('a replaced run ends, and requested bytes count for its replacement', async (t) => {
  const { runs, run, requestUpTo } = start();
  requestUpTo(100);
  const waiting = run.whenRequested(100);
  const later = runs.start(request, 'channel', 2);
  await t.throwsAsync(waiting, { instanceOf: RunReplaced });
  const requested = later.whenRequested(0);
  requestUpTo(100);
  t.true(await isPending(requested), 'bytes requested of the earlier run do not count');
  run.end();
  t.is(runs.size, 1, 'the end of the earlier run does not end the later');
  requestUpTo(50, 'one', 2);
  t.is(await requested, 50);
});

// Serial, because no other test may see these timers.
test.serial(
  'a result that nobody requests is given up after five minutes, and each request postpones that',
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

test.serial('a paused run ends as stalled once no pause message has arrived for half a minute', (t) => {
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
