import { once, setMaxListeners } from 'node:events';
import { CountingTurn } from '../../shared/catalog/count-tokens.ts';
import { batchWindowMs, type BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createFileLinks } from '../../shared/responses/file-links.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';
import { createPricedCatalog } from './priced-catalog.ts';
import { reportLostInput } from './report-lost-input.ts';
import { reserveForLines } from './reserve-for-lines.ts';
import type { TakenSlice } from './slice-scripts.ts';
import { maxDeaths } from '../../shared/work/jobs/end-job-scripts.ts';
import type { JobDeps } from '../runs/job-context.ts';
import type { BatchPlan } from './batch-plan.ts';
import { embedLines } from './embed-lines.ts';
import { callLine, writeFailure, type LineCallContext } from './line-call.ts';
import { maxLineBytes, parseLine, readCustomId } from './parse-line.ts';
import { prepareLine, type LinePreparationDeps } from './prepare-line.ts';
import type { LineWriter } from './line-writer.ts';
import { InputLost, readLines, type FileLine } from '../../shared/work/files/read-lines.ts';
import type { LineNames, ReadyLine, ReservedLine } from './ready-line.ts';
import { writeRefusal, type LineRefusal } from './result-lines.ts';
import { minOutageLines, partOf, retries } from './slice-limits.ts';
import { SliceLost, SliceResults, type FinishedLine } from './slice-results.ts';

/** Memory of a line while it waits and runs, per byte of its text. */
const memoryPerByte = 4;
const deadlyMessage = 'The line failed because its worker crashed on every attempt. It was not charged.';
/** For how long a batch is left alone whose lines cannot be read or paid now. */
const pauseMs = 5_000;

export interface BatchDeps extends JobDeps {
  readonly preparation: Omit<LinePreparationDeps, 'catalog'>;
  /** The public URL of the bucket; null if the gateway serves its files. */
  readonly bucketUrl: string | null;
}

/** What the slices of a worker share. */
export interface SliceDeps extends BatchDeps {
  /**
   * Held by the slice whose lines are read and checked. One after the other, so that the first calls begin early: that
   * takes only CPU for embeddings.
   */
  readonly reading: FairBudget;
}

/** How a slice ended for this worker: all of its lines are settled, or it must be handed back. */
export type SliceEnd = { readonly isDone: true } | { readonly isDone: false; readonly pauseMs: number };

/** Runs one slice of a batch: reads its lines, runs them as single requests are run, and writes their results. */
export class SliceRun {
  readonly slice: TakenSlice;
  readonly #dependencies: SliceDeps;
  readonly #plan: BatchPlan;
  readonly #log: Logger;
  readonly #results: SliceResults;
  /** Aborted when another worker has the slice. */
  readonly #lost = new AbortController();
  /** Aborted when lines that have not begun must not begin any more. */
  readonly #withdrawn = new AbortController();
  readonly #whenWithdrawn: Promise<void>;
  readonly #model: string;
  readonly #countingTurn: CountingTurn;
  #refusal: RefusalCode | null;
  #isStopping = false;
  /** How many lines were called, and how many of them run again later. */
  #called = 0;
  #again = 0;
  #isReading = true;
  #hasReadPart = false;

