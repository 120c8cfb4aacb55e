// decisions 0039, 0040
import type { IncomingMessage } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { closeHeaders, malformed, unknownVersion } from '../connections/http-errors.ts';
import { checkOverLimit } from '../connections/over-limit-requests.ts';
import { servedMethods } from '../responses/served-methods.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';

/** No client sends this many, even through proxies. */
const maxHeaderLines = 1_000;

/** Checks every request before routing: connection limit and the rules of RFC 9112. */
export const checkHead: ApiMiddleware = async (context, next) => {
  checkOverLimit(context.req);
  checkHeaders(context.req);
  if (context.originalUrl === '*') respondForServer(context);
  else await next();
};

function checkHeaders(request: IncomingMessage): void {
  const { rawHeaders, headers, httpVersionMajor, httpVersionMinor } = request;
  if (rawHeaders.length > maxHeaderLines * 2) {
    throw new AppError('payload_too_large', {
      status: 431,
      message: `The request has more than ${maxHeaderLines} header lines. Send fewer headers.`,
      headers: closeHeaders,
    });
  }
  if (httpVersionMajor !== 1) throw unknownVersion();
  const hosts = countHosts(rawHeaders);
  const isHttp10 = httpVersionMinor === 0;
  if (hosts === 0 && !isHttp10)
    throw malformed('The request has no Host header. Send one with the name of this server.');
  if (hosts > 1) throw malformed('The request has more than one Host header. Send one.');
  if (headers.host !== undefined && !hostPattern.test(headers.host)) {
    throw malformed(
      `The Host header, ${shorten(headers.host)}, is not a valid host. Send the name or address of this server.`,
    );
  }
  if (!isHttp10 && headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    const expected = shorten(headers.expect);
    throw malformed(
      `The expectation ${expected} is not supported. Send "Expect: 100-continue", or no Expect header.`,
      417,
    );
  }
}

/** Characters of a host and port (RFC 3986, 3.2.2). May be empty. */
const hostPattern = /^[a-z0-9\-._~%!$&'()*+,;=:[\]]*$/i;

function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** Responds to an asterisk target, which is only valid for OPTIONS of the server itself. */
function respondForServer(context: ApiContext): void {
  if (context.method !== 'OPTIONS') {
    throw malformed(`${context.method} requires a path that begins with a slash, such as /v1/models.`);
  }
  context.status = 204;
  context.set('allow', servedMethods.join(', '));
}
