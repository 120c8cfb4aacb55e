import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { UpstreamError } from '../upstream.ts';
import { EncoderQueue, type EncoderCall, type EncoderInput } from './encoder-queue.ts';
import { ENCODER_DIMENSIONS } from './sentence-model.ts';

const VECTOR_BYTES = ENCODER_DIMENSIONS * 4;
/**
 * One running and one queued batch, so that no thread waits for the main thread to read a result and form the next
 * batch.
 */
const BATCHES_AHEAD = 2;
/**
 * A thread that is idle for this long is stopped, because it holds the weights, about 150 MB. Starting a new one takes
 * 0.3 s.
 */
const IDLE_MS = 30_000;
const MAX_THREADS = 4;

export interface TextEncoderOptions {
  /** Defaults to one less than the number of cores, at most four. */
  readonly threads?: number | undefined;
  /** How long an idle thread keeps running. */
  readonly idleMs?: number | undefined;
  /** Called with each thread as it starts, for logs and for tests that kill one. */
  readonly onThread?: ((thread: Worker) => void) | undefined;
  /** Called with the reason when a thread dies; another one replaces it. */
  readonly onFault?: ((cause: unknown) => void) | undefined;
}

/** Computes sentence vectors in threads, which are started on demand and replaced when they die. */
export interface SentenceEncoder {
  /** Returns unit vectors of 512 little-endian float32 each, in the order of `texts`. Rejects immediately on abort. */
  encode(texts: readonly string[], signal: AbortSignal): Promise<Buffer>;
  close(): Promise<void>;
}

interface Call extends EncoderCall {
  readonly vectors: Buffer;
  remainingInputs: number;
  isOver: boolean;
  finish(): void;
  fail(reason: unknown): void;
}

interface Batch {
  readonly inputs: readonly EncoderInput<Call>[];
  readonly isRetry: boolean;
}

interface Thread {
  readonly worker: Worker;
  /** The first batch is running; the others wait behind it. */
  batches: Batch[];
  /** Whether the model is loaded. Until then it gets no batches, because another thread may be free sooner. */
  isReady: boolean;
}

