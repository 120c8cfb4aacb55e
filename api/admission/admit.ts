// decision 0066
import {
  runAdmission,
  type AdmissionResult,
  type AdmissionRequest,
} from '../../shared/money/admit-script.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import {
  createIdempotencyClaim,
  createLargeIdempotencyClaim,
  type IdempotencyClaim,
} from '../../shared/money/idempotency-claim.ts';
import { maxStoredBytesPerAccount } from '../../shared/money/stored-bytes.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { replyCode } from '../../shared/platform/redis/reply-code.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import type { ApiContext } from '../http/request/context.ts';
import { modelRequestOptionsOf } from '../http/request/model-request-options.ts';
import { holderOf, type AccountHolder } from '../http/request/holder.ts';
import { confirmHolder } from '../http/request/session-holder.ts';
import { readIdempotencyKey } from '../http/request/idempotency-key.ts';
import type { Services } from '../services.ts';
import { budgetExceeded, describeRestrictions, modelNotAllowed } from './restriction-errors.ts';
import { runForAccount, describeRateLimit, toAccountError } from './run-for-account.ts';
import { addressDigits } from '../http/callers/address-digits.ts';
import type { Estimate } from '../../shared/money/estimate.ts';
import type { Placement } from '../requests/dispatch/placement.ts';

/** A complete stored response is moved out of Redis within seconds, unless the object store is down. */
const storedBytesRetryAfterSeconds = 10;

/** Default time that a request may wait before its work starts. */
const queueDeadlineMs = 10 * 60_000;
const jobDeadlineMs = 24 * 60 * 60_000;

export interface Admitted<P extends Placement = Placement> {
  readonly outcome: 'ok';
  readonly requestId: string;
  readonly request: AdmittedRequest;
  readonly units: number;
  /** The placement if the request was pushed in the same step; null if it must be dispatched. */
  readonly placed: P | null;
}

/**
 * The result of admission if the same request was sent before with the same Idempotency-Key: the response of that
 * request is sent again.
 */
export interface Attached {
  readonly outcome: 'attached';
  readonly requestId: string;
  readonly accountId: string;
}

/**
 * Admits a request: checks the limits of its account and reserves money for it, in one round trip to Redis. Sets the
 * rate limit headers if Redis replies. If the response is a replay, the request id header is set to the id of the
 * original request.
 * @param place returns the request's placement, on the assumption that it is admitted with all units that it asks for.
 * Admission then pushes it in the same script, which saves the round trip of dispatching it afterwards. Null if it can
 * only be dispatched after admission
 * @throws AppError if the request is not admitted
 */
export async function admit<P extends Placement>(
  services: Services,
  context: ApiContext,
  estimate: Estimate,
  place: (request: AdmittedRequest) => P | null = () => null,
): Promise<Admitted<P> | Attached> {
  const { requestId, preAdmission, span } = context.state;
  const holder = holderOf(context);
  const { accountId, keyHash } = holder;
  const { model, promptTokens, user } = estimate;
  context.state.model = model.id;
  const { respondsAsync, timeoutMs, isResumable } = modelRequestOptionsOf(context);
  const claim = await createClaim(context, accountId);
  await confirmHolder(services, holder);
  // The client may have disconnected while the request was read, tokenized and hashed.
  context.state.signal.throwIfAborted();
  const timesAt = (nowMs: number) => ({
    admittedAtMs: nowMs,
    deadlineAtMs: nowMs + (timeoutMs ?? (respondsAsync ? jobDeadlineMs : queueDeadlineMs)),
  });
  const request: AdmittedRequest = {
    requestId,
    accountId,
    model: model.id,
    pricing: model.pricing,
    priceVersion: model.priceVersion,
    ...timesAt(Date.now()),
    userIp: context.ip,
    promptTokens,
    user,
    claimHash: claim?.keyHash ?? null,
    ...(isResumable && { isResumable }),
    ...(!respondsAsync && { wantsFacts: true }),
    ...(span !== undefined && { trace: span.traceparent }),
  };
  const admission: AdmissionRequest = {
    requestId,
    accountId,
    keyHash,
    slots: model.rpmCoefficient,
    slotsTaken: preAdmission?.slotsTaken ?? 0,
    fixedNano: estimate.fixedNano,
    nanoPerUnit: estimate.nanoPerUnit,
    requestedUnits: estimate.requestedUnits,
    minUnits: estimate.minUnits,
    sharePermille: estimate.sharePermille,
    freeAllowed: model.pricing.free_requests,
    claim,
    isResumable,
    address: addressDigits(context.ip),
    // Lines of batches are checked when they run, and count no tokens.
    ...(estimate.isBatch !== true && { model: model.id, promptTokens }),
  };
  let placement = claim !== null || isResumable || respondsAsync ? null : place(request);
  if (!respondsAsync)
    services.facts.expect(requestId, (facts) => {
      context.state.facts = facts;
    });
  let isUncertain = false;
  const result = await runForAccount(services, holder, async () => {
    const current = placement;
    // An account that is not in Redis is admitted once it has been loaded, which may take seconds. Its request is pushed
    // after that.
    placement = null;
    return await runWithPlacement(services.redis, admission, current, () => {
      isUncertain = true;
    });
  }).catch((error: unknown) => {
    services.facts.forget(requestId);
    throw isUncertain ? toAppError(error).asPossiblyCharged(requestId) : error;
  });
  if ('rateLimit' in result) context.set(describeRateLimit(result.rateLimit));
  if ('budget' in result && 'tokens' in result) context.set(describeRestrictions(result));
  if (result.outcome !== 'ok') services.facts.forget(requestId);
  if (result.outcome === 'attached') {
    context.state.isReplay = true;
    context.set({ 'x-request-id': result.requestId, 'idempotent-replayed': 'true' });
    return { ...result, accountId };
  }
  noteFunds(services, holder, result.outcome, estimate.fixedNano > 0n || estimate.nanoPerUnit > 0n);
  if (result.outcome !== 'ok') throw await toAdmissionError(services, context, result, model.id);
  const { outcome, units, placed } = result;
  // A request that is pushed later waits from now on.
  const admitted = placed === null ? { ...request, ...timesAt(Date.now()) } : request;
  return { outcome, requestId, request: admitted, units, placed };
}

