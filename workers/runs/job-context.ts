import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { errorKinds, type ErrorCode } from '../../shared/contract/error-kinds.ts';
import { AppError, toLogReason } from '../../shared/contract/errors.ts';
import type { FinishDeps, Receipt, RequestOutcome } from '../../shared/work/settlement/finish-request.ts';
import type { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { PayloadStore } from '../../shared/work/queue/payload-store.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { ReasoningStore } from '../../shared/work/reasoning-store.ts';
import type { ResponseStore } from '../../shared/work/replies/response-store.ts';
import type { ErrorPayload } from '../../shared/work/replies/error-payload.ts';
import type { ReplyWriter } from '../replies/reply-writer.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { EndedWork } from '../reporting/ended-work.ts';
import type { Faults } from '../reporting/faults.ts';
import type { Tracing } from '../../shared/platform/tracing/tracing.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { EmbeddingSchedulers } from '../embeddings/embedding-schedulers.ts';
import { createMediaLoader, type MediaSources, type RequestMedia } from '../media/media-loader.ts';
import type { ReencodeImage } from '../media/reencode-image.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { CallObserver } from '../routing/call-observer.ts';
import type { Routing } from '../routing/call-route.ts';
import type { CallContext } from '../upstreams/upstream.ts';
import type { RunFacts } from './run-facts.ts';
import type { RunMetrics } from './run-metrics.ts';
import type { StoredResponseMover } from './stored-response-mover.ts';

/** The dependencies of every job function. */
export interface JobDeps extends FinishDeps {
  readonly catalog: CatalogStore;
  readonly routing: Routing;
  readonly embeddings: EmbeddingSchedulers;
  readonly reasoning: ReasoningStore;
  readonly payloads: PayloadStore;
  /**
   * The memory budget for large jobs, shared fairly by accounts. Memory is reserved before a job is read and released
   * when it is done.
   */
  readonly jobMemory: FairBudget;
  readonly responses: ResponseStore;
  readonly mover: StoredResponseMover;
  readonly objects: ObjectStore;
  readonly media: MediaSources;
  readonly reencodeImage: ReencodeImage;
  /** The memory budget for complete responses in this process. Memory is released when a response has been sent. */
  readonly responseMemory: FairBudget;
  readonly faults: Faults;
  readonly runMetrics?: Pick<RunMetrics, 'note'>;
  readonly endedWork?: Pick<EndedWork, 'note'>;
  /** Null or absent if nothing is traced. */
  readonly tracing?: Tracing | null;
  readonly log: Logger;
  readonly workerId: string;
  /** How long a piece of a response is sent again while that fails; half a minute by default. */
  readonly maxSendingMs?: number;
}

/** What a run sends to its caller. */
export type Reply = Pick<ReplyWriter, keyof ReplyWriter>;

/** Takes how a line of a batch ends: its response is not sent, and it is settled together with other lines. */
export interface LineEnd {
  /** Until when its images are kept. */
  readonly imagesDueAtMs: number;
  /** Takes the outcome. @returns what the line costs */
  settle(outcome: RequestOutcome): Receipt;
  /** Takes the response, in parts. */
  respond(parts: readonly Buffer[]): void;
}

/** One run of a request: how it replies, and how it is controlled on behalf of its caller. */
export interface RequestRun {
  readonly reply: Reply;
  /** Aborted when nobody waits any more, the account is banned, or another run replaces this one. */
  readonly signal: AbortSignal;
  /** Aborted when the process is about to exit: streams still being read after a disconnect must be settled now. */
  readonly stopping: AbortSignal;
  /** Returns null while the caller keeps up; otherwise a promise that resolves when it has caught up. */
  readonly whenResumed: () => Promise<void> | null;
  /** Cancels the run because its caller does not read. */
  readonly cancelStalled: () => void;
  /**
   * Resolves with the number of bytes of the offered result that were requested, once that exceeds the given number.
   * @throws the signal's reason when it is aborted
   */
  readonly whenRequested: (beyondByte: number) => Promise<number>;
  readonly log: Logger;
  /** Absent for lines of batches. */
  readonly facts?: RunFacts;
  /**
   * For durable jobs: marks the job as active. Await it before calling a vendor.
   * @throws the signal's reason if the job must not run because it has ended or another worker has it
   */
  readonly begin?: () => Promise<void>;
  /** For durable jobs: reports which fraction of the job is done, from 0 to 1. */
  readonly progress?: (done: number) => void;
  /** For lines of batches. */
  readonly line?: LineEnd;
}

/** The class of the calls that are made for a run. */
export function callClassOfRun(
  { line }: Pick<RequestRun, 'line'>,
  { jobAttempt }: Pick<AdmittedRequest, 'jobAttempt'>,
): CallClass {
  if (line !== undefined) return 'batch';
  return jobAttempt === undefined ? 'interactive' : 'job';
}

/** Those who want to know about the calls that are made for a run. */
export const observersOf = ({ facts }: Pick<RequestRun, 'facts'>): readonly CallObserver[] =>
  facts === undefined ? [] : [facts];

/** Creates the context that the vendor calls of one run share. The creator must release its media at the end. */
export function createCallContext(
  { media }: JobDeps,
  request: AdmittedRequest,
  { signal, log }: Pick<RequestRun, 'signal' | 'log'>,
): CallContext & { readonly media: RequestMedia } {
  return {
    signal,
    accountId: request.accountId,
    log,
    media: createMediaLoader(media, request),
    recalled: new Map(),
  };
}

/** The abort reason of a run whose caller is gone. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
  /** Whether the response cannot reach the caller because of an internal error, although the caller is connected. */
  readonly isOurFault: boolean;

  constructor(isOurFault = false) {
    super();
    this.isOurFault = isOurFault;
  }
}

