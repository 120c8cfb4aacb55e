import { AppError } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { callClasses, type CallClass } from '../../shared/work/queue/call-class.ts';
import type { HeldCounts } from '../../shared/work/queue/held-work.ts';
import type { GrantedCall } from '../routing/call-route.ts';
import {
  findLimits,
  findLinesAhead,
  limitBatchCalls,
  minShare,
  planBatchCall,
  planCall,
  type ShareDecision,
} from './call-share.ts';
import { describeInvalidVector } from './deliver-vectors.ts';
import { EmbeddingCaller, type CallDeps } from './embedding-caller.ts';
import type { EmbeddingOutcomes, EmbeddingTask } from './embedding-task.ts';
import { PendingRequest, type InputClaim, type PendingInput } from './embedding-work.ts';
import { BatchPace } from './batch-pace.ts';
import { FaultSearch } from './fault-search.ts';
import { abortWhenAbandoned, findAccounts, LineMap, NobodyWaiting } from './call-inputs.ts';
import { deliverCached } from './cached-vectors.ts';
import { Quarantine } from './quarantine.ts';
import { SharedInputs } from './shared-inputs.ts';
import { TieredInputs } from './tiered-inputs.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import { findVectorSpace } from './vector-space.ts';

/**
 * How often deadlines are checked. A request must not wait past its deadline even if its model was removed or has no
 * free slot.
 */
const deadlineCheckMs = 1_000;
/** How long batch lines wait for others that fill their call. Reading lines from a file takes less, unless the store is slow. */
const fillMs = 250;

export interface SchedulerOptions {
  readonly modelId: string;
  readonly findModel: () => CatalogModel | undefined;
  /** Whether more lines of batches will be embedded soon. Until then, calls for them are full. */
  readonly expectsLines?: () => boolean;
}

/**
 * Queues all inputs of one model that wait in this process, across requests, jobs, batch lines and accounts. A call is
 * filled at the moment its upstream's slot is granted, so it includes the inputs that arrived while it waited for the
 * slot. Each class of inputs has its own slot requests.
 */
