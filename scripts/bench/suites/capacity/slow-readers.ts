import { setTimeout as delay } from 'node:timers/promises';
import { readRssMb } from '../../harness/clocks/rss-clock.ts';
import { slowReadBytes } from '../../harness/load/caller.ts';
import { runLoad } from '../../harness/load/run-load.ts';
import { listErrors } from '../../harness/statistics.ts';
import { Table } from '../../harness/table.ts';
import type { CapacityResult, CapacityRun } from './capacity-scenario.ts';
import { startCapacityStack, streamPlan, type CapacityStack } from './capacity-stack.ts';

/** Each pauses after every read. */
const readers = 64;
const readPauseMs = 250;
/** About 30 MB. */
const endless = { tokens: 200_000, tokenMs: 0 };
/** By this share of the time, all buffers between the vendor and the readers are full. */
const filledShare = 1 / 3;
const endShare = 0.95;
const readings = 5;
/** What may be held for one reader: the bytes between the vendor and its socket. More means that something grows. */
const maxMbPerReader = 0.75;
/** What the processes hold varies by as much without any reader. */
const slackMb = 16;
/** A stream whose caller disconnects is read to its end, because the vendor bills it. */
const endMs = 60_000;

interface MemoryRow {
  readonly name: string;
  /** Before, after a third, and at the end. */
  readonly mb: readonly number[];
  readonly kbPerReader: number;
  readonly isBounded: boolean;
}

const table = new Table<MemoryRow>([
  { title: 'MB', width: 12, cell: ({ name }) => name },
  ...['before', 'after a third', 'at the end'].map((title, i) => ({
    title,
    width: 8,
    cell: ({ mb }: MemoryRow) => mb[i]!.toFixed(1),
  })),
  { title: 'KB per reader', cell: ({ kbPerReader }) => kbPerReader.toFixed(0) },
  { title: '', width: 8, cell: ({ isBounded }) => (isBounded ? 'bounded' : 'GROWS') },
]);

/** Streams as fast as the vendor can send, read slowly: what the processes hold over time. */
export async function measureSlowReaders(run: CapacityRun): Promise<CapacityResult> {
  const { programs, counts } = run;
  const seconds = counts['stream-seconds'];
  const measureMs = seconds * 1_000;
  const stack = await startCapacityStack(run, { endless });
  await stack.warmUp();
  const before = await readMemory(stack);
  const later = async (share: number) => {
    await delay(measureMs * share);
    return await readMemory(stack);
  };
  const [load, filled, end] = await Promise.all([
    runLoad(programs, {
      ...stack.gateway,
      ...streamPlan('endless', endless),
      callers: readers,
      span: { kind: 'reading', measureMs },
      readPauseMs,
      pids: stack.pids,
    }),
    later(filledShare),
    later(endShare),
  ]);
  const money = await stack.money.checkEnded(new Date(), endMs);
  const memory = names.map((name) => ({
    name,
    mb: [before[name], filled[name], end[name]],
    kbPerReader: ((end[name] - before[name]) * 1_000) / readers,
    isBounded: end[name] <= before[name] + readers * maxMbPerReader + slackMb,
  }));
  return {
    lines: [
      ...table.format(memory),
      `${readers} readers of ${Math.round(slowReadBytes / readPauseMs)} KB/s each, for ${seconds} s`,
    ],
    values: { readers, memory },
    faults: [
      ...listErrors(load.errors),
      ...money.faults,
      ...memory.filter(({ isBounded }) => !isBounded).map(({ name }) => `${name}: grew`),
    ],
  };
}

const names = ['api: heap', 'worker: heap', 'redis: RSS', 'mongo: RSS'] as const;

/** In MB, the lowest of several readings: bytes on their way come and go. Heaps are read after a garbage collection. */
async function readMemory({ probe, pids }: CapacityStack): Promise<Record<(typeof names)[number], number>> {
  const lowest = { api: Infinity, worker: Infinity };
  for (let i = 0; i < readings; i++) {
    const { api, worker } = await probe();
    lowest.api = Math.min(lowest.api, api.heapBytes);
    lowest.worker = Math.min(lowest.worker, worker.heapBytes);
  }
  return {
    'api: heap': lowest.api / 1e6,
    'worker: heap': lowest.worker / 1e6,
    'redis: RSS': readRssMb(pids.redis),
    'mongo: RSS': readRssMb(pids.mongo),
  };
}
