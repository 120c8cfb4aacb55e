import type { Programs } from '../../harness/programs.ts';
import { sum } from '../../harness/statistics.ts';
import type { Scenario, Suite, SuiteContext } from '../../harness/suite.ts';
import { concurrentPairs, measureAdmissions } from './admissions.ts';
import { measureLedger } from './ledger.ts';
import { computeLedgerRatio, computePairRatio, formatAdmissions, formatLedger } from './money-report.ts';

type MoneyContext = SuiteContext<MoneyScenario, 'entries'>;

interface MoneyScenario extends Scenario {
  readonly run: (context: MoneyContext) => Promise<MoneyResult>;
}

interface MoneyResult {
  readonly ratio: number | null;
  readonly runs: readonly { readonly faults: readonly string[] }[];
}

/** Only the money path, without a vendor. */
export const moneySuite: Suite<MoneyScenario, 'entries'> = {
  name: 'money',
  scenarios: [
    {
      group: 'admissions',
      name: 'admissions',
      title: 'Admission and settlement, compared with plain Redis commands',
      run: runAdmissions,
    },
    { group: 'ledger', name: 'ledger', title: 'Ledger into MongoDB', run: runLedger },
  ],
  options: { entries: { default: 50_000, help: 'number of charges in the ledger scenario' } },
  emptyJson: {},

  async run(context) {
    const results: Record<string, MoneyResult> = {};
    for (const { name, run } of context.scenarios) results[name] = await run(context);
    const runs = Object.values(results).flatMap((result) => result.runs);
    return { json: results, faults: sum(runs.map(({ faults }) => faults.length)) };
  },
};

async function runAdmissions(context: MoneyContext) {
  const callers = context.settings.callers ?? concurrentPairs;
  const rounds = await runRounds(context, 'admissions', (programs, onStep) =>
    measureAdmissions({ ...context, programs, callers, onStep }),
  );
  const runs = rounds.flat();
  context.output.print(formatAdmissions(runs, callers));
  return { ratio: computePairRatio(runs), callers, runs };
}

async function runLedger(context: MoneyContext) {
  const { counts, earlier, output } = context;
  const runs = await runRounds(context, 'ledger', (programs, onStep) =>
    measureLedger({ ...context, programs, charges: counts.entries, onStep }),
  );
  const fastest = earlier.find((result) => result.fastest !== undefined)?.fastest ?? null;
  output.print(formatLedger(runs, fastest));
  return { ratio: computeLedgerRatio(runs, fastest), runs };
}

/** Runs each round with new stores. */
async function runRounds<T>(
  { rounds, output, within }: MoneyContext,
  name: string,
  measure: (programs: Programs, onStep: (text: string) => void) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (let round = 1; round <= rounds; round++) {
    const show = (text: string): void =>
      output.show(`${name}, ${text}${rounds > 1 ? `, round ${round}` : ''}`);
    show('starting Redis and MongoDB');
    results.push(await within((programs) => measure(programs, show)));
  }
  return results;
}
