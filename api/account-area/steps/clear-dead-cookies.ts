import { toAppError } from '../../../shared/contract/errors.ts';
import type { ApiMiddleware } from '../../http/request/context.ts';
import { clearCookies } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';

/** Clears the cookies of ended sessions, so that none remain after signing out. */
export function clearDeadCookies({ config }: Pick<Services, 'config'>): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      if (toAppError(error).code === 'unauthenticated') clearCookies(context, config);
      throw error;
    }
  };
}
