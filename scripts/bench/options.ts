import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { capacityScenarios, type CapacityScenario } from './capacity/scenario.ts';
import { chatScenarios } from './chat.ts';
import { embeddingScenarios, memoryLoad } from './embeddings.ts';
import { fairnessScenarios, type FairnessScenario } from './fairness/scenario.ts';
import { jobsTitle, maxJobs } from './jobs/scenario.ts';
import { comparisons, type Comparison } from './peers/comparisons.ts';
import {
  capacityGroup,
  fairnessGroup,
  jobsScenario,
  memoryScenario,
  moneyScenarios,
  peersGroup,
  scenarioGroups,
  type MoneyScenario,
  type Scenario,
} from './scenario.ts';

/** These take minutes, so they run only if specified explicitly. */
const onlyByName: readonly string[] = [
  memoryScenario,
  jobsScenario,
  capacityGroup,
  fairnessGroup,
  peersGroup,
];
const groups: readonly string[] = [...scenarioGroups, ...moneyScenarios, ...onlyByName];

interface ListedScenario {
  readonly group: string;
  readonly name: string;
  readonly title: string;
}

const moneyTitles: Record<MoneyScenario, string> = {
  admissions: 'Admission and settlement, compared with plain Redis commands',
  ledger: 'Ledger into MongoDB',
};

const scenarios = [...chatScenarios, ...embeddingScenarios];

/** Everything that can be measured, in order. */
const all: readonly ListedScenario[] = [
  ...scenarios,
  ...moneyScenarios.map((name) => ({ group: name, name, title: moneyTitles[name] })),
  { ...memoryLoad, group: memoryScenario },
  { group: jobsScenario, name: jobsScenario, title: jobsTitle },
  ...capacityScenarios.map(({ name, title }) => ({
    group: capacityGroup,
    name,
    title: `Capacity: ${title}`,
  })),
  ...fairnessScenarios.map(({ name, attack, innocent }) => ({
    group: fairnessGroup,
    name,
    title: `Fairness: ${innocent}, during ${attack}`,
  })),
  ...comparisons.map(({ name, title }) => ({ group: peersGroup, name, title: `Side by side: ${title}` })),
];

function listScenarios(): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  return all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`).join('\n');
}

export const usage = `npm run bench -- [${groups.join('] [')}] [options]

Without a name, runs all except ${onlyByName.join(', ')}, which take minutes and run only if specified by name.

  --callers 64       number of concurrent callers, instead of each scenario's default
  --seconds 5        measured time of each run
  --warm-up 3        seconds of warm-up before the measured time
  --rounds 1         how often each scenario is run, 3 times for peers; the median run is shown
  --entries 50000    number of charges in the ledger scenario
  --inputs 1000000   number of inputs in the memory scenario
  --jobs 100000      number of durable jobs that wait at the same time, at most ${maxJobs}
  --streams 5000     number of streams that are open at the same time in many-streams
  --stream-seconds 30  duration of the streams in many-streams, and of slow-readers
  --aborted 10000    number of streams in aborted-streams
  --only TEXT        only scenarios whose name contains this text
  --log-level info   log level of api and worker
  --json FILE        writes all results to this file
  --profile DIR      writes CPU profiles of api and worker to this folder; slows both down

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
  readonly peerRounds: number;
  readonly entries: number;
  /** True only if requested by name. */
  readonly measuresMemory: boolean;
  readonly inputs: number;
  /** True only if requested by name. */
  readonly measuresJobs: boolean;
  readonly jobs: number;
  readonly capacityScenarios: readonly CapacityScenario[];
  /** Streams open at the same time. */
  readonly streams: number;
  readonly streamSeconds: number;
  /** Streams of which a third are aborted. */
  readonly aborted: number;
  readonly fairnessScenarios: readonly FairnessScenario[];
  readonly comparisons: readonly Comparison[];
  readonly logLevel: string;
  readonly jsonPath: string | null;
  readonly profileDir: string | null;
}

/**
 * Returns null if help is requested.
 * @throws ConfigError if an argument is wrong
 */
export function readOptions(args: string[]): Options | null {
  const text = (defaultValue: string) => ({ type: 'string' as const, default: defaultValue });
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      callers: { type: 'string' },
      seconds: text('5'),
      'warm-up': text('3'),
      rounds: { type: 'string' },
      entries: text('50000'),
      inputs: text('1000000'),
      jobs: text('100000'),
      streams: text('5000'),
      'stream-seconds': text('30'),
      aborted: text('10000'),
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
    throw new ConfigError(`Unknown name "${unknown.join(', ')}". Available: ${groups.join(', ')}.`);
  }
  const isSelected = ({ group }: ListedScenario): boolean =>
    positionals.length === 0 ? !onlyByName.includes(group) : positionals.includes(group);
  const selected = all.filter(isSelected).map(({ name }) => name);
  const chosen = new Set<string>(selected.filter((name) => name.includes(values.only)));
  if (chosen.size === 0) {
    const of = positionals.length === 0 ? '' : ` of ${positionals.join(' and ')}`;
    throw new ConfigError(
      `No scenario${of} has "${values.only}" in its name. Available: ${selected.join(', ')}.`,
    );
  }
  return {
    scenarios: scenarios.filter(({ name }) => chosen.has(name)),
    moneyScenarios: moneyScenarios.filter((name) => chosen.has(name)),
    measuresMemory: chosen.has(memoryScenario),
    capacityScenarios: capacityScenarios.filter(({ name }) => chosen.has(name)),
    streams: readCount('streams', values.streams),
    streamSeconds: readCount('stream-seconds', values['stream-seconds']),
    aborted: readCount('aborted', values.aborted),
    fairnessScenarios: fairnessScenarios.filter(({ name }) => chosen.has(name)),
    comparisons: comparisons.filter(({ name }) => chosen.has(name)),
    callers: values.callers === undefined ? null : readCount('callers', values.callers),
    measureMs: readNumber('seconds', values.seconds) * 1_000,
    warmUpMs: readNumber('warm-up', values['warm-up']) * 1_000,
    rounds: readCount('rounds', values.rounds ?? '1'),
    peerRounds: readCount('rounds', values.rounds ?? '3'),
    entries: readCount('entries', values.entries),
    inputs: readCount('inputs', values.inputs),
    measuresJobs: chosen.has(jobsScenario),
    jobs: readCount('jobs', values.jobs, maxJobs),
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

function readCount(name: string, text: string, max = Infinity): number {
  const number = readNumber(name, text);
  if (!Number.isInteger(number) || number < 1)
    throw new ConfigError(`--${name} must be a positive whole number.`);
  if (number > max) throw new ConfigError(`--${name} must be at most ${max}, not ${number}.`);
  return number;
}
