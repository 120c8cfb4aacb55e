import { setTimeout as delay } from 'node:timers/promises';
import { noUsage, type Usage } from '../../shared/catalog/cost.ts';
import { addCosts } from '../routing/vendor-cost.ts';
import { batchWindowMs } from '../../shared/contract/batch-terms.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { UsageEvent } from '../../shared/ledger/usage-event.ts';
import { createApiFileKey } from '../../shared/platform/storage/file-name.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';
import {
  settleLines,
  type LineSettlement,
  type ModelLines,
  type ResultPart,
  type SettledLines,
  type TakenSlice,
} from './slice-scripts.ts';
import { createFileId } from '../../shared/work/files/file-id.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import type { JobDeps } from '../runs/job-context.ts';
import type { FinishDeps } from '../../shared/work/settlement/finish-request.ts';
import type { BatchPlan } from './batch-plan.ts';
import { LineSet } from './line-set.ts';
import { joinPieces, LineWriter } from './line-writer.ts';

/** Results are written once they have this size, or after this time. A little less than a buffer of the writer. */
const flushBytes = 4 * 1024 * 1024 - 128 * 1024;
const flushMs = 2_000;
const storePauseMs = { first: 250, max: 5_000 };
const resultType = 'application/jsonl';

/** What a model call of a line has used and costs. */
export interface LineCharge {
  readonly model: string;
  readonly priceVersion: string;
  readonly usage: Usage;
  readonly reasoningTokens: number;
  readonly counted: boolean;
  /** Limited to the maximum of the line. */
  readonly costNano: bigint;
  /** What the vendors charge the operator; null if that is unknown. */
  readonly vendorCostNano: bigint | null;
  readonly startedAtMs: number;
}

/** A line with its result. */
export interface FinishedLine {
  readonly index: number;
  /** As written to the file with results, with its line break. */
  readonly pieces: readonly Buffer[];
  /** HTTP status of its response. Null if it was not run. */
  readonly status: number | null;
  /** What was reserved for it. */
  readonly reservedNano: bigint;
  /** Null if no model was called. */
  readonly charge: LineCharge | null;
  /** Whether it failed without a charge, and the same request may succeed later. */
  readonly mayRetry?: boolean;
}

/** The names of a part's objects, for the output file and for the error file. */
interface PartObjects {
  readonly keys: readonly [output: string, errors: string];
  /** Resolves once the names are in the trash, from which the settlement takes them. */
  readonly begun: Promise<void>;
}

/** Another worker has the slice, or the batch has ended. Nothing of the slice may be written any more. */
export class SliceLost extends Error {
  override readonly name = 'SliceLost';
}

export interface SliceResultsOptions {
  readonly dependencies: FinishDeps &
    Pick<JobDeps, 'endedWork'> & { readonly objects: Pick<ObjectStore, 'put'> };
  readonly slice: TakenSlice;
  readonly plan: BatchPlan;
  /** Aborted when the slice is lost. */
  readonly signal: AbortSignal;
  /** Called when the remaining lines must not be run. */
  readonly onRefusal: (refusal: RefusalCode) => void;
  /** Called when results cannot be written, or can again (null). */
  readonly onFault: (error: unknown) => void;
}

/**
 * Writes the results of a slice to the batch's files and settles its lines, in parts while others still run. Results stay
 * in memory until both have succeeded, however long the stores are unavailable.
 */
export class SliceResults {
  readonly #options: SliceResultsOptions;
  readonly #files: FileStore;
  readonly #done: LineSet;
  #step: number;
  #waiting: FinishedLine[] = [];
  #waitingBytes = 0;
  /** The objects of the waiting lines. Begun with the first one, so that nothing waits for that. */
  #objects: PartObjects | null = null;
  /** Has memory of the waiting lines. */
  #writer = new LineWriter();
  #timer: NodeJS.Timeout | null = null;
  /** The parts that are being written, one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #failure: unknown = null;
  /** Whether an attempt to store results has failed. It may still read them, so their memory is not used again. */
  #hasFailed = false;

  constructor(options: SliceResultsOptions) {
    this.#options = options;
    this.#files = new FileStore(options.dependencies.redis);
    this.#done = new LineSet(options.slice.done);
    this.#step = options.slice.step;
  }

  /** Whether a line was settled by this or an earlier attempt, or has its result. */
  has(index: number): boolean {
    return this.#done.has(index);
  }

  /** Writes a line that is added next. As `LineWriter.write`. */
  write(maxBytes: number, write: (target: Buffer, at: number) => number): Buffer {
    return this.#writer.write(maxBytes, write);
  }

