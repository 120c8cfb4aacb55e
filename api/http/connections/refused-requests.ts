import type { IncomingMessage } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { closeHeaders } from './http-errors.ts';

const refused = new WeakSet<IncomingMessage>();

/** Marks a request that came on a connection over the limit. `checkRefused` later fails it. */
export function markOverLimit(request: IncomingMessage): void {
  refused.add(request);
}

export const isRefused = (request: IncomingMessage): boolean => refused.has(request);

/** @throws AppError if the request came on a connection over the limit */
export function checkRefused(request: IncomingMessage): void {
  if (!isRefused(request)) return;
  throw new AppError('queue_full', {
    message: 'Too many connections are open. Close unused connections, or try again shortly.',
    headers: closeHeaders,
  });
}
