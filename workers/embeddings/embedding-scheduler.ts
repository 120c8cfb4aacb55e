import { AppError } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import type { GrantedCall } from '../routing/call-route.ts';
import { chooseShare, findLimits, minShare, type ShareDecision } from './call-share.ts';
import { describeInvalidVector } from './deliver-vectors.ts';
import { EmbeddingCaller, type CallDeps } from './embedding-caller.ts';
import {
  PendingRequest,
  type EmbeddingOutcomes,
  type EmbeddingTask,
  type InputClaim,
  type PendingInput,
} from './embedding-work.ts';
import { FaultSearch } from './fault-search.ts';
import { abortWhenAbandoned, findAccounts, NobodyWaiting } from './call-inputs.ts';
import { deliverCached } from './cached-vectors.ts';
import { Quarantine } from './quarantine.ts';
import { SharedInputs } from './shared-inputs.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import { findVectorSpace } from './vector-space.ts';
import { WaitingInputs } from './waiting-inputs.ts';

/**
 * How often deadlines are checked. A request must not wait past its deadline even if its model was removed or has no
 * free slot.
 */
const deadlineCheckMs = 1_000;

export interface SchedulerOptions {
  readonly modelId: string;
  /** Whether it serves only durable jobs, for which no client waits on a connection. */
  readonly isBackground?: boolean;
  readonly findModel: () => CatalogModel | undefined;
}

/**
 * Queues all inputs of one model that wait in this process, across jobs and accounts. A call is filled at the
 * moment its upstream's slot is granted, so it includes the inputs that arrived while it waited for the slot.
 */
export class EmbeddingScheduler {
  readonly #options: SchedulerOptions;
  readonly #caller: EmbeddingCaller;
  readonly #log: Logger;
  readonly #vectorCache: VectorCacheStore;
  readonly #quarantine = new Quarantine();
  readonly #waiting = new WaitingInputs<PendingInput>((accountId) => this.#quarantine.cohortOf(accountId));
  readonly #shared = new SharedInputs();
  readonly #faultSearch: FaultSearch;
  readonly #requests = new Set<PendingRequest>();
  /** Pending slot requests for the waiting inputs. */
  readonly #slotRequests = new Set<AbortController>();
  #deadlines: NodeJS.Timeout | null = null;

