import { setTimeout as delay } from 'node:timers/promises';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { HeartbeatRequest } from '../../shared/billing/reservation-store.ts';
import type { AfterSettlement } from '../../shared/settlement/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import { throughOutage } from '../../shared/redis/through-outage.ts';
import { pieceBytes } from '../../shared/reply/frame.ts';
import type { StoredJob } from '../../shared/reply/response-store.ts';
import type { JobDeps, RequestRun } from './job-context.ts';

/**
 * Sends a whole response: in one frame if it fits, otherwise through the response store if it is kept,
 * otherwise in pieces as they are requested. Resolves when it is sent, or when nobody waits for it any more.
 * @param parts the bytes of the response, in order
 */
export async function sendResult(
  dependencies: Pick<JobDeps, 'answers' | 'mover'>,
  request: Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'jobAttempt'>,
  run: RequestRun,
  parts: readonly Buffer[],
): Promise<AfterSettlement | void> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const { jobAttempt } = request;
  if (jobAttempt !== undefined)
    return await keepResponse(dependencies, { ...request, jobAttempt }, Buffer.concat(parts, length));
  if (length <= maxInlineBytes) run.reply.result(Buffer.concat(parts, length));
  else if (request.claimHash === null) await sendPieces(run, parts, length);
  else await storeResponse(dependencies, request, run, Buffer.concat(parts, length));
}

/**
 * Resolves once the response of a durable job can be read. Only then is the job reported as succeeded.
 * @returns the work to do after settlement; an attempt that does not settle must not move anything
 * @throws AppError `too_many_jobs` if no store accepts it
 */
async function keepResponse(
  { answers, mover }: Pick<JobDeps, 'answers' | 'mover'>,
  { requestId, accountId, jobAttempt }: StoredJob,
  bytes: Buffer,
): Promise<AfterSettlement> {
  const request = { requestId, accountId, jobAttempt };
  // The vendor was paid for the response, and the settlement that follows waits for Redis as well. A frame
  // stored twice because the first reply was lost is read once. Nothing cuts the wait short: the settlement
  // decides whether the job is still this worker's.
  const kept = await throughOutage(() => answers.keep(request, bytes));
  return () => {
    if ('size' in kept) mover.frames(request, kept.size);
    else if (kept.stored.in === 'redis') mover.answer(request, bytes.length);
  };
}

async function storeResponse(
  { answers, mover }: Pick<JobDeps, 'answers' | 'mover'>,
  request: HeartbeatRequest,
  { reply, log }: RequestRun,
  bytes: Buffer,
): Promise<void> {
  try {
    const stored = await answers.put(request, bytes);
    if (stored.in === 'redis') mover.answer(request, stored.bytes);
    reply.stored(stored);
  } catch (error) {
    // The request is settled; without a reply its callers would wait for as long as this worker lives.
    log.error({ err: error }, 'a response could not be stored');
    const { code, publicMessage } = error instanceof AppError ? error : new AppError('service_unavailable');
    reply.error({ code, message: publicMessage });
  }
}

async function sendPieces(run: RequestRun, parts: readonly Buffer[], length: number): Promise<void> {
  const { reply, signal, log } = run;
  reply.offered(length);
  let sent = 0;
  let asked = 0;
  try {
    for (const piece of cutPieces(parts)) {
      const end = Math.min(length, sent + pieceBytes);
      while (asked < end) asked = await run.whenAsked(asked);
      await insist(reply.piece(piece), run);
      sent = end;
    }
  } catch (error) {
    if (signal.aborted) return;
    // The request is settled; without a reply its caller would wait for the rest for as long as this worker
    // lives.
    log.warn({ err: error }, 'a response could not be sent');
    reply.error({ code: 'service_unavailable', message: 'The answer was lost on its way.' });
  }
}

/** A lost connection is back within a second or two. This is long enough for a Redis restart. */
const maxInsistingMs = 30_000;
const againMs = { first: 100, most: 2_000 };

/**
 * Retries, so that a lost connection does not lose a response that is paid for.
 * @throws the last error, if sending keeps failing for too long
 */
async function insist(send: () => Promise<void>, { signal }: RequestRun): Promise<void> {
  const startedAtMs = performance.now();
  for (let pauseMs = againMs.first; ; pauseMs = Math.min(againMs.most, 2 * pauseMs)) {
    try {
      await send();
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (performance.now() - startedAtMs > maxInsistingMs) throw error;
      await delay(pauseMs, undefined, { signal });
    }
  }
}

/** Yields views of the parts, gathered into pieces of exactly `pieceBytes` except the last. */
export function* cutPieces(parts: readonly Buffer[], size = pieceBytes): Generator<Buffer[]> {
  let piece: Buffer[] = [];
  let room = size;
  for (const part of parts) {
    let at = 0;
    while (at < part.length) {
      const taken = part.subarray(at, at + room);
      piece.push(taken);
      at += taken.length;
      room -= taken.length;
      if (room > 0) continue;
      yield piece;
      piece = [];
      room = size;
    }
  }
  if (piece.length > 0) yield piece;
}
