import { modelDisabled } from '../../shared/contract/model-errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { createMediaLoader, type MediaSources } from '../media/media-loader.ts';
import { callRoute, type Chance, type Routing } from '../routing/call-route.ts';
import {
  UpstreamError,
  type CallContext,
  type Upstream,
  type UpstreamTarget,
} from '../upstreams/upstream.ts';
import { billCall, type CallBill } from './bill-call.ts';
import { chooseCheck } from './choose-check.ts';
import { deliverVectors } from './deliver-vectors.ts';
import { VectorHold, type WorkUnit } from './embedding-work.ts';
import { keepOutcomes } from './kept-vectors.ts';
import type { Quarantine } from './quarantine.ts';
import { findUser, sumTokens } from './units-of-calls.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import { findVectorSpace } from './vector-space.ts';

/** How long a batch waits where no route can be called for the moment. */
const patience = { keyMs: 60_000, breakerMs: 30_000 };

/** A slot was granted, or a call failed, when nobody waited any more: no call was made. */
export class NothingWanted extends Error {
  override readonly name = 'NothingWanted';
}

export interface CallDependencies {
  readonly routing: Routing;
  readonly log: Logger;
  readonly media: MediaSources;
  readonly vectorCache: VectorCacheStore;
}

/** One call through a model's routes. */
export interface ModelCall {
  /** On whose behalf it waits for a slot, also where it is made once more. */
  readonly accountIds: () => Iterable<string>;
  /** Aborted when nobody waits for it any more. A vendor that has been asked goes on to its end. */
  readonly stop: AbortController;
  readonly chooseUnits: (chance: Chance) => readonly WorkUnit[];
}

/** Makes the calls of one model, and learns from what vendors count whose inputs may share calls with others'. */
export class EmbeddingCaller {
  readonly #dependencies: CallDependencies;
  readonly #quarantine: Quarantine;
  readonly #modelId: string;
  readonly #isBackground: boolean;

  constructor(
    dependencies: CallDependencies,
    quarantine: Quarantine,
    { modelId, isBackground = false }: { readonly modelId: string; readonly isBackground?: boolean },
  ) {
    this.#dependencies = dependencies;
    this.#quarantine = quarantine;
    this.#modelId = modelId;
    this.#isBackground = isBackground;
  }

  /**
   * One call through the model's routes, for units that are chosen once it may be made. Delivers what comes of it.
   * @returns the units whose vectors are none, which have failed
   */
  async call(
    model: CatalogModel | undefined,
    { accountIds, stop, chooseUnits }: ModelCall,
  ): Promise<readonly WorkUnit[]> {
    if (model === undefined || model.routes.length === 0) throw modelDisabled(this.#modelId);
    let units: readonly WorkUnit[] | null = null;
    return await callRoute(this.#dependencies.routing, {
      accountIds,
      routes: model.routes,
      patience,
      isBackground: this.#isBackground,
      outlastsLimits: true,
      outlastsTimeouts: true,
      signal: stop.signal,
      log: this.#dependencies.log,
      // Each request's own deadline is kept by the line.
      deadlineAtMs: Infinity,
      hasOutput: () => false,
      attempt: async (upstream, target, chance) => {
        if (units === null) {
          stop.signal.throwIfAborted();
          units = chooseUnits(chance);
        }
        await beginJobs(units);
        // Callers may have left since a call with their inputs failed: this one is not made on their behalf.
        const left = new NothingWanted();
        for (const unit of units) unit.failLeft(left);
        units = units.filter((unit) => unit.isWanted);
        if (units.length === 0) throw new NothingWanted();
        chance.onShared(new Set(units.map(({ accountId }) => accountId)));
        return await this.#embed(model, upstream, target, units);
      },
    });
  }

  /** Asks a vendor. Nothing but the upstream's own timeouts ends that: what was asked for is paid for. */
  async #embed(
    model: CatalogModel,
    upstream: Upstream,
    target: UpstreamTarget,
    units: readonly WorkUnit[],
  ): Promise<readonly WorkUnit[]> {
    const { log, media, vectorCache } = this.#dependencies;
    if (upstream.embed === undefined) {
      throw new UpstreamError('rejected', 'This upstream has no embedding models.');
    }
    for (const unit of units) unit.markAsked();
    const startedAtMs = performance.now();
    const { dimensions, accountId } = units[0]!;
    const call = { inputs: units.map((unit) => unit.text), dimensions, user: findUser(units) };
    const context: CallContext = {
      signal: new AbortController().signal,
      accountId,
      log,
      media: createMediaLoader(media, { accountId, deadlineAtMs: Infinity }),
      recalled: new Map(),
    };
    const answer = await upstream.embed(target, call, context);
    const hold = answer.giveBack === null ? null : new VectorHold(answer.giveBack);
    hold?.take();
    const bill = billCall(units, answer.promptTokens);
    this.#noteBill(model, target, units, bill, answer.promptTokens);
    const tookMs = Math.round(performance.now() - startedAtMs);
    const { embedded, broken } = deliverVectors(units, answer, bill, hold, tookMs);
    // By the model that was called: the catalog may have changed since the units were looked up.
    const space = findVectorSpace(model, dimensions);
    if (space === null) hold?.drop();
    else {
      const keeping = keepOutcomes(vectorCache, space, embedded).finally(() => hold?.drop());
      runInBackground(keeping, 'keeping vectors', log);
    }
    return broken;
  }

  /** Accounts whose inputs a vendor counts otherwise than we do, or may, share no calls with others for a while. */
  #noteBill(
    model: CatalogModel,
    target: UpstreamTarget,
    units: readonly WorkUnit[],
    bill: CallBill,
    reported: number | null,
  ): void {
    if (bill.agrees === null) return;
    const tokensOf = sumTokens(units);
    if (bill.agrees) {
      this.#quarantine.vouch(tokensOf);
      const checked = chooseCheck(tokensOf, bill, Math.random);
      if (checked !== null) this.#quarantine.addCheck(checked, tokensOf.get(checked)!);
      return;
    }
    this.#quarantine.addDivergent(tokensOf);
    if (tokensOf.size === 1) return;
    const routes = model.routes.filter((route) => route.model === target.model);
    this.#dependencies.log.warn(
      {
        model: model.id,
        upstreams: routes.map(({ upstream }) => upstream.name),
        upstreamModel: target.model,
        reportedTokens: reported,
        countedTokens: bill.ownSum,
        inputs: units.length,
        accounts: [...tokensOf.keys()],
      },
      'token count of a merged embedding call diverges from ours: billed by our own count',
    );
  }
}

/** Says of durable jobs that they are active now. One that must not run has left once this resolves. */
async function beginJobs(units: readonly WorkUnit[]): Promise<void> {
  const begins = new Set(units.flatMap(({ claims }) => claims.flatMap(({ ask }) => ask.ask.begin ?? [])));
  if (begins.size > 0) await Promise.allSettled([...begins].map((begin) => begin()));
}
