import type { QueueName } from '../../shared/queue/job-kinds.ts';
import type { RunControl } from '../../shared/reply/worker-control.ts';
import { ActiveRuns, type RunningRequest } from './active-runs.ts';

/** All runs of a worker process. */
export class WorkerRuns {
  /** Those whose callers wait. */
  readonly byQueue: ReadonlyMap<QueueName, ActiveRuns>;
  /** Those of durable jobs. */
  readonly ofJobs = new ActiveRuns();
  readonly #all: readonly ActiveRuns[];

  constructor(queues: readonly QueueName[]) {
    this.byQueue = new Map(queues.map((queue) => [queue, new ActiveRuns()]));
    this.#all = [...this.byQueue.values(), this.ofJobs];
  }

  /** The accounts of all runs, possibly with duplicates. */
  accounts(): string[] {
    return this.#all.flatMap((runs) => Array.from(runs.requests(), ({ accountId }) => accountId));
  }

  /** The requests whose callers wait. */
  awaited(): RunningRequest[] {
    return [...this.byQueue.values()].flatMap((runs) => [...runs.requests()]);
  }

  /** The reply channels of callers that wait for a response that is not kept, each once. */
  channels(): ReadonlySet<string> {
    return new Set([...this.byQueue.values()].flatMap((runs) => [...runs.channels()]));
  }

  control(message: RunControl): void {
    for (const runs of this.byQueue.values()) runs.control(message);
  }

  /** Stops the runs of an api process that is gone. */
  cancelChannel(replyChannel: string): void {
    for (const runs of this.byQueue.values()) runs.cancelChannel(replyChannel);
  }

  /** Ends all runs of an account, for a reason other than their callers having left. */
  cancelAccount(accountId: string, reason: Error): void {
    for (const runs of this.#all) runs.cancelAccount(accountId, reason);
  }

  /** Ends a run for a reason other than its caller having left. */
  fail(requestId: string, error: Error): void {
    for (const runs of this.#all) runs.fail(requestId, error);
  }
}
