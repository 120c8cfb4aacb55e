import type { Programs } from '../../harness/programs.ts';
import type { Scenario, SuiteContext } from '../../harness/suite.ts';

export type CapacityOption = 'streams' | 'stream-seconds' | 'aborted';

/** What a scenario needs to run. */
export interface CapacityRun extends SuiteContext<CapacityScenario, CapacityOption> {
  readonly programs: Programs;
  readonly onProgress: (text: string) => void;
}

export interface CapacityScenario extends Scenario {
  readonly measure: (run: CapacityRun) => Promise<CapacityResult>;
}

export interface CapacityResult {
  /** The report, without its title. */
  readonly lines: readonly string[];
  /** The same for `--json`. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly faults: readonly string[];
}
