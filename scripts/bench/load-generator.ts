import { setTimeout as delay } from 'node:timers/promises';
import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { findFault } from './response-checks.ts';
import { Caller } from './caller.ts';
import { compareCpu, sampleCpu, type CpuSample } from './cpu-clock.ts';
import type { LoadMessage, LoadPlan, LoadResult, ReadingSpan, TimeSpan, WorkSpan } from './load-plan.ts';
import { uniqueMark } from './scenario.ts';

logUncaught('bench-load', { fd: 2 });

/** How long requests still in flight at the end may take. */
const drainMs = 30_000;
/** If no response arrives for this long, the run is stuck. */
const stuckMs = 120_000;
const progressMs = 250;
const maxReasons = 20;

/** The load process: receives a plan from its parent, executes it, replies with the result and exits. */
class Load {
  readonly #plan: LoadPlan;
  readonly #pids: Readonly<Record<string, number>>;
  readonly #nextRequest: () => string;
  readonly #errors: Record<string, number> = {};
  readonly #latencies: number[] = [];
  readonly #firstByteLatencies: number[] = [];
  #isMeasuring = false;
  #allAnswers = 0;
  #backgroundAnswers = 0;
  #failures = 0;
  #aborted = 0;
  #onEnded: () => void = () => undefined;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#pids = { ...plan.pids, load: process.pid };
    this.#nextRequest = createRequestWriter(plan);
  }

  async run(): Promise<LoadResult> {
    const { span } = this.#plan;
    const { before, after } = await this.#runSpan(span);
    const latencies = this.#latencies.sort((a, b) => a - b);
    const atShare = (share: number): number => findAtShare(latencies, share);
    return {
      measuredMs: after.atMs - before.atMs,
      answers: latencies.length,
      backgroundAnswers: this.#backgroundAnswers,
      aborted: this.#aborted,
      allAnswers: this.#allAnswers,
      p50Ms: atShare(0.5),
      p99Ms: atShare(0.99),
      maxMs: atShare(1),
      firstByteP50Ms: findAtShare(
        this.#firstByteLatencies.sort((a, b) => a - b),
        0.5,
      ),
      errors: this.#errors,
      cpu: compareCpu(before.cpu, after.cpu),
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
    const callers = [
      ...this.#createCallers(this.#plan.callers, this.#nextRequest, (ms) => this.#latencies.push(ms)),
      ...this.#createCallers(this.#plan.background, this.#nextRequest, () => (this.#backgroundAnswers += 1)),
    ];
    for (const caller of callers) caller.start();
    // Warm up until there are at least as many responses as callers, even on a slow machine.
    await Promise.all([delay(warmUpMs), this.#waitUntil(() => this.#ended >= callers.length)]);
    const before = this.#sample();
    this.#isMeasuring = true;
    // Measure at least one response of each kind of caller, unless there are errors.
    const hasMeasured = (): boolean =>
      this.#failures > 0 ||
      (this.#latencies.length > 0 && (this.#plan.background === 0 || this.#backgroundAnswers > 0));
    await Promise.all([delay(measureMs), this.#waitUntil(hasMeasured)]);
    this.#isMeasuring = false;
    const after = this.#sample();
    const stopped = Promise.all(callers.map((caller) => caller.stop())).then(() => true);
    if (!(await Promise.race([stopped, delay(drainMs, false)])))
      this.#countError('no response at the end of the run');
    return { before, after };
  }

  async #runRequests({ requests, rampMs = 0 }: WorkSpan): Promise<SamplePair> {
    if (rampMs === 0) {
      await this.#runCallers(
        this.#createCallers(1, limitTo(1, this.#nextRequest), () => undefined),
        1,
      );
    }
    const ended = this.#ended;
    const before = this.#sample();
    this.#isMeasuring = true;
    const progress = setInterval(
      () => send({ kind: 'progress', answers: this.#latencies.length }),
      progressMs,
    );
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
    const isKnown = reason in this.#errors || Object.keys(this.#errors).length < maxReasons;
    const name = isKnown ? reason : 'other errors';
    this.#errors[name] = (this.#errors[name] ?? 0) + 1;
    this.#failures += 1;
    this.#onEnded();
  }

  #sample(): Sample {
    return { atMs: performance.now(), cpu: sampleCpu(this.#pids) };
  }
}

interface Sample {
  readonly atMs: number;
  readonly cpu: CpuSample;
}

interface SamplePair {
  readonly before: Sample;
  readonly after: Sample;
}

/** @param sorted in ascending order */
const findAtShare = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

function limitTo(count: number, next: () => string): () => string | null {
  let remaining = count;
  return () => {
    if (remaining === 0) return null;
    remaining -= 1;
    return next();
  };
}

/**
 * Returns a function that writes the next request. Unique numbers replace the marks in the body, padded to the length
 * of a mark, so that all requests of a plan have the same length.
 */
function createRequestWriter(plan: LoadPlan): () => string {
  const { host, port, path, apiKey, apiKeys = [apiKey], headers = {}, body } = plan;
  const requests = apiKeys.map((key) => {
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${host}:${port}`,
      `authorization: Bearer ${key}`,
      'content-type: application/json',
      'accept: */*',
      'user-agent: model-gateway-bench',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(body)}`,
    ].join('\r\n');
    return `${head}\r\n\r\n${body}`.split(uniqueMark);
  });
  // Each process starts with a different number, so that even two runs against one gateway share no text.
  let number = (Date.now() % 999_000) * 100_000;
  let turn = 0;
  return () => {
    let text = '';
    for (const [i, piece] of requests[turn++ % requests.length]!.entries()) {
      if (i > 0) text += String((number += 1)).padStart(uniqueMark.length, '0');
      text += piece;
    }
    return text;
  };
}

function send(message: LoadMessage, onSent: () => void = () => undefined): void {
  process.send!(message, onSent);
}

process.once('message', (plan) => {
  new Load(plan as LoadPlan).run().then(
    (result) => send({ kind: 'result', result }, () => process.exit(0)),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// If the parent is gone, the result is not needed.
process.once('disconnect', () => process.exit(1));
