import { compareCpu, sampleCpu, type CpuSample } from '../cpu-clock.ts';
import { readRssMb } from '../rss-clock.ts';
import { runLoad } from '../run-load.ts';
import { chatPlan, startCapacityStack, type CapacityStack } from './capacity-stack.ts';
import { formatTable, listLoadFaults, type CapacityResult, type CapacityRun } from './report.ts';

const tokenMs = 1_000;
/** The streams start one after the other within this share of a stream's duration. */
const rampShare = 1 / 3;
/** CPU time is measured until this share of a stream's duration, while all streams are open. */
const steadyShare = 0.9;

const roles = ['api', 'worker'] as const;

/**
 * Keeps many streams open at once, each with a token a second: memory per stream, CPU time, and how late the last token
 * arrives.
 */
export async function measureManyStreams(run: CapacityRun): Promise<CapacityResult> {
  const { programs, options } = run;
  const { streams, streamSeconds: tokens } = options;
  const streamMs = tokens * tokenMs;
  const rampMs = streamMs * rampShare;
  const stack = await startCapacityStack(run, { slow: { tokens, tokenMs } });
  try {
    await stack.warmUp();
    const startedAt = new Date();
    const startMs = performance.now();
    const emptyHeaps = await stack.probe();
    const emptyRss = readRss(stack);
    // All streams are open from the end of the ramp until the first one ends.
    const window = new CpuWindow(stack.pids, { fromMs: rampMs + tokenMs, toMs: streamMs * steadyShare });
    let probing = Promise.resolve(emptyHeaps);
    let peakRss = emptyRss;
    const load = await runLoad(
      programs,
      {
        ...stack.gateway,
        ...chatPlan('slow', true),
        callers: streams,
        span: { kind: 'work', requests: streams, rampMs },
        expects: { kind: 'stream', tokens },
        pids: stack.pids,
      },
      () => {
        const elapsedMs = performance.now() - startMs;
        const rss = readRss(stack);
        peakRss = { api: Math.max(peakRss.api, rss.api), worker: Math.max(peakRss.worker, rss.worker) };
        if (window.closes(elapsedMs)) probing = stack.probe();
      },
    );
    const heaps = await probing;
    const money = await stack.money.check(startedAt, load.allAnswers);
    const { shares } = window;
    const percent = (name: string): string => `${Math.round((shares[name] ?? 0) * 100)} %`;
    const lateMs = (ms: number): number => Math.round(ms - streamMs);
    return {
      lines: [
        ...formatTable(
          ['', 'heap KB/stream', 'RSS KB/stream', 'RSS MB at most', 'of one core'],
          [
            ...roles.map((role) => [
              role,
              ((heaps[role].heapBytes - emptyHeaps[role].heapBytes) / 1_024 / streams).toFixed(1),
              (((peakRss[role] - emptyRss[role]) * 1_024) / streams).toFixed(1),
              Math.round(peakRss[role]).toString(),
              percent(role),
            ]),
            ['redis', '', '', '', percent('redis')],
            ['mongo', '', '', '', percent('mongo')],
          ],
        ),
        `${load.allAnswers} streams with all of their ${tokens} tokens and ${money.charges} charges · last token ` +
          `${lateMs(load.p50Ms)} ms late in the median, ${lateMs(load.p99Ms)} ms at p99, ${lateMs(load.maxMs)} ms at most`,
      ],
      values: { streams, shares, lateP50Ms: lateMs(load.p50Ms), lateP99Ms: lateMs(load.p99Ms) },
      faults: [...listLoadFaults(load), ...money.faults],
    };
  } finally {
    await stack.close();
  }
}

/** Measures the CPU time of processes in a part of a run. */
class CpuWindow {
  readonly #pids: Readonly<Record<string, number>>;
  readonly #fromMs: number;
  readonly #toMs: number;
  #start: { readonly sample: CpuSample; readonly atMs: number } | null = null;
  /** Shares of a core, by process; empty until the window has closed. */
  shares: Readonly<Record<string, number>> = {};
  #hasClosed = false;

  /** @param limits since the start of the run */
  constructor(
    pids: Readonly<Record<string, number>>,
    { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  ) {
    this.#pids = pids;
    this.#fromMs = fromMs;
    this.#toMs = toMs;
  }

  /** Call this often. @returns true once, when the window closes */
  closes(elapsedMs: number): boolean {
    if (this.#start === null) {
      if (elapsedMs > this.#fromMs) this.#start = { sample: sampleCpu(this.#pids), atMs: elapsedMs };
      return false;
    }
    if (this.#hasClosed || elapsedMs <= this.#toMs) return false;
    const { processes } = compareCpu(this.#start.sample, sampleCpu(this.#pids));
    const measuredMs = elapsedMs - this.#start.atMs;
    this.shares = Object.fromEntries(
      Object.entries(processes).map(([name, ms]) => [name, ms / measuredMs] as const),
    );
    this.#hasClosed = true;
    return true;
  }
}

const readRss = ({ pids }: CapacityStack) => ({ api: readRssMb(pids.api), worker: readRssMb(pids.worker) });
