import { modelDisabled } from '../../shared/contract/model-errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { noUsage } from '../../shared/catalog/cost.ts';
import { computeVendorCost } from '../routing/vendor-cost.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { createMediaLoader, type MediaSources } from '../media/media-loader.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { CallObserver } from '../routing/call-observer.ts';
import { callRoute, type GrantedCall, type Routing } from '../routing/call-route.ts';
import { RequestFailures } from '../routing/request-failures.ts';
import {
  type EmbeddingResponse,
  UpstreamError,
  wrongLength,
  type CallContext,
  type Upstream,
  type UpstreamTarget,
} from '../upstreams/upstream.ts';
import { billCall, type CallBill } from './bill-call.ts';
import { chooseCheck } from './choose-check.ts';
import { deliverVectors } from './deliver-vectors.ts';
import { BufferRef } from './embedding-task.ts';
import type { PendingInput } from './embedding-work.ts';
import { cacheOutcomes } from './cached-vectors.ts';
import type { Quarantine } from './quarantine.ts';
import { findCallClass, findUser, NobodyWaiting, sumTokens } from './call-inputs.ts';
import type { VectorCacheStore } from './vector-cache-store.ts';
import { findVectorSpace } from './vector-space.ts';

/** How long a call waits while no route can be called, in milliseconds. */
const waitLimits = { keyMs: 60_000, breakerMs: 30_000 };

export interface CallDeps {
  readonly routing: Routing;
  readonly log: Logger;
  readonly media: MediaSources;
  readonly vectorCache: VectorCacheStore;
}

/** One call through a model's routes. */
export interface ModelCall {
  /** Of the call until its inputs are chosen. From then on, it has the earliest class of its inputs. */
  readonly callClass: CallClass;
  /** The accounts waiting for the slot, including when the call is retried. */
  readonly accountIds: () => Iterable<string>;
  /** Aborted when nobody waits for the call any more. A vendor call that has started is still completed. */
  readonly stop: AbortController;
  readonly chooseInputs: (granted: GrantedCall) => readonly PendingInput[];
  /** The server failures that do not count yet. */
  readonly failures: RequestFailures;
  /** Whether the call is split after this failure of its server, if several requests wait for it or it is part of a search. */
  readonly isSplitAfter: (error: UpstreamError) => boolean;
}

/** Makes the calls of one model, and learns from the vendors' counts which accounts may share calls with others. */
export class EmbeddingCaller {
  readonly #dependencies: CallDeps;
  readonly #quarantine: Quarantine;
  readonly #modelId: string;

  constructor(dependencies: CallDeps, quarantine: Quarantine, { modelId }: { readonly modelId: string }) {
    this.#dependencies = dependencies;
    this.#quarantine = quarantine;
    this.#modelId = modelId;
  }

