// decision 0023
import { setTimeout as delay } from 'node:timers/promises';
import { maxInlineBytes } from '../../shared/work/queue/payload-limits.ts';
import type { HeartbeatRequest } from '../../shared/money/reservation-store.ts';
import type { AfterSettlement } from '../../shared/work/settlement/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import { pieceBytes } from '../../shared/work/replies/frame.ts';
import type { StoringRequest } from '../../shared/work/replies/response-store.ts';
import type { JobDeps, RequestRun } from './job-context.ts';

/**
 * Sends a complete response: in one frame if it fits, otherwise through the response store if it is stored, otherwise
 * in pieces as they are requested. Resolves when it has been sent, or when nobody waits for it any more.
 * @param parts the bytes of the response, in order
 */
export async function sendResult(
  dependencies: Pick<JobDeps, 'responses' | 'mover' | 'maxSendingMs'>,
  request: Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'jobAttempt'>,
  run: RequestRun,
  parts: readonly Buffer[],
): Promise<AfterSettlement | void> {
  if (run.line !== undefined) {
    run.line.respond(parts);
    return;
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const { jobAttempt } = request;
  if (jobAttempt !== undefined)
    return await storeJobResponse(dependencies, { ...request, jobAttempt }, Buffer.concat(parts, length));
  if (length <= maxInlineBytes) run.reply.result(Buffer.concat(parts, length));
  else if (request.claimHash === null) await sendPieces(run, parts, length, dependencies.maxSendingMs);
  else await storeResponse(dependencies, request, run, Buffer.concat(parts, length));
}

/**
 * Stores the response of a durable job, and resolves once it can be read. The job is reported as succeeded only after
 * that.
 * @returns the work to do after settlement; an attempt that does not settle must not move anything
 * @throws AppError `too_many_jobs` if no store accepts the response
 */
async function storeJobResponse(
  { responses, mover }: Pick<JobDeps, 'responses' | 'mover'>,
  { requestId, accountId, jobAttempt }: StoringRequest,
  bytes: Buffer,
): Promise<AfterSettlement> {
  const request = { requestId, accountId, jobAttempt };
  // The vendor bills the response, so wait out an outage; the settlement that follows waits for Redis as well. If a
  // frame is stored twice because the first reply was lost, it is read once. Nothing cuts the wait short: the
  // settlement decides whether this worker still has the job.
  const saved = await retryThroughOutage(() => responses.keep(request, bytes));
  return () => {
    if ('size' in saved) mover.queueFrames(request, saved.size);
    else if (saved.stored.in === 'redis') mover.queueResponse(request, bytes.length);
  };
}

async function storeResponse(
  { responses, mover }: Pick<JobDeps, 'responses' | 'mover'>,
  request: HeartbeatRequest,
  { reply, log }: RequestRun,
  bytes: Buffer,
): Promise<void> {
  try {
    const stored = await responses.put(request, bytes);
    if (stored.in === 'redis') mover.queueResponse(request, stored.bytes);
    reply.stored(stored);
  } catch (error) {
    // The request is settled. Without a reply, its callers would wait until this worker exits.
    log.error({ err: error }, 'storing a response failed');
    const { code, publicMessage } = error instanceof AppError ? error : new AppError('service_unavailable');
    reply.error({ code, message: publicMessage, isPossiblyCharged: true });
  }
}

async function sendPieces(
  run: RequestRun,
  parts: readonly Buffer[],
  length: number,
  maxSendingMs = defaultMaxSendingMs,
): Promise<void> {
  const { reply, signal, log } = run;
  reply.offered(length);
  let sent = 0;
  let requestedBytes = 0;
  try {
    for (const piece of cutPieces(parts)) {
      const end = Math.min(length, sent + pieceBytes);
      while (requestedBytes < end) requestedBytes = await run.whenRequested(requestedBytes);
      await sendWithRetries(reply.piece(piece), run, maxSendingMs);
      sent = end;
    }
  } catch (error) {
    if (signal.aborted) return;
    // The request is settled. Without a reply, its caller would wait for the remaining pieces until this worker exits.
    log.warn({ err: error }, 'sending a response failed');
    reply.error({
      code: 'service_unavailable',
      message: 'The response could not be delivered.',
      isPossiblyCharged: true,
    });
  }
}

/** A lost connection is usually back within a second or two. This is long enough for a Redis restart. */
const defaultMaxSendingMs = 30_000;
const retryMs = { first: 100, max: 2_000 };

/**
 * Retries, so that a response that the vendor bills is not lost with a connection.
 * @throws the last error, if sending keeps failing for too long
 */
async function sendWithRetries(
  send: () => Promise<void>,
  { signal }: RequestRun,
  maxSendingMs: number,
): Promise<void> {
  const startedAtMs = performance.now();
  for (let pauseMs = retryMs.first; ; pauseMs = Math.min(retryMs.max, 2 * pauseMs)) {
    try {
      await send();
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (performance.now() - startedAtMs > maxSendingMs) throw error;
      await delay(pauseMs, undefined, { signal });
    }
  }
}

/** Yields views of the parts, grouped into pieces of exactly `size` bytes, except for the last. */
export function* cutPieces(parts: readonly Buffer[], size = pieceBytes): Generator<Buffer[]> {
  let piece: Buffer[] = [];
  let capacity = size;
  for (const part of parts) {
    let at = 0;
    while (at < part.length) {
      const slice = part.subarray(at, at + capacity);
      piece.push(slice);
      at += slice.length;
      capacity -= slice.length;
      if (capacity > 0) continue;
      yield piece;
      piece = [];
      capacity = size;
    }
  }
  if (piece.length > 0) yield piece;
}
