import {
  allModels,
  type AccountSpendDocument,
  type ModelSpendDocument,
  type UpstreamSpendDocument,
} from '../../../../shared/ledger/spend-store.ts';
import { addDays, startOfDay, toDay } from '../../../../shared/ledger/days.ts';
import type { Rejection } from '../../../../shared/ledger/rejection-store.ts';
import type { RequestLogDocument } from '../../../../shared/ledger/ledger-store.ts';
import type { SpendSums } from '../../../../shared/ledger/sum-spend.ts';
import { shardOf } from '../../../../shared/platform/redis/redis-keys.ts';

export const accountCount = 10_000;
export const modelCount = 20;
export const logDays = 30;
const failureShare = 0.02;
const dayMs = 24 * 60 * 60 * 1_000;

export const accountOf = (number: number): string =>
  `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
export const modelOf = (number: number): string => `vendor-${number % 7}/model-${number}`;
export const idOf = (number: number): string => `01990000-0000-7000-8000-${String(number).padStart(12, '0')}`;
export const rejectedIdOf = (number: number): string =>
  `01990000-0000-7000-9000-${String(number).padStart(12, '0')}`;

/** The rows of a request log, evenly spread over its days, and the sums of its days. */
export class RequestRows {
  readonly count: number;
  readonly #firstMs: number;
  readonly #ofAccounts = new Map<string, AccountSpendDocument>();
  readonly #ofModels = new Map<string, ModelSpendDocument>();
  readonly #ofUpstreams = new Map<string, UpstreamSpendDocument>();

  constructor(count: number, today: Date) {
    this.count = count;
    this.#firstMs = startOfDay(addDays(toDay(today), 1 - logDays)).getTime();
  }

  /** When the request of this number was admitted. */
  timeOf(number: number): Date {
    return new Date(this.#firstMs + Math.floor((number * (logDays * dayMs)) / this.count));
  }

  /** Creates a row, and adds it to the sums. */
  create(number: number): RequestLogDocument {
    // Neighbouring rows are of different accounts. A few accounts have most requests.
    const rank = (number * 7_919) % accountCount;
    const account = number % 3 === 0 ? rank % 20 : rank;
    const model = modelOf((account + (number % 2) * 7) % modelCount);
    const success = (number * 31) % 1_000 >= failureShare * 1_000;
    const at = this.timeOf(number);
    const row: RequestLogDocument = {
      _id: idOf(number),
      accountId: accountOf(account),
      model,
      at,
      settledAt: new Date(at.getTime() + 1_800),
      ordinal: number + 1,
      durationMs: 1_800,
      success,
      responseCode: success ? 200 : 502,
      errorCode: success ? null : 'upstream_error',
      details: success ? null : 'The model is unavailable. Try again shortly.',
      userIp: '192.0.2.17',
      promptTokens: 800,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      completionTokens: 250,
      counted: false,
      images: 0,
      imageQuality: null,
      imageSize: null,
      characters: 0,
      billedMs: 1_700,
      priceVersion: '0123456789ab',
      user: null,
      upstream: success ? 'vendor' : 'other-vendor',
      calls: success
        ? [['vendor', 1_700]]
        : [
            ['vendor', 900, 503, 'the upstream responded with 503: The server is overloaded.'],
            ['other-vendor', 800, 503, 'the upstream responded with 503: The server is overloaded.'],
          ],
      costNano: success ? 1_400_000n : 0n,
      vendorCostNano: success ? 900_000n : 0n,
      shortfallNano: 0n,
      free: false,
    };
    this.#addToSums(row);
    return row;
  }

  get ofAccounts(): readonly AccountSpendDocument[] {
    return [...this.#ofAccounts.values()];
  }

  get ofModels(): readonly ModelSpendDocument[] {
    return [...this.#ofModels.values()];
  }

  get ofUpstreams(): readonly UpstreamSpendDocument[] {
    return [...this.#ofUpstreams.values()];
  }

  /** Creates a rejected request of the last 72 hours. */
  createRejection(number: number, count: number): Rejection {
    return {
      requestId: rejectedIdOf(number),
      accountId: accountOf((number * 7_919) % accountCount),
      model: modelOf(number % modelCount),
      at: new Date(Date.now() - Math.floor(((count - number) * 3 * dayMs) / count)),
      durationMs: 3,
      status: 402,
      code: 'insufficient_balance',
      message:
        'This request may cost up to 1.2 RUB; 0.4 RUB of the balance is available. Refill the balance.',
      address: '192.0.2.17',
    };
  }

  #addToSums(row: RequestLogDocument): void {
    const { accountId, model } = row;
    const day = toDay(row.at);
    const shard = shardOf(accountId);
    const accountName = `${accountId}:${day}:${model}`;
    const ofAccount = this.#ofAccounts.get(accountName);
    this.#ofAccounts.set(accountName, { _id: accountName, accountId, model, day, ...add(ofAccount, row) });
    const upstream = row.upstream!;
    for (const name of [model, allModels]) {
      const upstreamName = `${shard}:${day}:${upstream} ${name}`;
      const ofUpstream = this.#ofUpstreams.get(upstreamName);
      this.#ofUpstreams.set(upstreamName, {
        _id: upstreamName,
        shard,
        upstream,
        model: name,
        day,
        ...add(ofUpstream, row),
      });
      const _id = `${shard}:${day}:${name}`;
      this.#ofModels.set(_id, { _id, shard, model: name, day, ...add(this.#ofModels.get(_id), row) });
    }
  }
}

function add(sums: SpendSums | undefined, row: RequestLogDocument) {
  return {
    requests: (sums?.requests ?? 0) + 1,
    failures: (sums?.failures ?? 0) + (row.success ? 0 : 1),
    rows: (sums?.rows ?? 0) + 1,
    promptTokens: (sums?.promptTokens ?? 0) + row.promptTokens,
    cacheReadTokens: 0,
    completionTokens: (sums?.completionTokens ?? 0) + row.completionTokens,
    costNano: (sums?.costNano ?? 0n) + row.costNano,
    freeRequests: 0,
    vendorCostNano: (sums?.vendorCostNano ?? 0n) + row.vendorCostNano!,
    costedRequests: (sums?.costedRequests ?? 0) + 1,
    costedNano: (sums?.costedNano ?? 0n) + row.costNano,
    appliedMs: 0,
    appliedSeq: 0,
  };
}
