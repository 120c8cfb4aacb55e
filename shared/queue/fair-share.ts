import type { BullQueueName, QueueName } from './job-kinds.ts';

/** An account with no more running than this is in class 0. A worker runs 256 jobs of that kind at once. */
const quickInputs = 1_024;
const quickRequests = 64;

/**
 * The work class of an account, from how much it has running. Class 0 goes first, and each further class has twice as
 * much running as the one before. Pure.
 */
export function chooseShareClass(inputs: number, requests: number): number {
  const times = Math.max(inputs / quickInputs, requests / quickRequests);
  return times <= 1 ? 0 : 1 + Math.floor(Math.log2(times));
}

/** An account with at most this many requests (chats or images) uses the quick lane. */
const quickLaneRequests = 16;

/**
 * Two lanes to the workers, each with its own or reserved runs. An account with much work running never blocks one with
 * little, however much it sends and however long that takes.
 */
export type Lane = 'quick' | 'bulk';

/** In the order in which workers take from them. */
export const lanes: readonly Lane[] = ['quick', 'bulk'];

/** The share of a worker's chat runs that the bulk lane leaves free for the quick lane. */
const keptForQuick = 0.25;
/**
 * BullMQ jobs use memory while they wait for their upstream's slots, and more than this many gain nothing. A single
 * account gets half of the bulk runs while it is alone.
 */
const mostQueuedRuns: Record<BullQueueName, number> = {
  image: 64,
  'image-bulk': 128,
  embedding: 256,
  'embedding-bulk': 128,
};

/** How many jobs of a BullMQ queue a worker runs at once. Pure. */
export function countQueuedRuns(queue: BullQueueName, concurrency: number): number {
  return Math.min(concurrency, mostQueuedRuns[queue]);
}

/** How many runs a worker has for accounts with much work running. Pure. */
export function countBulkRuns(queue: QueueName, concurrency: number): number {
  if (queue === 'chat') return concurrency - Math.floor(concurrency * keptForQuick);
  return countQueuedRuns(`${queue}-bulk`, concurrency);
}

/**
 * @param inFlight requests of the account at this api process, including the new one and those whose callers left.
 * Pure.
 */
export function chooseLane(inFlight: number): Lane {
  return inFlight > quickLaneRequests ? 'bulk' : 'quick';
}
