import { requestOutcomes, type RequestOutcomeName } from '../../shared/contract/request-terms.ts';
import { readBound } from '../../shared/ledger/days.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { presentRequest } from '../../shared/ledger/present-request.ts';
import { RequestListStore, type RequestFilter } from '../../shared/ledger/request-list-store.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { readInteger, UsageError, type AdminContext } from './command.ts';

export const requestListOptions = ['model', 'upstream', 'outcome', 'since', 'until', 'limit'] as const;
export const requestListUsage =
  '[--model gpt-4o] [--upstream openai] [--outcome error] [--since 2026-11-01] [--until 2026-11-30] [--limit 100]';

/** What a table shows of each request. */
export const requestColumns = [
  'created_at',
  'id',
  'account',
  'model',
  'status',
  'code',
  'upstream',
  'attempts',
  'prompt_tokens',
  'completion_tokens',
  'cost',
  'vendor_cost',
];

/** Requests that are read together. */
const pageSize = 100;

/** Lists the latest requests that the options select, and warns if there are more. */
export async function listRequests(
  { ledger, mongo, options, warn }: Pick<AdminContext, 'ledger' | 'mongo' | 'options' | 'warn'>,
  accountId: string | undefined,
): Promise<unknown> {
  const store = new RequestListStore(ledger);
  const filter = { accountId, ...readFilter(options) };
  const limit = readInteger(options, 'limit', 100, 1);
  return readRows(store, new PriceStore(mongo.db), filter, limit, warn);
}

async function* readRows(
  store: RequestListStore,
  prices: PriceStore,
  filter: RequestFilter,
  limit: number,
  warn: AdminContext['warn'],
): AsyncGenerator<object> {
  let printed = 0;
  for await (const rows of store.listPages(filter, pageSize))
    for (const priced of await prices.addTo(rows)) {
      if (printed === limit) {
        const { count, isExact } = await store.count(filter);
        warn(
          `These are the latest ${limit} of ${isExact ? '' : 'more than '}${count} requests; see --limit.`,
        );
        return;
      }
      printed += 1;
      yield presentRequest(priced, null);
    }
}

function readFilter(options: AdminContext['options']): RequestFilter {
  const { model, upstream, outcome } = options;
  if (outcome !== undefined && !isOutcome(outcome))
    throw new UsageError(`--outcome must be one of ${requestOutcomes.join(', ')}.`);
  return { model, upstream, outcome, ...readPeriod(options) };
}

/** Reads `--since` and `--until`. @throws UsageError */
export const readPeriod = (options: AdminContext['options']): Pick<RequestFilter, 'since' | 'until'> => ({
  since: readTime(options, 'since'),
  until: readTime(options, 'until'),
});

const isOutcome = (text: string): text is RequestOutcomeName =>
  (requestOutcomes as readonly string[]).includes(text);

function readTime(options: AdminContext['options'], name: 'since' | 'until'): Date | undefined {
  const text = options[name];
  if (text === undefined) return undefined;
  const time = readBound(text, name);
  if (time === null)
    throw new UsageError(
      `--${name} must be a day, such as 2026-11-30, or a time, such as 2026-11-30T12:00:00Z; it is ${quote(text)}.`,
    );
  return time;
}
