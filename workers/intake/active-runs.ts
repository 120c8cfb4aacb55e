import type { ControlMessage } from '../../shared/reply/reply-channel.ts';
import { CallerGone } from '../jobs/job-context.ts';

interface ActiveRun {
  readonly abort: AbortController;
  paused: boolean;
  resume: (() => void) | null;
  waiting: Promise<void> | null;
}

/** The requests that this worker runs now, and what their callers' processes ask of them. */
export class ActiveRuns {
  readonly #runs = new Map<string, ActiveRun>();
  #whenEmpty: (() => void) | null = null;

  get size(): number {
    return this.#runs.size;
  }

  start(requestId: string): { signal: AbortSignal; whenWanted: () => Promise<void> } {
    const run: ActiveRun = { abort: new AbortController(), paused: false, resume: null, waiting: null };
    this.#runs.set(requestId, run);
    return {
      signal: run.abort.signal,
      whenWanted: async () => {
        if (!run.paused) return;
        run.waiting ??= new Promise((resolve) => {
          run.resume = resolve;
        });
        await run.waiting;
      },
    };
  }

  end(requestId: string): void {
    this.#runs.delete(requestId);
    if (this.#runs.size === 0) this.#whenEmpty?.();
  }

  control({ action, requestId }: ControlMessage): void {
    const run = this.#runs.get(requestId);
    if (run === undefined) return;
    switch (action) {
      case 'pause':
        run.paused = true;
        break;
      case 'resume':
        this.#resume(run);
        break;
      case 'cancel':
        run.abort.abort(new CallerGone());
        this.#resume(run);
        break;
      default:
        action satisfies never;
    }
  }

  /** Resolves when nothing runs any more. */
  async drained(): Promise<void> {
    if (this.#runs.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  #resume(run: ActiveRun): void {
    run.paused = false;
    run.resume?.();
    run.resume = null;
    run.waiting = null;
  }
}
