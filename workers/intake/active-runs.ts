import { setMaxListeners } from 'node:events';
import type { RunControl } from '../../shared/work/replies/worker-control.ts';
import { isResponseStored, type AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { CallerGone, CallerStalled, RunReplaced, type RequestRun } from '../runs/job-context.ts';

/**
 * While a caller reads too slowly, the api process sends a pause message every few seconds. If the caller reads nothing
 * at all, the api process cancels the run. If no message arrives for this long, messages were lost, and the run is
 * cancelled as stalled.
 */
const maxPauseMs = 30_000;

interface Pause {
  readonly ended: Promise<void>;
  /** Extends the pause when it is reported again. */
  readonly extend: () => void;
  readonly end: () => void;
}

/** Identifies a running request. */
export type RunningRequest = Pick<
  AdmittedRequest,
  'requestId' | 'accountId' | 'model' | 'claimHash' | 'isResumable' | 'jobAttempt'
>;

interface ActiveRun {
  readonly request: RunningRequest;
  readonly replyChannel: string;
  readonly attempt: number;
  readonly abort: AbortController;
  pause: Pause | null;
  /** How many bytes of the offered result have been requested so far. */
  requestedBytes: number;
  onRequested: (() => void) | null;
}

/** A run, as seen by the code that started it. */
export interface StartedRun {
  readonly signal: AbortSignal;
  readonly stopping: AbortSignal;
  readonly whenResumed: RequestRun['whenResumed'];
  readonly cancelStalled: RequestRun['cancelStalled'];
  readonly whenRequested: RequestRun['whenRequested'];
  /** Ends the run, whether it succeeded or failed. */
  end(): void;
}

/** The requests that this worker is running. Applies the control messages that api processes send about them. */
export class ActiveRuns {
  readonly #runs = new Map<string, ActiveRun>();
  readonly #stopping = new AbortController();
  readonly #whenEmpty: (() => void)[] = [];

  constructor() {
    // All runs share one signal. Without this, Node would report its many listeners as a leak.
    setMaxListeners(0, this.#stopping.signal);
  }

  get size(): number {
    return this.#runs.size;
  }

  /** The running requests, for heartbeats. */
  *requests(): Generator<RunningRequest> {
    for (const { request } of this.#runs.values()) yield request;
  }

  /** The distinct reply channels of runs whose response is not stored. */
  channels(): ReadonlySet<string> {
    const withoutStoredResponse = [...this.#runs.values()].filter((run) => !isResponseStored(run.request));
    return new Set(withoutStoredResponse.map((run) => run.replyChannel));
  }

  /** Starts a run. An earlier run of the same request is presumed lost, and is cancelled without being settled. */
  start(request: RunningRequest, replyChannel: string, attempt: number): StartedRun {
    const { requestId } = request;
    const abort = new AbortController();
    const state = { pause: null, requestedBytes: 0, onRequested: null };
    const run: ActiveRun = { request, replyChannel, attempt, abort, ...state };
    const earlierRun = this.#runs.get(requestId);
    if (earlierRun !== undefined) this.#cancel(earlierRun, new RunReplaced());
    this.#runs.set(requestId, run);
    return {
      signal: run.abort.signal,
      stopping: this.#stopping.signal,
      whenResumed: () => run.pause?.ended ?? null,
      cancelStalled: () => this.#cancel(run, new CallerStalled()),
      whenRequested: (beyond) => whenRequested(run, beyond),
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
        // The message is for an earlier attempt in this process. The result of this attempt has not been offered yet.
        if (message.attempt !== run.attempt) break;
        run.requestedBytes = Math.max(run.requestedBytes, message.upToByte);
        run.onRequested?.();
        break;
      default:
        message satisfies never;
    }
  }

  /** Cancels a run for a reason other than a disconnect of its caller. */
  fail(requestId: string, error: Error): void {
    const run = this.#runs.get(requestId);
    if (run !== undefined) this.#cancel(run, error);
  }

  /** Cancels all runs for an api process that is gone, except those whose response is stored for a later request. */
  cancelChannel(replyChannel: string): void {
    for (const run of this.#runs.values()) {
      if (run.replyChannel === replyChannel && !isResponseStored(run.request))
        this.#cancel(run, new CallerGone(true));
    }
  }

  /**
   * Ends the vendor streams that are still being read after their callers disconnected, because the process is about
   * to exit and must settle them first.
   */
  endAbandonedStreams(): void {
    this.#stopping.abort();
  }

  /** Cancels all runs of an account immediately, for a reason other than a disconnect. */
  cancelAccount(accountId: string, reason: Error): void {
    for (const run of this.#runs.values()) {
      if (run.request.accountId === accountId) this.#cancel(run, reason);
    }
  }

  /** Resolves when no run is left. */
  async drained(): Promise<void> {
    if (this.#runs.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  #pause(run: ActiveRun): void {
    if (run.pause !== null) {
      run.pause.extend();
      return;
    }
    const startTimer = (): NodeJS.Timeout =>
      setTimeout(() => this.#cancel(run, new CallerStalled()), maxPauseMs);
    let timer = startTimer();
    let resolve = (): void => undefined;
    const ended = new Promise<void>((done) => {
      resolve = done;
    });
    run.pause = {
      ended,
      extend: () => {
        clearTimeout(timer);
        timer = startTimer();
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
    run.onRequested?.();
  }
}

/**
 * While the caller is connected, more of the result is requested every few seconds. A lost caller is usually reported;
 * this limit applies if it is not.
 */
const requestTimeoutMs = 5 * 60_000;

async function whenRequested(run: ActiveRun, beyond: number): Promise<number> {
  const { signal } = run.abort;
  while (run.requestedBytes <= beyond && !signal.aborted) {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      run.onRequested = resolve;
      timer = setTimeout(() => reject(new Error('nobody requested the result')), requestTimeoutMs);
    }).finally(() => {
      clearTimeout(timer);
      run.onRequested = null;
    });
  }
  signal.throwIfAborted();
  return run.requestedBytes;
}
