import { toLogReason, type AppError } from '../../../shared/contract/errors.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { describeFacts } from '../../../shared/work/replies/describe-facts.ts';
import type { RequestFacts } from '../../../shared/work/replies/request-facts.ts';

/**
 * How a request ended:
 * - `success`
 * - `rejected`: the request was wrong or not allowed
 * - `failed`: the fault of this service or a vendor
 * - `disconnected`: the caller closed the connection, or did not read the response
 */
export type Outcome = 'success' | 'rejected' | 'failed' | 'disconnected';

/** The status of a request whose caller did not receive the whole response. */
const disconnectedStatus = 499;

/** A response that is closed. */
export interface ClosedResponse {
  /** Of its head. */
  readonly status: number;
  /** Whether the caller has received the whole response. */
  readonly isWhole: boolean;
  /** The error reported in the response, either as its body or as the last event of a stream. */
  readonly error?: AppError | undefined;
  /** Whether it is a stream that the error ended. */
  readonly isBroken?: boolean | undefined;
}

/** The status that the caller got in the end: that of the error for a stream that it ended. */
export function findFinalStatus({ status, isWhole, error, isBroken = false }: ClosedResponse): number {
  if (!isWhole) return disconnectedStatus;
  return isBroken && error !== undefined ? error.status : status;
}

export function findOutcome(response: ClosedResponse): Outcome {
  if (!response.isWhole) return 'disconnected';
  const status = findFinalStatus(response);
  return status >= 500 ? 'failed' : status >= 400 ? 'rejected' : 'success';
}

/** A request and its outcome, as logged. */
export interface Access {
  readonly requestId: string;
  /** Null if the request could not be parsed. */
  readonly method: string | null;
  /** Without the query; null if the request could not be parsed. */
  readonly path: string | null;
  readonly response: ClosedResponse;
  readonly durationMs: number;
  /** Details for the operator that the status does not show. */
  readonly reason?: string | undefined;
  /** Of the caller. */
  readonly address?: string | undefined;
  readonly accountId?: string | undefined;
  /** The name of the operator's token. */
  readonly token?: string | undefined;
  readonly operation?: Operation | undefined;
  /** The catalog's id of the model. */
  readonly model?: string | undefined;
  /** From the head of the request to the first output of a stream. */
  readonly firstOutputMs?: number | undefined;
  readonly facts?: RequestFacts | undefined;
  /** The id of the earlier request whose response this is. */
  readonly replayOf?: string | undefined;
  /** Of its span, if it is traced. */
  readonly traceId?: string | undefined;
}

/** What programs ask every few seconds. Their successes would hide everything else. */
const routine: ReadonlySet<string> = new Set(['getLiveness', 'getReadiness', 'getMetrics', 'getDemand']);

/**
 * Writes the access log line of a response, at level `warn` if the request failed. It contains no text of the caller
 * beyond its path, method and field names. Keys, tokens and codes in the path are hidden.
 */
export function logAccess(log: Pick<Logger, 'warn' | 'info' | 'debug'>, access: Access): void {
  const { response, operation } = access;
  const status = findFinalStatus(response);
  const outcome = findOutcome(response);
  // Spread conditions would take most of the time of a line.
  const line: Record<string, unknown> = {
    requestId: access.requestId,
    method: access.method === null ? null : shorten(access.method),
    path: access.path === null ? null : maskSecrets(shorten(access.path)),
    status,
    outcome,
    durationMs: Math.round(access.durationMs),
  };
  if (response.isBroken === true) line['sentStatus'] = response.status;
  const { error } = response;
  // If the worker has sent a reason, it replaces this one.
  const reason = access.reason ?? (outcome === 'failed' && error !== undefined ? toLogReason(error) : null);
  if (reason !== null) line['reason'] = reason;
  if (error !== undefined) describeError(error, line);
  if (access.address !== undefined) line['address'] = access.address;
  if (access.accountId !== undefined) line['accountId'] = access.accountId;
  if (access.token !== undefined) line['token'] = access.token;
  if (access.model !== undefined) line['model'] = access.model;
  if (access.firstOutputMs !== undefined) line['firstTokenMs'] = Math.round(access.firstOutputMs);
  if (access.facts !== undefined) describeFacts(access.facts, line);
  if (access.replayOf !== undefined) line['replayOf'] = access.replayOf;
  if (access.traceId !== undefined) line['traceId'] = access.traceId;
  const isRoutine = operation !== undefined && routine.has(operation.operationId) && status === 200;
  log[outcome === 'failed' ? 'warn' : isRoutine ? 'debug' : 'info'](line, 'request');
}

function describeError({ code, param }: AppError, line: Record<string, unknown>): void {
  line['code'] = code;
  // Field names are the caller's own text.
  if (param !== null) line['param'] = shorten(param);
}
