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

/** What is measured twice in one run: straight to the vendor, and through the gateway. */
export interface Scenario {
  readonly name: string;
  readonly group: ScenarioGroup;
  readonly title: string;
  readonly callers: number;
  readonly vendor: VendorName;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body but for its model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The model's name at the vendor, and at the gateway. */
  readonly models: { readonly direct: string; readonly gateway: string };
  readonly expects: AnswerExpectation;
}
