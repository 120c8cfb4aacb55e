// decision 0010
/** Limits that determine when a micro-batch stops accepting calls. */
export interface BatchLimits {
  /**
   * How long the first call of a batch waits for other calls (ms); multiplied by the number of batches already running.
   */
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
 * Returns how long a new batch accepts further calls after its first one. If no batch is running, waiting has no
 * benefit. The more batches are running, the longer a new one would wait for the vendor anyway.
 */
export function chooseWindowMs(runningBatches: number, limits: BatchLimits): number {
  return Math.min(limits.maxWindowMs, limits.windowMs * runningBatches);
}
