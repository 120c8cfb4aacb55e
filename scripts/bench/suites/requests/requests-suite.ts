import type { Database } from '../../../../shared/platform/storage/mongo-client.ts';
import type { Programs } from '../../harness/programs.ts';
import { sum } from '../../harness/statistics.ts';
import type { Scenario, Suite } from '../../harness/suite.ts';
import { formatCount, formatMs, formatNote, formatReport, Table } from '../../harness/table.ts';
import { measureRequests, type LookUp, type RequestsRun } from './measure-requests.ts';
import { startEmbedded, startMongod } from './start-mongo.ts';

interface RequestsScenario extends Scenario {
  readonly option: 'rows' | 'embedded-rows';
  readonly isIndexedFirst: boolean;
  readonly start: (programs: Programs) => Promise<Database>;
}

/** The request log as operators and customers read it. */
export const requestsSuite: Suite<RequestsScenario, RequestsScenario['option'] | 'look-ups'> = {
  name: 'requests',
  label: 'Request log',
  runsOnlyByName: true,
  scenarios: [
    {
      name: 'requests-mongod',
      title: 'look-ups on a real mongod',
      option: 'rows',
      isIndexedFirst: false,
      start: startMongod,
    },
    {
      name: 'requests-embedded',
      title: 'look-ups on the embedded MongoDB',
      option: 'embedded-rows',
      isIndexedFirst: true,
      start: startEmbedded,
    },
  ],
  options: {
    rows: { default: 3_000_000, help: 'rows of the request log on a real mongod' },
    'embedded-rows': { default: 300_000, help: 'rows of the request log on the embedded MongoDB' },
    'look-ups': { default: 300, help: 'look-ups of each kind in the request log' },
  },

  async run({ scenarios, counts, output, within }) {
    const results: Record<string, RequestsRun> = {};
    for (const { name, title, option, isIndexedFirst, start } of scenarios) {
      const onStep = (text: string): void => output.show(`${name}, ${text}`);
      onStep('starting MongoDB');
      const run = await within(async (programs) => {
        const db = await start(programs);
        const lookUps = counts['look-ups'];
        return await measureRequests({ db, rows: counts[option], lookUps, isIndexedFirst, onStep });
      });
      output.print(formatRequests(title, run));
      results[name] = run;
    }
    const faults = sum(Object.values(results).map((run) => run.faults.length));
    const verdict = `${faults} FAULTS of the request log: see above.`;
    return { json: results, faults, verdict };
  },
};

const table = new Table<LookUp>([
  { title: '', width: 36, cell: ({ name }) => `  ${name}` },
  { title: 'p50 ms', cell: ({ p50Ms }) => formatMs(p50Ms) },
  { title: 'p99 ms', cell: ({ p99Ms, maxMs }) => `${formatMs(p99Ms)}${p99Ms > maxMs ? ' !' : ''}` },
]);

const formatRequests = (title: string, run: RequestsRun): string =>
  formatReport(
    `Request log, ${title} · ${formatCount(run.rows)} rows`,
    [
      ...table.format(run.lookUps),
      formatNote(
        'inserted',
        formatCount(run.insertedPerSecond),
        `rows per second, ${run.indexedMs === null ? 'with' : 'without'} indexes`,
      ),
      ...(run.indexedMs === null
        ? []
        : [formatNote('indexes', `${formatMs(run.indexedMs / 1_000)} s`, 'to create all of them')]),
    ],
    run.faults,
  );
