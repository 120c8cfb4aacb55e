import test from 'ava';
import { beginInTurns } from '../../../api/middleware/begin-in-turns.ts';
import type { ApiContext } from '../../../api/request/context.ts';

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

test.serial(
  'of calls that come together a few begin at once, and each of the others in a turn of its own',
  async (t) => {
    const begin = beginInTurns(null, { operationId: 'listModels' });
    let begun = 0;
    const call = () =>
      begin({ ip: '192.0.2.1' } as ApiContext, async () => {
        begun += 1;
      });
    const calls = Array.from({ length: 40 }, call);
    const atOnce = begun;
    t.true(atOnce > 0 && atOnce < 20);
    let before = atOnce;
    for (let i = atOnce; i < 40; i++) {
      await nextIteration();
      t.true(begun - before <= 1, `${begun - before} began in one iteration`);
      before = begun;
    }
    await Promise.all(calls);
    // Another iteration, another few.
    const later = Array.from({ length: atOnce }, call);
    t.is(begun, 40 + atOnce);
    await Promise.all(later);
  },
);

test.serial('networks take turns, and so do the operations that one of them asks for', async (t) => {
  const order: string[] = [];
  const call = (operationId: string, ip: string) =>
    beginInTurns(null, { operationId })({ ip } as ApiContext, async () => {
      order.push(`${operationId} ${ip}`);
    });
  const flood = Array.from({ length: 60 }, () => call('listModels', '192.0.2.1'));
  const others = [call('listModels', '198.51.100.7'), call('getHealth', '192.0.2.1')];
  const atOnce = order.length;
  await Promise.all([...flood, ...others]);
  const waited = order.slice(atOnce);
  t.true(waited.indexOf('listModels 198.51.100.7') <= 3, waited.join());
  t.true(waited.indexOf('getHealth 192.0.2.1') <= 3, waited.join());
});
