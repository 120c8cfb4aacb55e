import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { AppError, type ErrorCode } from '../../shared/contract/errors.ts';
import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import type { AnswerStore } from '../../shared/reply/answer-store.ts';
import type { ReplyWriter } from '../../shared/reply/reply-channel.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { EmbeddingLines } from '../embeddings/embedding-lines.ts';
import { createMediaLoader, type MediaSources } from '../media/media-loader.ts';
import type { Routing } from '../routing/call-route.ts';
import type { CallContext } from '../upstreams/upstream.ts';
import type { TurnMemoryStore } from './turn-memory-store.ts';

/** What every job function is handed. */
export interface JobDependencies extends FinishDependencies {
  readonly catalog: CatalogStore;
  readonly routing: Routing;
  readonly embeddings: EmbeddingLines;
  readonly turns: TurnMemoryStore;
  readonly payloads: PayloadStore;
  readonly answers: AnswerStore;
  readonly objects: ObjectStore;
  readonly media: MediaSources;
  readonly log: Logger;
  readonly workerId: string;
}

/** One request's run: how it answers, and how its caller reaches it. */
export interface RequestRun {
  readonly reply: ReplyWriter;
  /** Aborted when the caller left or the process must stop. */
  readonly signal: AbortSignal;
  /** Null while the caller keeps up, else what resolves when it has caught up. */
  readonly whenWanted: () => Promise<void> | null;
  /**
   * Up to which byte the result that was offered is asked for, once that is more than this.
   * @throws the signal's reason
   */
  readonly whenAsked: (beyondByte: number) => Promise<number>;
  readonly log: Logger;
}

/** What the calls of one request's run share. */
export function createCallContext(
  { media, turns }: JobDependencies,
  { accountId }: AdmittedRequest,
  { signal, log }: Pick<RequestRun, 'signal' | 'log'>,
): CallContext {
  return { signal, log, media: createMediaLoader(media), recall: (ids) => turns.recall(accountId, ids) };
}

/** The reason of a run's signal when its caller has gone. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

/** The reason of a run's signal when another run of the same request has begun here: that one settles and answers. */
export class RunReplaced extends Error {
  override readonly name = 'RunReplaced';
}

export function isReplaced({ signal }: RequestRun): boolean {
  return signal.reason instanceof RunReplaced;
}

/** What a caller is told whose request ran and could not be settled: whoever waits for it must hear of its end. */
export const notSettled = {
  code: 'service_unavailable',
  message: 'The request could not be settled.',
} as const;

/** The code and the text under which a failure is told and logged. */
export function describeFailure(error: unknown): { code: ErrorCode; message: string } {
  if (error instanceof AppError) return { code: error.code, message: error.publicMessage };
  if (error instanceof CallerGone)
    return { code: 'job_cancelled', message: 'The caller left before the end.' };
  return { code: 'internal_error', message: new AppError('internal_error').publicMessage };
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
