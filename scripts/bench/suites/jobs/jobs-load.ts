import type { LoadPlan, LoadResult } from '../../harness/load/load-plan.ts';
import { startLoad, type RunningLoad } from '../../harness/load/run-load.ts';
import type { Programs } from '../../harness/programs.ts';
import type { JobsMessage, LookUps } from './jobs-plan.ts';

/** Controls the process that places jobs and looks them up. */
export class JobsLoad {
  readonly #load: RunningLoad;
  readonly #lookedUp: Promise<LookUps>;

  constructor(programs: Programs, plan: LoadPlan, onProgress: (jobs: number) => void) {
    this.#load = startLoad(programs, plan, onProgress, 'suites/jobs/load.js');
    this.#lookedUp = new Promise((resolve) => {
      this.#load.program.child.on('message', (message: JobsMessage) => {
        if (message.kind === 'looked-up') resolve(message.lookUps);
      });
    });
  }

  get pid(): number {
    return this.#load.program.pid;
  }

  /** Resolves once every request has a response. */
  async placed(): Promise<LoadResult> {
    return await this.#load.result;
  }

  /** From now on, the latency of look-ups is recorded for the second phase, in which the jobs run. */
  enterRunning(): void {
    this.#load.program.child.send('running');
  }

  async end(): Promise<LookUps> {
    this.#load.program.child.send('stop');
    const lookUps = await this.#lookedUp;
    await this.#load.program.ended;
    return lookUps;
  }
}
