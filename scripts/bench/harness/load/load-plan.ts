import type { CpuUse } from '../clocks/cpu-clock.ts';
import type { Target } from '../stack/vendors.ts';
import type { ErrorCounts } from '../statistics.ts';
import type { ResponseExpectation } from './response-checks.ts';

/** The load generator's plan: a closed loop of callers, each with one request in flight. */
export interface LoadPlan extends Target {
  readonly path: string;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. A number replaces `uniqueMark`. */
  readonly body: string;
  readonly callers: number;
  /** Additional callers. Only the number of their responses is reported. */
  readonly background?: number;
  readonly span: TimeSpan | WorkSpan | ReadingSpan;
  /** Some callers disconnect before the end of the response; null if all wait for it. */
  readonly aborts?: Aborts | null;
  /** How long a caller pauses after each read of up to 64 KB; 0 for as fast as possible. */
  readonly readPauseMs?: number;
  readonly expects: ResponseExpectation;
  /** Processes whose CPU time is read at the start and the end of the measured time. The generator adds itself. */
  readonly pids: Readonly<Record<string, number>>;
}

/** A share of the requests whose callers disconnect after a random time. */
export interface Aborts {
  /** 0..1 */
  readonly share: number;
  readonly maxMs: number;
}

/** Measures the responses in a given time. The callers also run before and after it. */
export interface TimeSpan {
  readonly kind: 'time';
  /** Excluded from the results: code is compiled, connections open, queues fill. Extended until the first responses. */
  readonly warmUpMs: number;
  /** Extended if there is no response by then. */
  readonly measureMs: number;
}

/** Measures a fixed number of requests, from the first request to the last response. */
export interface WorkSpan {
  readonly kind: 'work';
  readonly requests: number;
  /**
   * The callers start one after the other within this time, in milliseconds. Without it they start together, after one
   * warm-up request.
   */
  readonly rampMs?: number;
}

/** Reads responses that never end for a given time, then disconnects. */
export interface ReadingSpan {
  readonly kind: 'reading';
  readonly measureMs: number;
}

/** Messages of the load generator: repeated progress for a work span, and finally the result. */
export type LoadMessage =
  | { readonly kind: 'progress'; readonly answers: number }
  | { readonly kind: 'result'; readonly result: LoadResult };

export interface LoadResult {
  readonly measuredMs: number;
  /** Correct responses within the measured time. */
  readonly answers: number;
  readonly requestsPerSecond: number;
  /** Correct responses of the background callers within that time. */
  readonly backgroundAnswers: number;
  /** Requests whose callers disconnected on purpose. */
  readonly aborted: number;
  /** All correct responses, including those before and after that time. */
  readonly allAnswers: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** From sending the request to the first byte of the body; 0 unless the responses are streams. */
  readonly firstByteP50Ms: number;
  /** Errors by reason, including the warm-up. */
  readonly errors: ErrorCounts;
  readonly cpu: CpuUse;
}

/** A load of one caller always has one caller. */
export const countCallers = (
  { callers }: { readonly callers: number },
  settings: { readonly callers: number | null },
): number => (callers === 1 ? 1 : (settings.callers ?? callers));
