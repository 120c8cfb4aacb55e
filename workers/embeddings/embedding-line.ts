import { AppError } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { Chance } from '../routing/call-route.ts';
import { chooseShare, findLimits, leastShare, type ShareDecision } from './call-share.ts';
import { describeBroken } from './deliver-vectors.ts';
import { EmbeddingCaller, NothingWanted, type CallDependencies } from './embedding-caller.ts';
import {
  AskUnderWay,
  isRefusal,
  WorkUnit,
  type Claim,
  type EmbeddingAnswerOfAsk,
  type EmbeddingAsk,
} from './embedding-work.ts';
import { deliverKept } from './kept-vectors.ts';
import { Quarantine } from './quarantine.ts';
import { abortWhenUnwanted, findAccounts, groupByAsk } from './units-of-calls.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import { findVectorSpace } from './vector-space.ts';
import { WaitingInputs } from './waiting-inputs.ts';

/**
 * Calls that finding out whose inputs a vendor refused may cost at the most: enough for a dozen bad ones among some hundred
 * requests, and fewer than the requests would have cost one by one. Whoever is not cleared by then fails in a way that may
 * be tried again.
 */
const countSearchCalls = (requests: number): number => 64 + Math.ceil(requests / 4);

/** A request of a model that is gone or full must not wait past its deadline. */
const deadlineCheckMs = 1_000;

export interface LineOptions {
  readonly modelId: string;
  /** Nobody waits at a socket for what is in it. */
  readonly isBackground?: boolean;
  readonly findModel: () => CatalogModel | undefined;
}

/**
 * All inputs of one model that wait in this process, whichever jobs and accounts they came with. A call is filled in the
 * moment in which a slot of its upstream is granted: with what is there where slots are free, and with all that has
 * gathered where they were taken.
 */
export class EmbeddingLine {
  readonly #options: LineOptions;
  readonly #caller: EmbeddingCaller;
  readonly #log: Logger;
  readonly #vectorCache: VectorCacheStore;
  readonly #quarantine = new Quarantine();
  readonly #waiting = new WaitingInputs<WorkUnit>((accountId) => this.#quarantine.cohortOf(accountId));
  /** Units that wait or are at the vendor: of each account, number of dimensions and way to pay, by text. */
  readonly #shared = new Map<string, Map<string, WorkUnit>>();
  readonly #asks = new Set<AskUnderWay>();
  /** Who stands at the gate for what waits. */
  readonly #knocks = new Set<AbortController>();
  #deadlines: NodeJS.Timeout | null = null;

  constructor(dependencies: CallDependencies, options: LineOptions) {
    this.#options = options;
    this.#caller = new EmbeddingCaller(dependencies, this.#quarantine, options);
    this.#vectorCache = dependencies.vectorCache;
    this.#log = dependencies.log;
  }

  get isIdle(): boolean {
    return this.#asks.size === 0;
  }

