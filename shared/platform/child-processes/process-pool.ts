import type { ChildProcess } from 'node:child_process';
import { AppError } from '../../contract/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import { runInBackground } from '../runtime/run-in-background.ts';
import { type ChildProgram, endChild, setRef, startChild } from './child-program.ts';
import { sendRequest, type RunEnd } from './child-request.ts';

/** How long an idle process is kept, so that the next request need not wait for a new one. */
const idleMs = 30_000;

export interface ProcessPoolOptions<Reply> {
  readonly program: ChildProgram;
  /** Time limit for one request, after which its process is killed. */
  readonly timeoutMs: number;
  /** Whether the process that sent this reply may serve another request. Memory of native code may never shrink. */
  readonly isReusable: (reply: Reply) => boolean;
  readonly log: Pick<Logger, 'error'>;
}

/** A request that a process is working on. */
export interface ProcessRun<Reply> {
  /** Resolves when a process begins the work, or at the end. Starting a process takes a second, and more on a busy machine. */
  readonly begin: Promise<void>;
  /** @throws AppError `service_unavailable` if no process could be started */
  readonly end: Promise<RunEnd<Reply>>;
  /** Resolves once the process no longer works on the request. Kills the process if it is still working. */
  stop(): Promise<void>;
}

interface IdleProcess {
  readonly child: ChildProcess;
  readonly endTimer: NodeJS.Timeout;
}

/** A pool of processes that can be killed. Each serves one request at a time. The caller limits how many run. */
export class ProcessPool<Request extends object, Reply> {
  readonly #options: ProcessPoolOptions<Reply>;
  readonly #idle: IdleProcess[] = [];
  readonly #working = new Set<ChildProcess>();
  #isClosed = false;

  constructor(options: ProcessPoolOptions<Reply>) {
    this.#options = options;
  }

  start(request: Request, signal: AbortSignal): ProcessRun<Reply> {
    const child = this.#isClosed ? null : this.#takeProcess();
    if (child?.pid === undefined) return createFailedRun(this.#options.program);
    this.#working.add(child);
    const { timeoutMs } = this.#options;
    const { begin, end, stop } = sendRequest<Reply>(child, request, { timeoutMs, signal });
    const ended = end.then(async (settledEnd) => {
      if (settledEnd.kind === 'crashed') this.#logCrash(child, settledEnd);
      if (settledEnd.kind === 'reply' && this.#options.isReusable(settledEnd.reply)) this.#keepIdle(child);
      else await this.#replace(child);
      this.#working.delete(child);
    });
    return {
      begin,
      end,
      stop: async () => {
        stop();
        await ended;
      },
    };
  }

  /** The processes that work or wait for a request. */
  get pids(): number[] {
    const children = [...this.#working, ...this.#idle.map(({ child }) => child)];
    return children.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** Ends all processes. Later requests fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const idle = this.#idle.splice(0);
    for (const { endTimer } of idle) clearTimeout(endTimer);
    await Promise.all([...this.#working, ...idle.map(({ child }) => child)].map(endChild));
  }

  #takeProcess(): ChildProcess {
    const idle = this.#idle.pop();
    if (idle === undefined) return this.#startProcess();
    clearTimeout(idle.endTimer);
    setRef(idle.child, true);
    return idle.child;
  }

  /** Ends a process and starts its successor, so that the next request does not wait because of this one. */
  async #replace(child: ChildProcess): Promise<void> {
    await endChild(child);
    if (this.#isClosed) return;
    const successor = this.#startProcess();
    if (successor.pid !== undefined) this.#keepIdle(successor);
  }

  #keepIdle(child: ChildProcess): void {
    if (this.#isClosed) return;
    setRef(child, false);
    const { log, program } = this.#options;
    const endTimer = setTimeout(
      () => runInBackground(endChild(child), `ending an idle ${program.name}`, log),
      idleMs,
    );
    endTimer.unref();
    this.#idle.push({ child, endTimer });
  }

  #startProcess(): ChildProcess {
    const child = startChild(this.#options.program);
    child.once('exit', () => {
      const index = this.#idle.findIndex((idle) => idle.child === child);
      if (index < 0) return;
      const [idle] = this.#idle.splice(index, 1);
      clearTimeout(idle!.endTimer);
    });
    return child;
  }

  #logCrash(child: ChildProcess, { what, error: err }: RunEnd<Reply> & { kind: 'crashed' }): void {
    const { log, program } = this.#options;
    const { pid, exitCode, signalCode: exitSignal } = child;
    log.error({ ...(err && { err }), pid, exitCode, exitSignal }, `${program.name}: ${what}`);
  }
}

/** Creates a run that fails: the pool is closed, or the system has no more processes or file descriptors. */
function createFailedRun({ name }: ChildProgram): ProcessRun<never> {
  const error = new AppError('service_unavailable', { message: `a ${name} could not be started` });
  const end = Promise.reject(error);
  // The code that awaits the end handles the failure.
  end.catch(() => undefined);
  return { begin: Promise.resolve(), end, stop: () => Promise.resolve() };
}
