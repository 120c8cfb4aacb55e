import type { ResponseExpectation } from './response-checks.ts';

/** Simulated vendors, each in a separate process: one responds immediately, one as slowly as a real vendor. */
export const vendors = {
  instant: { arguments: [], maxConcurrency: 1024, text: 'immediately' },
  busy: {
    arguments: ['--per-call-ms', '30', '--per-input-ms', '0.2', '--max-concurrency', '8'],
    maxConcurrency: 8,
    text: 'in 30 ms + 0.2 ms per input, 8 concurrent calls',
  },
} as const;
export type VendorName = keyof typeof vendors;

export const scenarioGroups = ['chat', 'stream', 'embeddings'] as const;
export type ScenarioGroup = (typeof scenarioGroups)[number];

/** Scenarios that cover only the money path, on separate stores and without a vendor. */
export const moneyScenarios = ['admissions', 'ledger'] as const;
export type MoneyScenario = (typeof moneyScenarios)[number];

/** In each body, a number that is unique in the run replaces this mark. */
export const uniqueMark = '#unique-nr#';

/** Takes minutes, so it runs only if specified explicitly. */
export const memoryScenario = 'memory';

/** Also runs only if specified: durable jobs, placed and then run. */
export const jobsScenario = 'jobs';

/** Also runs only if specified: many streams, slow readers, leaks, and further processes. */
export const capacityGroup = 'capacity';

/** Also runs only if specified: how one account's attack affects another. */
export const fairnessGroup = 'fairness';

/** Also runs only if specified: the gateway beside another one and beside the vendor itself. */
export const peersGroup = 'peers';

/** A scenario. If possible, it is measured twice per round: directly against the vendor, and through the gateway. */
export interface Scenario {
  readonly name: string;
  readonly group: ScenarioGroup;
  readonly title: string;
  /** A single-caller scenario always has one caller, regardless of the options. */
  readonly callers: number;
  /** Additional callers that send the same requests and whose latency is not measured. */
  readonly background: number;
  /**
   * If null, measures the requests that finish in a given time. If a number, for slow responses, measures this many
   * requests per caller, from the first request sent to the last response received.
   */
  readonly requestsEach: number | null;
  /** Null if the gateway's worker computes the responses, so that there is no vendor to call directly. */
  readonly vendor: VendorName | null;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body without its model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The model's name at the vendor, if there is one, and at the gateway. */
  readonly models: { readonly direct?: string; readonly gateway: string };
  readonly expects: ResponseExpectation;
}

export type Variant = 'direct' | 'gateway';

export function listVariants({ vendor }: Scenario): Variant[] {
  return vendor === null ? ['gateway'] : ['direct', 'gateway'];
}

export function countCallers({ callers }: Scenario, override: number | null): number {
  return callers === 1 ? 1 : (override ?? callers);
}

/** Returns the number of vectors in each response; 0 if the scenario is not for embeddings. */
export function countVectors({ expects }: Scenario): number {
  return expects.kind === 'embeddings' ? expects.inputs : 0;
}
