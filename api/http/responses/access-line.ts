import type { AppError } from '../../../shared/contract/errors.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';

/** A request and its outcome, as logged. */
export interface Access {
  readonly requestId: string;
  /** Null if the request could not be parsed. */
  readonly method: string | null;
  /** Without the query; null if the request could not be parsed. */
  readonly path: string | null;
  readonly status: number;
  readonly startedAtMs: number;
  /** The error reported in the response, either as its body or as the last event of a stream. */
  readonly error?: AppError | undefined;
  /** Details for the operator that the status does not show. */
  readonly reason?: string | undefined;
}

/** Writes the access log line of a response. */
export function logAccess(log: Pick<Logger, 'info'>, access: Access): void {
  const { requestId, method, path, status, startedAtMs, error, reason } = access;
  const line = {
    requestId,
    method: method === null ? null : shorten(method),
    path: path === null ? null : shorten(path),
    status,
    durationMs: Math.round(performance.now() - startedAtMs),
    ...(reason === undefined ? {} : { reason }),
    ...describeError(error),
  };
  log.info(line, 'request');
}

function describeError(error: AppError | undefined): { code?: string; param?: string } {
  if (error === undefined) return {};
  const { code, param } = error;
  // Field names are the caller's own text.
  return param === null ? { code } : { code, param: shorten(param) };
}
