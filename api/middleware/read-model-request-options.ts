import { invalidField } from '../../shared/contract/errors.ts';
import { prefersAsync, readRequestTimeout } from '../../shared/contract/prefer.ts';
import { checkWebhookUrl, webhookUrlHeader } from '../../shared/contract/webhook-url.ts';
import type { ApiMiddleware } from '../request/context.ts';

/**
 * Reads the headers that control the response to a model request, before its body is read.
 * @throws AppError `validation_failed`, `unsafe_url`
 */
export const readModelRequestOptions = (): ApiMiddleware => async (context, next) => {
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
  context.state.modelRequestOptions = {
    respondsAsync,
    timeoutMs: readRequestTimeout(textOf(headers['x-request-timeout-ms'])),
    webhookUrl: webhookUrl === undefined ? null : checkWebhookUrl(webhookUrl),
  };
  await next();
};

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;
