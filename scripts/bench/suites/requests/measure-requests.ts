import { RequestLogStore, type RequestLogFilter } from '../../../../shared/ledger/request-log-store.ts';
import { PriceStore } from '../../../../shared/ledger/price-store.ts';
import type {
  AccountSpendDocument,
  ModelSpendDocument,
  SpendFilter,
  UpstreamSpendDocument,
} from '../../../../shared/ledger/spend-store.ts';
import { addDays, startOfDay, toDay } from '../../../../shared/ledger/days.ts';
import { LedgerStore } from '../../../../shared/ledger/ledger-store.ts';
import { sumAddresses } from '../../../../shared/ledger/sum-addresses.ts';
import type { SpendDimension } from '../../../../shared/ledger/sum-spend.ts';
import { RequestListStore, type RequestFilter } from '../../../../shared/ledger/request-list-store.ts';
import type { Database } from '../../../../shared/platform/storage/mongo-client.ts';
import { summarizeLatency, type LatencySummary } from '../../harness/statistics.ts';
import {
  accountCount,
  accountOf,
  idOf,
  logDays,
  modelCount,
  modelOf,
  rejectedIdOf,
  RequestRows,
} from './request-rows.ts';

/** What an operator or a customer looks for, and how long it takes. */
export interface LookUp extends LatencySummary {
  readonly name: string;
  /** What its 99th percentile must stay below. */
  readonly maxMs: number;
}

export interface RequestsRun {
  readonly rows: number;
  readonly insertedPerSecond: number;
  /** How long it took to create the indexes; null if the rows were inserted into them. */
  readonly indexedMs: number | null;
  readonly lookUps: readonly LookUp[];
  readonly faults: readonly string[];
}

export interface RequestsOptions {
  readonly db: Database;
  readonly rows: number;
  readonly lookUps: number;
  /** Whether to create the indexes before the rows. A server that does one thing at a time would not respond meanwhile. */
  readonly isIndexedFirst: boolean;
  readonly onStep: (text: string) => void;
}

/** For a page of operators, at the 99th percentile. */
const maxPageMs = 50;
/** For sums over all accounts or of ten thousand rows, which are read in turns with other work. */
const maxSumMs = 2_000;
/** For a page of customers, who get three times as many rows and the totals, in turns with other work. */
const maxCustomerPageMs = 150;

const rowsPerInsert = 5_000;
/** Of the last 72 hours. */
const rejections = 200_000;
/** Rows of which the addresses of an account are made. */
const addressRows = 10_001;
const pageSize = 100;

/** Fills a request log, and looks for requests in it, one after the other. */
export async function measureRequests(options: RequestsOptions): Promise<RequestsRun> {
  const { db, rows: count, isIndexedFirst, onStep } = options;
  const ledger = new LedgerStore(db, { requestLogDays: logDays });
  const rows = new RequestRows(count, new Date());
  if (isIndexedFirst) await ledger.createIndexes();
  const startedAtMs = performance.now();
  for (let from = 0; from < count; from += rowsPerInsert) {
    if (from % (20 * rowsPerInsert) === 0) onStep(`inserting rows, ${Math.round((100 * from) / count)} %`);
    const length = Math.min(rowsPerInsert, count - from);
    const documents = Array.from({ length }, (_, i) => rows.create(from + i));
    await ledger.logs.insertMany(documents, { ordered: false });
  }
  const insertedPerSecond = (count * 1_000) / (performance.now() - startedAtMs);
  await insertSums(ledger, rows);
  const names = Array.from({ length: accountCount }, (_, i) => ({
    _id: accountOf(i),
    name: `Customer ${i}`,
  }));
  await db.collection<{ readonly _id: string }>('accounts').insertMany(names);
  onStep('inserting rejections');
  for (let from = 0; from < rejections; from += rowsPerInsert)
    await ledger.rejections.insert(
      Array.from({ length: rowsPerInsert }, (_, i) => rows.createRejection(from + i, rejections)),
    );
  onStep('creating indexes');
  const indexingAtMs = performance.now();
  await createIndexes(ledger);
  const indexedMs = isIndexedFirst ? null : performance.now() - indexingAtMs;
  onStep('looking for requests');
  const lookUps = await lookUp(options, ledger, rows);
  const faults = lookUps.flatMap(({ name, maxMs, p99Ms, failures }) => [
    ...(p99Ms > maxMs ? [`${name}: the 99th percentile is above ${maxMs} ms`] : []),
    ...Object.entries(failures).map(([reason, times]) => `${name}: ${times} × ${reason}`),
  ]);
  return { rows: count, insertedPerSecond, indexedMs, lookUps, faults };
}

/** An index of so many rows takes longer to create than the client waits. Asking again waits for the same index. */
async function createIndexes(ledger: LedgerStore): Promise<void> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await ledger.createIndexes();
      return;
    } catch (error) {
      if (attempts === 20) throw error;
    }
  }
}

async function insertSums(ledger: LedgerStore, rows: RequestRows): Promise<void> {
  const { ofAccounts, ofModels, ofUpstreams } = ledger.spend;
  const insert = async <T>(
    documents: readonly T[],
    write: (some: T[]) => Promise<unknown>,
  ): Promise<void> => {
    for (let from = 0; from < documents.length; from += rowsPerInsert)
      await write(documents.slice(from, from + rowsPerInsert));
  };
  await insert<AccountSpendDocument>(rows.ofAccounts, (some) => ofAccounts.insertMany(some));
  await insert<ModelSpendDocument>(rows.ofModels, (some) => ofModels.insertMany(some));
  await insert<UpstreamSpendDocument>(rows.ofUpstreams, (some) => ofUpstreams.insertMany(some));
}

