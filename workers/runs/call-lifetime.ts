import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { hasCallerLeft, type RequestRun } from './job-context.ts';

interface CallTerms {
  readonly route: CatalogRoute;
  readonly isStreamed: boolean;
  /** Whether the vendor has reported everything that it generated so far. */
  readonly isCovered: () => boolean;
}

/**
 * Decides how long a vendor call goes on after its caller has left. The vendor bills what it generated whether
 * or not anyone reads it, and usually reports how much only at the very end. So a stream is read for a grace
 * period, or to its end if the route drains. A response that is not streamed gives no sign before its end, not
 * even that the vendor is at work, so it is read to the end. A request not sent yet ends at once, and so does
 * one that ends for a reason other than its caller having left. A call still being read when the process stops
 * also ends at once, because no other process could settle it.
 */
export class CallLifetime {
  readonly #caller: AbortSignal;
  readonly #stopping: AbortSignal;
  /** Null if the call is read to its end. */
  readonly #graceMs: number | null;
  readonly #isCovered: () => boolean;
  readonly #abort = new AbortController();
  readonly #isPaused: () => boolean;
  #isSent = false;
  /**
   * Whether the caller left while reading was paused. The usage known so far then misses what the vendor sent
   * meanwhile.
   */
  #isBehind = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    run: Pick<RequestRun, 'signal' | 'stopping' | 'whenWanted'>,
    { route, isStreamed, isCovered }: CallTerms,
  ) {
    const caller = run.signal;
    this.#isPaused = () => run.whenWanted() !== null;
    this.#caller = caller;
    this.#stopping = run.stopping;
    this.#graceMs = isStreamed && route.onDisconnect === 'cancel' ? route.upstream.disconnectGraceMs : null;
    this.#isCovered = isCovered;
    run.stopping.addEventListener('abort', this.#onStopping, { once: true });
    if (caller.aborted) this.#onCallerAbort();
    else caller.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  /** Signal for the call; aborted with the reason of the caller's signal. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  markSent(): void {
    this.#isSent = true;
  }

  /**
   * Ends a call that is only read for its usage as soon as the usage is known.
   * @returns whether the call has ended
   */
  endIfCovered(): boolean {
    if (this.#caller.aborted && this.#graceMs !== null && !this.#isBehind && this.#isCovered()) this.#end();
    return this.signal.aborted;
  }

  /** Stops watching the caller once the call has ended, however it went. */
  close(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener('abort', this.#onCallerAbort);
    this.#stopping.removeEventListener('abort', this.#onStopping);
  }

  readonly #onCallerAbort = (): void => {
    this.#isBehind = this.#isPaused();
    if (!this.#isSent || !hasCallerLeft(this.#caller) || this.#stopping.aborted) this.#end();
    else if (this.#graceMs === null) return;
    else if (this.#graceMs === 0) this.#end();
    else if (!this.endIfCovered()) this.#timer = setTimeout(() => this.#end(), this.#graceMs);
  };

  readonly #onStopping = (): void => {
    if (this.#caller.aborted) this.#end();
  };

  #end(): void {
    this.#abort.abort(this.#caller.reason);
  }
}
