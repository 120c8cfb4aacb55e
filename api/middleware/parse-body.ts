import type { IncomingMessage } from 'node:http';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { BodyBudget, BodyShare } from './body-budget.ts';
import { JsonStructure, maxDepth, maxValues, type StructureFault } from './json-structure.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/** What has come of a body takes room that others wait for. */
const maxStallMs = 30_000;

/** Reads a JSON body within the operation's bound, and within what all bodies of the process may hold. */
export function parseBody(limitBytes: number, budget: BodyBudget): ApiMiddleware {
  return async (context, next) => {
    checkType(context);
    if ((context.request.length ?? 0) > limitBytes) throw tooLarge(limitBytes);
    const share = budget.open();
    context.res.once('close', () => share.close());
    if (!budget.fits(context.request.length ?? 0)) throw noRoom();
    const bytes = await readBytes(context, limitBytes, share);
    // An empty body is taken for an empty object: what it lacks is then named field by field.
    context.state.body = bytes.length === 0 ? {} : parseJson(bytes);
    await next();
  };
}

function checkType(context: ApiContext): void {
  const isJson = context.is('application/json');
  // Without a body there is nothing that could be of a wrong type.
  if (isJson === null) return;
  if (isJson === false) {
    const type = context.get('content-type');
    const text = type === '' ? 'The request has no Content-Type.' : `The Content-Type is ${type}.`;
    throw new AppError('unsupported_media_type', { message: `${text} Send "application/json".` });
  }
  const charset = context.request.charset.toLowerCase();
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8') {
    throw new AppError('unsupported_media_type', { message: `The charset is ${charset}. Send UTF-8.` });
  }
  // A few kilobytes can inflate to anything; no client of the API compresses what it sends.
  const encoding = context.get('content-encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    throw new AppError('unsupported_media_type', {
      message: `The Content-Encoding is ${encoding}. Send the body as it is.`,
    });
  }
}

async function readBytes(context: ApiContext, limitBytes: number, share: BodyShare): Promise<Buffer> {
  const structure = new JsonStructure();
  const chunks: Buffer[] = [];
  let length = 0;
  await readChunks(context.req, (chunk) => {
    length += chunk.length;
    if (length > limitBytes) throw tooLarge(limitBytes);
    if (!share.grow(length)) throw noRoom();
    const fault = structure.push(chunk);
    if (fault !== null) throw toStructureError(fault);
    chunks.push(chunk);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
}

/**
 * Ends with the body, or with what `take` throws; the rest is then left unread, to be drained by who answers the error.
 * By events, as an iterator costs a short body as much as all else that is done with it.
 */
async function readChunks(request: IncomingMessage, take: (chunk: Buffer) => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let timer: NodeJS.Timeout | null = null;
    const settle = (error?: unknown): void => {
      if (timer !== null) clearTimeout(timer);
      request.off('data', onData).off('end', settle).off('error', onClose).off('close', onClose);
      if (error === undefined) {
        resolve();
        return;
      }
      request.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      timer ??= setTimeout(() => settle(stalled()), maxStallMs);
      timer.refresh();
      try {
        take(chunk);
      } catch (error) {
        settle(error);
      }
    };
    const onClose = (): void => settle(new AppError('job_cancelled'));
    request.on('data', onData).on('end', settle).on('error', onClose).on('close', onClose);
    // Its caller may have left before anybody listened.
    if (request.destroyed) onClose();
  });
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    const reason = (error as Error).message.slice(0, 200);
    throw invalidField(['body'], `The body is not valid JSON: ${reason}`, { type: 'json_invalid' });
  }
}

function toStructureError(fault: StructureFault): AppError {
  switch (fault) {
    case 'too_deep':
      return invalidField(['body'], `The body is nested deeper than ${maxDepth} levels.`);
    case 'too_many_values':
      return invalidField(['body'], `The body holds more than ${maxValues} values.`);
    default:
      return fault satisfies never;
  }
}

function stalled(): AppError {
  const seconds = maxStallMs / 1_000;
  return invalidField(['body'], `Nothing more of the body has come for ${seconds} s. Send it again, whole.`);
}

function noRoom(): AppError {
  return new AppError('queue_full', { message: 'Too many large requests are under way. Try again shortly.' });
}

function tooLarge(limitBytes: number): AppError {
  const size = limitBytes >= 1_000_000 ? `${limitBytes / 1_000_000} MB` : `${limitBytes / 1_000} KB`;
  return new AppError('payload_too_large', {
    message: `The body is larger than the ${size} that this operation takes.`,
  });
}
