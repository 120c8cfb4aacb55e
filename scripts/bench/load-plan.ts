import type { AnswerExpectation } from './answer-checks.ts';
import type { CpuUse } from './cpu-clock.ts';

/** What the load generator is told: a closed loop of callers, each with one request under way. */
export interface LoadPlan {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly apiKey: string;
  /** JSON; `uniqueMark` stands where a number goes. */
  readonly body: string;
  readonly callers: number;
  /** Callers beside them, of whose answers only the number is told. */
  readonly background: number;
  readonly span: TimeSpan | WorkSpan;
  readonly expects: AnswerExpectation;
  /** The processes whose CPU time is read at both ends of the measured time; the generator adds itself. */
  readonly pids: Readonly<Record<string, number>>;
}

/** What happens in a given time is measured, while the callers go on before and after it. */
export interface TimeSpan {
  readonly kind: 'time';
  /** Not counted: code is compiled, connections are opened, queues fill. Longer if the first answers take longer. */
  readonly warmUpMs: number;
  /** Longer if no answer has come by then. */
  readonly measureMs: number;
}

/** A given work is measured, from its first request to its last answer. One request before it warms up. */
export interface WorkSpan {
  readonly kind: 'work';
  readonly requests: number;
}

/** What the load generator says: of work how far it is, again and again; and at the end the result. */
export type LoadMessage =
  | { readonly kind: 'progress'; readonly answers: number }
  | { readonly kind: 'result'; readonly result: LoadResult };

export interface LoadResult {
  readonly measuredMs: number;
  /** Right answers that came in the measured time. */
  readonly answers: number;
  /** Those that the callers of the background had in that time. */
  readonly backgroundAnswers: number;
  /** All right answers, of the time before and after as well. */
  readonly allAnswers: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** How often what went wrong, warm-up included. */
  readonly errors: Readonly<Record<string, number>>;
  readonly cpu: CpuUse;
}
