import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { UpstreamError } from '../upstream.ts';
import { cutHead } from './encoder-input.ts';
import { ENCODER_DIMENSIONS } from './sentence-model.ts';

/** Bounds of a batch: more gains nothing and takes memory, and a caller that leaves occupies its thread for one. */
const BATCH_INPUTS = 16;
const BATCH_CHARS = 4096;
const VECTOR_BYTES = ENCODER_DIMENSIONS * 4;
/** A thread holds the weights, about 150 MB; one that nobody needed for so long is ended, and started anew in 0.3 s. */
const IDLE_MS = 30_000;

export interface TextEncoderOptions {
  /** One a core but one, at most two, unless set. */
  readonly threads?: number | undefined;
  /** How long a thread without work is kept. */
  readonly idleMs?: number | undefined;
  /** Told of each thread as it is started: for logs and for tests that end one. */
  readonly onThread?: ((thread: Worker) => void) | undefined;
}

/** Sentence vectors, computed in threads that are started by the first call and replaced when they die. */
export interface SentenceEncoder {
  /** Unit vectors of 512 float32 each, little-endian, in the order of `texts`. Rejects at once on abort. */
  encode(texts: readonly string[], signal: AbortSignal): Promise<Buffer>;
  close(): Promise<void>;
}

interface Batch {
  readonly texts: readonly string[];
  readonly call: Call;
  /** Where each text's vector goes in the call's answer. */
  readonly places: readonly number[];
  isSecondTry: boolean;
}

interface Call {
  readonly vectors: Buffer;
  batchesLeft: number;
  isOver: boolean;
  finish(): void;
  fail(reason: unknown): void;
}

export function createTextEncoder(options: TextEncoderOptions = {}): SentenceEncoder {
  const maxThreads = options.threads ?? Math.max(1, Math.min(2, availableParallelism() - 1));
  const threads = new Map<Worker, Batch | null>();
  /** Batches of each call that wait: calls take turns, so that a long one does not hold up a short one. */
  const waiting: Batch[][] = [];
  let isClosed = false;
  let idleTimer: NodeJS.Timeout | null = null;

  /** From the last answer on; any call in between puts it off. */
  function endIdleThreadsLater(): void {
    if (idleTimer !== null) clearTimeout(idleTimer);
    idleTimer = setTimeout(() => {
      for (const [thread, batch] of threads) {
        if (batch !== null) continue;
        threads.delete(thread);
        void thread.terminate();
      }
    }, options.idleMs ?? IDLE_MS);
    idleTimer.unref();
  }

  function takeBatch(): Batch | undefined {
    for (;;) {
      const batches = waiting.shift();
      const batch = batches?.shift();
      if (batches === undefined || batch === undefined) return undefined;
      if (batch.call.isOver) continue;
      if (batches.length > 0) waiting.push(batches);
      return batch;
    }
  }

  function assignBatches(): void {
    while (waiting.length > 0) {
      const idle = [...threads].find(([, batch]) => batch === null)?.[0];
      if (idle === undefined && threads.size >= maxThreads) return;
      const batch = takeBatch();
      if (batch === undefined) return;
      const thread = idle ?? startThread();
      threads.set(thread, batch);
      // An idle thread does not keep the process alive, one at work does.
      thread.ref();
      thread.postMessage(batch.texts, []);
    }
  }

  function startThread(): Worker {
    const thread = new Worker(new URL('./encoder-thread.js', import.meta.url), { name: 'text-encoder' });
    let cause: unknown;
    thread.on('message', (vectors: ArrayBuffer) => {
      const batch = threads.get(thread);
      if (batch === undefined || batch === null) return;
      threads.set(thread, null);
      thread.unref();
      storeVectors(batch, vectors);
      assignBatches();
      endIdleThreadsLater();
    });
    thread.on('error', (error) => {
      cause = error;
    });
    thread.on('exit', () => {
      const batch = threads.get(thread);
      threads.delete(thread);
      if (batch !== undefined && batch !== null) retryOrFail(batch, cause);
      assignBatches();
    });
    threads.set(thread, null);
    options.onThread?.(thread);
    return thread;
  }

  function retryOrFail(batch: Batch, cause: unknown): void {
    if (batch.isSecondTry || isClosed) {
      batch.call.fail(new UpstreamError('unavailable', 'the encoder stopped at work', { cause }));
      return;
    }
    batch.isSecondTry = true;
    waiting.unshift([batch]);
  }

  return {
    async encode(texts, signal) {
      signal.throwIfAborted();
      if (isClosed) throw new UpstreamError('unavailable', 'the encoder is closed');
      if (texts.length === 0) return Buffer.alloc(0);
      return new Promise<Buffer>((resolve, reject) => {
        const call: Call = {
          vectors: Buffer.allocUnsafeSlow(texts.length * VECTOR_BYTES),
          batchesLeft: 0,
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
        const batches = planBatches(texts, call);
        call.batchesLeft = batches.length;
        waiting.push(batches);
        assignBatches();
      });
    },

    async close() {
      isClosed = true;
      if (idleTimer !== null) clearTimeout(idleTimer);
      for (const batch of waiting.splice(0).flat()) {
        batch.call.fail(new UpstreamError('unavailable', 'the encoder is closed'));
      }
      await Promise.all([...threads.keys()].map((thread) => thread.terminate()));
    },
  };
}

/** Inputs of similar length go together, as each is filled up to the longest of its batch. */
function planBatches(texts: readonly string[], call: Call): Batch[] {
  const inputs = texts.map((text, place) => ({ text: cutHead(text), place }));
  inputs.sort((a, b) => a.text.length - b.text.length);
  const batches: Batch[] = [];
  let batchTexts: string[] = [];
  let places: number[] = [];
  for (const { text, place } of inputs) {
    const isFull = places.length >= BATCH_INPUTS || (places.length + 1) * text.length > BATCH_CHARS;
    if (isFull || batches.length === 0) {
      batchTexts = [];
      places = [];
      batches.push({ texts: batchTexts, call, places, isSecondTry: false });
    }
    batchTexts.push(text);
    places.push(place);
  }
  return batches;
}

function storeVectors(batch: Batch, vectors: ArrayBuffer): void {
  const { call, places } = batch;
  if (call.isOver) return;
  const rows = Buffer.from(vectors);
  for (const [row, place] of places.entries()) {
    rows.copy(call.vectors, place * VECTOR_BYTES, row * VECTOR_BYTES, (row + 1) * VECTOR_BYTES);
  }
  call.batchesLeft -= 1;
  if (call.batchesLeft === 0) call.finish();
}
