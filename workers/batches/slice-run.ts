import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { ModelCatalog } from '../../shared/preparing/preparation.ts';
import { createFileLinks } from '../../shared/responses/file-links.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';
import { reserveLines, stopBatch, type TakenSlice } from '../../shared/work/batches/slice-scripts.ts';
import { maxDeaths } from '../../shared/work/jobs/end-job-scripts.ts';
import type { JobDeps } from '../runs/job-context.ts';
import type { BatchPlan } from './batch-plan.ts';
import { embedLines } from './embed-lines.ts';
import { callLine, writeFailure, type LineCallContext } from './line-call.ts';
import {
  findCustomId,
  maxLineBytes,
  parseLine,
  prepareLine,
  type LinePreparationDeps,
} from './prepare-line.ts';
import { InputLost, readSlice, type SliceLine } from './read-slice.ts';
import { fitLines, type ReadyLine, type ReservedLine } from './ready-line.ts';
import { writeRefusal } from './result-lines.ts';
import { SliceLost, SliceResults, type FinishedLine } from './slice-results.ts';

/** Memory of a line while it waits and runs, per byte of its text. */
const memoryPerByte = 4;
/** After a worker has died with a slice, this part of its lines runs at a time, so that fewer run with the one at fault. */
const partAfterDeath = 8;
const deadlyMessage = 'The line failed because its worker crashed on every attempt. It was not charged.';
/** How long to wait for money that other lines have reserved, and then to leave the batch alone. */
const moneyWaitMs = 4_000;
const moneyPollMs = 500;
const pauseMs = 5_000;

export interface BatchDeps extends JobDeps {
  readonly preparation: Omit<LinePreparationDeps, 'catalog'>;
  /** The public URL of the bucket; null if the gateway serves its files. */
  readonly bucketUrl: string | null;
}

/** How a slice ended for this worker: all of its lines are settled, or it must be handed back. */
export type SliceEnd = { readonly isDone: true } | { readonly isDone: false; readonly pauseMs: number };

type LineNames = Pick<ReadyLine, 'index' | 'id' | 'customId'>;

/** How many of the lines run at a time. */
const partOf = (lines: number, deaths: number): number =>
  Math.max(1, Math.ceil(lines / partAfterDeath ** deaths));

/** Runs one slice of a batch: reads its lines, runs them as single requests are run, and writes their results. */
export class SliceRun {
  readonly slice: TakenSlice;
  readonly #dependencies: BatchDeps;
  readonly #plan: BatchPlan;
  readonly #log: Logger;
  readonly #results: SliceResults;
  /** Aborted when another worker has the slice. */
  readonly #lost = new AbortController();
  /** Aborted when lines that have not begun must not begin any more. */
  readonly #withdrawn = new AbortController();
  #refusal: RefusalCode | null;
  #isStopping = false;

  constructor(dependencies: BatchDeps, slice: TakenSlice, plan: BatchPlan) {
    this.slice = slice;
    this.#dependencies = dependencies;
    this.#plan = plan;
    this.#log = dependencies.log.child({ batchId: slice.batchId, slice: slice.number });
    this.#refusal = slice.refusal;
    for (const { signal } of [this.#lost, this.#withdrawn]) setMaxListeners(0, signal);
    const part = `writing results of batch ${slice.batchId}`;
    this.#results = new SliceResults({
      dependencies,
      slice,
      plan,
      signal: this.#lost.signal,
      onRefusal: (refusal) => this.refuse(refusal),
      onFault: (error) => {
        if (error === null) dependencies.faults.clear(part);
        else dependencies.faults.note(part, error);
      },
    });
  }

  /** Lines that have not begun are written to the error file with this code instead. */
  refuse(refusal: RefusalCode): void {
    this.#refusal ??= refusal;
    this.#withdrawn.abort();
  }

  /** Lines that have not begun are left to other workers, because this one stops. */
  stop(): void {
    this.#isStopping = true;
    this.#withdrawn.abort();
  }

  /** Another worker has the slice. */
  lose(): void {
    this.#lost.abort();
    this.#withdrawn.abort();
    this.#results.discard();
  }

