import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../shared/runtime/config.ts';
import { startBenchStack } from './bench-stack.ts';
import { chatScenarios } from './chat.ts';
import { embeddingScenarios } from './embeddings.ts';
import { measure, type MeasureOptions, type RunResult, type Way } from './measure.ts';
import { MoneyCheck } from './money-check.ts';
import { Programs } from './programs.ts';
import { Progress } from './progress.ts';
import {
  computeRatio,
  countErrors,
  formatHead,
  formatScenario,
  legend,
  type ScenarioResult,
} from './report.ts';
import { scenarioGroups, type Scenario } from './scenario.ts';

const usage = `npm run bench -- [${scenarioGroups.join('] [')}] [options]

  --callers 64       callers at once, instead of each scenario's own number
  --seconds 5        measured time of each run
  --warm-up 3        seconds before it that are not counted
  --rounds 1         how often each scenario is run; of several, the middle one is shown
  --only NAME        only the scenarios whose name holds this text
  --log-level info   of api and worker
  --json FILE        writes everything that was measured
  --profile DIR      leaves a CPU profile of api and worker there; it slows both
`;

interface Options {
  readonly scenarios: readonly Scenario[];
  readonly callers: number | null;
  readonly measureMs: number;
  readonly warmUpMs: number;
  readonly rounds: number;
  readonly logLevel: string;
  readonly jsonPath: string | null;
  readonly profileDir: string | null;
}

function readOptions(args: string[]): Options | null {
  const text = (byDefault: string) => ({ type: 'string' as const, default: byDefault });
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      callers: { type: 'string' },
      seconds: text('5'),
      'warm-up': text('3'),
      rounds: text('1'),
      only: text(''),
      'log-level': text('info'),
      json: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const unknown = positionals.filter((name) => !(scenarioGroups as readonly string[]).includes(name));
  if (unknown.length > 0) {
    throw new ConfigError(
      `There is no "${unknown.join(', ')}" to measure; there are ${scenarioGroups.join(', ')}.`,
    );
  }
  const scenarios = [...chatScenarios, ...embeddingScenarios].filter(
    ({ group, name }) =>
      (positionals.length === 0 || positionals.includes(group)) && name.includes(values.only),
  );
  if (scenarios.length === 0) throw new ConfigError(`No scenario's name holds "${values.only}".`);
  return {
    scenarios,
    callers: values.callers === undefined ? null : readCount('callers', values.callers),
    measureMs: readNumber('seconds', values.seconds) * 1_000,
    warmUpMs: readNumber('warm-up', values['warm-up']) * 1_000,
    rounds: readCount('rounds', values.rounds),
    logLevel: values['log-level'],
    jsonPath: values.json === undefined ? null : resolve(values.json),
    profileDir: values.profile === undefined ? null : resolve(values.profile),
  };
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !(number >= 0))
    throw new ConfigError(`--${name} must be a number, not "${text}".`);
  return number;
}

function readCount(name: string, text: string): number {
  const number = readNumber(name, text);
  if (!Number.isInteger(number) || number < 1)
    throw new ConfigError(`--${name} must be a whole number from 1 on.`);
  return number;
}

async function runBench(options: Options, programs: Programs, dir: string): Promise<boolean> {
  const progress = new Progress(process.stderr);
  progress.show('starting Redis, MongoDB, S3, vendors, api and worker');
  const { logLevel, profileDir } = options;
  if (profileDir !== null) mkdirSync(profileDir, { recursive: true });
  const stack = await startBenchStack({ programs, dir, env: process.env, logLevel, profileDir });
  const money = new MoneyCheck(stack.env, stack.accountId);
  const cpus = availableParallelism();
  const measuring = { ...options, programs, stack, money, cpus };
  const results: ScenarioResult[] = [];
  try {
    progress.clear();
    console.log(`${cpus} CPUs shared by all of it, Node ${process.versions.node}\n\n${formatHead()}`);
    for (const [index, scenario] of options.scenarios.entries()) {
      const runs = await runScenario(measuring, scenario, { progress, index, options });
      const result = { scenario, callers: options.callers ?? scenario.callers, runs };
      results.push(result);
      progress.clear();
      console.log(formatScenario(result));
    }
  } finally {
    progress.clear();
    await money.close();
  }
  console.log(legend);
  if (options.jsonPath !== null)
    writeFileSync(options.jsonPath, `${JSON.stringify(toJson(results, cpus), null, 2)}\n`);
  const errors = results.flatMap(({ runs }) => runs).reduce((sum, run) => sum + countErrors(run), 0);
  if (errors > 0)
    console.error(`\n!!! ${errors} ERRORS: these numbers are worth nothing until they are explained.`);
  return errors === 0;
}

/** Who goes first alternates, so that neither way always has the warmer or the fuller machine. */
async function runScenario(
  measuring: MeasureOptions,
  scenario: Scenario,
  { progress, index, options }: { progress: Progress; index: number; options: Options },
): Promise<RunResult[]> {
  const runs: RunResult[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const ways: Way[] = (index + round) % 2 === 0 ? ['direct', 'gateway'] : ['gateway', 'direct'];
    for (const way of ways) {
      const step = `${index + 1}/${options.scenarios.length}`;
      progress.show(`${step} ${scenario.name}, ${way}${options.rounds > 1 ? `, round ${round + 1}` : ''}`);
      runs.push(await measure(measuring, scenario, way));
    }
  }
  return runs;
}

function toJson(results: readonly ScenarioResult[], cpus: number): object {
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
  };
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    console.log(usage);
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), 'mg-bench-'));
  const programs = new Programs(dir);
  // Whatever ends this process, nothing of it stays: no child, no folder.
  process.once('exit', () => {
    programs.kill();
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
  const isClean = await Promise.race([runBench(options, programs, dir), programs.failed]);
  await programs.stop(['api', 'worker']);
  process.exit(isClean ? 0 : 1);
}

main().catch((error: unknown) => {
  const isExpected =
    error instanceof ConfigError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  console.error(isExpected ? `${(error as Error).message}\n\n${usage}` : error);
  process.exit(1);
});
