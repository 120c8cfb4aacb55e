import type { ResponseExpectation } from '../../harness/load/response-checks.ts';
import type { StandardVendor } from '../../harness/stack/standard-stack.ts';
import type { Scenario } from '../../harness/suite.ts';

/** If there is a vendor, it is measured twice per round: directly against the vendor, and through the gateway. */
export interface LoadScenario extends Scenario {
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
  readonly vendor: StandardVendor | null;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body without its model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The model's name at the vendor, if there is one, and at the gateway. */
  readonly models: { readonly direct?: string; readonly gateway: string };
  readonly expects: ResponseExpectation;
  /** Whether the metrics and the demand are read once a second in the meantime. */
  readonly isObserved?: boolean;
}

export type Variant = 'direct' | 'gateway';

export const listVariants = ({ vendor }: LoadScenario): Variant[] =>
  vendor === null ? ['gateway'] : ['direct', 'gateway'];

/** Returns the number of vectors in each response; 0 if the scenario is not for embeddings. */
export const countVectors = ({ expects }: LoadScenario): number =>
  expects.kind === 'embeddings' ? expects.inputs : 0;
