// decision 0005
import { AppError, errorKind, toAppError } from '../../contract/errors.ts';
import { shorten } from '../../platform/runtime/shorten.ts';
import type { PriceStore } from '../../ledger/price-store.ts';
import type { LedgerStore } from '../../ledger/ledger-store.ts';
import type { RecordedCall, UsageEvent } from '../../ledger/usage-event.ts';
import { computeCost, type Usage } from '../../catalog/cost.ts';
import type { AdmittedRequest } from '../../money/admitted-request.ts';
import { isRedisUnavailable, type RedisClient } from '../../platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../platform/redis/retry-through-outage.ts';
import type { HotAccountStore } from '../../accounts/hot-account-store.ts';
import type { UsageMetrics } from '../../ledger/usage-metrics.ts';
import type { RequestStatsRecorder } from '../../ledger/request-stats-recorder.ts';
import { releaseReservation, runSettlement, type SettledError, type Settlement } from './settle-script.ts';

export interface RequestOutcome {
  readonly usage: Usage;
  /** Part of the completion tokens; absent if the vendor did not report it. */
  readonly reasoningTokens?: number;
  /** From admission to the first output of a streamed chat; absent for everything else. */
  readonly firstTokenMs?: number;
  /** Whether the usage is our own estimate, because the vendor reported none. */
  readonly counted: boolean;
  /** Null on success. */
  readonly error: SettledError;
  /** Why it failed, for the log alone. Null on success, and if the request itself was wrong. */
  readonly reason?: string | null;
  /** A note for the log row of a success, for example that the response contains less than was requested. */
  readonly note?: string | null;
  /** Whether the caller is charged for the usage: on success, and for output generated before a stream broke. */
  readonly charged: boolean;
  /** Whether any model was called. If not, the reservation is released and no row is logged. */
  readonly reachedModel: boolean;
  /** The calls to vendors that were made for the request, in their order. */
  readonly calls?: readonly RecordedCall[];
  /** When each of them began, in ms from the admission. */
  readonly callStartsMs?: readonly number[];
  /** What the vendors charge the operator for them; null or absent if it is unknown. */
  readonly vendorCostNano?: bigint | null;
}

/** The price as reported to the caller. */
export interface Receipt {
  readonly costNano: bigint;
  readonly free: boolean;
  readonly durationMs: number;
}

export interface FinishDeps {
  readonly redis: RedisClient;
  readonly ledger: LedgerStore;
  readonly hotAccounts: HotAccountStore;
  readonly requestStats: RequestStatsRecorder;
  readonly usageMetrics?: Pick<UsageMetrics, 'note'>;
  readonly prices: Pick<PriceStore, 'saveLater'>;
  /** Pause between two settlement attempts; half a second by default. */
  readonly retryPauseMs?: number;
}

/** Called once a durable job is settled; completes its stored response. */
export type AfterSettlement = () => void;

/** Delivers the response and its cost to the caller. For a durable job it stores the response instead. */
export type Deliver = (receipt: Receipt) => Promise<AfterSettlement | void>;

export interface FinishedRequest {
  readonly receipt: Receipt;
  /** False if the request had already ended or belongs to another attempt. */
  readonly isSettled: boolean;
}

/**
 * Finishes a request: computes the exact cost from the usage, settles it, then delivers the response. Every request
 * that a worker takes ends here, whatever its outcome. If an earlier dispatch of the same request settled it, the
 * receipt is that of the earlier settlement.
 *
 * The response of a durable job is stored first, and the settlement then ends the job. The caller is therefore charged
 * for a job if and only if it succeeded with a response that can be fetched. If the response cannot be stored,
 * `deliver` rejects, and the job fails and is not charged.
 * @param deliver is not called for a failure
 */
export async function finishRequest(
  deps: FinishDeps,
  request: AdmittedRequest,
  outcome: RequestOutcome,
  deliver: Deliver,
): Promise<FinishedRequest> {
  const isDurable = request.jobAttempt !== undefined;
  if (outcome.error !== null) return await settle(deps, request, outcome);
  if (!isDurable) {
    const finished = await settle(deps, request, outcome);
    await deliver(finished.receipt);
    return finished;
  }
  let afterSettlement: AfterSettlement | void;
  try {
    afterSettlement = await deliver({
      costNano: request.isFree === true ? 0n : computeCost(request.pricing, outcome.usage),
      free: request.isFree === true,
      durationMs: Date.now() - request.admittedAtMs,
    });
  } catch (error) {
    const { code, publicMessage: message } = toAppError(error);
    return await settle(deps, request, { ...outcome, error: { code, message }, charged: false });
  }
  const finished = await settle(deps, request, outcome);
  if (finished.isSettled) afterSettlement?.();
  return finished;
}

/** Settles a request whose response is sent elsewhere, or that has no response. */
export async function settleRequest(
  deps: FinishDeps,
  request: AdmittedRequest,
  outcome: RequestOutcome,
): Promise<Receipt> {
  return (await settle(deps, request, outcome)).receipt;
}

