// decision 0010
import type { BullQueueName, QueueName } from './job-kinds.ts';

/**
 * An account with at most this many inputs and requests running is in class 0. A worker runs 256 jobs of that class at
 * the same time.
 */
const quickInputs = 1_024;
const quickRequests = 64;

/**
 * The priority class of an account, according to its running work. Class 0 goes first, and each further class has twice
 * as much running work as the one before. Pure.
 */
export function chooseShareClass(inputs: number, requests: number): number {
  const times = Math.max(inputs / quickInputs, requests / quickRequests);
  return times <= 1 ? 0 : 1 + Math.floor(Math.log2(times));
}

/** An account with at most this many requests (chats or images) uses the quick lane. */
const quickLaneRequests = 16;

/**
 * Two lanes to the workers. Each has its own worker slots or reserves some of them, so an account with much work
 * running never blocks one with little, however many requests it sends and however long they take.
 */
export type Lane = 'quick' | 'bulk';

/** In the order in which workers take from them. */
export const lanes: readonly Lane[] = ['quick', 'bulk'];

/** The part of a worker's chat slots that only the quick lane may use. */
const reservedForQuick = 0.25;
/**
 * Worker slots per BullMQ queue. A running job uses memory while it waits for a call slot, and more jobs have no
 * benefit. A single account gets at most half of the bulk slots, even if no other account uses any.
 */
const maxQueuedRuns: Record<BullQueueName, number> = {
  image: 64,
  'image-bulk': 128,
  embedding: 256,
  'embedding-bulk': 128,
};

/** How many jobs of a BullMQ queue a worker runs at the same time. Pure. */
export function countQueuedRuns(queue: BullQueueName, concurrency: number): number {
  return Math.min(concurrency, maxQueuedRuns[queue]);
}

/** How many requests of a queue a worker runs at the same time, its bulk slots included. Pure. */
export function countRuns(queue: QueueName, concurrency: number): number {
  if (queue === 'chat') return concurrency;
  return Math.min(concurrency, maxQueuedRuns[queue] + maxQueuedRuns[`${queue}-bulk`]);
}

/** How many slots a worker has for accounts with much work running. Pure. */
export function countBulkRuns(queue: QueueName, concurrency: number): number {
  if (queue === 'chat') return concurrency - Math.floor(concurrency * reservedForQuick);
  return countQueuedRuns(`${queue}-bulk`, concurrency);
}

/**
 * @param inFlight requests of the account at this api process, including the new one and those whose callers
 * disconnected. Pure.
 */
export function chooseLane(inFlight: number): Lane {
  return inFlight > quickLaneRequests ? 'bulk' : 'quick';
}