  /** @param model in whose turn the slice was taken */
  constructor(dependencies: SliceDeps, slice: TakenSlice, plan: BatchPlan, model: string) {
    this.slice = slice;
    this.#model = model;
    this.#dependencies = dependencies;
    this.#plan = plan;
    this.#log = dependencies.log.child({ batchId: slice.batchId, slice: slice.number });
    this.#refusal = slice.refusal;
    this.#countingTurn = new CountingTurn(() => this.#lost.signal.throwIfAborted(), slice.accountId);
    for (const { signal } of [this.#lost, this.#withdrawn]) setMaxListeners(0, signal);
    this.#whenWithdrawn = once(this.#withdrawn.signal, 'abort').then(() => undefined);
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

  /** Whether its lines are not being run yet. */
  get isReading(): boolean {
    return this.#isReading;
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
        next = await this.#readNext(parts);
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
      if (isWaiting) return { isDone: false, pauseMs: this.#findPause(mayRun) };
    }
    this.#dependencies.faults.clear(this.#readingPart);
    if (this.#again > 0) {
      await this.#results.flush();
      return { isDone: false, pauseMs: this.#findPause('done') };
    }
    await this.#results.end();
    return { isDone: true };
  }

  /** For how long other lines of the batch do not run either. */
  #findPause(mayRun: 'done' | 'wait'): number {
    if (this.#isStopping) return 0;
    if (mayRun === 'wait') return pauseMs;
    if (!this.#isOutage) return 0;
    return Math.min(retries.maxPauseMs, retries.firstPauseMs * 2 ** Math.min(this.slice.attempt, 10));
  }

  get #isOutage(): boolean {
    return this.#again === this.#called && this.#called >= minOutageLines;
  }

  /** Slices of embeddings are read one after the other, and not before their model can take more lines. */
  async #readNext(parts: AsyncGenerator<ReadyLine[], void>): Promise<IteratorResult<ReadyLine[], void>> {
    // Lines of other kinds may have images that take long to load. After the only part, nothing is read.
    const isOver = this.#hasReadPart && this.slice.deaths === 0;
    if (isOver || this.#endpoint !== '/v1/embeddings') return await parts.next();
    this.#hasReadPart = true;
    const turn = await this.#takeReadingTurn();
    try {
      return await parts.next();
    } finally {
      turn.release();
    }
  }

  async #takeReadingTurn(): Promise<BudgetShare> {
    const { embeddings, reading } = this.#dependencies;
    const { signal } = this.#lost;
    for (;;) {
      const turn = await reading.acquire(this.slice.accountId, 1, {
        signal,
        waitMs: Infinity,
        createError: () => new AppError('queue_full'),
      });
      const whenWanted = this.#withdrawn.signal.aborted ? null : embeddings.whenLinesWanted(this.#model);
      if (whenWanted === null) return turn;
      turn.release();
      await Promise.race([whenWanted, this.#whenWithdrawn]);
    }
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
    const deps = {
      ...this.#dependencies.preparation,
      catalog: createPricedCatalog(this.#dependencies.catalog, this.#plan),
    };
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

  async *#readUnsettled(): AsyncGenerator<FileLine, void> {
    const { inputKey: key, inputBytes: byteLength } = this.#plan;
    const { accountId, from, to } = this.slice;
    const options = { accountId, maxLineBytes: maxLineBytes(this.#endpoint), signal: this.#lost.signal };
    try {
      for await (const line of readLines(this.#dependencies.objects, { key, from, to, byteLength }, options))
        if (!this.#results.has(line.index)) yield line;
    } catch (error) {
      if (!(error instanceof InputLost)) throw error;
      const { redis, objects } = this.#dependencies;
      const deps = { redis, objects, log: this.#log };
      await reportLostInput(deps, this.slice, this.#plan, error, this.#lost.signal);
      this.refuse('input_lost');
    }
  }

  get #endpoint(): BatchEndpoint {
    return this.#plan.endpoint as BatchEndpoint;
  }

  async #readLine(deps: LinePreparationDeps, line: FileLine, isDeadly: boolean): Promise<ReadyLine | null> {
    const endpoint = this.#endpoint;
    const { accountId, batchId, number, deaths } = this.slice;
    const { index } = line;
    const id = `batch_req_${batchId.slice('batch_'.length)}_${number}_${index}`;
    if (this.#refusal !== null) {
      await this.#refuseLine({ index, id, customId: await readCustomId(line, accountId) });
      return null;
    }
    if (isDeadly) {
      const names = { index, id, customId: await readCustomId(line, accountId) };
      this.#log.error({ custom_id: names.customId, deaths }, 'a line fails because its workers died');
      const error = new AppError('upstream_error', { message: deadlyMessage });
      await this.#add({ ...writeFailure(names, error), reservedNano: 0n, charge: null });
      return null;
    }
    const { customId, body, error } = await parseLine(line, endpoint, accountId);
    const names = { index, id, customId };
    if (error !== null) {
      await this.#fail(names, error);
      return null;
    }
    try {
      const options = { accountId, signal: this.#lost.signal, countingTurn: this.#countingTurn };
      const { model, estimate, work } = await prepareLine(deps, endpoint, body, options);
      return { index, id, customId, model, estimate, work };
    } catch (error) {
      if (this.#lost.signal.aborted) throw error;
      const failure = toAppError(error);
      if (failure.code === 'internal_error') this.#log.error({ err: error }, 'checking a line failed');
      await this.#fail(names, failure);
      return null;
    }
  }

  async #runReady(ready: readonly ReadyLine[]): Promise<'done' | 'wait'> {
    let rest = ready;
    while (rest.length > 0) {
      if (this.#isStopping) return 'wait';
      const reserved = this.#refusal === null ? await this.#reserve(rest) : [];
      if (reserved === 'wait') return 'wait';
      if (reserved instanceof Set) {
        rest = await this.#refuseModels(rest, reserved);
        continue;
      }
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

  /** Reserves money for as many of these lines as it goes. @returns them, or the models that may not be used */
  async #reserve(lines: readonly ReadyLine[]): Promise<readonly ReservedLine[] | Set<string> | 'wait'> {
    const withdrawn = this.#withdrawn.signal;
    const reserved = await reserveForLines(this.#dependencies, this.slice, lines, withdrawn);
    if (reserved === 'wait') return this.#refusal === null ? 'wait' : [];
    if ('refusal' in reserved) {
      this.refuse(reserved.refusal);
      return [];
    }
    return 'lines' in reserved ? reserved.lines : reserved.refusedModels;
  }

  /** @returns the lines with other models */
  async #refuseModels(lines: readonly ReadyLine[], models: Set<string>): Promise<readonly ReadyLine[]> {
    for (const line of lines)
      if (models.has(line.model.id)) await this.#refuseLine(line, 'model_not_allowed');
    return lines.filter(({ model }) => !models.has(model.id));
  }

  /** Runs lines. @returns those that were withdrawn before they began */
  async #call(lines: readonly ReservedLine[]): Promise<ReservedLine[]> {
    const context: LineCallContext = {
      accountId: this.slice.accountId,
      userIp: this.#plan.userIp,
      log: this.#log,
      linkOf: createFileLinks(this.#plan.publicUrl, this.#dependencies.bucketUrl),
      // The output file may be created later, but within the window of the batch.
      imagesDueAtMs: Date.now() + this.#plan.resultLifetimeSeconds * 1_000 + batchWindowMs,
      withdrawn: this.#withdrawn.signal,
      stopping: this.#lost.signal,
    };
    const ended = new Set<number>();
    /** Lines that failed because of their vendor. */
    const failed: FinishedLine[] = [];
    const end = (line: FinishedLine): void | Promise<void> => {
      ended.add(line.index);
      if (line.mayRetry !== true || (line.charge?.costNano ?? 0n) > 0n) return this.#add(line);
      failed.push(line);
    };
    this.#isReading = false;
    if (lines[0]?.work.kind === 'embedding') {
      const write: LineWriter['write'] = (maxBytes, writeLine) => this.#results.write(maxBytes, writeLine);
      const adding: Promise<void>[] = [];
      await embedLines(this.#dependencies, lines, { ...context, write }, (line) => {
        const added = end(line);
        if (added !== undefined) adding.push(added);
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
    this.#called += ended.size;
    await this.#retryLater(failed);
    return lines.filter(({ index }) => !ended.has(index));
  }

  /** Leaves lines for the next attempt at the slice, unless there were too many. */
  async #retryLater(failed: readonly FinishedLine[]): Promise<void> {
    if (failed.length === 0) return;
    this.#again += failed.length;
    const tries = this.#isOutage ? retries.ofOutage : retries.ofLine;
    if (this.slice.attempt < tries && this.#refusal === null) return;
    this.#again -= failed.length;
    for (const line of failed) await this.#add(line);
  }

  async #fail(line: LineNames, error: AppError): Promise<void> {
    const finished: FinishedLine = { ...writeFailure(line, error), reservedNano: 0n, charge: null };
    this.#called += 1;
    if (finished.mayRetry === true) await this.#retryLater([finished]);
    else await this.#add(finished);
  }

  async #refuseLine(line: LineNames, code: LineRefusal = this.#refusal!): Promise<void> {
    const pieces = writeRefusal(line, code);
    await this.#add({ index: line.index, pieces, status: null, reservedNano: 0n, charge: null });
  }

  /** A failure to write is reported at the end of the slice. */
  async #add(line: FinishedLine): Promise<void> {
    const writing = this.#results.add(line);
    if (writing !== undefined) await writing.catch(() => undefined);
  }
}
