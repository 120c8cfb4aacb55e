import { setTimeout as delay } from 'node:timers/promises';
import { compareCpu, sampleCpu, type CpuSample } from '../clocks/cpu-clock.ts';
import { reportToParent } from '../child-process.ts';
import { countError, percentile } from '../statistics.ts';
import { Caller } from './caller.ts';
import type { LoadMessage, LoadPlan, LoadResult, ReadingSpan, TimeSpan, WorkSpan } from './load-plan.ts';
import { createRequestWriter } from './request-writer.ts';
import { findFault } from './response-checks.ts';
import type { ParsedResponse } from './response-reader.ts';

/** How long requests still in flight at the end may take. */
const drainMs = 30_000;
/** If no response arrives for this long, the run is stuck. */
const stuckMs = 120_000;
const progressMs = 250;

/** Called with each correct response, and their number so far. */
type OnAnswer = (response: ParsedResponse, answers: number) => void;

/** Executes a plan in the load process. */
export class Load {
  readonly #plan: LoadPlan;
  readonly #pids: Readonly<Record<string, number>>;
  readonly #nextRequest: () => string;
  readonly #onAnswer: OnAnswer;
  readonly #errors: Record<string, number> = {};
  readonly #latencies: number[] = [];
  readonly #firstByteLatencies: number[] = [];
  #isMeasuring = false;
  #allAnswers = 0;
  #backgroundAnswers = 0;
  #failures = 0;
  #aborted = 0;
  #onEnded: () => void = () => undefined;

  constructor(plan: LoadPlan, onAnswer: OnAnswer = () => undefined) {
    this.#plan = plan;
    this.#onAnswer = onAnswer;
    this.#pids = { ...plan.pids, load: process.pid };
    this.#nextRequest = createRequestWriter(plan);
  }

  async run(): Promise<LoadResult> {
    const { span } = this.#plan;
    const { before, after } = await this.#runSpan(span);
    const latencies = this.#latencies.sort((a, b) => a - b);
    const firstByteLatencies = this.#firstByteLatencies.sort((a, b) => a - b);
    const cpu = compareCpu(before, after);
    const { measuredMs } = cpu;
    return {
      measuredMs,
      answers: latencies.length,
      requestsPerSecond: (latencies.length * 1_000) / measuredMs,
      backgroundAnswers: this.#backgroundAnswers,
      aborted: this.#aborted,
      allAnswers: this.#allAnswers,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      maxMs: percentile(latencies, 1),
      firstByteP50Ms: percentile(firstByteLatencies, 0.5),
      errors: this.#errors,
      cpu,
    };
  }