const lacksFunds: ReadonlySet<AdmissionResult['outcome']> = new Set([
  'insufficient',
  'banned',
  'revoked',
  'unknown',
]);

/**
 * An admission that reserves money shows that the account has some. After a rejection, the account is read again when it
 * matters.
 */
function noteFunds(
  { funded }: Services,
  holder: AccountHolder,
  outcome: AdmissionResult['outcome'],
  costs: boolean,
): void {
  if (outcome === 'ok') {
    if (costs && !funded.has(holder)) funded.note(holder);
  } else if (lacksFunds.has(outcome)) funded.forget(holder);
}

/**
 * Runs the admission, which also pushes the request if it has a placement. Ends the placement.
 * @param onUncertain called if a worker may have taken the request before it was withdrawn
 */
async function runWithPlacement<P extends Placement>(
  redis: RedisClient,
  admission: AdmissionRequest,
  placement: P | null,
  onUncertain: () => void,
) {
  if (placement === null) return { ...(await runAdmission(redis, admission)), placed: null };
  try {
    const reply = await runAdmission(redis, admission, placement.push);
    if (reply.outcome === 'ok' && reply.ticket !== null) {
      placement.confirm(reply.ticket);
      return { ...reply, placed: placement };
    }
    placement.withdraw();
    return { ...reply, placed: null };
  } catch (error) {
    // The push is the last step of the script. After an error, it has not been reached.
    if (replyCode(error) !== null) {
      placement.withdraw();
      throw error;
    }
    if (await placement.confirmIfAccepted())
      return { outcome: 'ok', units: admission.requestedUnits, placed: placement } as const;
    onUncertain();
    throw error;
  }
}

/** Returns null if the caller sent no Idempotency-Key. */
async function createClaim(context: ApiContext, accountId: string): Promise<IdempotencyClaim | null> {
  const key = readIdempotencyKey(context);
  const { preAdmission, body } = context.state;
  if (key === null) return null;
  const isLarge = preAdmission !== undefined;
  return isLarge
    ? await createLargeIdempotencyClaim(key, context.path, body, accountId)
    : createIdempotencyClaim(key, context.path, body);
}

type AdmissionFailure = Exclude<AdmissionResult, { outcome: 'ok' | 'attached' }>;

async function toAdmissionError(
  services: Services,
  context: ApiContext,
  result: AdmissionFailure,
  model: string,
): Promise<AppError> {
  switch (result.outcome) {
    case 'conflict':
      return new AppError('idempotency_conflict');
    case 'ledger_full':
      return new AppError('service_unavailable', { message: 'the ledger stream is at its bound' });
    case 'stored_too_much':
      return new AppError('too_many_jobs', {
        message:
          `This account has reached the limit of ${maxStoredBytesPerAccount / 1_000_000} MB for responses stored under an ` +
          'Idempotency-Key. Send the request without the header, or try again later: space is freed when large responses ' +
          'move to the object store, and within 24 hours in any case.',
        headers: { 'retry-after': String(storedBytesRetryAfterSeconds) },
      });
    case 'insufficient':
      return new AppError('insufficient_balance', {
        message:
          `This request may cost up to ${formatRub(result.neededNano)} RUB; ` +
          `${formatRub(result.spendableNano)} RUB of the balance is available. Refill the balance, or send a smaller request.`,
      });
    case 'over_budget':
      return budgetExceeded(result.budget, result.neededNano);
    case 'model_refused':
      return modelNotAllowed(model);
    default:
      return await toAccountError(services, holderOf(context), result, context.ip);
  }
}
