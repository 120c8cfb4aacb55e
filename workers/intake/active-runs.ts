import { setMaxListeners } from 'node:events';
import type { RunControl } from '../../shared/reply/worker-control.ts';
import { isResponseStored, type AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import { CallerGone, CallerStalled, RunReplaced, type RequestRun } from '../runs/job-context.ts';

/**
 * The api reports every few seconds that a caller still lags behind, and ends runs whose output is not read at
 * all. If nothing arrives for this long, such a message was lost, and the run ends as stalled.
 */
const maxPauseMs = 30_000;

interface Pause {
  readonly ended: Promise<void>;
  /** Extends the pause after another report. */
  readonly prolong: () => void;
  readonly end: () => void;
}

/** Identifies a running request. */
export type RunningRequest = Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'jobAttempt'>;

interface ActiveRun {
  readonly request: RunningRequest;
  readonly replyChannel: string;
  readonly attempt: number;
  readonly abort: AbortController;
  pause: Pause | null;
  /** Up to where an offered result was requested. */
  askedUpTo: number;
  onAsked: (() => void) | null;
}

/** One run, as its starter sees it. */
export interface StartedRun {
  readonly signal: AbortSignal;
  readonly stopping: AbortSignal;
  readonly whenWanted: RequestRun['whenWanted'];
  readonly endStalled: RequestRun['endStalled'];
  readonly whenAsked: RequestRun['whenAsked'];
  /** Ends the run, however it went. */
  end(): void;
}

/** The requests that this worker runs now, and the control messages of the api processes about them. */
export class ActiveRuns {
  readonly #runs = new Map<string, ActiveRun>();
  readonly #stopping = new AbortController();
  readonly #whenEmpty: (() => void)[] = [];

  constructor() {
    // All runs share one signal; Node must not warn of a leak.
    setMaxListeners(0, this.#stopping.signal);
  }

  get size(): number {
    return this.#runs.size;
  }

  /** The requests that run now, for heartbeats. */
  *requests(): Generator<RunningRequest> {
    for (const { request } of this.#runs.values()) yield request;
  }

  /** The reply channels that wait for work whose result is not kept, each once. */
  channels(): ReadonlySet<string> {
    const awaited = [...this.#runs.values()].filter((run) => !isResponseStored(run.request));
    return new Set(awaited.map((run) => run.replyChannel));
  }

  /** Starts a run. An earlier run of the same request, presumed lost, ends without being settled. */
  start(request: RunningRequest, replyChannel: string, attempt: number): StartedRun {
    const { requestId } = request;
    const abort = new AbortController();
    const state = { pause: null, askedUpTo: 0, onAsked: null };
    const run: ActiveRun = { request, replyChannel, attempt, abort, ...state };
    const earlier = this.#runs.get(requestId);
    if (earlier !== undefined) this.#cancel(earlier, new RunReplaced());
    this.#runs.set(requestId, run);
    return {
      signal: run.abort.signal,
      stopping: this.#stopping.signal,
      whenWanted: () => run.pause?.ended ?? null,
      endStalled: () => this.#cancel(run, new CallerStalled()),
      whenAsked: (beyond) => whenAsked(run, beyond),
      end: () => {
        this.#resume(run);
        if (this.#runs.get(requestId) === run) this.#runs.delete(requestId);
        if (this.#runs.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
      },
    };
  }

  control(message: RunControl): void {
    const run = this.#runs.get(message.requestId);
    if (run === undefined) return;
    switch (message.action) {
      case 'pause':
        this.#pause(run);
        break;
      case 'resume':
        this.#resume(run);
        break;
      case 'cancel':
        this.#cancel(run, message.isUnread ? new CallerStalled() : new CallerGone(message.isOurFault));
        break;
      case 'send':
        // Sent to an earlier attempt here. The result of this attempt is not offered yet.
        if (message.attempt !== run.attempt) break;
        run.askedUpTo = Math.max(run.askedUpTo, message.upToByte);
        run.onAsked?.();
        break;
      default:
        message satisfies never;
    }
  }

  /** Ends a run for a reason other than its caller having left. */
  fail(requestId: string, error: Error): void {
    const run = this.#runs.get(requestId);
    if (run !== undefined) this.#cancel(run, error);
  }

  /** Stops all runs for an api process that is gone, except those whose result is kept for a later request. */
  cancelChannel(replyChannel: string): void {
    for (const run of this.#runs.values()) {
      if (run.replyChannel === replyChannel && !isResponseStored(run.request))
        this.#cancel(run, new CallerGone(true));
    }
  }

  /**
   * Ends streams still being read for callers who left, because the process is about to exit and they must be
   * settled first.
   */
  stopReadingOn(): void {
    this.#stopping.abort();
  }

  /** Ends all runs of an account at once, for a reason other than their callers having left. */
  cancelAccount(accountId: string, reason: Error): void {
    for (const run of this.#runs.values()) {
      if (run.request.accountId === accountId) this.#cancel(run, reason);
    }
  }

  /** Resolves when nothing runs any more. */
  async drained(): Promise<void> {
    if (this.#runs.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  #pause(run: ActiveRun): void {
    if (run.pause !== null) {
      run.pause.prolong();
      return;
    }
    const giveUp = (): NodeJS.Timeout => setTimeout(() => this.#cancel(run, new CallerStalled()), maxPauseMs);
    let timer = giveUp();
    let resolve = (): void => undefined;
    const ended = new Promise<void>((done) => {
      resolve = done;
    });
    run.pause = {
      ended,
      prolong: () => {
        clearTimeout(timer);
        timer = giveUp();
      },
      end: () => {
        clearTimeout(timer);
        resolve();
      },
    };
  }

  #resume(run: ActiveRun): void {
    run.pause?.end();
    run.pause = null;
  }

  #cancel(run: ActiveRun, reason: Error): void {
    run.abort.abort(reason);
    this.#resume(run);
    run.onAsked?.();
  }
}

/**
 * A live caller asks again every few seconds. A dead one is usually reported as gone; this limit applies when
 * it is not.
 */
const maxUnaskedMs = 5 * 60_000;

async function whenAsked(run: ActiveRun, beyond: number): Promise<number> {
  const { signal } = run.abort;
  while (run.askedUpTo <= beyond && !signal.aborted) {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      run.onAsked = resolve;
      timer = setTimeout(() => reject(new Error('nobody asked for the result')), maxUnaskedMs);
    }).finally(() => {
      clearTimeout(timer);
      run.onAsked = null;
    });
  }
  signal.throwIfAborted();
  return run.askedUpTo;
}
