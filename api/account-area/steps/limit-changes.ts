import type { ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { sessionOf } from './authenticate-session.ts';

/**
 * Limits the changes that a user makes per minute and per day, because each is written to the audit log, which is kept
 * for 400 days.
 */
export function limitChanges({ web }: Services): ApiMiddleware {
  return async (context, next) => {
    const { userId: who } = sessionOf(context);
    await web.limits.take([
      { name: 'changes-user', who },
      { name: 'daily-changes-user', who },
    ]);
    await next();
  };
}
