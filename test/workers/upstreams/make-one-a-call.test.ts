import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';

import { mergeImageResponses, makeOneImagePerCall } from '../../../workers/upstreams/one-image-per-call.ts';
import { Slots } from '../../../workers/media/slots.ts';
import {
  type AcquireExtraSlot,
  type ImageResponse,
  noUpstreamUsage,
  UpstreamError,
} from '../../../workers/upstreams/upstream.ts';
import { createContext } from '../../support/upstream-target.ts';

const image = { bytes: Buffer.from('image'), contentType: 'image/png', revisedPrompt: null } as const;

function answer(promptTokens: number | null, completionTokens: number | null): ImageResponse {
  return { images: [image], calls: 1, usage: { ...noUpstreamUsage, promptTokens, completionTokens } };
}

const make = (value: ImageResponse) => ({ status: 'fulfilled', value }) as const;
const fail = (reason: unknown) => ({ status: 'rejected', reason }) as const;
const uncounted = make({ ...answer(null, null), usage: null });

test('several responses are merged, with their tokens added if all have reported them', (t) => {
  const joined = mergeImageResponses([make(answer(3, 5)), make(answer(3, 5)), make(answer(3, 5))]);
  t.is(joined.images.length, 3);
  t.is(joined.calls, 3);
  t.deepEqual(joined.usage, { ...noUpstreamUsage, promptTokens: 9, completionTokens: 15 });
  t.is(mergeImageResponses([make(answer(3, 5)), uncounted]).usage, null);
  t.like(mergeImageResponses([make(answer(3, 5)), make(answer(3, null))]).usage, {
    promptTokens: 6,
    completionTokens: null,
  });
});

test('successful images are the response, with the error of the others; if none succeeded, a rejection takes precedence over a failure', (t) => {
  const [rejection, broken] = [new UpstreamError('rejected', 'no'), new UpstreamError('unavailable', 'down')];
  const some = mergeImageResponses([fail(broken), uncounted, fail(rejection), uncounted]);
  t.is(some.images.length, 2);
  t.is(some.calls, 2, 'those of the successful calls');
  t.is(some.missing, rejection);
  t.is(mergeImageResponses([uncounted]).missing, undefined);
  t.is(
    t.throws(() => mergeImageResponses([fail(broken), fail(rejection)])),
    rejection,
  );
  const late = new UpstreamError('timeout', 'late', { mayStillRun: true });
  t.is(
    t.throws(() => mergeImageResponses([fail(broken), fail(late)])),
    late,
    'one of them may still be generated',
  );
  const none = make({ ...answer(3, 5), images: [], missing: rejection });
  t.like(mergeImageResponses([none, fail(broken), none]), {
    images: [],
    missing: rejection,
    usage: { promptTokens: 6, completionTokens: 10 },
  });
  const ours = new TypeError('a fault of ours');
  t.is(
    t.throws(() => mergeImageResponses([uncounted, fail(rejection), fail(ours)])),
    ours,
  );
});

test('all calls are made concurrently, and if the caller disconnects they fail with that reason', async (t) => {
  let begun = 0;
  let begin: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const { images } = await makeOneImagePerCall(3, createContext(), async () => {
    begun += 1;
    if (begun === 3) begin();
    await all;
    return answer(1, 1);
  });
  t.is(images.length, 3);
  const left = new AbortController();
  const reason = new Error('the caller left');
  const made = makeOneImagePerCall(2, createContext({ signal: left.signal }), async () => {
    left.abort(reason);
    throw new UpstreamError('unavailable', 'cut');
  });
  t.is(await t.throwsAsync(made), reason);
});

test('with few slots, no more calls are in flight than there are slots, and every slot is released', async (t) => {
  const slots = new Slots(1);
  let inFlight = 0;
  let maxInFlight = 0;
  let left = 0;
  const outcomes: unknown[] = [];
  const acquireExtraSlot: AcquireExtraSlot = async (signal) => {
    const release = await slots.acquire(signal, Date.now() + 60_000).catch(() => null);
    if (release === null) return null;
    return {
      release: (outcome) => {
        outcomes.push(outcome?.status);
        left += 1;
        release();
      },
    };
  };
  let made = 0;
  const { images, missing } = await makeOneImagePerCall(6, createContext({ acquireExtraSlot }), async () => {
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    await nextTurn();
    inFlight -= 1;
    made += 1;
    if (made === 3) throw new UpstreamError('unavailable', 'down');
    return answer(1, 1);
  });
  t.is(maxInFlight, 2);
  t.is(made, 6);
  t.is(images.length, 5);
  t.is(missing?.failure, 'unavailable');
  t.true(left > 0 && outcomes.length === left);
  // All are free again.
  (await slots.acquire(new AbortController().signal, Date.now() + 60_000))();
});

test('if no further slot becomes free, the images are made one after another in the existing slot', async (t) => {
  let inFlight = 0;
  const waited: AbortSignal[] = [];
  const acquireExtraSlot: AcquireExtraSlot = (signal) => {
    waited.push(signal);
    // Nothing waits for a call without a response.
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
      return answer(1, 1);
    },
  );
  t.is(images.length, 4);
  t.deepEqual(progress, [0.25, 0.5, 0.75, 1]);
  t.is(waited.length, 3);
  t.true(waited.every(({ aborted }) => aborted));
});

test('no further call is made if it would fail as well, or after the caller has disconnected', async (t) => {
  const alone = { acquireExtraSlot: async () => null };
  for (const failure of ['rate_limited', 'rejected', 'auth', 'missing', 'timeout'] as const) {
    let calls = 0;
    const error = new UpstreamError(failure, 'no', { mayStillRun: failure === 'timeout' });
    const made = await makeOneImagePerCall(4, createContext(alone), async () => {
      calls += 1;
      if (calls === 2) throw error;
      return answer(1, 1);
    });
    t.is(calls, 2, failure);
    t.is(made.images.length, 1);
    t.is(made.missing, error);
  }
  const awaited = new AbortController();
  let calls = 0;
  const made = await makeOneImagePerCall(
    4,
    createContext({ ...alone, awaited: awaited.signal }),
    async () => {
      calls += 1;
      awaited.abort();
      return answer(1, 1);
    },
  );
  t.is(calls, 1);
  t.is(made.images.length, 1);
});

test('if no further slot can be requested, the images that are made are still the response', async (t) => {
  const acquireExtraSlot: AcquireExtraSlot = async () => Promise.reject(new TypeError('oops'));
  const { images } = await makeOneImagePerCall(3, createContext({ acquireExtraSlot }), async () =>
    answer(1, 1),
  );
  t.is(images.length, 3);
});
