import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { addDays, toDay } from '../../../shared/ledger/days.ts';
import { presentExpiredRequest, presentRequest } from '../../../shared/ledger/present-request.ts';
import { writeSpendCsv, writeSpendJson } from '../../../shared/ledger/present-spend.ts';
import {
  RequestListStore,
  UnknownPosition,
  type RequestCount,
} from '../../../shared/ledger/request-list-store.ts';
import { defaultSpendDays, maxSpendDays, type SpendDimension } from '../../../shared/ledger/sum-spend.ts';
import { operations } from '../../contract/operations.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { csvType, prefersCsv } from '../../responses/prefers-csv.ts';
import { sendText } from '../../responses/send-text.ts';
import { readPeriodBounds } from '../read-period-bounds.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';

export const listAdminRequests = defineAdminEndpoint(
  operations.listAdminRequests,
  (services) => async (context) => {
    const { account: accountId, model, outcome, limit, after, ...bounds } = context.state.query;
    const { since, until } = readPeriodBounds(bounds);
    const store = new RequestListStore(services.ledger);
    const filter = { accountId, model, outcome, since, until };
    return await readFromDatabase(services, context, 'list', async () => {
      const page = await store.list(filter, limit, after).catch((error: unknown) => {
        if (!(error instanceof UnknownPosition)) throw error;
        throw invalidField(['query', 'after'], 'must be the id of a request that is still in the log');
      });
      const total: RequestCount | null = after === undefined ? await store.count(filter) : null;
      return {
        data: page.rows.map(presentRequest),
        has_more: page.hasMore,
        last_id: page.rows.at(-1)?._id ?? null,
        total: total?.count ?? null,
        has_exact_total: total?.isExact ?? false,
      };
    });
  },
);

export const getAdminRequest = defineAdminEndpoint(
  operations.getAdminRequest,
  (services) => (context) =>
    readFromDatabase(services, context, 'one', async () => {
      const found = await new RequestListStore(services.ledger).find(context.state.path.request_id);
      if (found === null)
        throw new AppError('not_found', {
          message:
            'No request with this id was charged or failed at a model. One that was rejected, or has not ended yet, is only in ' +
            'the logs of the api processes.',
        });
      return found.row === undefined ? presentExpiredRequest(found.entry) : presentRequest(found.row);
    }),
);

export const getSpend = defineAdminEndpoint(operations.getSpend, (services) => async (context) => {
  const { account: accountId, model, by, until = toDay(new Date()) } = context.state.query;
  const { since = addDays(until, 1 - defaultSpendDays) } = context.state.query;
  if (since > until) throw invalidField(['query', 'since'], `must not be after until, ${until}`);
  const firstDay = addDays(until, 1 - maxSpendDays);
  if (since < firstDay)
    throw invalidField(
      ['query', 'since'],
      `must be ${firstDay} or later, because one call sums at most ${maxSpendDays} days. Until is ${until}`,
    );
  const dimensions = new Set(by.split(',') as SpendDimension[]);
  // Each read has its own turn and time limit, and none begins once the caller has disconnected.
  const pages = services.ledger.spend.readPages({ accountId, model, since, until }, dimensions, (read) =>
    readFromDatabase(services, context, 'list', read),
  );
  const isCsv = prefersCsv(context);
  await sendText(context, {
    type: isCsv ? csvType : 'application/json',
    pieces: isCsv ? writeSpendCsv(pages, dimensions) : writeSpendJson(pages),
  });
  return null;
});