async function lookUp(
  { db, lookUps }: RequestsOptions,
  ledger: LedgerStore,
  rows: RequestRows,
): Promise<LookUp[]> {
  const store = new RequestListStore(ledger);
  const random = (below: number): number => Math.floor(Math.random() * below);
  const anyId = (): string => idOf(random(rows.count));
  const anyAccount = (): string => accountOf(random(accountCount));
  const anyModel = (): string => modelOf(random(modelCount));
  const anyDay = (): Date => startOfDay(addDays(toDay(new Date()), -random(logDays)));
  const anyPeriod = (): Pick<RequestFilter, 'since' | 'until'> => {
    const since = anyDay();
    return { since, until: new Date(since.getTime() + (1 + random(48)) * 30 * 60 * 1_000) };
  };
  const page = async (filter: RequestFilter, after?: string): Promise<boolean> => {
    const found = await store.list(filter, pageSize, after);
    return found.rows.every((row, i) => i === 0 || row.at <= found.rows[i - 1]!.at);
  };
  const isCounted = async (filter: RequestFilter): Promise<boolean> => (await store.count(filter)).count >= 0;
  const busiest = accountOf(0);
  const log = new RequestLogStore(ledger, new PriceStore(db));
  const pageOfCustomer = async (accountId: string, filter: RequestLogFilter): Promise<boolean> => {
    const { rows: found } = await log.readPage({ accountId }, filter, 1, 300);
    return found.every(({ row }) => row.accountId === accountId);
  };
  const spend = async (filter: Partial<SpendFilter>, by: readonly SpendDimension[]): Promise<boolean> => {
    const until = toDay(new Date());
    let found = 0;
    const pages = ledger.spend.readPages(
      { since: addDays(until, 1 - logDays), until, ...filter },
      new Set(by),
    );
    for await (const page of pages) found += page.length;
    return found > 0;
  };
  const kinds: Readonly<Record<string, () => Promise<boolean>>> = {
    'by id': async () => (await store.find(anyId())) !== null,
    'of an account': () => page({ accountId: anyAccount() }),
    'of an account, later page': () => page({ accountId: busiest }, anyId()),
    'failures of an account': () => page({ accountId: anyAccount(), outcome: 'error' }),
    'all failures': () => page({ outcome: 'error' }),
    'all failures, later page': () => page({ outcome: 'error' }, anyId()),
    'of an upstream': () => page({ upstream: 'vendor' }),
    'failures of an upstream, later page': () =>
      page({ upstream: 'other-vendor', outcome: 'error' }, anyId()),
    'of an account at an upstream': () => page({ accountId: anyAccount(), upstream: 'other-vendor' }),
    'count: an account at an upstream': () => isCounted({ accountId: busiest, upstream: 'other-vendor' }),
    'rejected, by id': async () => (await store.find(rejectedIdOf(random(rejections)))) !== null,
    'rejected, of an account': () => page({ accountId: anyAccount(), outcome: 'rejected' }),
    'rejected, of a model': () => page({ model: anyModel(), outcome: 'rejected' }),
    'rejected, later page': () => page({ outcome: 'rejected' }, rejectedIdOf(random(rejections))),
    'count: rejected': () => isCounted({ outcome: 'rejected' }),
    'sum: addresses of an account': async () =>
      sumAddresses(await store.readAddresses({ accountId: busiest }, addressRows)).length > 0,
    'sum: spend of an account by day': () => spend({ accountId: busiest }, ['day']),
    'sum: spend by upstream and day': () => spend({}, ['upstream', 'day']),
    'sum: spend by model and day': () => spend({}, ['model', 'day']),
    'sum: spend by account': () => spend({}, ['account']),
    'of a model in some hours': () => page({ model: anyModel(), ...anyPeriod() }),
    'all, later page': () => page({}, anyId()),
    'count: an account': () => isCounted({ accountId: busiest }),
    'count: a model': () => isCounted({ model: anyModel() }),
    'count: all': async () => (await store.count({})).count === rows.count,
    'count: all failures': () => isCounted({ outcome: 'error' }),
    'count: an upstream': () => isCounted({ upstream: 'vendor' }),
    'count: a model in some hours': () => isCounted({ model: anyModel(), ...anyPeriod() }),
    'customer: newest': () => pageOfCustomer(anyAccount(), {}),
    'customer: of a model': () => pageOfCustomer(anyAccount(), { model: anyModel() }),
    'customer: failures': () => pageOfCustomer(anyAccount(), { outcome: 'error' }),
    'customer: by id': () => pageOfCustomer(anyAccount(), { requestId: anyId() }),
    'busy customer: newest': () => pageOfCustomer(busiest, {}),
    'busy customer: of a model': () => pageOfCustomer(busiest, { model: modelOf(0) }),
    'busy customer: last day': () => pageOfCustomer(busiest, { since: startOfDay(toDay(new Date())) }),
  };
  const results: LookUp[] = [];
  for (const [name, run] of Object.entries(kinds))
    results.push(await measure(name, run, isSum(name) ? Math.ceil(lookUps / 30) : lookUps));
  return results;
}

const isSum = (name: string): boolean => name.startsWith('sum: ');

async function measure(name: string, run: () => Promise<boolean>, times: number): Promise<LookUp> {
  const tookMs: number[] = [];
  let wrong = 0;
  for (let i = 0; i < times; i++) {
    const startedAtMs = performance.now();
    const isRight = await run();
    tookMs.push(performance.now() - startedAtMs);
    if (!isRight) wrong += 1;
  }
  const maxMs = isSum(name) ? maxSumMs : name.includes('customer') ? maxCustomerPageMs : maxPageMs;
  return { name, maxMs, ...summarizeLatency(tookMs, wrong === 0 ? {} : { 'wrong result': wrong }) };
}
