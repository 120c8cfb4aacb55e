import type { CallOutcome, KeyCooldown } from '../../shared/routing/outcome-script.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';

/**
 * Failed calls per request. Calls that failed because of their key do not count while there are other keys to
 * try.
 */
export const maxAttempts = 3;
/** All calls per request. Failing keys are skipped, but not indefinitely. */
const maxCalls = 8;

/** Full jitter below a bound that doubles with every attempt. */
const firstBackoffMs = 100;
const longestBackoffMs = 2_000;

/** How long a key without credit or permission stays on cooldown. An operator can end it sooner. */
const faultyKeyMs = 10 * 60_000;
/**
 * The refusal may be due to what one account asked for. That account may soon try something else, and a chat
 * does not wait for the full cooldown.
 */
const faultyKeyOfAccountMs = 20_000;
/** After a 429 that names no time. */
const limitedKeyMs = 1_000;
/** A vendor that says 0 is retried, but not in a busy loop. */
const shortestLimitMs = 100;
const longestLimitMs = 60 * 60_000;

export interface CallHistory {
  /** Failed calls, including this one. */
  readonly calls: number;
  /** Those of the failed calls that count as attempts. */
  readonly attempts: number;
  readonly elapsedMs: number;
  /** No further call begins after this. It is twice the longest timeout of a call, so that one call may hang. */
  readonly budgetMs: number;
  readonly hasOutput: boolean;
  /** Whether a route or key is left that this failure says nothing about. */
  readonly hasOtherRoute: boolean;
  /** Whether to make a new call while a vendor may still be working on the previous one. */
  readonly outlastsTimeouts: boolean;
}

/**
 * Whether the request may be retried. A rejected request is never retried, nor is one that has sent output to
 * the caller, nor one that is too expensive to run twice while a vendor may still be working on it.
 */
export function mayRetry(error: UpstreamError, history: CallHistory): boolean {
  return (
    error.failure !== 'rejected' &&
    (!isOfCandidate(error) || history.hasOtherRoute) &&
    !history.hasOutput &&
    (!error.mayGoOn || history.outlastsTimeouts) &&
    history.attempts < maxAttempts &&
    history.calls < maxCalls &&
    history.elapsedMs < history.budgetMs
  );
}

/**
 * Returns how long to wait before the next call, in milliseconds. If a key is rate limited or at fault, the
 * next key is tried at once.
 * @param random in [0, 1)
 */
export function chooseBackoffMs(error: UpstreamError, attempts: number, random: number): number {
  if (isOfKey(error)) return 0;
  return random * Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.max(0, attempts - 1));
}

export function isOfKey({ failure }: UpstreamError): boolean {
  return failure === 'auth' || failure === 'rate_limited' || failure === 'too_large';
}

/** A failure that the same candidate would repeat but another one might not. */
function isOfCandidate({ failure }: UpstreamError): boolean {
  return failure === 'missing' || failure === 'too_large';
}

/**
 * Classifies what a failure says about the route's server. A rejection by the vendor counts as a response.
 * Failures caused by the request itself, and requests that we refused to send, say nothing about the server.
 */
export function classifyFailure({ failure, status, isOfRequest }: UpstreamError): CallOutcome {
  if (isOfRequest) return 'none';
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

/**
 * Returns the key's cooldown after a failure, or null if there is none. A 403 or a rate limit often applies to
 * one model, and may depend on the request: a word, an option, a size. The same holds for a 402 from vendors
 * that require a balance as high as the response may cost.
 */
export function findCooldown({
  failure,
  status,
  retryAfterMs,
  vendorCode,
}: UpstreamError): KeyCooldown | null {
  switch (failure) {
    case 'auth':
      return {
        scope: status === 402 || status === 403 ? 'keyOnRoute' : 'key',
        forMs: faultyKeyMs,
        forAccountMs: faultyKeyOfAccountMs,
        reason: `refused with ${status ?? 'an error'}${vendorCode === null ? '' : ` (${vendorCode})`}`,
      };
    case 'rate_limited':
      return {
        scope: 'keyOnRoute',
        forMs: Math.min(longestLimitMs, Math.max(shortestLimitMs, retryAfterMs ?? limitedKeyMs)),
        reason: 'over its limit',
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