  /**
   * Adds the result of a line. Wait for the promise, if there is one, before more lines are run: there is no memory for
   * more results.
   */
  add(line: FinishedLine): void | Promise<void> {
    this.#done.add(line.index);
    this.#waiting.push(line);
    this.#objects ??= this.#beginObjects();
    for (const { length } of line.pieces) this.#waitingBytes += length;
    if (this.#waitingBytes >= flushBytes) return this.flush();
    this.#timer ??= setTimeout(() => this.#flushLater(), flushMs);
  }

  #flushLater(): void {
    // A failure is reported by the next call.
    this.flush().catch(() => undefined);
  }

  /** Writes and settles all results so far. @throws SliceLost */
  async flush(): Promise<void> {
    await this.#enqueue(false);
  }

  /** Writes and settles the last results. All lines of the slice must have one. @throws SliceLost */
  async end(): Promise<void> {
    await this.#enqueue(true);
  }

  /** Forgets what is not written. */
  discard(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#waiting = [];
  }

  async #enqueue(isLast: boolean): Promise<void> {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    const [lines, writer, objects] = [this.#waiting, this.#writer, this.#objects];
    this.#waiting = [];
    this.#objects = null;
    this.#waitingBytes = 0;
    this.#writer = new LineWriter();
    if (lines.length > 0 || isLast) {
      this.#step += 1;
      const [step, done] = [this.#step, this.#done.toString()];
      this.#writing = this.#writing.then(async () => {
        if (this.#failure !== null) return;
        await this.#write(lines, objects, { step, done, isLast });
        if (!this.#hasFailed) writer.release();
      });
      this.#writing = this.#writing.catch((error: unknown) => {
        this.#failure ??= error;
      });
    }
    await this.#writing;
    if (this.#failure !== null) throw this.#failure;
  }

  #beginObjects(): PartObjects {
    const { slice, plan } = this.#options;
    // A file is created with the first part that is settled, which may be a later one.
    const dueAtMs = Date.now() + plan.resultLifetimeSeconds * 1_000 + batchWindowMs;
    const keys = [createApiFileKey(dueAtMs), createApiFileKey(dueAtMs)] as const;
    const begun = this.#files.beginSegments(slice.accountId, keys);
    // It is tried again when the part is written.
    begun.catch(() => undefined);
    return { keys, begun };
  }

  async #write(
    lines: readonly FinishedLine[],
    objects: PartObjects | null,
    { step, done, isLast }: Pick<SettledLines, 'step' | 'done' | 'isLast'>,
  ): Promise<void> {
    const { slice, onRefusal } = this.#options;
    const [output, errors] = await this.#store(lines, objects);
    const releaseNano = lines.reduce((sum, { reservedNano }) => sum + reservedNano, 0n);
    const reasoningTokens = lines.reduce((sum, { charge }) => sum + (charge?.reasoningTokens ?? 0), 0);
    const notRun = lines.filter(({ status }) => status === null).length;
    const models = sumByModel(lines, slice, step, this.#options.plan);
    const settled = { step, done, isLast, releaseNano, reasoningTokens, notRun, output, errors, models };
    const { outcome, refusal } = await this.#settle(settled);
    if (outcome !== 'settled') throw new SliceLost();
    for (const { charge, status } of lines) if (charge !== null) this.#noteStats(charge, status ?? 0);
    if (refusal !== null) onRefusal(refusal);
  }

  async #settle(lines: SettledLines): Promise<LineSettlement> {
    const { dependencies, slice } = this.#options;
    const { redis, hotAccounts } = dependencies;
    return await this.#retry(async () => {
      const first = await settleLines(redis, slice, lines);
      if (first.outcome !== 'unknown') return first;
      await hotAccounts.load(slice.accountId);
      const second = await settleLines(redis, slice, lines);
      if (second.outcome === 'unknown') throw new AppError('service_unavailable');
      return second;
    });
  }

  /** Stores lines as one object for each file. Their memory is needed until they are settled anyway. */
  async #store(
    lines: readonly FinishedLine[],
    objects: PartObjects | null,
  ): Promise<[output: ResultPart, errors: ResultPart]> {
    const { dependencies, slice, plan, signal } = this.#options;
    const nameFile = (): string => createFileId(Date.now(), plan.resultLifetimeSeconds);
    if (objects === null)
      return [
        { fileId: nameFile(), object: null },
        { fileId: nameFile(), object: null },
      ];
    const { keys } = objects;
    const join = (some: readonly FinishedLine[]): Buffer => joinPieces(some.flatMap(({ pieces }) => pieces));
    const bodies = [join(lines.filter((line) => !isFailed(line))), join(lines.filter(isFailed))] as const;
    let begun: Promise<void> | null = objects.begun;
    await this.#retry(async () => {
      // Again before each further attempt: the objects may be due if the store was unavailable for long.
      const beginning = begun ?? this.#files.beginSegments(slice.accountId, keys);
      begun = null;
      await beginning;
      await Promise.all(
        bodies.map(async (body, i) => {
          if (body.length > 0) await dependencies.objects.put(keys[i]!, body, resultType, signal);
        }),
      );
    });
    const toPart = (i: 0 | 1): ResultPart => ({
      fileId: nameFile(),
      object: { key: keys[i], byteLength: bodies[i].length },
    });
    return [toPart(0), toPart(1)];
  }

  /** Retries until it succeeds: the vendor has billed the results. @throws SliceLost when another worker has the slice */
  async #retry<T>(attempt: () => Promise<T>): Promise<T> {
    const { signal, onFault } = this.#options;
    for (let pauseMs = storePauseMs.first; ; pauseMs = Math.min(storePauseMs.max, 2 * pauseMs)) {
      try {
        const result = await attempt();
        onFault(null);
        return result;
      } catch (error) {
        if (signal.aborted) throw new SliceLost();
        if (error instanceof TypeError || error instanceof RangeError) throw error;
        this.#hasFailed = true;
        onFault(error);
        await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #noteStats(charge: LineCharge, status: number): void {
    const { requestStats, usageMetrics, endedWork } = this.#options.dependencies;
    usageMetrics?.note(charge);
    endedWork?.note(charge.model);
    requestStats.note({
      model: charge.model,
      success: status === 200,
      responseCode: status,
      durationMs: Math.max(0, Date.now() - charge.startedAtMs),
      billedMs: charge.usage.durationMs,
      promptTokens: charge.usage.promptTokens,
      completionTokens: charge.usage.completionTokens,
      isAwaited: false,
      costNano: charge.costNano,
      vendorCostNano: charge.vendorCostNano,
    });
  }
}

