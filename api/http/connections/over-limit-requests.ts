import type { IncomingMessage } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { closeHeaders } from './http-errors.ts';

const overLimit = new WeakSet<IncomingMessage>();

/** Marks a request that came on a connection over the limit. `checkOverLimit` later fails it. */
export function markOverLimit(request: IncomingMessage): void {
  overLimit.add(request);
}

const isOverLimit = (request: IncomingMessage): boolean => overLimit.has(request);

/** @throws AppError if the request came on a connection over the limit */
export function checkOverLimit(request: IncomingMessage): void {
  if (!isOverLimit(request)) return;
  throw new AppError('queue_full', {
    message: 'Too many connections are open. Close unused connections, or try again shortly.',
    headers: closeHeaders,
  });
}