  async #runSpan(span: LoadPlan['span']): Promise<SamplePair> {
    switch (span.kind) {
      case 'time':
        return await this.#runFor(span);
      case 'work':
        return await this.#runRequests(span);
      case 'reading':
        return await this.#readFor(span);
      default:
        return span satisfies never;
    }
  }

  async #readFor({ measureMs }: ReadingSpan): Promise<SamplePair> {
    const before = this.#sample();
    const { callers } = this.#plan;
    for (const caller of this.#createCallers(callers, this.#nextRequest, () => undefined)) caller.start();
    await delay(measureMs);
    return { before, after: this.#sample() };
  }

  async #runFor({ warmUpMs, measureMs }: TimeSpan): Promise<SamplePair> {
    const { callers: count, background = 0 } = this.#plan;
    const callers = [
      ...this.#createCallers(count, this.#nextRequest, (ms) => this.#latencies.push(ms)),
      ...this.#createCallers(background, this.#nextRequest, () => (this.#backgroundAnswers += 1)),
    ];
    for (const caller of callers) caller.start();
    // Warm up until there are at least as many responses as callers, even on a slow machine.
    await Promise.all([delay(warmUpMs), this.#waitUntil(() => this.#ended >= callers.length)]);
    const before = this.#sample();
    this.#isMeasuring = true;
    // Measure at least one response of each kind of caller, unless there are errors.
    const hasMeasured = (): boolean =>
      this.#failures > 0 || (this.#latencies.length > 0 && (background === 0 || this.#backgroundAnswers > 0));
    await Promise.all([delay(measureMs), this.#waitUntil(hasMeasured)]);
    this.#isMeasuring = false;
    const after = this.#sample();
    const stopped = Promise.all(callers.map((caller) => caller.stop())).then(() => true);
    if (!(await Promise.race([stopped, delay(drainMs, false)])))
      this.#countError('no response at the end of the run');
    return { before, after };
  }

  async #runRequests({ requests, rampMs }: WorkSpan): Promise<SamplePair> {
    if (rampMs === undefined) {
      await this.#runCallers(
        this.#createCallers(1, limitTo(1, this.#nextRequest), () => undefined),
        1,
      );
    }
    const ended = this.#ended;
    const before = this.#sample();
    this.#isMeasuring = true;
    const progress = setInterval(() => {
      reportToParent({ kind: 'progress', answers: this.#latencies.length } satisfies LoadMessage);
    }, progressMs);
    const next = limitTo(requests, this.#nextRequest);
    const callers = this.#createCallers(this.#plan.callers, next, (ms) => this.#latencies.push(ms));
    await this.#runCallers(callers, ended + requests, rampMs);
    clearInterval(progress);
    return { before, after: this.#sample() };
  }

  /** Starts the callers, and resolves once this many requests have finished in total. */
  async #runCallers(callers: readonly Caller[], ended: number, rampMs = 0): Promise<void> {
    for (const [i, caller] of callers.entries())
      setTimeout(() => caller.start(), (rampMs * i) / callers.length);
    const isDone = await this.#waitUntil(() => this.#ended >= ended);
    if (isDone) await Promise.all(callers.map((caller) => caller.stop()));
  }

  /** Waits until enough requests have finished. If responses stop, counts an error and resolves with false. */
  async #waitUntil(isReached: () => boolean): Promise<boolean> {
    if (isReached()) return true;
    const isDone = await new Promise<boolean>((resolve) => {
      const timeout = setTimeout(() => resolve(false), stuckMs);
      this.#onEnded = () => {
        timeout.refresh();
        if (!isReached()) return;
        clearTimeout(timeout);
        resolve(true);
      };
    });
    this.#onEnded = () => undefined;
    if (!isDone) this.#countError(`no response within ${stuckMs} ms`);
    return isDone;
  }

  get #ended(): number {
    return this.#allAnswers + this.#failures + this.#aborted;
  }

  #createCallers(
    count: number,
    nextRequest: () => string | null,
    onMeasured: (latencyMs: number) => void,
  ): Caller[] {
    const { host, port, expects, aborts = null, readPauseMs = 0 } = this.#plan;
    return Array.from({ length: count }, () => {
      return new Caller({
        host,
        port,
        countsTokens: expects.kind === 'stream',
        readPauseMs,
        chooseAbortMs: () =>
          aborts === null || Math.random() >= aborts.share ? null : Math.random() * aborts.maxMs,
        onAborted: () => {
          this.#aborted += 1;
          this.#onEnded();
        },
        nextRequest,
        onResponse: (response, latencyMs, firstByteMs) => {
          const fault = findFault(response, expects);
          if (fault !== null) {
            this.#countError(fault);
            return;
          }
          this.#allAnswers += 1;
          this.#onAnswer(response, this.#allAnswers);
          if (this.#isMeasuring) {
            onMeasured(latencyMs);
            if (firstByteMs !== null) this.#firstByteLatencies.push(firstByteMs);
          }
          this.#onEnded();
        },
        onError: (reason) => this.#countError(reason),
      });
    });
  }

  #countError(reason: string): void {
    countError(this.#errors, reason);
    this.#failures += 1;
    this.#onEnded();
  }

  #sample(): CpuSample {
    return sampleCpu(this.#pids);
  }
}

interface SamplePair {
  readonly before: CpuSample;
  readonly after: CpuSample;
}

function limitTo(count: number, next: () => string): () => string | null {
  let remaining = count;
  return () => {
    if (remaining === 0) return null;
    remaining -= 1;
    return next();
  };
}
