import test from 'ava';
import { DeliveryTurns } from '../../../workers/webhooks/delivery-turns.ts';

test('an account has two attempts under way at most, and another when one of them ends', (t) => {
  const turns = new DeliveryTurns();
  const end = turns.tryBegin('ann')!;
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
  t.truthy(turns.tryBegin('bob'));
  end();
  t.truthy(turns.tryBegin('ann'));
  t.is(turns.tryBegin('ann'), null);
});

test('deliveries that wait come back one after another, as fast as the receiver responds', (t) => {
  let nowMs = 0;
  const turns = new DeliveryTurns(() => nowMs);
  for (let i = 0; i < 100; i++) {
    const end = turns.tryBegin('ann')!;
    nowMs += 100;
    end();
  }
  const waits = [1, 2, 3, 4].map(() => turns.defer('ann'));
  t.deepEqual(waits, [50, 100, 150, 200]);
  t.is(turns.defer('bob'), 50);
});

test('however many wait, each looks again within two minutes, and not all at once', (t) => {
  const turns = new DeliveryTurns(() => 0);
  const waits = Array.from({ length: 5_000 }, () => turns.defer('ann'));
  t.true(Math.max(...waits) <= 120_000);
  const last = waits.slice(-1_000);
  t.true(Math.min(...last) >= 60_000);
  t.true(new Set(last).size > 500);
});
