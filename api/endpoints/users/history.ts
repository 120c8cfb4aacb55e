import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { operations } from '../../contract/operations.ts';
import type { RefillLogQuery, RequestLogQuery, StatsQuery } from '../../contract/users.ts';
import { acquireResponseMemory } from '../../requests/replies/response-memory.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { presentStats, writeRefillLogs, writeRequestLogs } from './present-history.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { encodePieces, readerOf, readFromDatabase, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { openAccount } from './open-account.ts';
import { sendBody } from '../../responses/send-body.ts';
import { readPeriod } from './stats-period.ts';
import { openLinkedAccount } from '../../account-area/endpoints/linked-account.ts';
import { readAsUser } from '../../account-area/endpoints/steps.ts';

const requestLogPageSize = 300;

/** Finds the account of a request. Checks that the caller may read it and that it is not banned. */
type OpenAccount<C extends ApiContext> = (services: Services, context: C) => Promise<HotAccount>;

interface WithQuery<Q> {
  readonly state: { readonly query: Q };
}

const createListRequestLogs =
  <C extends ApiContext>(open: OpenAccount<C>) =>
  (services: Services) =>
  async (context: C & WithQuery<RequestLogQuery>): Promise<void> => {
    const { page } = context.state.query;
    await respondInTurn(services, context, {
      open: () => open(services, context),
      read: ({ id }, signal) => services.history.readRequestLog(id, page, requestLogPageSize, signal),
      write: (found) => writeRequestLogs(found, page, requestLogPageSize),
    });
  };

export const listRequestLogs = defineEndpoint(
  operations.listRequestLogs,
  [authenticateAccount, limitCalls],
  createListRequestLogs(openAccount),
);

export const listRequestLogsOfApiAccount = defineEndpoint(
  operations.listRequestLogsOfApiAccount,
  readAsUser,
  createListRequestLogs(openLinkedAccount),
);

const createListRefillLogs =
  <C extends ApiContext>(open: OpenAccount<C>) =>
  (services: Services) =>
  async (context: C & WithQuery<RefillLogQuery>): Promise<void> => {
    const { page, page_size: pageSize } = context.state.query;
    await respondInTurn(services, context, {
      open: () => open(services, context),
      read: (account, signal) => services.history.readRefillLog(account, page, pageSize, signal),
      write: (found) => writeRefillLogs(found, page, pageSize),
    });
  };

export const listRefillLogs = defineEndpoint(
  operations.listRefillLogs,
  [authenticateAccount, limitCalls],
  createListRefillLogs(openAccount),
);

export const listRefillLogsOfApiAccount = defineEndpoint(
  operations.listRefillLogsOfApiAccount,
  readAsUser,
  createListRefillLogs(openLinkedAccount),
);

const createGetStats =
  <C extends ApiContext>(open: OpenAccount<C>) =>
  (services: Services) =>
  async (context: C & WithQuery<StatsQuery>): Promise<void> => {
    const period = readPeriod(context.state.query, new Date());
    await respondInTurn(services, context, {
      open: () => open(services, context),
      read: ({ id }) => services.history.readDays(id, period.start, period.end),
      write: (days) => [JSON.stringify(presentStats(period, days))],
    });
  };

export const getStats = defineEndpoint(
  operations.getStats,
  [authenticateAccount, limitCalls],
  createGetStats(openAccount),
);

export const getStatsOfApiAccount = defineEndpoint(
  operations.getStatsOfApiAccount,
  readAsUser,
  createGetStats(openLinkedAccount),
);

interface HistoryRead<T> {
  readonly open: () => Promise<HotAccount>;
  readonly read: (account: HotAccount, signal: AbortSignal) => Promise<T>;
  /** Returns the JSON of the response, in pieces. */
  readonly write: (found: T) => Iterable<string>;
}

/** Reads and writes an account's history in its turns. Stops if the client disconnects. */
async function respondInTurn<T>(
  services: Services,
  context: ApiContext,
  { open, read, write }: HistoryRead<T>,
): Promise<void> {
  const { signal } = context.state;
  const reader = readerOf(context);
  const { accountId, bytes } = await readFromRedis(services, reader, 'list', async () => {
    const { account, found } = await readFromDatabase(services, context, 'list', async () => {
      const opened = await open();
      return { account: opened, found: await read(opened, signal) };
    });
    return { accountId: account.id, bytes: await encodePieces(write(found), reader) };
  });
  // Most pages are too small for the memory budget. A page of long error messages may not be.
  const memory = await acquireResponseMemory(services.responseMemory, accountId, {
    bytes: bytes.length,
    signal,
    response: context.res,
  });
  try {
    await sendBody(context, bytes);
  } finally {
    memory?.release();
  }
}