export function createTextEncoder(options: TextEncoderOptions = {}): SentenceEncoder {
  const maxThreads = options.threads ?? Math.max(1, Math.min(MAX_THREADS, availableParallelism() - 1));
  const threads = new Set<Thread>();
  const queue = new EncoderQueue<Call>();
  /** Batches whose thread died. */
  const requeued: Batch[] = [];
  const onFault = (cause: unknown): void => options.onFault?.(cause);
  let isClosed = false;
  let idleTimer: NodeJS.Timeout | null = null;

  /** Called after each result, which restarts the timer. */
  function endIdleThreadsLater(): void {
    if (idleTimer !== null) clearTimeout(idleTimer);
    idleTimer = setTimeout(() => {
      for (const thread of threads) {
        if (!thread.isReady || thread.batches.length > 0) continue;
        threads.delete(thread);
        thread.worker.terminate().catch(onFault);
      }
    }, options.idleMs ?? IDLE_MS);
    idleTimer.unref();
  }

  function takeBatch(): Batch | undefined {
    for (let batch = requeued.shift(); batch !== undefined; batch = requeued.shift()) {
      if (batch.inputs.some(({ call }) => !call.isOver)) return batch;
    }
    const inputs = queue.take();
    return inputs.length > 0 ? { inputs, isRetry: false } : undefined;
  }

  function findLeastBusyThread(): Thread | undefined {
    let leastBusy: Thread | undefined;
    for (const thread of threads) {
      if (!thread.isReady || thread.batches.length >= BATCHES_AHEAD) continue;
      if (leastBusy === undefined || thread.batches.length < leastBusy.batches.length) leastBusy = thread;
    }
    return leastBusy;
  }

  function assignBatches(): void {
    for (let thread = findLeastBusyThread(); thread !== undefined; thread = findLeastBusyThread()) {
      const batch = takeBatch();
      if (batch === undefined) break;
      thread.batches.push(batch);
      // An idle thread does not keep the process alive; a busy one does.
      thread.worker.ref();
      thread.worker.postMessage(
        batch.inputs.map(({ text }) => text),
        [],
      );
    }
    startThreads();
  }

  /** Starts one thread per waiting batch, up to the limit. Threads that are still loading the model count as well. */
  function startThreads(): void {
    if (isClosed) return;
    let neededThreads = requeued.length + queue.batches;
    for (const { isReady } of threads) if (!isReady) neededThreads -= 1;
    for (; neededThreads > 0 && threads.size < maxThreads; neededThreads -= 1) startThread();
  }

  function startThread(): void {
    const worker = new Worker(new URL('./encoder-thread.js', import.meta.url), { name: 'text-encoder' });
    const thread: Thread = { worker, batches: [], isReady: false };
    let cause: unknown;
    worker.on('message', (vectors: ArrayBuffer | null) => {
      const batch = vectors === null ? undefined : thread.batches.shift();
      if (vectors === null) thread.isReady = true;
      else if (batch !== undefined) storeVectors(batch, vectors);
      assignBatches();
      if (thread.batches.length === 0) worker.unref();
      endIdleThreadsLater();
    });
    worker.on('error', (error) => {
      cause = error;
      onFault(error);
    });
    worker.on('exit', () => {
      if (threads.delete(thread)) requeueBatches(thread, cause);
      assignBatches();
    });
    threads.add(thread);
    options.onThread?.(worker);
  }

  /**
   * Requeues the batches of a dead thread. The running batch may have killed the thread; those queued behind it did
   * not.
   */
  function requeueBatches({ isReady, batches }: Thread, cause: unknown): void {
    const suspect = isReady ? batches.shift() : takeBatch();
    requeued.unshift(...batches);
    if (suspect === undefined) return;
    if (suspect.isRetry || isClosed) {
      const error = new UpstreamError('unavailable', 'an encoder thread died', { cause });
      for (const { call } of suspect.inputs) call.fail(error);
      return;
    }
    // Retry each call separately, so that a call that kills threads does not affect the others.
    for (const call of new Set(suspect.inputs.map((input) => input.call))) {
      const inputs = suspect.inputs.filter((input) => input.call === call);
      requeued.unshift({ inputs, isRetry: true });
    }
  }

  return {
    async encode(texts, signal) {
      signal.throwIfAborted();
      if (isClosed) throw new UpstreamError('unavailable', 'the encoder is closed');
      if (texts.length === 0) return Buffer.alloc(0);
      return new Promise<Buffer>((resolve, reject) => {
        const call: Call = {
          vectors: Buffer.allocUnsafeSlow(texts.length * VECTOR_BYTES),
          remainingInputs: texts.length,
          isOver: false,
          finish() {
            end();
            resolve(call.vectors);
          },
          fail(reason) {
            end();
            reject(reason);
          },
        };
        const end = (): void => {
          call.isOver = true;
          signal.removeEventListener('abort', onAbort);
        };
        const onAbort = (): void => call.fail(signal.reason);
        signal.addEventListener('abort', onAbort);
        queue.add(call, texts);
        assignBatches();
      });
    },

    async close() {
      isClosed = true;
      if (idleTimer !== null) clearTimeout(idleTimer);
      const error = new UpstreamError('unavailable', 'the encoder is closed');
      for (const call of queue.drain()) call.fail(error);
      for (const { inputs } of requeued.splice(0)) for (const { call } of inputs) call.fail(error);
      await Promise.all([...threads].map(({ worker }) => worker.terminate()));
    },
  };
}

function storeVectors({ inputs }: Batch, vectors: ArrayBuffer): void {
  const rows = Buffer.from(vectors);
  for (const [row, { call, place }] of inputs.entries()) {
    if (call.isOver) continue;
    rows.copy(call.vectors, place * VECTOR_BYTES, row * VECTOR_BYTES, (row + 1) * VECTOR_BYTES);
    call.remainingInputs -= 1;
    if (call.remainingInputs === 0) call.finish();
  }
}