export class EmbeddingScheduler {
  readonly #options: SchedulerOptions;
  readonly #caller: EmbeddingCaller;
  readonly #log: Logger;
  readonly #vectorCache: VectorCacheStore;
  readonly #quarantine = new Quarantine();
  readonly #waiting = new TieredInputs<PendingInput>((accountId) => this.#quarantine.cohortOf(accountId));
  readonly #shared = new SharedInputs();
  readonly #faultSearch: FaultSearch;
  readonly #requests = new Set<PendingRequest>();
  /** Pending slot requests for the waiting inputs, by class. */
  readonly #slotRequests: Readonly<Record<CallClass, Set<AbortController>>> = {
    interactive: new Set(),
    job: new Set(),
    batch: new Set(),
  };
  readonly #pace = new BatchPace();
  /** Calls for batch lines that have their inputs. */
  #batchCalls = 0;
  /** Batch lines that are part of a running call. */
  #runningLines = 0;
  #deadlines: NodeJS.Timeout | null = null;
  /** Runs while batch lines wait for others that fill their call. */
  #filling: NodeJS.Timeout | null = null;
  #whenLinesWanted: Promise<void> | null = null;
  #endLinesWait: () => void = () => undefined;

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
   * Counts the requests and jobs that no model was called for yet, and those lines of batches that wait or run: these by
   * their inputs.
   */
  countWaiting(callClass: CallClass): HeldCounts {
    if (callClass === 'batch') {
      const waiting = this.#waiting.of('batch').size;
      return { waiting, running: this.#runningLines, oldestMs: 0 };
    }
    let [waiting, running, oldestAtMs] = [0, 0, Infinity];
    for (const request of this.#requests) {
      if (request.callClass !== callClass) continue;
      if (request.reachedModel) running += 1;
      else {
        waiting += 1;
        oldestAtMs = Math.min(oldestAtMs, request.createdAtMs);
      }
    }
    return { waiting, running, oldestMs: waiting === 0 ? 0 : performance.now() - oldestAtMs };
  }

  /**
   * Null if more batch lines can be read for this model, because those that wait are not enough for its next calls.
   * Otherwise resolves when they might not be. More would take memory, and the time to read them delays the responses of
   * running calls.
   */
  get whenLinesWanted(): Promise<void> | null {
    if (this.#wantsLines) return null;
    return (this.#whenLinesWanted ??= new Promise((resolve) => {
      this.#endLinesWait = resolve;
    }));
  }

  get #wantsLines(): boolean {
    const model = this.#options.findModel();
    if (model === undefined) return true;
    return this.#waiting.of('batch').size < findLinesAhead(model, this.#pace);
  }

  /** To be called when fewer inputs wait. */
  #callForLines(): void {
    if (this.#whenLinesWanted === null || !this.#wantsLines) return;
    this.#whenLinesWanted = null;
    this.#endLinesWait();
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
    this.#tryCall(request.callClass);
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
    this.#callForLines();
  }

  /**
   * Cancels pending slot requests of classes without waiting inputs. Otherwise they would acquire slots for nothing, or
   * wait forever.
   */
  #cancelSlotRequests(): void {
    for (const callClass of callClasses) {
      const slotRequests = this.#slotRequests[callClass];
      if (slotRequests.size === 0 || this.#waiting.of(callClass).size > 0) continue;
      for (const slotRequest of slotRequests) slotRequest.abort(new NobodyWaiting());
      slotRequests.clear();
    }
  }

  /**
   * Requests a slot for the waiting inputs of a class, or as many slots as they need if several are known to be free. A
   * call is filled when its slot is granted.
   * @param share how many inputs each call takes, if that was decided for several calls together; applies until more
   * inputs arrive
   */
  #tryCall(callClass: CallClass, freeSlots = 1, share: number | null = null): void {
    const isPart = this.#waiting.of(callClass).size < (share ?? this.#findMinShare(callClass));
    if (callClass === 'batch') {
      if (isPart && this.#canFill()) return;
      clearTimeout(this.#filling ?? undefined);
      this.#filling = null;
    }
    this.#requestSlots(callClass, freeSlots, share);
  }

  #requestSlots(callClass: CallClass, freeSlots: number, share: number | null): void {
    const { size: waiting, queueCount } = this.#waiting.of(callClass);
    const perCall = share ?? this.#findMinShare(callClass);
    const slotRequests = this.#slotRequests[callClass];
    const mayStart = callClass === 'batch' ? this.#pace.calls - this.#batchCalls : Infinity;
    const calls = Math.min(mayStart, freeSlots, Math.max(queueCount, Math.ceil(waiting / perCall)));
    while (slotRequests.size < calls) {
      const stop = new AbortController();
      slotRequests.add(stop);
      // Inputs added in the same tick go together.
      const decision = share === null ? null : { share, waiting };
      const calling = (): Promise<void> => this.#call(callClass, stop, decision);
      setImmediate(() => runInBackground(calling(), 'calling for embeddings', this.#log));
    }
  }

  /** Whether a call for the waiting batch lines should wait for others, which come soon. It is tried again then. */
  #canFill(): boolean {
    if (this.#options.expectsLines?.() !== true || this.#waiting.of('batch').size === 0) return false;
    if (this.#filling !== null) return true;
    this.#filling = setTimeout(() => {
      this.#filling = null;
      this.#requestSlots('batch', 1, null);
    }, fillMs);
    return true;
  }

  /** The least number of waiting inputs for which another call is worth a slot. Those for batch lines are full. */
  #findMinShare(callClass: CallClass): number {
    const model = callClass === 'batch' ? this.#options.findModel() : undefined;
    return model === undefined ? minShare : limitBatchCalls(model, this.#pace).maxInputs;
  }

  async #call(callClass: CallClass, stop: AbortController, decision: ShareDecision | null): Promise<void> {
    const model = this.#options.findModel();
    const waiting = this.#waiting.of(callClass);
    const slotRequests = this.#slotRequests[callClass];
    let inputs: readonly PendingInput[] | null = null;
    const failures = this.#caller.createFailures();
    let startedAtMs = 0;
    let lines = 0;
    const chooseInputs = (granted: GrantedCall): readonly PendingInput[] => {
      const batchLimits = limitBatchCalls(model!, this.#pace);
      const { plan, shareOfNext } =
        callClass === 'batch'
          ? planBatchCall(model!, batchLimits, waiting.size, this.#options.expectsLines?.() ?? true, decision)
          : planCall(model!, waiting.size, granted, decision);
      const limits = findLimits(model!);
      inputs = this.#waiting.take(callClass, granted.accountId, plan, limits, batchLimits);
      startedAtMs = performance.now();
      lines = inputs.filter((input) => input.callClass === 'batch').length;
      this.#runningLines += lines;
      if (callClass === 'batch') this.#batchCalls += 1;
      runInBackground(abortWhenAbandoned(inputs, stop), 'watching a call', this.#log);
      slotRequests.delete(stop);
      this.#tryCall(callClass, Math.max(1, granted.spareSlots), shareOfNext);
      this.#cancelSlotRequests();
      this.#callForLines();
      return inputs;
    };
    try {
      const accountIds = (): Iterable<string> =>
        inputs === null ? waiting.accountIds() : findAccounts(inputs);
      const broken = await this.#caller.call(model, {
        callClass,
        accountIds,
        stop,
        chooseInputs,
        failures,
        isSplitAfter: (error) => this.#faultSearch.isSplitAfter(error, inputs ?? []),
      });
      if (callClass === 'batch') this.#noteBatchCall(model!, inputs!, performance.now() - startedAtMs);
      this.#faultSearch.noteServed();
      this.#failInputs(broken, describeInvalidVector);
    } catch (error) {
      if (inputs === null) {
        if (error instanceof NobodyWaiting) return;
        // No route can be called, so all waiting requests of the class fail. Later requests try again.
        inputs = waiting.drain();
        slotRequests.delete(stop);
        this.#cancelSlotRequests();
        this.#callForLines();
      }
      if (startedAtMs > 0 && callClass === 'batch')
        this.#noteFailedCall(model!, inputs, error, performance.now() - startedAtMs);
      await this.#faultSearch.fail(inputs, error, failures);
    } finally {
      failures.count();
      this.#runningLines -= lines;
      for (const input of inputs ?? []) this.#shared.remove(input);
      if (callClass === 'batch' && startedAtMs > 0) {
        this.#batchCalls -= 1;
        this.#tryCall('batch');
      }
    }
  }

  #noteBatchCall(model: CatalogModel, { length }: readonly PendingInput[], ms: number): void {
    this.#pace.noteCall(length, ms, findLimits(model).maxInputs);
    this.#callForLines();
  }

  #noteFailedCall(model: CatalogModel, inputs: readonly PendingInput[], error: unknown, ms: number): void {
    const code = error instanceof AppError ? error.code : null;
    if (code === 'upstream_timeout') this.#pace.noteSlowCall(inputs.length);
    // Otherwise, a batch whose lines are all rejected would be searched in many small calls.
    if (code === 'upstream_rejected') this.#noteBatchCall(model, inputs, ms);
  }

  /** Fails these inputs and their lines. The remaining inputs of those lines are withdrawn. */
  #failInputs(inputs: readonly PendingInput[], describe: (claim: InputClaim) => unknown): void {
    const failedClaims = new LineMap<InputClaim>();
    for (const input of inputs) for (const claim of input.claims) failedClaims.set(claim, claim);
    for (const input of inputs) input.fail(describe);
    for (const claim of failedClaims.values())
      this.#dropAbandoned(claim.request.withdrawLine(claim.index, describe(claim)));
  }

  #failOverdue(): void {
    const nowMs = Date.now();
    // Its slots may have changed.
    this.#callForLines();
    for (const request of this.#requests) {
      if (nowMs > request.task.deadlineAtMs)
        this.#dropAbandoned(request.expire(new AppError('deadline_exceeded')));
    }
  }
}
