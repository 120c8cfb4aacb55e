import test from 'ava';
import { nextWorkTurn, takeInTurns } from '../../../shared/fairness/work-turns.ts';

test.serial(
  'accounts take turns, however many requests one of them has, and one goes on in each iteration',
  async (t) => {
    const order: string[] = [];
    let iterations = 0;
    let isCounting = true;
    const count = (): void => {
      iterations += 1;
      if (isCounting) setImmediate(count);
    };
    setImmediate(count);
    const go = async (accountId: string): Promise<void> => {
      await nextWorkTurn(accountId);
      order.push(accountId);
    };
    await Promise.all([...Array.from({ length: 20 }, () => go('many')), go('one'), go('other')]);
    isCounting = false;
    t.is(order.length, 22);
    t.true(order.indexOf('one') <= 2 && order.indexOf('other') <= 2, order.join(' '));
    t.true(iterations >= 20, `${iterations} iterations`);
  },
);

test.serial('work in turns is done whole and in order, and lets other work run in between', async (t) => {
  const taken: number[] = [];
  let others = 0;
  const timer = setInterval(() => (others += 1), 1);
  await takeInTurns(
    Array.from({ length: 30 }, (_, i) => i),
    'account',
    (item) => {
      const untilMs = performance.now() + 4;
      while (performance.now() < untilMs);
      taken.push(item);
    },
  );
  clearInterval(timer);
  t.deepEqual(
    taken,
    Array.from({ length: 30 }, (_, i) => i),
  );
  t.true(others >= 5, `${others} others`);
});
