import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { hasCallerLeft, type RequestRun } from './job-context.ts';

interface CallTerms {
  readonly route: CatalogRoute;
  readonly isStreamed: boolean;
  /** Whether the vendor has reported everything that it generated so far. */
  readonly isCovered: () => boolean;
}

/**
 * How long one call of a vendor goes on after its caller left. A vendor bills what it generated, whether anybody reads it
 * or not, and mostly says how much that was at the very end: a stream is therefore read on for a moment, or to its end
 * where the route drains. Of a whole answer nothing is known before its end, not even that the vendor is at work, so it
 * is read to that. A request that was not sent yet, and one that ends for another reason than its caller, ends at
 * once. So does one that is read on when the process stops, as nobody else knows of it to settle it.
 */
export class CallLifetime {
  readonly #caller: AbortSignal;
  readonly #stopping: AbortSignal;
  /** Null where the call is read to its end. */
  readonly #graceMs: number | null;
  readonly #isCovered: () => boolean;
  readonly #abort = new AbortController();
  readonly #isPaused: () => boolean;
  #isSent = false;
  /** The caller left while the call was not read: what is known does not cover what the vendor said meanwhile. */
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

  /** For the call: aborted with the reason of the caller's signal. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  markSent(): void {
    this.#isSent = true;
  }

  /** Ends a call that is only read on for its usage as soon as that is known. @returns whether the call has ended */
  endIfCovered(): boolean {
    if (this.#caller.aborted && this.#graceMs !== null && !this.#isBehind && this.#isCovered()) this.#end();
    return this.signal.aborted;
  }

  /** The call is over, however it went. */
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
