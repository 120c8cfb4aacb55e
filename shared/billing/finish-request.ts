import type { ErrorCode } from '../contract/error-kinds.ts';
import { AppError, errorKind, toAppError } from '../contract/errors.ts';
import { shorten } from '../runtime/shorten.ts';
import type { PriceStore } from '../ledger/price-store.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import type { UsageEvent } from '../ledger/usage-event.ts';
import { computeCost, type Usage } from '../pricing/cost.ts';
import type { AdmittedRequest } from '../queue/job-kinds.ts';
import { isRedisAway, type RedisClient } from '../redis/redis-client.ts';
import { throughOutage } from '../redis/through-outage.ts';
import type { HotAccountStore } from './hot-account-store.ts';
import type { TrafficRecorder } from '../traffic/traffic-recorder.ts';
import { releaseReservation, runSettlement, type Settlement } from './settle-script.ts';

export interface RequestOutcome {
  readonly usage: Usage;
  /** The vendor reported nothing: the counts are ours. */
  readonly counted: boolean;
  /** Null on success. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  /** What the row of a success tells beside it: that the answer holds less than was asked for. */
  readonly note?: string | null;
  /** Whether the caller pays for the usage: on success, and for what was generated before a stream broke. */
  readonly charged: boolean;
  /** Whether a model was asked at all; a request that reached none is released, and no row tells of it. */
  readonly reachedModel: boolean;
}

/** What the caller is told of the price. */
export interface Receipt {
  readonly costNano: bigint;
  readonly free: boolean;
  readonly durationMs: number;
}

export interface FinishDependencies {
  readonly redis: RedisClient;
  readonly ledger: LedgerStore;
  readonly hotAccounts: HotAccountStore;
  readonly traffic: TrafficRecorder;
  readonly prices: Pick<PriceStore, 'note'>;
  /** Between two tries of a settlement; half a second unless given. */
  readonly retryPauseMs?: number;
}

/** What is left to do of an answer that was kept, once its job is settled. */
export type AfterSettlement = () => void;

/** Hands the caller its answer, with what it costs. Of a durable job it keeps the answer. */
export type Deliver = (receipt: Receipt) => Promise<AfterSettlement | void>;

/**
 * Ends a request: usage becomes the exact cost, the cost one settlement, and then the caller has its answer. Every request
 * that a worker took ends here, however it went. Where another run of the same request settled it before, the receipt is
 * that settlement's.
 *
 * The answer of a durable job is kept first, and the settlement ends the job: it is charged if and only if it has succeeded
 * with an answer that can be had. Where the answer cannot be kept, `deliver` rejects, and the job fails free of charge.
 * @param deliver not called for a failure
 */
export async function finishRequest(
  dependencies: FinishDependencies,
  request: AdmittedRequest,
  outcome: RequestOutcome,
  deliver: Deliver,
): Promise<void> {
  const isDurable = request.jobAttempt !== undefined;
  if (outcome.error !== null) {
    await settleRequest(dependencies, request, outcome);
    return;
  }
  if (!isDurable) {
    await deliver(await settleRequest(dependencies, request, outcome));
    return;
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
    await settleRequest(dependencies, request, { ...outcome, error: { code, message }, charged: false });
    return;
  }
  if ((await settle(dependencies, request, outcome)).isSettled) afterSettlement?.();
}

/** Ends a request that is answered otherwise, or not at all. */
export async function settleRequest(
  dependencies: FinishDependencies,
  request: AdmittedRequest,
  outcome: RequestOutcome,
): Promise<Receipt> {
  return (await settle(dependencies, request, outcome)).receipt;
}

interface SettledRequest {
  readonly receipt: Receipt;
  /** False where it had ended before, or is another attempt's. */
  readonly isSettled: boolean;
}

async function settle(
  dependencies: FinishDependencies,
  request: AdmittedRequest,
  outcome: RequestOutcome,
): Promise<SettledRequest> {
  const { redis, ledger, hotAccounts, traffic, prices } = dependencies;
  const { usage, error, charged } = outcome;
  const durationMs = Date.now() - request.admittedAtMs;
  if (!outcome.reachedModel) {
    await insistOnSettling(dependencies, () => releaseReservation(redis, request, error));
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
    counted: outcome.counted,
    images: usage.images,
    imageQuality: usage.imageQuality,
    imageSize: usage.imageSize,
    characters: usage.characters,
    billedMs: usage.durationMs,
    priceVersion: request.priceVersion,
    user: request.user,
  };
  prices.note({ id: request.model, priceVersion: request.priceVersion, pricing: request.pricing });
  const { claimHash, jobAttempt } = request;
  const costNano = charged ? computeCost(request.pricing, usage) : null;
  const settlement = await insistOnSettling(dependencies, async () => {
    const run = (): Promise<Settlement> =>
      runSettlement(redis, event, costNano, { claimHash, jobAttempt, error });
    const first = await run();
    if (first.outcome !== 'unknown') return first;
    await hotAccounts.load(request.accountId);
    return await run();
  });
  if (settlement.outcome === 'settled') {
    traffic.note(event);
    const { costNano, free } = settlement;
    return { receipt: { costNano, free, durationMs }, isSettled: true };
  }
  // Another attempt has the job now, or it has ended: nobody is told of this one.
  if (jobAttempt !== undefined)
    return { receipt: { costNano: 0n, free: false, durationMs }, isSettled: false };
  const earlier = await findEarlierCharge(ledger, request.requestId);
  const receipt = { costNano: earlier?.costNano ?? 0n, free: earlier?.free ?? false, durationMs };
  return { receipt, isSettled: false };
}

/** A row must stay far below what MongoDB takes as one document, whatever a vendor says. */
const maxDetails = 1_000;

const shortenDetails = (text: string | null): string | null =>
  text === null ? null : shorten(text, maxDetails);

/**
 * Settling again is harmless, and not settling would lose the charge: an outage is waited for as long as the process
 * lives. Those that wait keep their places among the requests that run at once, which bounds them, and are told of as
 * in hand, which keeps their reservations. What a process leaves unsettled when it ends is the sweeper's to release.
 */
async function insistOnSettling(
  { redis, retryPauseMs: pauseMs }: FinishDependencies,
  settle: () => Promise<Settlement>,
): Promise<Settlement> {
  return await throughOutage(settle, {
    // A connection that has ended is one that the process has closed: it stops.
    isOutage: (error) => isOutage(error) && redis.status !== 'end',
    ...(pauseMs !== undefined && { pauseMs }),
  });
}

/** Whatever the clients of Redis and MongoDB fail with; mistakes of ours would only repeat themselves. */
function isOutage(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'service_unavailable';
  const isMistake = [TypeError, RangeError, SyntaxError, ReferenceError].some(
    (kind) => error instanceof kind,
  );
  return !isMistake && isRedisAway(error);
}

const lookUps = 10;
const lookUpPauseMs = 200;

/** An earlier settlement may still be on its way to MongoDB; it is worth a moment, since it says what was paid. */
async function findEarlierCharge(
  ledger: LedgerStore,
  requestId: string,
): Promise<{ costNano: bigint; free: boolean } | null> {
  for (let i = 0; i < lookUps; i++) {
    // While MongoDB is away nobody can say; the charge itself is safe on its stream.
    const entry = await ledger.entries.findOne({ _id: requestId }).catch(() => null);
    if (entry !== null) return { costNano: -entry.amountNano, free: entry.freeRequests < 0 };
    await new Promise((resolve) => setTimeout(resolve, lookUpPauseMs));
  }
  return null;
}
