import type { IncomingMessage } from 'node:http';
import { AppError } from '../contract/errors.ts';
import type { Config } from '../platform/config/config.ts';
import { isLoopbackAddress, isLoopbackHost } from '../platform/runtime/address-class.ts';
import { hasBearerToken } from './operator-token.ts';

/** Headers that proxies add. A request with one of them comes from another machine, whatever address connects. */
const proxyHeaders = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'forwarded',
  'via',
] as const;

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
    if (hasBearerToken(headers.authorization ?? '', metricsToken)) return;
    throw new AppError('invalid_api_key', {
      message: 'The metrics token is missing or wrong. Send it as "Authorization: Bearer <METRICS_TOKEN>".',
      messageRu:
        'Токен метрик не указан или неверен. Передайте его в заголовке «Authorization: Bearer <METRICS_TOKEN>».',
      headers: { 'www-authenticate': 'Bearer realm="metrics"' },
    });
  }
  const isProxied = trustProxy || proxyHeaders.some((name) => headers[name] !== undefined);
  // A page of another site that runs in a browser on this machine can also connect to it: through a host name of its own,
  // or, if CORS_ORIGINS allows its origin, directly.
  const host = (headers.host ?? '').replace(/:\d*$/, '');
  const isOfPage = headers.origin !== undefined;
  if (!isProxied && !isOfPage && isLoopbackHost(host) && isLoopbackAddress(socket.remoteAddress ?? ''))
    return;
  throw new AppError('forbidden', {
    message:
      'Without a METRICS_TOKEN, only connections of the same machine may read the metrics. Set METRICS_TOKEN, and send it as "Authorization: Bearer <METRICS_TOKEN>".',
    messageRu:
      'Без METRICS_TOKEN метрики доступны только с этой же машины. Задайте METRICS_TOKEN и передавайте его в заголовке «Authorization: Bearer <METRICS_TOKEN>».',
  });
}
