import { divideCpu, startCpuPhase, type CpuUse } from '../../harness/clocks/cpu-clock.ts';
import { readRssMb } from '../../harness/clocks/rss-clock.ts';
import { runChargedLoad } from '../../harness/load/run-load.ts';
import { listErrors } from '../../harness/statistics.ts';
import { Table } from '../../harness/table.ts';
import type { CapacityResult, CapacityRun } from './capacity-scenario.ts';
import { startCapacityStack, streamPlan, type CapacityStack } from './capacity-stack.ts';

const tokenMs = 1_000;
/** The streams start one after the other within this share of a stream's duration. */
const rampShare = 1 / 3;
/** CPU time is measured until this share of a stream's duration, while all streams are open. */
const steadyShare = 0.9;

const roles = ['api', 'worker'] as const;
type Role = (typeof roles)[number];

/**
 * Keeps many streams open at once, each with a token a second: memory per stream, CPU time, and how late the last token
 * arrives.
 */
export async function measureManyStreams(run: CapacityRun): Promise<CapacityResult> {
  const { programs, counts } = run;
  const { streams, 'stream-seconds': tokens } = counts;
  const pace = { tokens, tokenMs };
  const streamMs = tokens * tokenMs;
  const rampMs = streamMs * rampShare;
  const stack = await startCapacityStack(run, { slow: pace });
  await stack.warmUp();
  const startMs = performance.now();
  const emptyHeaps = await stack.probe();
  const emptyRss = readRss(stack);
  // CPU time is measured while all streams are open: from the end of the ramp until the first one ends.
  const steady: { end?: () => CpuUse; shares?: Readonly<Record<string, number>> } = {};
  let probing = Promise.resolve(emptyHeaps);
  let peakRss = emptyRss;
  const load = await runChargedLoad(
    programs,
    stack.money,
    {
      ...stack.gateway,
      ...streamPlan('slow', pace),
      callers: streams,
      span: { kind: 'work', requests: streams, rampMs },
      pids: stack.pids,
    },
    () => {
      const elapsedMs = performance.now() - startMs;
      const rss = readRss(stack);
      peakRss = { api: Math.max(peakRss.api, rss.api), worker: Math.max(peakRss.worker, rss.worker) };
      if (steady.end === undefined) {
        if (elapsedMs > rampMs + tokenMs) steady.end = startCpuPhase(stack.pids);
      } else if (steady.shares === undefined && elapsedMs > streamMs * steadyShare) {
        const use = steady.end();
        steady.shares = divideCpu(use, use.measuredMs);
        probing = stack.probe();
      }
    },
  );
  const heaps = await probing;
  const { shares = {} } = steady;
  const lateMs = (ms: number): number => Math.round(ms - streamMs);
  const table = new Table<Role | 'redis' | 'mongo'>([
    { title: '', cell: (name) => name },
    {
      title: 'heap KB/stream',
      cell: ofRoles((role) =>
        ((heaps[role].heapBytes - emptyHeaps[role].heapBytes) / 1_024 / streams).toFixed(1),
      ),
    },
    {
      title: 'RSS KB/stream',
      cell: ofRoles((role) => (((peakRss[role] - emptyRss[role]) * 1_024) / streams).toFixed(1)),
    },
    { title: 'RSS MB at most', cell: ofRoles((role) => Math.round(peakRss[role]).toString()) },
    { title: 'of one core', cell: (name) => `${Math.round((shares[name] ?? 0) * 100)} %` },
  ]);
  return {
    lines: [
      ...table.format([...roles, 'redis', 'mongo']),
      `${load.allAnswers} streams with all of their ${tokens} tokens and ${load.money.charges} charges · last token ` +
        `${lateMs(load.p50Ms)} ms late in the median, ${lateMs(load.p99Ms)} ms at p99, ${lateMs(load.maxMs)} ms at most`,
    ],
    values: { streams, shares, lateP50Ms: lateMs(load.p50Ms), lateP99Ms: lateMs(load.p99Ms) },
    faults: [...listErrors(load.errors), ...load.money.faults],
  };
}

/** Leaves the cells of other processes empty. */
const ofRoles =
  (format: (role: Role) => string) =>
  (name: string): string =>
    name === 'api' || name === 'worker' ? format(name) : '';

const readRss = ({ pids }: CapacityStack) => ({ api: readRssMb(pids.api), worker: readRssMb(pids.worker) });
