import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../shared/runtime/config-error.ts';
import { chatScenarios } from './chat.ts';
import { embeddingScenarios, memoryLoad } from './embeddings.ts';
import { fairnessScenarios, type FairnessScenario } from './fairness/scenario.ts';
import { jobsTitle, mostJobs } from './jobs/scenario.ts';
import {
  fairnessGroup,
  jobsScenario,
  memoryScenario,
  moneyScenarios,
  scenarioGroups,
  type MoneyScenario,
  type Scenario,
} from './scenario.ts';

/** Takes minutes, so it runs only when named explicitly. */
const byNameAlone: readonly string[] = [memoryScenario, jobsScenario, fairnessGroup];
const groups: readonly string[] = [...scenarioGroups, ...moneyScenarios, ...byNameAlone];

interface Listed {
  readonly group: string;
  readonly name: string;
  readonly title: string;
}

const moneyTitles: Record<MoneyScenario, string> = {
  admissions: 'Admission and settlement, beside plain commands of Redis',
  ledger: 'Ledger into MongoDB',
};

const scenarios = [...chatScenarios, ...embeddingScenarios];

/** Everything that can be measured, in order. */
const all: readonly Listed[] = [
  ...scenarios,
  ...moneyScenarios.map((name) => ({ group: name, name, title: moneyTitles[name] })),
  { ...memoryLoad, group: memoryScenario },
  { group: jobsScenario, name: jobsScenario, title: jobsTitle },
  ...fairnessScenarios.map(({ name, attack, innocent }) => ({
    group: fairnessGroup,
    name,
    title: `Fairness: ${innocent}, beside ${attack}`,
  })),
];

function listScenarios(): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  return all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`).join('\n');
}

export const usage = `npm run bench -- [${groups.join('] [')}] [options]

Without a name it runs all but ${byNameAlone.join(', ')}, which take minutes and are run only by their names.

  --callers 64       callers at once, instead of each scenario's own number
  --seconds 5        measured time of each run
  --warm-up 3        seconds before it that are not counted
  --rounds 1         how often each scenario is run; of several, the middle one is shown
  --entries 50000    charges that the ledger is measured with
  --inputs 1000000   inputs that memory is measured with
  --jobs 100000      durable jobs that wait at once, ${mostJobs} at most
  --only TEXT        only the scenarios whose name holds this text
  --log-level info   of api and worker
  --json FILE        writes everything that was measured
  --profile DIR      leaves a CPU profile of api and worker there; it slows both

Scenarios:
${listScenarios()}
`;

export interface Options {
  readonly scenarios: readonly Scenario[];
  readonly moneyScenarios: readonly MoneyScenario[];
  readonly callers: number | null;
  readonly measureMs: number;
  readonly warmUpMs: number;
  readonly rounds: number;
  readonly entries: number;
  /** True only if requested by name. */
  readonly measuresMemory: boolean;
  readonly inputs: number;
  /** True only if requested by name. */
  readonly measuresJobs: boolean;
  readonly jobs: number;
  readonly fairnessScenarios: readonly FairnessScenario[];
  readonly logLevel: string;
  readonly jsonPath: string | null;
  readonly profileDir: string | null;
}

/**
 * Returns null if help is requested.
 * @throws ConfigError that says which argument is wrong
 */
export function readOptions(args: string[]): Options | null {
  const text = (byDefault: string) => ({ type: 'string' as const, default: byDefault });
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      callers: { type: 'string' },
      seconds: text('5'),
      'warm-up': text('3'),
      rounds: text('1'),
      entries: text('50000'),
      inputs: text('1000000'),
      jobs: text('100000'),
      only: text(''),
      'log-level': text('info'),
      json: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const unknown = positionals.filter((name) => !groups.includes(name));
  if (unknown.length > 0) {
    throw new ConfigError(`There is no "${unknown.join(', ')}" to measure; there are ${groups.join(', ')}.`);
  }
  const isNeeded = ({ group }: Listed): boolean =>
    positionals.length === 0 ? !byNameAlone.includes(group) : positionals.includes(group);
  const wanted = all.filter(isNeeded).map(({ name }) => name);
  const chosen = new Set<string>(wanted.filter((name) => name.includes(values.only)));
  if (chosen.size === 0) {
    const of = positionals.length === 0 ? '' : ` of ${positionals.join(' and ')}`;
    throw new ConfigError(
      `No scenario${of} has "${values.only}" in its name; there are ${wanted.join(', ')}.`,
    );
  }
  return {
    scenarios: scenarios.filter(({ name }) => chosen.has(name)),
    moneyScenarios: moneyScenarios.filter((name) => chosen.has(name)),
    measuresMemory: chosen.has(memoryScenario),
    fairnessScenarios: fairnessScenarios.filter(({ name }) => chosen.has(name)),
    callers: values.callers === undefined ? null : readCount('callers', values.callers),
    measureMs: readNumber('seconds', values.seconds) * 1_000,
    warmUpMs: readNumber('warm-up', values['warm-up']) * 1_000,
    rounds: readCount('rounds', values.rounds),
    entries: readCount('entries', values.entries),
    inputs: readCount('inputs', values.inputs),
    measuresJobs: chosen.has(jobsScenario),
    jobs: readCount('jobs', values.jobs, mostJobs),
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

function readCount(name: string, text: string, most = Infinity): number {
  const number = readNumber(name, text);
  if (!Number.isInteger(number) || number < 1)
    throw new ConfigError(`--${name} must be a whole number from 1 on.`);
  if (number > most) throw new ConfigError(`--${name} must be at most ${most}, not ${number}.`);
  return number;
}