  constructor(dependencies: CallDeps, options: SchedulerOptions) {
    this.#options = options;
    this.#caller = new EmbeddingCaller(dependencies, this.#quarantine, options);
    this.#vectorCache = dependencies.vectorCache;
    this.#log = dependencies.log;
    this.#faultSearch = new FaultSearch({
      caller: this.#caller,
      quarantine: this.#quarantine,
      findModel: options.findModel,
      failInputs: (inputs, describe) => this.#failInputs(inputs, describe),
      log: dependencies.log,
    });
  }

  get isIdle(): boolean {
    return this.#requests.size === 0;
  }

  /** Inputs that are not part of a call yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Embeds a request's inputs. Never rejects: an input that failed, or whose caller disconnected before a model
   * was called, has its error in the result.
   */
  async embed(task: EmbeddingTask): Promise<EmbeddingOutcomes> {
    const request = new PendingRequest(task);
    this.#requests.add(request);
    this.#deadlines ??= setInterval(() => this.#failOverdue(), deadlineCheckMs);
    const { signal, stopSignal, stopping } = task;
    const onStop = (): void => this.#dropAbandoned(request.fail(stopSignal.reason));
    const onAbort = (): void => this.#dropAbandoned(request.leave(signal.reason));
    const onStopping = (): void => {
      if (signal.aborted) this.#dropAbandoned(request.fail(signal.reason));
    };
    stopSignal.addEventListener('abort', onStop, { once: true });
    stopping?.addEventListener('abort', onStopping, { once: true });
    signal.addEventListener('abort', onAbort, { once: true });
    if (stopSignal.aborted) onStop();
    if (signal.aborted) onAbort();
    const space = findVectorSpace(this.#options.findModel(), task.dimensions);
    if (space !== null) await deliverCached(this.#vectorCache, space, request);
    for (const i of request.findMissing()) this.#add(request, i);
    this.#tryCall();
    const outcomes = await request.answer;
    stopSignal.removeEventListener('abort', onStop);
    stopping?.removeEventListener('abort', onStopping);
    signal.removeEventListener('abort', onAbort);
    this.#requests.delete(request);
    if (this.isIdle && this.#deadlines !== null) {
      clearInterval(this.#deadlines);
      this.#deadlines = null;
    }
    return outcomes;
  }

  #add(request: PendingRequest, index: number): void {
    const input = this.#shared.claim(request, index);
    if (input !== null) input.entry = this.#waiting.add(input);
  }

  /** Drops inputs that nobody else waits for. */
  #dropAbandoned(inputs: ReadonlySet<PendingInput>): void {
    for (const input of inputs) {
      if (input.isNeeded) continue;
      this.#waiting.remove(input.entry!);
      this.#shared.remove(input);
    }
    this.#cancelSlotRequests();
  }

  /**
   * Cancels pending slot requests if no input waits. Otherwise they would acquire slots for nothing, or wait
   * forever.
   */
  #cancelSlotRequests(): void {
    if (this.#waiting.size > 0) return;
    for (const slotRequest of this.#slotRequests) slotRequest.abort(new NobodyWaiting());
    this.#slotRequests.clear();
  }

  /**
   * Requests a slot for the waiting inputs, or as many slots as they need if several are known to be free. A call is
   * filled when its slot is granted.
   * @param share how many inputs each call takes, if that was decided for several calls together; applies until more
   * inputs arrive
   */
  #tryCall(freeSlots = 1, share: number | null = null): void {
    const waiting = this.#waiting.size;
    const neededCalls = Math.max(this.#waiting.queueCount, Math.ceil(waiting / (share ?? minShare)));
    const calls = Math.min(freeSlots, neededCalls);
    while (this.#slotRequests.size < calls) {
      const stop = new AbortController();
      this.#slotRequests.add(stop);
      // Inputs added in the same tick go together.
      const decision = share === null ? null : { share, waiting };
      setImmediate(() => runInBackground(this.#call(stop, decision), 'calling for embeddings', this.#log));
    }
  }

  async #call(stop: AbortController, decision: ShareDecision | null): Promise<void> {
    const model = this.#options.findModel();
    let inputs: readonly PendingInput[] | null = null;
    const failures = this.#caller.createFailures();
    const chooseInputs = (granted: GrantedCall): readonly PendingInput[] => {
      const { share, isEven, shareOfNext } = chooseShare(model!, this.#waiting.size, granted, decision);
      const limits = findLimits(model!);
      const maxInputs = Math.min(limits.maxInputs, isEven ? share : 2 * share);
      inputs = this.#waiting.take(granted.accountId, {
        maxTokens: limits.maxTokens,
        maxInputs,
        enough: Math.min(maxInputs, share),
      });
      runInBackground(abortWhenAbandoned(inputs, stop), 'watching a call', this.#log);
      this.#slotRequests.delete(stop);
      this.#tryCall(Math.max(1, granted.spareSlots), shareOfNext);
      this.#cancelSlotRequests();
      return inputs;
    };
    try {
      const accountIds = (): Iterable<string> =>
        inputs === null ? this.#waiting.accountIds() : findAccounts(inputs);
      const broken = await this.#caller.call(model, {
        accountIds,
        stop,
        chooseInputs,
        failures,
        isSplitAfter: (error) => this.#faultSearch.isSplitAfter(error, inputs ?? []),
      });
      this.#faultSearch.noteServed();
      this.#failInputs(broken, describeInvalidVector);
    } catch (error) {
      if (inputs === null) {
        if (error instanceof NobodyWaiting) return;
        // No route can be called, so all waiting requests fail. Later requests try again.
        inputs = this.#waiting.drain();
        this.#slotRequests.delete(stop);
        this.#cancelSlotRequests();
      }
      await this.#faultSearch.fail(inputs, error, failures);
    } finally {
      failures.count();
      for (const input of inputs ?? []) this.#shared.remove(input);
    }
  }

  /** Fails these inputs and their requests. The remaining inputs of those requests are withdrawn. */
  #failInputs(inputs: readonly PendingInput[], describe: (claim: InputClaim) => unknown): void {
    const failedClaims = new Map(
      inputs.flatMap(({ claims }) => claims.map((claim) => [claim.request, claim])),
    );
    for (const input of inputs) input.fail(describe);
    for (const [request, claim] of failedClaims) this.#dropAbandoned(request.withdraw(describe(claim)));
  }

  #failOverdue(): void {
    const nowMs = Date.now();
    for (const request of this.#requests) {
      if (!request.reachedModel && nowMs > request.task.deadlineAtMs) {
        this.#dropAbandoned(request.withdraw(new AppError('deadline_exceeded')));
      }
    }
  }
}
