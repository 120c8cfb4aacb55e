import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { explainDeath } from './explain-death.ts';

export interface Launch {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Written to the process's stdin. */
  readonly input?: string;
  /** Whether it exchanges messages with this process. */
  readonly hasChannel?: boolean;
}

export interface PartSpec {
  readonly name: string;
  /** Called at every start, so that a restart can keep the port of the first start. */
  launch(): Launch;
  /** Starts the process. By default, it gets a process group of its own. */
  spawn?(launch: Launch): ChildProcessWithoutNullStreams;
  /** Called at every start. */
  onSpawned?(child: ChildProcess): void;
  /** Resolves when the part can be used. Without it, the part is ready once it has started. */
  waitUntilReady?(child: ChildProcess, signal: AbortSignal): Promise<void>;
  /** How long it may take to finish its work in progress before it is killed. */
  readonly stopTimeoutMs: number;
  /**
   * What to do if the first start fails.
   * - `fail`: nothing can run without this part, so `start` rejects
   * - `retry`: a dependency may still be starting elsewhere, so the start is retried forever
   */
  readonly firstStart: 'fail' | 'retry';
  /** Whether its stdout is shown on the console. It is always in the part's log. */
  readonly printsOutput?: boolean;
}

export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The reason that it printed on stderr. Empty if there is none. */
  readonly reason: string;
  readonly restartInMs: number;
}

export interface PartEvents {
  onOutput(chunk: Buffer, stream: 'stdout' | 'stderr'): void;
  onSpawned(pid: number): void;
  /** Called when the part is ready again after it died. Only for parts that report readiness. */
  onRestarted(tookMs: number): void;
  onDied(death: Death): void;
  onGone(): void;
}

/** A part did not start. The message contains the reason. */
export class PartFailed extends Error {
  override readonly name = 'PartFailed';
}

const restartDelaysMs = [100, 500, 1_000, 2_000, 5_000];
/** If a process ran at least this long, its exit is treated as a new failure, not as a repeated one. */
const healthyAfterMs = 2_000;
const maxStoredErrorBytes = 16_384;

/** Runs one process, and restarts it whenever it exits, until it is stopped. */
export class SupervisedPart {
  readonly name: string;
  readonly #spec: PartSpec;
  readonly #events: PartEvents;
  #child: ChildProcess | null = null;
  #isStopping = false;
  #failures = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #exited: Promise<void> = Promise.resolve();

  constructor(spec: PartSpec, events: PartEvents) {
    this.name = spec.name;
    this.#spec = spec;
    this.#events = events;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Resolves when the part is ready for the first time.
   * @throws PartFailed
   */
  start(): Promise<void> {
    return new Promise((resolve, reject) => this.#launch({ resolve, reject }));
  }

  /** Stops the part permanently: with SIGTERM, then with SIGKILL if it takes too long. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    this.#child?.kill('SIGTERM');
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), this.#spec.stopTimeoutMs);
    await this.#exited;
    clearTimeout(timer);
  }

  /** Kills the part without waiting. */
  kill(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    this.#child?.kill(signal);
  }

  #launch(initialStart: { resolve(): void; reject(error: Error): void } | null): void {
    const startedMs = performance.now();
    let child: ChildProcessWithoutNullStreams;
    try {
      const launch = this.#spec.launch();
      child = this.#spec.spawn?.(launch) ?? spawnDetached(launch);
    } catch (error) {
      // For example, a folder cannot be created because the disk is full, or there is no memory for a process.
      const reason = error instanceof Error ? error.message : String(error);
      this.#onEnded(initialStart, { code: null, signal: null, reason }, 0);
      return;
    }
    const ended = new AbortController();
    let errorText = '';
    let lastStdoutLine = '';
    let isReady = this.#spec.waitUntilReady === undefined;
    this.#child = child;
    if (child.pid !== undefined) {
      this.#events.onSpawned(child.pid);
      this.#spec.onSpawned?.(child);
    }

    child.stdout.on('data', (chunk: Buffer) => {
      lastStdoutLine = (lastStdoutLine + chunk.toString())
        .trimEnd()
        .split('\n')
        .at(-1)!
        .slice(-maxStoredErrorBytes);
      this.#events.onOutput(chunk, 'stdout');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errorText = (errorText + chunk.toString()).slice(-maxStoredErrorBytes);
      this.#events.onOutput(chunk, 'stderr');
    });
    child.on('error', (error) => {
      errorText += error.message;
    });

    this.#exited = new Promise((resolveExited) => {
      // 'close' is emitted after the last output, and also if the process could not be started.
      child.on('close', (code, signal) => {
        ended.abort();
        this.#child = null;
        this.#events.onGone();
        resolveExited();
        this.#onEnded(
          initialStart,
          // Redis prints the reason why it does not start to stdout.
          { code, signal, reason: explainDeath(errorText) || (isReady ? '' : lastStdoutLine) },
          performance.now() - startedMs,
        );
      });
    });

    const onReady = (): void => {
      if (ended.signal.aborted) return;
      isReady = true;
      if (initialStart === null && this.#spec.waitUntilReady !== undefined)
        this.#events.onRestarted(performance.now() - startedMs);
      initialStart?.resolve();
      initialStart = null;
    };
    (this.#spec.waitUntilReady?.(child, ended.signal) ?? Promise.resolve()).then(
      onReady,
      (error: unknown) => {
        if (ended.signal.aborted) return;
        errorText += error instanceof Error ? error.message : String(error);
        child.kill('SIGKILL');
      },
    );
  }

  #onEnded(
    initialStart: { resolve(): void; reject(error: Error): void } | null,
    death: Omit<Death, 'restartInMs'>,
    livedMs: number,
  ): void {
    if (this.#isStopping) return;
    if (initialStart !== null && this.#spec.firstStart === 'fail') {
      initialStart.reject(new PartFailed(`${this.name} did not start (${describeDeath(death)})`));
      return;
    }
    this.#failures = livedMs > healthyAfterMs ? 0 : this.#failures + 1;
    const restartInMs = restartDelaysMs[Math.min(this.#failures, restartDelaysMs.length - 1)]!;
    this.#events.onDied({ ...death, restartInMs });
    this.#restartTimer = setTimeout(() => this.#launch(initialStart), restartInMs);
  }
}

/** @throws Error if the system is out of file descriptors, processes or memory */
function spawnDetached(launch: Launch): ChildProcessWithoutNullStreams {
  const { file, args, env, cwd, input, hasChannel = false } = launch;
  // Use a separate process group, so that Ctrl-C reaches only the supervisor, which then stops the parts in order.
  const options = { env, cwd, detached: true } as const;
  const child = hasChannel
    ? (spawn(file, args, {
        ...options,
        stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
      }) as ChildProcessWithoutNullStreams)
    : spawn(file, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  // Without file descriptors, Node creates no pipes and emits an error without a close.
  if ((child as Partial<typeof child>).stdin === undefined) {
    child.on('error', () => undefined);
    throw new Error(`${file} cannot be started: too many open files`);
  }
  child.stdin.on('error', () => undefined); // The process ended before it read its input. Its exit is reported.
  child.stdin.end(input ?? '');
  return child;
}

export function describeDeath({ code, signal, reason }: Omit<Death, 'restartInMs'>): string {
  // Neither code nor signal is set if the process could not be launched.
  const how = signal ?? (code === null ? '' : `exit code ${code}`);
  return [how, reason].filter((text) => text !== '').join(': ');
}
