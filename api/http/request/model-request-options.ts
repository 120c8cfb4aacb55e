import { invalidField, type AppError } from '../../../shared/contract/errors.ts';
import { onDisconnectHeader } from '../../../shared/contract/on-disconnect.ts';
import type { JobWebhookEvent } from '../../../shared/contract/job-terms.ts';
import type { ApiContext } from './context.ts';

/** Options that the headers of a request to a model set. */
export interface ModelRequestOptions {
  /** Whether the caller wants a job instead of the response. */
  readonly respondsAsync: boolean;
  /** How long the caller waits for the response of its job before it gets the job; null for not at all. */
  readonly waitSeconds: number | null;
  /** How long the work may wait to start; null if the caller sets no limit. */
  readonly timeoutMs: number | null;
  /** How long the whole work of a job may take (ms); null if the caller sets no limit. */
  readonly cancelAfterMs: number | null;
  readonly webhookUrl: string | null;
  readonly webhookEvents: readonly JobWebhookEvent[];
  /** Whether a stream continues without its reader, and can be resumed. */
  readonly isResumable: boolean;
}

/**
 * Rejects a request for both a job and a stream. A job's final response is never streamed; `GET /v1/jobs/{id}/events`
 * streams its progress.
 * @throws AppError `validation_failed`
 */
export function rejectAsyncStream(context: ApiContext): void {
  const { stream } = context.state.body as { readonly stream?: unknown };
  if (stream === true && modelRequestOptionsOf(context).respondsAsync) {
    throw invalidField(
      ['body', 'stream'],
      'cannot be true together with "Prefer: respond-async". Remove one of them; GET /v1/jobs/{id}/events streams ' +
        'the progress of a job.',
    );
  }
}

/**
 * Rejects a request to continue without a reader if the response is not streamed.
 * @throws AppError `validation_failed`
 */
export function rejectResumableWhole(context: ApiContext): void {
  const { stream } = context.state.body as { readonly stream?: unknown };
  if (stream !== true && modelRequestOptionsOf(context).isResumable) throw onlyForStreams();
}

export const onlyForStreams = (): AppError =>
  invalidField(
    ['header', onDisconnectHeader],
    'is supported only for streamed chats: also send "stream": true, or remove this header. To get the response without ' +
      'an open connection, send "Prefer: respond-async"',
  );

const noOptions: ModelRequestOptions = {
  respondsAsync: false,
  waitSeconds: null,
  timeoutMs: null,
  cancelAfterMs: null,
  webhookUrl: null,
  webhookEvents: [],
  isResumable: false,
};

export function modelRequestOptionsOf({ state }: ApiContext): ModelRequestOptions {
  return state.modelRequestOptions ?? noOptions;
}
