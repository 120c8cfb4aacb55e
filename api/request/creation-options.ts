import { invalidField } from '../../shared/contract/errors.ts';
import type { ApiContext } from './context.ts';

/** Options in the headers of a model request. */
export interface CreationOptions {
  /** Whether the caller wants a job instead of the response. */
  readonly respondsAsync: boolean;
  /** How long the work may wait to start; null if the caller sets no limit. */
  readonly timeoutMs: number | null;
  readonly webhookUrl: string | null;
}

/**
 * Rejects a request for both a job and a stream. A job has a single response, and its own event stream.
 * @throws AppError `validation_failed`
 */
export function rejectAsyncStream(context: ApiContext): void {
  const { stream } = context.state.body as { readonly stream?: unknown };
  if (stream === true && creationOptionsOf(context).respondsAsync) {
    throw invalidField(
      ['body', 'stream'],
      'cannot be true together with "Prefer: respond-async". Leave one of them out; GET /v1/jobs/{id}/events streams ' +
        'how the job goes on.',
    );
  }
}

export function creationOptionsOf({ state }: ApiContext): CreationOptions {
  return state.creation ?? { respondsAsync: false, timeoutMs: null, webhookUrl: null };
}
