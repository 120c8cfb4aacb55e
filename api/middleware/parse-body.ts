import type { IncomingMessage } from 'node:http';
import { koaBody } from 'koa-body';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/** How much of a body that is too large is still read, so that its sender gets to the answer, and for how long. */
const drainBytes = 128_000_000;
const drainMs = 10_000;

/** Reads a JSON body within the operation's bound. */
export function parseBody(limitBytes: number): ApiMiddleware {
  const tooLarge = (): AppError =>
    new AppError('payload_too_large', {
      message: `The body is larger than the ${formatSize(limitBytes)} that this operation takes.`,
    });
  const parse = koaBody({
    json: true,
    text: false,
    urlencoded: false,
    multipart: false,
    jsonLimit: limitBytes,
    onError: (error) => {
      throw toBodyError(error, tooLarge);
    },
  }) as ApiMiddleware;

  return async (context, next) => {
    if (!context.is('application/json', '+json')) {
      const type = context.get('content-type');
      const text = type === '' ? 'The request has no Content-Type.' : `The Content-Type is ${type}.`;
      throw await drained(
        context,
        new AppError('unsupported_media_type', { message: `${text} Send "application/json".` }),
      );
    }
    if ((context.request.length ?? 0) > limitBytes) throw await drained(context, tooLarge());
    try {
      await parse(context, async () => {});
    } catch (error) {
      throw error instanceof AppError && error.code === 'payload_too_large'
        ? await drained(context, error)
        : error;
    }
    context.state.body = (context.request as unknown as { body: unknown }).body;
    await next();
  };
}

interface BodyError extends Error {
  readonly status?: number;
}

function toBodyError(error: BodyError, tooLarge: () => AppError): Error {
  switch (error.status) {
    case 413:
      return tooLarge();
    case 415:
      return new AppError('unsupported_media_type', { message: error.message });
    case 400:
      return invalidField(['body'], `The body is not valid JSON: ${error.message}`, { type: 'json_invalid' });
    default:
      return error;
  }
}

/** Reads on, within bounds, what nobody wants: a client that still writes would else never see the answer. */
async function drained(context: ApiContext, error: AppError): Promise<AppError> {
  await drain(context.req);
  if (!context.req.readableEnded) context.set('connection', 'close');
  return error;
}

async function drain(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return;
  await new Promise<void>((resolve) => {
    let left = drainBytes;
    const onData = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left < 0) done();
    };
    const timer = setTimeout(done, drainMs);
    function done(): void {
      clearTimeout(timer);
      request.off('data', onData).off('end', done).off('close', done);
      request.pause();
      resolve();
    }
    request.on('data', onData).once('end', done).once('close', done);
    request.resume();
  });
}

function formatSize(bytes: number): string {
  return bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${bytes / 1_000} KB`;
}