async function settle(
  deps: FinishDeps,
  request: AdmittedRequest,
  outcome: RequestOutcome,
): Promise<FinishedRequest> {
  const { redis, ledger, hotAccounts, requestStats, prices } = deps;
  const { usage, error, charged, calls = [], callStartsMs, vendorCostNano = null } = outcome;
  const { reasoningTokens, firstTokenMs } = outcome;
  const durationMs = Date.now() - request.admittedAtMs;
  if (!outcome.reachedModel) {
    await settleThroughOutage(deps, () => releaseReservation(redis, request, error));
    return { receipt: { costNano: 0n, free: false, durationMs }, isSettled: true };
  }
  const event: UsageEvent = {
    v: 1,
    requestId: request.requestId,
    accountId: request.accountId,
    model: request.model,
    at: request.admittedAtMs,
    durationMs,
    success: error === null,
    responseCode: error === null ? 200 : errorKind(error.code).status,
    errorCode: error?.code ?? null,
    details: shortenDetails(error?.message ?? outcome.note ?? null),
    userIp: request.userIp,
    promptTokens: usage.promptTokens,
    cacheReadTokens: usage.cacheReadTokens,
    cacheWriteTokens: usage.cacheWriteTokens,
    completionTokens: usage.completionTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(firstTokenMs !== undefined && { firstTokenMs }),
    counted: outcome.counted,
    images: usage.images,
    imageQuality: usage.imageQuality,
    imageSize: usage.imageSize,
    characters: usage.characters,
    billedMs: usage.durationMs,
    priceVersion: request.priceVersion,
    user: request.user,
    claimHash: request.claimHash,
    ...(calls.length > 0 && { calls, ...(callStartsMs !== undefined && { callStartsMs }) }),
    ...(vendorCostNano !== null && { vendorCostNano: vendorCostNano.toString() }),
  };
  prices.saveLater({ id: request.model, priceVersion: request.priceVersion, pricing: request.pricing });
  const { claimHash, jobAttempt } = request;
  const costNano = charged ? computeCost(request.pricing, usage) : null;
  const settlement = await settleThroughOutage(deps, async () => {
    const tryToSettle = (): Promise<Settlement> =>
      runSettlement(redis, event, costNano, { claimHash, jobAttempt, error });
    const first = await tryToSettle();
    if (first.outcome !== 'unknown') return first;
    await hotAccounts.load(request.accountId);
    return await tryToSettle();
  });
  if (settlement.outcome === 'settled') {
    const { costNano, free } = settlement;
    requestStats.note({ ...event, isAwaited: jobAttempt === undefined, costNano, vendorCostNano });
    const { model } = request;
    deps.usageMetrics?.note({ model, usage, reasoningTokens: reasoningTokens ?? 0, costNano });
    return { receipt: { costNano, free, durationMs }, isSettled: true };
  }
  // Another attempt owns the job, or the job has ended. This attempt's result is discarded.
  if (jobAttempt !== undefined)
    return { receipt: { costNano: 0n, free: false, durationMs }, isSettled: false };
  const earlier = await findEarlierCharge(ledger, request.requestId);
  const receipt = { costNano: earlier?.costNano ?? 0n, free: earlier?.free ?? false, durationMs };
  return { receipt, isSettled: false };
}

/**
 * Maximum length in characters. Keeps a row far below MongoDB's document size limit, even if a vendor sends a long
 * message.
 */
const maxDetails = 1_000;

const shortenDetails = (text: string | null): string | null =>
  text === null ? null : shorten(text, maxDetails);

/**
 * Retries through an outage for as long as the process lives, because settling again is harmless and not settling would
 * lose the charge. Requests that retry keep occupying their concurrency slots, which limits their number, and still
 * send heartbeats, which keep their reservations. When the process exits, the sweeper releases reservations that are
 * not settled.
 */
async function settleThroughOutage(
  { redis, retryPauseMs: pauseMs }: FinishDeps,
  settle: () => Promise<Settlement>,
): Promise<Settlement> {
  return await retryThroughOutage(settle, {
    // The status is `end` once the process has closed the connection because it is shutting down.
    isOutage: (error) => isOutage(error) && redis.status !== 'end',
    ...(pauseMs !== undefined && { pauseMs }),
  });
}

/** Treats every failure of the Redis and MongoDB clients as an outage. Retrying after a bug would only repeat it. */
function isOutage(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'service_unavailable';
  const isBug = [TypeError, RangeError, SyntaxError, ReferenceError].some((kind) => error instanceof kind);
  return !isBug && isRedisUnavailable(error);
}

const maxLookUps = 10;
const lookUpPauseMs = 200;

/** Finds what an earlier settlement charged. It may not have reached MongoDB yet, so this waits for a moment. */
async function findEarlierCharge(
  ledger: LedgerStore,
  requestId: string,
): Promise<{ costNano: bigint; free: boolean } | null> {
  for (let i = 0; i < maxLookUps; i++) {
    // The charge is unknown while MongoDB is unavailable, but it is safe in the ledger stream.
    const entry = await ledger.entries.findOne({ _id: requestId }).catch(() => null);
    if (entry !== null) return { costNano: -entry.amountNano, free: entry.freeRequests < 0 };
    await new Promise((resolve) => setTimeout(resolve, lookUpPauseMs));
  }
  return null;
}
