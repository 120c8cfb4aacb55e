import type { Span } from '../../../shared/platform/tracing/tracing.ts';
import { findFinalStatus, findOutcome, type Access } from './access-line.ts';

export type EndedRequest = Pick<Access, 'requestId' | 'accountId' | 'model' | 'response' | 'replayOf'>;

/** Describes how a request ended, and ends its span. */
export function endRequestSpan(span: Span, ended: EndedRequest): void {
  const { requestId, accountId, model, response, replayOf } = ended;
  const outcome = findOutcome(response);
  const errorType =
    response.error?.code ?? (outcome === 'success' || outcome === 'rejected' ? undefined : outcome);
  span.set({
    'http.response.status_code': response.status,
    'gen_ai.request.model': model,
    'error.type': errorType,
    'model_gateway.request_id': requestId,
    'model_gateway.account_id': accountId,
    'model_gateway.outcome': outcome,
    ...(replayOf !== undefined && { 'model_gateway.is_replay': true, 'model_gateway.replay_of': replayOf }),
  });
  // As HTTP's conventions have it, an error of the caller is none of the server's.
  if (findFinalStatus(response) >= 500) span.fail();
  span.end();
}
