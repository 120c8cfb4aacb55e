import type { Options } from '../options.ts';
import type { Progress } from '../progress.ts';
import type { Workshop } from '../workshop.ts';
import { computeAllowed, findFaults } from './judge.ts';
import { measureFairness } from './measure.ts';
import type { FairnessResult } from './scenario.ts';
import { fairnessLegend, formatFairness, formatFairnessHead } from './report.ts';

/** Runs each scenario with new processes, so that one attack does not affect the next. Prints each result. */
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
    // Requests in flight at the end belong to the attack, so do not wait for them.
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
  results.map((result) => ({ ...result, allowed: computeAllowed(result), faults: findFaults(result) }));
