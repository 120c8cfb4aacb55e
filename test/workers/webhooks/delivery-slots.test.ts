import test from 'ava';
import { DeliverySlots } from '../../../workers/webhooks/delivery-slots.ts';

test('an account has at most two attempts in flight, and may start another when one of them ends', (t) => {
  const slots = new DeliverySlots();
  const end = slots.tryBegin('ann')!;
  t.truthy(slots.tryBegin('ann'));
  t.is(slots.tryBegin('ann'), null);
  t.truthy(slots.tryBegin('bob'));
  end();
  t.truthy(slots.tryBegin('ann'));
  t.is(slots.tryBegin('ann'), null);
});
