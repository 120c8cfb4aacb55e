import { concurrentPairs, measureAdmissions, type PairRun } from './admissions.ts';
import { measureLedger, type LedgerRun } from './ledger.ts';
import {
  computeLedgerRatio,
  computePairRatio,
  countMoneyFaults,
  formatAdmissions,
  formatLedger,
  type FastestScenario,
} from './money-report.ts';
import type { Options } from './options.ts';
import type { Progress } from './progress.ts';
import type { Workshop } from './workshop.ts';

export interface MoneyResults {
  readonly admissions?: {
    readonly ratio: number;
    readonly callers: number;
    readonly runs: readonly PairRun[];
  };
  readonly ledger?: { readonly ratio: number | null; readonly runs: readonly LedgerRun[] };
}

export interface MoneyContext {
  readonly options: Options;
  readonly workshop: Workshop;
  readonly progress: Progress;
  readonly cpus: number;
  /** Null if no scenario went through the gateway. */
  readonly fastest: FastestScenario | null;
}

/** Runs the money-only scenarios, each round with new stores, and prints the result of each. */
export async function runMoney(context: MoneyContext): Promise<MoneyResults> {
  const { options, progress } = context;
  const chosen = options.moneyScenarios;
  return {
    ...(chosen.includes('admissions') ? { admissions: await runAdmissions(context) } : {}),
    ...(chosen.includes('ledger') ? { ledger: await runLedger(context) } : {}),
  };

  async function runAdmissions({ cpus, workshop }: MoneyContext) {
    const callers = options.callers ?? concurrentPairs;
    const runs: PairRun[] = [];
    for (let round = 1; round <= options.rounds; round++) {
      progress.show(nameStep('admissions', 'starting Redis and MongoDB', round));
      const results = await workshop.within([], (programs, dir) =>
        measureAdmissions({
          ...options,
          programs,
          dir,
          cpus,
          callers,
          onStep: (variant) => progress.show(nameStep('admissions', variant, round)),
        }),
      );
      runs.push(...results);
    }
    progress.clear();
    console.log(formatAdmissions(runs, callers));
    return { ratio: computePairRatio(runs), callers, runs };
  }

  async function runLedger({ cpus, workshop, fastest }: MoneyContext) {
    const runs: LedgerRun[] = [];
    for (let round = 1; round <= options.rounds; round++) {
      progress.show(nameStep('ledger', 'starting Redis and MongoDB', round));
      const run = await workshop.within(['worker'], (programs, dir) =>
        measureLedger({
          programs,
          dir,
          cpus,
          charges: options.entries,
          logLevel: options.logLevel,
          onStep: (text) => progress.show(nameStep('ledger', text, round)),
        }),
      );
      runs.push(run);
    }
    progress.clear();
    console.log(formatLedger(runs, fastest));
    return { ratio: computeLedgerRatio(runs, fastest), runs };
  }

  function nameStep(name: string, text: string, round: number): string {
    return `${name}, ${text}${options.rounds > 1 ? `, round ${round}` : ''}`;
  }
}

export function countFaults({ admissions, ledger }: MoneyResults): number {
  return countMoneyFaults(admissions?.runs ?? []) + countMoneyFaults(ledger?.runs ?? []);
}
