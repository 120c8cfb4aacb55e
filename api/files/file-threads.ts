import { Worker } from 'node:worker_threads';
import type { FileReply, FileRequest } from './file-content.ts';

/** Starting a thread takes half a second with the vocabulary; one that is kept holds some 100 MB. */
const idleMs = 30_000;
/** The vocabularies of all tokenizers take 150 of them. */
const maxHeapMb = 384;
/** Memory of WebAssembly never shrinks: a thread that grew beyond this is not kept. */
const maxKeptBytes = 128 * 1024 * 1024;

interface IdleThread {
  readonly worker: Worker;
  readonly endTimer: NodeJS.Timeout;
}

/** One file that is being read. */
export interface FileRun {
  /** Null where the thread died or took too long, or nobody wants the answer any more. */
  readonly reply: Promise<FileReply | null>;
  /** Resolves once the thread has no more to do with the file; where that was under way, it has ended. */
  stop(): Promise<void>;
}

/** Threads that read files; each reads one at a time. */
export class FileThreads {
  readonly #timeoutMs: number;
  readonly #idle: IdleThread[] = [];
  readonly #working = new Set<Worker>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  start(request: FileRequest, signal: AbortSignal): FileRun {
    const worker = this.#takeThread();
    this.#working.add(worker);
    const { reply, giveUp } = ask(worker, request, this.#timeoutMs, signal);
    const ended = reply.then(async (answer) => {
      if (answer !== null && answer.memoryBytes <= maxKeptBytes) this.#keep(worker);
      else await worker.terminate();
      this.#working.delete(worker);
    });
    return {
      reply,
      stop: async () => {
        giveUp();
        await ended;
      },
    };
  }

  async close(): Promise<void> {
    const workers = [...this.#working, ...this.#idle.map(({ worker }) => worker)];
    await Promise.all(workers.map((worker) => worker.terminate()));
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

interface Asked {
  readonly reply: Promise<FileReply | null>;
  /** Has the reply be null unless it has come. */
  readonly giveUp: () => void;
}

function ask(worker: Worker, request: FileRequest, timeoutMs: number, signal: AbortSignal): Asked {
  let giveUp = (): void => undefined;
  const reply = new Promise<FileReply | null>((resolve) => {
    const settle = (answer: FileReply | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      worker.off('message', settle).off('exit', giveUp);
      resolve(answer);
    };
    giveUp = () => settle(null);
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener('abort', giveUp);
    worker.on('message', settle).on('exit', giveUp);
    if (signal.aborted) giveUp();
    else worker.postMessage(request, []);
  });
  return { reply, giveUp };
}
