import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { FileProcessCrash, FileReply, FileRequest } from './file-content.ts';

const program = fileURLToPath(new URL('./file-process.js', import.meta.url));
/** Starting a process takes half a second including the vocabulary; an idle one holds some 150 MB. */
const idleMs = 30_000;
/** Heap limit. The vocabularies of all tokenizers take 150 MB of it. */
const maxHeapMb = 384;
/** WebAssembly memory never shrinks, so a process that grew beyond this is not reused. */
const maxReusableBytes = 128 * 1024 * 1024;

type FileMessage = FileReply | FileProcessCrash;

interface IdleProcess {
  readonly child: ChildProcess;
  readonly endTimer: NodeJS.Timeout;
}

/** A file being read. */
export interface FileRun {
  /**
   * Resolves to null if the process died or took too long, or if the run was stopped.
   * @throws AppError `service_unavailable` if no process could be started
   */
  readonly reply: Promise<FileReply | null>;
  /** Resolves once the process no longer works on the file. Kills the process if it is still working. */
  stop(): Promise<void>;
}

/** A pool of processes that read files, one at a time each. */
export class FileProcesses {
  readonly #timeoutMs: number;
  readonly #log: Pick<Logger, 'error'>;
  readonly #idle: IdleProcess[] = [];
  readonly #working = new Set<ChildProcess>();

  constructor(timeoutMs: number, log: Pick<Logger, 'error'>) {
    this.#timeoutMs = timeoutMs;
    this.#log = log;
  }

  start(request: FileRequest, signal: AbortSignal): FileRun {
    const child = this.#takeProcess();
    if (child.pid === undefined) return createFailedRun();
    this.#working.add(child);
    const { reply, resolveToNull } = sendRequest(child, request, this.#timeoutMs, signal);
    const ended = reply.then(async (settledReply) => {
      if (settledReply !== null && settledReply.memoryBytes <= maxReusableBytes) this.#keepIdle(child);
      else await end(child);
      this.#working.delete(child);
    });
    return {
      reply,
      stop: async () => {
        resolveToNull();
        await ended;
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#working, ...this.#idle.map(({ child }) => child)].map(end));
  }

  #takeProcess(): ChildProcess {
    const idle = this.#idle.pop();
    if (idle === undefined) return this.#startProcess();
    clearTimeout(idle.endTimer);
    setRef(idle.child, true);
    return idle.child;
  }

  #keepIdle(child: ChildProcess): void {
    setRef(child, false);
    const endTimer = setTimeout(
      () => runInBackground(end(child), 'ending an idle file process', this.#log),
      idleMs,
    );
    endTimer.unref();
    this.#idle.push({ child, endTimer });
  }

  #startProcess(): ChildProcess {
    const child = startProcess();
    child.on('message', (message: FileMessage) => {
      if (!('error' in message)) return;
      this.#log.error({ err: message.error, filePid: child.pid }, `file process: ${message.what}`);
    });
    child.once('exit', () => {
      const index = this.#idle.findIndex((idle) => idle.child === child);
      if (index < 0) return;
      const [idle] = this.#idle.splice(index, 1);
      clearTimeout(idle!.endTimer);
    });
    return child;
  }
}

function startProcess(): ChildProcess {
  const child = fork(program, [], {
    // A file process needs none of this process's secrets.
    env: {},
    execArgv: [`--max-old-space-size=${maxHeapMb}`],
    serialization: 'advanced',
    // PDFium would write messages about bad documents to stdio, and V8 about its memory.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  // The code that awaits the reply handles the exit. Without a listener, an 'error' event would crash this process.
  child.on('error', () => undefined);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, 'exit');
  child.ref();
  child.kill('SIGKILL');
  await exited;
}

/** Creates a run that fails, because the operating system has no more processes or file descriptors. */
function createFailedRun(): FileRun {
  const error = new AppError('service_unavailable', { message: 'a file process could not be started' });
  const reply = Promise.reject(error);
  // The code that awaits the reply handles the failure.
  reply.catch(() => undefined);
  return { reply, stop: () => Promise.resolve() };
}

/** Sets whether the child keeps this process alive. */
function setRef(child: ChildProcess, isNeeded: boolean): void {
  const name = isNeeded ? 'ref' : 'unref';
  child[name]();
  child.channel?.[name]();
}

interface SentRequest {
  readonly reply: Promise<FileReply | null>;
  /** Resolves the reply to null unless it has arrived. */
  readonly resolveToNull: () => void;
}

function sendRequest(
  child: ChildProcess,
  request: FileRequest,
  timeoutMs: number,
  signal: AbortSignal,
): SentRequest {
  let resolveToNull = (): void => undefined;
  const reply = new Promise<FileReply | null>((resolve) => {
    const settle = (result: FileReply | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', resolveToNull);
      child.off('message', onMessage).off('exit', resolveToNull).off('error', resolveToNull);
      resolve(result);
    };
    resolveToNull = () => settle(null);
    const onMessage = (message: FileMessage): void => settle('error' in message ? null : message);
    const timer = setTimeout(resolveToNull, timeoutMs);
    signal.addEventListener('abort', resolveToNull);
    child.on('message', onMessage).on('exit', resolveToNull).on('error', resolveToNull);
    if (signal.aborted) resolveToNull();
    // If sending fails, the process has ended or could not start.
    else child.send(request, (error) => error !== null && resolveToNull());
  });
  return { reply, resolveToNull };
}
