import { addAccountNames } from '../../../shared/admin/account-names.ts';
import type { NamelessRequest } from '../../../shared/contract/admin-requests.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { maxCsvRows } from '../../../shared/contract/fields.ts';
import { addDays, toDay } from '../../../shared/ledger/days.ts';
import {
  presentExpiredRequest,
  presentRequest,
  writeRequestsCsv,
} from '../../../shared/ledger/present-request.ts';
import { writeRankedSpendJson, writeSpendCsv, writeSpendJson } from '../../../shared/ledger/present-spend.ts';
import {
  RequestListStore,
  UnknownPosition,
  type FoundRequest,
  type RequestCount,
  type RequestFilter,
} from '../../../shared/ledger/request-list-store.ts';
import {
  defaultSpendDays,
  hasAccountAndUpstream,
  maxSpendDays,
  noSumsOfBoth,
  type SpendDimension,
} from '../../../shared/ledger/sum-spend.ts';
import type { RunRead } from '../../../shared/ledger/spend-store.ts';
import { readReplays } from '../../../shared/money/replay-count-store.ts';
import { operations } from '../../contract/operations.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { csvType, prefersCsv } from '../../responses/prefers-csv.ts';
import { sendText } from '../../responses/send-text.ts';
import { readPeriodBounds } from '../read-period-bounds.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';

export const listAdminRequests = defineAdminEndpoint(
  operations.listAdminRequests,
  (services) => async (context) => {
    const { account: accountId, model, upstream, outcome, limit, after, ...bounds } = context.state.query;
    const { since, until } = readPeriodBounds(bounds);
    const store = new RequestListStore(services.ledger);
    const filter = { accountId, model, upstream, outcome, since, until };
    if (prefersCsv(context)) return await sendCsv(services, context, filter);
    return await readFromDatabase(services, context, 'list', async () => {
      const page = await store.list(filter, limit, after).catch((error: unknown) => {
        if (!(error instanceof UnknownPosition)) throw error;
        throw invalidField(['query', 'after'], 'must be the id of a request that is still in the log');
      });
      const total: RequestCount | null = after === undefined ? await store.count(filter) : null;
      const rows = await services.prices.addTo(page.rows);
      return {
        data: await nameAccounts(
          services,
          rows.map((row) => presentRequest(row, services.catalog)),
        ),
        has_more: page.hasMore,
        last_id: page.rows.at(-1)?._id ?? null,
        total: total?.count ?? null,
        has_exact_total: total?.isExact ?? false,
      };
    });
  },
);

const nameAccounts = (services: Services, rows: readonly NamelessRequest[]) =>
  addAccountNames(services, rows, ({ account }) => account);

/** Rows of a file that are read together. */
const csvPageSize = 300;

/** Sends all requests of a filter as a file, a page at a time, as the client reads it. */
async function sendCsv(services: Services, context: ApiContext, filter: RequestFilter): Promise<null> {
  const store = new RequestListStore(services.ledger);
  const read: RunRead = (work) => readFromDatabase(services, context, 'list', work);
  const count = await read(() => store.countRows(filter, maxCsvRows + 1));
  if (count > maxCsvRows)
    throw invalidField(
      ['query', 'since'],
      `must be later, or until earlier: more than ${maxCsvRows} requests match, which is too many for a file`,
    );
  context.attachment('requests.csv');
  await sendText(context, {
    type: csvType,
    pieces: writeRequestsCsv(store.listPages(filter, csvPageSize, read)),
  });
  return null;
}

async function present(services: Services, { row, entry }: FoundRequest): Promise<NamelessRequest> {
  if (row === undefined) return presentExpiredRequest(entry);
  const [[priced], replays] = await Promise.all([
    services.prices.addTo([row]),
    // The log is readable without Redis. Then it is not known.
    readReplays(services.redis, row).catch(() => null),
  ]);
  return { ...presentRequest(priced!, services.catalog), replays };
}

export const getAdminRequest = defineAdminEndpoint(
  operations.getAdminRequest,
  (services) => (context) =>
    readFromDatabase(services, context, 'one', async () => {
      const found = await new RequestListStore(services.ledger).find(context.state.path.request_id);
      if (found === null)
        throw new AppError('not_found', {
          message:
            'No request with this id was charged or failed at a model, and none of the last 72 hours that was rejected is listed ' +
            'with it. One that has not ended yet is only in the logs of the processes.',
        });
      const [named] = await nameAccounts(services, [await present(services, found)]);
      return named!;
    }),
);

export const getSpend = defineAdminEndpoint(operations.getSpend, (services) => async (context) => {
  const { account: accountId, upstream, model, by, until = toDay(new Date()) } = context.state.query;
  const { since = addDays(until, 1 - defaultSpendDays), limit, sort, order } = context.state.query;
  if (since > until) throw invalidField(['query', 'since'], `must not be after until, ${until}`);
  const firstDay = addDays(until, 1 - maxSpendDays);
  if (since < firstDay)
    throw invalidField(
      ['query', 'since'],
      `must be ${firstDay} or later, because one call sums at most ${maxSpendDays} days. Until is ${until}`,
    );
  const dimensions = new Set(by.split(',') as SpendDimension[]);
  if (hasAccountAndUpstream({ accountId, upstream }, dimensions))
    throw invalidField(['query', 'by'], noSumsOfBoth);
  // Each read has its own turn and time limit, and none begins once the caller has disconnected.
  const pages = services.ledger.spend.readPages(
    { accountId, upstream, model, since, until },
    dimensions,
    (read) => readFromDatabase(services, context, 'list', read),
  );
  const isCsv = prefersCsv(context);
  const writeJson = () =>
    limit === undefined
      ? writeSpendJson(pages)
      : writeRankedSpendJson(pages, { order: sort, isAscending: order === 'asc', limit });
  await sendText(context, {
    type: isCsv ? csvType : 'application/json',
    pieces: isCsv ? writeSpendCsv(pages, dimensions) : writeJson(),
  });
  return null;
});
