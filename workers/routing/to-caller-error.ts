import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError, retryAfter } from '../../shared/contract/errors.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';
import { chooseRateLimitMs } from './retry-policy.ts';
import type { RouteLimiter } from './route-limiter.ts';

const contextWords =
  /context[_ ](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens/i;

/** Whether the vendor rejected a request for its length. Clients look for the code of that to choose a larger model. */
const isBeyondContext = ({ vendorCode, message }: UpstreamError): boolean =>
  vendorCode === 'context_length_exceeded' || contextWords.test(message);

/** litellm recognizes the error by these words of OpenAI's, not by its code. */
const describeContext = (message: string): string =>
  /this model's maximum context length is/i.test(message)
    ? message
    : `This model's maximum context length is exceeded: ${message}`;

/**
 * Maps a vendor's failure to the error for the caller. The vendor's message is passed on only if it rejected
 * the caller's request.
 */
export function toCallerError(error: UpstreamError): AppError {
  switch (error.failure) {
    case 'rejected':
      return isBeyondContext(error)
        ? new AppError('context_length_exceeded', { message: describeContext(error.message), cause: error })
        : new AppError('upstream_rejected', { message: error.message, cause: error });
    case 'missing':
      // The vendor does not know the path or the model of the catalog.
      return new AppError('upstream_error', { cause: error });
    case 'too_large':
      // The vendor's message contains the operator's account.
      return new AppError('upstream_rejected', {
        message:
          'The request has more tokens than the vendors of this model accept per minute. Send fewer tokens at once.',
        cause: error,
      });
    case 'timeout':
      return new AppError('upstream_timeout', { cause: error });
    case 'rate_limited':
      return new AppError('upstream_error', {
        message: 'The vendors of this model have reached their rate limits. Try again shortly.',
        headers: retryAfter(chooseRateLimitMs(error)),
        cause: error,
      });
    case 'auth':
    case 'unavailable':
      return new AppError('upstream_error', { cause: error });
    default:
      return error.failure satisfies never;
  }
}

/** Returns the error of a request for which no vendor was called. The log says why. */
export const noCandidate = async (
  limiter: Pick<RouteLimiter, 'explainPause'>,
  routes: readonly CatalogRoute[],
): Promise<AppError> =>
  new AppError('upstream_error', {
    message: 'This model is currently unavailable. Try again shortly, or choose another model.',
    reason: (await limiter.explainPause(routes)) ?? undefined,
  });
