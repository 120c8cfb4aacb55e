import { toAppError } from '../../shared/contract/errors.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { clearCookies } from '../request/session-cookies.ts';
import type { Services } from '../services.ts';

/** Clears cookies of sessions that have ended, so that none remain after signing out. */
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
