import type { Suite } from '../../harness/suite.ts';
import { computeAllowed, findFaults } from './judge.ts';
import { measureFairness } from './measure-fairness.ts';
import { fairnessLegend, formatFairness, formatFairnessHead } from './report.ts';
import { fairnessScenarios, type FairnessResult } from './scenario.ts';

const scenarios = fairnessScenarios.map((scenario) => ({
  ...scenario,
  title: `${scenario.innocent}, during ${scenario.attack}`,
}));

/** How an attack by one account affects another. New processes for each, so that one attack does not affect the next. */
export const fairnessSuite: Suite<(typeof scenarios)[number]> = {
  name: 'fairness',
  label: 'Fairness',
  scenarios,
  runsOnlyByName: true,

  async run({ scenarios: selected, settings, output, within }) {
    const results: FairnessResult[] = [];
    output.print(formatFairnessHead());
    for (const [i, { title: _title, ...scenario }] of selected.entries()) {
      output.show(`fairness ${i + 1}/${selected.length}, ${scenario.name}`);
      // Requests in flight at the end belong to the attack, so do not wait for them.
      const result = await within((programs) => measureFairness({ programs, settings, scenario }), []);
      results.push(result);
      output.print(formatFairness(result));
    }
    output.print(fairnessLegend);
    const unfair = results.filter((result) => findFaults(result).length > 0).length;
    return {
      json: results.map((result) => ({
        ...result,
        allowed: computeAllowed(result),
        faults: findFaults(result),
      })),
      faults: unfair,
      verdict: `${unfair} of ${results.length} attacks affect others more than allowed.`,
    };
  },
};
