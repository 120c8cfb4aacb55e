import type { BullQueueName, QueueName } from './job-kinds.ts';

/** An account with no more than this under way goes the quick way. A worker runs 256 jobs of that kind at once. */
const quickInputs = 1_024;
const quickRequests = 64;

/**
 * The class of work of an account that has so much under way: 0 goes before all others, and each further class has twice
 * as much under way as the one before. Pure.
 */
export function chooseShareClass(inputs: number, requests: number): number {
  const times = Math.max(inputs / quickInputs, requests / quickRequests);
  return times <= 1 ? 0 : 1 + Math.floor(Math.log2(times));
}

/** Requests, of chats or images, up to which an account's work goes the quick way. */
const quickLaneRequests = 16;

/**
 * Two ways to the workers, each with runs of its own, or runs that are kept for it: however much an account with much under
 * way sends, and however long that takes, it does not stand before an account with little.
 */
export type Lane = 'quick' | 'bulk';

/** In the order in which workers take from them. */
export const lanes: readonly Lane[] = ['quick', 'bulk'];

/** Of the runs of a worker for chats, the part that bulk leaves to others. */
const keptForQuick = 0.25;
/**
 * Jobs of BullMQ cost memory while they wait for their upstream's slots; more than these add nothing. Of the bulk runs an
 * account has half, while it is alone.
 */
const mostQueuedRuns: Record<BullQueueName, number> = {
  image: 64,
  'image-bulk': 128,
  embedding: 256,
  'embedding-bulk': 128,
};

/** Jobs of one of BullMQ's queues that a worker runs at once. Pure. */
export function countQueuedRuns(queue: BullQueueName, concurrency: number): number {
  return Math.min(concurrency, mostQueuedRuns[queue]);
}

/** How many runs a worker has for work of accounts that have much under way. Pure. */
export function countBulkRuns(queue: QueueName, concurrency: number): number {
  if (queue === 'chat') return concurrency - Math.floor(concurrency * keptForQuick);
  return countQueuedRuns(`${queue}-bulk`, concurrency);
}

/** @param underWay requests of the account at this api process, the new one and those of callers who left among them. Pure. */
export function chooseLane(underWay: number): Lane {
  return underWay > quickLaneRequests ? 'bulk' : 'quick';
}
