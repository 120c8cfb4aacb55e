import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { invalidField } from '../../../shared/contract/errors.ts';
import { maxCsvRows } from '../../../shared/contract/fields.ts';
import { operations } from '../../contract/operations.ts';
import type { RequestLogQuery } from '../../contract/request-logs.ts';
import type { RefillLogQuery, StatsQuery } from '../../contract/users.ts';
import { acquireResponseMemory } from '../../requests/replies/response-memory.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { presentStats, writeRefillLogs } from './present-history.ts';
import { writeRequestLogs, writeRequestLogsCsv } from './present-request-log.ts';
import type { RequestLogFilter } from '../../../shared/ledger/request-log-store.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { encodePieces, readerOf, readFromDatabase, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { openAccount } from './open-account.ts';
import { csvType, prefersCsv } from '../../responses/prefers-csv.ts';
import { sendBody } from '../../responses/send-body.ts';
import { sendText } from '../../responses/send-text.ts';
import { readPeriodBounds } from '../read-period-bounds.ts';
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
    const filter = readFilter(services, context.state.query);
    if (prefersCsv(context)) {
      await sendRequestLogs(services, context, () => open(services, context), filter);
      return;
    }
    await respondInTurn(services, context, {
      open: () => open(services, context),
      read: ({ id: accountId }, signal) =>
        services.requestLog.readPage({ accountId, signal }, filter, page, requestLogPageSize),
      write: (found) => writeRequestLogs(found, page, requestLogPageSize),
    });
  };

/** @throws AppError `validation_failed` */
function readFilter(
  { catalog }: Services,
  { model, outcome, request_id: requestId, ...bounds }: RequestLogQuery,
): RequestLogFilter {
  const { since, until } = readPeriodBounds(bounds);
  // Rows have the id of the model, whichever of its ids was sent.
  return { model: model && (catalog.find(model)?.id ?? model), outcome, since, until, requestId };
}

/**
 * Sends all requests of a filter as a CSV file, a page at a time, as the client reads it.
 * @throws AppError `validation_failed` if there are too many
 */
async function sendRequestLogs(
  services: Services,
  context: ApiContext,
  open: () => Promise<HotAccount>,
  filter: RequestLogFilter,
): Promise<void> {
  const { requestLog } = services;
  const { signal } = context.state;
  const { accountId, count } = await readFromDatabase(services, context, 'list', async () => {
    const { id } = await open();
    const found = await requestLog.count({ accountId: id, signal }, filter, maxCsvRows + 1);
    return { accountId: id, count: found };
  });
  if (count > maxCsvRows)
    throw invalidField(
      ['query', 'since'],
      `must be later, or until earlier: more than ${maxCsvRows} requests match, which is too many for a file`,
    );
  const pages = requestLog.readPages({ accountId, signal }, filter, requestLogPageSize, (read) =>
    readFromDatabase(services, context, 'list', read),
  );
  context.attachment('requests.csv');
  await sendText(context, { type: csvType, pieces: writeRequestLogsCsv(pages) });
}

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
      read: (account, signal) => services.refills.readPage(account, page, pageSize, signal),
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
      read: ({ id }) =>
        context.state.query.by === 'model'
          ? services.history.readModelDays(id, period.start, period.end)
          : services.history.readDays(id, period.start, period.end),
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