  /** @throws SliceLost when another worker has the slice or the batch has ended */
  async run(): Promise<SliceEnd> {
    const { accountId, from, to } = this.slice;
    let memory: BudgetShare | null = null;
    try {
      memory = await this.#dependencies.jobMemory.acquire(accountId, (to - from) * memoryPerByte, {
        signal: this.#lost.signal,
        waitMs: Infinity,
        createError: () => new AppError('queue_full'),
      });
      return await this.#runLines();
    } catch (error) {
      if (this.#lost.signal.aborted) throw new SliceLost();
      throw error;
    } finally {
      memory?.release();
    }
  }

  async #runLines(): Promise<SliceEnd> {
    const parts = this.#readParts();
    for (;;) {
      let next: IteratorResult<ReadyLine[], void>;
      try {
        next = await parts.next();
      } catch (error) {
        if (error instanceof SliceLost || this.#lost.signal.aborted) throw error;
        this.#dependencies.faults.note(this.#readingPart, error);
        await this.#results.flush();
        return { isDone: false, pauseMs };
      }
      if (next.done === true) break;
      const mayRun = await this.#runReady(next.value);
      const isWaiting = mayRun === 'wait';
      // After deaths, each part is settled before the next one runs, so that it does not run again.
      if (isWaiting || this.slice.deaths > 0) await this.#results.flush();
      if (isWaiting) return { isDone: false, pauseMs: this.#isStopping ? 0 : pauseMs };
    }
    this.#dependencies.faults.clear(this.#readingPart);
    await this.#results.end();
    return { isDone: true };
  }

  get #readingPart(): string {
    return `reading the input of batch ${this.slice.batchId}`;
  }

  /**
   * Reads and checks the lines that are not settled yet. Lines with errors get them as their results.
   *
   * Usually all lines run together. After deaths of their workers, they are checked and run in smaller and smaller parts.
   * If workers have died although only the first line ran, that line fails.
   */
  async *#readParts(): AsyncGenerator<ReadyLine[], void> {
    const { deaths } = this.slice;
    const deps = { ...this.#dependencies.preparation, catalog: this.#pricedCatalog() };
    const isSuspect = deaths > 0 && this.#refusal === null;
    const lines = isSuspect ? await this.#countLines() : Infinity;
    const part = partOf(lines, deaths);
    let isDeadly = isSuspect && deaths >= maxDeaths && partOf(lines, deaths - 1) === 1;
    let ready: ReadyLine[] = [];
    let count = 0;
    for await (const line of this.#readUnsettled()) {
      const one = await this.#readLine(deps, line, isDeadly);
      if (one !== null) ready.push(one);
      count += 1;
      if (count < part && !isDeadly) continue;
      yield ready;
      ready = [];
      count = 0;
      isDeadly = false;
    }
    yield ready;
  }

  async #countLines(): Promise<number> {
    let count = 0;
    const lines = this.#readUnsettled();
    while ((await lines.next()).done !== true) count += 1;
    return count;
  }

  async *#readUnsettled(): AsyncGenerator<SliceLine, void> {
    const { inputKey: key, inputBytes: byteLength } = this.#plan;
    const { from, to } = this.slice;
    const options = { maxLineBytes: maxLineBytes(this.#endpoint), signal: this.#lost.signal };
    try {
      for await (const line of readSlice(this.#dependencies.objects, { key, from, to, byteLength }, options))
        if (!this.#results.has(line.index)) yield line;
    } catch (error) {
      if (!(error instanceof InputLost)) throw error;
      this.#log.error(
        { err: error },
        'the input of a batch is lost; its remaining lines are missing from the results',
      );
    }
  }

  get #endpoint(): BatchEndpoint {
    return this.#plan.endpoint as BatchEndpoint;
  }

  async #readLine(deps: LinePreparationDeps, line: SliceLine, isDeadly: boolean): Promise<ReadyLine | null> {
    const endpoint = this.#endpoint;
    const { accountId, batchId, number, deaths } = this.slice;
    const { index } = line;
    const id = `batch_req_${batchId.slice('batch_'.length)}_${number}_${index}`;
    if (line.byteLength > maxLineBytes(endpoint)) {
      await this.#fail({ index, id, customId: findCustomId(line) ?? '' }, new AppError('payload_too_large'));
      return null;
    }
    const { customId, body } = await parseLine(line, accountId);
    const names = { index, id, customId };
    if (this.#refusal !== null) {
      await this.#refuseLine(names);
      return null;
    }
    if (isDeadly) {
      this.#log.error({ custom_id: customId, deaths }, 'a line fails because its workers died');
      await this.#fail(names, new AppError('upstream_error', { message: deadlyMessage }));
      return null;
    }
    try {
      const prepared = await prepareLine(deps, endpoint, body, { accountId, signal: this.#lost.signal });
      return { ...names, ...prepared };
    } catch (error) {
      if (this.#lost.signal.aborted) throw error;
      const failure = toAppError(error);
      if (failure.code === 'internal_error') this.#log.error({ err: error }, 'checking a line failed');
      await this.#fail(names, failure);
      return null;
    }
  }

  /** The catalog with the prices at the creation of the batch. Models that it did not have then do not exist. */
  #pricedCatalog(): ModelCatalog {
    const { catalog } = this.#dependencies;
    const { prices } = this.#plan;
    const models = new Map<string, CatalogModel | undefined>();
    return {
      current: catalog.current,
      isActive: (model) => catalog.isActive(model),
      find: (name) => {
        if (models.has(name)) return models.get(name);
        const model = catalog.find(name);
        const price = model === undefined ? undefined : prices.get(model.id);
        const priced =
          model === undefined || price === undefined
            ? undefined
            : { ...model, pricing: price.pricing, priceVersion: price.version };
        models.set(name, priced);
        return priced;
      },
    };
  }

  async #runReady(ready: readonly ReadyLine[]): Promise<'done' | 'wait'> {
    let rest = ready;
    while (rest.length > 0) {
      if (this.#isStopping) return 'wait';
      const reserved = this.#refusal === null ? await this.#reserve(rest) : [];
      if (reserved === 'wait') return 'wait';
      if (this.#refusal !== null) {
        for (const line of rest) await this.#refuseLine(line);
        return 'done';
      }
      rest = rest.slice(reserved.length);
      rest = [...(await this.#call(reserved)), ...rest];
      if (rest.length > 0) await this.#results.flush();
    }
    return 'done';
  }

  /** Reserves money for as many of these lines as it goes. */
  async #reserve(lines: readonly ReadyLine[]): Promise<ReservedLine[] | 'wait'> {
    const { redis, hotAccounts } = this.#dependencies;
    const untilMs = performance.now() + moneyWaitMs;
    let wanted = fitLines(lines, null);
    for (;;) {
      const amount = wanted.reduce((sum, { reservedNano }) => sum + reservedNano, 0n);
      const reservation = await retryThroughOutage(() => reserveLines(redis, this.slice, amount));
      switch (reservation.outcome) {
        case 'ok':
          return wanted;
        case 'gone':
          throw new SliceLost();
        case 'stopped':
          this.refuse(reservation.refusal);
          return [];
        case 'unknown':
          await retryThroughOutage(() => hotAccounts.load(this.slice.accountId));
          break;
        case 'short': {
          wanted = fitLines(lines, reservation.availableNano);
          if (wanted.length > 0) break;
          if (fitLines(lines.slice(0, 1), reservation.laterNano).length === 0) {
            await this.#stopForMoney();
            return [];
          }
          // Other lines and requests of the account have reserved it, and will need less of it.
          if (performance.now() > untilMs || this.#withdrawn.signal.aborted)
            return this.#refusal === null ? 'wait' : [];
          wanted = fitLines(lines, null);
          await delay(moneyPollMs);
          break;
        }
        default:
          reservation satisfies never;
      }
    }
  }

  async #stopForMoney(): Promise<void> {
    const { accountId, batchId } = this.slice;
    const refusal = 'insufficient_balance';
    await retryThroughOutage(() => stopBatch(this.#dependencies.redis, accountId, batchId, refusal));
    this.refuse(refusal);
  }

  /** Runs lines. @returns those that were withdrawn before they began */
  async #call(lines: readonly ReservedLine[]): Promise<ReservedLine[]> {
    const context: LineCallContext = {
      accountId: this.slice.accountId,
      userIp: this.#plan.userIp,
      log: this.#log,
      linkOf: createFileLinks(this.#plan.publicUrl, this.#dependencies.bucketUrl),
      imagesDueAtMs: Date.now() + this.#plan.resultLifetimeSeconds * 1_000,
      withdrawn: this.#withdrawn.signal,
      stopping: this.#lost.signal,
    };
    const ended = new Set<number>();
    const end = (line: FinishedLine): void | Promise<void> => {
      ended.add(line.index);
      return this.#add(line);
    };
    if (lines[0]?.work.kind === 'embedding') {
      const adding: Promise<void>[] = [];
      await embedLines(this.#dependencies, lines, context, (line) => {
        adding.push(Promise.resolve(end(line)));
      });
      await Promise.all(adding);
    } else {
      await Promise.all(
        lines.map(async (line) => {
          const finished = await callLine(this.#dependencies, line, context);
          if (finished !== null) await end(finished);
        }),
      );
    }
    if (this.#lost.signal.aborted) throw new SliceLost();
    return lines.filter(({ index }) => !ended.has(index));
  }

  async #fail(line: LineNames, error: AppError): Promise<void> {
    await this.#add({ ...writeFailure(line, error), reservedNano: 0n, charge: null });
  }

  async #refuseLine(line: LineNames): Promise<void> {
    const pieces = writeRefusal(line, this.#refusal!);
    await this.#add({ index: line.index, pieces, status: null, reservedNano: 0n, charge: null });
  }

  /** A failure to write is reported at the end of the slice. */
  async #add(line: FinishedLine): Promise<void> {
    const writing = this.#results.add(line);
    if (writing !== undefined) await writing.catch(() => undefined);
  }
}
