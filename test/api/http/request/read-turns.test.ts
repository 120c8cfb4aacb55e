import test from 'ava';
import { encodePieces, readFromDatabase, readFromRedis } from '../../../../api/http/request/read-turns.ts';
import type { ApiContext } from '../../../../api/http/request/context.ts';
import type { Services } from '../../../../api/services.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { waitFor } from '../../../support/wait-for.ts';

const createServices = (): Services =>
  ({
    redisTurns: new FairBudget({ capacity: 8 }),
    databaseTurns: new FairBudget({ capacity: 8 }),
    databaseWaitMs: 60_000,
    log: {},
  }) as unknown as Services;

type Store = 'redis' | 'mongodb';

/** A call of an account that reads until the test ends it. */
function createRead(services: Services, store: Store, accountId: string, size: 'one' | 'list') {
  const closed = new AbortController();
  const { signal } = closed;
  const context = { state: { signal, holder: { accountId, keyHash: '' } } } as unknown as ApiContext;
  let finish = (): void => undefined;
  const state = { started: false };
  const work = async (): Promise<void> => {
    state.started = true;
    await new Promise<void>((resolve) => (finish = resolve));
  };
  const done =
    store === 'redis'
      ? readFromRedis(services, { requester: accountId, signal }, size, work)
      : readFromDatabase(services, context, size, work);
  return {
    state,
    done,
    finish: () => finish(),
    disconnect: () => closed.abort(new AppError('job_cancelled')),
  };
}

const atOnce = { redis: 1, mongodb: 2 };

for (const store of ['redis', 'mongodb'] as const) {
  test(`120 lists of one account run ${atOnce[store]} at a time (${store}), and reads of other accounts start without waiting for any`, async (t) => {
    const services = createServices();
    const lists = Array.from({ length: 120 }, () => createRead(services, store, 'ann', 'list'));
    const running = () => lists.filter(({ state }) => state.started).length;
    await waitFor('the first lists', () => running() === atOnce[store]);
    const others = [createRead(services, store, 'bob', 'list'), createRead(services, store, 'cid', 'one')];
    await waitFor('the other reads', () => others.every(({ state }) => state.started));
    t.is(running(), atOnce[store]);
    for (const other of others) other.finish();
    for (let i = 0; i < lists.length; i++) {
      await waitFor('the next list', () => lists[i]!.state.started);
      t.true(running() <= i + atOnce[store]);
      lists[i]!.finish();
      await lists[i]!.done;
    }
  });

  test(`if all turns are taken (${store}), each account gets the next one in turn, however many reads the others have waiting`, async (t) => {
    const services = createServices();
    const order: string[] = [];
    const accounts = ['ann', 'bob', 'cid', 'dan', 'eve'];
    const reads = accounts.flatMap((accountId) =>
      Array.from({ length: accountId === 'eve' ? 1 : 30 }, () => ({
        accountId,
        read: createRead(services, store, accountId, 'list'),
        isNoted: false,
      })),
    );
    let pending = reads;
    while (pending.length > 0) {
      await waitFor('a read to start', () => pending.some(({ read }) => read.state.started));
      const started = pending.filter(({ read }) => read.state.started);
      pending = pending.filter((one) => !started.includes(one));
      for (const { accountId, read } of started) {
        order.push(accountId);
        read.finish();
        await read.done;
      }
    }
    t.true(order.indexOf('eve') <= 3 * accounts.length, order.join(' '));
  });

  test(`a read whose caller disconnects while it waits (${store}) never runs, and frees its turn`, async (t) => {
    const services = createServices();
    const reads = Array.from({ length: 6 }, () => createRead(services, store, 'ann', 'list'));
    await waitFor(
      'the first lists',
      () => reads.filter(({ state }) => state.started).length === atOnce[store],
    );
    const waiting = reads.slice(atOnce[store], -1);
    for (const read of waiting) read.disconnect();
    for (const read of waiting) await t.throwsAsync(read.done, { instanceOf: AppError });
    for (const read of reads.slice(0, atOnce[store])) read.finish();
    await waitFor('the last list', () => reads.at(-1)!.state.started);
    reads.at(-1)!.finish();
    await Promise.all([...reads.slice(0, atOnce[store]), reads.at(-1)!].map(({ done }) => done));
    t.false(waiting.some(({ state }) => state.started));
    t.is(services.redisTurns.held + services.databaseTurns.held, 0);
  });
}

test('a text is encoded completely, and not at all once its reader has disconnected', async (t) => {
  const pieces = Array.from({ length: 3_000 }, (_, i) => `piece ${i} — ё `);
  t.is((await encodePieces(pieces, { requester: 'ann' })).toString(), pieces.join(''));
  const closed = new AbortController();
  let written = 0;
  function* write(): Generator<string> {
    for (const piece of pieces) {
      written += 1;
      if (written === 10) closed.abort(new AppError('job_cancelled'));
      yield piece;
    }
  }
  const encoding = encodePieces(write(), { requester: 'ann', signal: closed.signal });
  await t.throwsAsync(encoding, { instanceOf: AppError });
  t.is(written, 10);
});
