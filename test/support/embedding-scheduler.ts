import { setImmediate } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { CallDeps } from '../../workers/embeddings/embedding-caller.ts';
import { EmbeddingScheduler } from '../../workers/embeddings/embedding-scheduler.ts';
import type { EmbeddingOutcomes, EmbeddingTask } from '../../workers/embeddings/embedding-task.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { SlotOptions } from '../../workers/routing/wait-queue.ts';
import { createRoute } from './routing.ts';

/** A call that waits for a slot. */
export interface WaitingCall {
  readonly callClass: CallClass;
  readonly accountIds: readonly string[];
  /** @param spareSlots how many more are free; none by default */
  grant(spareSlots?: number): void;
  /** Reports that no route can be called. */
  refuse(): void;
}

/** A call to the vendor. */
export interface VendorCall {
  readonly inputs: readonly string[];
  respond(): void;
  fail(error: Error): void;
}

/** A scheduler whose slots and whose vendor are in the hands of the test. */
export interface TestScheduler {
  readonly scheduler: EmbeddingScheduler;
  /** All calls to the vendor, in order. */
  readonly calls: readonly VendorCall[];
  /** The calls that wait for a slot now. */
  readonly waiting: readonly WaitingCall[];
  readonly embed: (inputs: readonly string[], more?: Partial<EmbeddingTask>) => Promise<EmbeddingOutcomes>;
  /** Resolves with the call that waits for a slot of this class. */
  readonly waitForSlot: (callClass: CallClass) => Promise<WaitingCall>;
  /** Resolves with the next call to the vendor. */
  readonly nextCall: () => Promise<VendorCall>;
}

export interface TestSchedulerOptions {
  readonly maxInputs?: number;
  readonly maxTokens?: number;
  readonly slots?: number;
  /** Whether each slot is granted when it is requested. */
  readonly grantsSlots?: boolean;
  /** The vendor's failure, or null to serve the inputs. Without it, the test responds to each call. */
  readonly respond?: (inputs: readonly string[]) => Error | null;
  /** Texts whose vector is invalid. */
  readonly isBroken?: (text: string) => boolean;
  /** Whether more lines of batches will be embedded soon. */
  readonly expectsLines?: () => boolean;
}

/** Requests that are not done are stopped at the end of the test. */
export function createTestScheduler(
  t: ExecutionContext,
  {
    maxInputs = 2_048,
    maxTokens = 300_000,
    slots = 8,
    grantsSlots = false,
    respond,
    isBroken = () => false,
    expectsLines,
  }: TestSchedulerOptions = {},
): TestScheduler {
  const route = createRoute('a', { maxConcurrency: slots });
  const upstream = { ...route.upstream, maxBatchInputs: maxInputs, maxBatchTokens: maxTokens };
  const model = { routes: [{ ...route, upstream }], embeddingCache: null } as unknown as CatalogModel;
  const calls: VendorCall[] = [];
  const waiting: WaitingCall[] = [];
  const embedder = {
    embed: async (_: unknown, { inputs }: { inputs: readonly string[] }) =>
      await new Promise((resolve, reject) => {
        const vectors = Buffer.alloc(inputs.length * 4);
        const broken = [...inputs.keys()].filter((i) => isBroken(inputs[i]!));
        const response = { vectors, dimensions: 1, broken, promptTokens: inputs.length, release: null };
        calls.push({ inputs, respond: () => resolve(response), fail: reject });
        const error = respond?.(inputs);
        if (error instanceof Error) reject(error);
        else if (error === null) resolve(response);
      }),
  };
  const limiter = {
    acquire: async (_: unknown, { callClass, accountIds, signal }: SlotOptions) =>
      await new Promise((resolve, reject) => {
        const ids = [...accountIds()];
        const call: WaitingCall = {
          callClass: callClass ?? 'interactive',
          accountIds: ids,
          grant(spareSlots = 0) {
            waiting.splice(waiting.indexOf(call), 1);
            const candidate = { route, apiKey: null, fingerprint: 'none' };
            resolve({ candidate, accountId: ids[0], lease: '', isProbe: false, spareSlots, slots });
          },
          refuse() {
            waiting.splice(waiting.indexOf(call), 1);
            resolve(null);
          },
        };
        waiting.push(call);
        signal.addEventListener('abort', () => {
          if (waiting.includes(call)) waiting.splice(waiting.indexOf(call), 1);
          reject(signal.reason as Error);
        });
        if (grantsSlots) call.grant();
      }),
    release: () => undefined,
    reportFailure: () => undefined,
  };
  const log = { warn: () => undefined, error: () => undefined };
  const dependencies = { routing: { limiter, upstreams: { get: () => embedder } }, log, media: {} };
  const scheduler = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
    ...(expectsLines !== undefined && { expectsLines }),
  });
  let seen = 0;
  const stops: AbortController[] = [];
  t.teardown(() => stops.forEach((stop) => stop.abort(new Error('the test has ended'))));
  return {
    scheduler,
    calls,
    waiting,
    async embed(inputs, more = {}) {
      const stop = new AbortController();
      stops.push(stop);
      return await scheduler.embed({
        accountId: 'ann',
        inputs,
        inputTokens: inputs.map(() => 1),
        signal: new AbortController().signal,
        stopSignal: stop.signal,
        user: null,
        dimensions: null,
        isPaidByTime: false,
        deadlineAtMs: Infinity,
        log: undefined as never,
        ...more,
      });
    },
    async waitForSlot(callClass) {
      for (;;) {
        const call = waiting.find((one) => one.callClass === callClass);
        if (call !== undefined) return call;
        await setImmediate();
      }
    },
    async nextCall() {
      while (calls.length <= seen) await setImmediate();
      return calls[seen++]!;
    },
  };
}
