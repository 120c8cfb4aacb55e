import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { ErrorCode } from '../../shared/contract/error-kinds.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import type { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import type { ReasoningStore } from '../../shared/reasoning/reasoning-store.ts';
import type { AnswerStore } from '../../shared/reply/answer-store.ts';
import type { ErrorPayload } from '../../shared/reply/error-payload.ts';
import type { ReplyWriter } from '../../shared/reply/reply-channel.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { EmbeddingLines } from '../embeddings/embedding-lines.ts';
import { createMediaLoader, type MediaSources, type RequestMedia } from '../media/media-loader.ts';
import type { RemakeImage } from '../media/remake-image.ts';
import type { Routing } from '../routing/call-route.ts';
import type { CallContext } from '../upstreams/upstream.ts';
import type { KeptAnswerMover } from './kept-answer-mover.ts';

/** What every job function is handed. */
export interface JobDependencies extends FinishDependencies {
  readonly catalog: CatalogStore;
  readonly routing: Routing;
  readonly embeddings: EmbeddingLines;
  readonly reasoning: ReasoningStore;
  readonly payloads: PayloadStore;
  /** What large jobs hold from before they are read until they are done, by account. */
  readonly jobMemory: FairBudget;
  readonly answers: AnswerStore;
  readonly mover: KeptAnswerMover;
  readonly objects: ObjectStore;
  readonly media: MediaSources;
  readonly remakeImage: RemakeImage;
  /** Bytes that whole answers hold of this process until they have been sent. */
  readonly responseMemory: FairBudget;
  readonly log: Logger;
  readonly workerId: string;
}

/** One request's run: how it answers, and how its caller reaches it. */
export interface RequestRun {
  readonly reply: ReplyWriter;
  /** Aborted when nobody waits any more, the account was banned, or another run has taken this one's place. */
  readonly signal: AbortSignal;
  /** Aborted when the process is about to end: what is read on for callers who left must be settled now. */
  readonly stopping: AbortSignal;
  /** Null while the caller keeps up, else what resolves when it has caught up. */
  readonly whenWanted: () => Promise<void> | null;
  /** Ends the run because its caller does not read. */
  readonly endStalled: () => void;
  /**
   * Up to which byte the result that was offered is asked for, once that is more than this.
   * @throws the signal's reason
   */
  readonly whenAsked: (beyondByte: number) => Promise<number>;
  readonly log: Logger;
  /**
   * Of a durable job: called when a vendor is about to be asked for it, which it must wait for. From then on it is active.
   * @throws the signal's reason where the job must not run: it has ended, or another worker has it
   */
  readonly begin?: () => Promise<void>;
  /** Of a durable job: how much of it is done, from 0 to 1. */
  readonly progress?: (done: number) => void;
}

/** What the calls of one request's run share. Whoever has pictures loaded releases them at its end. */
export function createCallContext(
  { media }: JobDependencies,
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

/** The reason of a run's signal when its caller has gone. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
  /** The caller did not leave: its answer cannot reach it any more, by a fault of ours. */
  readonly isOurFault: boolean;

  constructor(isOurFault = false) {
    super();
    this.isOurFault = isOurFault;
  }
}

/** The reason of a run's signal when its caller did not read: charged as one who left. */
export class CallerStalled extends CallerGone {}

/** The reason of a run's signal when its durable job was cancelled: charged as a caller who left. */
export class JobCancelled extends CallerGone {}

/** Whether a run ended because its caller left, and not by a fault of ours. */
export function hasCallerLeft({ reason }: AbortSignal): boolean {
  return reason instanceof CallerGone && !reason.isOurFault;
}

/** The reason of a run's signal when another run of the same request has begun here: that one settles and answers. */
export class RunReplaced extends Error {
  override readonly name = 'RunReplaced';
}

/** The reason of a run's signal when its account was banned: the run ends as a broken one does, and at once. */
export class AccountBanned extends AppError {
  constructor() {
    super('account_banned');
  }
}

export function isReplaced({ signal }: Pick<RequestRun, 'signal'>): boolean {
  return signal.reason instanceof RunReplaced;
}

/**
 * For the vendor's call of a request that costs the same whether or not its caller waits for it: a caller who leaves does
 * not end it, nor, where it is shared with others, does one who cancels his durable job. A ban does, and so does another run of the request, which asks anew.
 */
export function createVendorSignal(
  { signal }: Pick<RequestRun, 'signal'>,
  { outlastsCancelling = false } = {},
): AbortSignal {
  const stop = new AbortController();
  const onAbort = (): void => {
    const { reason } = signal;
    const goesOn = reason instanceof CallerGone && (outlastsCancelling || !(reason instanceof JobCancelled));
    if (!goesOn) stop.abort(reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return stop.signal;
}

/** What a caller is told whose request ran and could not be settled: whoever waits for it must hear of its end. */
export const notSettled = {
  code: 'service_unavailable',
  message: 'The request could not be settled.',
} as const;

/** The code and the text under which a failure is told and logged, and the fields that were at fault. */
export function describeFailure(error: unknown): ErrorPayload {
  if (error instanceof AppError) {
    const { code, publicMessage: message, issues } = error;
    return issues.length === 0 ? { code, message } : { code, message, issues };
  }
  if (error instanceof CallerGone) return { code: 'job_cancelled', message: describeCaller(error) };
  return { code: 'internal_error', message: new AppError('internal_error').publicMessage };
}

function describeCaller(error: CallerGone): string {
  if (error instanceof JobCancelled)
    return 'The job was cancelled while it ran. What the vendor had done by then is charged: cost_request says how much.';
  if (error instanceof CallerStalled)
    return 'The stream was ended because its caller did not read it for too long. Read streams as they come.';
  return error.isOurFault
    ? 'The answer could not reach its caller any more, by a fault of the gateway. Send the request again.'
    : 'The connection was closed before the answer was complete. Give the client a longer timeout, or send an ' +
        'Idempotency-Key to ask for the answer later.';
}

/**
 * The api that admitted the request knows its model, and this worker does not: the file changed in between, or the two
 * read different ones, which an operator must hear of. Sent again, the request is served or refused for good.
 */
export function missingModel({ model }: AdmittedRequest, { log }: RequestRun): AppError {
  log.error({ model }, 'a request is for a model that is not in the catalog of this worker');
  return new AppError('service_unavailable');
}

/**
 * Whether a request is one that its model failed: also where no call was made, since no upstream of the model could be
 * called just then. Such a request is told of in logs and figures.
 */
export function isModelsFailure(failure: { readonly code: ErrorCode } | null): boolean {
  return failure?.code === 'upstream_error';
}
