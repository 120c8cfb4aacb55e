import type { IncomingMessage } from 'node:http';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { lateStatus, smallBodyBytes } from '../bodies/body-pace.ts';
import { drainBody } from '../bodies/drain-body.ts';
import { presentError } from '../../../shared/responses/error-body.ts';
import { errorHeaders, hasIdempotencyKey } from '../responses/error-headers.ts';
import { suggestPath } from '../responses/unserved-paths.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';

/**
 * Converts every thrown error into an error response. No other code does that.
 * @param supportEmail the address for callers who are banned; null if there is none
 */
export function renderError(log: Logger, supportEmail: string | null = null): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
      if (context.status === 404 && context.body === undefined && context.respond !== false) {
        throw new AppError('not_found', {
          message: `There is no endpoint ${context.method} ${maskSecrets(shorten(context.path))}. ${suggestPath(context.path)}`,
        });
      }
      // The error of a response that had already started: the code that streams the response has reported it to the
      // caller.
      if (context.state.error !== undefined) logFault(log, context, context.state.error);
    } catch (thrown) {
      const error = toAppError(thrown);
      context.state.error = error;
      logFault(log, context, error);
      if (context.res.headersSent) {
        context.res.destroy();
        return;
      }
      const isLate = error.status === lateStatus;
      const isSlow = !isLate && isSlowToDrain(context.req);
      if (isLate || isSlow || !(await drainBody(context.req))) context.set('connection', 'close');
      context.status = error.status;
      const hasKey = hasIdempotencyKey(context.req.headers);
      context.set(errorHeaders(error, hasKey));
      context.body = presentError(withSupport(error, supportEmail), {
        translatesErrors: context.state.translatesErrors,
        hasKey,
      });
      if (isSlow) await respondThenDrain(context);
    }
  };
}

/** Returns the error, with the address to write to if its caller is banned. */
function withSupport(error: AppError, supportEmail: string | null): AppError {
  if (error.code !== 'account_banned' || supportEmail === null) return error;
  const { publicMessage, publicMessageRu, kind } = error;
  return new AppError('account_banned', {
    message: `${publicMessage} Write to ${supportEmail}.`,
    messageRu: `${publicMessageRu ?? kind.ru} Пишите на ${supportEmail}.`,
    cause: error,
  });
}

/** Whether the request body is incomplete, and is large, of unknown length, or withheld until a `100 Continue`. */
function isSlowToDrain({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers.expect !== undefined || headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > smallBodyBytes;
}

/**
 * Responds immediately, so that a client that reads while sending can stop, and then drains the body: closing the
 * connection while the client is still sending would lose the response.
 */
async function respondThenDrain(context: ApiContext): Promise<void> {
  const { req, res } = context;
  const bytes = Buffer.from(JSON.stringify(context.body));
  context.type = 'application/json';
  context.length = bytes.length;
  context.respond = false;
  res.write(bytes, (error) => {
    context.state.isResponseSent = !error;
  });
  await drainBody(req);
  res.end();
}

/** A fault of ours needs its stack. The access line says the rest about every other failure. */
function logFault(log: Logger, { state: { requestId } }: ApiContext, error: AppError): void {
  if (error.code !== 'internal_error') return;
  log.error({ requestId, err: error.cause ?? error }, 'request failed');
}
