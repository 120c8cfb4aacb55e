import { AppError } from '../../shared/contract/errors.ts';
import type { RequestFailures } from '../routing/request-failures.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import { groupByRequest } from './call-inputs.ts';
import { NobodyWaiting } from './embedding-caller.ts';
import { findServerError, isRefusal, type InputClaim, type PendingInput } from './embedding-work.ts';
import type { Quarantine } from './quarantine.ts';

/** After a search in which the server served nothing, for how long the model's failed calls are not searched, unless it serves one. */
const futilePauseMs = 30_000;

/** The state of one search, over all of its calls. */
export interface SearchState {
  readonly failures: RequestFailures;
  callsLeft: number;
  /** Whether the server has served any of the inputs. If it has served none, it is down, and no request is to blame. */
  isServed: boolean;
}

export interface ServerErrorSearchDeps {
  readonly quarantine: Quarantine;
  /** Calls the model with these inputs and delivers the vectors. Rejects with the error for the callers. */
  readonly callAgain: (inputs: readonly PendingInput[], failures: RequestFailures) => Promise<void>;
  /** Handles any other failure of a part of the call. */
  readonly failPart: (inputs: readonly PendingInput[], error: unknown, state: SearchState) => Promise<void>;
  readonly failInputs: (inputs: readonly PendingInput[], describe: (claim: InputClaim) => unknown) => void;
}

/**
 * Finds the request at which a server fails with a 5xx, in a call that several requests share: servers such as
 * llama.cpp respond to an input that they cannot process with a 500, and all callers would get it. A binary search
 * takes at most ⌈log₂ n⌉ calls for n requests, and one more delivers the vectors of the requests that it passed over.
 */
export class ServerErrorSearch {
  readonly #deps: ServerErrorSearchDeps;
  #pausedUntilMs = -Infinity;

  constructor(deps: ServerErrorSearchDeps) {
    this.#deps = deps;
  }

  /** Whether a search is futile, because the server is down. */
  get isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  resume(): void {
    this.#pausedUntilMs = -Infinity;
  }

  /**
   * Delivers the vectors of all requests but the one at fault, which it rejects with the server's words.
   * @param groups the inputs of at least two requests, by request
   */
  async search(groups: readonly PendingInput[][], error: unknown, state: SearchState): Promise<void> {
    let suspects = groups;
    let suspectError = error;
    const passedOver: PendingInput[][] = [];
    while (suspects.length > 1) {
      const middle = Math.ceil(suspects.length / 2);
      const [half, others] = [suspects.slice(0, middle), suspects.slice(middle)];
      const failure = await this.#call(half.flat(), state);
      if (failure === null || failure instanceof NobodyWaiting) {
        suspects = others;
      } else if (findServerError(failure) !== null) {
        passedOver.push(...others);
        [suspects, suspectError] = [half, failure];
      } else if (isRefusal(failure)) {
        state.isServed = true;
        await this.#deps.failPart(half.flat(), failure, state);
        suspects = others;
      } else {
        // No route can be called any more.
        this.#fail([...suspects, ...passedOver], failure);
        return;
      }
    }
    if (passedOver.length > 0) {
      const failure = await this.#call(passedOver.flat(), state);
      if (failure !== null) await this.#failPassedOver(passedOver, failure, state);
    }
    // If nothing was passed over, it was never called alone. And a server that said that it is busy may not be any more.
    const isDoubtful = state.isServed && findServerError(suspectError)?.status !== 500;
    if (passedOver.length === 0 || isDoubtful) {
      const failure = await this.#call(suspects.flat(), state);
      if (failure === null) return;
      if (findServerError(failure) === null) {
        await this.#deps.failPart(suspects.flat(), failure, state);
        return;
      }
      suspectError = failure;
    }
    this.#failSuspect(suspects, suspectError, state);
  }

  /** @returns null if the vectors were delivered, otherwise the error */
  async #call(inputs: readonly PendingInput[], state: SearchState): Promise<unknown> {
    if (state.callsLeft <= 0) return new AppError('upstream_error');
    state.callsLeft -= 1;
    try {
      await this.#deps.callAgain(inputs, state.failures);
      state.isServed = true;
      this.resume();
      return null;
    } catch (error) {
      return error;
    }
  }

  async #failPassedOver(
    groups: readonly PendingInput[][],
    error: unknown,
    state: SearchState,
  ): Promise<void> {
    const needed = groupByRequest(groups.flat());
    const serverError = findServerError(error);
    if (serverError === null) await this.#deps.failPart(needed.flat(), error, state);
    else if (state.isServed && needed.length > 1) await this.search(needed, error, state);
    else if (serverError.status === 500) this.#failSuspect(needed, error, state);
    else this.#fail(needed, error);
  }

  #failSuspect(groups: readonly PendingInput[][], error: unknown, { isServed, failures }: SearchState): void {
    if (!isServed) {
      this.#pausedUntilMs = performance.now() + futilePauseMs;
      this.#fail(groups, error);
      return;
    }
    failures.forget();
    const rejection = toRejection(error);
    for (const { accountId } of groups.flat()) this.#deps.quarantine.addRejected(accountId);
    this.#fail(groups, rejection);
  }

  #fail(groups: readonly PendingInput[][], error: unknown): void {
    const inputs = groups.flat();
    for (const input of inputs) input.failDisconnected(error);
    this.#deps.failInputs(
      inputs.filter((input) => input.isNeeded),
      () => error,
    );
  }
}

/** The server served the other requests of the call, so its failure rejects this one. */
function toRejection(error: unknown): AppError {
  const { message, status } = findServerError(error)!;
  const text = `The model cannot process an input of this request: ${message}`;
  return new AppError('upstream_rejected', {
    message: text,
    cause: new UpstreamError('rejected', text, { status }),
  });
}
