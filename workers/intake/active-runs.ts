import { setMaxListeners } from 'node:events';
import type { RunControl } from '../../shared/reply/reply-channel.ts';
import { isKept, type AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import { CallerGone, CallerStalled, RunReplaced, type RequestRun } from '../jobs/job-context.ts';

/**
 * The api says every few seconds that a caller is still behind, and ends what is not read at all. Where it says nothing
 * for so long, its word was lost on the way.
 */
const maxPauseMs = 30_000;

interface Pause {
  readonly ended: Promise<void>;
  /** It was told of again. */
  readonly prolong: () => void;
  readonly end: () => void;
}

/** What is known of a request that runs. */
export type RunningRequest = Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'jobAttempt'>;

interface ActiveRun {
  readonly request: RunningRequest;
  readonly replyChannel: string;
  readonly attempt: number;
  readonly abort: AbortController;
  pause: Pause | null;
  /** Of an offered result. */
  askedUpTo: number;
  onAsked: (() => void) | null;
}

/** One run, as who started it holds it. */
export interface StartedRun {
  readonly signal: AbortSignal;
  readonly stopping: AbortSignal;
  readonly whenWanted: RequestRun['whenWanted'];
  readonly endStalled: RequestRun['endStalled'];
  readonly whenAsked: RequestRun['whenAsked'];
  /** The run is over, however it went. */
  end(): void;
}

/** The requests that this worker runs now, and what their callers' processes ask of them. */
export class ActiveRuns {
  readonly #runs = new Map<string, ActiveRun>();
  readonly #stopping = new AbortController();
  readonly #whenEmpty: (() => void)[] = [];

  constructor() {
    // One signal for all that runs: that is no leak for Node to warn of.
    setMaxListeners(0, this.#stopping.signal);
  }

  get size(): number {
    return this.#runs.size;
  }

  /** What runs now, for who must say that it is in hand. */
  *requests(): Generator<RunningRequest> {
    for (const { request } of this.#runs.values()) yield request;
  }

  /** Where those wait for whom there is work that is not kept: each channel once. */
  channels(): ReadonlySet<string> {
    const awaited = [...this.#runs.values()].filter((run) => !isKept(run.request));
    return new Set(awaited.map((run) => run.replyChannel));
  }

  /** An earlier run of the same request, which was given up for lost, is ended without being settled. */
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
        // Of an earlier attempt here: what this one has is not offered yet.
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

  /** Stops everything for an api process that is gone, but for what is kept for whoever asks again. */
  cancelChannel(replyChannel: string): void {
    for (const run of this.#runs.values()) {
      if (run.replyChannel === replyChannel && !isKept(run.request)) this.#cancel(run, new CallerGone(true));
    }
  }

  /** The process is about to end: what is read on for callers who left ends now, in time to be settled. */
  stopReadingOn(): void {
    this.#stopping.abort();
  }

  /** Ends every run of an account at once, for a reason other than its caller having left. */
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

/** Whoever lives asks again every few seconds; one that is gone is mostly known to be, and this is for when it is not. */
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
