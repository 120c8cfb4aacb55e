import { mkdirSync } from 'node:fs';
import { startBenchStack } from './bench-stack.ts';
import { measure, type MeasureOptions, type RunResult } from './measure.ts';
import { MoneyCheck } from './money-check.ts';
import type { Options } from './options.ts';
import type { Programs } from './programs.ts';
import type { Progress } from './progress.ts';
import { formatHead, formatScenario, legend, type ScenarioResult } from './report.ts';
import { countCallers, listVariants, type Scenario } from './scenario.ts';

export interface ScenariosContext {
  readonly options: Options;
  readonly programs: Programs;
  readonly dir: string;
  readonly progress: Progress;
  readonly cpus: number;
}

/** Runs the chat and embedding scenarios on one stack, and prints the result of each. */
export async function runScenarios(context: ScenariosContext): Promise<ScenarioResult[]> {
  const { options, programs, dir, progress, cpus } = context;
  progress.show('starting Redis, MongoDB, S3, vendors, api and worker');
  const { logLevel, profileDir } = options;
  if (profileDir !== null) mkdirSync(profileDir, { recursive: true });
  const stack = await startBenchStack({ programs, dir, env: process.env, logLevel, profileDir });
  const money = new MoneyCheck(stack.env, stack.accountId);
  const measureOptions = { ...options, programs, stack, money, cpus };
  const results: ScenarioResult[] = [];
  try {
    progress.clear();
    console.log(`\n${formatHead()}`);
    for (const [index, scenario] of options.scenarios.entries()) {
      const runs = await runScenario(measureOptions, scenario, { progress, index, options });
      const result = { scenario, callers: countCallers(scenario, options.callers), runs };
      results.push(result);
      progress.clear();
      console.log(formatScenario(result));
    }
  } finally {
    progress.clear();
    await money.close();
  }
  console.log(legend);
  return results;
}

/** Alternates the order of direct and gateway runs, so that neither always runs on a warmer or busier machine. */
async function runScenario(
  measureOptions: MeasureOptions,
  scenario: Scenario,
  { progress, index, options }: { progress: Progress; index: number; options: Options },
): Promise<RunResult[]> {
  const runs: RunResult[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const variants = listVariants(scenario);
    for (const variant of (index + round) % 2 === 0 ? variants : variants.toReversed()) {
      const step = `${index + 1}/${options.scenarios.length}`;
      progress.show(
        `${step} ${scenario.name}, ${variant}${options.rounds > 1 ? `, round ${round + 1}` : ''}`,
      );
      runs.push(await measure(measureOptions, scenario, variant));
    }
  }
  return runs;
}
