import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import {
  countCapacityFaults,
  runCapacity,
  toCapacityJson,
  type NamedCapacityResult,
} from './capacity/run-capacity.ts';
import { countUnfair, runFairness, toFairnessJson } from './fairness/run-fairness.ts';
import type { FairnessResult } from './fairness/scenario.ts';
import { countJobFaults } from './jobs/report.ts';
import { runJobs } from './jobs/run-jobs.ts';
import type { JobsRun } from './jobs/scenario.ts';
import type { FastestScenario } from './money-report.ts';
import { readOptions, usage, type Options } from './options.ts';
import { countPeerFaults, runPeers, type PeerResult } from './peers/run-peers.ts';
import { Progress } from './progress.ts';
import { chooseRun, computeRatio, countErrors, type ScenarioResult } from './report.ts';
import type { MemoryRun } from './memory.ts';
import { countMemoryFaults } from './memory-report.ts';
import { runMemory } from './run-memory.ts';
import { countFaults, runMoney, type MoneyResults } from './run-money.ts';
import { runScenarios } from './run-scenarios.ts';
import { Workshop } from './workshop.ts';

logUncaught('bench', { fd: 2 });

async function runBench(options: Options, workshop: Workshop): Promise<boolean> {
  const progress = new Progress(process.stderr);
  const cpus = availableParallelism();
  console.log(`${cpus} CPUs shared by all processes, Node ${process.versions.node}`);
  const results =
    options.scenarios.length === 0
      ? []
      : await workshop.within(['api', 'worker'], (programs, dir) =>
          runScenarios({ options, programs, dir, progress, cpus }),
        );
  const money = await runMoney({ options, workshop, progress, cpus, fastest: findFastest(results) });
  const memory = await runMemory(options, workshop, progress);
  const jobs = await runJobs(options, workshop, progress, cpus);
  const capacity = await runCapacity(options, workshop, progress);
  const fairness = await runFairness(options, workshop, progress);
  const peers = await runPeers(options, workshop, progress);
  if (options.jsonPath !== null)
    writeFileSync(
      options.jsonPath,
      `${JSON.stringify(toJson(results, { money, memory, jobs, capacity, fairness, peers, cpus }), null, 2)}\n`,
    );
  const runs = results.flatMap((result) => result.runs);
  const errors = runs.reduce(
    (sum, run) => sum + countErrors(run),
    countFaults(money) +
      countMemoryFaults(memory) +
      countJobFaults(jobs) +
      countCapacityFaults(capacity) +
      countPeerFaults(peers),
  );
  if (errors > 0)
    console.error(`\n!!! ${errors} ERRORS: these numbers are meaningless until they are explained.`);
  const unfair = countUnfair(fairness);
  if (unfair > 0)
    console.error(`\n!!! ${unfair} of ${fairness.length} attacks affect others more than allowed.`);
  return errors === 0 && unfair === 0;
}

/** Each response of the gateway is one settlement. */
function findFastest(results: readonly ScenarioResult[]): FastestScenario | null {
  const speeds = results.map(({ scenario, runs }) => ({
    name: scenario.name,
    settlementsPerSecond: chooseRun(runs, 'gateway').requestsPerSecond,
  }));
  return speeds.sort((a, b) => b.settlementsPerSecond - a.settlementsPerSecond)[0] ?? null;
}

interface FurtherResults {
  readonly money: MoneyResults;
  readonly memory: MemoryRun | null;
  readonly jobs: JobsRun | null;
  readonly capacity: readonly NamedCapacityResult[];
  readonly fairness: readonly FairnessResult[];
  readonly peers: readonly PeerResult[];
  readonly cpus: number;
}

function toJson(
  results: readonly ScenarioResult[],
  { money, memory, jobs, capacity, fairness, peers, cpus }: FurtherResults,
): object {
  return {
    at: new Date().toISOString(),
    node: process.versions.node,
    cpus,
    scenarios: results.map(({ scenario, callers, runs }) => ({
      name: scenario.name,
      title: scenario.title,
      callers,
      vendor: scenario.vendor,
      ratio: computeRatio(runs),
      runs,
    })),
    money,
    ...(memory === null ? {} : { memory }),
    ...(jobs === null ? {} : { jobs }),
    ...(capacity.length === 0 ? {} : { capacity: toCapacityJson(capacity) }),
    ...(fairness.length === 0 ? {} : { fairness: toFairnessJson(fairness) }),
    ...(peers.length === 0 ? {} : { peers }),
  };
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    console.log(usage);
    return;
  }
  const workshop = new Workshop();
  // Remove all child processes and folders on every exit.
  process.once('exit', () => workshop.destroy());
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
  process.exit((await runBench(options, workshop)) ? 0 : 1);
}

main().catch((error: unknown) => {
  const isExpected =
    error instanceof ConfigError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  console.error(isExpected ? `${(error as Error).message}\n\n${usage}` : error);
  process.exit(1);
});
