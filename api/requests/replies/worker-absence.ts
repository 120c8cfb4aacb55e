import { queueNames, type QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { QueueWorkers, WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

export const defaultNoWorkerTimeoutMs = liveness.queue.unservedMs;
/** A result of a look-up that is older says nothing about whether a queue is served now. */
const maxLookUpAgeMs = 5_000;

interface QueueState {
  /** The last heartbeat of a worker that takes work off the queue, or when this process began to look. */
  servedAtMs: number;
  /** Whether its absence has been reported and has not ended. */
  isReported: boolean;
  /** Callers that got an error since the last report. */
  rejected: number;
}

/** Facts about a queue without a worker. */
export interface Absence {
  /** How long no worker has served it. */
  readonly unservedMs: number;
  /** Callers that wait now. */
  readonly waiting: number;
  /** Callers that got an error: before the report, or while the absence lasted. */
  readonly refused: number;
}

/** Is told which queues in use have had no worker for too long, once when it begins and once when it ends. */
export interface AbsenceReport {
  began(queue: QueueName, absence: Absence): void;
  /** @param isServed whether a worker serves the queue again; otherwise no model of the catalog needs it any more */
  ended(queue: QueueName, absence: Absence, isServed: boolean): void;
  /** Called with each look-up from which on it is known which queues have no worker. */
  known(): void;
}

export interface AbsenceDetails extends AbsenceOptions {
  /** Callers that wait for a worker of the queue. */
  readonly countWaiting: (queue: QueueName) => number;
}

export interface AbsenceOptions {
  /** Queues for which requests can be admitted. Only their absences are reported. */
  readonly queuesInUse: () => ReadonlySet<QueueName>;
  /** How long a queue may be without a worker before its callers get an error. */
  readonly noWorkerTimeoutMs: number;
  readonly report: AbsenceReport;
}

/** Measures how long each queue has been without a live worker that takes work off it, and reports it. */
export class WorkerAbsence {
  readonly #registry: Pick<WorkerRegistryStore, 'findWorkers'>;
  readonly #details: AbsenceDetails;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #queues: ReadonlyMap<QueueName, QueueState>;
  /** Until this time, a live worker may not yet have sent its first heartbeat since the last Redis outage. */
  #unknownUntilMs = -Infinity;
  #lookedUpAtMs = -Infinity;

  constructor(
    registry: Pick<WorkerRegistryStore, 'findWorkers'>,
    details: AbsenceDetails,
    log: Logger,
    nowMs: () => number,
  ) {
    this.#registry = registry;
    this.#details = details;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#queues = new Map(
      queueNames.map((queue) => [queue, { servedAtMs: nowMs(), isReported: false, rejected: 0 }]),
    );
  }

  /** Reads which workers are alive, in one round trip. Returns null if Redis is unavailable. */
  async lookUp(): Promise<ReadonlyMap<QueueName, QueueWorkers> | null> {
    let found: QueueWorkers[];
    try {
      found = await this.#registry.findWorkers(queueNames);
    } catch (error) {
      this.#log.debug({ err: error }, 'worker look-up failed');
      this.#reset();
      return null;
    }
    this.#lookedUpAtMs = this.#nowMs();
    const byQueue = new Map(queueNames.map((queue, i) => [queue, found[i]!]));
    for (const [queue, { servedAgoMs }] of byQueue) this.#note(queue, servedAgoMs);
    const isKnown = ([queue, { servedAgoMs }]: [QueueName, QueueWorkers]): boolean =>
      servedAgoMs !== null || this.#stateOf(queue).isReported || !this.#details.queuesInUse().has(queue);
    if ([...byQueue].every(isKnown)) this.#details.report.known();
    return byQueue;
  }

  /** Returns how long no worker has served the queue (ms); null if that is currently unknown. */
  findUnservedMs(queue: QueueName): number | null {
    const nowMs = this.#nowMs();
    return nowMs < this.#unknownUntilMs ? null : nowMs - this.#stateOf(queue).servedAtMs;
  }

  /** Whether a request for this queue gets an error immediately. Call `noteRejection` then. */
  isUnserved(queue: QueueName): boolean {
    if (this.#nowMs() - this.#lookedUpAtMs > maxLookUpAgeMs) return false;
    return (this.findUnservedMs(queue) ?? 0) > this.#details.noWorkerTimeoutMs;
  }

  /** Whether callers of a model in the catalog get errors for lack of workers. */
  hasUnserved(): boolean {
    return [...this.#details.queuesInUse()].some((queue) => this.isUnserved(queue));
  }

  /** Counts a caller that gets an error because the queue is unserved. */
  noteRejection(queue: QueueName): void {
    this.#stateOf(queue).rejected += 1;
  }

  /**
   * Restarts the measurement after a Redis outage. Workers continue to run during the outage, and settle their requests
   * when Redis is back.
   */
  #reset(): void {
    const nowMs = this.#nowMs();
    for (const state of this.#queues.values()) state.servedAtMs = nowMs;
    this.#unknownUntilMs = nowMs + liveness.worker.deadMs;
  }

  #note(queue: QueueName, servedAgoMs: number | null): void {
    const state = this.#stateOf(queue);
    const nowMs = this.#nowMs();
    const { report, noWorkerTimeoutMs, countWaiting, queuesInUse } = this.#details;
    const unservedMs = nowMs - state.servedAtMs;
    const describe = (): Absence => ({ unservedMs, waiting: countWaiting(queue), refused: state.rejected });
    const isServed = servedAgoMs !== null;
    if (isServed) state.servedAtMs = Math.max(state.servedAtMs, nowMs - servedAgoMs);
    if (!state.isReported && (isServed || (this.findUnservedMs(queue) ?? 0) <= noWorkerTimeoutMs)) return;
    const isOver = isServed || (!queuesInUse().has(queue) && countWaiting(queue) === 0);
    if (isOver !== state.isReported) return;
    if (isOver) report.ended(queue, describe(), isServed);
    else report.began(queue, describe());
    state.isReported = !isOver;
    state.rejected = 0;
  }

  #stateOf(queue: QueueName): QueueState {
    return this.#queues.get(queue)!;
  }
}
