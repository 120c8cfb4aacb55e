import { statsStepMs } from '../shared/ledger/request-stats-store.ts';
import { defaultBodyTimes, type BodyTimes } from './http/bodies/body-pace.ts';
import { defaultConditionIntervalMs } from './operator/conditions/condition-watcher.ts';
import { defaultFirstCommentMs } from './requests/replies/event-stream.ts';
import { defaultNoWorkerTimeoutMs } from './requests/replies/worker-absence.ts';
import { defaultMaxStallMs } from './http/connections/stall-guard.ts';

/** Settings of an api process that tests change. */
export interface ApiOptions {
  /** Interval at which the public stats change (ms). */
  readonly statsStepMs: number;
  /** How often the process writes what operators see of requests (ms). */
  readonly trafficIntervalMs?: number;
  /** How soon rejected requests are written to their log (ms). */
  readonly rejectionFlushMs?: number;
  /** Memory budget in bytes for the bodies of all requests in progress. */
  readonly requestMemoryBytes: number;
  /** Memory budget in bytes for all uploads of files in progress. */
  readonly uploadMemoryBytes: number;
  /** Memory budget in bytes for all large responses in progress. */
  readonly responseMemoryBytes: number;
  readonly maxDownloads: number;
  /** How long a queue may be without a worker before its callers get an error. */
  readonly noWorkerTimeoutMs: number;
  /** How often the state of the stores and the workers is read for conditions and alerts (ms). */
  readonly conditionIntervalMs: number;
  /** How long bytes may wait for a client that reads nothing. */
  readonly maxStallMs: number;
  /**
   * How long idle connections stay open when the process stops (ms). A request that was on its way is answered; a
   * balancer that keeps connections open cannot know in time that they are about to close.
   */
  readonly idleGraceMs: number;
  /** How long an event stream may be silent before its first comment. */
  readonly firstCommentMs: number;
  /** Time limits for receiving bodies. */
  readonly bodyTimes: BodyTimes;
  /** How long a caller waits for the look-up of its key. Defaults to the look-up's own limit. */
  readonly keyWaitMs?: number;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs: number;
  /** How long a caller waits for MongoDB. */
  readonly databaseWaitMs: number;
  /**
   * Whether to load the tokenizer at startup, which takes a third of a second. Otherwise the first request loads it.
   */
  readonly preloadsVocabularies: boolean;
  /** Whether to log at startup what is wrong with the set-up of the stores. */
  readonly reportsSetup: boolean;
}

export const defaultApiOptions: ApiOptions = {
  statsStepMs,
  // A parsed body takes two to three times its length, which is well within Node's heap.
  requestMemoryBytes: 512_000_000,
  // Eight uploads, of which one account may have four.
  uploadMemoryBytes: 96_000_000,
  // Enough for twenty of the largest responses.
  responseMemoryBytes: 512_000_000,
  // Each download has half a megabyte of its file in memory.
  maxDownloads: 256,
  noWorkerTimeoutMs: defaultNoWorkerTimeoutMs,
  conditionIntervalMs: defaultConditionIntervalMs,
  maxStallMs: defaultMaxStallMs,
  idleGraceMs: 1_000,
  firstCommentMs: defaultFirstCommentMs,
  bodyTimes: defaultBodyTimes,
  // Includes 2 s: if Redis has lost its data, loading an account waits that long for data that is still being written
  // to MongoDB.
  accountWaitMs: 3_000,
  // The maximum time that MongoDB may take for a page of logs.
  databaseWaitMs: 5_000,
  preloadsVocabularies: true,
  reportsSetup: false,
};
