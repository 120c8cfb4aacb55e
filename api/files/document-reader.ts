import { Worker } from 'node:worker_threads';
import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { DocumentAnswer, DocumentReply, DocumentRequest } from './file-content.ts';

/** Documents that are read at once, each of another account. */
const maxThreads = 2;
/** A thousand pages of plain text take a second or two, and more on a busy machine. */
const defaultTimeoutMs = 30_000;
/** A caller that waits longer is told to come back. */
const waitMs = 60_000;
/** Starting a thread takes a tenth of a second; one that is kept holds some 30 MB. */
const idleMs = 30_000;
const maxHeapMb = 256;
/** Memory of WebAssembly never shrinks: a thread that grew beyond this is not kept. */
const maxKeptBytes = 128 * 1024 * 1024;

interface IdleThread {
  readonly worker: Worker;
  readonly endTimer: NodeJS.Timeout;
}

/**
 * Reads documents of callers on threads, within bounds of time and memory, accounts taking turns: a document that is
 * made to cost delays nobody but its own account.
 */
export class DocumentReader {
  readonly #slots = new FairBudget({ capacity: maxThreads });
  readonly #timeoutMs: number;
  readonly #idle: IdleThread[] = [];
  readonly #working = new Set<Worker>();

  constructor(timeoutMs = defaultTimeoutMs) {
    this.#timeoutMs = timeoutMs;
  }

  /** @throws AppError `queue_full` where there is no thread in time; the signal's reason */
  async read(accountId: string, request: DocumentRequest, signal: AbortSignal): Promise<DocumentAnswer> {
    const slot = await this.#slots.acquire(accountId, 1, { signal, waitMs, refuse: refuseDocument });
    try {
      return await this.#run(request, signal);
    } finally {
      slot.release();
    }
  }

  async close(): Promise<void> {
    const workers = [...this.#working, ...this.#idle.map(({ worker }) => worker)];
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  async #run(request: DocumentRequest, signal: AbortSignal): Promise<DocumentAnswer> {
    const worker = this.#takeThread();
    this.#working.add(worker);
    try {
      const reply = await ask(worker, request, this.#timeoutMs, signal);
      if (reply === null) {
        // The slot is free only once the thread has ended and its memory is back.
        await worker.terminate();
        signal.throwIfAborted();
        return { fault: 'too_large' };
      }
      if (reply.memoryBytes <= maxKeptBytes) this.#keep(worker);
      else await worker.terminate();
      return reply.answer;
    } finally {
      this.#working.delete(worker);
    }
  }

  #takeThread(): Worker {
    const idle = this.#idle.pop();
    if (idle === undefined) return this.#startThread();
    clearTimeout(idle.endTimer);
    idle.worker.ref();
    return idle.worker;
  }

  #keep(worker: Worker): void {
    worker.unref();
    const endTimer = setTimeout(() => void worker.terminate(), idleMs);
    endTimer.unref();
    this.#idle.push({ worker, endTimer });
  }

  #startThread(): Worker {
    const worker = startThread();
    worker.once('exit', () => {
      const index = this.#idle.findIndex((idle) => idle.worker === worker);
      if (index < 0) return;
      const [idle] = this.#idle.splice(index, 1);
      clearTimeout(idle!.endTimer);
    });
    return worker;
  }
}

function startThread(): Worker {
  const worker = new Worker(new URL('./document-thread.js', import.meta.url), {
    name: 'document-reader',
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
    // PDFium complains of bad documents there.
    stdout: true,
    stderr: true,
  });
  // Whoever waits for the thread hears of its end; without a listener an error would end the process.
  worker.on('error', () => undefined);
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

/** Null where the thread died, took too long, or nobody wants the answer any more. */
async function ask(
  worker: Worker,
  request: DocumentRequest,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<DocumentReply | null> {
  return await new Promise((resolve) => {
    const settle = (reply: DocumentReply | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      worker.off('message', settle).off('exit', giveUp);
      resolve(reply);
    };
    const giveUp = (): void => settle(null);
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener('abort', giveUp);
    worker.on('message', settle).on('exit', giveUp);
    worker.postMessage(request, []);
  });
}

const refuseDocument = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many of your files are being read. Wait for the answers under way, and try again shortly.',
  });
