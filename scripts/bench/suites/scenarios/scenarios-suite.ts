import { countCallers } from '../../harness/load/load-plan.ts';
import { startStandardStack } from '../../harness/stack/standard-stack.ts';
import { sum } from '../../harness/statistics.ts';
import { alternate, type Suite, type SuiteContext } from '../../harness/suite.ts';
import { chatScenarios } from './chat.ts';
import { embeddingScenarios } from './embeddings.ts';
import { listVariants, type LoadScenario } from './load-scenario.ts';
import { measure, type RunResult } from './measure.ts';
import {
  chooseRun,
  computeRatio,
  countErrors,
  formatHead,
  formatScenario,
  legend,
  type ScenarioResult,
} from './report.ts';

/** Chats and embeddings against simulated vendors, directly and through the gateway, all on one stack. */
export const scenariosSuite: Suite<LoadScenario> = {
  name: 'scenarios',
  scenarios: [...chatScenarios, ...embeddingScenarios],
  emptyJson: [],

  async run(context) {
    const results = await runScenarios(context);
    const speeds = results.map(({ scenario, runs }) => ({
      name: scenario.name,
      // Each response of the gateway is one settlement.
      settlementsPerSecond: chooseRun(runs, 'gateway').requestsPerSecond,
    }));
    const [fastest] = speeds.sort((a, b) => b.settlementsPerSecond - a.settlementsPerSecond);
    return {
      json: results.map(({ scenario: { name, title, vendor }, callers, runs }) => ({
        name,
        title,
        callers,
        vendor,
        ratio: computeRatio(runs),
        runs,
      })),
      faults: sum(results.flatMap(({ runs }) => runs.map(countErrors))),
      ...(fastest !== undefined && { fastest }),
    };
  },
};

async function runScenarios(context: SuiteContext<LoadScenario>): Promise<ScenarioResult[]> {
  const { scenarios, settings, rounds, output } = context;
  output.show('starting Redis, MongoDB, S3, vendors, api and worker');
  return await context.within(async (programs) => {
    const stack = await startStandardStack(programs, settings);
    const results: ScenarioResult[] = [];
    output.print(`\n${formatHead()}`);
    for (const [index, scenario] of scenarios.entries()) {
      const runs: RunResult[] = [];
      for (let round = 0; round < rounds; round++) {
        for (const variant of alternate(listVariants(scenario), index + round)) {
          const step = `${index + 1}/${scenarios.length} ${scenario.name}, ${variant}`;
          output.show(`${step}${rounds > 1 ? `, round ${round + 1}` : ''}`);
          runs.push(await measure(settings, programs, stack, scenario, variant));
        }
      }
      const result = { scenario, callers: countCallers(scenario, settings), runs };
      results.push(result);
      output.print(formatScenario(result));
    }
    output.print(legend);
    return results;
  });
}
