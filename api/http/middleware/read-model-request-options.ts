import { invalidField } from '../../../shared/contract/errors.ts';
import { prefersAsync, readRequestTimeout } from '../../contract/prefer.ts';
import { onDisconnectHeader, readOnDisconnect } from '../../../shared/contract/on-disconnect.ts';
import { checkWebhookUrl, webhookUrlHeader } from '../../contract/webhook-url.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { onlyForStreams } from '../request/model-request-options.ts';
import type { Services } from '../../services.ts';

/**
 * Reads the headers that control the response to a model request, before its body is read.
 * @throws AppError `validation_failed`, `unsafe_url`
 */
export const readModelRequestOptions =
  (_services: Services, operation: Operation): ApiMiddleware =>
  async (context, next) => {
    context.vary('Prefer');
    const { headers } = context.req;
    const respondsAsync = prefersAsync(textOf(headers['prefer']));
    const webhookUrl = textOf(headers[webhookUrlHeader.toLowerCase()]);
    if (webhookUrl !== undefined && !respondsAsync) {
      throw invalidField(
        ['header', webhookUrlHeader],
        'is supported only for jobs: also send "Prefer: respond-async", or remove this header',
      );
    }
    context.state.modelRequestOptions = {
      respondsAsync,
      timeoutMs: readRequestTimeout(textOf(headers['x-request-timeout-ms'])),
      webhookUrl: webhookUrl === undefined ? null : checkWebhookUrl(webhookUrl),
      isResumable: readIsResumable(operation, textOf(headers[onDisconnectHeader.toLowerCase()])),
    };
    await next();
  };

function readIsResumable({ hasResumableStream }: Operation, header: string | undefined): boolean {
  const isResumable = readOnDisconnect(header);
  if (isResumable && hasResumableStream !== true) throw onlyForStreams();
  return isResumable;
}

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;
