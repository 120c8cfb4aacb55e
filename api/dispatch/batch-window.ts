/** Limits that determine when a micro-batch is closed. */
export interface BatchLimits {
  /** How long the first call of a batch waits for others, per batch already running. */
  readonly windowMs: number;
  readonly maxWindowMs: number;
  readonly maxInputs: number;
  readonly maxBytes: number;
}

export interface BatchSize {
  readonly inputs: number;
  readonly bytes: number;
}

/** Whether a call must open a new batch because this one would exceed its limits. */
export function exceedsBatch(batch: BatchSize, call: BatchSize, limits: BatchLimits): boolean {
  return (
    batch.inputs > 0 &&
    (batch.inputs + call.inputs > limits.maxInputs || batch.bytes + call.bytes > limits.maxBytes)
  );
}

/**
 * Returns how long a batch that just got its first call stays open. With no batch running, waiting gains nothing. The
 * more are running, the longer a batch would wait for its turn at the vendor anyway.
 */
export function chooseWindowMs(runningBatches: number, limits: BatchLimits): number {
  return Math.min(limits.maxWindowMs, limits.windowMs * runningBatches);
}
