import type { AnswerExpectation } from './answer-checks.ts';
import type { CpuUse } from './cpu-clock.ts';

/** The load generator's plan: a closed loop of callers, each with one request in progress. */
export interface LoadPlan {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly apiKey: string;
  /** JSON. A number replaces `uniqueMark`. */
  readonly body: string;
  readonly callers: number;
  /** Additional callers, of which only the number of responses is reported. */
  readonly background: number;
  readonly span: TimeSpan | WorkSpan;
  readonly expects: AnswerExpectation;
  /** Processes whose CPU time is read at both ends of the measured time. The generator adds itself. */
  readonly pids: Readonly<Record<string, number>>;
}

/** Measures what happens in a given time. The callers also run before and after it. */
export interface TimeSpan {
  readonly kind: 'time';
  /** Not counted: code is compiled, connections are opened, queues fill. Longer if the first responses take longer. */
  readonly warmUpMs: number;
  /** Longer if there is no response by then. */
  readonly measureMs: number;
}

/** Measures a fixed number of requests, from the first request to the last response. One request before it warms up. */
export interface WorkSpan {
  readonly kind: 'work';
  readonly requests: number;
}

/** Messages of the load generator: repeated progress for a work span, and finally the result. */
export type LoadMessage =
  | { readonly kind: 'progress'; readonly answers: number }
  | { readonly kind: 'result'; readonly result: LoadResult };

export interface LoadResult {
  readonly measuredMs: number;
  /** Correct responses within the measured time. */
  readonly answers: number;
  /** Correct responses of the background callers within that time. */
  readonly backgroundAnswers: number;
  /** All correct responses, including those before and after that time. */
  readonly allAnswers: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Errors by reason, including the warm-up. */
  readonly errors: Readonly<Record<string, number>>;
  readonly cpu: CpuUse;
}
