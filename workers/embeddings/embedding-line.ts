import { AppError } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { countSlots } from '../../shared/routing/route-way.ts';
import { createMediaLoader, type MediaSources } from '../media/media-loader.ts';
import { callRoute, type Chance, type Routing } from '../routing/call-route.ts';
import { UpstreamError, type CallContext } from '../upstreams/upstream.ts';
import {
  AskUnderWay,
  VectorHold,
  WorkUnit,
  type EmbeddingAnswerOfAsk,
  type EmbeddingAsk,
} from './embedding-work.ts';
import { deliverVectors } from './deliver-vectors.ts';
import { FairLine, type CallLimits } from './fair-line.ts';
import { deliverKept, keepOutcomes } from './kept-vectors.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import type { Suspects } from './suspects.ts';
import { findVectorSpace } from './vector-space.ts';

/** How long a batch waits where no route can be called for the moment. */
const patience = { keyMs: 60_000, breakerMs: 30_000 };

/**
 * Calls that finding out whose inputs a vendor refused may cost at the most: enough for a dozen bad ones among some hundred
 * requests, and fewer than the requests would have cost one by one. Whoever is not cleared by then fails in a way that may
 * be tried again.
 */
const countSearchCalls = (requests: number): number => 64 + Math.ceil(requests / 4);

/** Calls are what vendors bound: one is not split further than this for the sake of slots that are free. */
const leastShare = 32;

/** A request of a model that is gone or full must not wait past its deadline. */
const deadlineCheckMs = 1_000;

/** A slot was granted when nobody waited any more: no call was made with it. */
class NothingWanted extends Error {
  override readonly name = 'NothingWanted';
}

export interface LineDependencies {
  readonly routing: Routing;
  readonly log: Logger;
  readonly media: MediaSources;
  readonly vectorCache: VectorCacheStore;
}

export interface LineOptions {
  readonly modelId: string;
  readonly findModel: () => CatalogModel | undefined;
  /** Null for the model's own. */
  readonly dimensions: number | null;
  /** Their inputs share calls with each other's alone: who sends what is refused costs nobody else a search. */
  readonly suspects: Suspects;
}

/**
 * All inputs of one model and one number of dimensions that wait in this process, whichever jobs and accounts they came
 * with. A call is filled in the moment in which a slot of its upstream is granted: with what is there where slots are
 * free, and with all that has gathered where they were taken.
 */
export class EmbeddingLine {
  readonly #dependencies: LineDependencies;
  readonly #options: LineOptions;
  readonly #waiting: FairLine<WorkUnit>;
  /** Units that wait or are at the vendor: of each account, by text. */
  readonly #shared = new Map<string, Map<string, WorkUnit>>();
  readonly #asks = new Set<AskUnderWay>();
  /** Who stands at the gate for what waits. */
  readonly #knocks = new Set<AbortController>();
  #deadlines: NodeJS.Timeout | null = null;

  constructor(dependencies: LineDependencies, options: LineOptions) {
    this.#dependencies = dependencies;
    this.#options = options;
    this.#waiting = new FairLine((accountId) => options.suspects.has(accountId));
  }

  get isIdle(): boolean {
    return this.#asks.size === 0;
  }

