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
   * Null if the process died or took too long, or if the reading was stopped.
   * @throws AppError `service_unavailable` if no process could be started
   */
  readonly reply: Promise<FileReply | null>;
  /** Resolves once the process is done with the file. Ends the process if it is still working. */
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
    const { reply, giveUp } = sendRequest(child, request, this.#timeoutMs, signal);
    const ended = reply.then(async (settledReply) => {
      if (settledReply !== null && settledReply.memoryBytes <= maxReusableBytes) this.#keepIdle(child);
      else await end(child);
      this.#working.delete(child);
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
    // A document reader needs none of this process's secrets.
    env: {},
    execArgv: [`--max-old-space-size=${maxHeapMb}`],
    serialization: 'advanced',
    // PDFium writes complaints about bad documents there, and V8 about its memory.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  // The exit is handled where it is awaited. Without a listener, an 'error' event would crash this process.
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

/** For when the operating system has no process or file descriptor left. */
function createFailedRun(): FileRun {
  const error = new AppError('service_unavailable', { message: 'a file process could not be started' });
  const reply = Promise.reject(error);
  // The failure is handled when the reply is awaited.
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
  readonly giveUp: () => void;
}

function sendRequest(
  child: ChildProcess,
  request: FileRequest,
  timeoutMs: number,
  signal: AbortSignal,
): SentRequest {
  let giveUp = (): void => undefined;
  const reply = new Promise<FileReply | null>((resolve) => {
    const settle = (result: FileReply | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      child.off('message', onMessage).off('exit', giveUp).off('error', giveUp);
      resolve(result);
    };
    giveUp = () => settle(null);
    const onMessage = (message: FileMessage): void => settle('error' in message ? null : message);
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener('abort', giveUp);
    child.on('message', onMessage).on('exit', giveUp).on('error', giveUp);
    if (signal.aborted) giveUp();
    // If sending fails, the process has ended or could not start.
    else child.send(request, (error) => error !== null && giveUp());
  });
  return { reply, giveUp };
}