/** The abort reason of a run whose caller did not read. Charged like a disconnect. */
export class CallerStalled extends CallerGone {}

/** The abort reason of a run whose durable job was cancelled. Charged like a disconnect. */
export class JobCancelled extends CallerGone {
  /** Whether it was cancelled because the time of its Cancel-After was over. */
  readonly isOverdue: boolean;

  constructor({ isOverdue = false } = {}) {
    super();
    this.isOverdue = isOverdue;
  }
}

/** Whether a run was cancelled because its caller disconnected, and not because of an internal error. */
export function hasCallerDisconnected({ reason }: AbortSignal): boolean {
  return reason instanceof CallerGone && !reason.isOurFault;
}

/** The abort reason of a run that another run of the same request has replaced. The new run settles and replies. */
export class RunReplaced extends Error {
  override readonly name = 'RunReplaced';
}

/** The abort reason of a run whose account was banned. The run ends immediately, like a failed one. */
export class AccountBanned extends AppError {
  constructor() {
    super('account_banned');
  }
}

export function isReplaced({ signal }: Pick<RequestRun, 'signal'>): boolean {
  return signal.reason instanceof RunReplaced;
}

/**
 * Creates the signal for a vendor call that costs the same whether or not its caller waits for it. The call continues
 * when the caller disconnects. With `outlastsCancellation`, for a call that several requests share, it also continues
 * when a durable job is cancelled. A ban aborts it, and so does another run of the request, which makes a new call.
 */
export function createVendorSignal(
  { signal }: Pick<RequestRun, 'signal'>,
  { outlastsCancellation = false } = {},
): AbortSignal {
  const stop = new AbortController();
  const onAbort = (): void => {
    const { reason } = signal;
    const continues =
      reason instanceof CallerGone && (outlastsCancellation || !(reason instanceof JobCancelled));
    if (!continues) stop.abort(reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return stop.signal;
}

/** The error for a request that ran but could not be settled, so that its caller does not wait forever. */
export const notSettled = {
  code: 'service_unavailable',
  message: 'The cost of the request could not be recorded.',
  isPossiblyCharged: true,
} as const;

/**
 * Adds to an error of ours whether its request was charged nevertheless, for what a model had generated. The text of a
 * vendor's rejection already says so.
 */
export const withCharge = (error: ErrorPayload, isCharged: boolean): ErrorPayload =>
  isCharged && errorKinds[error.code].status >= 500 ? { ...error, isPossiblyCharged: true } : error;

/** Returns the code and message of a failure for the caller and the log, and the invalid fields. */
export function describeFailure(error: unknown): ErrorPayload {
  if (error instanceof AppError) {
    const { code, publicMessage: message, issues, headers, isExposed } = error;
    return {
      code,
      message,
      ...(issues.length > 0 && { issues }),
      ...(isExposed && { expose: true }),
      ...(Object.keys(headers).length > 0 && { headers }),
    };
  }
  if (error instanceof CallerGone) return { code: 'job_cancelled', message: describeCaller(error) };
  return { code: 'internal_error', message: new AppError('internal_error').publicMessage };
}

/** Returns why a request failed, for the log. Null if the request itself was wrong. */
export function findFailureReason(error: unknown): string | null {
  return error instanceof AppError && error.status >= 500 ? toLogReason(error) : null;
}

function describeCaller(error: CallerGone): string {
  if (error instanceof JobCancelled) {
    const reason = error.isOverdue
      ? 'The job was cancelled because the time of its Cancel-After was over.'
      : 'The job was cancelled.';
    return `${reason} You are charged only for work that was already done; see cost_request for the amount.`;
  }
  if (error instanceof CallerStalled)
    return 'The stream was closed because the client stopped reading it. Read streams as they arrive.';
  return error.isOurFault
    ? 'The response could not be delivered because of a fault in the gateway. Send the request again.'
    : 'The connection was closed before the response was complete. Increase the timeout of the client, or send an ' +
        'Idempotency-Key to retrieve the response later.';
}

/**
 * Logs and returns the error for a model that is in the api process's catalog but not in this worker's: the catalog
 * has just changed, or the two processes use different catalogs, which the operator must fix. The caller may retry:
 * once the change has reached both processes, the request is either served or rejected.
 */
export function missingModel({ model }: AdmittedRequest, { log }: RequestRun): AppError {
  log.error({ model }, 'requested model is not in the catalog of this worker');
  return new AppError('service_unavailable');
}

/**
 * Whether a request failed because of its model, including when no call was made because no upstream was
 * available. Such failures are counted in logs and stats.
 */
export function isModelFailure(failure: { readonly code: ErrorCode } | null): boolean {
  return failure?.code === 'upstream_error';
}
