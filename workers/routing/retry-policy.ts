import type { CallOutcome, KeyCooldown } from './outcome-script.ts';
import { refusalReason } from '../../shared/routing/cooldowns.ts';
import { computeBackoffMs } from '../outbound/backoff.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';

/**
 * Maximum number of failed calls per request. Calls that failed because of their key do not count while there are other
 * keys to try.
 */
export const maxAttempts = 3;
/** Maximum number of all calls per request, so that failing keys are not skipped indefinitely. */
const maxCalls = 8;

/** The upper bound of the pause between two calls: with full jitter, any shorter one is as likely. */
const backoff = { firstMs: 100, maxMs: 2_000 };

/** The cooldown of a key without credit or permission. An operator can end it early. */
const faultyKeyCooldownMs = 10 * 60_000;
/**
 * The cooldown of such a key for the account whose call was rejected. It is shorter, because the account's request may
 * be the reason, the account may soon try something else, and a chat cannot wait for the full cooldown.
 */
const faultyKeyAccountCooldownMs = 20_000;
/** The cooldown after a 429 without a retry time. */
const defaultRateLimitMs = 1_000;
/** Minimum cooldown after a 429. Prevents a busy loop if a vendor returns a retry time of 0. */
const minRateLimitMs = 100;
const maxRateLimitMs = 60 * 60_000;

export interface CallHistory {
  /** Failed calls, including this one. */
  readonly calls: number;
  /** Failed calls, without those that failed because of their key while there were other keys to try. */
  readonly attempts: number;
  readonly elapsedMs: number;
  /** No further call starts after this. It is twice the longest timeout of a call, so that one call may hang. */
  readonly budgetMs: number;
  readonly hasOutput: boolean;
  /** Whether there is another route or key to which this failure does not apply. */
  readonly hasOtherRoute: boolean;
  /** Whether to make a new call while a vendor may still be working on the previous one. */
  readonly retriesTimeouts: boolean;
  /** Whether the caller splits the call after this failure. */
  readonly isSplit: boolean;
  /** For how long the caller can still get the failure with its own status. Negative if that is over. */
  readonly statusLeftMs: number;
}

/**
 * Whether the request may be retried. A rejected request is never retried, nor is one whose caller has received output,
 * nor one that is too expensive to run twice while a vendor may still be working on it.
 */
export function mayRetry(error: UpstreamError, history: CallHistory): boolean {
  return (
    error.failure !== 'rejected' &&
    (!(history.isSplit || isCandidateFailure(error)) || history.hasOtherRoute) &&
    !history.hasOutput &&
    !isWaitInVain(error, history) &&
    (!error.mayStillRun || history.retriesTimeouts) &&
    history.attempts < maxAttempts &&
    history.calls < maxCalls &&
    history.elapsedMs < history.budgetMs
  );
}

/**
 * Whether waiting for the only key that is left would cost the caller the status of the error, on which clients retry,
 * without much hope that the wait helps.
 */
function isWaitInVain(error: UpstreamError, { hasOtherRoute, attempts, statusLeftMs }: CallHistory): boolean {
  if (error.failure !== 'rate_limited' || hasOtherRoute || statusLeftMs <= 0) return false;
  const isHopeful = error.retryAfterMs !== null && attempts <= 1;
  return !isHopeful && chooseRateLimitMs(error) >= statusLeftMs;
}

/**
 * Returns how long to wait before the next call, in milliseconds. If the failure is due to the key, the next key is
 * tried immediately.
 * @param random in [0, 1)
 */
export function chooseBackoffMs(error: UpstreamError, attempts: number, random: number): number {
  if (isKeyFailure(error)) return 0;
  return random * computeBackoffMs(attempts, backoff);
}

export function isKeyFailure({ failure }: UpstreamError): boolean {
  return failure === 'auth' || failure === 'rate_limited' || failure === 'too_large';
}

/**
 * Whether the server got the call and failed: with a 5xx, by closing the connection, or with a response that is none. One
 * of several requests in the call may be the reason.
 */
export function isServerError({ failure, status, isUnreached }: UpstreamError): boolean {
  return failure === 'unavailable' && (status === null ? !isUnreached : status >= 500);
}

/** Whether the same candidate would fail again while another one might not. */
function isCandidateFailure({ failure }: UpstreamError): boolean {
  return failure === 'missing' || failure === 'too_large';
}

/**
 * Classifies a failure by what it means for the health of the route's server. A rejection by the vendor is classified
 * as success, because the server responded. Failures caused by the request itself, and requests that we did not send,
 * say nothing about the server.
 */
export function classifyFailure({ failure, status, isRequestFailure }: UpstreamError): CallOutcome {
  if (isRequestFailure) return 'none';
  switch (failure) {
    case 'rejected':
      return status === null ? 'none' : 'ok';
    case 'missing':
    case 'too_large':
    case 'auth':
      return 'none';
    case 'rate_limited':
      return 'limited';
    case 'unavailable':
    case 'timeout':
      return 'bad';
    default:
      return failure satisfies never;
  }
}

/** How long to wait after a 429. */
export const chooseRateLimitMs = ({ retryAfterMs }: UpstreamError): number =>
  Math.min(maxRateLimitMs, Math.max(minRateLimitMs, retryAfterMs ?? defaultRateLimitMs));

/**
 * Returns the key's cooldown after a failure, or null if there is none. A 403 or a rate limit often applies to one
 * model only, and may depend on the request: a word, an option, a size. The same is true of a 402 from vendors that
 * require a balance that covers the maximum cost of the response.
 */
export function findCooldown(error: UpstreamError): KeyCooldown | null {
  const { failure, status, vendorCode } = error;
  switch (failure) {
    case 'auth':
      return {
        failure,
        scope: status === 402 || status === 403 ? 'keyOnRoute' : 'key',
        forMs: faultyKeyCooldownMs,
        forAccountMs: faultyKeyAccountCooldownMs,
        reason: refusalReason(status, vendorCode),
      };
    case 'rate_limited':
      return {
        failure,
        scope: 'keyOnRoute',
        forMs: chooseRateLimitMs(error),
        reason: 'rate limit reached',
      };
    case 'rejected':
    case 'missing':
    case 'too_large':
    case 'unavailable':
    case 'timeout':
      return null;
    default:
      return failure satisfies never;
  }
}
