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
  readonly ask: (upToByte: number, requestId?: string, attempt?: number) => void;
}

function start(): Rig {
  const runs = new ActiveRuns();
  const run = runs.start(request, 'channel', 1);
  const ask = (upToByte: number, requestId = 'one', attempt = 1): void =>
    runs.control({ action: 'send', requestId, attempt, upToByte });
  return { runs, run, ask };
}

/** Runs everything that only waits for its event-loop turn. @returns whether the promise is still pending after that */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const settle = (): void => {
    pending = false;
  };
  promise.then(settle, settle);
  await new Promise((resolve) => setImmediate(resolve));
  return pending;
}

test('a send request that arrived earlier resolves a wait immediately', async (t) => {
  const { run, ask } = start();
  ask(100);
  t.is(await run.whenRequested(0), 100);
  t.is(await run.whenRequested(99), 100);
});

test('a later send request resolves a wait if it goes beyond the bytes already requested', async (t) => {
  const { run, ask } = start();
  const requested = run.whenRequested(10);
  t.true(await isPending(requested));
  ask(10);
  t.true(await isPending(requested), 'that much was known');
  ask(5);
  t.true(await isPending(requested));
  ask(11);
  t.is(await requested, 11);
});

test('a send request is never reduced by a smaller one that arrives later', async (t) => {
  const { run, ask } = start();
  ask(100);
  ask(40);
  t.is(await run.whenRequested(50), 100);
  const more = run.whenRequested(100);
  ask(60);
  t.true(await isPending(more));
  ask(200);
  t.is(await more, 200);
});

test('of several simultaneous send requests the largest applies', async (t) => {
  const { run, ask } = start();
  const requested = run.whenRequested(0);
  ask(1);
  ask(3);
  ask(2);
  t.is(await requested, 3);
});

test('a send request for another run, or for one that has ended, does not apply to this run', async (t) => {
  const { runs, run, ask } = start();
  ask(7);
  run.end();
  ask(8);
  t.is(runs.size, 0);
  const requested = runs.start(request, 'channel', 1).whenRequested(0);
  ask(9, 'another');
  t.true(await isPending(requested));
  ask(1);
  t.is(await requested, 1);
});

test('waiting for a send request fails once the run is cancelled, even if the wait started before', async (t) => {
  const { runs, run, ask } = start();
  const requested = run.whenRequested(0);
  runs.control({ action: 'cancel', requestId: 'one' });
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  ask(100);
  await t.throwsAsync(run.whenRequested(0), { instanceOf: CallerGone });
});

test('when a channel has no subscriber any more its runs stop waiting, but those of other channels do not', async (t) => {
  const { runs, run } = start();
  const other = runs.start({ ...request, requestId: 'two' }, 'other channel', 1);
  const [requested, otherRequested] = [run.whenRequested(0), other.whenRequested(0)];
  runs.cancelChannel('channel');
  await t.throwsAsync(requested, { instanceOf: CallerGone });
  t.true(await isPending(otherRequested));
  runs.cancelChannel('other channel');
  await t.throwsAsync(otherRequested, { instanceOf: CallerGone });
});

test('a run whose caller is not reading continues to read from the vendor after a disconnect', async (t) => {
  const { runs, run } = start();
  runs.control({ action: 'pause', requestId: 'one' });
  const resumed = run.whenResumed();
  t.true(await isPending(resumed!));
  runs.control({ action: 'cancel', requestId: 'one' });
  await resumed;
  t.is(run.whenResumed(), null);
});

test('a disconnected caller is distinguished from one whose response is withheld by an error of ours', (t) => {
  const causes = [
    { leave: (runs: ActiveRuns) => runs.control({ action: 'cancel', requestId: 'one' }), isOurs: false },
    {
      leave: (runs: ActiveRuns) => runs.control({ action: 'cancel', requestId: 'one', isOurFault: true }),
      isOurs: true,
    },
    { leave: (runs: ActiveRuns) => runs.cancelChannel('channel'), isOurs: true },
  ];
  for (const { leave, isOurs } of causes) {
    const { runs, run } = start();
    leave(runs);
    t.true(run.signal.reason instanceof CallerGone);
    t.is(hasCallerDisconnected(run.signal), !isOurs);
  }
});

test('a caller that did not read is distinguished from one that disconnected, and is charged like one', (t) => {
  const { runs, run } = start();
  runs.control({ action: 'cancel', requestId: 'one', isUnread: true });
  t.true(run.signal.reason instanceof CallerStalled);
  t.true(hasCallerDisconnected(run.signal));
});

test('a run that is replaced by another ends, and later send requests are for the new run', async (t) => {
  const { runs, run, ask } = start();
  ask(100);
  const waiting = run.whenRequested(100);
  const later = runs.start(request, 'channel', 2);
  await t.throwsAsync(waiting, { instanceOf: RunReplaced });
  const requested = later.whenRequested(0);
  ask(100);
  t.true(await isPending(requested), 'requests for the earlier run do not carry over');
  run.end();
  t.is(runs.size, 1, 'the end of the earlier run does not end the later one');
  ask(50, 'one', 2);
  t.is(await requested, 50);
});

// Serial, because no other test may see these timers.
test.serial(
  'a result that is not requested is abandoned after five minutes, and each send request restarts that time',
  async (t) => {
    const { run, ask } = start();
    ask(10);
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const requested = run.whenRequested(10);
      mock.timers.tick(5 * 60_000 - 1);
      ask(10);
      // The next wait starts in its own event-loop turn.
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

test.serial(
  'a run whose caller is not reading ends as disconnected once no such report has arrived for half a minute',
  (t) => {
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
  },
);

test('a ban ends only the runs of its account, including a paused one, with its own reason', async (t) => {
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
