import type { Suite } from '../harness/suite.ts';
import { batchSuite } from './batch/batch-suite.ts';
import { capacitySuite } from './capacity/capacity-suite.ts';
import { fairnessSuite } from './fairness/fairness-suite.ts';
import { jobsSuite } from './jobs/jobs-suite.ts';
import { memorySuite } from './memory/memory-suite.ts';
import { moneySuite } from './money/money-suite.ts';
import { peersSuite } from './peers/peers-suite.ts';
import { requestsSuite } from './requests/requests-suite.ts';
import { scenariosSuite } from './scenarios/scenarios-suite.ts';

/** Everything that the bench measures, in order. The arguments, the options and `--help` follow from it. */
export const suites: readonly Suite[] = [
  scenariosSuite,
  moneySuite,
  memorySuite,
  jobsSuite,
  batchSuite,
  requestsSuite,
  capacitySuite,
  fairnessSuite,
  peersSuite,
];
