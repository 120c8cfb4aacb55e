import type { ServerResponse } from 'node:http';
import { AppError } from '../../shared/contract/errors.ts';

const signals = new WeakMap<ServerResponse, AbortSignal>();

/** Aborted, with AppError `job_cancelled`, once the caller's connection is closed; one signal for each response. */
export function callerSignal(response: ServerResponse): AbortSignal {
  let signal = signals.get(response);
  if (signal === undefined) {
    const controller = new AbortController();
    const onClose = (): void => controller.abort(new AppError('job_cancelled'));
    if (response.destroyed) onClose();
    else response.once('close', onClose);
    ({ signal } = controller);
    signals.set(response, signal);
  }
  return signal;
}