  /** Inputs that are with no call yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Never rejects: an input that fails, or whose asker leaves, has its error in the answer. */
  async embed(ask: EmbeddingAsk): Promise<EmbeddingAnswerOfAsk> {
    const underWay = new AskUnderWay(ask);
    this.#asks.add(underWay);
    this.#deadlines ??= setInterval(() => this.#failOverdue(), deadlineCheckMs);
    const onAbort = (): void => underWay.fail(ask.signal.reason);
    ask.signal.addEventListener('abort', onAbort, { once: true });
    if (ask.signal.aborted) onAbort();
    const space = findVectorSpace(this.#options.findModel(), this.#options.dimensions);
    if (space !== null) await deliverKept(this.#dependencies.vectorCache, space, underWay);
    for (const i of underWay.findMissing()) {
      this.#add(underWay, i, ask.inputs[i]!, ask.inputTokens[i] ?? 0);
    }
    this.#knock();
    const answer = await underWay.answer;
    ask.signal.removeEventListener('abort', onAbort);
    this.#asks.delete(underWay);
    if (this.isIdle) this.#rest();
    return answer;
  }

  /** Nobody wants anything: those at the gate leave it, for each would have to be granted a slot before the next. */
  #rest(): void {
    if (this.#deadlines !== null) clearInterval(this.#deadlines);
    this.#deadlines = null;
    for (const knock of this.#knocks) knock.abort(new NothingWanted());
    this.#knocks.clear();
  }

  #add(ask: AskUnderWay, index: number, text: string, tokens: number): void {
    const { accountId } = ask.ask;
    let ofAccount = this.#shared.get(accountId);
    if (ofAccount === undefined) {
      ofAccount = new Map();
      this.#shared.set(accountId, ofAccount);
    }
    let unit = ofAccount.get(text);
    // One that nobody wanted any more is given up, perhaps in the middle of its call.
    if (unit === undefined || !unit.isWanted) {
      unit = new WorkUnit(accountId, text, tokens);
      ofAccount.set(text, unit);
      this.#waiting.add(unit);
    }
    unit.claim(ask, index);
  }

  /**
   * One stands at the gate for all that wait, and where slots are known to be free, one for each that is needed; a slot is
   * filled when it is had.
   * @param share what each of them takes, where that is decided for all of them together and no more comes to wait
   */
  #knock(freeSlots = 1, share: number | null = null): void {
    const waiting = this.#waiting.size;
    const calls = Math.min(freeSlots, Math.ceil(waiting / (share ?? leastShare)));
    while (this.#knocks.size < calls) {
      const stop = new AbortController();
      this.#knocks.add(stop);
      // What is added in the same turn goes together.
      setImmediate(() => void this.#call(stop, share === null ? null : { share, waiting }));
    }
  }

  async #call(stop: AbortController, decision: ShareDecision | null): Promise<void> {
    const model = this.#options.findModel();
    let units: readonly WorkUnit[] | null = null;
    try {
      await this.#callModel(model, stop, (chance) => {
        const waiting = this.#waiting.size;
        const decidedShare = decision !== null && waiting <= decision.waiting ? decision.share : null;
        const allSlots = countSlots(model!.routes);
        const evenShare = decidedShare === null ? findEvenShare(waiting, chance, allSlots) : null;
        const share = decidedShare ?? evenShare ?? findShare(waiting, allSlots);
        const isEven = decidedShare !== null || evenShare !== null;
        units = this.#takeUnits(model!, { enough: share, most: isEven ? share : 2 * share }, stop);
        this.#knocks.delete(stop);
        this.#knock(Math.max(1, chance.spareSlots), evenShare);
        return units;
      });
    } catch (error) {
      if (error instanceof NothingWanted) return;
      if (units === null) {
        // Nothing can be called: whoever waits is told, and whoever comes later tries again.
        units = this.#waiting.drain();
        this.#knocks.delete(stop);
      }
      await this.#fail(units, error, null);
    } finally {
      for (const unit of units ?? []) this.#forget(unit);
    }
  }

  #takeUnits(
    model: CatalogModel,
    { enough, most }: { readonly enough: number; readonly most: number },
    stop: AbortController,
  ): WorkUnit[] {
    const limits = findLimits(model);
    const maxInputs = Math.min(limits.maxInputs, most);
    const plan = { maxTokens: limits.maxTokens, maxInputs, enough: Math.min(maxInputs, enough) };
    const units = this.#waiting.take(plan, (unit) => {
      if (unit.isWanted) return true;
      this.#forget(unit);
      return false;
    });
    abortWhenUnwanted(units, stop);
    return units;
  }

  /** One call through the model's routes, for units that are chosen once it may be made. Delivers what comes of it. */
  async #callModel(
    model: CatalogModel | undefined,
    stop: AbortController,
    chooseUnits: (chance: Chance) => readonly WorkUnit[],
  ): Promise<void> {
    const { modelId, dimensions } = this.#options;
    const { routing, log, media, vectorCache } = this.#dependencies;
    if (model === undefined || model.routes.length === 0) {
      throw new AppError('model_disabled', { message: `The model ${modelId} has no upstream now.` });
    }
    let units: readonly WorkUnit[] | null = null;
    await callRoute(routing, {
      routes: model.routes,
      patience,
      outlastsLimits: true,
      signal: stop.signal,
      log,
      // Each request's own deadline is kept by the line.
      deadlineAtMs: Infinity,
      hasOutput: () => false,
      attempt: async (upstream, target, chance) => {
        units ??= chooseUnits(chance);
        if (units.length === 0) throw new NothingWanted();
        if (upstream.embed === undefined) {
          throw new UpstreamError('rejected', 'This upstream has no embedding models.');
        }
        for (const unit of units) unit.markAsked();
        const startedAtMs = performance.now();
        const inputs = units.map((unit) => unit.text);
        const call = { inputs, dimensions, user: findUser(units) };
        const context: CallContext = {
          signal: stop.signal,
          log,
          media: createMediaLoader(media),
          recall: () => Promise.resolve(new Map()),
        };
        const answer = await upstream.embed(target, call, context);
        const hold = answer.giveBack === null ? null : new VectorHold(answer.giveBack);
        hold?.take();
        const embedded = deliverVectors(units, answer, hold, Math.round(performance.now() - startedAtMs));
        // By the model that was called: the catalog may have changed since the units were looked up.
        const space = findVectorSpace(model, dimensions);
        if (space === null) hold?.drop();
        else void keepOutcomes(vectorCache, space, embedded).finally(() => hold?.drop());
      },
    });
  }

  /**
   * A refusal of a call that several requests share is somebody's fault: each half of them is asked for again, until those
   * are found whose inputs are refused by themselves.
   * @param under the search that these units were asked for in; null where one begins
   */
  async #fail(units: readonly WorkUnit[], error: unknown, under: { left: number } | null): Promise<void> {
    const wanted = units.filter((unit) => unit.isWanted);
    const groups = groupByAsk(wanted);
    const cause = error instanceof AppError ? error.cause : null;
    const isRefused = cause instanceof UpstreamError && cause.failure === 'rejected';
    if (!isRefused || groups.length <= 1) {
      if (isRefused && wanted.length > 0) this.#options.suspects.add(wanted[0]!.accountId);
      for (const unit of wanted) unit.deliver({ error });
      return;
    }
    const search = under ?? { left: countSearchCalls(groups.length) };
    const middle = Math.ceil(groups.length / 2);
    const halves = [groups.slice(0, middle).flat(), groups.slice(middle).flat()];
    await Promise.all(
      halves.map(async (half) => {
        if (search.left <= 0) {
          const lost = new AppError('upstream_error', {
            message:
              'The model refused inputs of other requests that this one shared its call with. Try again.',
          });
          for (const unit of half) unit.deliver({ error: lost });
          return;
        }
        search.left -= 1;
        const stop = new AbortController();
        abortWhenUnwanted(half, stop);
        try {
          await this.#callModel(this.#options.findModel(), stop, () => half);
        } catch (again) {
          await this.#fail(half, again, search);
        }
      }),
    );
  }

  #forget(unit: WorkUnit): void {
    const { accountId, text } = unit;
    const ofAccount = this.#shared.get(accountId);
    if (ofAccount?.get(text) !== unit) return;
    ofAccount.delete(text);
    if (ofAccount.size === 0) this.#shared.delete(accountId);
  }

  #failOverdue(): void {
    const nowMs = Date.now();
    for (const underWay of this.#asks) {
      if (!underWay.reachedModel && nowMs > underWay.ask.deadlineAtMs) {
        underWay.fail(new AppError('deadline_exceeded'));
      }
    }
  }
}

