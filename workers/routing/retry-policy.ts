import type { RouteVerdict, SetAside } from '../../shared/routing/outcome-script.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';

/** Calls for one request that may fail, but for those that failed by their key while there were others to try. */
export const maxAttempts = 3;
/** All calls for one request: keys that turn out to be at fault are tried past, but not without end. */
const maxCalls = 8;

/** Full jitter below a bound that doubles. */
const firstBackoffMs = 100;
const longestBackoffMs = 2_000;

/** A key out of money or forbidden is looked at again so often; an operator can have it looked at sooner. */
const faultyKeyMs = 10 * 60_000;
/** Where it may be what one account asked that it is refused for, that account is soon let try something else, and a chat does not wait for it. */
const faultyKeyOfAccountMs = 20_000;
/** After a 429 that names no time. */
const limitedKeyMs = 1_000;
/** Whoever says 0 is asked again, and not in a circle. */
const shortestLimitMs = 100;
const longestLimitMs = 60 * 60_000;

export interface CallHistory {
  /** Failed calls, this one included. */
  readonly calls: number;
  /** Those of them that count as tries. */
  readonly attempts: number;
  readonly elapsedMs: number;
  /** After so long no further call begins: twice the longest that one call may take, so that one may hang. */
  readonly budgetMs: number;
  readonly hasOutput: boolean;
  /** Whether a route or key is left that this one's failure says nothing of. */
  readonly hasOtherRoute: boolean;
  /** Whether a vendor may be asked while another, or the same, may still be at it. */
  readonly outlastsTimeouts: boolean;
}

/**
 * Whether the request may be sent once more: never what was refused, never once anything went out to the caller, and not
 * while a vendor may go on with what is too dear to be made twice.
 */
export function mayRetry(error: UpstreamError, history: CallHistory): boolean {
  return (
    error.failure !== 'rejected' &&
    (!isOfWay(error) || history.hasOtherRoute) &&
    !history.hasOutput &&
    (!error.mayGoOn || history.outlastsTimeouts) &&
    history.attempts < maxAttempts &&
    history.calls < maxCalls &&
    history.elapsedMs < history.budgetMs
  );
}

/**
 * How long to wait before the next call. Another key than one at its limit or at fault is tried at once.
 * @param random in [0, 1)
 */
export function chooseBackoffMs(error: UpstreamError, attempts: number, random: number): number {
  if (isOfKey(error)) return 0;
  return random * Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.max(0, attempts - 1));
}

export function isOfKey({ failure }: UpstreamError): boolean {
  return failure === 'auth' || failure === 'rate_limited' || failure === 'too_large';
}

/** A failure that the same way has again, and another perhaps not. */
function isOfWay({ failure }: UpstreamError): boolean {
  return failure === 'missing' || failure === 'too_large';
}

/**
 * What a failure says of the route's server: a vendor's refusal of the request is an answer like another. What the request
 * itself brought about, and what we refused to send, say nothing.
 */
export function judgeFailure({ failure, status, isOfRequest }: UpstreamError): RouteVerdict {
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
 * For how long a failure takes its key out of use. A 403 and a limit are often of one model alone, and perhaps of what was
 * asked: a word, an option, a size. So is a 402 of vendors that ask for as much money as the answer may cost.
 */
export function findSetAside({ failure, status, retryAfterMs, vendorCode }: UpstreamError): SetAside | null {
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
