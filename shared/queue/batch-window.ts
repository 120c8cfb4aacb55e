/** When a micro-batch must be closed. Pure: whoever holds it tells it the time. */
export interface BatchLimits {
  /** What the first call of a batch waits for others, for each batch that is under way already. */
  readonly windowMs: number;
  readonly maxWindowMs: number;
  readonly maxInputs: number;
  readonly maxBytes: number;
}

export interface BatchSize {
  readonly inputs: number;
  readonly bytes: number;
}

/** Whether a call must open a batch of its own, for this one would grow past its limits. */
export function exceedsBatch(batch: BatchSize, call: BatchSize, limits: BatchLimits): boolean {
  return (
    batch.inputs > 0 &&
    (batch.inputs + call.inputs > limits.maxInputs || batch.bytes + call.bytes > limits.maxBytes)
  );
}

/**
 * How long a batch that just got its first call stays open. With none under way a call has nothing to gain by
 * waiting; the more are under way, the longer a batch would wait for its turn at the vendor anyway.
 */
export function chooseWindowMs(batchesUnderWay: number, limits: BatchLimits): number {
  return Math.min(limits.maxWindowMs, limits.windowMs * batchesUnderWay);
}
