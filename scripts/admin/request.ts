import { presentExpiredRequest, presentRequest } from '../../shared/ledger/present-request.ts';
import { readReplays } from '../../shared/money/replay-count-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { RequestListStore } from '../../shared/ledger/request-list-store.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';
import { findAccountId } from './find-account.ts';
import { listRequests, requestColumns, requestListOptions, requestListUsage } from './list-requests.ts';

export const requestVerbs: Record<string, AdminVerb> = {
  show: {
    usage: '<request>',
    help: 'shows what became of a request: what the customer was told, each attempt with the vendor’s reason, and costs',
    positionals: 1,
    options: [],
    run: showRequest,
  },
  list: {
    usage: `[--account <account>] ${requestListUsage}`,
    help: 'lists the latest requests, with the upstream, the attempts and the reasons of vendors',
    positionals: 0,
    options: ['account', ...requestListOptions],
    columns: requestColumns,
    run: async (context) => {
      const { account } = context.options;
      return await listRequests(
        context,
        account === undefined ? undefined : await findAccountId(context, account),
      );
    },
  },
};

async function showRequest({ ledger, mongo, redis, positionals }: AdminContext): Promise<unknown> {
  const id = positionals[0]!;
  const found = await new RequestListStore(ledger).find(id);
  if (found === null)
    throw new CommandError(
      `No request ${quote(id)} was charged or failed at a model, and none of the last 72 hours that was rejected is listed ` +
        'with it. One that has not ended yet is only in the logs of the processes.',
    );
  if (found.row === undefined) return presentExpiredRequest(found.entry);
  const [priced] = await new PriceStore(mongo.db).addTo([found.row]);
  return { ...presentRequest(priced!, null), replays: await readReplays(redis, found.row) };
}
