import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import type { RequestFailures } from '../routing/request-failures.ts';
import { isServerError } from '../routing/retry-policy.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';
import { describeInvalidVector } from './deliver-vectors.ts';
import type { EmbeddingCaller } from './embedding-caller.ts';
import { findServerError, isInputRejection } from './embedding-task.ts';
import type { InputClaim, PendingInput } from './embedding-work.ts';
import {
  abortWhenAbandoned,
  findAccounts,
  findCallClass,
  groupByLine,
  NobodyWaiting,
} from './call-inputs.ts';
import type { Quarantine } from './quarantine.ts';
import { ServerErrorSearch, type SearchState } from './server-error-search.ts';

/**
 * The maximum number of calls spent on finding whose inputs a vendor rejected: enough for a dozen bad inputs among
 * about a hundred lines, and fewer than one call per line. Lines not cleared by then fail with a retryable error.
 */
const computeCallBudget = (lines: number): number => 64 + Math.ceil(lines / 4);

/**
 * After this many rejected calls of a search, halves are called one after the other. So the search of a call in which
 * most lines are bad has few calls at a time, and finds some of them before its calls are used up.
 */
const maxParallelRejections = 16;

export interface FaultSearchDeps {
  readonly caller: EmbeddingCaller;
  readonly quarantine: Quarantine;
  readonly findModel: () => CatalogModel | undefined;
  /** Fails inputs and the lines they belong to. */
  readonly failInputs: (inputs: readonly PendingInput[], describe: (claim: InputClaim) => unknown) => void;
  readonly log: Logger;
}

/**
 * Finds whose inputs are at fault when a vendor rejects, or its server fails at, a call that several requests share. The
 * unit of the search is a line of a request; most requests are one line.
 */
export class FaultSearch {
  readonly #deps: FaultSearchDeps;
  readonly #serverErrors: ServerErrorSearch;

  constructor(deps: FaultSearchDeps) {
    this.#deps = deps;
    const { quarantine, failInputs } = deps;
    this.#serverErrors = new ServerErrorSearch({
      quarantine,
      failInputs,
      callAgain: (inputs, failures) => this.#call(inputs, failures, isServerError),
      failPart: (inputs, error, state) => this.#fail(inputs, error, state),
    });
  }

  /**
   * Whether a call is searched without being repeated first. Other statuses than 500 speak of the server's load or of what
   * is before it, so they are retried first.
   */
  isSplitAfter(error: UpstreamError, inputs: readonly PendingInput[]): boolean {
    return error.status === 500 && !this.#serverErrors.isPaused && groupByLine(inputs).length > 1;
  }

  /** To be called when the server has served a call. */
  noteServed(): void {
    this.#serverErrors.resume();
  }

  /**
   * Fails the inputs of a failed call. If the vendor rejected a call that several lines share, bisects it: each half is
   * called again until the lines are found whose inputs are rejected on their own. If its server failed with a 5xx,
   * searches for the line at which it fails. Nothing is retried for callers that have disconnected.
   * @param failures the failures of the call, which do not count yet
   */
  async fail(inputs: readonly PendingInput[], error: unknown, failures: RequestFailures): Promise<void> {
    const callsLeft = computeCallBudget(groupByLine(inputs).length);
    const state = { failures, callsLeft, rejections: 0, isServed: false };
    await this.#fail(inputs, error, state);
  }

  async #fail(inputs: readonly PendingInput[], error: unknown, search: SearchState): Promise<void> {
    const { quarantine, failInputs } = this.#deps;
    for (const input of inputs) input.failDisconnected(error);
    const neededInputs = inputs.filter((input) => input.isNeeded);
    const groups = groupByLine(neededInputs);
    const isRejected = isInputRejection(error);
    const someDisconnected = neededInputs.length < inputs.length;
    if (findServerError(error) !== null && groups.length > 1 && !this.#serverErrors.isPaused) {
      await this.#serverErrors.search(groups, { inputs, error, isInDoubt: someDisconnected }, search);
      return;
    }
    if (isRejected) {
      // The search skips inputs of disconnected callers. Quarantine their accounts: otherwise a client could hide its
      // bad inputs by disconnecting early.
      for (const input of inputs) if (!input.isNeeded) quarantine.addRejected(input.accountId);
      if (groups.length === 1 && !someDisconnected) quarantine.addRejected(neededInputs[0]!.accountId);
    }
    if (!isRejected || (groups.length <= 1 && !someDisconnected)) {
      failInputs(neededInputs, () => error);
      return;
    }
    const middle = Math.ceil(groups.length / 2);
    // If some callers have disconnected, their inputs alone may be at fault.
    const parts = someDisconnected
      ? [neededInputs]
      : [groups.slice(0, middle).flat(), groups.slice(middle).flat()];
    search.rejections += 1;
    if (search.rejections <= maxParallelRejections)
      await Promise.all(parts.map((part) => this.#callAgain(part, search)));
    else for (const part of parts) await this.#callAgain(part, search);
  }

  async #callAgain(part: readonly PendingInput[], search: SearchState): Promise<void> {
    const { quarantine, failInputs } = this.#deps;
    if (part.length === 0) return;
    if (search.callsLeft <= 0) {
      const retryable = new AppError('upstream_error', {
        message: 'The model rejected inputs of other requests that were batched with this one. Try again.',
      });
      failInputs(part, () => retryable);
      return;
    }
    search.callsLeft -= 1;
    try {
      await this.#call(part, search.failures, (error) => this.isSplitAfter(error, part));
      search.isServed = true;
    } catch (error) {
      // If all callers disconnect during the search, quarantine their accounts: otherwise they could hide a bad input
      // by disconnecting.
      if (error instanceof NobodyWaiting) for (const { accountId } of part) quarantine.addRejected(accountId);
      await this.#fail(part, error, search);
    }
  }

  async #call(
    part: readonly PendingInput[],
    failures: RequestFailures,
    isSplitAfter: (error: UpstreamError) => boolean,
  ): Promise<void> {
    const { caller, failInputs, findModel, log } = this.#deps;
    const stop = new AbortController();
    runInBackground(abortWhenAbandoned(part, stop), 'watching a call', log);
    const accounts = findAccounts(part);
    const call = {
      callClass: findCallClass(part),
      accountIds: () => accounts,
      stop,
      chooseInputs: () => part,
      failures,
      isSplitAfter,
    };
    failInputs(await caller.call(findModel(), call), describeInvalidVector);
  }
}
