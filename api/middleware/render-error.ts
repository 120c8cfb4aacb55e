import type { IncomingMessage } from 'node:http';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { isRefused } from '../connections/refused-requests.ts';
import { errorHeaders, presentError } from '../present/error-body.ts';
import { lateStatus, smallBodyBytes } from './body-pace.ts';
import { drainBody } from './drain-body.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';
import { suggestPath } from './unserved-paths.ts';

/** Turns whatever was thrown into an answer; nowhere else does an error become one. */
export function renderError(log: Logger): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
      if (context.status === 404 && context.body === undefined && context.respond !== false) {
        throw new AppError('not_found', {
          message: `There is nothing at ${context.method} ${shorten(context.path)}. ${suggestPath(context.path)}`,
        });
      }
      // An answer that had begun told of it by itself.
      if (context.state.error !== undefined) logFailure(log, context, context.state.error);
    } catch (thrown) {
      const error = toAppError(thrown);
      context.state.error = error;
      logFailure(log, context, error);
      if (context.res.headersSent) {
        context.res.destroy();
        return;
      }
      const isLate = error.status === lateStatus;
      const isSlow = !isLate && isSlowToDrain(context.req);
      if (isLate || isSlow || !(await drainBody(context.req))) context.set('connection', 'close');
      context.status = error.status;
      context.set(errorHeaders(error));
      context.body = presentError(error, { translatesFaults: context.state.translatesFaults });
      if (isSlow) await answerThenDrain(context);
    }
  };
}

/** Whether a large body is still on its way, or one of unknown length, or one whose sender waits to be told to go on. */
function isSlowToDrain({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers.expect !== undefined || headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > smallBodyBytes;
}

/**
 * Answers at once, so that a caller who listens can stop sending, and only then reads on: closing the connection under a
 * caller who is still sending would lose the answer on its way.
 */
async function answerThenDrain(context: ApiContext): Promise<void> {
  const { req, res } = context;
  const bytes = Buffer.from(JSON.stringify(context.body));
  context.type = 'application/json';
  context.length = bytes.length;
  context.respond = false;
  res.write(bytes, (error) => {
    context.state.isAnswered = !error;
  });
  await drainBody(req);
  res.end();
}

function logFailure(log: Logger, { req, state: { requestId } }: ApiContext, error: AppError): void {
  // A flood of connections would be a flood of warnings. Access lines tell of each, and one warning of all.
  if (isRefused(req)) return;
  if (error.code === 'internal_error') log.error({ requestId, err: error.cause ?? error }, 'request failed');
  else if (error.status >= 500)
    log.warn({ requestId, code: error.code, reason: reasonOf(error) }, 'request failed');
}

/** The first cause says what really happened; the caller only learns the code's own text. */
function reasonOf(error: AppError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
