import type { Config } from '../../shared/runtime/config.ts';
import { toAppError } from '../../shared/contract/errors.ts';
import type { ApiMiddleware } from './request-context.ts';
import { clearCookies } from './session-cookies.ts';

/** Takes cookies that open no session away from the browser: somebody who signs out must not leave them behind. */
export function clearDeadCookies(config: Pick<Config, 'publicUrl'>): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      if (toAppError(error).code === 'unauthenticated') clearCookies(context, config);
      throw error;
    }
  };
}
