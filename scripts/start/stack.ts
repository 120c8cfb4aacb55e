import { join } from 'node:path';
import { formatMs, type ConsoleOutput } from './console-output.ts';
import type { DataDirLock } from './data-dir-lock.ts';
import { stopStages, type Guardian, type StopStage } from './guardian.ts';
import { LogFile } from './log-file.ts';
import { LostLines } from './lost-lines.ts';
import { describeDeath, SupervisedPart, type PartSpec } from './supervise.ts';

export interface StackDeps {
  readonly output: ConsoleOutput;
  readonly guardian: Guardian;
  readonly lock: DataDirLock;
  readonly dataDir: string;
}

/** A part that the stack runs. */
export interface RunningPart {
  /** Stops it, and waits for its work in progress. The stack forgets it. */
  stop(): Promise<void>;
}

/**
 * The running parts with their logs. They are stopped in stages, so that a part stops before the parts that it uses.
 */
export class Stack {
  readonly #dependencies: StackDeps;
  readonly #parts: { part: SupervisedPart; stage: StopStage; log: LogFile }[] = [];
  readonly #lostLines: LostLines;
  #stopping: Promise<void> | null = null;

  constructor(dependencies: StackDeps) {
    this.#dependencies = dependencies;
    this.#lostLines = new LostLines(dependencies.output);
  }

  /**
   * Resolves when the part is ready.
   * @throws PartFailed
   */
  async run(spec: PartSpec, stage: StopStage): Promise<RunningPart> {
    const { output, guardian, lock, dataDir } = this.#dependencies;
    const log = new LogFile(join(dataDir, 'logs', `${spec.name.replace(' ', '-')}.log`), this.#lostLines);
    const part = new SupervisedPart(spec, {
      onOutput: (chunk, stream) => {
        log.write(chunk);
        // Stderr goes only to the file. A summary of it is shown if the part dies.
        if (spec.printsOutput === true && stream === 'stdout') output.printLog(spec.name, chunk);
      },
      onSpawned: (pid) => {
        guardian.watch(stage, spec.name, pid);
        lock.recordPart(spec.name, pid);
      },
      onGone: () => {
        guardian.watch(stage, spec.name, null);
        lock.recordPart(spec.name, null);
      },
      onRestarted: (tookMs) =>
        output.printEvent(spec.name, `running again after ${formatMs(tookMs)}`, 'green'),
      onDied: (death) => {
        const wait = formatMs(death.restartInMs);
        output.printEvent(spec.name, `stopped (${describeDeath(death)}); restarting in ${wait}`, 'yellow');
      },
    });
    const running = { part, stage, log };
    this.#parts.push(running);
    if (this.#stopping === null) await part.start();
    return {
      stop: async () => {
        await part.stop();
        // If the whole stack is being stopped, it does the rest.
        if (this.#stopping !== null) return;
        this.#parts.splice(this.#parts.indexOf(running), 1);
        log.close();
      },
    };
  }

  /** Stops all parts, and waits for their work in progress. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopByStages();
    return this.#stopping;
  }

  /** Kills all parts without waiting. Only Redis gets a SIGTERM, so that it writes its data. */
  kill(): void {
    for (const { part, stage } of this.#parts) part.kill(stage === 2 ? 'SIGTERM' : 'SIGKILL');
  }

  async #stopByStages(): Promise<void> {
    for (const stage of stopStages) {
      const parts = this.#parts.filter((running) => running.stage === stage);
      await Promise.all(parts.map(({ part }) => part.stop()));
    }
    for (const { log } of this.#parts) log.close();
  }
}
