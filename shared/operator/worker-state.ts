/** What a worker says to the process that started it and asks it for its `state`. */
export interface WorkerState {
  /** Whether it takes work off all of its queues. */
  readonly isReady: boolean;
  /** Requests, durable jobs and slices of batches that it has. */
  readonly running: number;
}
