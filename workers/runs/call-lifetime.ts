// decision 0025
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { hasCallerDisconnected, type RequestRun } from './job-context.ts';

interface CallTerms {
  readonly route: CatalogRoute;
  readonly isStreamed: boolean;
  /** Whether the vendor's usage reports cover everything that it has generated so far. */
  readonly isCovered: () => boolean;
}

/**
 * Decides how long a vendor call continues after its caller has disconnected. The vendor bills what it generated
 * whether or not anyone reads it, and usually reports how much only at the very end. So:
 *
 * - A stream is read for a grace period, or to its end if the route drains.
 * - A response that is not streamed is read to its end, because nothing arrives before that, not even a sign that the
 *   vendor is working.
 * - A request that has not been sent is cancelled immediately.
 * - A request that is cancelled for a reason other than a disconnect is also cancelled immediately.
 * - A call that is still being read when the process stops is cancelled, because no other process could settle it.
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
   * Whether the caller disconnected while reading was paused. The usage known by then misses what the vendor sent
   * during the pause.
   */
  #wasPausedAtDisconnect = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    run: Pick<RequestRun, 'signal' | 'stopping' | 'whenResumed'>,
    { route, isStreamed, isCovered }: CallTerms,
  ) {
    const caller = run.signal;
    this.#isPaused = () => run.whenResumed() !== null;
    this.#caller = caller;
    this.#stopping = run.stopping;
    this.#graceMs = isStreamed && route.onDisconnect === 'cancel' ? route.upstream.disconnectGraceMs : null;
    this.#isCovered = isCovered;
    run.stopping.addEventListener('abort', this.#onStopping, { once: true });
    if (caller.aborted) this.#onCallerAbort();
    else caller.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  /** The signal for the call; it is aborted with the reason of the caller's signal. */
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
   * Ends a call that is still read only for its usage, once the usage is known.
   * @returns whether the call has ended
   */
  endIfCovered(): boolean {
    if (this.#caller.aborted && this.#graceMs !== null && !this.#wasPausedAtDisconnect && this.#isCovered())
      this.#end();
    return this.signal.aborted;
  }

  /** Stops watching the caller. Call this when the call has ended, successfully or not. */
  close(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener('abort', this.#onCallerAbort);
    this.#stopping.removeEventListener('abort', this.#onStopping);
  }

  readonly #onCallerAbort = (): void => {
    this.#wasPausedAtDisconnect = this.#isPaused();
    if (!this.#isSent || !hasCallerDisconnected(this.#caller) || this.#stopping.aborted) this.#end();
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
