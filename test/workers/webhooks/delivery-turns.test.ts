import test from 'ava';
import { DeliveryTurns } from '../../../workers/webhooks/delivery-turns.ts';

test('an account has at most two attempts in flight, and another when one of them ends', (t) => {
  const turns = new DeliveryTurns();
  const end = turns.tryBegin('ann')!;
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
  t.truthy(turns.tryBegin('bob'));
  end();
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
});
