import { dist } from '../../start/paths.ts';
import type { LatencySummary } from '../fairness/scenario.ts';
import type { Program, Programs } from '../programs.ts';
import type { JobsMessage, JobsPhase, JobsPlan, PlacingResult } from './scenario.ts';

/** Controls the process that places jobs and looks them up. */
export class JobsLoad {
  readonly #program: Program;
  readonly #placed: Promise<PlacingResult>;
  readonly #lookedUp: Promise<Record<JobsPhase, LatencySummary>>;

  constructor(programs: Programs, plan: JobsPlan, onProgress: (jobs: number) => void) {
    this.#program = programs.start({
      name: 'load',
      file: process.execPath,
      args: [dist('scripts/bench/jobs/load.js')],
      env: {},
      kind: 'ipc',
    });
    const { child } = this.#program;
    let onPlaced: (placed: PlacingResult) => void;
    let onLookedUp: (lookUps: Record<JobsPhase, LatencySummary>) => void;
    this.#placed = new Promise((resolve) => (onPlaced = resolve));
    this.#lookedUp = new Promise((resolve) => (onLookedUp = resolve));
    child.on('message', (message: JobsMessage) => {
      if (message.kind === 'progress') onProgress(message.jobs);
      else if (message.kind === 'placed') onPlaced(message.placed);
      else onLookedUp(message.lookUps);
    });
    child.send(plan);
  }

  get pid(): number {
    return this.#program.pid;
  }

  /**
   * Resolves once every request has a response. If the process exits without reporting, `Programs` reports the failure.
   */
  async placed(): Promise<PlacingResult> {
    return await this.#placed;
  }

  /** From now on, the latency of look-ups is recorded for the second phase, in which the jobs run. */
  enterRunning(): void {
    this.#program.child.send('running');
  }

  async end(): Promise<Readonly<Record<JobsPhase, LatencySummary>>> {
    this.#program.child.send('stop');
    const lookUps = await this.#lookedUp;
    await this.#program.ended;
    return lookUps;
  }
}
