import type { AppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/** One request and what became of it. */
export interface Access {
  readonly requestId: string;
  /** Null where no request could be made out. */
  readonly method: string | null;
  /** Without the query; null where no request could be made out. */
  readonly path: string | null;
  readonly status: number;
  readonly startedAtMs: number;
  /** What the answer tells of: as the whole of it, or as the last event of a stream. */
  readonly error?: AppError | undefined;
  /** For the operator, where the status does not say it all. */
  readonly reason?: string | undefined;
}

/** Writes the one line that each answer has in the log. */
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
