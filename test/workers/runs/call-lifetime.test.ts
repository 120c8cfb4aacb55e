import { once } from 'node:events';
import test from 'ava';
import type { CatalogRoute, OnDisconnect } from '../../../shared/catalog/catalog-schema.ts';
import { CallLifetime } from '../../../workers/runs/call-lifetime.ts';
import { CallerGone, RunReplaced } from '../../../workers/runs/job-context.ts';
import { createRoute } from '../../support/routing.ts';

interface Rig {
  readonly call: CallLifetime;
  readonly end: (reason: Error) => void;
  readonly stop: () => void;
  isCovered: boolean;
  isPaused: boolean;
}

const rigs: Rig[] = [];
// As every caller of the function does: an unfinished read would keep this file's process alive.
test.after.always(() => {
  for (const { call } of rigs) call.close();
});

function start(onDisconnect: OnDisconnect, disconnectGraceMs = 20_000, isStreamed = true): Rig {
  const known = createRoute('lab');
  const route: CatalogRoute = { ...known, onDisconnect, upstream: { ...known.upstream, disconnectGraceMs } };
  const [caller, stopping] = [new AbortController(), new AbortController()];
  const rig: Rig = {
    isCovered: false,
    isPaused: false,
    call: new CallLifetime(
      {
        signal: caller.signal,
        stopping: stopping.signal,
        whenResumed: () => (rig.isPaused ? Promise.resolve() : null),
      },
      { route, isStreamed, isCovered: () => rig.isCovered },
    ),
    end: (reason: Error) => caller.abort(reason),
    stop: () => stopping.abort(),
  };
  rigs.push(rig);
  return rig;
}

test('a call that was not sent yet ends immediately, however its route ends those that were', (t) => {
  for (const policy of ['cancel', 'drain'] as const) {
    for (const isStreamed of [true, false]) {
      const { call, end } = start(policy, 20_000, isStreamed);
      end(new CallerGone());
      t.true(call.signal.aborted);
      t.true(call.signal.reason instanceof CallerGone);
    }
  }
});

test('a call that was sent is read until its usage is known', (t) => {
  const rig = start('cancel');
  rig.call.markSent();
  rig.end(new CallerGone());
  t.false(rig.call.endIfCovered());
  rig.isCovered = true;
  t.true(rig.call.endIfCovered());
  t.true(rig.call.signal.reason instanceof CallerGone);
});

test('a call whose usage is complete ends immediately when its caller disconnects, and continues while its caller is connected', (t) => {
  const rig = start('cancel');
  rig.call.markSent();
  rig.isCovered = true;
  t.false(rig.call.endIfCovered());
  rig.end(new CallerGone());
  t.true(rig.call.signal.aborted);
});

test('if the call was not being read when its caller disconnected, usage known at that time does not end it', async (t) => {
  const rig = start('cancel', 20);
  rig.call.markSent();
  rig.isCovered = true;
  rig.isPaused = true;
  rig.end(new CallerGone());
  rig.isPaused = false;
  t.false(rig.call.endIfCovered());
  await once(rig.call.signal, 'abort');
});

test('the time for which it is still read is limited, and may be zero', async (t) => {
  const short = start('cancel', 20);
  short.call.markSent();
  short.end(new CallerGone());
  t.false(short.call.signal.aborted);
  await once(short.call.signal, 'abort');
  const none = start('cancel', 0);
  none.call.markSent();
  none.end(new CallerGone());
  t.true(none.call.signal.aborted);
});

test('a call that drains, or one for a whole response, continues even if its usage is complete, until the process stops', (t) => {
  for (const rig of [start('drain', 0), start('cancel', 0, false)]) {
    rig.call.markSent();
    rig.isCovered = true;
    rig.end(new CallerGone());
    t.false(rig.call.endIfCovered());
    rig.stop();
    t.true(rig.call.signal.reason instanceof CallerGone);
  }
  const stopped = start('drain');
  stopped.call.markSent();
  stopped.stop();
  t.false(stopped.call.signal.aborted, 'its caller is connected');
  stopped.end(new CallerGone());
  t.true(stopped.call.signal.aborted);
});

test('a call that ends for another reason than a disconnect (an internal error, another run) ends immediately', (t) => {
  for (const reason of [new CallerGone(true), new RunReplaced()]) {
    const { call, end } = start('drain');
    call.markSent();
    end(reason);
    t.is(call.signal.reason, reason);
  }
});
