import type { IncomingHttpHeaders } from 'node:http';
import type { AppError } from '../../../shared/contract/errors.ts';
import { servedMethods } from './served-methods.ts';

export const hasIdempotencyKey = (headers: IncomingHttpHeaders): boolean =>
  headers['idempotency-key'] !== undefined;

/** The challenge for callers that sent a key. For callers without a key, RFC 6750 (section 3) forbids the `error`. */
const challenge = 'Bearer realm="model-gateway", error="invalid_token"';

/** The headers of an error response, except those that depend on its body or its request. */
export function errorHeaders(error: AppError, hasKey = false): Record<string, string> {
  const { code, kind, status, headers, param, possiblyChargedId } = error;
  const { retry, retryAfterSeconds } = kind;
  return {
    // Caches may store statuses such as 404 by default, but this response contains the id of one request.
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(code === 'invalid_api_key' && param === null ? { 'www-authenticate': challenge } : {}),
    ...(status === 501 ? { allow: servedMethods.join(', ') } : {}),
    // OpenAI's clients send a request again after a 409 or a 5xx, unless this header says otherwise.
    ...((!retry && status === 409) || (possiblyChargedId !== null && !hasKey)
      ? { 'x-should-retry': 'false' }
      : {}),
    ...headers,
  };
}
