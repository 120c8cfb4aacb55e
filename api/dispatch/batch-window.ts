/** Limits that decide when a micro-batch is closed. Pure: the caller supplies the time. */
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
 * How long a batch that just got its first call stays open. With no batch running, a call gains nothing by waiting. The
 * more are running, the longer a batch would wait for its turn at the vendor anyway.
 */
export function chooseWindowMs(batchesUnderWay: number, limits: BatchLimits): number {
  return Math.min(limits.maxWindowMs, limits.windowMs * batchesUnderWay);
}
