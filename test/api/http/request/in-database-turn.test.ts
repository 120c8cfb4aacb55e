import test from 'ava';
import { inDatabaseTurn } from '../../../../api/http/request/in-database-turn.ts';
import type { ApiContext } from '../../../../api/http/request/context.ts';
import type { Services } from '../../../../api/services.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';

const createServices = (turns: number, databaseWaitMs = 30_000, log = {}) =>
  ({ databaseTurns: new FairBudget({ capacity: turns }), databaseWaitMs, log }) as unknown as Services;

/** The parts of a call that a database turn needs: its account, and the abort signal of its caller. */
function createCall(accountId: string) {
  const closed = new AbortController();
  const state = { signal: closed.signal, holder: { accountId, keyHash: '' } };
  const disconnect = (): void => closed.abort(new AppError('job_cancelled'));
  return { context: { state } as unknown as ApiContext, disconnect };
}

/** Work that the test completes. */
function createManualWork() {
  const started: string[] = [];
  const finishers: (() => void)[] = [];
  return {
    started,
    finishNext: () => finishers.shift()!(),
    create: (name: string) => () => {
      started.push(name);
      return new Promise<string>((resolve) => finishers.push(() => resolve(name)));
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('accounts get database turns alternately, even if one account has many queued calls', async (t) => {
  const services = createServices(1);
  const work = createManualWork();
  const run = (account: string, name: string) =>
    inDatabaseTurn(services, createCall(account).context, work.create(name));
  const all = [run('ann', 'a1'), run('ann', 'a2'), run('ann', 'a3'), run('bob', 'b1')];
  for (let i = 0; i < all.length; i++) {
    await settle();
    work.finishNext();
  }
  await Promise.all(all);
  t.deepEqual(work.started, ['a1', 'a2', 'b1', 'a3']);
});

test('queued work is never started once its caller has disconnected', async (t) => {
  const services = createServices(1);
  const work = createManualWork();
  const first = inDatabaseTurn(services, createCall('ann').context, work.create('first'));
  const call = createCall('ann');
  const cancelled = inDatabaseTurn(services, call.context, work.create('left'));
  const last = inDatabaseTurn(services, createCall('ann').context, work.create('last'));
  call.disconnect();
  await t.throwsAsync(cancelled, { message: /./, name: 'AppError' });
  work.finishNext();
  await first;
  await settle();
  work.finishNext();
  await last;
  t.deepEqual(work.started, ['first', 'last']);
});

test('work that fails releases its database turn', async (t) => {
  const services = createServices(1);
  const { context } = createCall('ann');
  const failing = inDatabaseTurn(services, context, () => Promise.reject(new Error('away')));
  await t.throwsAsync(failing, { message: 'away' });
  t.is(await inDatabaseTurn(services, context, async () => 'there'), 'there');
});

test('after its caller got a 503, work is aborted but holds its database turn until it ends; its error is logged, except in outages', async (t) => {
  const logged: unknown[] = [];
  const services = createServices(1, 1, { error: ({ err }: { err: unknown }) => logged.push(err) });
  const bug = new Error('a bug');
  for (const end of [bug, new AppError('service_unavailable')]) {
    let fail!: (error: Error) => void;
    const work = new Promise<never>((_, reject) => (fail = reject));
    let late: AbortSignal | undefined;
    const call = inDatabaseTurn(services, createCall('ann').context, async (signal) => {
      late = signal;
      return await work;
    });
    await t.throwsAsync(call, { name: 'AppError', code: 'service_unavailable' });
    t.true(late?.aborted);
    t.is(services.databaseTurns.held, 1);
    fail(end);
    await settle();
    t.is(services.databaseTurns.held, 0);
  }
  t.deepEqual(logged, [bug]);
});
