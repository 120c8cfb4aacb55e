import { memoryScenario, measureMemory } from './memory.ts';
import { formatMemory, listFaults } from './memory-report.ts';
import type { Suite } from '../../harness/suite.ts';

/** Memory over many calls, on a separate stack, so that earlier measurements do not affect it. */
export const memorySuite: Suite<typeof memoryScenario, 'inputs'> = {
  name: 'memory',
  scenarios: [memoryScenario],
  options: { inputs: { default: 1_000_000, help: 'number of inputs in the memory scenario' } },
  runsOnlyByName: true,

  async run({ settings, counts, output, within }) {
    output.show('memory, starting Redis, MongoDB, S3, vendors, api and worker');
    const run = await within((programs) =>
      measureMemory(programs, settings, counts.inputs, (share) =>
        output.showShare('memory', share, `${counts.inputs} inputs`),
      ),
    );
    output.print(formatMemory(run));
    return { json: run, faults: listFaults(run).length };
  },
};
