import createCors from '@koa/cors';
import { responseHeaders } from '../../shared/contract/openapi/headers.ts';
import type { CorsOrigins } from '../../shared/runtime/cors-origins.ts';
import type { ApiMiddleware } from './request-context.ts';
import { servedMethods } from '../present/served-methods.ts';

/** Of what answers carry beside the headers of the description, what a client of the API may want to read. */
const furtherHeaders = ['allow'];

/** Browsers ask again after two hours at the latest, some sooner. */
const maxAgeSeconds = 7_200;

/** Pages are never shown cookies. */
const exposeHeaders = [...Object.keys(responseHeaders), ...furtherHeaders]
  .filter((name) => name !== 'set-cookie')
  .join(',');

const findAllowed = (origins: CorsOrigins, origin: string): string =>
  origins === '*' ? '*' : origins.has(origin) ? origin : '';

/** What `cors` adds to an answer, for those that no step has a part in; nothing where no pages may call. */
export function corsHeaders(origins: CorsOrigins | null, origin: string): Record<string, string> {
  if (origins === null) return {};
  const allowed = findAllowed(origins, origin);
  if (allowed === '') return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': allowed,
    'access-control-expose-headers': exposeHeaders,
  };
}

/**
 * Lets pages of these origins call the API, and answers what browsers ask before they do (preflights). Whatever header a
 * page wants to send is allowed: official clients send many, and new ones with each version. Node bounds their length.
 * Credentials of the browser, such as cookies, are never allowed: pages of other origins have an API key, or nothing.
 */
export function cors(origins: CorsOrigins): ApiMiddleware {
  return createCors({
    origin: origins === '*' ? '*' : ({ headers: { origin = '' } }) => findAllowed(origins, origin),
    exposeHeaders,
    allowMethods: [...servedMethods],
    maxAge: maxAgeSeconds,
    credentials: false,
    // Headers of answers are set before anything can fail, and errors are rendered behind this: none reaches it.
    keepHeadersOnError: false,
  });
}
