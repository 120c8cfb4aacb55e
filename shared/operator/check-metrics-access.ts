import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { AppError } from '../contract/errors.ts';
import type { Config } from '../platform/config/config.ts';
import { isLoopbackAddress, isLoopbackHost } from '../platform/runtime/address-class.ts';

/** Headers that proxies add. A request with one of them comes from another machine, whatever address connects. */
const proxyHeaders = ['x-forwarded-for', 'forwarded', 'via'] as const;

/** Longer ones are not compared. */
const maxHeaderLength = 4_096;

/**
 * Decides who may read the metrics of a process: whoever has the token. If none is set, those who connect from the same
 * machine without a proxy.
 * @throws AppError `invalid_api_key`, `forbidden`
 */
export function checkMetricsAccess(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  { metricsToken, trustProxy }: Pick<Config, 'metricsToken' | 'trustProxy'>,
): void {
  if (metricsToken !== null) {
    if (isToken(headers.authorization ?? '', metricsToken)) return;
    throw new AppError('invalid_api_key', {
      message: 'The metrics token is missing or wrong. Send it as "Authorization: Bearer <METRICS_TOKEN>".',
      headers: { 'www-authenticate': 'Bearer realm="metrics"' },
    });
  }
  const isProxied = trustProxy || proxyHeaders.some((name) => headers[name] !== undefined);
  // A page of another site can connect to this machine under a name of its own.
  const host = (headers.host ?? '').replace(/:\d*$/, '');
  if (!isProxied && isLoopbackHost(host) && isLoopbackAddress(socket.remoteAddress ?? '')) return;
  throw new AppError('forbidden', {
    message:
      'Without a METRICS_TOKEN, only connections of the same machine may read the metrics. Set METRICS_TOKEN, and send it as "Authorization: Bearer <METRICS_TOKEN>".',
  });
}

/** Compares digests, so that the time does not depend on how much of the token is right. */
function isToken(authorization: string, token: string): boolean {
  if (authorization.length > maxHeaderLength || !/^bearer /i.test(authorization)) return false;
  const digest = (text: string): Buffer => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(authorization.slice('bearer '.length).trim()), digest(token));
}
