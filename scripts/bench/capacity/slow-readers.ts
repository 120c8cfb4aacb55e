import { setTimeout as delay } from 'node:timers/promises';
import { slowReadBytes } from '../caller.ts';
import { readRssMb } from '../rss-clock.ts';
import { runLoad } from '../run-load.ts';
import { chatPlan, startCapacityStack, type CapacityStack } from './capacity-stack.ts';
import { formatTable, listLoadFaults, type CapacityResult, type CapacityRun } from './report.ts';

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

/** Streams as fast as the vendor can send, read slowly: what the processes hold over time. */
export async function measureSlowReaders(run: CapacityRun): Promise<CapacityResult> {
  const { programs, options } = run;
  const measureMs = options.streamSeconds * 1_000;
  const stack = await startCapacityStack(run, { endless });
  try {
    await stack.warmUp();
    const before = await readMemory(stack);
    const later = async (share: number) => {
      await delay(measureMs * share);
      return await readMemory(stack);
    };
    const [load, filled, end] = await Promise.all([
      runLoad(programs, {
        ...stack.gateway,
        ...chatPlan('endless', true),
        callers: readers,
        span: { kind: 'reading', measureMs },
        readPauseMs,
        expects: { kind: 'stream', tokens: Infinity },
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
        ...formatTable(
          ['MB', 'before', 'after a third', 'at the end', 'KB per reader', ''],
          memory.map(({ name, mb, kbPerReader, isBounded }) => [
            name,
            ...mb.map((value) => value.toFixed(1)),
            kbPerReader.toFixed(0),
            isBounded ? 'bounded' : 'GROWS',
          ]),
        ),
        `${readers} readers of ${Math.round(slowReadBytes / readPauseMs)} KB/s each, for ${options.streamSeconds} s`,
      ],
      values: { readers, memory },
      faults: [
        ...listLoadFaults(load),
        ...money.faults,
        ...memory.filter(({ isBounded }) => !isBounded).map(({ name }) => `${name}: grew`),
      ],
    };
  } finally {
    await stack.close();
  }
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
