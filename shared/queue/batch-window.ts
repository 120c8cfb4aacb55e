/** When a micro-batch must be closed. Pure: whoever holds it tells it the time. */
export interface BatchLimits {
  /** The longest that the first call of a batch waits for others. */
  readonly windowMs: number;
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
 * waiting; with others under way, more calls are about to come.
 */
export function chooseWindowMs(batchesUnderWay: number, limits: BatchLimits): number {
  return batchesUnderWay === 0 ? 0 : limits.windowMs;
}
