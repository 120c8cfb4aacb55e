import type { AnswerExpectation } from './answer-checks.ts';

/** Simulated vendors, each a process of its own: one answers at once, one as slowly as a real one. */
export const vendors = {
  instant: { arguments: [], maxConcurrency: 1024, text: 'at once' },
  busy: {
    arguments: ['--per-call-ms', '30', '--per-input-ms', '0.2', '--max-concurrency', '8'],
    maxConcurrency: 8,
    text: '30 ms + 0.2 ms an input, 8 calls at once',
  },
} as const;
export type VendorName = keyof typeof vendors;

export const scenarioGroups = ['chat', 'stream', 'embeddings'] as const;
export type ScenarioGroup = (typeof scenarioGroups)[number];

/** Scenarios of the way of money alone, on stores of their own and without a vendor. */
export const moneyScenarios = ['admissions', 'ledger'] as const;
export type MoneyScenario = (typeof moneyScenarios)[number];

/** Wherever it stands in a body, a number takes its place that no other request of the run has. */
export const uniqueMark = '#unique-nr#';

/** Measured only where it is asked for by its name, as it takes minutes. */
export const memoryScenario = 'memory';

/** Likewise: durable jobs, placed and then run. */
export const jobsScenario = 'jobs';

/** Likewise: what one account's attack costs another. */
export const fairnessGroup = 'fairness';

/** What is measured twice in one run where it can be: straight to the vendor, and through the gateway. */
export interface Scenario {
  readonly name: string;
  readonly group: ScenarioGroup;
  readonly title: string;
  /** A scenario of a single caller stays one of a single caller, whatever the options say. */
  readonly callers: number;
  /** Callers beside them who send the same requests and whose waiting is not measured. */
  readonly background: number;
  /**
   * Null where as many requests are measured as end in a given time. A number where answers come so seldom that what is
   * measured are so many requests of each caller, from the first one sent to the last one answered.
   */
  readonly requestsEach: number | null;
  /** Null where the gateway's own worker computes the answers: nothing stands behind it to be called directly. */
  readonly vendor: VendorName | null;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body but for its model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The model's name at the vendor, if there is one, and at the gateway. */
  readonly models: { readonly direct?: string; readonly gateway: string };
  readonly expects: AnswerExpectation;
}

export type Way = 'direct' | 'gateway';

export function listWays({ vendor }: Scenario): Way[] {
  return vendor === null ? ['gateway'] : ['direct', 'gateway'];
}

export function countCallers({ callers }: Scenario, wanted: number | null): number {
  return callers === 1 ? 1 : (wanted ?? callers);
}

/** Vectors in each answer; 0 for what is no embedding. */
export function countVectors({ expects }: Scenario): number {
  return expects.kind === 'embeddings' ? expects.inputs : 0;
}