  /** Inputs that are with no call yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Never rejects: an input that fails, or that its caller left before a model was asked, has its error in the answer. */
  async embed(ask: EmbeddingAsk): Promise<EmbeddingAnswerOfAsk> {
    const underWay = new AskUnderWay(ask);
    this.#asks.add(underWay);
    this.#deadlines ??= setInterval(() => this.#failOverdue(), deadlineCheckMs);
    const { signal, stopSignal, stopping } = ask;
    const onStop = (): void => this.#giveUp(underWay.fail(stopSignal.reason));
    const onAbort = (): void => this.#giveUp(underWay.leave(signal.reason));
    const onStopping = (): void => {
      if (signal.aborted) this.#giveUp(underWay.fail(signal.reason));
    };
    stopSignal.addEventListener('abort', onStop, { once: true });
    stopping?.addEventListener('abort', onStopping, { once: true });
    signal.addEventListener('abort', onAbort, { once: true });
    if (stopSignal.aborted) onStop();
    if (signal.aborted) onAbort();
    const space = findVectorSpace(this.#options.findModel(), ask.dimensions);
    if (space !== null) await deliverKept(this.#vectorCache, space, underWay);
    for (const i of underWay.findMissing()) this.#add(underWay, i);
    this.#knock();
    const answer = await underWay.answer;
    stopSignal.removeEventListener('abort', onStop);
    stopping?.removeEventListener('abort', onStopping);
    signal.removeEventListener('abort', onAbort);
    this.#asks.delete(underWay);
    if (this.isIdle && this.#deadlines !== null) {
      clearInterval(this.#deadlines);
      this.#deadlines = null;
    }
    return answer;
  }

  #add(ask: AskUnderWay, index: number): void {
    const { inputs, inputTokens } = ask.ask;
    const text = inputs[index]!;
    const name = nameShared(ask);
    let shared = this.#shared.get(name);
    if (shared === undefined) {
      shared = new Map();
      this.#shared.set(name, shared);
    }
    let unit = shared.get(text);
    // The call of one that nobody wants any more is not made again if it fails.
    if (unit === undefined || !unit.isWanted) {
      unit = new WorkUnit(ask, text, inputTokens[index] ?? 0);
      shared.set(text, unit);
      unit.entry = this.#waiting.add(unit);
    }
    unit.claim(ask, index);
  }

  /** Takes out what was waited for by nobody else. */
  #giveUp(units: ReadonlySet<WorkUnit>): void {
    for (const unit of units) {
      if (unit.isWanted) continue;
      this.#waiting.remove(unit.entry!);
      this.#forget(unit);
    }
    this.#leaveGate();
  }

  /** Where nothing waits any more: who stood at the gate for it would be granted slots for nothing, or stand there for ever. */
  #leaveGate(): void {
    if (this.#waiting.size > 0) return;
    for (const knock of this.#knocks) knock.abort(new NothingWanted());
    this.#knocks.clear();
  }

  /**
   * One stands at the gate for all that wait, and where slots are known to be free, one for each that is needed; a slot is
   * filled when it is had.
   * @param share what each of them takes, where that is decided for all of them together and no more comes to wait
   */
  #knock(freeSlots = 1, share: number | null = null): void {
    const waiting = this.#waiting.size;
    const needed = Math.max(this.#waiting.queueCount, Math.ceil(waiting / (share ?? leastShare)));
    const calls = Math.min(freeSlots, needed);
    while (this.#knocks.size < calls) {
      const stop = new AbortController();
      this.#knocks.add(stop);
      // What is added in the same turn goes together.
      const decision = share === null ? null : { share, waiting };
      setImmediate(() => runInBackground(this.#call(stop, decision), 'calling for embeddings', this.#log));
    }
  }

  async #call(stop: AbortController, decision: ShareDecision | null): Promise<void> {
    const model = this.#options.findModel();
    let units: readonly WorkUnit[] | null = null;
    const chooseUnits = (chance: Chance): readonly WorkUnit[] => {
      const { share, isEven, shareOfNext } = chooseShare(model!, this.#waiting.size, chance, decision);
      const limits = findLimits(model!);
      const maxInputs = Math.min(limits.maxInputs, isEven ? share : 2 * share);
      units = this.#waiting.take(chance.accountId, {
        maxTokens: limits.maxTokens,
        maxInputs,
        enough: Math.min(maxInputs, share),
      });
      runInBackground(abortWhenUnwanted(units, stop), 'watching a call', this.#log);
      this.#knocks.delete(stop);
      this.#knock(Math.max(1, chance.spareSlots), shareOfNext);
      this.#leaveGate();
      return units;
    };
    try {
      const accountIds = (): Iterable<string> =>
        units === null ? this.#waiting.accountIds() : findAccounts(units);
      const broken = await this.#caller.call(model, { accountIds, stop, chooseUnits });
      this.#failUnits(broken, describeBroken);
    } catch (error) {
      if (error instanceof NothingWanted) return;
      if (units === null) {
        // Nothing can be called: whoever waits is told, and whoever comes later tries again.
        units = this.#waiting.drain();
        this.#knocks.delete(stop);
        this.#leaveGate();
      }
      await this.#fail(units, error, null);
    } finally {
      for (const unit of units ?? []) this.#forget(unit);
    }
  }

  /**
   * A refusal of a call that several requests share is somebody's fault: each half of them is asked for again, until those
   * are found whose inputs are refused by themselves. Nothing is asked for again on behalf of callers who have left.
   * @param under the search that these units were asked for in; null where one begins
   */
  async #fail(units: readonly WorkUnit[], error: unknown, under: { left: number } | null): Promise<void> {
    for (const unit of units) unit.failLeft(error);
    const wanted = units.filter((unit) => unit.isWanted);
    const groups = groupByAsk(wanted);
    const isRefused = isRefusal(error);
    const someLeft = wanted.length < units.length;
    if (isRefused) {
      // Inputs of callers who have left are not searched, or leaving would hide who sends what is refused.
      for (const unit of units) if (!unit.isWanted) this.#quarantine.addRefused(unit.accountId);
      if (groups.length === 1 && !someLeft) this.#quarantine.addRefused(wanted[0]!.accountId);
    }
    if (!isRefused || (groups.length <= 1 && !someLeft)) {
      this.#failUnits(wanted, () => error);
      return;
    }
    const search = under ?? { left: countSearchCalls(groups.length) };
    const middle = Math.ceil(groups.length / 2);
    // Where some have left, the fault may be theirs alone.
    const parts = someLeft ? [wanted] : [groups.slice(0, middle).flat(), groups.slice(middle).flat()];
    await Promise.all(
      parts.map(async (part) => {
        if (part.length === 0) return;
        if (search.left <= 0) {
          const lost = new AppError('upstream_error', {
            message:
              'The model refused inputs of other requests that this one shared its call with. Try again.',
          });
          this.#failUnits(part, () => lost);
          return;
        }
        search.left -= 1;
        const stop = new AbortController();
        runInBackground(abortWhenUnwanted(part, stop), 'watching a call', this.#log);
        try {
          const accounts = findAccounts(part);
          const searchCall = { accountIds: () => accounts, stop, chooseUnits: () => part };
          const broken = await this.#caller.call(this.#options.findModel(), searchCall);
          this.#failUnits(broken, describeBroken);
        } catch (again) {
          // Callers who leave during the search would otherwise hide whose input was refused.
          if (again instanceof NothingWanted)
            for (const { accountId } of part) this.#quarantine.addRefused(accountId);
          await this.#fail(part, again, search);
        }
      }),
    );
  }

  /** A request of which an input failed has failed: what it still waits for is not asked for any more. */
  #failUnits(units: readonly WorkUnit[], describe: (claim: Claim) => unknown): void {
    const failed = new Map(units.flatMap(({ claims }) => claims.map((claim) => [claim.ask, claim])));
    for (const unit of units) unit.fail(describe);
    for (const [ask, claim] of failed) this.#giveUp(ask.withdraw(describe(claim)));
  }

  #forget(unit: WorkUnit): void {
    const name = nameShared(unit.group);
    const shared = this.#shared.get(name);
    if (shared?.get(unit.text) !== unit) return;
    shared.delete(unit.text);
    if (shared.size === 0) this.#shared.delete(name);
  }

  #failOverdue(): void {
    const nowMs = Date.now();
    for (const underWay of this.#asks) {
      if (!underWay.reachedModel && nowMs > underWay.ask.deadlineAtMs) {
        this.#giveUp(underWay.withdraw(new AppError('deadline_exceeded')));
      }
    }
  }
}

const nameShared = ({ ask: { accountId, dimensions, isPaidByTime } }: AskUnderWay): string =>
  `${dimensions}\n${isPaidByTime}\n${accountId}`;
