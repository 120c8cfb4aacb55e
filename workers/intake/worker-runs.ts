import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RunControl } from '../../shared/work/replies/worker-control.ts';
import { ActiveRuns, type RunningRequest } from './active-runs.ts';

/** All runs of a worker process. */
export class WorkerRuns {
  /** The runs of interactive requests. */
  readonly byQueue: ReadonlyMap<QueueName, ActiveRuns>;
  /** The runs of durable jobs. */
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

  /** How many requests and durable jobs of each model run. */
  countByModel(): Readonly<Record<'interactive' | 'job', ReadonlyMap<string, number>>> {
    return { interactive: countModels(this.interactiveRequests()), job: countModels(this.ofJobs.requests()) };
  }

  get size(): number {
    return this.#all.reduce((total, runs) => total + runs.size, 0);
  }

  interactiveRequests(): RunningRequest[] {
    return [...this.byQueue.values()].flatMap((runs) => [...runs.requests()]);
  }

  /** The distinct reply channels of interactive requests whose response is not stored. */
  channels(): ReadonlySet<string> {
    return new Set([...this.byQueue.values()].flatMap((runs) => [...runs.channels()]));
  }

  control(message: RunControl): void {
    for (const runs of this.byQueue.values()) runs.control(message);
  }

  /** Cancels all runs for an api process that is gone, except those whose response is stored for a later request. */
  cancelChannel(replyChannel: string): void {
    for (const runs of this.byQueue.values()) runs.cancelChannel(replyChannel);
  }

  /** Cancels all runs of an account for a reason other than a disconnect. */
  cancelAccount(accountId: string, reason: Error): void {
    for (const runs of this.#all) runs.cancelAccount(accountId, reason);
  }

  /** Cancels a run for a reason other than a disconnect of its caller. */
  fail(requestId: string, error: Error): void {
    for (const runs of this.#all) runs.fail(requestId, error);
  }
}

function countModels(requests: Iterable<RunningRequest>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { model } of requests) counts.set(model, (counts.get(model) ?? 0) + 1);
  return counts;
}
