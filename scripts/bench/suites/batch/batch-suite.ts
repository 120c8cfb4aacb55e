import type { Suite } from '../../harness/suite.ts';
import { batchScenarios, type BatchResult, type BatchScenario } from './batch-plan.ts';
import { measureBatch } from './measure-batch.ts';
import { formatBatch, listFaults } from './report.ts';

/** Batches of embeddings beside full calls that are sent to the vendor itself. Each scenario has its own stack. */
export const batchSuite: Suite<BatchScenario, 'lines'> = {
  name: 'batch',
  scenarios: batchScenarios,
  options: { lines: { default: 50_000, max: 50_000, help: 'lines of each batch' } },
  runsOnlyByName: true,

  async run({ scenarios, settings, counts, rounds, output, within }) {
    const results: BatchResult[] = [];
    for (const scenario of scenarios)
      for (let round = 0; round < rounds; round++) {
        const result = await within((programs) =>
          measureBatch({
            programs,
            settings,
            scenario,
            lines: counts.lines,
            onStep: (text) => output.show(`${scenario.name}, ${text}`),
          }),
        );
        output.print(formatBatch(scenario, result));
        results.push(result);
      }
    return { json: results, faults: results.flatMap(listFaults).length };
  },
};