  /** The server failures of a call and of those that search it, until it is known whether they count. */
  createFailures(): RequestFailures {
    return new RequestFailures(this.#dependencies.routing.limiter, { isSearched: true });
  }

  /**
   * Makes one call through the model's routes. The inputs are chosen once a slot is granted, and their vectors
   * are delivered to them.
   * @returns the inputs whose vectors are invalid; the caller must fail them
   */
  async call(
    model: CatalogModel | undefined,
    { callClass, accountIds, stop, chooseInputs, failures, isSplitAfter }: ModelCall,
  ): Promise<readonly PendingInput[]> {
    if (model === undefined || model.routes.length === 0) throw modelDisabled(this.#modelId);
    let inputs: readonly PendingInput[] | null = null;
    return await callRoute(this.#dependencies.routing, {
      accountIds,
      model: model.id,
      operation: 'embeddings',
      routes: model.routes,
      waitLimits,
      get callClass() {
        return inputs === null ? callClass : findCallClass(inputs);
      },
      retriesRateLimits: true,
      retriesTimeouts: true,
      signal: stop.signal,
      log: this.#dependencies.log,
      // The scheduler enforces each request's deadline.
      deadlineAtMs: Infinity,
      hasOutput: () => false,
      failures,
      isSplitAfter,
      observers: () => findObservers(inputs ?? []),
      attempt: async (upstream, target, granted) => {
        if (inputs === null) {
          stop.signal.throwIfAborted();
          inputs = chooseInputs(granted);
        }
        await beginJobs(inputs);
        // Callers may have disconnected since an earlier call with their inputs failed. Do not call for them.
        const nobodyWaits = new NobodyWaiting();
        for (const input of inputs) input.failDisconnected(nobodyWaits);
        inputs = inputs.filter((input) => input.isNeeded);
        if (inputs.length === 0) throw new NobodyWaiting();
        granted.setServedAccounts(new Set(inputs.map(({ accountId }) => accountId)));
        return await this.#embed(model, upstream, target, inputs, granted);
      },
    });
  }

  /** Calls the vendor. Only the upstream's timeouts end the call, because the vendor bills it once it is sent. */
  async #embed(
    model: CatalogModel,
    upstream: Upstream,
    target: UpstreamTarget,
    inputs: readonly PendingInput[],
    { route, noteSuccess, span = null }: Pick<GrantedCall, 'route' | 'noteSuccess' | 'span'>,
  ): Promise<readonly PendingInput[]> {
    const { log, media, vectorCache } = this.#dependencies;
    if (upstream.embed === undefined) {
      throw new UpstreamError('rejected', 'This upstream has no embedding models.');
    }
    for (const input of inputs) input.markSent();
    const startedAtMs = performance.now();
    const { dimensions, accountId } = inputs[0]!;
    const call = { inputs: inputs.map((input) => input.text), dimensions, user: findUser(inputs) };
    const context: CallContext = {
      signal: new AbortController().signal,
      accountId,
      log,
      media: createMediaLoader(media, { accountId, deadlineAtMs: Infinity }),
      recalled: new Map(),
      traceparent: span === null ? null : span.sentTraceparent,
    };
    const response = await upstream.embed(target, call, context);
    span?.noteUsage({ promptTokens: response.promptTokens });
    checkLength(response, dimensions ?? model.dimensions?.default ?? null);
    const bufferRef = response.release === null ? null : new BufferRef(response.release);
    bufferRef?.take();
    const bill = billCall(inputs, response.promptTokens);
    this.#recordBill(model, target, inputs, bill, response.promptTokens);
    const tookMs = Math.round(performance.now() - startedAtMs);
    const vendorCostNano = computeVendorCost(route, {
      ...noUsage,
      promptTokens: response.promptTokens || bill.countedSum,
      characters: inputs.reduce((sum, { text }) => sum + text.length, 0),
      durationMs: tookMs,
    });
    const result = { tookMs, vendorCostNano, onValid: noteSuccess };
    const { embedded, broken } = deliverVectors(inputs, response, bill, bufferRef, result);
    // Uses the model that was called; the catalog may have changed since the inputs were looked up.
    const space = findVectorSpace(model, dimensions);
    if (space === null) bufferRef?.drop();
    else {
      const caching = cacheOutcomes(vectorCache, space, embedded).finally(() => bufferRef?.drop());
      runInBackground(caching, 'caching vectors', log);
    }
    return broken;
  }

  /**
   * Quarantines accounts whose tokens the vendor counts, or may count, differently from us: they do not share
   * calls for a while.
   */
  #recordBill(
    model: CatalogModel,
    target: UpstreamTarget,
    inputs: readonly PendingInput[],
    bill: CallBill,
    reported: number | null,
  ): void {
    if (bill.agrees === null) return;
    const tokensOf = sumTokens(inputs);
    if (bill.agrees) {
      this.#quarantine.vouch(tokensOf);
      const accountToCheck = chooseCheck(tokensOf, bill, Math.random);
      if (accountToCheck !== null) this.#quarantine.addCheck(accountToCheck, tokensOf.get(accountToCheck)!);
      return;
    }
    this.#quarantine.addDivergentCall(tokensOf);
    if (tokensOf.size === 1) return;
    const routes = model.routes.filter((route) => route.model === target.model);
    this.#dependencies.log.warn(
      {
        model: model.id,
        upstreams: routes.map(({ upstream }) => upstream.name),
        upstreamModel: target.model,
        reportedTokens: reported,
        countedTokens: bill.countedSum,
        inputs: inputs.length,
        accounts: [...tokensOf.keys()],
      },
      'token count of a merged embedding call diverges from ours: billed by our own count',
    );
  }
}

/** Those who want to know about a call with these inputs. */
function findObservers(inputs: readonly PendingInput[]): ReadonlySet<CallObserver> {
  const observers = new Set<CallObserver>();
  for (const { claims } of inputs)
    for (const { request } of claims)
      if (request.task.observer !== undefined) observers.add(request.task.observer);
  return observers;
}

/** Marks durable jobs as active. Once this resolves, jobs that must not run have withdrawn their requests. */
async function beginJobs(inputs: readonly PendingInput[]): Promise<void> {
  const begins = new Set<() => Promise<void>>();
  for (const { claims } of inputs)
    for (const { request } of claims) if (request.task.begin !== undefined) begins.add(request.task.begin);
  if (begins.size > 0) await Promise.allSettled([...begins].map((begin) => begin()));
}

/**
 * Vectors of another length than the catalog promises would be of no use to the caller. Either the catalog or the server is
 * configured wrong, so no retry helps, but another route may.
 * @throws UpstreamError
 */
function checkLength(
  { dimensions, broken, vectors, release }: EmbeddingResponse,
  expected: number | null,
): void {
  if (expected === null || dimensions === expected) return;
  // Without a vector, there is no length to be wrong.
  if (broken.length * dimensions * 4 === vectors.length) return;
  release?.();
  throw wrongLength(dimensions, expected);
}
