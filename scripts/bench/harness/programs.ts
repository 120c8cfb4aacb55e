import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readFirstLine } from '../../start/read-first-line.ts';

export interface ProgramOptions {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Written to its stdin. */
  readonly input?: string;
  /**
   * `prints-address`: `readStartupLine` reads the first line of its stdout. `ipc`: it exchanges messages with this
   * process, and may exit with code 0.
   */
  readonly kind?: 'prints-address' | 'ipc';
}

export interface Program {
  readonly name: string;
  readonly pid: number;
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

const stopTimeoutMs = 10_000;
const shownLogLines = 8;

/**
 * The processes of one part of the bench, and their folder. If one exits unexpectedly, `failed` rejects with the reason.
 */
export class Programs {
  readonly failed: Promise<never>;
  /** For what they store. */
  readonly dir: string;
  readonly #programs: Program[] = [];
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #stopped = new Set<ChildProcess>();
  #fail!: (error: Error) => void;
  #isStopping = false;

  constructor(dir: string) {
    this.dir = dir;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // It may reject before anything awaits it, which must not be an unhandled rejection.
    this.failed.catch(() => undefined);
  }

  start(options: ProgramOptions): Program {
    const { name, file, args, env, cwd, input, kind } = options;
    const log = openSync(this.#logPath(name), 'a');
    const child = spawn(file, [...args], {
      env,
      ...(cwd === undefined ? {} : { cwd }),
      stdio: [
        input === undefined ? 'ignore' : 'pipe',
        kind === 'prints-address' ? 'pipe' : log,
        log,
        ...(kind === 'ipc' ? (['ipc'] as const) : []),
      ],
    });
    closeSync(log);
    child.stdin?.end(input);
    const ended = once(child, 'close').then(
      ([code, signal]) => {
        const isFailure = kind !== 'ipc' || code !== 0;
        if (isFailure && !this.#isStopping && !this.#stopped.has(child))
          this.#fail(this.#explainEnd(name, code ?? signal));
      },
      (error: Error) => this.#fail(new Error(`could not start ${name}: ${error.message}`)),
    );
    const program = { name, pid: child.pid ?? 0, child, ended };
    this.#programs.push(program);
    return program;
  }

  /** Reads and parses the JSON line that a `prints-address` program prints when it is ready. */
  async readStartupLine(program: Program): Promise<Record<string, string>> {
    const abort = new AbortController();
    program.child.once('close', () => abort.abort());
    const line = await readFirstLine(program.child.stdout!, abort.signal);
    program.child.stdout!.resume();
    return JSON.parse(line) as Record<string, string>;
  }

  /** @param close closes a connection to the programs, before they are stopped */
  beforeStop(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Stops one program while the others continue, and waits for its exit. */
  async stopOne({ child, ended }: Program): Promise<void> {
    this.#stopped.add(child);
    child.kill('SIGTERM');
    await ended;
  }

  /** Stops the programs in `graceful` with SIGTERM, then kills the others, whose data is discarded. */
  async stop(graceful: readonly string[]): Promise<void> {
    await Promise.all(this.#closers.map((close) => close()));
    this.#isStopping = true;
    const gracefulPrograms = this.#programs.filter(({ name }) => graceful.includes(name));
    for (const { child } of gracefulPrograms) child.kill('SIGTERM');
    const ended = Promise.all(gracefulPrograms.map((program) => program.ended));
    await Promise.race([ended, delay(stopTimeoutMs, undefined, { ref: false })]);
    this.kill();
    await Promise.all(this.#programs.map((program) => program.ended));
  }

  /** Kills all programs immediately, without waiting. */
  kill(): void {
    this.#isStopping = true;
    for (const { child } of this.#programs) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    }
  }

  #explainEnd(name: string, how: unknown): Error {
    const lines = readFileSync(this.#logPath(name), 'utf8').trimEnd().split('\n').slice(-shownLogLines);
    return new Error(
      `${name} exited (${String(how)}) in the middle of the run. Its last lines:\n${lines.join('\n')}`,
    );
  }

  #logPath(name: string): string {
    return join(this.dir, `${name}.log`);
  }
}
