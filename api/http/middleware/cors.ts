import createCors from '@koa/cors';
import type { CorsOrigins } from '../../../shared/platform/config/cors-origins.ts';
import { responseHeaders } from '../../description/headers.ts';
import { servedMethods } from '../responses/served-methods.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Response headers outside the API description that a client may need. */
const additionalHeaders = ['allow'];

/** Browsers repeat the preflight after at most two hours; some do so sooner. */
const maxAgeSeconds = 7_200;

/** Response headers that pages may read. Browsers never let pages read `Set-Cookie`. */
const exposeHeaders = [...Object.keys(responseHeaders), ...additionalHeaders]
  .filter((name) => name !== 'set-cookie')
  .join(',');

const findAllowedOrigin = (origins: CorsOrigins, origin: string): string =>
  origins === '*' ? '*' : origins.has(origin) ? origin : '';

/** The headers that `cors` adds, for responses that bypass the middleware. Empty if no origins are allowed. */
export function corsHeaders(origins: CorsOrigins | null, origin: string): Record<string, string> {
  if (origins === null) return {};
  const allowed = findAllowedOrigin(origins, origin);
  if (allowed === '') return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': allowed,
    'access-control-expose-headers': exposeHeaders,
  };
}

/**
 * Lets pages of these origins call the API, and responds to preflights. All request headers are allowed: official
 * clients send many, and add new ones with each version. Node limits their total length. Browser credentials such as
 * cookies are never allowed: pages of other origins use an API key or nothing.
 */
export function cors(origins: CorsOrigins): ApiMiddleware {
  return createCors({
    origin: origins === '*' ? '*' : ({ headers: { origin = '' } }) => findAllowedOrigin(origins, origin),
    exposeHeaders,
    allowMethods: [...servedMethods],
    maxAge: maxAgeSeconds,
    credentials: false,
    // The headers are set before anything can fail, and errors are rendered downstream, so none reaches this
    // middleware.
    keepHeadersOnError: false,
  });
}
