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
  /** Not counted: code is compiled, connections are opened, queues fill. */
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly expects: AnswerExpectation;
  /** The processes whose CPU time is read at both ends of the measured time; the generator adds itself. */
  readonly pids: Readonly<Record<string, number>>;
}

export interface LoadResult {
  readonly measuredMs: number;
  /** Right answers that came in the measured time. */
  readonly answers: number;
  /** All right answers, of the time before and after as well. */
  readonly allAnswers: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** How often what went wrong, warm-up included. */
  readonly errors: Readonly<Record<string, number>>;
  readonly cpu: CpuUse;
}
