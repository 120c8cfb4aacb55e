import type { ControlMessage } from '../../shared/reply/reply-channel.ts';
import { CallerGone } from '../jobs/job-context.ts';

interface ActiveRun {
  readonly replyChannel: string;
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

  start(
    requestId: string,
    replyChannel: string,
  ): { signal: AbortSignal; whenWanted: () => Promise<void> | null } {
    const run: ActiveRun = {
      replyChannel,
      abort: new AbortController(),
      paused: false,
      resume: null,
      waiting: null,
    };
    this.#runs.set(requestId, run);
    return {
      signal: run.abort.signal,
      whenWanted: () => {
        if (!run.paused) return null;
        run.waiting ??= new Promise((resolve) => {
          run.resume = resolve;
        });
        return run.waiting;
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
        this.#cancel(run);
        break;
      default:
        action satisfies never;
    }
  }

  /** Stops everything for an api process that is gone. */
  cancelChannel(replyChannel: string): void {
    for (const run of this.#runs.values()) if (run.replyChannel === replyChannel) this.#cancel(run);
  }

  /** Resolves when nothing runs any more. */
  async drained(): Promise<void> {
    if (this.#runs.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  #cancel(run: ActiveRun): void {
    run.abort.abort(new CallerGone());
    this.#resume(run);
  }

  #resume(run: ActiveRun): void {
    run.paused = false;
    run.resume?.();
    run.resume = null;
    run.waiting = null;
  }
}
