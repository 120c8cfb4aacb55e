import { koaBody } from 'koa-body';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { ApiMiddleware } from './request-context.ts';

/** No request of the API is a tenth as deep; code that walks a body may then recurse. */
const maxDepth = 100;

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
    if (!context.is('application/json')) {
      const type = context.get('content-type');
      const text = type === '' ? 'The request has no Content-Type.' : `The Content-Type is ${type}.`;
      throw new AppError('unsupported_media_type', { message: `${text} Send "application/json".` });
    }
    if ((context.request.length ?? 0) > limitBytes) throw tooLarge();
    await parse(context, async () => {});
    const { body } = context.request as unknown as { body: unknown };
    if (isDeeper(body, maxDepth)) {
      throw invalidField(['body'], `The body is nested deeper than ${maxDepth} levels.`);
    }
    context.state.body = body;
    await next();
  };
}

/** Level by level, so that the depth of a body cannot exhaust the stack here. */
function isDeeper(value: unknown, limit: number): boolean {
  let level: object[] = typeof value === 'object' && value !== null ? [value] : [];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= limit) return true;
    const next: object[] = [];
    for (const node of level) {
      for (const inner of Array.isArray(node) ? node : Object.values(node)) {
        if (typeof inner === 'object' && inner !== null) next.push(inner as object);
      }
    }
    level = next;
  }
  return false;
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

function formatSize(bytes: number): string {
  return bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${bytes / 1_000} KB`;
}
