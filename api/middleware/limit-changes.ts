import type { Services } from '../services.ts';
import { sessionOf } from './authenticate-session.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Bounds what one user changes in a minute: each change is written to the audit log, which is kept for a year. */
export function limitChanges({ web }: Services): ApiMiddleware {
  return async (context, next) => {
    await web.limits.take([{ name: 'changes-user', who: sessionOf(context).userId }]);
    await next();
  };
}
