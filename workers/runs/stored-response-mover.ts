import { setTimeout as delay } from 'node:timers/promises';
import { FairQueue } from '../../shared/fairness/fair-queue.ts';
import { maxInlineBytes } from '../../shared/work/queue/payload-limits.ts';
import type { ResponseStore } from '../../shared/work/replies/response-store.ts';
import type { StoredPart, StoredRequest, StoredSize } from '../../shared/work/replies/stored-frames-store.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';

/** Moving a smaller response saves little, because the entry that remains in Redis is nearly as large. */
const minMovedBytes = 1_024;
const maxConcurrentMoves = 4;
/** Any further responses of an account stay in Redis until they expire. */
const maxWaitingPerAccount = 1_000;
const maxWaiting = 100_000;
const retryMs = { first: 1_000, max: 30_000 };

interface Move {
  readonly part: StoredPart;
  readonly request: StoredRequest;
  readonly bytes: number;
}

/**
 * Moves complete stored responses from Redis to the object store in the background, so that callers do not wait for it.
 * While the object store is unavailable, the responses are queued here; accounts take turns. If the worker dies, the
 * queued responses stay in Redis until they expire.
 */
export class StoredResponseMover implements Running {
  readonly #responses: Pick<ResponseStore, 'move'>;
  readonly #log: Logger;
  readonly #queuedMoves = new FairQueue<Move>();
  readonly #loops = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #runningLoops = 0;
  #pauseMs = 0;

  constructor(responses: Pick<ResponseStore, 'move'>, log: Logger) {
    this.#responses = responses;
    this.#log = log;
  }

  /** Queues the complete frames of a request. Short responses stay in Redis, unless their account has many. */
  queueFrames(request: StoredRequest, { bytes, isAboveMoveThreshold }: StoredSize): void {
    const minBytes = isAboveMoveThreshold ? minMovedBytes : maxInlineBytes;
    if (bytes > minBytes) this.#add({ part: 'frames', request, bytes });
  }

  /** Queues a whole response that is in Redis because the object store did not accept it. */
  queueResponse(request: StoredRequest, bytes: number): void {
    this.#add({ part: 'answer', request, bytes });
  }

  /** Stops once the running moves have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
  }

  #add(move: Move): void {
    const { accountId } = move.request;
    if (this.#stopping.signal.aborted || this.#queuedMoves.size >= maxWaiting) return;
    if (this.#queuedMoves.countOf(accountId) >= maxWaitingPerAccount) return;
    this.#queuedMoves.add(accountId, move);
    if (this.#runningLoops >= maxConcurrentMoves) return;
    this.#runningLoops += 1;
    const loop = this.#run();
    this.#loops.add(loop);
    runInBackground(
      loop.finally(() => this.#loops.delete(loop)),
      'moving stored responses',
      this.#log,
    );
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let next = this.#queuedMoves.peek(); next !== undefined; next = this.#queuedMoves.peek()) {
      const move = this.#queuedMoves.serve(next);
      if (this.#pauseMs > 0) await delay(this.#pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      await this.#move(move);
    }
    this.#runningLoops -= 1;
  }

  async #move(move: Move): Promise<void> {
    const { requestId } = move.request;
    try {
      await this.#responses.move(move.part, move.request, move.bytes);
      this.#pauseMs = 0;
    } catch (error) {
      if (this.#pauseMs === 0) {
        this.#log.warn(
          { requestId, err: error },
          'stored responses stay in Redis until the object store is back',
        );
      }
      this.#pauseMs = Math.min(retryMs.max, Math.max(retryMs.first, 2 * this.#pauseMs));
      this.#queuedMoves.add(move.request.accountId, move);
    }
  }
}
