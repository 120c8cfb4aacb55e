import { statsStepMs } from '../shared/traffic/traffic-store.ts';
import { defaultBodyTimes, type BodyTimes } from './bodies/body-pace.ts';
import { defaultMaxStallMs } from './connections/stall-guard.ts';

/** What tests change of an api process. */
export interface ApiOptions {
  /** How often the public stats change (ms). */
  readonly statsStepMs: number;
  /** Memory budget in bytes for the bodies of all requests in progress. */
  readonly requestMemoryBytes: number;
  /** Memory budget in bytes for all large responses in progress. */
  readonly responseMemoryBytes: number;
  readonly maxDownloads: number;
  /** How long bytes may wait for a client that reads none of them. */
  readonly maxStallMs: number;
  /** Time limits for receiving bodies. */
  readonly bodyTimes: BodyTimes;
  /** How long a caller waits for its key to be looked up; the look-up's own limit if undefined. */
  readonly keyWaitMs?: number;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs: number;
  /** How long a caller waits for MongoDB. */
  readonly databaseWaitMs: number;
  /** Whether to load the tokenizer at startup, which takes a third of a second. Otherwise the first request does. */
  readonly preloadsVocabularies: boolean;
}

export const defaultApiOptions: ApiOptions = {
  statsStepMs,
  // A parsed body takes two to three times its length, which is well within Node's heap.
  requestMemoryBytes: 512_000_000,
  // Twenty of the largest.
  responseMemoryBytes: 512_000_000,
  // Each holds half a megabyte of its file.
  maxDownloads: 256,
  maxStallMs: defaultMaxStallMs,
  bodyTimes: defaultBodyTimes,
  // Includes the 2 s that a Redis which lost its memory waits for data in transit to MongoDB.
  accountWaitMs: 3_000,
  // The time that MongoDB itself may take for a page of logs.
  databaseWaitMs: 5_000,
  preloadsVocabularies: true,
};
