import { once } from 'node:events';
import test from 'ava';
import {
  DeliveryLanes,
  type AttemptPlace,
  type LimitedLane,
} from '../../../../workers/deliveries/webhooks/delivery-lanes.ts';

const limits = { prompt: 2, unknown: 2, hanging: 2, late: 2, lateAfterMs: 1 };

test('in each lane, an account has a maximum number of attempts in flight, and may start another when one of them ends', (t) => {
  const lanes = new DeliveryLanes({ ...limits, prompt: 9, hanging: 9 });
  const place = lanes.tryBegin('ann', 'prompt')!;
  t.truthy(lanes.tryBegin('ann', 'prompt'));
  t.is(lanes.tryBegin('ann', 'prompt'), null);
  t.truthy(lanes.tryBegin('bob', 'prompt'));
  t.truthy(
    lanes.tryBegin('ann', 'hanging'),
    'a hanging receiver does not delay a prompt one of the same account',
  );
  t.is(lanes.tryBegin('ann', 'hanging'), null);
  place.end();
  t.truthy(lanes.tryBegin('ann', 'prompt'));
  t.is(lanes.tryBegin('ann', 'prompt'), null);
});

test('however many accounts have hanging or new receivers, a prompt one can always begin', (t) => {
  const lanes = new DeliveryLanes(limits);
  for (const lane of ['unknown', 'hanging'] as const) {
    const begun = Array.from({ length: 100 }, (_, i) => lanes.tryBegin(`account ${i}`, lane));
    t.is(begun.filter((place) => place !== null).length, limits[lane], lane);
  }
  t.truthy(lanes.tryBegin('ann', 'prompt'));
});

test('an attempt that takes long leaves its place, and when there are too many of them, the longest one is ended', async (t) => {
  const lanes = new DeliveryLanes(limits);
  const freed: LimitedLane[] = [];
  lanes.onPlaceFreed = (lane) => freed.push(lane);
  const places: AttemptPlace[] = [];
  for (let i = 0; i < limits.late + 1; i++) {
    const place = lanes.tryBegin(`account ${i}`, 'unknown')!;
    places.push(place);
    const longest = places[0]!;
    const ended = i === limits.late ? once(longest.signal, 'abort') : null;
    place.startClock();
    while (freed.length <= i) await new Promise(setImmediate);
    await ended;
  }
  t.deepEqual(
    places.map(({ signal }) => signal.aborted),
    [true, false, false],
  );
  t.is(lanes.countFree('unknown'), limits.unknown);
  for (const place of places) place.end();
  t.is(lanes.countFree('unknown'), limits.unknown);
});
