import type { Options } from '../options.ts';
import type { Progress } from '../progress.ts';
import type { Workshop } from '../workshop.ts';
import type { CapacityResult } from './report.ts';
import type { CapacityScenario } from './scenario.ts';

export interface NamedCapacityResult extends CapacityResult {
  readonly scenario: CapacityScenario;
}

/** Runs the selected scenarios, each on its own stack, and prints the result of each. */
export async function runCapacity(
  options: Options,
  workshop: Workshop,
  progress: Progress,
): Promise<NamedCapacityResult[]> {
  const results: NamedCapacityResult[] = [];
  for (const scenario of options.capacityScenarios) {
    const show = (text: string): void => progress.show(`${scenario.name}, ${text}`);
    show('starting Redis, MongoDB, S3, vendors, api and worker');
    const result = await workshop.within(['api', 'worker'], (programs, dir) =>
      scenario.measure({ programs, dir, options, onProgress: show }),
    );
    progress.clear();
    results.push({ ...result, scenario });
    console.log(formatResult(scenario, result));
  }
  return results;
}

function formatResult({ title }: CapacityScenario, { lines, faults }: CapacityResult): string {
  return [
    '',
    title,
    ...lines.map((line) => `  ${line}`),
    ...faults.map((fault) => `  !!! ERROR  ${fault}`),
  ].join('\n');
}

export const countCapacityFaults = (results: readonly CapacityResult[]): number =>
  results.reduce((sum, { faults }) => sum + faults.length, 0);

export const toCapacityJson = (results: readonly NamedCapacityResult[]): object[] =>
  results.map(({ scenario, values, faults }) => ({ name: scenario.name, ...values, faults }));
