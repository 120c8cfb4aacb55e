import test from 'ava';
import { inDatabaseTurn } from '../../../api/request/in-database-turn.ts';
import type { ApiContext } from '../../../api/request/context.ts';
import type { Services } from '../../../api/services.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';

const createServices = (turns: number, databaseWaitMs = 30_000, log = {}) =>
  ({ databaseTurns: new FairBudget({ capacity: turns }), databaseWaitMs, log }) as unknown as Services;

/** What a turn looks at of a call: whose it is, and whether its caller is there. */
function createCall(accountId: string) {
  const closed = new AbortController();
  const state = { signal: closed.signal, holder: { accountId, keyHash: '' } };
  const leave = (): void => closed.abort(new AppError('job_cancelled'));
  return { context: { state } as unknown as ApiContext, leave };
}

/** Work that the test ends. */
function createWork() {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  return {
    begun,
    endNext: () => ends.shift()!(),
    create: (name: string) => () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.push(() => resolve(name)));
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('accounts take turns at the database, however many calls one of them has in line', async (t) => {
  const services = createServices(1);
  const work = createWork();
  const run = (account: string, name: string) =>
    inDatabaseTurn(services, createCall(account).context, work.create(name));
  const all = [run('ann', 'a1'), run('ann', 'a2'), run('ann', 'a3'), run('bob', 'b1')];
  for (let i = 0; i < all.length; i++) {
    await settle();
    work.endNext();
  }
  await Promise.all(all);
  t.deepEqual(work.begun, ['a1', 'a2', 'b1', 'a3']);
});

test('what waits for its turn is never begun once its caller has left', async (t) => {
  const services = createServices(1);
  const work = createWork();
  const first = inDatabaseTurn(services, createCall('ann').context, work.create('first'));
  const call = createCall('ann');
  const left = inDatabaseTurn(services, call.context, work.create('left'));
  const last = inDatabaseTurn(services, createCall('ann').context, work.create('last'));
  call.leave();
  await t.throwsAsync(left, { message: /./, name: 'AppError' });
  work.endNext();
  await first;
  await settle();
  work.endNext();
  await last;
  t.deepEqual(work.begun, ['first', 'last']);
});

test('work that fails gives its turn back', async (t) => {
  const services = createServices(1);
  const { context } = createCall('ann');
  const failing = inDatabaseTurn(services, context, () => Promise.reject(new Error('away')));
  await t.throwsAsync(failing, { message: 'away' });
  t.is(await inDatabaseTurn(services, context, async () => 'there'), 'there');
});

test('work whose caller was told 503 learns of it, keeps its turn, and its own faults are logged, outages are not', async (t) => {
  const logged: unknown[] = [];
  const services = createServices(1, 1, { error: ({ err }: { err: unknown }) => logged.push(err) });
  const fault = new Error('a fault of ours');
  for (const end of [fault, new AppError('service_unavailable')]) {
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
  t.deepEqual(logged, [fault]);
});
