import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { Span, Tracing } from '../../shared/platform/tracing/tracing.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';

/**
 * Starts the span of a run: from when a worker has taken the request. It is a part of its request's trace. The request
 * that placed a durable job has usually ended long before, so the job has a trace of its own, which links to it.
 */
export function startRunSpan(
  tracing: Tracing | null | undefined,
  queue: QueueName,
  request: AdmittedRequest,
  jobAttempt?: number,
): Span | null {
  if (tracing === null || tracing === undefined) return null;
  const { requestId, accountId, model, admittedAtMs, trace } = request;
  const placing = trace === undefined ? undefined : { traceparent: trace };
  const isDurable = jobAttempt !== undefined;
  return tracing.startSpan({
    name: `process ${queue}`,
    kind: 'consumer',
    parent: isDurable ? undefined : placing,
    links: isDurable && placing !== undefined ? [placing] : [],
    attributes: {
      'messaging.system': 'redis',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': queue,
      'messaging.message.id': requestId,
      'gen_ai.request.model': model,
      'model_gateway.request_id': requestId,
      'model_gateway.account_id': accountId,
      'model_gateway.queue_wait_seconds': Math.max(0, Date.now() - admittedAtMs) / 1_000,
      'model_gateway.job_attempt': jobAttempt,
    },
  });
}
