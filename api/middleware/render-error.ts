import { AppError, errorKind } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { drainBody } from './drain-body.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/** The body of an error, on the wire and in a stream's last event. */
export function presentError(error: AppError): object {
  const kind = errorKind(error.code);
  const [issue] = error.issues;
  const detail =
    kind.status === 422
      ? issuesOf(error)
      : { error: error.code, message_ru: kind.ru, message_en: error.publicMessage };
  return {
    error: {
      message: error.publicMessage,
      type: kind.type,
      param: issue === undefined ? null : issue.loc.slice(1).join('.') || null,
      code: error.code,
    },
    detail,
  };
}

function issuesOf(error: AppError): object[] {
  if (error.issues.length > 0) return error.issues.map(({ loc, msg, type }) => ({ loc, msg, type }));
  return [{ loc: ['body'], msg: error.publicMessage, type: error.code }];
}

/** Turns whatever was thrown into an answer; nowhere else does an error become one. */
export function renderError(log: Logger): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
      if (context.status === 404 && context.body === undefined && context.respond !== false) {
        throw new AppError('not_found', {
          message: `There is nothing at ${context.method} ${context.path}.`,
        });
      }
    } catch (thrown) {
      const error = thrown instanceof AppError ? thrown : new AppError('internal_error', { cause: thrown });
      logFailure(log, context, error);
      if (context.res.headersSent) {
        context.res.destroy();
        return;
      }
      if (!(await drainBody(context.req))) context.set('connection', 'close');
      const kind = errorKind(error.code);
      context.status = kind.status;
      if (kind.retryAfterSeconds !== undefined) context.set('retry-after', String(kind.retryAfterSeconds));
      if (!kind.retry && kind.status === 409) context.set('x-should-retry', 'false');
      context.set(error.headers);
      context.body = presentError(error);
    }
  };
}

function logFailure(log: Logger, { state: { requestId } }: ApiContext, error: AppError): void {
  const { status } = errorKind(error.code);
  if (error.code === 'internal_error') log.error({ requestId, err: error.cause ?? error }, 'request failed');
  else if (status >= 500)
    log.warn({ requestId, code: error.code, reason: reasonOf(error) }, 'request failed');
}

/** The first cause says what really happened; the caller only learns the code's own text. */
function reasonOf(error: AppError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
