import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { dist } from '../../../start/paths.ts';
import { divideCpu, startCpuPhase } from '../../harness/clocks/cpu-clock.ts';
import type { Programs } from '../../harness/programs.ts';
import type { Settings } from '../../harness/suite.ts';
import { concurrentPairs } from './admissions.ts';
import { countStreamEntries, startMoneyStack, type MoneyStack } from './money-stack.ts';
import { runPairs, runScripts } from './pairs.ts';

export interface LedgerRun {
  /** Entries in the streams before they are read: charges, and a refill per account. */
  readonly entries: number;
  readonly measuredMs: number;
  readonly entriesPerSecond: number;
  /** CPU microseconds per entry, by process. */
  readonly cpuUsPerEntry: Readonly<Record<string, number>>;
  /** Share of all CPU time used by other processes, 0..1. */
  readonly othersShare: number;
  /** Errors found in the balances or entries. */
  readonly faults: readonly string[];
}

export interface LedgerOptions {
  readonly programs: Programs;
  readonly settings: Settings;
  readonly charges: number;
  readonly onStep: (text: string) => void;
}

export const ledgerAccounts = 200;

const pollMs = 10;
const timeoutMs = 120_000;

/** Settles requests while no worker runs, then measures how fast one worker writes their ledger entries to MongoDB. */
export async function measureLedger(options: LedgerOptions): Promise<LedgerRun> {
  const { programs, charges, onStep } = options;
  const stack = await startMoneyStack(programs, ledgerAccounts);
  onStep(`settling ${charges} requests`);
  const load = {
    pair: runScripts,
    concurrency: concurrentPairs,
    shouldStop: (started: number) => started >= charges,
  };
  await runPairs(stack.redis, stack.accounts, load, () => undefined);
  const entries = await countStreamEntries(stack.redis);
  onStep(`${entries} entries into MongoDB`);
  return await measureWorker(options, stack, entries);
}

async function measureWorker(
  { programs, settings }: LedgerOptions,
  stack: MoneyStack,
  entries: number,
): Promise<LedgerRun> {
  const catalog = join(programs.dir, 'catalog.yaml');
  writeFileSync(catalog, JSON.stringify({ upstreams: {}, models: [] }));
  const worker = programs.start({
    name: 'worker',
    file: process.execPath,
    args: [dist('workers/main.js')],
    env: { ...stack.env, CATALOG: catalog, LOG_LEVEL: settings.logLevel },
  });
  // Measure from the first entry that the worker writes, so that its startup is not measured.
  await waitUntil('the first entry', async () => (await stack.ledger.entries.findOne({})) !== null);
  const endCpuPhase = startCpuPhase({ worker: worker.pid, ...stack.pids, load: process.pid });
  await waitUntil('the last entry', async () => (await countStreamEntries(stack.redis)) === 0);
  const cpu = endCpuPhase();
  return {
    entries,
    measuredMs: cpu.measuredMs,
    entriesPerSecond: (entries * 1_000) / cpu.measuredMs,
    cpuUsPerEntry: divideCpu(cpu, entries / 1_000),
    othersShare: cpu.othersShare,
    faults: await findFaults(stack, entries),
  };
}

async function waitUntil(what: string, isDone: () => Promise<boolean>): Promise<void> {
  const startedAtMs = performance.now();
  while (!(await isDone())) {
    if (performance.now() - startedAtMs > timeoutMs)
      throw new Error(`${what} was not in MongoDB after ${timeoutMs} ms`);
    await delay(pollMs);
  }
}

/** Checks that the balances in MongoDB match Redis and that every entry is there. */
async function findFaults(stack: MoneyStack, entries: number): Promise<string[]> {
  const faults: string[] = [];
  const written = await stack.ledger.entries.countDocuments({});
  if (written !== entries) faults.push(`${written} of ${entries} stream entries are in MongoDB`);
  let mismatches = 0;
  for await (const { _id, balanceNano } of stack.accountStore.list()) {
    if ((await stack.hotAccounts.get(_id)).balanceNano !== balanceNano) mismatches += 1;
  }
  if (mismatches > 0) faults.push(`${mismatches} balances in MongoDB differ from Redis`);
  return faults;
}