/** What each of several calls takes of what waited when that was decided. */
interface ShareDecision {
  readonly share: number;
  readonly waiting: number;
}

/**
 * Where nothing is under way, what waits is spread evenly over all slots: side by side is quicker than all in one call. Null
 * where something is.
 */
function findEvenShare(waiting: number, { spareSlots, slots }: Chance, allSlots: number): number | null {
  return spareSlots + 1 < slots ? null : Math.max(leastShare, Math.ceil(waiting / allSlots));
}

/**
 * How much of what waits goes with one call beside others: what half of all slots would have to take. Those under way will
 * end before a call that took everything would, and with less in each, what calls cost by themselves would slow all of
 * them.
 */
function findShare(waiting: number, allSlots: number): number {
  return Math.max(leastShare, Math.ceil((2 * waiting) / allSlots));
}

/** What every route of the model takes: a call that fails on one of them goes on to another as it is. */
function findLimits({ routes }: CatalogModel): CallLimits {
  return {
    maxInputs: Math.min(...routes.map(({ upstream }) => upstream.maxBatchInputs)),
    maxTokens: Math.min(...routes.map(({ upstream }) => upstream.maxBatchTokens)),
  };
}

/** Null where a call holds inputs of several requests. */
function findUser(units: readonly WorkUnit[]): string | null {
  const asks = findAsks(units);
  const [only] = asks;
  return asks.size === 1 ? only!.ask.user : null;
}

function findAsks(units: readonly WorkUnit[]): Set<AskUnderWay> {
  const asks = new Set<AskUnderWay>();
  for (const unit of units) for (const { ask } of unit.claims) asks.add(ask);
  return asks;
}

/** Units of one request stand and fall together. A shared one goes with the first that asked for it. */
function groupByAsk(units: readonly WorkUnit[]): WorkUnit[][] {
  const groups = new Map<AskUnderWay, WorkUnit[]>();
  for (const unit of units) {
    const { ask } = unit.claims.find((claim) => !claim.ask.isOver)!;
    const group = groups.get(ask) ?? [];
    group.push(unit);
    groups.set(ask, group);
  }
  // Those of one account side by side: who sends many that are bad is found at the cost of one.
  const ofAccount = ([ask]: [AskUnderWay, WorkUnit[]]): string => ask.ask.accountId;
  const ordered = [...groups].sort((a, b) => (ofAccount(a) < ofAccount(b) ? -1 : 1));
  return ordered.map(([, group]) => group);
}

/** A call goes on while anybody waits for anything of it. */
function abortWhenUnwanted(units: readonly WorkUnit[], stop: AbortController): void {
  const asks = findAsks(units);
  let left = asks.size;
  for (const { answer } of asks) {
    void answer.then(() => {
      left -= 1;
      if (left === 0 && !units.some((unit) => unit.isWanted))
        stop.abort(new Error('nobody waits for this call'));
    });
  }
}
