import { AppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Services } from '../services.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/**
 * Refuses calls that pages of other sites have a browser send. Browsers name the origin of a page with each call that
 * could change something; programs that are no browsers need not name one.
 */
export function checkOrigin(services: Pick<Services, 'config' | 'publicUrl'>): ApiMiddleware {
  return async (context, next) => {
    const origin = context.get('origin');
    if (origin !== '' && !isOwn(origin, context, services)) {
      throw new AppError('origin_refused', {
        message: `Requests from ${shorten(origin)} are refused. Send them from a page of this service: its address is ${services.publicUrl}.`,
      });
    }
    await next();
  };
}

function isOwn(
  origin: string,
  context: ApiContext,
  { config, publicUrl }: Pick<Services, 'config' | 'publicUrl'>,
): boolean {
  const own = [publicUrl, config.backupUrl, config.directUrl].flatMap((url) =>
    url === null ? [] : [new URL(url).origin],
  );
  if (own.includes(origin)) return true;
  // Unless the operator says how the service is reached, it is known by whatever name it was asked under.
  return config.publicUrl === null && origin === `http://${context.get('host')}`;
}
