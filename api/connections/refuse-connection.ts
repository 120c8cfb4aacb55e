import type { ServerResponse } from 'node:http';
import { AppError, errorKind } from '../../shared/contract/errors.ts';
import { createTimeOrderedId } from '../../shared/runtime/time-ordered-id.ts';
import { presentError } from '../present/error-body.ts';

const refusal = new AppError('queue_full', {
  message: 'Too many connections are open. Close those that you do not use, or try again shortly.',
});
const body = Buffer.from(JSON.stringify(presentError(refusal)));

/** Answers a request on a connection for which there is no room, and ends the connection. */
export function refuseConnection(response: ServerResponse): void {
  const { status, retryAfterSeconds } = errorKind(refusal.code);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'x-request-id': createTimeOrderedId(),
    'retry-after': String(retryAfterSeconds),
    connection: 'close',
  });
  response.end(body);
}
