import { sum } from '../../harness/statistics.ts';
import type { Suite } from '../../harness/suite.ts';
import { formatReport } from '../../harness/table.ts';
import { measureAbortedStreams } from './aborted-streams.ts';
import type { CapacityOption, CapacityResult, CapacityScenario } from './capacity-scenario.ts';
import { measureManyStreams } from './many-streams.ts';
import { measureScale } from './scale.ts';
import { measureSlowReaders } from './slow-readers.ts';

/** Many streams, slow readers, leaks, and further processes, each on its own stack. */
export const capacitySuite: Suite<CapacityScenario, CapacityOption> = {
  name: 'capacity',
  label: 'Capacity',
  scenarios: [
    {
      name: 'many-streams',
      title: 'Many streams at once, each with a token a second',
      measure: measureManyStreams,
    },
    { name: 'slow-readers', title: 'Readers slower than the vendor', measure: measureSlowReaders },
    {
      name: 'aborted-streams',
      title: 'Leaks after streams of which a third are aborted at random',
      measure: measureAbortedStreams,
    },
    { name: 'scale', title: 'Chats with one and two api processes and workers', measure: measureScale },
  ],
  options: {
    streams: { default: 5_000, help: 'number of streams that are open at the same time in many-streams' },
    'stream-seconds': { default: 30, help: 'duration of the streams in many-streams, and of slow-readers' },
    aborted: { default: 10_000, help: 'number of streams in aborted-streams' },
  },
  runsOnlyByName: true,

  async run(context) {
    const { output } = context;
    const results: (CapacityResult & { readonly name: string })[] = [];
    for (const { name, title, measure } of context.scenarios) {
      const show = (text: string): void => output.show(`${name}, ${text}`);
      show('starting Redis, MongoDB, S3, vendors, api and worker');
      const result = await context.within((programs) => measure({ ...context, programs, onProgress: show }));
      results.push({ ...result, name });
      const lines = result.lines.map((line) => `  ${line}`);
      output.print(formatReport(title, lines, result.faults));
    }
    return {
      json: results.map(({ name, values, faults }) => ({ name, ...values, faults })),
      faults: sum(results.map(({ faults }) => faults.length)),
    };
  },
};
