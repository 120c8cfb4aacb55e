// decision 0073
import { AppError } from '../../shared/contract/errors.ts';
import type { RequestFailures } from '../routing/request-failures.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import { groupByLine, NobodyWaiting } from './call-inputs.ts';
import { findServerError, isInputRejection } from './embedding-task.ts';
import type { InputClaim, PendingInput } from './embedding-work.ts';
import type { Quarantine } from './quarantine.ts';

/** After a search in which the server served nothing, for how long the model's failed calls are not searched, unless it serves one. */
const futilePauseMs = 30_000;

/** The state of one search, over all of its calls. */
export interface SearchState {
  readonly failures: RequestFailures;
  callsLeft: number;
  /** How many of the calls were rejected. */
  rejections: number;
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

/** A call at which the server failed, in a search. */
interface FailedCall {
  readonly inputs: readonly PendingInput[];
  readonly error: unknown;
  /**
   * Whether an input may have been the reason that is not called again: its caller has disconnected, or it was rejected.
   */
  readonly isInDoubt: boolean;
}

/**
 * Finds the request at which a server fails, in a call that several requests share. If a request has several lines, each
 * is searched like a request: servers such as llama.cpp respond to
 * an input that they cannot process with a 500, or even close the connection, and all callers would get that failure. A
 * binary search takes at most ⌈log₂ n⌉ calls for n requests, and one more delivers the vectors of the requests that it
 * passed over, or calls the last one alone.
 *
 * A request is at fault if the server failed at it alone, or if it served everything else of a failed call, and a call at
 * least as large: otherwise the size of the call may have been the reason.
 */
export class ServerErrorSearch {
  readonly #deps: ServerErrorSearchDeps;
  #pausedUntilMs = -Infinity;
  #searches = 0;

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
   * Delivers the vectors of all requests but the one at fault, which it rejects.
   * @param groups the inputs of the lines that still wait, by line
   */
  async search(groups: readonly PendingInput[][], call: FailedCall, state: SearchState): Promise<void> {
    let suspects = this.#order(groups);
    let failed = call;
    const passedOver: PendingInput[][] = [];
    while (suspects.length > 1) {
      const middle = Math.floor(suspects.length / 2);
      const [half, others] = [suspects.slice(0, middle), suspects.slice(middle)];
      const inputs = half.flat();
      const failure = await this.#call(inputs, state);
      if (failure instanceof NobodyWaiting) for (const input of inputs) input.failDisconnected(failure);
      for (const { accountId } of inputs.filter(isDeserted)) {
        failed = { ...failed, isInDoubt: true };
        // Otherwise, a client could hide its bad inputs by disconnecting early.
        this.#deps.quarantine.addRejected(accountId);
      }
      if (failure === null || failure instanceof NobodyWaiting) {
        suspects = others;
      } else if (findServerError(failure) !== null) {
        passedOver.push(...others);
        suspects = half;
        failed = { inputs, error: failure, isInDoubt: inputs.some(isDeserted) };
      } else if (isInputRejection(failure)) {
        state.isServed = true;
        failed = { ...failed, isInDoubt: true };
        await this.#deps.failPart(inputs, failure, state);
        suspects = others;
      } else {
        // No route can be called any more.
        this.#fail([...suspects, ...passedOver], failure);
        return;
      }
    }
    const passed = passedOver.flat();
    const failure = passed.length === 0 ? null : await this.#call(passed, state);
    if (failure !== null) await this.#failPassedOver(passedOver, failure, state);
    const suspect = suspects.flat();
    let isAlone = failed.inputs.length === suspect.length;
    const isOnlyOneLeft = failure === null && !failed.isInDoubt && isAtLeastAsLarge(passed, failed.inputs);
    // A server that said that it is busy may not be any more.
    const isDoubtful = state.isServed && findServerError(failed.error)?.status !== 500;
    if (isDoubtful || !(isAlone || isOnlyOneLeft)) {
      const lastFailure = await this.#call(suspect, state);
      if (lastFailure === null) return;
      if (findServerError(lastFailure) === null) {
        await this.#deps.failPart(suspect, lastFailure, state);
        return;
      }
      failed = { ...failed, error: lastFailure };
      isAlone = true;
    }
    this.#failSuspect(suspects, failed.error, { ...state, isAlone });
  }

  /**
   * The smallest requests come first, so what is passed over is at least as large as what failed. But if the very first
   * one is bad, each half that is called fails, and if there is another, nothing is served at all, as in an outage. So
   * the first one is a different one each time: nobody can bring that about by the size of a few bad inputs.
   */
  #order(groups: readonly PendingInput[][]): readonly PendingInput[][] {
    const ordered = groups
      .map((group) => ({ group, characters: measure(group).characters }))
      .sort((a, b) => a.characters - b.characters)
      .map(({ group }) => group);
    const [first] = ordered.splice((Math.floor(groups.length / 2) + this.#searches) % groups.length, 1);
    this.#searches += 1;
    return [first!, ...ordered];
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
    const inputs = groups.flat();
    for (const input of inputs) input.failDisconnected(error);
    const needed = groupByLine(inputs);
    const serverError = findServerError(error);
    if (serverError === null) await this.#deps.failPart(inputs, error, state);
    else if (!state.isServed || (serverError.status !== 500 && needed.length === 1))
      this.#fail(needed, error);
    else if (needed.length > 0)
      await this.search(needed, { inputs, error, isInDoubt: inputs.some(isDeserted) }, state);
  }

  #failSuspect(
    groups: readonly PendingInput[][],
    error: unknown,
    { isServed, isAlone, failures }: SearchState & { readonly isAlone: boolean },
  ): void {
    if (!isServed) {
      this.#pausedUntilMs = performance.now() + futilePauseMs;
      this.#fail(groups, error);
      return;
    }
    failures.forget();
    for (const { accountId } of groups.flat()) this.#deps.quarantine.addRejected(accountId);
    this.#fail(groups, toRejection(error, isAlone));
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

/** Whether everybody who waited for the input has disconnected before it was called. */
const isDeserted = (input: PendingInput): boolean => input.claims.length === 0;

interface CallSize {
  readonly inputs: number;
  readonly characters: number;
}

function measure(inputs: readonly PendingInput[]): CallSize {
  return { inputs: inputs.length, characters: inputs.reduce((sum, { text }) => sum + text.length, 0) };
}

function isAtLeastAsLarge(inputs: readonly PendingInput[], others: readonly PendingInput[]): boolean {
  const [size, otherSize] = [measure(inputs), measure(others)];
  return size.inputs >= otherSize.inputs && size.characters >= otherSize.characters;
}

/**
 * The server served the other requests of the call, so its failure rejects this one.
 * @param isAlone whether the failure is that of a call without other requests. Otherwise, its words may quote them.
 */
function toRejection(error: unknown, isAlone: boolean): AppError {
  const { message, status } = findServerError(error)!;
  // Without a status, the message is ours, and for operators.
  const words =
    isAlone && status !== null ? `: ${message}` : ', although it processed other inputs in the same call.';
  const text = `The model cannot process an input of this request${words}`;
  return new AppError('upstream_rejected', {
    message: text,
    cause: new UpstreamError('rejected', text, { status }),
  });
}
