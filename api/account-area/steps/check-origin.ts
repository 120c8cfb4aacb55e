import { isIP } from 'node:net';
import { AppError } from '../../../shared/contract/errors.ts';
import { readHost } from '../../../shared/platform/runtime/public-url.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';

/**
 * Rejects calls from pages of other sites. Browsers send the page's origin with each call that can change something;
 * other clients need not send an origin.
 */
export function checkOrigin(services: OriginServices): ApiMiddleware {
  return async (context, next) => {
    requireOwnOrigin(services, context);
    await next();
  };
}

type OriginServices = Pick<Services, 'config' | 'publicUrl'>;

/** @throws AppError `origin_refused` for a call from a page of another site */
export function requireOwnOrigin(services: OriginServices, context: ApiContext): void {
  const origin = context.get('origin');
  if (origin !== '' && !isOwnOrigin(origin, context, services)) {
    throw originNotAllowed(shorten(origin), services);
  }
}

function isOwnOrigin(origin: string, context: ApiContext, { config, publicUrl }: OriginServices): boolean {
  const ownOrigins = [publicUrl, config.backupUrl, config.directUrl].flatMap((url) =>
    url === null ? [] : [new URL(url).origin],
  );
  if (ownOrigins.includes(origin)) return true;
  // If the operator has not configured an address, accept the one in the Host header.
  return config.publicUrl === null && origin === `http://${context.get('host')}` && isFixedHost(origin);
}

/**
 * Whether the origin's host is an IP address or `localhost`, whose target nobody can change. The owner of any other
 * host name can serve a page from it and then point the name at this service (DNS rebinding). Requests from that page
 * then reach this service with a matching Host header.
 */
function isFixedHost(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const host = readHost(new URL(origin));
  return host === 'localhost' || host.endsWith('.localhost') || isIP(host) !== 0;
}

function originNotAllowed(origin: string, { config, publicUrl }: OriginServices): AppError {
  const isUnset = config.publicUrl === null;
  const advice = isUnset ? ' If the service has a domain name, its operator must set PUBLIC_URL.' : '';
  const adviceRu = isUnset ? ' Если у сервиса есть доменное имя, оператор должен задать PUBLIC_URL.' : '';
  return new AppError('origin_refused', {
    message: `Requests from ${origin} are not allowed. Send them from a page of this service at ${publicUrl}.${advice}`,
    messageRu: `Запросы с ${origin} не принимаются. Отправляйте их со страницы этого сервиса: ${publicUrl}.${adviceRu}`,
  });
}
