/** Version, trace id, span id and flags (https://www.w3.org/TR/trace-context/#traceparent-header). */
const form = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const length = 55;

/** In characters. What is longer is ignored. */
export const maxTracestateLength = 512;

/** Whether a text is a `traceparent` of version 00. Other versions do not exist yet. */
export const isTraceparent = (text: string): boolean => text.length === length && form.test(text);

export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** @param traceparent a valid one */
export function readTraceparent(traceparent: string): TraceIds {
  const [, traceId, spanId, flags] = traceparent.split('-');
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16) };
}

export const writeTraceparent = ({ traceId, spanId, traceFlags }: TraceIds): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
