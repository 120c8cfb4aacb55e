import test from 'ava';
import { DeliverySlots } from '../../../workers/webhooks/delivery-slots.ts';

test('an account has at most two attempts in flight, and may start another when one of them ends', (t) => {
  const turns = new DeliverySlots();
  const end = turns.tryBegin('ann')!;
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
  t.truthy(turns.tryBegin('bob'));
  end();
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
});