const isFailed = ({ status }: FinishedLine): boolean => status !== 200;

/** Sums the lines of each model. Lines that called no model are only counted. */
function sumByModel(
  lines: readonly FinishedLine[],
  { accountId, batchId, number }: TakenSlice,
  step: number,
  { userIp, prices }: BatchPlan,
): ModelLines[] {
  const groups = new Map<string, FinishedLine[]>();
  for (const line of lines) {
    const name = line.charge === null ? '' : line.charge.model;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [line]);
    else group.push(line);
  }
  return [...groups].map(([model, group]) => {
    const failed = group.filter(isFailed).length;
    const succeeded = group.length - failed;
    if (model === '') return { model, costNano: 0n, event: null, succeeded, failed };
    const charges = group.flatMap(({ charge }) => charge ?? []);
    const sum = (of: (usage: Usage) => number): number =>
      charges.reduce((total, { usage }) => total + of(usage), 0);
    const vendorCostNano = charges.reduce<bigint | null>(
      (total, charge) => addCosts(total, charge.vendorCostNano),
      0n,
    );
    const event: UsageEvent = {
      v: 1,
      requestId: `${batchId}/${number}.${step}/${model}`,
      accountId,
      model,
      at: Date.now(),
      durationMs: 0,
      success: succeeded > 0,
      responseCode: 200,
      errorCode: null,
      details: null,
      userIp,
      promptTokens: sum((usage) => usage.promptTokens),
      cacheReadTokens: sum((usage) => usage.cacheReadTokens),
      cacheWriteTokens: sum((usage) => usage.cacheWriteTokens),
      completionTokens: sum((usage) => usage.completionTokens),
      counted: charges.some(({ counted }) => counted),
      images: sum((usage) => usage.images),
      imageQuality: noUsage.imageQuality,
      imageSize: noUsage.imageSize,
      characters: sum((usage) => usage.characters),
      billedMs: Math.round(sum((usage) => usage.durationMs)),
      priceVersion: prices.get(model)?.version ?? charges[0]!.priceVersion,
      user: null,
      lines: group.length,
      ...(failed > 0 && { failedLines: failed }),
      ...(vendorCostNano !== null && { vendorCostNano: vendorCostNano.toString() }),
    };
    const costNano = charges.reduce((total, charge) => total + charge.costNano, 0n);
    return { model, costNano, event, succeeded, failed };
  });
}
