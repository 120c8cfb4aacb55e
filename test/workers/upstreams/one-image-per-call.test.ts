import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '../../../shared/contract/errors.ts';
import test from 'ava';

import { mergeImageResponses, makeOneImagePerCall } from '../../../workers/upstreams/one-image-per-call.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import {
  type AcquireExtraSlot,
  type ImageResponse,
  noUpstreamUsage,
  UpstreamError,
} from '../../../workers/upstreams/upstream.ts';
import { createContext } from '../../support/upstream-target.ts';

const image = { bytes: Buffer.from('image'), contentType: 'image/png', revisedPrompt: null } as const;

function toResponse(promptTokens: number | null, completionTokens: number | null): ImageResponse {
  return { images: [image], calls: 1, usage: { ...noUpstreamUsage, promptTokens, completionTokens } };
}

const fulfilled = (value: ImageResponse) => ({ status: 'fulfilled', value }) as const;
const rejected = (reason: unknown) => ({ status: 'rejected', reason }) as const;
const uncounted = fulfilled({ ...toResponse(null, null), usage: null });

test('several responses are joined into one, with their tokens added up if all reported them', (t) => {
  const joined = mergeImageResponses([
    fulfilled(toResponse(3, 5)),
    fulfilled(toResponse(3, 5)),
    fulfilled(toResponse(3, 5)),
  ]);
  t.is(joined.images.length, 3);
  t.is(joined.calls, 3);
  t.deepEqual(joined.usage, { ...noUpstreamUsage, promptTokens: 9, completionTokens: 15 });
  t.is(mergeImageResponses([fulfilled(toResponse(3, 5)), uncounted]).usage, null);
  t.like(mergeImageResponses([fulfilled(toResponse(3, 5)), fulfilled(toResponse(3, null))]).usage, {
    promptTokens: 6,
    completionTokens: null,
  });
});

test('finished images are returned with the failure of the others; if no image is finished, a rejection outranks other failures', (t) => {
  const [refused, broken] = [new UpstreamError('rejected', 'no'), new UpstreamError('unavailable', 'down')];
  const some = mergeImageResponses([rejected(broken), uncounted, rejected(refused), uncounted]);
  t.is(some.images.length, 2);
  t.is(some.calls, 2, 'the calls with a response');
  t.is(some.shortfallReason, refused);
  t.is(mergeImageResponses([uncounted]).shortfallReason, undefined);
  t.is(
    t.throws(() => mergeImageResponses([rejected(broken), rejected(refused)])),
    refused,
  );
  const late = new UpstreamError('timeout', 'late', { mayStillRun: true });
  t.is(
    t.throws(() => mergeImageResponses([rejected(broken), rejected(late)])),
    late,
    'the vendor may still be making one image',
  );
  const none = fulfilled({ ...toResponse(3, 5), images: [], shortfallReason: refused });
  t.like(mergeImageResponses([none, rejected(broken), none]), {
    images: [],
    shortfallReason: refused,
    usage: { promptTokens: 6, completionTokens: 10 },
  });
  const internal = new TypeError('an internal error');
  t.is(
    t.throws(() => mergeImageResponses([uncounted, rejected(refused), rejected(internal)])),
    internal,
  );
});

test('all calls run in parallel, and fail with the caller’s reason if they are cancelled', async (t) => {
  let started = 0;
  let release: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { images } = await makeOneImagePerCall(3, createContext(), async () => {
    started += 1;
    if (started === 3) release();
    await all;
    return toResponse(1, 1);
  });
  t.is(images.length, 3);
  const cancellation = new AbortController();
  const reason = new Error('the caller disconnected');
  const made = makeOneImagePerCall(2, createContext({ signal: cancellation.signal }), async () => {
    cancellation.abort(reason);
    throw new UpstreamError('unavailable', 'cut');
  });
  t.is(await t.throwsAsync(made), reason);
});

test('each call needs its own slot, and every slot is released', async (t) => {
  const slots = new FairBudget({ capacity: 1 });
  let calls = 0;
  const acquire = (signal: AbortSignal) =>
    slots.acquire(String((calls += 1)), 1, {
      signal,
      waitMs: 60_000,
      createError: () => new AppError('queue_full'),
    });
  let inFlight = 0;
  let maxInFlight = 0;
  let released = 0;
  const outcomes: unknown[] = [];
  const acquireExtraSlot: AcquireExtraSlot = async (signal) => {
    const share = await acquire(signal).catch(() => null);
    if (share === null) return null;
    return {
      release: (outcome) => {
        outcomes.push(outcome?.status);
        released += 1;
        share.release();
      },
    };
  };
  let made = 0;
  const { images, shortfallReason } = await makeOneImagePerCall(
    6,
    createContext({ acquireExtraSlot }),
    async () => {
      inFlight += 1;
      maxInFlight = Math.max(maxInFlight, inFlight);
      await nextTurn();
      inFlight -= 1;
      made += 1;
      if (made === 3) throw new UpstreamError('unavailable', 'down');
      return toResponse(1, 1);
    },
  );
  t.is(maxInFlight, 2);
  t.is(made, 6);
  t.is(images.length, 5);
  t.is(shortfallReason?.failure, 'unavailable');
  t.true(released > 0 && outcomes.length === released);
  // All slots are free again.
  t.truthy(slots.tryAcquire('later', 1));
});

test('images are made one after another in the first slot if no further slot becomes free', async (t) => {
  let inFlight = 0;
  const slotSignals: AbortSignal[] = [];
  const acquireExtraSlot: AcquireExtraSlot = (signal) => {
    slotSignals.push(signal);
    // Never grants a further slot. The images must not wait for it.
    return new Promise(() => undefined);
  };
  const progress: number[] = [];
  const onProgress = (done: number): void => void progress.push(done);
  const { images } = await makeOneImagePerCall(
    4,
    createContext({ acquireExtraSlot, onProgress }),
    async () => {
      inFlight += 1;
      t.is(inFlight, 1);
      await nextTurn();
      inFlight -= 1;
      return toResponse(1, 1);
    },
  );
  t.is(images.length, 4);
  t.deepEqual(progress, [0.25, 0.5, 0.75, 1]);
  t.is(slotSignals.length, 3);
  t.true(slotSignals.every(({ aborted }) => aborted));
});

test('no further call starts after a failure that would recur, or if nobody waits for the images any more', async (t) => {
  const noFurtherSlots = { acquireExtraSlot: async () => null };
  for (const failure of ['rate_limited', 'rejected', 'auth', 'missing', 'timeout'] as const) {
    let calls = 0;
    const error = new UpstreamError(failure, 'no', { mayStillRun: failure === 'timeout' });
    const made = await makeOneImagePerCall(4, createContext(noFurtherSlots), async () => {
      calls += 1;
      if (calls === 2) throw error;
      return toResponse(1, 1);
    });
    t.is(calls, 2, failure);
    t.is(made.images.length, 1);
    t.is(made.shortfallReason, error);
  }
  const caller = new AbortController();
  let calls = 0;
  const made = await makeOneImagePerCall(
    4,
    createContext({ ...noFurtherSlots, callerSignal: caller.signal }),
    async () => {
      calls += 1;
      caller.abort();
      return toResponse(1, 1);
    },
  );
  t.is(calls, 1);
  t.is(made.images.length, 1);
});

test('images are returned even if requesting a further slot fails', async (t) => {
  const acquireExtraSlot: AcquireExtraSlot = async () => Promise.reject(new TypeError('oops'));
  const { images } = await makeOneImagePerCall(3, createContext({ acquireExtraSlot }), async () =>
    toResponse(1, 1),
  );
  t.is(images.length, 3);
});
