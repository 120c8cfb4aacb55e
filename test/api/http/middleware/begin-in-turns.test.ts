import test from 'ava';
import { beginInTurns } from '../../../../api/http/middleware/begin-in-turns.ts';
import type { ApiContext } from '../../../../api/http/request/context.ts';

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

test.serial(
  'a few of many simultaneous calls start immediately, and the others one per event loop iteration',
  async (t) => {
    const begin = beginInTurns(null, { operationId: 'listModels' });
    let started = 0;
    const call = () =>
      begin({ ip: '192.0.2.1' } as ApiContext, async () => {
        started += 1;
      });
    const calls = Array.from({ length: 40 }, call);
    const immediate = started;
    t.true(immediate > 0 && immediate < 20);
    let before = immediate;
    for (let i = immediate; i < 40; i++) {
      await nextIteration();
      t.true(started - before <= 1, `${started - before} started in one iteration`);
      before = started;
    }
    await Promise.all(calls);
    // In a later iteration, again a few start immediately.
    await nextIteration();
    const later = Array.from({ length: immediate }, call);
    t.is(started, 40 + immediate);
    await Promise.all(later);
  },
);

test.serial('calls of different networks, and operations of one network, start alternately', async (t) => {
  const order: string[] = [];
  const call = (operationId: string, ip: string) =>
    beginInTurns(null, { operationId })({ ip } as ApiContext, async () => {
      order.push(`${operationId} ${ip}`);
    });
  const manyCalls = Array.from({ length: 60 }, () => call('listModels', '192.0.2.1'));
  const others = [call('listModels', '198.51.100.7'), call('getHealth', '192.0.2.1')];
  const immediate = order.length;
  await Promise.all([...manyCalls, ...others]);
  const waited = order.slice(immediate);
  t.true(waited.indexOf('listModels 198.51.100.7') <= 3, waited.join());
  t.true(waited.indexOf('getHealth 192.0.2.1') <= 3, waited.join());
});
