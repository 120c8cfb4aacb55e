import type { AnswerExpectation } from './answer-checks.ts';

/** Simulated vendors, each in a separate process: one responds at once, one as slowly as a real one. */
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

/** Scenarios that cover only the money path, on separate stores and without a vendor. */
export const moneyScenarios = ['admissions', 'ledger'] as const;
export type MoneyScenario = (typeof moneyScenarios)[number];

/** In each body, a number replaces this that is unique in the run. */
export const uniqueMark = '#unique-nr#';

/** Takes minutes, so it runs only when named explicitly. */
export const memoryScenario = 'memory';

/** Likewise: durable jobs, placed and then run. */
export const jobsScenario = 'jobs';

/** Likewise: what one account's attack costs another. */
export const fairnessGroup = 'fairness';

/** A scenario. If possible it is measured twice in one run: directly against the vendor, and through the gateway. */
export interface Scenario {
  readonly name: string;
  readonly group: ScenarioGroup;
  readonly title: string;
  /** A single-caller scenario keeps one caller, whatever the options say. */
  readonly callers: number;
  /** Additional callers that send the same requests and whose latency is not measured. */
  readonly background: number;
  /**
   * Null measures the requests that end in a given time. A number is for slow responses: it measures this many
   * requests of each caller, from the first request sent to the last response received.
   */
  readonly requestsEach: number | null;
  /** Null if the gateway's own worker computes the responses: there is no vendor to call directly. */
  readonly vendor: VendorName | null;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body without its model. */
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

/** Returns the number of vectors in each response. 0 if it is not for embeddings. */
export function countVectors({ expects }: Scenario): number {
  return expects.kind === 'embeddings' ? expects.inputs : 0;
}
