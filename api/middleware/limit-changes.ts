import type { Services } from '../services.ts';
import { sessionOf } from './authenticate-session.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Bounds the changes of one user in a minute and in a day, because each is written to the audit log, which is kept for 400 days. */
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
