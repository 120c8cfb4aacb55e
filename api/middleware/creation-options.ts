import { invalidField } from '../../shared/contract/errors.ts';
import { prefersAsync, readRequestTimeout } from '../../shared/contract/prefer.ts';
import { checkWebhookUrl, webhookUrlHeader } from '../../shared/contract/webhook-url.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/** What the headers of a request for a model's work ask for. */
export interface CreationOptions {
  /** A job is wanted in place of the answer. */
  readonly respondsAsync: boolean;
  /** How long the work may wait for its start; null where the caller sets no bound. */
  readonly timeoutMs: number | null;
  readonly webhookUrl: string | null;
}

/**
 * Reads the headers that say how a request for a model's work is to be answered, before its body is read.
 * @throws AppError `validation_failed`, `unsafe_url`
 */
export const readCreationOptions: ApiMiddleware = async (context, next) => {
  context.vary('Prefer');
  const { headers } = context.req;
  const respondsAsync = prefersAsync(textOf(headers['prefer']));
  const webhookUrl = textOf(headers[webhookUrlHeader.toLowerCase()]);
  if (webhookUrl !== undefined && !respondsAsync) {
    throw invalidField(
      ['header', webhookUrlHeader],
      'is for jobs alone: send "Prefer: respond-async" with it, or leave it out',
    );
  }
  context.state.creation = {
    respondsAsync,
    timeoutMs: readRequestTimeout(textOf(headers['x-request-timeout-ms'])),
    webhookUrl: webhookUrl === undefined ? null : checkWebhookUrl(webhookUrl),
  };
  await next();
};

/** Rejects requests that ask for both a job and a stream. A job has a single response, and its own event stream. */
export const refuseAsyncStream: ApiMiddleware = async (context, next) => {
  const { stream } = context.state.body as { readonly stream?: unknown };
  if (stream === true && creationOptionsOf(context).respondsAsync) {
    throw invalidField(
      ['body', 'stream'],
      'cannot be true together with "Prefer: respond-async". Leave one of them out; GET /v1/jobs/{id}/events streams ' +
        'how the job goes on.',
    );
  }
  await next();
};

export function creationOptionsOf({ state }: ApiContext): CreationOptions {
  return state.creation ?? { respondsAsync: false, timeoutMs: null, webhookUrl: null };
}

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;
