import { once } from 'node:events';
import test from 'ava';
import type { CatalogRoute, OnDisconnect } from '../../../shared/catalog/catalog-schema.ts';
import { CallLifetime } from '../../../workers/runs/call-lifetime.ts';
import { CallerGone, RunReplaced } from '../../../workers/runs/job-context.ts';
import { createRoute } from '../../support/routing.ts';

interface Rig {
  readonly call: CallLifetime;
  readonly cancel: (reason: Error) => void;
  readonly stop: () => void;
  isCovered: boolean;
  isPaused: boolean;
}

const rigs: Rig[] = [];
// Closes every call, as its owner does: a call that is still being read would keep this test process alive.
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
    cancel: (reason: Error) => caller.abort(reason),
    stop: () => stopping.abort(),
  };
  rigs.push(rig);
  return rig;
}

test('a call not sent yet is aborted immediately, under any disconnect policy of its route', (t) => {
  for (const policy of ['cancel', 'drain'] as const) {
    for (const isStreamed of [true, false]) {
      const { call, cancel } = start(policy, 20_000, isStreamed);
      cancel(new CallerGone());
      t.true(call.signal.aborted);
      t.true(call.signal.reason instanceof CallerGone);
    }
  }
});

test('after a disconnect, a call that was sent is read until its usage is known', (t) => {
  const rig = start('cancel');
  rig.call.markSent();
  rig.cancel(new CallerGone());
  t.false(rig.call.endIfCovered());
  rig.isCovered = true;
  t.true(rig.call.endIfCovered());
  t.true(rig.call.signal.reason instanceof CallerGone);
});

test('a call with known usage is aborted when its caller disconnects, and not before', (t) => {
  const rig = start('cancel');
  rig.call.markSent();
  rig.isCovered = true;
  t.false(rig.call.endIfCovered());
  rig.cancel(new CallerGone());
  t.true(rig.call.signal.aborted);
});

test('a call that is not being read when its caller disconnects is not aborted, even if its usage is known', async (t) => {
  const rig = start('cancel', 20);
  rig.call.markSent();
  rig.isCovered = true;
  rig.isPaused = true;
  rig.cancel(new CallerGone());
  rig.isPaused = false;
  t.false(rig.call.endIfCovered());
  await once(rig.call.signal, 'abort');
});

test('the grace period after a disconnect is limited and may be zero', async (t) => {
  const short = start('cancel', 20);
  short.call.markSent();
  short.cancel(new CallerGone());
  t.false(short.call.signal.aborted);
  await once(short.call.signal, 'abort');
  const none = start('cancel', 0);
  none.call.markSent();
  none.cancel(new CallerGone());
  t.true(none.call.signal.aborted);
});

test('a draining call and a non-streamed call continue until the process stops, even if their usage is known', (t) => {
  for (const rig of [start('drain', 0), start('cancel', 0, false)]) {
    rig.call.markSent();
    rig.isCovered = true;
    rig.cancel(new CallerGone());
    t.false(rig.call.endIfCovered());
    rig.stop();
    t.true(rig.call.signal.reason instanceof CallerGone);
  }
  const stopped = start('drain');
  stopped.call.markSent();
  stopped.stop();
  t.false(stopped.call.signal.aborted, 'its caller is connected');
  stopped.cancel(new CallerGone());
  t.true(stopped.call.signal.aborted);
});

test('a call is aborted immediately after an internal error, or if another run replaced its run', (t) => {
  for (const reason of [new CallerGone(true), new RunReplaced()]) {
    const { call, cancel } = start('drain');
    call.markSent();
    cancel(reason);
    t.is(call.signal.reason, reason);
  }
});
