import type { Options } from '../options.ts';
import type { Progress } from '../progress.ts';
import type { Workshop } from '../workshop.ts';
import { findAllowed, findFaults } from './judge.ts';
import { measureFairness } from './measure.ts';
import type { FairnessResult } from './scenario.ts';
import { fairnessLegend, formatFairness, formatFairnessHead } from './report.ts';

/** Each scenario on fresh processes, so that nothing of one attack is left in the next; printed as they end. */
export async function runFairness(
  { fairnessScenarios, logLevel }: Options,
  workshop: Workshop,
  progress: Progress,
): Promise<FairnessResult[]> {
  const results: FairnessResult[] = [];
  if (fairnessScenarios.length === 0) return results;
  console.log(formatFairnessHead());
  for (const [i, scenario] of fairnessScenarios.entries()) {
    progress.show(`fairness ${i + 1}/${fairnessScenarios.length}, ${scenario.name}`);
    // Whatever is under way at the end is the attack's: nobody waits for it.
    const result = await workshop.within([], (programs, dir) =>
      measureFairness({ programs, dir, logLevel, scenario }),
    );
    results.push(result);
    progress.clear();
    console.log(formatFairness(result));
  }
  console.log(fairnessLegend);
  return results;
}

export const countUnfair = (results: readonly FairnessResult[]): number =>
  results.filter((result) => findFaults(result).length > 0).length;

export const toFairnessJson = (results: readonly FairnessResult[]): object[] =>
  results.map((result) => ({ ...result, allowed: findAllowed(result), faults: findFaults(result) }));
