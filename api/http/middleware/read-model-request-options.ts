import { invalidField, type AppError } from '../../../shared/contract/errors.ts';
import { defaultWebhookEvents } from '../../../shared/work/jobs/job-record.ts';
import { cancelAfterHeader, readCancelAfter } from '../../contract/cancel-after.ts';
import { readPreferences, readRequestTimeout, requestTimeoutHeader } from '../../contract/prefer.ts';
import { onDisconnectHeader, readOnDisconnect } from '../../../shared/contract/on-disconnect.ts';
import {
  checkWebhookUrl,
  readWebhookEvents,
  webhookEventsHeader,
  webhookUrlHeader,
} from '../../contract/webhook-url.ts';
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
    const read = (name: string): string | undefined => textOf(headers[name.toLowerCase()]);
    const preferences = readPreferences(read('prefer'));
    const readForJobs = (name: string): string | undefined => {
      const value = read(name);
      if (value !== undefined && !preferences.respondsAsync) throw onlyForJobs(name);
      return value;
    };
    const cancelAfter = readForJobs(cancelAfterHeader);
    const webhookUrl = readForJobs(webhookUrlHeader);
    const webhookEvents = readForJobs(webhookEventsHeader);
    if (webhookEvents !== undefined && webhookUrl === undefined) {
      throw invalidField(
        ['header', webhookEventsHeader],
        `is supported only for webhooks: also send ${webhookUrlHeader}, or remove this header`,
      );
    }
    context.state.modelRequestOptions = {
      ...preferences,
      timeoutMs: readRequestTimeout(read(requestTimeoutHeader)),
      cancelAfterMs: cancelAfter === undefined ? null : readCancelAfter(cancelAfter),
      webhookUrl: webhookUrl === undefined ? null : checkWebhookUrl(webhookUrl),
      webhookEvents: webhookEvents === undefined ? defaultWebhookEvents : readWebhookEvents(webhookEvents),
      isResumable: readIsResumable(operation, textOf(headers[onDisconnectHeader.toLowerCase()])),
    };
    await next();
  };

function readIsResumable({ hasResumableStream }: Operation, header: string | undefined): boolean {
  const isResumable = readOnDisconnect(header);
  if (isResumable && hasResumableStream !== true) throw onlyForStreams();
  return isResumable;
}

const onlyForJobs = (name: string): AppError =>
  invalidField(
    ['header', name],
    'is supported only for jobs: also send "Prefer: respond-async", or remove this header',
  );

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;
