import test from 'ava';
import type { Endpoint } from '../../../api/endpoint.ts';
import {
  getStatsOfApiAccount,
  listRefillLogsOfApiAccount,
  listRequestLogsOfApiAccount,
} from '../../../api/endpoints/users/history.ts';
import { getApiAccount, listApiAccounts } from '../../../api/account-area/endpoints/accounts.ts';
import { getWebUser, listSessions } from '../../../api/account-area/endpoints/sessions.ts';
import type { ApiContext } from '../../../api/http/request/context.ts';
import type { Services } from '../../../api/services.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../../api/contract/operations.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';

/** What happens if a session ends while one of its calls waits for a database turn. */

const reads: readonly Endpoint[] = [
  getWebUser,
  listSessions,
  listApiAccounts,
  getApiAccount,
  listRequestLogsOfApiAccount,
  listRefillLogsOfApiAccount,
  getStatsOfApiAccount,
];

test('the list contains every operation that reads with a session', (t) => {
  const ids = Object.values<Operation>(operations)
    .filter(({ auth, method }) => auth === 'web' && method === 'get')
    .map(({ operationId }) => operationId);
  t.deepEqual(reads.map(({ operation }) => operation.operationId).toSorted(), ids.toSorted());
});

for (const { operation, createHandler } of reads) {
  test(`${operation.operationId} reads nothing if its session ended while it waited for a database turn`, async (t) => {
    const databaseTurns = new FairBudget({ capacity: 1 });
    const turn = await databaseTurns.acquire('another', 1, {
      waitMs: 1_000,
      createError: () => new AppError('queue_full'),
    });
    const lookedUp: string[] = [];
    const sessions = {
      find: (token: string) => {
        lookedUp.push(token);
        return Promise.resolve(null);
      },
    };
    // Reading any other store would fail.
    const services = {
      databaseTurns,
      redisTurns: new FairBudget({ capacity: 8 }),
      databaseWaitMs: 30_000,
      config: { publicUrl: null },
      web: { sessions },
    } as unknown as Services;
    const state = {
      signal: new AbortController().signal,
      session: { userId: 'anna', _id: 'session' },
      sessionFoundAtMs: performance.now(),
      path: { account_id: 1 },
      query: { page: 1, page_size: 20 },
    };
    const cookies = { get: () => 'its token' };
    const context = {
      state,
      cookies,
      vary: () => undefined,
      accepts: () => 'application/json',
    } as unknown as ApiContext;
    const read = createHandler(services)(context, () => Promise.resolve());
    // The call waits for longer than a session lookup stays valid.
    state.sessionFoundAtMs -= 1_000;
    turn.release();
    const error = await t.throwsAsync(async () => await read, { instanceOf: AppError });
    t.is(error.code, 'unauthenticated');
    t.deepEqual(lookedUp, ['its token']);
  });
}
